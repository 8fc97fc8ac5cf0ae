package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// bulkJobs is a command over jobs that are named or chosen by a filter.
type bulkJobs struct {
	*cli
	confirmation
	all    bool
	dryRun bool
	jobFilter

	verb, past string

	// do does it to one job, and send to many: each as a filter has found it, or as it stands where it was named. do may be nil.
	do   func(ctx context.Context, server *client.Client, name string) (client.Stored, error)
	send func(ctx context.Context, server *client.Client, jobs wire.ChosenJobs) (wire.BulkJobVerdicts, error)
}

// jobFilter is the flags that choose jobs.
type jobFilter struct {
	prefix, part   string
	labels         labels
	paused, active bool
}

func (f *jobFilter) flags(cmd *cobra.Command, which string) {
	cmd.Flags().StringVar(&f.prefix, "prefix", "", which+" jobs whose names begin with `PREFIX`")
	cmd.Flags().StringVar(&f.part, "contains", "", which+" jobs whose names have this `PART`, in any letter case")
	f.labels.flag(cmd, which+" jobs with this label, `NAME=VALUE`, more than once or with commas: all must hold")
	cmd.Flags().BoolVar(&f.paused, "paused", false, which+" jobs that are paused")
	cmd.Flags().BoolVar(&f.active, "active", false, which+" jobs that are not paused")
}

// filter reads the flags, and tells whether any was given.
func (f *jobFilter) filter() (chosen client.JobFilter, given bool, err error) {
	if err := f.labels.read(); err != nil {
		return chosen, false, err
	}
	if f.paused && f.active {
		return chosen, false, misused("--paused and --active exclude each other")
	}
	chosen = client.JobFilter{Prefix: f.prefix, Contains: f.part, Labels: f.labels.values}
	if f.paused || f.active {
		chosen.Paused = &f.paused
	}
	return chosen, f.prefix != "" || f.part != "" || len(f.labels.values) > 0 || chosen.Paused != nil, nil
}

func (b *bulkJobs) flags(cmd *cobra.Command) {
	b.jobFilter.flags(cmd, "all")
	cmd.Flags().BoolVar(&b.all, "all", false, "every job")
	cmd.Flags().BoolVar(&b.dryRun, "dry-run", false, "with a filter or --all: only show which they are")
	cmd.Flags().BoolVar(&b.yes, "yes", false, "do not ask first")
}

