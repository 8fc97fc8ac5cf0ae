package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// workerSettings are what worker is told.
type workerSettings struct {
	queues      []string
	name        string
	labels      map[string]string
	allowExec   bool
	addresses   target.AddressPolicy
	aws         awsTargets
	mail        mailFlags
	secrets     secretFlags
	engines     engineFlags
	lease       time.Duration // with engines; else the server has it
	callbacks   callbackFlags // the same
	concurrency int
	grace       time.Duration
	log         logFlags
	trace       traceFlags
	scrape      scrapeFlags
}

func (c *cli) worker() *cobra.Command {
	var s workerSettings
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Work on runs from here, a server's or those of a shared store",
		Long: `Take runs of a queue from a Belfry elsewhere, and call their targets from this machine: http targets, with --allow-exec
also commands, with a mail server also mails. The server has such queues by "belfry serve --remote-queue NAME". Its token needs the
scope work.

The worker goes on through restarts of the server: what runs is renewed and finished when the server is back. On
SIGTERM it takes nothing more, lets what runs end within the grace, and hands the rest back.

With --store, --queue-url and --blob it needs no server: it works on the DynamoDB table and the SQS queues that processes
and functions share, under AWS's own settings (AWS_REGION, AWS_PROFILE, a role), and any of their queues will do.`,
		Example: `  belfry worker --queue gpu
  belfry worker --address https://belfry.example.org --queue gpu --concurrency 4 --allow-exec --label zone=eu-1
  belfry worker --queue gpu --store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			if s.engines.shared() {
				return c.workOn(cmd.Context(), s)
			}
			return c.workWith(cmd.Context(), s)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&s.queues, "queue", nil, "`QUEUE` to work for; more than once or with commas for several")
	called(f, "queue", "BELFRY_QUEUES")
	s.engines.flags(cmd)
	leaseFlag(cmd, &s.lease)
	s.callbacks.flags(cmd)
	f.StringVar(&s.name, "name", "", "beginning of the worker's `NAME` in listings; this host's by default")
	f.StringToStringVar(&s.labels, "label", nil, "`NAME=VALUE`, for people who list workers; more than once or with commas for several")
	f.BoolVar(&s.allowExec, "allow-exec", false, "let jobs start processes on this host, as this user")
	f.IntVar(&s.concurrency, "concurrency", 50, "`NUMBER` of attempts at once, for each queue")
	f.DurationVar(&s.grace, "grace", 20*time.Second, "how long running attempts may go on when the worker is stopped: a `DURATION`")
	s.log.flags(cmd)
	s.trace.flags(cmd)
	s.scrape.flags(cmd)
	addressFlags(cmd, &s.addresses)
	s.aws.flags(cmd)
	s.mail.flags(cmd)
	s.secrets.sources(cmd)
	s.secrets.keys(cmd)
	return cmd
}

func (s *workerSettings) check() error {
	switch {
	case len(s.queues) == 0:
		return misused("want --queue NAME: one that the server has by --remote-queue, or with --store one that is there")
	case s.concurrency < 1 || s.concurrency > 10_000:
		return misused("--concurrency %d: want 1 to 10000", s.concurrency)
	case s.grace < 0 || s.grace > time.Hour:
		return misused("--grace %s: want 0s to 1h", s.grace)
	case s.engines.shared() && len(s.labels) > 0:
		return misused("--label is for workers that a server lists: want it without --store")
	case !s.engines.shared() && (s.secrets.keyFile != "" || s.lease != usualLease):
		return misused("--secrets-key-file and --lease are the server's, unless the worker needs none: want --store with them")
	case !s.engines.shared() && s.callbacks.named():
		return misused("--on-failed, --on-missed and --on-recovered are the server's, unless the worker needs none: want --store with them")
	case !s.engines.shared() && s.scrape.listen != "":
		return misused("--metrics-listen is for workers with --store: the server counts what the others do")
	case len(s.labels) > 16:
		return misused("%d labels: want at most 16", len(s.labels))
	case s.name != "" && (job.ValidName(s.name) != nil || len(s.name) > longestWorker):
		return misused("--name %q: want 1 to %d letters, digits, dots, underscores or hyphens, beginning with a letter or digit", s.name, longestWorker)
	}
	if err := errors.Join(s.engines.check(), checkLease(s.lease), s.scrape.check(), s.mail.check()); err != nil {
		return err
	}
	pools, err := readPools(s.queues)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, pool := range pools {
		if seen[pool.Name] {
			return misused("--queue %s: want the name of a queue, each once", pool.Name)
		}
		seen[pool.Name] = true
		s.queues[i] = pool.Name // what it can run is for those who accept jobs
	}
	return s.secrets.check()
}

// longestWorker leaves room in a worker's name for what makes it unique.
const longestWorker = 40

// workerName is unique over all starts: two workers of one name could speak for each other.
func workerName(name string) string {
	if name == "" {
		name, _ = os.Hostname() // "" has its own answer below
	}
	name = strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, name)
	name = strings.TrimLeft(name, "-._")
	if name == "" {
		name = "worker"
	}
	return fmt.Sprintf("%.*s-%d-%08x", longestWorker, name, os.Getpid(), uint32(newID()))
}

// workWith works until a signal or ctx ends it. The first signal lets what runs end within the grace; a second one ends the
// process at once.
func (c *cli) workWith(ctx context.Context, s workerSettings) error {
	began := time.Now()
	log, err := newLog(c.stderr, s.log.format, s.log.level)
	if err != nil {
		return err
	}
	tracer, ended, err := s.trace.open(ctx, log)
	if err != nil {
		return err
	}
	defer ended()
	server, err := c.client()
	if err != nil {
		return err
	}
	s.secrets.warn(log)
	callAWS, err := s.aws.open(ctx)
	if err != nil {
		return err
	}
	calls := target.Config{Now: time.Now, AllowExec: s.allowExec, BaseEnv: os.Environ(), Addresses: s.addresses, AWS: callAWS, ARNs: s.aws,
		Secrets: s.secretsHere(), UserAgent: "Belfry/" + thisBuild().Version}
	s.mail.add(&calls, log)
	targets, err := target.New(calls)
	if err != nil {
		return err
	}
	defer targets.Close()
	name := workerName(s.name)
	var workers []*worker.Worker
	for _, queue := range s.queues {
		w, err := server.Worker(client.WorkerConfig{Queue: queue, Name: name, Targets: targets, Labels: s.labels,
			Elapsed: func() time.Duration { return time.Since(began) }, Log: log.With("queue", queue), Tracer: tracer, Concurrency: s.concurrency, Grace: graceOf(s.grace)})
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	greet := func() error { return c.greetWorker(server, name, s) }
	return c.untilStopped(ctx, log, targets, s.grace, greet, func(ctx context.Context) error { return refusedWork(work(ctx, workers)) })
}

// work runs all workers; where the server refuses one for good, all end.
func work(ctx context.Context, workers []*worker.Worker) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		all.Go(func() error { return w.Run(ctx) })
	}
	return all.Wait()
}

func refusedWork(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the server gives this worker no runs: %w", err)
}

// secretsHere are those that come with a run, and else this host's own.
func (s *workerSettings) secretsHere() target.Secrets {
	local := secret.Finder(s.secrets.local()...)
	return func(ctx context.Context, tenant, name string) (string, error) {
		text, err := worker.Secrets(ctx, tenant, name)
		if err == nil {
			return text, nil
		}
		if here, nowhere := local(ctx, tenant, name); nowhere == nil {
			return here, nil
		}
		return "", err
	}
}

func (c *cli) greetWorker(server *client.Client, name string, s workerSettings) error {
	if c.structured() {
		return c.print(map[string]any{"worker": name, "address": server.Address(), "queues": s.queues, "version": thisBuild().Version})
	}
	fmt.Fprintf(c.stdout, "Belfry %s is ready to work.\n  worker  %s\n  server  %s\n  queues  %s\n", thisBuild().Version, name, server.Address(), strings.Join(s.queues, ", "))
	return nil
}
