package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Scale is how many schedules a scheduler is to hold, and what is tried with them. All fields but InFlight and Child are required.
type Scale struct {
	Sizes    []int // ascending: at each of them everything is measured
	Due      int   // fires of the tick that is counted, at each size the same
	Ticks    int   // with nothing due
	Edits    int   // and as many listings
	Workers  int   // attempts at once
	InFlight int   // runs that a process is given that is killed: as many as it has workers begin, the others are queued; 0: none is

	// Child gives a command that calls Hold in a process of its own, with a clock so far ahead, and passes on what Hold says.
	Child func(ctx context.Context, folder string, ahead time.Duration) *exec.Cmd
}

func (s Scale) check() error {
	for i, n := range s.Sizes {
		if n < 1 || n > 100_000_000 || i > 0 && n <= s.Sizes[i-1] {
			return invalid.Field("schedules", strconv.Itoa(n), "1 to 100000000, each size larger than the one before")
		}
	}
	switch {
	case len(s.Sizes) == 0:
		return invalid.Missing("schedules", "1 to 100000000")
	case s.Due < 1 || s.Due > 10_000:
		return invalid.Field("due", strconv.Itoa(s.Due), "1 to 10000")
	case s.Ticks < 1:
		return invalid.Field("ticks", strconv.Itoa(s.Ticks), "1 or more")
	case s.Edits < 1:
		return invalid.Field("edits", strconv.Itoa(s.Edits), "1 or more")
	case s.Workers < 1 || s.Workers > mostWorkers:
		return invalid.Field("workers", strconv.Itoa(s.Workers), fmt.Sprintf("1 to %d", mostWorkers))
	case s.InFlight < 0 || s.InFlight > 100_000_000 || s.InFlight > 0 && s.Child == nil:
		return invalid.Field("in-flight", strconv.Itoa(s.InFlight), "0 to 100000000")
	}
	return nil
}

// ScaleReport is what came of it.
type ScaleReport struct {
	Bench   string      `json:"bench"`
	Machine Machine     `json:"machine"`
	Rows    []ScaleRow  `json:"rows"`
	Killed  *KillReport `json:"killed,omitempty"`
	PeakRSS int64       `json:"peak_rss_bytes,omitempty"`
}

// ScaleRow is what was measured at one number of schedules.
type ScaleRow struct {
	Schedules     int     `json:"schedules"`
	LoadSeconds   float64 `json:"load_seconds"` // of those that were added to the size before
	LoadPerSecond float64 `json:"load_per_second"`
	LoadSynced    Synced  `json:"load_synced"`
	RSS           int64   `json:"rss_bytes,omitempty"`
	PeakRSS       int64   `json:"peak_rss_bytes,omitempty"` // up to here
	Disk          int64   `json:"disk_bytes"`               // of the closed store
	DiskSchedule  float64 `json:"disk_bytes_per_schedule"`

	TickIdle      Spread `json:"tick_idle"` // with nothing due
	TickIdleCalls Calls  `json:"tick_idle_calls"`

	Due          int     `json:"due"`
	TickDue      float64 `json:"tick_due_ms"` // until all that is due has been claimed and sent
	TickDueCalls Calls   `json:"tick_due_calls"`

	Edits      Spread  `json:"edits"`
	ListJobs   Spread  `json:"list_jobs"`   // pages of 50, one after the other
	ListPrefix Spread  `json:"list_prefix"` // jobs by the beginning of their names
	Restart    float64 `json:"restart_ms"`  // from opening the closed store to the first tick
}

// KillReport is a start behind a kill -9. The system's cache outlives the process: what the start reads is mostly in memory.
type KillReport struct {
	InFlight    int     `json:"in_flight"` // of which Begun had begun, each with its start durable; the others were queued
	Begun       int     `json:"begun"`
	Restart     float64 `json:"restart_ms"`
	Resumed     int     `json:"resumed"` // of all of them, how many have succeeded since
	ResumeTook  float64 `json:"resume_seconds"`
	ResumeSpeed float64 `json:"resume_per_second"`
}

// Run measures it.
func (s Scale) Run(ctx context.Context, h Host) (report ScaleReport, err error) {
	if err := errors.Join(h.check(), s.check()); err != nil {
		return report, err
	}
	report = ScaleReport{Bench: "scale", Machine: MachineOf(h.Folder, h.Version), Rows: []ScaleRow{}}
	clock := &virtual{host: h.Now, began: h.Now()}
	h.Now = clock.now
	err = h.in(func() (err error) {
		m := &scaling{Scale: s, host: h, clock: clock}
		if err := m.open(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.rig.close()) }()
		for _, size := range s.Sizes {
			row, err := m.measure(ctx, size)
			if err != nil {
				return fmt.Errorf("%d schedules: %w", size, err)
			}
			report.Rows = append(report.Rows, row)
		}
		if s.InFlight > 0 {
			killed, err := m.kill(ctx)
			if err != nil {
				return fmt.Errorf("kill: %w", err)
			}
			report.Killed = &killed
		}
		_, report.PeakRSS = resident()
		return nil
	})
	return report, err
}

