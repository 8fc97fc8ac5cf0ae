package dispatch

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Wakeup is the next timer of a run that has not ended: the regular check, the end of a wait that lies further ahead, or where that comes before, a check
// that finds the time to start, or of a workflow's run all its time, over. It lies beyond reach (Unix ms).
func (d *Dispatcher) Wakeup(ctx context.Context, r run.Run, reach int64) timer.Timer {
	regular := timer.NextCheck(r.Tenant, r.ID, reach)
	if (r.State == run.Retrying || r.State == run.Queued) && r.NextAt > reach {
		regular = timer.NewCheck(r.Tenant, r.ID, r.NextAt)
	}
	if r.State == run.Queued && r.StartBy != 0 {
		if late := timer.NewCheck(r.Tenant, r.ID, max(d.pastEnd(r.StartBy), reach)+1); late.Wake < regular.Wake {
			return late
		}
	}
	if !r.Heads() || r.Cancel {
		return regular
	}
	edition, err := d.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if err != nil {
		return regular // whoever brings the run on tells of it
	}
	w, err := flow.Of(edition)
	if err != nil {
		return regular
	}
	if check, early := d.overdueBefore(r, w, reach+1); early {
		return check
	}
	return regular
}

// over is when the time of a workflow's run is over, Unix ms.
func over(head run.Run, w *flow.Workflow) int64 { return head.Started + w.Timeout.Std().Milliseconds() }

// overdueBefore gives the check that finds the time of a workflow's run over, and whether it comes before the next regular one. It lies at least at
// soonest (Unix ms).
func (d *Dispatcher) overdueBefore(head run.Run, w *flow.Workflow, soonest int64) (check timer.Timer, early bool) {
	check = timer.NewCheck(head.Tenant, head.ID, max(d.pastEnd(over(head, w)), soonest))
	return check, check.Wake < timer.NextCheck(head.Tenant, head.ID, soonest-1).Wake
}

// pastEnd is where a check lies that is to find the time over which ends then, both Unix ms. Ticks come upon a timer as much as their horizon is ahead of
// them: the check lies so much behind that end, or it would find nothing.
func (d *Dispatcher) pastEnd(end int64) int64 { return end + d.Ahead().Milliseconds() }
