package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
)

var anyMatch control.Match

// BurnDown is how one-off runs are burnt down. All but Mixed, Overlap and Gate are required.
type BurnDown struct {
	Runs    int
	Batch   int  // runs that are inserted at once
	Callers int  // who insert, at once
	Workers int  // attempts at once
	Mixed   bool // insert while the runs are worked on. Else all are inserted before the first starts
	Overlap int  // how many runs may be in progress at once by the gate of their job, at least Workers; 0: there is no gate
	Gate    int  // the limit of a gate that their job names; 0: it names none
}

func (b BurnDown) check() error {
	for _, f := range []struct {
		name      string
		got, most int
	}{{"runs", b.Runs, 1 << 30}, {"batch", b.Batch, maxBatch}, {"callers", b.Callers, 1000}, {"workers", b.Workers, mostWorkers}} {
		if f.got < 1 || f.got > f.most {
			return invalid.Field(f.name, strconv.Itoa(f.got), fmt.Sprintf("1 to %d", f.most))
		}
	}
	if b.Overlap != 0 && (b.Overlap < b.Workers || b.Overlap > job.MaxOverlapLimit) { // with less some would be skipped, and nothing burnt down
		return invalid.Field("overlap", strconv.Itoa(b.Overlap), fmt.Sprintf("0, or at least as many as workers and at most %d", job.MaxOverlapLimit))
	}
	if b.Gate < 0 || b.Gate > gate.MaxLimit {
		return invalid.Field("gate", strconv.Itoa(b.Gate), fmt.Sprintf("0 to %d", gate.MaxLimit))
	}
	return nil
}

// maxBatch is how many runs one request of the API may ask for.
const maxBatch = 1000

// mostWorkers is how many attempts at once a benchmark may want.
const mostWorkers = 10_000

// BurnDownReport is what came of it.
type BurnDownReport struct {
	Bench   string  `json:"bench"`
	Machine Machine `json:"machine"`

	Runs    int  `json:"runs"`
	Batch   int  `json:"batch"`
	Callers int  `json:"callers"`
	Workers int  `json:"workers"`
	Mixed   bool `json:"mixed"`

	InsertSeconds   float64 `json:"insert_seconds"`
	InsertPerSecond float64 `json:"insert_per_second"`
	InsertBatch     Spread  `json:"insert_batch"` // one batch, from the call to its durable answer
	InsertSynced    Synced  `json:"insert_synced"`

	// From the start of ticks and workers until the last run's end is durable; mixed, from the first insert.
	BurnDownSeconds   float64 `json:"burn_down_seconds"`
	BurnDownPerSecond float64 `json:"burn_down_per_second"`
	BurnDownSynced    Synced  `json:"burn_down_synced"`

	TotalSeconds   float64 `json:"total_seconds"`
	TotalPerSecond float64 `json:"total_per_second"`
	TotalSynced    Synced  `json:"total_synced"`

	ReadBack          int     `json:"read_back"` // runs that the listing shows as succeeded
	ReadBackSeconds   float64 `json:"read_back_seconds"`
	ReadBackPerSecond float64 `json:"read_back_per_second"`

	PeakRSS       int64   `json:"peak_rss_bytes,omitempty"`
	Disk          int64   `json:"disk_bytes"` // of the closed folder
	DiskBytesRun  float64 `json:"disk_bytes_per_run"`
	Ceiling       Ceiling `json:"ceiling"`        // of the burn-down; mixed, of all
	InsertCeiling Ceiling `json:"insert_ceiling"` // mixed, none
}

// Ceiling is what Pebble alone makes durable on the same disk, in the same process, with batches as large as the groups that one sync
// served.
type Ceiling struct {
	Writers      int     `json:"writers"`
	OpsPerBatch  int     `json:"ops_per_batch"`
	BytesPerOp   int     `json:"bytes_per_op"`
	OpsPerSecond float64 `json:"ops_per_second"`
	SyncsSecond  float64 `json:"syncs_per_second"`
	RunsSecond   float64 `json:"runs_per_second"` // at the ops that a run took
	Share        float64 `json:"share"`           // of that, which the benchmark reached
}

// ceilingTime is how long each try of the ceiling takes: long enough to be steady, but where the benchmark itself is a trial.
func ceilingTime(total time.Duration) time.Duration {
	return min(max(total/10, 200*time.Millisecond), 2*time.Second)
}

// Run measures it.
func (b BurnDown) Run(ctx context.Context, h Host) (report BurnDownReport, err error) {
	if err := b.check(); err != nil {
		return report, err
	}
	report = BurnDownReport{Bench: "burn-down", Machine: MachineOf(h.Folder, h.Version), Runs: b.Runs, Batch: b.Batch, Callers: b.Callers, Workers: b.Workers, Mixed: b.Mixed}
	err = h.in(func() error {
		if err := b.measure(ctx, h, &report); err != nil {
			return err
		}
		_, report.PeakRSS = resident()
		if report.Disk, err = sizeOf(h.path(burnFolder)); err != nil {
			return err
		}
		report.DiskBytesRun = ratio(float64(report.Disk), float64(b.Runs))
		add, end := h.Tell("measuring what Pebble alone can do", 2*len(ceilingWriters))
		defer end()
		most := ceilingTime(time.Duration(report.TotalSeconds * float64(time.Second)))
		if report.Ceiling, err = h.ceiling(ctx, report.BurnDownSynced, report.BurnDownPerSecond, most, add); err != nil || b.Mixed {
			return err
		}
		report.InsertCeiling, err = h.ceiling(ctx, report.InsertSynced, report.InsertPerSecond, most, add)
		return err
	})
	return report, err
}

