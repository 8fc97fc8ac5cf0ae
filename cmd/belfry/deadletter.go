package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) deadLetter() *cobra.Command {
	cmd := &cobra.Command{Use: "dead-letter", Short: "See runs that were given up, run them again or discard them"}
	cmd.AddCommand(c.deadLetterList(), c.deadLetterGroups(), c.deadLetterRedrive(), c.deadLetterDiscard())
	return cmd
}

// deadFilter reads the flags that choose dead letters.
type deadFilter struct {
	window
	wire.DeadFilter
}

func (f *deadFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Job, "job", "", "only of this `JOB`")
	cmd.Flags().StringVar(&f.Error, "error", "", "only those whose last error holds this `TEXT`, in any letter case")
	cmd.Flags().StringVar(&f.Pattern, "pattern", "", "only those whose last error has this `PATTERN`, as belfry dead-letter groups shows it")
	f.window.flags(cmd, "ended")
}

func (f *deadFilter) filter(c *cli) (wire.DeadFilter, error) {
	from, to, err := f.times(c)
	for _, t := range []struct {
		at   time.Time
		into **time.Time
	}{{from, &f.From}, {to, &f.To}} {
		if !t.at.IsZero() {
			*t.into = &t.at
		}
	}
	return f.DeadFilter, err
}

func (c *cli) deadLetterList() *cobra.Command {
	var f deadFilter
	var most int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs that ended dead or failed and were neither redriven nor discarded since",
		Example: `  belfry dead-letter list --job report
  belfry dead-letter list --error "connection refused" --since 2h`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			filter, err := f.filter(c)
			if err != nil {
				return err
			}
			return list(c, server.DeadLetters(ctx, filter), most, []string{"RUN", "STATE", "ENDED", "ERROR"}, func(l wire.DeadLetter) []string {
				return []string{l.ID, l.State, clock(l.EndedAt), l.Error}
			})
		}),
	}
	f.flags(cmd)
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "`NUMBER` of them at most; 0 for all")
	return cmd
}

func (c *cli) deadLetterGroups() *cobra.Command {
	var f deadFilter
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "Group dead letters by what their errors have in common",
		Long: `Group dead letters by what their errors have in common: errors that differ only in numbers, IDs, addresses, times or quoted text are
one group, with # for what differs. The newest 5,000 dead letters are looked at. Give a group's pattern to list or redrive:

  belfry dead-letter redrive --pattern "exit: exit code #"`,
		Example: `  belfry dead-letter groups
  belfry dead-letter groups --job report --since 2h`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			filter, err := f.filter(c)
			if err != nil {
				return err
			}
			groups, err := server.DeadLetterGroups(ctx, filter)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(groups)
			}
			if err := list(c, each(groups.Items), 0, []string{"COUNT", "FIRST", "LAST", "JOBS", "ERROR"}, func(g wire.DeadLetterGroup) []string {
				return []string{fmt.Sprint(g.Count), clock(g.FirstAt), clock(g.LastAt), jobsOf(g), g.Pattern}
			}); err != nil {
				return err
			}
			if groups.MoreGroups > 0 {
				fmt.Fprintf(c.messages(), "%d smaller groups are left out\n", groups.MoreGroups)
			}
			if groups.More {
				fmt.Fprintf(c.messages(), "the newest %d dead letters were looked at, back to %s; there may be older ones: --to\n", groups.LookedAt, c.moment(groups.Since))
			}
			return nil
		}),
	}
	f.flags(cmd)
	return cmd
}

// jobsOf names the first jobs of a group, and how many more there are.
func jobsOf(g wire.DeadLetterGroup) string {
	shown := g.Jobs[:min(len(g.Jobs), 2)]
	text := strings.Join(shown, ", ")
	if more := g.JobCount - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (c *cli) deadLetterRedrive() *cobra.Command {
	var f deadFilter
	b := &bulk{cli: c, verb: "redrive", past: "queued again", what: "dead letter"}
	cmd := &cobra.Command{
		Use:   "redrive [RUN...]",
		Short: "Queue dead letters again: those named, or those that match",
		Long: `Queue dead letters again: those named, or those that match. Over a filter they are counted first, and you are asked. They start
slowly, ten a second unless told otherwise: what failed together may fail together again.`,
		Example: `  belfry dead-letter redrive report~0mi4lf3k0
  belfry dead-letter redrive --job report --error "connection refused" --per-second 2
  belfry dead-letter redrive --all --yes`,
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			filter, err := f.filter(c)
			if err != nil {
				return err
			}
			if err := b.chosen(args, filter != wire.DeadFilter{}); err != nil {
				return err
			}
			before, err := b.endedBefore()
			if err != nil {
				return err
			}
			b.send = func(ctx context.Context, runs []string, cursor string, most int, dry bool) (wire.BulkVerdicts, error) {
				asked := wire.Redrive{Runs: runs, Cursor: cursor, Max: most, DryRun: dry, PerSecond: b.perSecond, EndedBefore: before}
				if runs == nil {
					asked.Matching = &filter
				}
				return server.Redrive(ctx, asked)
			}
			return b.run(ctx, args)
		}),
	}
	f.flags(cmd)
	b.flags(cmd)
	b.starts(cmd)
	return cmd
}

func (c *cli) deadLetterDiscard() *cobra.Command {
	var f deadFilter
	var note string
	b := &bulk{cli: c, verb: "discard", past: "discarded", what: "dead letter"}
	cmd := &cobra.Command{
		Use:   "discard [RUN...]",
		Short: "Settle dead letters without running them again: those named, or those that match",
		Long: `Settle dead letters without running them again: those named, or those that match, also of jobs that were deleted. They are listed as
dead letters no more, and no redrive or retry over a filter takes them. The runs stay as they ended until they expire; "belfry run get"
shows when they were discarded, by whom, and with which note. "belfry run retry RUN" still runs one again.

Over a filter they are counted first, and you are asked.`,
		Example: `  belfry dead-letter discard report~0mi4lf3k0 --note "sent by hand"
  belfry dead-letter discard --job report --error "no such account" --note "accounts were closed"
  belfry dead-letter discard --pattern "exit: exit code #" --dry-run`,
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			filter, err := f.filter(c)
			if err != nil {
				return err
			}
			if err := b.chosen(args, filter != wire.DeadFilter{}); err != nil {
				return err
			}
			b.send = func(ctx context.Context, runs []string, cursor string, most int, dry bool) (wire.BulkVerdicts, error) {
				asked := wire.Discard{Runs: runs, Cursor: cursor, Max: most, DryRun: dry, Note: note}
				if runs == nil {
					asked.Matching = &filter
				}
				return server.Discard(ctx, asked)
			}
			return b.run(ctx, args)
		}),
	}
	f.flags(cmd)
	b.flags(cmd)
	cmd.Flags().StringVar(&note, "note", "", "`TEXT` for people, kept with each run: up to 200 characters")
	return cmd
}