const (
	scaleFolder = "scale"
	scaleJob    = "scale"
)

// virtual is a clock that stands still while a tick is counted, and is set ahead in between: so each size meets the same minutes, and
// nobody waits for them.
type virtual struct {
	host  func() time.Time
	began time.Time

	mu    sync.Mutex
	ahead time.Duration
	stood time.Time // zero: it goes
}

func (v *virtual) now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stood.IsZero() {
		return v.stood
	}
	return v.host().Add(v.ahead)
}

// elapsed is the time since it began, as it tells it: a clock that goes ahead of that would seem stepped.
func (v *virtual) elapsed() time.Duration { return v.now().Sub(v.began) }

// stand has it show an instant until it goes on.
func (v *virtual) stand(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stood = at
}

func (v *virtual) goOn() (ahead time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stood.IsZero() {
		v.ahead = v.stood.Sub(v.host())
		v.stood = time.Time{}
	}
	return v.ahead
}

// scaling is a measurement of scale under way.
type scaling struct {
	Scale
	host   Host
	clock  *virtual
	rig    *rig
	loaded int
	sized  int
}

func (m *scaling) open(ctx context.Context) error {
	handlers, err := silent(scaleJob)
	if err != nil {
		return err
	}
	m.rig, err = m.host.open(ctx, scaleFolder, setup{workers: m.Workers, handlers: handlers, elapsed: m.clock.elapsed})
	return err
}

// restart opens the store again, and tells how long it took until a tick had succeeded.
func (m *scaling) restart(ctx context.Context) (took time.Duration, err error) {
	began := m.host.Elapsed()
	if err := m.open(ctx); err != nil {
		return 0, err
	}
	_, err = m.rig.node.Ticker.Tick(ctx)
	took = m.host.Elapsed() - began
	return took, errors.Join(err, m.rig.node.Ready(ctx))
}

func (m *scaling) measure(ctx context.Context, size int) (row ScaleRow, err error) {
	row.Schedules = size
	if err := m.load(ctx, size, &row); err != nil {
		return row, fmt.Errorf("load: %w", err)
	}
	row.RSS, row.PeakRSS = resident()
	add, end := m.host.Tell(fmt.Sprintf("measuring %d schedules", size), 6)
	defer end()
	for _, part := range []func(context.Context, *ScaleRow) error{m.idle, m.due, m.edits, m.listJobs, m.listPrefix, m.reopen} {
		if err := part(ctx, &row); err != nil {
			return row, err
		}
		add(1)
	}
	return row, nil
}

// nameOf is a schedule's name.
func nameOf(i int) string { return fmt.Sprintf("schedule-%09d", i) }

// definitionOf is a schedule: one of the minutes of half a year, none of which begins before some months are over.
func definitionOf(i int, now time.Time) job.Definition {
	def := onDemand(scaleJob)
	def.Schedule = &schedule.Spec{Cron: fmt.Sprintf("%d %d %d %d *", i%60, i/60%24, 1+i/1440%28, 1+(int(now.Month())+2+i/40320%6)%12)}
	return def
}

