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

func (c *cli) runs() *cobra.Command {
	cmd := &cobra.Command{Use: "run", Short: "See runs, stop them and run them again"}
	cmd.AddCommand(c.runList(), c.runGet(), c.runCancel(), c.runRetry(), c.runLogs())
	return cmd
}

// window reads --from and --to.
type window struct{ from, to string }

func (w *window) flags(cmd *cobra.Command, of string) {
	cmd.Flags().StringVar(&w.from, "from", "", of+" at this time or later, as 2026-11-21T09:00:00Z")
	cmd.Flags().StringVar(&w.to, "to", "", of+" before this time")
}

func (w *window) times() (from, to time.Time, err error) {
	if from, err = instant("--from", w.from); err != nil {
		return
	}
	to, err = instant("--to", w.to)
	return
}

// instant reads a flag that holds a time, "" as none.
func instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, misused("%s %q: want a time such as 2026-11-21T09:00:00Z", flag, text)
	}
	return t, nil
}

func (c *cli) runList() *cobra.Command {
	var f client.RunFilter
	var w window
	var most int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Example: `  belfry run list --job report -n 10
  belfry run list --state failed,dead --from 2026-11-20T00:00:00Z`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			var err error
			if f.From, f.To, err = w.times(); err != nil {
				return err
			}
			return list(c, server.Runs(ctx, f), most, []string{"RUN", "STATE", "NOMINAL", "STARTED", "TOOK", "ATTEMPT", "WHY"}, func(r wire.Run) []string {
				return []string{r.ID, r.State, clock(r.NominalTime), clock(r.StartedAt), took(r), fmt.Sprint(r.Attempt), short(why(r), 60)}
			})
		}),
	}
	cmd.Flags().StringVar(&f.Job, "job", "", "only of this job")
	cmd.Flags().StringSliceVar(&f.States, "state", nil, "any of these states, with commas")
	w.flags(cmd, "nominal")
	cmd.Flags().IntVarP(&most, "limit", "n", 50, "how many at most; 0 for all")
	return cmd
}

func took(r wire.Run) string {
	if r.StartedAt.IsZero() || r.EndedAt.IsZero() || r.EndedAt.Before(r.StartedAt) {
		return ""
	}
	return r.EndedAt.Sub(r.StartedAt).Round(time.Millisecond).String()
}

// why is the reason of a run's end, or the error of its newest attempt.
func why(r wire.Run) string {
	parts := []string{}
	if r.Reason != "" {
		parts = append(parts, r.Reason)
	}
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Error != "" {
		parts = append(parts, r.Attempts[n-1].Error)
	}
	return strings.Join(parts, ": ")
}

func (c *cli) showRun(r wire.Run) error {
	return show(c, r, func(r wire.Run) [][2]string {
		rows := [][2]string{{"run", r.ID}, {"job", r.Job}, {"state", r.State}, {"reason", r.Reason}, {"trigger", r.Trigger},
			{"nominal", clock(r.NominalTime)}, {"created", clock(r.CreatedAt)}, {"started", clock(r.StartedAt)}, {"ended", clock(r.EndedAt)},
			{"took", took(r)}, {"next attempt", clock(r.NextAttemptAt)}, {"worker", r.Worker}, {"fence", fmt.Sprint(r.Fence)}}
		for _, a := range r.Attempts {
			rows = append(rows, [2]string{fmt.Sprintf("attempt %d", a.Attempt), strings.TrimSpace(clock(a.StartedAt) + " " + a.Outcome + " " + a.Error)})
		}
		if r.Skipped != nil {
			rows = append(rows, [2]string{"skipped", fmt.Sprintf("%d fires, up to %s", r.Skipped.Count, clock(r.Skipped.Through))})
		}
		return append(rows, [2]string{"result", short(string(r.Result), 200)})
	})
}

func (c *cli) runGet() *cobra.Command {
	return &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run with its attempts and its result",
		Args:  cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			r, err := server.Run(ctx, args[0])
			if err != nil {
				return err
			}
			return c.showRun(r)
		}),
	}
}

func (c *cli) runCancel() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run that has not ended; one that is running is told to stop",
		Args:  cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			r, err := server.Cancel(ctx, args[0], reason)
			if err != nil {
				return err
			}
			return c.showRun(r)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "for people")
	return cmd
}

func (c *cli) runRetry() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "retry RUN",
		Short: "Run an ended run again, with a new attempt budget",
		Args:  cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			r, err := server.Retry(ctx, args[0], force)
			if err != nil {
				return err
			}
			return c.showRun(r)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "also a run that succeeded or whose outcome is unknown: its effect may then happen twice")
	return cmd
}

func (c *cli) runLogs() *cobra.Command {
	return &cobra.Command{
		Use:   "logs RUN",
		Short: "Print what the newest attempt wrote",
		Args:  cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			text, err := server.Logs(ctx, args[0])
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(map[string]string{"run": args[0], "log": string(text)})
			}
			_, err = c.stdout.Write(text)
			return err
		}),
	}
}
