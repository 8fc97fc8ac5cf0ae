package dispatch

import (
	"errors"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// behind is what a timer that owes fires still owes where those up to an instant are dropped; nil for none.
func behind(owed *timer.Timer, s job.Fires, through int64) *timer.Timer {
	if owed == nil || owed.Nominal > through {
		return owed
	}
	next, err := nextAfter(s, through)
	if err != nil || next > owed.Owed {
		return nil
	}
	less := owed.Owing(next, owed.Owed, owed.Wake)
	return &less
}

// beside is the successor on its own way through the steps, where some of its fires are to be claimed now; nil where none are.
func (f *firing) beside() *firing {
	if !f.plan.Beside {
		return nil
	}
	next := f.FireTimer
	next.Timer = *f.plan.Successor
	f.plan.Beside = false
	return &firing{FireTimer: next, tracer: f.tracer, from: next.Timer.Nominal, known: f.plan.Known}
}

// errNoPace says that a timer asks for missed fires, and nobody here gives them places.
var errNoPace = errors.New("missed fires are left to a tick")

// places gives the firing's missed fires their places; nil where it has none, or nobody who gives them. A deleted job's need none: they end at once.
func (f *firing) places(b Bounds) places {
	tenant, name, pace := f.Timer.Tenant, f.Timer.Job, b.Pace
	switch {
	case f.known == 0 && f.Timer.Owed == 0 && !b.late(f.from):
		return nil
	case f.Gone:
		return func(int64, bool) (int64, bool) { return 0, true }
	case pace == nil:
		return nil
	}
	return func(fire int64, first bool) (int64, bool) { return pace.take(missed{tenant, name, fire}, !first) }
}
