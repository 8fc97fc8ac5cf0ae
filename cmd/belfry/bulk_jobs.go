package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// bulkJobs is a command over jobs that are named or chosen by a filter.
type bulkJobs struct {
	*cli
	confirmation
	all    bool
	dryRun bool
	prefix string
	labels labels

	verb, past string

	// do does it to a job. The condition is for what cannot be taken back: that the job is still what the filter found.
	do func(ctx context.Context, server *client.Client, name string, only client.Condition) (client.Stored, error)
}

// chosenJob is a job that a command is about: by its name, or as a filter found it.
type chosenJob struct {
	name string
	only client.Condition
}

func (b *bulkJobs) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.prefix, "prefix", "", "all jobs whose names begin with `PREFIX`")
	b.labels.flag(cmd, "all jobs with this label, `NAME=VALUE`, more than once or with commas: all must hold")
	cmd.Flags().BoolVar(&b.all, "all", false, "every job")
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "with a filter or --all: only show which they are")
	cmd.Flags().BoolVar(&b.yes, "yes", false, "do not ask first")
}

func (b *bulkJobs) run(ctx context.Context, server *client.Client, names []string) error {
	if err := b.labels.read(); err != nil {
		return err
	}
	filtered := b.prefix != "" || len(b.labels.values) > 0
	switch {
	case len(names) > 0 && (filtered || b.all), filtered && b.all:
		return misused("names, --all and a filter exclude each other")
	case len(names) > 0 && b.dryRun:
		return misused("--dry-run is for --all or a filter")
	case len(names) == 1:
		stored, err := b.do(ctx, server, names[0], client.Condition{})
		if err != nil || stored.Status == nil {
			return err
		}
		return b.showJob(stored)
	case len(names) > 0:
		var jobs []chosenJob
		for _, name := range names {
			jobs = append(jobs, chosenJob{name: name})
		}
		return b.over(ctx, server, jobs)
	case !filtered && !b.all:
		return misused("want names of jobs, or a filter such as --label, or --all")
	}
	if !b.dryRun {
		if err := b.needed(b.cli, b.verb+" over a filter"); err != nil {
			return err
		}
	}
	var jobs []chosenJob
	for j, err := range server.Jobs(ctx, client.JobFilter{Prefix: b.prefix, Labels: b.labels.values}) {
		if err != nil {
			return err
		}
		names = append(names, j.Name)
		jobs = append(jobs, chosenJob{j.Name, client.Unchanged(j)})
	}
	if b.dryRun && b.structured() {
		if names == nil {
			names = []string{}
		}
		return b.print(map[string]any{"count": len(names), "jobs": names})
	}
	switch len(names) {
	case 0:
		fmt.Fprintln(b.messages(), "No job matches.")
		return nil
	case 1:
		fmt.Fprintln(b.messages(), "1 job matches.")
	default:
		fmt.Fprintf(b.messages(), "%d jobs match.\n", len(names))
	}
	if b.dryRun || !b.yes {
		for _, name := range names[:min(len(names), fewShown)] {
			fmt.Fprintln(b.messages(), "  "+name)
		}
		if more := len(names) - fewShown; more > 0 {
			fmt.Fprintf(b.messages(), "  and %d more\n", more)
		}
	}
	if b.dryRun {
		return nil
	}
	if err := b.confirm(b.cli, "%s %s", strings.ToUpper(b.verb[:1])+b.verb[1:], countOf(len(names), "job")); err != nil {
		return err
	}
	return b.over(ctx, server, jobs)
}

// atOnce is how many requests about many jobs are under way at once: a server far away answers none of them any sooner, and one
// that is near syncs many together.
const atOnce = 16