func (b *bulkJobs) run(ctx context.Context, server *client.Client, names []string) error {
	filter, filtered, err := b.filter()
	if err != nil {
		return err
	}
	switch {
	case len(names) > 0 && (filtered || b.all), filtered && b.all:
		return misused("names, --all and a filter exclude each other")
	case len(names) > 0 && b.dryRun:
		return misused("--dry-run is for --all or a filter")
	case len(names) == 1 && b.do != nil:
		stored, err := b.do(ctx, server, names[0])
		if err != nil || stored.Status == nil {
			return err
		}
		return b.showJob(stored)
	case len(names) > 0:
		var jobs []wire.SeenJob
		for _, name := range names {
			if !slices.ContainsFunc(jobs, func(j wire.SeenJob) bool { return j.Name == name }) {
				jobs = append(jobs, wire.SeenJob{Name: name})
			}
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
	var jobs []wire.SeenJob
	for j, err := range server.Jobs(ctx, filter) {
		if err != nil {
			return err
		}
		names = append(names, j.Name)
		jobs = append(jobs, wire.SeenJob{Name: j.Name, ETag: client.Unchanged(j).ETag})
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

// over does it to each job, goes on behind a refusal, and prints the summary.
func (b *bulkJobs) over(ctx context.Context, server *client.Client, jobs []wire.SeenJob) error {
	told := b.progress(b.verb+" jobs", int64(len(jobs)))
	defer told.end()
	var verdicts []wire.JobVerdict
	done, refused := 0, 0
	for left := jobs; len(left) > 0; {
		n := min(len(left), chunkJobs)
		part, err := b.send(ctx, server, wire.ChosenJobs{Jobs: left[:n]})
		if err == nil && len(part.Remaining) >= n {
			err = errors.New("the server came to none of the jobs in its time")
		}
		if err != nil {
			told.end()
			return fmt.Errorf("after %s: %w", countOf(done, "job"), err)
		}
		for _, v := range part.Items {
			if v.Problem == nil {
				done++
				continue
			}
			refused++
			told.say("belfry: %s: %s", v.Name, v.Problem.Summary())
		}
		verdicts = append(verdicts, part.Items...)
		told.add(int64(len(part.Items)))
		left = append(part.Remaining, left[n:]...)
	}
	told.end()
	if b.structured() {
		if err := b.print(verdicts); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(b.stdout, "%s %s\n", countOf(done, "job"), b.past)
	}
	if refused > 0 {
		return fmt.Errorf("%d of %d were not %s", refused, len(jobs), b.past)
	}
	return nil
}

func (c *cli) jobDelete() *cobra.Command {
	b := &bulkJobs{cli: c, verb: "delete", past: "deleted",
		do: func(ctx context.Context, server *client.Client, name string) (client.Stored, error) {
			return client.Stored{}, server.DeleteJob(ctx, name, client.Condition{})
		},
		send: func(ctx context.Context, server *client.Client, jobs wire.ChosenJobs) (wire.BulkJobVerdicts, error) {
			return server.DeleteJobs(ctx, wire.DeleteJobs{ChosenJobs: jobs})
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
	b := &bulkJobs{cli: c, verb: "pause", past: "paused",
		do: func(ctx context.Context, server *client.Client, name string) (client.Stored, error) {
			return server.PauseJob(ctx, name, reason)
		},
		send: func(ctx context.Context, server *client.Client, jobs wire.ChosenJobs) (wire.BulkJobVerdicts, error) {
			return server.PauseJobs(ctx, wire.PauseJobs{ChosenJobs: jobs, Reason: reason})
		}}
	cmd := &cobra.Command{
		Use:   "pause [NAME...]",
		Short: "Stop jobs from making runs",
		Long: `Stop jobs from making runs: those named, or those that match. What has started goes on, and fires of the pause are not made up. Of
several jobs those that are paused already keep the reason that they have. Over a filter the jobs are counted first, and you are asked; one that was
changed since stays, and is named.`,
		Example: `  belfry job pause report --reason "billing is down"
  belfry job pause --label team=billing --reason "billing is down" --yes`,
		RunE: c.calling(b.run),
	}
	b.flags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` for people")
	return cmd
}

func (c *cli) jobResume() *cobra.Command {
	b := &bulkJobs{cli: c, verb: "resume", past: "resumed",
		do: func(ctx context.Context, server *client.Client, name string) (client.Stored, error) {
			return server.ResumeJob(ctx, name)
		},
		send: func(ctx context.Context, server *client.Client, jobs wire.ChosenJobs) (wire.BulkJobVerdicts, error) {
			return server.ResumeJobs(ctx, wire.ResumeJobs{ChosenJobs: jobs})
		}}
	cmd := &cobra.Command{
		Use:   "resume [NAME...]",
		Short: "Let paused jobs make runs again",
		Long: `Let paused jobs make runs again: those named, or those that match. Over a filter the jobs are counted first, and you are asked; one that
was changed since stays, and is named.`,
		Example: `  belfry job resume report
  belfry job resume --label team=billing --yes`,
		RunE: c.calling(b.run),
	}
	b.flags(cmd)
	return cmd
}

func (c *cli) jobLabel() *cobra.Command {
	var set labels
	var remove []string
	b := &bulkJobs{cli: c, verb: "label", past: "labelled", send: func(ctx context.Context, server *client.Client, jobs wire.ChosenJobs) (wire.BulkJobVerdicts, error) {
		return server.LabelJobs(ctx, wire.LabelJobs{ChosenJobs: jobs, Set: set.values, Remove: remove})
	}}
	cmd := &cobra.Command{
		Use:   "label [NAME...]",
		Short: "Give jobs labels, and take others from them",
		Long: `Give jobs labels, and take others from them: jobs that are named, or those that match. Labels that are not named stay, and runs keep
the labels of the definition that they have. Over a filter the jobs are counted first, and you are asked; one that was changed since stays, and is
named.`,
		Example: `  belfry job label report clean-up --set team=billing
  belfry job label --prefix report- --set team=billing,tier=1 --remove old --yes`,
		RunE: c.calling(func(ctx context.Context, server *client.Client, names []string) error {
			if err := set.read(); err != nil {
				return err
			}
			if len(set.values)+len(remove) == 0 {
				return misused("want --set NAME=VALUE, or --remove NAME")
			}
			return b.run(ctx, server, names)
		}),
	}
	b.flags(cmd)
	set.flagNamed(cmd, "set", "the label `NAME=VALUE`, more than once or with commas")
	cmd.Flags().StringSliceVar(&remove, "remove", nil, "no label of this `NAME`, more than once or with commas")
	return cmd
}