const (
	burnFolder = "burn-down"
	burnJob    = "burn-down"
)

func (b BurnDown) measure(ctx context.Context, h Host, report *BurnDownReport) (err error) {
	handlers, err := silent(burnJob)
	if err != nil {
		return err
	}
	r, err := h.open(ctx, burnFolder, setup{workers: b.Workers, room: b.Runs + 1, handlers: handlers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	def := onDemand(burnJob)
	if b.Overlap > 0 {
		def.Overlap = job.Overlap{Policy: job.OverlapSkip, Limit: b.Overlap}
	}
	if b.Gate > 0 {
		def.Gates = []job.GateUse{{Gate: burnJob}}
		if err := r.limit(ctx, gate.Named{Tenant: tenant, Name: burnJob, Generation: 1, Def: gate.Definition{Limit: b.Gate}}); err != nil {
			return err
		}
	}
	if err := r.put(ctx, burnJob, def); err != nil {
		return err
	}
	begun := r.mark()
	if b.Mixed {
		r.start(ctx)
	}
	var took times
	if err := b.insert(ctx, r, &took); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	inserted := r.mark()
	if !b.Mixed {
		r.start(ctx)
	}
	add, end := h.Tell("running", b.Runs)
	err = r.ended(ctx, 0, b.Runs, add)
	end()
	if err != nil {
		return fmt.Errorf("burn down: %w", err)
	}
	burnt := r.mark()
	if err := r.rest(); err != nil {
		return err
	}
	insert, burn, total := inserted.at-begun.at, burnt.at-inserted.at, burnt.at-begun.at
	report.BurnDownSynced = burnt.synced(inserted, b.Runs)
	if b.Mixed {
		burn, report.BurnDownSynced = total, burnt.synced(begun, b.Runs)
	}
	report.InsertSeconds, report.InsertPerSecond, report.InsertBatch = insert.Seconds(), rate(b.Runs, insert), took.spread()
	report.InsertSynced, report.TotalSynced = inserted.synced(begun, b.Runs), burnt.synced(begun, b.Runs)
	report.BurnDownSeconds, report.BurnDownPerSecond = burn.Seconds(), rate(b.Runs, burn)
	report.TotalSeconds, report.TotalPerSecond = total.Seconds(), rate(b.Runs, total)
	return b.readBack(ctx, r, report)
}

// insert asks for all runs, in batches. Each carries a number, as a real one carries an argument.
func (b BurnDown) insert(ctx context.Context, r *rig, took *times) error {
	add, end := r.host.Tell("inserting", b.Runs)
	defer end()
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range b.Callers {
		group.Go(func() error {
			for {
				first := int(next.Add(int64(b.Batch))) - b.Batch
				if first >= b.Runs {
					return nil
				}
				asked := make([]control.Asked, min(b.Batch, b.Runs-first))
				for i := range asked {
					asked[i] = control.Asked{Job: burnJob, Request: control.Request{Payload: payload(first + i)}}
				}
				began := r.host.Elapsed()
				if err := r.trigger(ctx, tenant, asked); err != nil {
					return err
				}
				took.add(r.host.Elapsed() - began)
				add(len(asked))
			}
		})
	}
	return group.Wait()
}

// payload is a run's argument.
func payload(n int) []byte { return fmt.Appendf(nil, `{"number":%d}`, n) }

// readBack counts what the listing of the job's runs shows as succeeded.
func (b BurnDown) readBack(ctx context.Context, r *rig, report *BurnDownReport) error {
	add, end := r.host.Tell("reading back", b.Runs)
	defer end()
	began := r.host.Elapsed()
	for cursor := ""; ; {
		page, next, err := r.node.Control.Runs(ctx, tenant, control.RunFilter{Job: burnJob, States: []run.State{run.Succeeded}}, cursor, control.MaxLimit)
		if err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		report.ReadBack += len(page)
		add(len(page))
		if cursor = next; cursor == "" {
			break
		}
	}
	took := r.host.Elapsed() - began
	report.ReadBackSeconds, report.ReadBackPerSecond = took.Seconds(), rate(b.Runs, took)
	if report.ReadBack != b.Runs {
		return fmt.Errorf("the listing shows %d of %d runs as succeeded", report.ReadBack, b.Runs)
	}
	return nil
}

// ceilingWriters are the numbers of writers that are tried, of which the best counts.
var ceilingWriters = []int{1, 2, 4}

// ceiling measures what Pebble does with groups as large as they were in a part of the benchmark.
func (h Host) ceiling(ctx context.Context, s Synced, runsPerSecond float64, most time.Duration, add func(int)) (best Ceiling, err error) {
	for _, writers := range ceilingWriters {
		load := pebble.Load{Writers: writers, Ops: max(1, int(s.PerSync)), Bytes: max(64, int(ratio(float64(s.Bytes), float64(s.Ops))))}
		folder := h.path("ceiling")
		ops, took, disk, err := pebble.Ceiling(ctx, folder, load, most, h.Elapsed)
		if err = errors.Join(err, os.RemoveAll(folder), ctx.Err()); err != nil {
			return best, fmt.Errorf("ceiling: %w", err)
		}
		add(1)
		if perSecond := ratio(float64(ops), took.Seconds()); perSecond > best.OpsPerSecond {
			best = Ceiling{Writers: writers, OpsPerBatch: load.Ops, BytesPerOp: load.Bytes, OpsPerSecond: perSecond, SyncsSecond: ratio(float64(disk.Syncs), took.Seconds())}
		}
	}
	best.RunsSecond = ratio(best.OpsPerSecond, s.PerRun)
	best.Share = ratio(runsPerSecond, best.RunsSecond)
	return best, nil
}
