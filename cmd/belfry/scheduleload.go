package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) schedule() *cobra.Command {
	cmd := &cobra.Command{Use: "schedule", Short: "See what all jobs have before them"}
	cmd.AddCommand(c.scheduleLoad())
	return cmd
}

func (c *cli) scheduleLoad() *cobra.Command {
	var from, to string
	var step time.Duration
	var everyStep bool
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Count when the runs of all jobs are due, and which jobs make the peak",
		Long: `Count when the runs of all jobs are due, jitter counted in, and which jobs make the peak: by the hour for a week, unless told otherwise. Jobs that are
paused are left out. Steps without any are left out too, unless --all is given.`,
		Example: `  belfry schedule load
  belfry schedule load --from "2026-11-30 09:00" --to "2026-11-30 10:00" --step 1m`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			begin, err := c.instant("--from", from, c.zone)
			if err != nil {
				return err
			}
			end, err := c.instant("--to", to, c.zone)
			if err != nil {
				return err
			}
			load, err := server.ScheduleLoad(ctx, begin, end, step)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(load)
			}
			c.sumUp(load)
			steps := make([]dueStep, len(load.Fires))
			for i, n := range load.Fires {
				steps[i] = dueStep{load.From.Add(time.Duration(i*load.Step) * time.Second), n}
			}
			if !everyStep {
				steps = slices.DeleteFunc(steps, func(s dueStep) bool { return s.fires == 0 })
			}
			most := 1
			if load.Peak != nil {
				most = load.Peak.Fires
			}
			return list(c, each(steps), 0, []string{"FROM", "RUNS", ""}, func(s dueStep) []string {
				return []string{s.at.In(c.zone).Format("Mon " + time.DateTime), strconv.Itoa(s.fires), bar(s.fires, most)}
			})
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "begin at this `TIME`, as 2026-11-21T09:00:00Z, \"2026-11-21 10:00\" or 2026-11-21; now by default")
	cmd.Flags().StringVar(&to, "to", "", "end at this `TIME`; 7 days after the begin by default, at most 31")
	cmd.Flags().DurationVar(&step, "step", 0, "count by so `LONG`, whole minutes; 1m up to 6 hours, else 1h by default")
	cmd.Flags().BoolVar(&everyStep, "all", false, "steps in which nothing is due too")
	return cmd
}

// dueStep is how many runs are due in a step of a load.
type dueStep struct {
	at    time.Time
	fires int
}

// sumUp says what a table of steps does not.
func (c *cli) sumUp(load wire.ScheduleLoad) {
	out := c.messages()
	fmt.Fprintf(out, "%d runs of %d jobs are due", load.Total, load.Jobs)
	if load.Paused > 0 {
		fmt.Fprintf(out, "; %d paused jobs are left out", load.Paused)
	}
	fmt.Fprintln(out)
	if load.CountedTo.Before(load.To) {
		fmt.Fprintf(out, "only up to %s: there are more than 2,000,000 until %s; go on with --from %s\n", c.moment(load.CountedTo), c.moment(load.To), load.CountedTo.Format(time.RFC3339))
	}
	if load.MoreJobs {
		fmt.Fprintln(out, "only of the first 10,000 jobs by name")
	}
	p := load.Peak
	if p == nil {
		return
	}
	fmt.Fprintf(out, "peak: %d from %s on:", p.Fires, c.moment(p.At))
	for i, j := range p.Jobs {
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, " %s %d", j.Job, j.Fires)
	}
	if p.MoreJobs > 0 {
		fmt.Fprintf(out, ", and %d jobs more", p.MoreJobs)
	}
	fmt.Fprintln(out)
	if load.Total > 0 && load.Minutes[0]*4 > load.Total && load.Total > 60 {
		fmt.Fprintf(out, "%d%% of them are due in the first minute of an hour\n", load.Minutes[0]*100/load.Total)
	}
}
