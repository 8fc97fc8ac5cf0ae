package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/bench"
)

// benchFlags are those of all benchmarks.
type benchFlags struct {
	data       string
	cpuProfile string
	memProfile string
}

func (b *benchFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&b.data, "data", "", "folder `DIR` on the disk to be measured, empty or absent; what is written there is removed. A temporary one by default")
	f.StringVar(&b.cpuProfile, "cpuprofile", "", "write a profile of the CPU to this new `FILE`, for go tool pprof")
	f.StringVar(&b.memProfile, "memprofile", "", "write a profile of what was allocated to this new `FILE`, for go tool pprof")
}

func (c *cli) bench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast this machine runs jobs",
		Long: `Measure how fast Belfry is on this machine and its disk, in this process, with a scheduler of its own: no server is called, and
none should be running here meanwhile. Every change that is acknowledged is synced, as always. docs/bench.md says what the figures mean.`,
	}
	cmd.AddCommand(c.benchBurnDown(), c.benchInsert(), c.benchLateness(), c.benchScale(), c.benchSoak(), c.benchWorkflow())
	return cmd
}

// measure runs a benchmark, which an interrupt ends, and the loss of its terminal; its folder is gone then. Only SIGKILL leaves it.
func measure[T any](c *cli, ctx context.Context, b benchFlags, run func(context.Context, bench.Host) (T, error)) (report T, err error) {
	ctx, end := interruptible(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer end()
	folder := b.data
	if folder == "" {
		if folder, err = os.MkdirTemp("", "belfry-bench-"); err != nil {
			return report, err
		}
		defer os.RemoveAll(folder)
	}
	ended, err := b.profile()
	if err != nil {
		return report, err
	}
	giveRoom() // as a server has it
	began := time.Now()
	log, err := newLog(c.stderr, "auto", "warn")
	if err != nil {
		return report, err
	}
	report, err = run(ctx, bench.Host{
		Folder: folder, Version: thisBuild().Version, Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: newID, Random: crand.Reader, Log: log,
		Tell: func(what string, total int) (func(int), func()) {
			told := c.progress(what, int64(total))
			return func(n int) { told.add(int64(n)) }, told.end
		},
	})
	err = errors.Join(err, ended())
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return report, exiting(exitInterrupted, errors.New("interrupted; what was written is removed"))
	}
	return report, ofFlags(err, flagOf)
}

