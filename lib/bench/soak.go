package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Soak is steady work for long: half of it one-offs, half schedules that fire each second. All fields are required.
type Soak struct {
	For       time.Duration
	Every     time.Duration // between two looks
	Rate      int           // runs a second
	Workers   int           // attempts at once
	Retention time.Duration // of the runs that end
}

// leastLooks are so many that a trend can be told from scatter, the first quarter left out.
const leastLooks = 3

func (s Soak) check() error {
	switch {
	case s.For < leastLooks*time.Second || s.For > 31*24*time.Hour:
		return invalid.Field("for", s.For.String(), "3s to 744h")
	case s.Every < time.Second || s.Every > s.For/leastLooks:
		return invalid.Field("every", s.Every.String(), "1s to a third of --for")
	case s.Rate < 1 || s.Rate > 100_000:
		return invalid.Field("rate", strconv.Itoa(s.Rate), "1 to 100000")
	case s.Workers < 1 || s.Workers > mostWorkers:
		return invalid.Field("workers", strconv.Itoa(s.Workers), fmt.Sprintf("1 to %d", mostWorkers))
	case s.Retention < job.MinRetention || s.Retention > job.MaxRetention:
		return invalid.Field("retention", s.Retention.String(), fmt.Sprintf("%.0fh to %.0fh", job.MinRetention.Hours(), job.MaxRetention.Hours()))
	}
	return nil
}

// SoakReport is what came of it.
type SoakReport struct {
	Bench     string     `json:"bench"`
	Machine   Machine    `json:"machine"`
	Rate      int        `json:"rate"`
	Workers   int        `json:"workers"`
	Seconds   float64    `json:"seconds"`
	Retention float64    `json:"retention_seconds"`
	Runs      int        `json:"runs"` // all that were due; each has succeeded
	Rows      []SoakRow  `json:"rows"`
	Synced    Synced     `json:"synced"`
	Trends    SoakTrends `json:"trends"`
	Aged      Aged       `json:"aged"`
	PeakRSS   int64      `json:"peak_rss_bytes,omitempty"`
}

// SoakRow is one look: its spread is of the starts since the look before.
type SoakRow struct {
	Seconds float64 `json:"seconds"` // since the first run was due
	Runs    int     `json:"runs"`    // that have ended so far
	Spread
	RSS        int64 `json:"rss_bytes,omitempty"`
	Heap       int64 `json:"heap_bytes"` // in use after the last collection
	Goroutines int   `json:"goroutines"`
	Disk       int64 `json:"disk_bytes"`
}

// SoakTrends are lines through all looks but those of the first quarter, in which caches fill.
type SoakTrends struct {
	RSS      Trend `json:"rss_bytes_per_run"`
	Heap     Trend `json:"heap_bytes_per_run"`
	Lateness Trend `json:"p99_ms_per_hour"`
	Disk     Trend `json:"disk_bytes_per_run"`
	Routines Trend `json:"goroutines_per_hour"`
}

// Aged is the same data when the retention is over, by a clock that was set ahead: ticks have swept, and what has expired was
// deleted, as always.
type Aged struct {
	Deleted    int     `json:"deleted_items"`
	RunsLeft   int     `json:"runs_left"` // of the job of one-offs, on the first page of its history
	DiskBefore int64   `json:"disk_before_bytes"`
	DiskAfter  int64   `json:"disk_after_bytes"`
	Seconds    float64 `json:"seconds"`
	Bound      int64   `json:"disk_bound_bytes"` // what this rate takes up to its retention, at the bytes a run took
}

// Run measures it.
func (s Soak) Run(ctx context.Context, h Host) (report SoakReport, err error) {
	if err := errors.Join(h.check(), s.check()); err != nil {
		return report, err
	}
	report = SoakReport{Bench: "soak", Machine: MachineOf(h.Folder, h.Version), Rate: s.Rate, Workers: s.Workers, Seconds: s.For.Truncate(time.Second).Seconds(),
		Retention: s.Retention.Seconds(), Rows: []SoakRow{}}
	clock := &virtual{host: h.Now, began: h.Now()}
	h.Now = clock.now
	err = h.in(func() error {
		m := &soaking{Soak: s, host: h, clock: clock, starts: soakStarts{now: h.Now}}
		if err := m.work(ctx, &report); err != nil {
			return err
		}
		report.Trends = trendsOf(report.Rows)
		if err := m.age(ctx, &report.Aged); err != nil {
			return fmt.Errorf("clean up: %w", err)
		}
		report.Aged.Bound = int64(float64(report.Aged.DiskBefore) / float64(report.Runs) * float64(s.Rate) * s.Retention.Seconds())
		_, report.PeakRSS = resident()
		return nil
	})
	return report, err
}

