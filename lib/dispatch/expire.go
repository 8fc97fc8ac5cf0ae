package dispatch

import (
	"context"
	"errors"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Expire ends a run whose time to start is over, and has its gate know. A *store.Conflict says that another has started it or ended it.
//
// Durable with the write: its end. A crash behind it leaves whoever waits for its place to the run's message, or to their checks.
func (d *Dispatcher) Expire(ctx context.Context, r run.Run) (run.Run, error) {
	now, err := d.Clock()
	if err != nil {
		return run.Run{}, err
	}
	edition, err := d.EditionOf(ctx, r)
	def := job.Definition{}
	switch {
	case errors.Is(err, job.ErrNotFound): // of a job that was deleted: it ends as any
	case err != nil:
		return run.Run{}, err
	default:
		def = edition.Def
	}
	stood := r
	r.Placed = r.Placed || !def.Overlap.IsZero() // it may have been let in, and never started
	ended, err := d.PutRun(ctx, r.Expire(now, def.Kept()), def.On, now)
	if err != nil || !ended.Placed {
		return ended, err
	}
	if stood.Waits() {
		return ended, d.Left(ctx, stood)
	}
	return ended, d.Left(ctx, ended)
}
