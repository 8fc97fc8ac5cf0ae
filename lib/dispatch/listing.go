package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// keepListed is for how long beyond its retention a run stays listed: the retention counts from its end, and it may wait and be
// tried for long before that. One that has not ended after half of that time is listed anew by each check.
const keepListed = 60 * 24 * time.Hour

// ListedAnew tells whether a run that has not ended is so old, at an instant (Unix ms), that it must be listed anew.
func ListedAnew(r run.Run, at int64) bool {
	return !r.State.Ended() && at-r.ID.Nominal > keepListed.Milliseconds()/2
}

// Listing says until when a run is to be listed that has not ended by from (Unix ms): for the retention of the definition that it
// has, or is to have, and so much longer as it may take to end.
func (d *Dispatcher) Listing(ctx context.Context, r run.Run, from int64) (run.Listing, error) {
	retention := job.DefaultRetention
	def, err := d.definition(ctx, r)
	switch {
	case errors.Is(err, job.ErrNotFound), errors.Is(err, job.ErrSchedule), errors.Is(err, record.ErrBroken), errors.Is(err, record.ErrNewer):
	case err != nil:
		return run.Listing{}, err
	default:
		retention = def.Retention.Std()
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
	return after, after.Expires.Sub(before.Expires) > keepListed/2, err
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