const soakFolder = "soak"

// soaking is a soak under way.
type soaking struct {
	Soak
	host   Host
	clock  *virtual
	starts soakStarts
}

// soakStarts keeps how late what has started since the last look was, and nothing from before: what the benchmark keeps of an hour
// would look like a leak.
type soakStarts struct {
	now  func() time.Time
	mu   sync.Mutex
	late []time.Duration
}

func (s *soakStarts) start(_ context.Context, call target.Call) (target.Result, error) {
	if call.Attempt == 1 {
		late := s.now().Sub(call.Nominal)
		s.mu.Lock()
		s.late = append(s.late, late)
		s.mu.Unlock()
	}
	return target.Result{}, nil
}

// take gives the spread since it was called last. One below zero is a run that started early.
func (s *soakStarts) take() (Spread, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spread := spreadOf(s.late)
	early := len(s.late) > 0 && s.late[0] < 0 // sorted by now
	s.late = s.late[:0]
	if early {
		return spread, errors.New("a run started before its time")
	}
	return spread, nil
}

func (m *soaking) open(ctx context.Context) (*rig, error) {
	handlers := new(target.Registry)
	if err := handlers.Register(lateJob, m.starts.start); err != nil {
		return nil, err
	}
	return m.host.open(ctx, soakFolder, setup{workers: m.Workers, handlers: handlers, elapsed: m.clock.elapsed})
}

// work has the load run, and looks at it.
func (m *soaking) work(ctx context.Context, report *SoakReport) (err error) {
	r, err := m.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	seconds := int(m.For / time.Second)
	schedules := m.Rate / 2
	def := onDemand(lateJob)
	def.Retention = schedule.Duration(m.Retention)
	if err := r.put(ctx, lateJob, def); err != nil {
		return err
	}
	// Schedules are stored before their first second, of which there may be many.
	from := m.host.Now().Add(settling + time.Duration(schedules)*2*time.Millisecond + time.Second).Truncate(time.Second)
	to := from.Add(time.Duration(seconds) * time.Second)
	if err := r.putBounded(ctx, def, schedules, from, to); err != nil {
		return err
	}
	if late := m.host.Now().Sub(from.Add(-time.Second)); late > 0 {
		return fmt.Errorf("storing %d schedules took %s too long: the machine had other work", schedules, late)
	}
	r.start(ctx)
	report.Runs = seconds * m.Rate
	before := r.mark()
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return r.feed(both, from, seconds, m.Rate-schedules) })
	group.Go(func() error { return m.look(both, r, from, to, report) })
	if err := group.Wait(); err != nil {
		return err
	}
	report.Synced = r.mark().synced(before, report.Runs)
	return r.rest()
}

// putBounded stores so many schedules that fire each second of a span, one after the other. What a machine misses that stands still for seconds is
// made up for: it is late, and not lost.
func (r *rig) putBounded(ctx context.Context, def job.Definition, n int, from, to time.Time) error {
	def.CatchUp.Mode = job.CatchUpAll
	for first := 0; first < n; first += maxBatch {
		wanted := make([]control.Wanted, min(maxBatch, n-first))
		for i := range wanted {
			phase := (time.Duration(first+i) * time.Second / time.Duration(n)).Truncate(time.Millisecond)
			def.Schedule = &schedule.Spec{Every: schedule.Duration(time.Second), Phase: schedule.Duration(phase), Start: &from, End: &to}
			wanted[i] = control.Wanted{Name: "late-" + strconv.Itoa(first+i), Def: def}
		}
		if err := r.putMany(ctx, wanted); err != nil {
			return err
		}
	}
	return nil
}

