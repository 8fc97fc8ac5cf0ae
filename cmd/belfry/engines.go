package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/blob/azure"
	"github.com/belfry-scheduler/belfry/lib/blob/gs"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// engineFlags are the engines that processes share, by URL.
type engineFlags struct {
	store  string
	queues string
	blob   string
}

func (e *engineFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&e.store, "store", "", "`URL` of a table that processes share: dynamodb://TABLE, with ?region=REGION where it is not the usual one")
	cmd.Flags().StringVar(&e.queues, "queue-url", "", queuesURL)
	called(cmd.Flags(), "queue-url", "BELFRY_QUEUE")
	cmd.Flags().StringVar(&e.blob, "blob", "", "`URL` of the bucket beside --store: s3://BUCKET, gs://BUCKET or azblob://CONTAINER, or file:///DIR of a single process")
}

const queuesURL = "`URL` of the queues beside --store: sqs://PREFIX, with ?region=REGION where it is not the usual one"

// variable marks a flag that has a variable of its own: the one by which functions know the same thing.
const variable = "variable"

func called(f *pflag.FlagSet, name, is string) {
	_ = f.SetAnnotation(name, variable, []string{is}) // it fails for a flag that is not there
}

// wants marks flags without which a command does nothing, so that it may have them from the environment too.
const wants = "wants"

func alwaysWanted(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = f.SetAnnotation(name, wants, []string{"yes"})
	}
}

// variableOfFlag is the environment's name for a flag.
func variableOfFlag(flag *pflag.Flag) string {
	if own := flag.Annotations[variable]; len(own) > 0 {
		return own[0]
	}
	return variableOf(flag.Name)
}

// shared tells whether there are engines that processes share.
func (e *engineFlags) shared() bool { return e.store != "" }

func (e *engineFlags) check() error {
	switch {
	case !e.shared() && e.queues+e.blob == "":
		return nil
	case strings.HasPrefix(e.store, "pebble:"):
		return misused("--store %s: want dynamodb://TABLE; a folder that one process has to itself is --data DIR", e.store)
	case e.store == "" || e.queues == "" || e.blob == "":
		return misused("want --store dynamodb://TABLE, --queue-url sqs://PREFIX and --blob s3://BUCKET together, or none of them")
	}
	return nil
}

// open opens the engines, and makes sure that they can be used: a process that cannot work is to say so at its start.
func (e *engineFlags) open(ctx context.Context, pools []cloud.Pool, registry *metrics.Registry, log *slog.Logger) (*cloud.Data, error) {
	data, err := cloud.Open(ctx, cloud.Config{Store: e.store, Queue: e.queues, Blob: e.blob, Queues: pools, OpenBlob: openBlob,
		Account: cloud.Host, Now: time.Now, NewID: newID, Metrics: registry, Log: log})
	if err != nil {
		return nil, badAddress(err)
	}
	if err := data.Check(ctx); err != nil {
		return nil, errors.Join(err, data.Close())
	}
	return data, nil
}

// receives is how often the queues hand out a message before they give it up, the least of all; 0 where they never do.
func (e *engineFlags) receives(ctx context.Context, pools []cloud.Pool) (least int, err error) {
	for _, pool := range pools {
		cfg, err := pool.Queues(ctx, e.queues, newID)
		if err != nil {
			return 0, err
		}
		queues, err := sqs.Describe(ctx, cfg)
		if err != nil {
			return 0, err
		}
		for _, q := range queues {
			if q.Err != nil {
				return 0, q.Err
			}
			if q.Receives > 0 && (least == 0 || q.Receives < least) {
				least = q.Receives
			}
		}
	}
	return least, nil
}

// badAddress tells what is wrong with how the command was called.
func badAddress(err error) error {
	var wrong *invalid.Error
	if errors.As(err, &wrong) {
		return usageError{err}
	}
	return err
}

// openBlob opens the buckets that functions do not link.
func openBlob(ctx context.Context, where string) (*blob.Bucket, error) {
	switch scheme, _, _ := strings.Cut(where, ":"); scheme {
	case "file":
		return bloblocal.Open(ctx, where)
	case "gs":
		at, err := gs.ParseURL(where)
		if err != nil {
			return nil, err
		}
		return gs.Open(ctx, at)
	case "azblob":
		at, err := azure.ParseURL(where, os.Getenv("AZURE_STORAGE_ACCOUNT"))
		if err != nil {
			return nil, err
		}
		return azure.Open(ctx, at, azure.Credentials{Key: os.Getenv("AZURE_STORAGE_KEY"), SAS: os.Getenv("AZURE_STORAGE_SAS_TOKEN")})
	}
	return nil, invalid.Field("blob", where, "s3://BUCKET, gs://BUCKET, azblob://CONTAINER or file:///DIR")
}