// over does it to each job, goes on behind a refusal, and prints the summary.
func (b *bulkJobs) over(ctx context.Context, server *client.Client, jobs []chosenJob) error {
	told := b.progress(b.verb+" jobs", int64(len(jobs)))
	defer told.end()
	verdicts := make([]verdict, len(jobs))
	var group errgroup.Group
	group.SetLimit(atOnce)
	var mu sync.Mutex // of what follows
	var failed error  // what is no verdict on one job, and ends all
	done := 0
	for i, j := range jobs {
		group.Go(func() error {
			mu.Lock()
			over := failed != nil
			mu.Unlock()
			if over {
				return nil
			}
			stored, err := b.do(ctx, server, j.name, j.only)
			mu.Lock()
			defer mu.Unlock()
			v := verdict{JobVerdict: wire.JobVerdict{Name: j.name, Status: 200}, Job: &stored.Job}
			if stored.Status == nil {
				v.Status, v.Job = 204, nil
			}
			if err != nil {
				refused, ok := refusal(err)
				if !ok {
					if failed == nil {
						failed = fmt.Errorf("%s: %w", j.name, err)
					}
					return nil
				}
				told.say("belfry: %s: %s", j.name, refused.Detail)
				v = verdict{JobVerdict: wire.JobVerdict{Name: j.name, Status: refused.Status, Problem: &refused}}
			} else {
				done++
			}
			verdicts[i] = v
			told.add(1)
			return nil
		})
	}
	_ = group.Wait() // every one has told of itself
	told.end()
	if failed != nil {
		return fmt.Errorf("after %s: %w", countOf(done, "job"), failed)
	}
	if b.structured() {
		if err := b.print(verdicts); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(b.stdout, "%s %s\n", countOf(done, "job"), b.past)
	}
	if refused := len(jobs) - done; refused > 0 {
		return fmt.Errorf("%d of %d were not %s", refused, len(jobs), b.past)
	}
	return nil
}

func (c *cli) jobDelete() *cobra.Command {
	b := &bulkJobs{cli: c, verb: "delete", past: "deleted", do: func(ctx context.Context, server *client.Client, name string, only client.Condition) (client.Stored, error) {
		return client.Stored{}, server.DeleteJob(ctx, name, only)
	}}
	cmd := &cobra.Command{
		Use:   "delete [NAME...]",
		Short: "Delete jobs; their ended runs stay until they expire",
		Long: `Delete jobs: those named, or those that match. Nothing of them starts any more: an attempt under way goes on
to its end and is not tried again, and all other runs that have not ended are cancelled. Ended runs stay until they expire.
Over a filter the jobs are counted first, and you are asked; one that was changed since stays, and is named.`,
		Example: `  belfry job delete report
  belfry job delete --label team=billing --dry-run
  belfry job delete --prefix try- --yes`,
		RunE: c.calling(b.run),
	}
	b.flags(cmd)
	return cmd
}

func (c *cli) jobPause() *cobra.Command {
	var reason string
	b := &bulkJobs{cli: c, verb: "pause", past: "paused", do: func(ctx context.Context, server *client.Client, name string, _ client.Condition) (client.Stored, error) {
		return server.PauseJob(ctx, name, reason)
	}}
	cmd := &cobra.Command{
		Use:   "pause [NAME...]",
		Short: "Stop jobs from making runs",
		Long: `Stop jobs from making runs: those named, or those that match. What has started goes on, and fires of the pause are not made up. Over
a filter the jobs are counted first, and you are asked.`,
		Example: `  belfry job pause report --reason "billing is down"
  belfry job pause --label team=billing --reason "billing is down" --yes`,
		RunE: c.calling(b.run),
	}
	b.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for people")
	return cmd
}

func (c *cli) jobResume() *cobra.Command {
	b := &bulkJobs{cli: c, verb: "resume", past: "resumed", do: func(ctx context.Context, server *client.Client, name string, _ client.Condition) (client.Stored, error) {
		return server.ResumeJob(ctx, name)
	}}
	cmd := &cobra.Command{
		Use:   "resume [NAME...]",
		Short: "Let paused jobs make runs again",
		Long:  `Let paused jobs make runs again: those named, or those that match. Over a filter the jobs are counted first, and you are asked.`,
		Example: `  belfry job resume report
  belfry job resume --label team=billing --yes`,
		RunE: c.calling(b.run),
	}
	b.flags(cmd)
	return cmd
}
