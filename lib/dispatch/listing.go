package dispatch

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

const (
	// keepListed is for how long beyond its retention a run stays listed: the retention counts from its end, and it may wait and be
	// tried for long before that. The list outlives most runs by as much, so it is not longer than it must be.
	keepListed = 2 * listedAnew

	// listedAnew is how often a run that has not ended is listed again: a wait for a retry is at the most so long.
	listedAnew = job.MaxRetryWait

	// everyCheck is how far apart the regular checks of such a run are.
	everyCheck = 15 * time.Minute
)

// ListedAnew tells whether a check, which wakes at wake (Unix ms), comes upon a run that is to be listed again: of the regular checks
// of a run that has not ended, one a week. Steps of workflows are in no list.
func ListedAnew(r run.Run, wake int64) bool {
	age := wake - r.ID.Nominal
	return !r.State.Ended() && !r.ID.IsStep() && age >= listedAnew.Milliseconds() && age%listedAnew.Milliseconds() < everyCheck.Milliseconds()
}

// Listing says until when a run is to be listed that has not ended by from (Unix ms): for the retention of the definition that it
// has, or is to have, and so much longer as it may take to end.
func (d *Dispatcher) Listing(ctx context.Context, r run.Run, from int64) (run.Listing, error) {
	retention := job.DefaultRetention
	def, err := d.definition(ctx, r)
	switch {
	case Unreadable(err):
	case err != nil:
		return run.Listing{}, err
	default:
		retention = def.Kept()
	}
	return run.Listing{ID: r.ID, Expires: time.UnixMilli(max(from, r.ID.Nominal)).Add(retention + keepListed)}, nil
}

// ListAgain tells whether a run that is opened again at now may outlive the items that list it, and then how it is to be listed.
func (d *Dispatcher) ListAgain(ctx context.Context, ended, opened run.Run, now int64) (run.Listing, bool, error) {
	before, err := d.Listing(ctx, ended, 0)
	if err != nil {
		return run.Listing{}, false, err
	}
	after, err := d.Listing(ctx, opened, now)
	return after, after.Expires.Sub(before.Expires) > listedAnew, err
}

// listWaiting lists a run that is to wait for a retry for so long that no check looks after it: as one that waits, and anew where it
// will be old by then. By itself, which costs half of what it would in one write with the run, and before it: a crash in between
// leaves an item that names a run too soon, which does no harm.
func (d *Dispatcher) listWaiting(ctx context.Context, r run.Run) error {
	op, err := r.WaitingOp(d.NewID())
	if err != nil {
		return err
	}
	ops := []store.Op{op}
	if r.NextAt-r.ID.Nominal > listedAnew.Milliseconds() {
		listing, err := d.Listing(ctx, r, r.NextAt)
		if err != nil {
			return err
		}
		if op, err = run.IndexAlone(r.Tenant, listing, d.NewID()); err != nil {
			return err
		}
		ops = append(ops, op)
	}
	verdicts, err := d.WriteEach(ctx, ops)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Err != nil {
			return v.Err
		}
	}
	return nil
}

func (d *Dispatcher) definition(ctx context.Context, r run.Run) (job.Definition, error) {
	if r.Generation == 0 || r.State == run.Scheduled {
		j, err := d.Book.Known(ctx, r.Tenant, r.ID.Job, d.Now())
		return j.Def, err
	}
	edition, err := d.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if err != nil {
		return job.Definition{}, err
	}
	return edition.Def, nil
}