// tickFlags are of processes that tick on a store that others tick on too.
type tickFlags struct {
	lookAhead time.Duration
	every     time.Duration
	shards    int
}

var usualTicks = tickFlags{lookAhead: node.SharedLookAhead, every: node.SharedEvery, shards: node.SharedShards}

func (t *tickFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&t.lookAhead, "look-ahead", usualTicks.lookAhead, "how far ahead of their time runs go to the queues of --store: a `DURATION`, the same in all processes")
	f.DurationVar(&t.every, "tick-every", usualTicks.every, "how often this process ticks on --store: a `DURATION`, shorter than --look-ahead")
	f.IntVar(&t.shards, "shards", usualTicks.shards, "`NUMBER` of parts that ticks share a new --store in, a power of two up to 64; one that was set up keeps its own")
}

func (t *tickFlags) check() error {
	switch {
	case t.lookAhead < 2*time.Second || t.lookAhead > 14*time.Minute:
		return misused("--look-ahead %s: want 2s to 14m, since a queue holds a message back for 15 minutes at most", t.lookAhead)
	case t.every < time.Second || t.every >= t.lookAhead:
		return misused("--tick-every %s: want 1s or more, and less than --look-ahead %s", t.every, t.lookAhead)
	case t.shards < 1 || t.shards > 64 || t.shards&(t.shards-1) != 0:
		return misused("--shards %d: want a power of two from 1 to 64", t.shards)
	}
	return nil
}

// catchUpFlag is of processes that tick.
func catchUpFlag(cmd *cobra.Command, to *int) {
	cmd.Flags().IntVar(to, "catch-up-rate", dispatch.DefaultCatchUpRate, "`NUMBER` of starts a second at the most, over all jobs, that make up for fires of a time without ticks; the same in all processes that share a store")
}

func checkCatchUp(rate int) error {
	if rate < 1 || rate > dispatch.MaxCatchUpRate {
		return misused("--catch-up-rate %d: want 1 to %d starts a second", rate, dispatch.MaxCatchUpRate)
	}
	return nil
}

const usualLease = 30 * time.Second

func leaseFlag(cmd *cobra.Command, to *time.Duration) {
	cmd.Flags().DurationVar(to, "lease", usualLease, "how long a worker holds a run without renewing: a `DURATION`, the same in all processes that share a store")
}

func checkLease(lease time.Duration) error {
	if lease < time.Second || lease > time.Hour {
		return misused("--lease %s: want 1s to 1h", lease)
	}
	return nil
}

// graceOf is the grace that a flag asks for as a Config has it, in which 0 is the default.
func graceOf(asked time.Duration) time.Duration { return max(asked, time.Nanosecond) }

// untilStopped greets, and runs work until a signal or ctx ends it. The first signal lets what runs end within the grace; a second
// one ends the process at once, and with it what its targets have started.
func (c *cli) untilStopped(ctx context.Context, log *slog.Logger, targets *target.Set, grace time.Duration, greet func() error, work func(context.Context) error) error {
	signals := asksToStop(ctx, log, c.stderr)
	if err := greet(); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- work(running) }()
	select {
	case got := <-signals:
		log.Info("stopping; a second signal ends at once", "signal", got.String(), "grace", grace.String())
	case <-ctx.Done():
		log.Info("stopping", "grace", grace.String())
	case err := <-worked:
		return err
	}
	stop()
	select {
	case err := <-worked:
		return err
	case <-signals:
		targets.Kill()
		return errors.New("ended at once; what ran is taken up when its lease is over")
	}
}

// logFlags are how a process that runs for long logs.
type logFlags struct{ format, level string }

func (l *logFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.format, "log-format", "auto", "`FORM` of the log: text, json, or auto: text on a terminal")
	f.StringVar(&l.level, "log-level", "info", "least `LEVEL` that is logged: debug, info, warn or error")
}

// shownEngines are the lines of a greeting that say what a process works on.
func (e *engineFlags) shown() string {
	return fmt.Sprintf("  store    %s\n  queues   %s\n  blobs    %s\n", e.store, e.queues, e.blob)
}
