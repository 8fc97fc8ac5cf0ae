package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

func (c *cli) benchLateness() *cobra.Command {
	var flags benchFlags
	l := bench.Lateness{Rate: 1000, For: time.Minute, Ahead: 65 * time.Second, Workers: 50}
	cmd := &cobra.Command{
		Use:   "lateness",
		Short: "Measure how late runs start",
		Long: `Measure how long after its nominal time a run's handler is called: with --rate fires in each second, as one-offs, as schedules
spread over the second, and as schedules that all fire on the second. One after the other, each for as long as --for says.

With --burst so many one-offs are due within one second, of three priorities and two tenants, one of which has three times as many.
It tells when the last one has ended, and who went first.`,
		Example: `  belfry bench lateness
  belfry bench lateness --rate 200 --for 10s --data /var/lib/bench
  belfry bench lateness --rate 0 --burst 1000000 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := measure(c, cmd.Context(), flags, l.Run)
			if err != nil {
				return err
			}
			return c.showLateness(report)
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&l.Rate, "rate", l.Rate, "`NUMBER` of fires a second; 0 for none of it")
	f.DurationVar(&l.For, "for", l.For, "how long each kind fires: a `DURATION` of whole seconds")
	f.IntVar(&l.Burst, "burst", 0, "`NUMBER` of one-offs that are due in the same second; 0 for none of it")
	f.DurationVar(&l.Ahead, "ahead", l.Ahead, "how long before its second the last of the burst is asked for, a `DURATION`: what is due within a minute goes to the queue at once, and what is due later waits in the store")
	f.IntVar(&l.Workers, "workers", l.Workers, "`NUMBER` of attempts at once")
	return cmd
}

func (c *cli) showLateness(r bench.LatenessReport) error {
	if c.structured() {
		return c.print(r)
	}
	c.showMachine(r.Machine)
	var all bench.Synced
	if len(r.Rows) > 0 {
		fmt.Fprintf(c.stdout, "%d runs a second for %s, %d attempts at once: start minus nominal time.\n\n", r.Rows[0].Rate, time.Duration(r.Rows[0].Seconds*float64(time.Second)), r.Workers)
		out := newRows(c, []string{"KIND", "RUNS", "P50", "P99", "MAX", "SYNCS", "OPS A SYNC", "OPS A RUN"})
		for _, row := range r.Rows {
			if err := out.add(nil, []string{row.Kind, grouped(row.Runs), millisText(row.P50), millisText(row.P99), millisText(row.Max),
				grouped(int(row.Synced.Syncs)), decimals(row.Synced.PerSync, 1), decimals(row.Synced.PerRun, 1)}); err != nil {
				return err
			}
			all.Ops, all.Syncs = all.Ops+row.Synced.Ops, all.Syncs+row.Synced.Syncs
		}
		if err := out.end(); err != nil {
			return err
		}
		fmt.Fprintln(c.stdout)
	}
	if b := r.Burst; b != nil {
		fmt.Fprintf(c.stdout, "%s one-offs due in one second: the last had ended %s s after it began, %s a second. Start minus the time that each was due:\n\n",
			grouped(b.Runs), decimals(b.Seconds, 1), whole(b.PerSecond))
		out := newRows(c, []string{"PRIORITY", "TENANT", "RUNS", "FIRST", "HALF", "LAST", "OF ALL", "OF FIRST TENTH", "OF FIRST HALF"})
		for _, g := range b.Groups {
			if err := out.add(nil, []string{g.Priority, g.Tenant, grouped(g.Runs), millisText(g.First), millisText(g.Half), millisText(g.Last),
				shareText(g.Part), shareText(g.OfTenth), shareText(g.OfHalf)}); err != nil {
				return err
			}
		}
		if err := out.end(); err != nil {
			return err
		}
		all.Ops, all.Syncs = all.Ops+b.Synced.Ops, all.Syncs+b.Synced.Syncs
		fmt.Fprintln(c.stdout)
	}
	fmt.Fprintf(c.stdout, "synced     every acknowledged change: %s ops of the store by %s fdatasyncs\nmemory     %s at most\n", grouped(int(all.Ops)), grouped(int(all.Syncs)), sizeText(r.PeakRSS))
	return nil
}

func shareText(share float64) string { return strconv.FormatFloat(100*share, 'f', 0, 64) + "%" }