// profile begins the profiles that are wanted, and gives what ends them.
func (b benchFlags) profile() (func() error, error) {
	ended := func() error { return nil }
	if b.cpuProfile != "" {
		file, err := newProfile(b.cpuProfile)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		ended = func() error {
			pprof.StopCPUProfile()
			return file.Close()
		}
	}
	return func() error {
		err := ended()
		if b.memProfile == "" {
			return err
		}
		file, failed := newProfile(b.memProfile)
		if failed != nil {
			return errors.Join(err, failed)
		}
		runtime.GC() // or what was freed last would still count as in use
		return errors.Join(err, pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
	}, nil
}

func newProfile(path string) (*os.File, error) {
	return os.OpenFile(filepath.Clean(path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

func (c *cli) benchBurnDown() *cobra.Command {
	var flags benchFlags
	b := bench.BurnDown{Runs: 1_000_000, Batch: 1000, Callers: 4, Workers: 1000}
	cmd := &cobra.Command{
		Use:   "burn-down",
		Short: "Measure how fast a heap of runs is worked off",
		Long: `Measure how fast a heap of one-off runs is worked off, whose Go handler does nothing. All are inserted first, in batches, while nothing
works; then ticks and workers start, and the clock stops when the last run's end is durable. The runs are then read back from the
job's history. With --mixed the runs are worked on while they are inserted.

Beside it stands the ceiling: what the storage engine alone makes durable on the same disk, with batches as large as the groups of
changes that one sync has served.`,
		Example: `  belfry bench burn-down
  belfry bench burn-down --runs 100000 --data /var/lib/bench
  belfry bench burn-down --mixed --workers 50 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := measure(c, cmd.Context(), flags, b.Run)
			if err != nil {
				return err
			}
			return c.showBurnDown(report)
		},
	}
	flags.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&b.Runs, "runs", b.Runs, "`NUMBER` of runs")
	f.IntVar(&b.Batch, "batch", b.Batch, "`NUMBER` of runs that are inserted at once, up to 1000")
	f.IntVar(&b.Callers, "callers", b.Callers, "`NUMBER` of batches that are under way at once")
	f.IntVar(&b.Workers, "workers", b.Workers, "`NUMBER` of attempts at once")
	f.BoolVar(&b.Mixed, "mixed", false, "insert while the runs are worked on")
	return cmd
}

func (c *cli) showBurnDown(r bench.BurnDownReport) error {
	if c.structured() {
		return c.print(r)
	}
	c.showMachine(r.Machine)
	how := "inserted while nothing worked, then worked off"
	if r.Mixed {
		how = "inserted while they were worked off"
	}
	fmt.Fprintf(c.stdout, "%s one-off runs of a handler that does nothing, %s: batches of %d by %d callers, %d attempts at once.\n\n",
		grouped(r.Runs), how, r.Batch, r.Callers, r.Workers)
	out := newRows(c, []string{"PHASE", "RUNS/S", "SECONDS", "SYNCS", "OPS A SYNC", "OPS A RUN", "BYTES A RUN", "CPU A RUN", "CEILING"})
	phase := func(name string, perSecond, seconds float64, s bench.Synced, ceiling bench.Ceiling) error {
		most := ""
		if ceiling.RunsSecond > 0 {
			most = whole(ceiling.RunsSecond) + " runs/s"
		}
		return out.add(nil, []string{name, whole(perSecond), decimals(seconds, 2), grouped(int(s.Syncs)), decimals(s.PerSync, 1), decimals(s.PerRun, 1), whole(s.BytesRun), decimals(s.CPURun, 1) + " µs", most})
	}
	err := errors.Join(
		phase("insert", r.InsertPerSecond, r.InsertSeconds, r.InsertSynced, r.InsertCeiling),
		phase("burn down", r.BurnDownPerSecond, r.BurnDownSeconds, r.BurnDownSynced, r.Ceiling),
		phase("both", r.TotalPerSecond, r.TotalSeconds, r.TotalSynced, bench.Ceiling{}),
		out.add(nil, []string{"read back", whole(r.ReadBackPerSecond), decimals(r.ReadBackSeconds, 2)}),
		out.end(),
	)
	fmt.Fprintf(c.stdout, `
insert     a batch took %s at p50, %s at p99, until it was durable
synced     every acknowledged change: %s ops of the store by %s fdatasyncs
ceiling    Pebble alone: %s ops of %d bytes a second, in batches of %d as the burn-down had them, by %d at once; Belfry reached %.0f%% of it
read back  %s runs are in the history as succeeded
memory     %s at most
disk       %s a run
`, millisText(r.InsertBatch.P50), millisText(r.InsertBatch.P99), grouped(int(r.TotalSynced.Ops)), grouped(int(r.TotalSynced.Syncs)),
		whole(r.Ceiling.OpsPerSecond), r.Ceiling.BytesPerOp, r.Ceiling.OpsPerBatch, r.Ceiling.Writers, 100*r.Ceiling.Share,
		grouped(r.ReadBack), sizeText(r.PeakRSS), sizeText(int64(r.DiskBytesRun)))
	return err
}

func (c *cli) benchInsert() *cobra.Command {
	var flags benchFlags
	i := bench.Insert{For: 5 * time.Second, Batch: 1000}
	cmd := &cobra.Command{
		Use:   "insert",
		Short: "Measure how fast runs are accepted",
		Long: `Measure how fast requests for runs are accepted, while nothing works: in batches, and one at a time by 1, 16 and 64 callers; by calls in
this process, as of a Go program that embeds Belfry, and over HTTP on loopback, by the Go client. A request is answered when
it is durable. The client gives each an idempotency key, which is one more write.`,
		Example: `  belfry bench insert
  belfry bench insert --for 30s --data /var/lib/bench --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := measure(c, cmd.Context(), flags, i.Run)
			if err != nil {
				return err
			}
			return c.showInsert(report)
		},
	}
	flags.flags(cmd)
	cmd.Flags().DurationVar(&i.For, "for", i.For, "how long each way is tried: a `DURATION`")
	cmd.Flags().IntVar(&i.Batch, "batch", i.Batch, "`NUMBER` of runs in a batch, up to 1000")
	return cmd
}

func (c *cli) showInsert(r bench.InsertReport) error {
	if c.structured() {
		return c.print(r)
	}
	c.showMachine(r.Machine)
	fmt.Fprintf(c.stdout, "Runs of one job, due at once, accepted while nothing works. Times are of one call, until its durable answer.\n\n")
	out := newRows(c, []string{"VIA", "CALLERS", "BATCH", "RUNS/S", "P50", "P99", "MAX", "SYNCS", "OPS A SYNC", "OPS A RUN"})
	var all bench.Synced
	for _, row := range r.Rows {
		if err := out.add(nil, []string{row.Via, strconv.Itoa(row.Callers), strconv.Itoa(row.Batch), whole(row.PerSecond), millisText(row.P50), millisText(row.P99), millisText(row.Max),
			grouped(int(row.Synced.Syncs)), decimals(row.Synced.PerSync, 1), decimals(row.Synced.PerRun, 1)}); err != nil {
			return err
		}
		all.Ops, all.Syncs = all.Ops+row.Synced.Ops, all.Syncs+row.Synced.Syncs
	}
	err := out.end()
	fmt.Fprintf(c.stdout, "\nsynced     every acknowledged change: %s ops of the store by %s fdatasyncs\nmemory     %s at most\n", grouped(int(all.Ops)), grouped(int(all.Syncs)), sizeText(r.PeakRSS))
	return err
}

// showMachine tells where the figures are from.
func (c *cli) showMachine(m bench.Machine) {
	cpu := m.CPU
	if cpu == "" {
		cpu = m.System
	}
	fmt.Fprintf(c.stdout, "%s, %d cores, %s, %s, kernel %s\n%s, Belfry %s, data on %s\n", cpu, m.Cores, sizeText(m.Memory), m.System, m.Kernel, m.Go, m.Belfry, m.FileSystem)
	if m.Volatile {
		c.warn("the data lie in memory, where a sync costs nothing and is worth nothing: choose a disk with --data")
	}
}

// grouped is a number with a comma before every three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func whole(v float64) string { return grouped(int(v + 0.5)) }

func decimals(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }

func millisText(ms float64) string {
	if ms < 10 {
		return decimals(ms, 2) + " ms"
	}
	return whole(ms) + " ms"
}
