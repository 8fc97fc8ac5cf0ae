package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) deadLetter() *cobra.Command {
	cmd := &cobra.Command{Use: "dead-letter", Short: "See runs that were given up, and run them again"}
	cmd.AddCommand(c.deadLetterList(), c.deadLetterRedrive())
	return cmd
}

// deadFilter reads the flags that choose dead letters.
type deadFilter struct {
	window
	wire.DeadFilter
}

func (f *deadFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Job, "job", "", "only of this job")
	cmd.Flags().StringVar(&f.Error, "error", "", "only those whose last error holds this text")
	f.window.flags(cmd, "ended")
}

func (f *deadFilter) filter() (wire.DeadFilter, error) {
	from, to, err := f.times()
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
		Short: "List runs that ended dead or failed and were not redriven since",
		Args:  cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			return list(c, server.DeadLetters(ctx, filter), most, []string{"RUN", "STATE", "ENDED", "ERROR"}, func(l wire.DeadLetter) []string {
				return []string{l.Run, l.State, clock(l.EndedAt), short(l.Error, 80)}
			})
		}),
	}
	f.flags(cmd)
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "how many at most; 0 for all")
	return cmd
}

func (c *cli) deadLetterRedrive() *cobra.Command {
	var f deadFilter
	var r wire.Redrive
	var all bool
	cmd := &cobra.Command{
		Use:   "redrive [RUN...]",
		Short: "Queue dead letters again: those named, or those that match",
		Example: `  belfry dead-letter redrive report~0mi4lf3k0
  belfry dead-letter redrive --job report --error "connection refused" --per-second 2
  belfry dead-letter redrive --all`,
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			filter, err := f.filter()
			if err != nil {
				return err
			}
			chosen := filter != wire.DeadFilter{}
			switch {
			case len(args) > 0 && (chosen || all), chosen && all:
				return misused("runs, --all and a filter exclude each other")
			case len(args) > 0:
				r.Runs = args
			case chosen || all:
				r.Matching = &filter
			default:
				return misused("want runs, or a filter such as --job, or --all")
			}
			done, err := server.Redrive(ctx, r)
			if err != nil {
				return err
			}
			verdicts := done.Items
			out := newRows(c, []string{"RUN", "RESULT"})
			refused := 0
			for _, v := range verdicts {
				result := "queued"
				if v.Problem != nil {
					refused++
					result = v.Problem.Detail
				}
				if err := out.add(v, []string{v.ID, result}); err != nil {
					return err
				}
			}
			if refused > 0 {
				return endWith(out, fmt.Errorf("%d of %d were not queued", refused, len(verdicts)))
			}
			return out.end()
		}),
	}
	f.flags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters")
	cmd.Flags().IntVar(&r.Max, "max", 0, "with --all or a filter: how many at most")
	cmd.Flags().Float64Var(&r.PerSecond, "per-second", 0, "how fast the runs start; 10 by default")
	return cmd
}
