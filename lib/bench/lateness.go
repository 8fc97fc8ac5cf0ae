package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Lateness is what fires, and how much of it.
type Lateness struct {
	Rate    int           // fires a second; 0: none of it
	For     time.Duration // how long each kind fires
	Burst   int           // one-offs due in one second; 0: none
	Ahead   time.Duration // between the last request of the burst and its second
	Workers int           // attempts at once
}

// Kinds of what fires at a steady rate.
const (
	OneOffs         = "one-offs, spread over each second"
	SchedulesSpread = "schedules, spread over each second"
	SchedulesAtOnce = "schedules, all on the second"
)

func (l Lateness) check() error {
	switch {
	case l.Rate < 0 || l.Rate > 100_000:
		return invalid.Field("rate", strconv.Itoa(l.Rate), "0 to 100000")
	case l.Burst < 0 || l.Burst > 100_000_000:
		return invalid.Field("burst", strconv.Itoa(l.Burst), "0 to 100000000")
	case l.Rate+l.Burst == 0:
		return invalid.Field("rate", "0", "1 or more, or a burst")
	case l.For < time.Second || l.For > 24*time.Hour:
		return invalid.Field("for", l.For.String(), "1s to 24h")
	case l.Ahead < 0 || l.Ahead > time.Hour:
		return invalid.Field("ahead", l.Ahead.String(), "0s to 1h")
	case l.Workers < 1 || l.Workers > mostWorkers:
		return invalid.Field("workers", strconv.Itoa(l.Workers), fmt.Sprintf("1 to %d", mostWorkers))
	}
	return nil
}

// LatenessReport is what came of it.
type LatenessReport struct {
	Bench   string        `json:"bench"`
	Machine Machine       `json:"machine"`
	Workers int           `json:"workers"`
	Rows    []LatenessRow `json:"rows"`
	Burst   *BurstReport  `json:"burst,omitempty"`
	PeakRSS int64         `json:"peak_rss_bytes,omitempty"`
}

// LatenessRow is one kind of work at a steady rate: its starts minus their nominal times.
type LatenessRow struct {
	Kind    string  `json:"kind"`
	Rate    int     `json:"rate"`
	Seconds float64 `json:"seconds"`
	Runs    int     `json:"runs"` // that were due in this time; each was started once
	Spread
	Synced Synced `json:"synced"`
}

// Run measures it.
func (l Lateness) Run(ctx context.Context, h Host) (report LatenessReport, err error) {
	if err := l.check(); err != nil {
		return report, err
	}
	report = LatenessReport{Bench: "lateness", Machine: MachineOf(h.Folder, h.Version), Workers: l.Workers, Rows: []LatenessRow{}}
	err = h.in(func() error {
		if l.Rate > 0 {
			for i, kind := range []string{OneOffs, SchedulesSpread, SchedulesAtOnce} {
				row, err := l.steady(ctx, h, "steady-"+strconv.Itoa(i), kind)
				if err != nil {
					return fmt.Errorf("%s: %w", kind, err)
				}
				report.Rows = append(report.Rows, row)
			}
		}
		if l.Burst > 0 {
			burst, err := l.burst(ctx, h)
			if err != nil {
				return fmt.Errorf("burst: %w", err)
			}
			report.Burst = &burst
		}
		_, report.PeakRSS = resident()
		return nil
	})
	return report, err
}

const lateJob = "late"

// settling is how long what was set up may have its own effects before times count.
const settling = 3 * time.Second

// starts collects the starts of what was due in a span of time, once each.
type starts struct {
	now      func() time.Time
	from, to time.Time // set before anything is due
	add      func(int)

	mu   sync.Mutex
	late []time.Duration
	all  chan struct{} // closed when as many were started as are wanted
	want int
}

func (s *starts) start(_ context.Context, call target.Call) (target.Result, error) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.Nominal.Before(s.from) || !call.Nominal.Before(s.to) || call.Attempt > 1 {
		return target.Result{}, nil
	}
	s.late = append(s.late, now.Sub(call.Nominal))
	s.add(1)
	if len(s.late) == s.want {
		close(s.all)
	}
	return target.Result{}, nil
}

// span is set before the first of it can be due.
func (s *starts) span(from time.Time, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from, s.to = from, from.Add(length)
}

// steady has one kind of work fire for a while, in a scheduler of its own.
func (l Lateness) steady(ctx context.Context, h Host, folder, kind string) (row LatenessRow, err error) {
	seconds := int(l.For / time.Second)
	want := seconds * l.Rate
	add, end := h.Tell(kind, want)
	defer end()
	s := &starts{now: h.Now, add: add, all: make(chan struct{}), want: want}
	handlers := new(target.Registry)
	if err := handlers.Register(lateJob, s.start); err != nil {
		return row, err
	}
	r, err := h.open(ctx, folder, setup{workers: l.Workers, handlers: handlers})
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	r.start(ctx)
	length := time.Duration(seconds) * time.Second
	if kind == OneOffs {
		err = r.put(ctx, lateJob, onDemand(lateJob))
	} else {
		err = r.putSchedules(ctx, l.Rate, kind == SchedulesSpread)
	}
	if err != nil {
		return row, err
	}
	s.span(h.Now().Add(settling+time.Second).Truncate(time.Second), length)
	before := r.mark()
	if kind == OneOffs {
		if err := r.feed(ctx, s.from, seconds, l.Rate); err != nil {
			return row, err
		}
	}
	if err := r.until(ctx, s.to); err != nil {
		return row, err
	}
	patience := time.NewTimer(time.Minute)
	defer patience.Stop()
	select {
	case <-s.all:
	case <-patience.C:
	case <-ctx.Done():
		return row, ctx.Err()
	}
	after := r.mark()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.late) != want {
		return row, fmt.Errorf("%d of %d runs had started a minute after the last was due", len(s.late), want)
	}
	row = LatenessRow{Kind: kind, Rate: l.Rate, Seconds: length.Seconds(), Runs: want, Spread: spreadOf(s.late), Synced: after.synced(before, want)}
	if s.late[0] < 0 {
		return row, fmt.Errorf("a run started %s before its time", -s.late[0])
	}
	return row, nil
}

// putSchedules stores so many jobs that fire each second: together, or one after the other.
func (r *rig) putSchedules(ctx context.Context, n int, spread bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		def := onDemand(lateJob)
		def.Schedule = &schedule.Spec{Every: schedule.Duration(time.Second)}
		if spread {
			def.Schedule.Phase = schedule.Duration((time.Duration(i) * time.Second / time.Duration(n)).Truncate(time.Millisecond))
		}
		group.Go(func() error { return r.put(ctx, "late-"+strconv.Itoa(i), def) })
	}
	return group.Wait()
}

// feed asks for each second's runs two seconds before, while the others run.
func (r *rig) feed(ctx context.Context, from time.Time, seconds, rate int) error {
	for n := range seconds {
		second := from.Add(time.Duration(n) * time.Second)
		asked := make([]control.Asked, rate)
		for i := range asked {
			at := second.Add(time.Duration(i) * time.Second / time.Duration(rate)).Truncate(time.Millisecond)
			asked[i] = control.Asked{Job: lateJob, Request: control.Request{At: &at}}
		}
		if err := r.until(ctx, second.Add(-2*time.Second)); err != nil {
			return err
		}
		if err := r.trigger(ctx, tenant, asked); err != nil {
			return err
		}
	}
	return nil
}

// until waits for an instant.
func (r *rig) until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(at.Sub(r.host.Now()))
	defer timer.Stop()
	return r.wait(ctx, timer.C)
}
