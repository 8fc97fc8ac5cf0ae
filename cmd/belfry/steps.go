package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) runSteps() *cobra.Command {
	return &cobra.Command{
		Use:   "steps RUN",
		Short: "List the steps of a workflow's run",
		Long: `List the steps of a workflow's run, in the order of the workflow, with where each stands. A step that waits for others is pending. One
whose rule can no longer be met is skipped, or upstream_failed where that is since another failed.`,
		Example: `  belfry run steps etl~0mi4lf3k0
  belfry run steps etl~0mi4lf3k0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			return list(c, server.Steps(ctx, args[0]), 0, []string{"STEP", "STATE", "ATTEMPTS", "STARTED", "TOOK", "NOTE"}, func(s wire.Step) []string {
				attempts := ""
				if s.Kind == "task" && s.Attempt > 0 {
					attempts = fmt.Sprint(s.Attempt)
				}
				return []string{s.Path, s.State, attempts, c.moment(s.StartedAt), stepTook(s), short(stepNote(s), 80)}
			})
		}),
	}
}

// stepTook is how long the newest attempt took.
func stepTook(s wire.Step) string {
	if s.StartedAt.IsZero() || s.EndedAt.IsZero() {
		return ""
	}
	return s.EndedAt.Sub(s.StartedAt).Round(time.Millisecond).String()
}

// stepNote is the newest error of a step, or the reason of its end.
func stepNote(s wire.Step) string {
	if n := len(s.Attempts); n > 0 && s.Attempts[n-1].Error != "" {
		return s.Attempts[n-1].Error
	}
	return s.Reason
}

func (c *cli) runStep() *cobra.Command {
	return &cobra.Command{
		Use:   "step RUN PATH",
		Short: "Show one step of a workflow's run, with its attempts and its result",
		Long: `Show one step of a workflow's run, by its path: its name, behind those of the scopes around it and slashes. "belfry run logs RUN --step
PATH" prints what it wrote.`,
		Example: `  belfry run step etl~0mi4lf3k0 extract
  belfry run step etl~0mi4lf3k0 parts/index -o json`,
		Args: cobra.ExactArgs(2),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			step, err := server.Step(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return show(c, step, func(s wire.Step) [][2]string {
				rows := [][2]string{{"step", s.Path}, {"kind", s.Kind}, {"state", s.State}, {"reason", s.Reason}, {"target", s.Target},
					{"released", c.moment(s.ReleasedAt)}, {"started", c.moment(s.StartedAt)}, {"ended", c.moment(s.EndedAt)}, {"took", stepTook(s)},
					{"next attempt", c.moment(s.NextAttemptAt)}, {"worker", s.Worker}}
				for _, a := range s.Attempts {
					rows = append(rows, [2]string{fmt.Sprintf("attempt %d", a.Attempt), c.moment(a.StartedAt) + ", " + howItWent(a)})
				}
				rows = append(rows, [2]string{"result", short(string(s.Result), 200)})
				if s.ResultCut {
					rows = append(rows, [2]string{"", cutResult})
				}
				return rows
			})
		}),
	}
}
