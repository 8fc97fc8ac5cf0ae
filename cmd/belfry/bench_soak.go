package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

func (c *cli) benchSoak() *cobra.Command {
	var flags benchFlags
	s := bench.Soak{For: time.Hour, Every: time.Minute, Rate: 1000, Workers: 50, Retention: 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "Measure whether memory, lateness and disk stay as they are",
		Long: `Measure whether anything grows that should not, under steady work for long: half of it one-offs that are asked for two seconds before,
half schedules that fire each second. Every minute it looks at memory, goroutines, the disk, and how late runs have started since. In the
end it tells what the trends are, held against how much single looks scatter.

Then the clock is set ahead until the retention is over, and it is told what the disk holds when all that has expired is deleted.`,
		Example: `  belfry bench soak
  belfry bench soak --for 10m --every 10s --rate 200 --output json
  belfry bench soak --for 8h --rate 2000 --retention 48h --data /var/lib/bench`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := measure(c, cmd.Context(), flags, s.Run)
			if err != nil {
				return err
			}
			return c.showSoak(report)
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&s.For, "for", s.For, "how long: a `DURATION` of whole seconds")
	f.DurationVar(&s.Every, "every", s.Every, "how long between two looks: a `DURATION`")
	f.IntVar(&s.Rate, "rate", s.Rate, "`NUMBER` of runs a second; half of what the machine can do shows most")
	f.IntVar(&s.Workers, "workers", s.Workers, "`NUMBER` of attempts at once")
	f.DurationVar(&s.Retention, "retention", s.Retention, "how long ended runs are kept: a `DURATION`, at least 24h")
	return cmd
}

func (c *cli) showSoak(r bench.SoakReport) error {
	if c.structured() {
		return c.print(r)
	}
	c.showMachine(r.Machine)
	fmt.Fprintf(c.stdout, "%d runs a second for %s, %d attempts at once. Lateness is of what has started since the row before.\n\n",
		r.Rate, time.Duration(r.Seconds*float64(time.Second)), r.Workers)
	out := newRows(c, []string{"AT", "RUNS", "MEMORY", "HEAP", "GOROUTINES", "DISK", "P50", "P99", "MAX"})
	for _, row := range r.Rows {
		if err := out.add(nil, []string{time.Duration(row.Seconds * float64(time.Second)).String(), grouped(row.Runs), sizeText(row.RSS), sizeText(row.Heap),
			strconv.Itoa(row.Goroutines), sizeText(row.Disk), millisText(row.P50), millisText(row.P99), millisText(row.Max)}); err != nil {
			return err
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	t := r.Trends
	bytes := func(v float64) string { return sizeText(int64(v)) }
	fmt.Fprintln(c.stdout, "\nThe trend from the second quarter on, and in brackets what it comes to, beside how much single looks scatter:")
	for _, line := range []struct {
		name, slope string
		trend       bench.Trend
		amount      func(float64) string
	}{
		{"memory", signed(t.RSS.Slope, 1) + " bytes a run", t.RSS, bytes},
		{"heap", signed(t.Heap.Slope, 1) + " bytes a run", t.Heap, bytes},
		{"goroutines", signed(t.Routines.Slope, 1) + " an hour", t.Routines, func(v float64) string { return decimals(v, 1) }},
		{"lateness", signed(t.Lateness.Slope, 2) + " ms an hour, of p99", t.Lateness, millisText},
		{"disk", signed(t.Disk.Slope, 0) + " bytes a run, all of which are kept", t.Disk, bytes},
	} {
		fmt.Fprintf(c.stdout, "%-11s%s: %s\n", line.name, verdictText(line.trend, line.amount), line.slope)
	}
	a := r.Aged
	fmt.Fprintf(c.stdout, `
retention  %s kept for %s would take %s, at the bytes that a run took here
expired    after the retention, by a clock set ahead: %s items deleted, %d runs left; the disk went from %s to %s
synced     every acknowledged change: %s ops of the store by %s fdatasyncs
memory     %s at most
`, whole(float64(r.Rate))+" runs a second", time.Duration(r.Retention*float64(time.Second)), sizeText(a.Bound),
		grouped(a.Deleted), a.RunsLeft, sizeText(a.DiskBefore), sizeText(a.DiskAfter),
		grouped(int(r.Synced.Ops)), grouped(int(r.Synced.Syncs)), sizeText(r.PeakRSS))
	return nil
}

// verdictText is "flat (+1 MB, looks scatter by 3 MB)".
func verdictText(t bench.Trend, amount func(float64) string) string {
	if t.Verdict == bench.Unclear {
		return "too few looks to tell"
	}
	sign := "+"
	if t.Change < 0 {
		sign = "-"
	}
	return fmt.Sprintf("%s (%s%s, looks scatter by %s)", t.Verdict, sign, amount(math.Abs(t.Change)), amount(t.Scatter))
}

func signed(v float64, n int) string {
	text := decimals(v, n)
	if v >= 0 {
		return "+" + text
	}
	return text
}
