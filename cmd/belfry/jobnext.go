package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// idleNotes say why a job makes no runs by itself.
var idleNotes = map[string]string{
	"paused":    "the job is paused: this is what it would do",
	"on_demand": "the job has no schedule: it runs on demand",
	"faulty":    "the schedule cannot be used: belfry job get says why",
	"over":      "the last fire of the schedule is over",
}

func (c *cli) jobNext() *cobra.Command {
	var from string
	var count int
	cmd := &cobra.Command{
		Use:   "next NAME",
		Short: "Show when a job fires next, and what changes of the clock do to that",
		Long: `Show when a job fires next: each fire, the same on the clock of its zone, and what a change of that clock does to it. Whatever zone you
are in, LOCAL is what the job's schedule says.`,
		Example: `  belfry job next report
  belfry job next report --from 2026-03-28 -n 3`,
		Args: cobra.ExactArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			if count < 1 || count > 100 {
				return misused("-n %d: want 1 to 100", count)
			}
			at, err := c.instant("--from", from, c.zone)
			if err != nil {
				return err
			}
			fires, err := server.JobFires(ctx, args[0], at, count)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(fires)
			}
			if note := idleNotes[fires.Idle]; note != "" {
				fmt.Fprintln(c.messages(), note)
			}
			if len(fires.Fires) == 0 {
				return nil
			}
			return list(c, each(fires.Fires), 0, []string{"FIRE", "LOCAL", "NOTE"}, func(f wire.Fire) []string {
				return []string{clock(f.At), f.Local.Format(time.DateTime + " Z07:00"), clockNote(f)}
			})
		}),
	}
	cmd.Flags().StringVar(&from, "from", "", "fires after this `TIME`, as 2026-11-21T09:00:00Z, \"2026-11-21 10:00\" or 2026-11-21; now by default")
	cmd.Flags().IntVarP(&count, "count", "n", 10, "`NUMBER` of fires")
	return cmd
}