// look adds a row every so often, and a last one when all runs have ended.
func (m *soaking) look(ctx context.Context, r *rig, from, to time.Time, report *SoakReport) error {
	add, end := m.host.Tell("soaking", report.Runs)
	defer end()
	told := 0
	tell := func() {
		done := int(r.metrics.Runs.Value("succeeded"))
		add(done - told)
		told = done
	}
	for next := from.Add(m.Every); !next.After(to); next = next.Add(m.Every) {
		for at := m.host.Now(); at.Before(next); at = m.host.Now() {
			if err := r.until(ctx, earlier(at.Add(time.Second), next)); err != nil {
				return err
			}
			tell()
		}
		row, err := m.row(r, next.Sub(from))
		if err != nil {
			return err
		}
		report.Rows = append(report.Rows, row)
	}
	tell()
	// What is late is waited for, as long as all of it may take once more: then it is missing.
	patience, stop := context.WithTimeoutCause(ctx, m.For+time.Minute, errors.New("not all runs have ended"))
	defer stop()
	if err := r.ended(patience, uint64(told), report.Runs-told, add); err != nil {
		return errors.Join(err, context.Cause(patience))
	}
	if got := int(r.metrics.Runs.Value("succeeded")); got != report.Runs {
		return fmt.Errorf("%d runs have succeeded, of %d", got, report.Runs)
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (m *soaking) row(r *rig, since time.Duration) (row SoakRow, err error) {
	row = SoakRow{Seconds: since.Seconds(), Runs: int(r.metrics.Runs.Value("succeeded")), Goroutines: runtime.NumGoroutine(), Heap: liveHeap()}
	row.RSS, _ = resident()
	if row.Spread, err = m.starts.take(); err != nil {
		return row, err
	}
	row.Disk, err = sizeOf(r.folder)
	return row, err
}

// liveHeap is what the last collection has left.
func liveHeap() int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(live[0].Value.Uint64())
}

// sweepSlack is more than the last sweep comes behind the clock.
const sweepSlack = 90 * time.Minute

// hurry is how much a tenth of a second is made longer: ticks, one a second, stay well within a lease of each other.
const hurry = time.Second

// age opens the data when the retention is over: the runs cannot be kept for less, and nobody waits a day. The clock is all that
// is set otherwise: ticks pass over the time between and sweep it, and the engine deletes what has expired behind them.
func (m *soaking) age(ctx context.Context, aged *Aged) (err error) {
	began := m.host.Elapsed()
	if aged.DiskBefore, err = sizeOf(m.host.path(soakFolder)); err != nil {
		return err
	}
	m.clock.stand(m.clock.now().Add(m.Retention + 2*sweepSlack))
	m.clock.goOn()
	r, err := m.open(ctx)
	if err != nil {
		return err
	}
	if err := m.clean(ctx, r, aged); err != nil {
		return errors.Join(err, r.close())
	}
	if err := r.close(); err != nil {
		return err
	}
	aged.Seconds = (m.host.Elapsed() - began).Seconds()
	aged.DiskAfter, err = sizeOf(m.host.path(soakFolder))
	return err
}

func (m *soaking) clean(ctx context.Context, r *rig, aged *Aged) error {
	_, end := m.host.Tell("deleting what has expired", 0)
	defer end()
	goal := m.clock.now().Add(-sweepSlack)
	r.start(ctx)
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for r.node.Swept().Before(goal) {
		if err := r.wait(ctx, poll.C); err != nil {
			return err
		}
		// How far sweeps have come over nothing is written with the next lease, for which nobody waits a minute.
		m.clock.stand(m.clock.now().Add(hurry))
		m.clock.goOn()
	}
	var err error
	if aged.Deleted, err = r.data.Expire(ctx); err != nil {
		return err
	}
	left, _, err := r.node.Control.Runs(ctx, tenant, control.RunFilter{Job: lateJob}, "", control.MaxLimit)
	if err != nil {
		return err
	}
	aged.RunsLeft = len(left)
	if err := r.rest(); err != nil { // an idle tick writes, too
		return err
	}
	// Tables give their room back by compactions, which have ended when nothing has changed for a second.
	for size, same := int64(-1), 0; same < 10; {
		if err := r.wait(ctx, poll.C); err != nil {
			return err
		}
		now, err := sizeOf(r.folder)
		if err != nil {
			return err
		}
		if same++; now != size {
			size, same = now, 0
		}
	}
	return nil
}
