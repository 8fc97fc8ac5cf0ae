package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

// usualSizes are those that the largest one is compared with.
var usualSizes = []int{10_000, 1_000_000}

func (c *cli) benchScale() *cobra.Command {
	var flags benchFlags
	s := bench.Scale{Due: 1000, Ticks: 300, Edits: 300, Workers: 1000, InFlight: 100_000}
	most := 1_000_000
	var hold string
	var ahead time.Duration
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure what many schedules cost",
		Long: `Measure what many cron schedules cost: memory and disk, ticks with nothing due, what a tick asks of the store for the same number
due, edits, listings, and a restart. They are loaded by the batch API in this process, and measured at 10,000, at 1,000,000, and at the
number of --schedules.

In the end a process of its own, on the same data, is given --in-flight runs, of which as many begin as --workers says and the others are
queued, and is killed by SIGKILL; then it is told how soon a start behind that ticks, and the runs are run.`,
		Example: `  belfry bench scale
  belfry bench scale --schedules 10000000 --in-flight 1000000 --data /var/lib/bench
  belfry bench scale --workers 10000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if hold != "" {
				flags.data = hold
				_, err := measure(c, cmd.Context(), flags, func(ctx context.Context, h bench.Host) (struct{}, error) {
					return struct{}{}, bench.Hold(ctx, h, s.InFlight, s.Workers, ahead, c.stdin, c.stdout)
				})
				return err
			}
			for _, size := range usualSizes {
				if size < most {
					s.Sizes = append(s.Sizes, size)
				}
			}
			s.Sizes = append(s.Sizes, most)
			program, err := os.Executable()
			if err != nil {
				return err
			}
			s.Child = func(ctx context.Context, folder string, ahead time.Duration) *exec.Cmd {
				return exec.CommandContext(ctx, program, "bench", "scale", "--hold", folder, "--ahead", ahead.String(), "--in-flight", strconv.Itoa(s.InFlight), "--workers", strconv.Itoa(s.Workers))
			}
			report, err := measure(c, cmd.Context(), flags, s.Run)
			if err != nil {
				return err
			}
			return c.showScale(report)
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&most, "schedules", most, "`NUMBER` of cron schedules in the end")
	f.IntVar(&s.Due, "due", s.Due, "`NUMBER` of fires of the tick that is counted")
	f.IntVar(&s.Ticks, "ticks", s.Ticks, "`NUMBER` of ticks with nothing due")
	f.IntVar(&s.Edits, "edits", s.Edits, "`NUMBER` of edits, and of listings of each kind")
	f.IntVar(&s.Workers, "workers", s.Workers, "`NUMBER` of attempts at once, up to 10000")
	f.IntVar(&s.InFlight, "in-flight", s.InFlight, "`NUMBER` of runs, begun or queued, when a process is killed; 0: none is")
	f.StringVar(&hold, "hold", "", "put runs in flight on the data of another `DIR`, and wait to be killed")
	f.DurationVar(&ahead, "ahead", 0, "with --hold: how far the clock is ahead, a `DURATION`")
	for _, own := range []string{"hold", "ahead"} {
		_ = f.MarkHidden(own) // it fails for a flag that is not there
	}
	return cmd
}

func (c *cli) showScale(r bench.ScaleReport) error {
	if c.structured() {
		return c.print(r)
	}
	c.showMachine(r.Machine)
	fmt.Fprintln(c.stdout)
	headings := []string{"SCHEDULES"}
	for _, row := range r.Rows {
		headings = append(headings, grouped(row.Schedules))
	}
	out := newRows(c, headings)
	line := func(name string, value func(bench.ScaleRow) string) error {
		cells := []string{name}
		for _, row := range r.Rows {
			cells = append(cells, value(row))
		}
		return out.add(nil, cells)
	}
	for _, l := range []struct {
		name  string
		value func(bench.ScaleRow) string
	}{
		{"loaded a second", func(r bench.ScaleRow) string { return whole(r.LoadPerSecond) }},
		{"memory", func(r bench.ScaleRow) string { return sizeText(r.RSS) }},
		{"memory at most, so far", func(r bench.ScaleRow) string { return sizeText(r.PeakRSS) }},
		{"disk", func(r bench.ScaleRow) string { return sizeText(r.Disk) }},
		{"disk a schedule", func(r bench.ScaleRow) string { return whole(r.DiskSchedule) + " bytes" }},
		{"tick, nothing due, p50", func(r bench.ScaleRow) string { return millisText(r.TickIdle.P50) }},
		{"tick, nothing due, p99", func(r bench.ScaleRow) string { return millisText(r.TickIdle.P99) }},
		{"items read by all of those", func(r bench.ScaleRow) string { return grouped(int(r.TickIdleCalls.Items)) }},
		{"tick, " + grouped(r.Rows[0].Due) + " due", func(r bench.ScaleRow) string { return millisText(r.TickDue) }},
		{"tick, " + grouped(r.Rows[0].Due) + " due: reads", func(r bench.ScaleRow) string { return grouped(int(r.TickDueCalls.Reads)) }},
		{"tick, " + grouped(r.Rows[0].Due) + " due: items read", func(r bench.ScaleRow) string { return grouped(int(r.TickDueCalls.Items)) }},
		{"tick, " + grouped(r.Rows[0].Due) + " due: writes", func(r bench.ScaleRow) string { return grouped(int(r.TickDueCalls.Writes)) }},
		{"tick, " + grouped(r.Rows[0].Due) + " due: ops in them", func(r bench.ScaleRow) string { return grouped(int(r.TickDueCalls.Ops)) }},
		{"edit, p99", func(r bench.ScaleRow) string { return millisText(r.Edits.P99) }},
		{"page of jobs, p99", func(r bench.ScaleRow) string { return millisText(r.ListJobs.P99) }},
		{"jobs by prefix, p99", func(r bench.ScaleRow) string { return millisText(r.ListPrefix.P99) }},
		{"restart", func(r bench.ScaleRow) string { return millisText(r.Restart) }},
	} {
		if err := line(l.name, l.value); err != nil {
			return err
		}
	}
	if err := out.end(); err != nil {
		return err
	}
	var all bench.Synced
	for _, row := range r.Rows {
		all.Ops, all.Syncs = all.Ops+row.LoadSynced.Ops, all.Syncs+row.LoadSynced.Syncs
	}
	fmt.Fprintf(c.stdout, "\nsynced     every acknowledged schedule: %s ops of the store by %s fdatasyncs\nmemory     %s at most\n", grouped(int(all.Ops)), grouped(int(all.Syncs)), sizeText(r.PeakRSS))
	if k := r.Killed; k != nil {
		fmt.Fprintf(c.stdout, "killed     with %s runs queued, %s begun: the first tick after %s, with the system's cache warm, and all of them had run %s s later, %s a second\n",
			grouped(k.InFlight-k.Begun), grouped(k.Begun), millisText(k.Restart), decimals(k.ResumeTook, 1), whole(k.ResumeSpeed))
	}
	return nil
}
