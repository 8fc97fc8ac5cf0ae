package dispatch

import (
	"context"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Wakeup is the next timer of a run that has not ended: the regular check, the end of a wait that lies further ahead, or where that comes before, a check
// that finds the time to start, or to wait in line, the deadline, or of a workflow's run all its time, over. It lies beyond reach (Unix ms).
func (d *Dispatcher) Wakeup(ctx context.Context, r run.Run, reach int64) timer.Timer {
	return d.wakeup(ctx, r, reach, false).Timer
}

// Unwatched gives the timer that Wakeup tells, for whoever arms it next, and none where the run is quiet and has it already: to look costs less than to arm it in vain, and a run that waits for
// long has little else.
func (d *Dispatcher) Unwatched(ctx context.Context, r run.Run, reach int64) ([]timer.Timer, error) {
	check := d.wakeup(ctx, r, reach, false)
	if check.quiet != 0 {
		items, err := d.Store.Get(ctx, check.Key())
		if err != nil {
			return nil, fmt.Errorf("look for the check of a run that waits: %w", err)
		}
		if items[0].Exists() {
			return nil, nil
		}
		if err := d.listQuiet(ctx, r, check.quiet); err != nil {
			return nil, fmt.Errorf("list a run that waits: %w", err)
		}
	}
	return []timer.Timer{check.Timer}, nil
}

// wakeup is Wakeup, also for who follows the run behind it: what a step that waits is due for needs no check of its own then.
func (d *Dispatcher) wakeup(ctx context.Context, r run.Run, reach int64, followed bool) waking {
	regular := timer.NextCheck(r.Tenant, r.ID, reach)
	if (r.State == run.Retrying || r.State == run.Queued) && r.NextAt > reach {
		regular = timer.NewCheck(r.Tenant, r.ID, r.NextAt)
	}
	sooner := func(end int64) {
		if late := timer.NewCheck(r.Tenant, r.ID, max(d.pastEnd(end), reach)+1); end != 0 && late.Wake < regular.Wake {
			regular = late
		}
	}
	if r.State == run.Queued {
		sooner(r.StartBy)
	}
	if r.Waits() && stoppable(r.Wait.Until, reach) {
		sooner(r.Wait.Until)
	}
	if !r.Cancel && !r.Heads() && r.State != run.Scheduled && stoppable(r.EndBy, reach) {
		sooner(r.EndBy)
	}
	if !r.Heads() || r.Cancel {
		return waking{Timer: regular}
	}
	edition, err := d.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if err != nil {
		return waking{Timer: regular} // whoever brings the run on tells of it
	}
	w, err := flow.Of(edition)
	if err != nil {
		return waking{Timer: regular}
	}
	if check, early := d.overdueBefore(r, w, reach+1); early && check.Wake < regular.Wake {
		regular = check
	}
	if !w.Waits() && !w.Limits() {
		return waking{Timer: regular}
	}
	return d.wakeupOfWaits(ctx, r, w, regular, reach, followed)
}

// over is when the time of a workflow's run is over, Unix ms.
func over(head run.Run, w *flow.Workflow) int64 { return head.Started + w.Timeout.Std().Milliseconds() }

// lasts is until when a workflow's run may last, by its time or by its deadline, Unix ms.
func lasts(head run.Run, w *flow.Workflow) int64 {
	if head.EndBy == 0 {
		return over(head, w)
	}
	return min(over(head, w), head.EndBy)
}

// overdueBefore gives the check that finds the time of a workflow's run, or its deadline, over, and whether it comes before the next regular one. It lies at least at
// soonest (Unix ms).
func (d *Dispatcher) overdueBefore(head run.Run, w *flow.Workflow, soonest int64) (check timer.Timer, early bool) {
	end := lasts(head, w)
	check = timer.NewCheck(head.Tenant, head.ID, max(d.pastEnd(end), soonest))
	return check, stoppable(end, soonest-1) && check.Wake < timer.NextCheck(head.Tenant, head.ID, soonest-1).Wake
}

// stoppable tells whether a run is looked at for its end, Unix ms, ahead of its regular check, which lies beyond reach: what could not be stopped for so long behind that end is looked
// at like any other.
func stoppable(end, reach int64) bool { return end > reach-timer.MaxCheckGap.Milliseconds() }

// pastEnd is where a check lies that is to find the time over which ends then, both Unix ms. Ticks come upon a timer as much as their horizon is ahead of
// them: the check lies so much behind that end, or it would find nothing.
func (d *Dispatcher) pastEnd(end int64) int64 { return end + d.Ahead().Milliseconds() }
