package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

func (c *cli) stats() *cobra.Command {
	var last, from, to, step string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count runs by minute or hour: what became of them, how late they started, how long they took",
		Long: `Count the runs that were due in each minute or hour, by what became of them, with how late they started and how long they took. A minute
without runs is left out, and so is a column that is 0 throughout. Percentiles are estimates, from histograms.

Runs are counted 2 minutes after their minute at the earliest, and those that had not ended again 10 minutes, an hour, and 5 to 6 hours after it.
OPEN are those that are still to be looked at, UNENDED those that had not ended within 5 hours and are not looked at again. Minutes are kept for 8 days, hours for 400.`,
		Example: `  belfry stats
  belfry stats --last 24h
  belfry stats --last 7d -o json
  belfry stats --from "2026-11-21 09:00" --to "2026-11-21 10:00" --step 1m`,
		Args: cobra.NoArgs,
		RunE: c.calling(func(ctx context.Context, server *client.Client, _ []string) error {
			if step != "" && step != "1m" && step != "1h" {
				return misused("--step %s: want 1m or 1h", step)
			}
			if last != "" && from != "" {
				return misused("--last and --from exclude each other")
			}
			begin, err := c.instant("--from", from, c.zone)
			if err != nil {
				return err
			}
			end, err := c.instant("--to", to, c.zone)
			if err != nil {
				return err
			}
			if begin.IsZero() {
				d, err := schedule.ParseDuration(cmp.Or(last, "1h"))
				if err != nil {
					return misused("--last: %w", err)
				}
				if begin = c.now().Add(-d.Std()).Truncate(time.Second); !end.IsZero() {
					begin = end.Add(-d.Std())
				}
			}
			found, err := server.Stats(ctx, begin, end, step)
			if err != nil {
				return err
			}
			if c.structured() {
				return c.print(found)
			}
			return c.showStats(found)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&last, "last", "", "`DURATION` of the window up to --to, as 1h, 24h or 7d; 1h by default")
	flags.StringVar(&from, "from", "", "beginning of the window, a `TIME` as 2026-11-21T09:00:00Z, \"2026-11-21 10:00\" or 2026-11-21; instead of --last")
	flags.StringVar(&to, "to", "", "end of the window, a `TIME`; now by default")
	flags.StringVar(&step, "step", "", "`LENGTH` of a point: 1m, for up to 24h, or 1h, for up to 32d; by default 1m up to 6h, else 1h")
	return cmd
}

// outcomes are the columns that are shown where one of their values is not 0.
var outcomes = []struct {
	heading string
	of      func(wire.StatsCounts) int
}{
	{"FAILED", func(n wire.StatsCounts) int { return n.Failed }},
	{"DEAD", func(n wire.StatsCounts) int { return n.Dead }},
	{"UNKNOWN", func(n wire.StatsCounts) int { return n.Unknown }},
	{"CANCELLED", func(n wire.StatsCounts) int { return n.Cancelled }},
	{"SKIPPED", func(n wire.StatsCounts) int { return n.Skipped }},
	{"OPEN", func(n wire.StatsCounts) int { return n.Open }},
	{"UNENDED", func(n wire.StatsCounts) int { return n.Unended }},
	{"RETRIES", func(n wire.StatsCounts) int { return n.Retries }},
}

func (c *cli) showStats(s wire.Stats) error {
	row := func(first string, n wire.StatsCounts) []string {
		cells := []string{first, strconv.Itoa(n.Due), strconv.Itoa(n.Succeeded)}
		for _, o := range outcomes {
			if o.of(s.Totals) != 0 {
				cells = append(cells, strconv.Itoa(o.of(n)))
			}
		}
		for _, h := range []wire.StatsHistogram{n.Lateness, n.Duration} {
			cells = append(cells, estimate(h, h.P50), estimate(h, h.P99))
		}
		return cells
	}
	if len(s.Points) > 0 {
		headings := []string{"FROM", "DUE", "SUCCEEDED"}
		for _, o := range outcomes {
			if o.of(s.Totals) != 0 {
				headings = append(headings, o.heading)
			}
		}
		out := newRows(c, append(headings, "LATE P50", "LATE P99", "TOOK P50", "TOOK P99"))
		for _, p := range s.Points {
			if err := out.add(p, row(p.At.In(c.zone).Format("2006-01-02 15:04 MST"), p.StatsCounts)); err != nil {
				return err
			}
		}
		if err := out.add(s.Totals, row("all", s.Totals)); err != nil {
			return err
		}
		if err := out.end(); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.messages(), "no run is counted between %s and %s\n", c.moment(s.From), c.moment(s.To))
	}
	switch {
	case s.SweptUntil.IsZero():
		fmt.Fprintln(c.messages(), "nothing is counted yet")
	case s.SweptUntil.Before(s.To):
		fmt.Fprintf(c.messages(), "counted up to %s; later minutes follow\n", c.moment(s.SweptUntil))
	}
	return nil
}

// estimate shows a percentile, nothing where nothing was measured.
func estimate(h wire.StatsHistogram, ms float64) string {
	if h.Count == 0 {
		return ""
	}
	return time.Duration(ms * float64(time.Millisecond)).Round(rounding(ms)).String()
}

// rounding is how exactly an estimate is shown, in ms: more would say more than is known.
func rounding(ms float64) time.Duration {
	switch {
	case ms < 10:
		return 100 * time.Microsecond
	case ms < 1000:
		return time.Millisecond
	case ms < 60_000:
		return 100 * time.Millisecond
	}
	return time.Second
}