func (m *scaling) load(ctx context.Context, size int, row *ScaleRow) error {
	first, n := m.loaded, size-m.loaded
	add, end := m.host.Tell(fmt.Sprintf("loading %d schedules", size), n)
	defer end()
	before, now := m.rig.mark(), m.clock.now()
	var next atomic.Int64
	group, loading := errgroup.WithContext(ctx)
	for range batchCallers {
		group.Go(func() error {
			for {
				done := int(next.Add(maxBatch)) - maxBatch
				if done >= n {
					return nil
				}
				wanted := make([]control.Wanted, min(maxBatch, n-done))
				for i := range wanted {
					wanted[i] = control.Wanted{Name: nameOf(first + done + i), Def: definitionOf(first+done+i, now)}
				}
				if err := m.rig.putMany(loading, wanted); err != nil {
					return err
				}
				add(len(wanted))
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	m.loaded = size
	after := m.rig.mark()
	took := after.at - before.at
	row.LoadSeconds, row.LoadPerSecond, row.LoadSynced = took.Seconds(), rate(n, took), after.synced(before, n)
	return nil
}

func (r *rig) putMany(ctx context.Context, wanted []control.Wanted) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, placed := range r.node.Control.PutMany(ctx, tenant, wanted) {
		if placed.Err != nil {
			return placed.Err
		}
	}
	return nil
}

// settle has ticks catch up with the clock.
func (m *scaling) settle(ctx context.Context) error {
	for {
		report, err := m.rig.node.Ticker.Tick(ctx)
		if err != nil || !report.Behind {
			return err
		}
	}
}

// idle ticks once a second, where nothing is due: ten seconds into an hour, more than an hour after whatever was before, so that
// every sweep has looked at it.
func (m *scaling) idle(ctx context.Context, row *ScaleRow) error {
	at := m.clock.now().Add(2 * time.Hour).Truncate(time.Hour).Add(10 * time.Second)
	m.clock.stand(at)
	if err := m.settle(ctx); err != nil {
		return fmt.Errorf("tick: %w", err)
	}
	var took []time.Duration
	before := m.rig.mark()
	for range m.Ticks {
		at = at.Add(time.Second)
		m.clock.stand(at)
		began := m.host.Elapsed()
		if _, err := m.rig.node.Ticker.Tick(ctx); err != nil {
			return fmt.Errorf("tick: %w", err)
		}
		took = append(took, m.host.Elapsed()-began)
	}
	row.TickIdle, row.TickIdleCalls = spreadOf(took), m.rig.mark().calls.Since(before.calls)
	return nil
}

// due counts what a tick asks of the store for a number of fires at one instant, and has their runs run.
func (m *scaling) due(ctx context.Context, row *ScaleRow) error {
	row.Due = m.Due
	at := m.clock.now().Truncate(time.Minute).Add(time.Minute + 10*time.Second)
	m.clock.stand(at)
	if err := m.settle(ctx); err != nil {
		return fmt.Errorf("tick: %w", err)
	}
	fires := at.Add(20 * time.Second).UTC()
	// Each fires once a year: so each claim arms a successor, which no later part comes upon.
	yearly := fmt.Sprintf("%d %d %d %d %d *", fires.Second(), fires.Minute(), fires.Hour(), fires.Day(), fires.Month())
	wanted := make([]control.Wanted, m.Due)
	for i := range wanted {
		def := onDemand(scaleJob)
		def.Schedule = &schedule.Spec{Cron: yearly}
		wanted[i] = control.Wanted{Name: fmt.Sprintf("due-%d-%06d", m.sized, i), Def: def}
	}
	m.sized++
	if err := m.rig.putMany(ctx, wanted); err != nil {
		return err
	}
	m.clock.stand(fires.Add(-time.Second))
	before := m.rig.mark()
	claimed := 0
	for {
		report, err := m.rig.node.Ticker.Tick(ctx)
		if err != nil {
			return fmt.Errorf("tick: %w", err)
		}
		if claimed += report.Claimed; !report.Behind {
			break
		}
	}
	after := m.rig.mark()
	if claimed != m.Due {
		return fmt.Errorf("a tick claimed %d of %d fires", claimed, m.Due)
	}
	row.TickDue, row.TickDueCalls = millis(after.at-before.at), after.calls.Since(before.calls)
	m.clock.stand(fires)
	m.clock.goOn()
	had := m.rig.metrics.Runs.Value("succeeded")
	m.rig.start(ctx)
	return errors.Join(m.rig.ended(ctx, had, m.Due, func(int) {}), m.rig.rest())
}

// scatteredOver is the n-th of some schedules that lie all over them.
func (m *scaling) scatteredOver(n int) int { return int(uint64(n+1) * 2654435761 % uint64(m.loaded)) }

func (m *scaling) timed(ctx context.Context, spread *Spread, do func(n int) error) error {
	var took []time.Duration
	for n := range m.Edits {
		began := m.host.Elapsed()
		if err := errors.Join(ctx.Err(), do(n)); err != nil {
			return err
		}
		took = append(took, m.host.Elapsed()-began)
	}
	*spread = spreadOf(took)
	return nil
}

func (m *scaling) edits(ctx context.Context, row *ScaleRow) error {
	return m.timed(ctx, &row.Edits, func(n int) error {
		i := m.scatteredOver(n)
		def := definitionOf(i, m.clock.now())
		def.Description = fmt.Sprintf("edited among %d, as number %d", row.Schedules, n)
		return m.rig.put(ctx, nameOf(i), def)
	})
}

func (m *scaling) listJobs(ctx context.Context, row *ScaleRow) error {
	cursor := ""
	return m.timed(ctx, &row.ListJobs, func(int) (err error) {
		_, cursor, err = m.rig.node.Control.Jobs(ctx, tenant, control.JobFilter{}, cursor, control.DefaultLimit)
		return err
	})
}

func (m *scaling) listPrefix(ctx context.Context, row *ScaleRow) error {
	return m.timed(ctx, &row.ListPrefix, func(n int) error {
		name := nameOf(m.scatteredOver(n))
		found, _, err := m.rig.node.Control.Jobs(ctx, tenant, control.JobFilter{Prefix: name[:len(name)-1]}, "", control.DefaultLimit)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no job is called %s", name)
		}
		return err
	})
}

func (m *scaling) reopen(ctx context.Context, row *ScaleRow) error {
	closed := m.rig
	m.rig = nil
	if err := closed.close(); err != nil {
		return err
	}
	size, err := sizeOf(closed.folder)
	if err != nil {
		return err
	}
	row.Disk, row.DiskSchedule = size, ratio(float64(size), float64(row.Schedules))
	took, err := m.restart(ctx)
	row.Restart = millis(took)
	return err
}
