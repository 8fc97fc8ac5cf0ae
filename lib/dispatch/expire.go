package dispatch

import (
	"context"
	"errors"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Expire ends a run whose time to start is over, or to wait in line, and has its gate know. A *store.Conflict says that another has started it or ended it.
//
// Durable with the write: its end. A crash behind it leaves whoever waits for its place to the run's message, or to their checks.
func (d *Dispatcher) Expire(ctx context.Context, r run.Run) (run.Run, error) {
	put, err := d.expiring(ctx, r, fronts{})
	if err != nil {
		return run.Run{}, err
	}
	ended, err := d.Do(ctx, put)
	if err != nil {
		return ended, err
	}
	if d.countOutwaited(ended); !ended.Placed {
		return ended, nil
	}
	return ended, d.Left(ctx, asLeft(r, ended))
}

// expireEach is Expire for the runs of a check: their ends in one call of the store, and each gate is told of all that leave it. What fails is left to the next check.
func (d *Dispatcher) expireEach(ctx context.Context, late []run.Run) {
	warn := func(r run.Run, err error) {
		if err != nil && store.AsConflict(err) == nil { // else another has started or ended it
			d.Log.WarnContext(ctx, "a run that is too late is left to its next check", "tenant", r.Tenant, "run", r.ID.String(), "error", err)
		}
	}
	var of []run.Run
	var puts []*Put
	seen := fronts{}
	for _, r := range late {
		put, err := d.expiring(ctx, r, seen)
		if warn(r, err); err == nil {
			of, puts = append(of, r), append(puts, put)
		}
	}
	d.TryEach(ctx, puts)
	var calls []*calling
	for i, put := range puts {
		ended, err := d.Do(ctx, put)
		if warn(of[i], err); err != nil {
			continue
		}
		if d.countOutwaited(ended); !ended.Placed {
			continue
		}
		gone := asLeft(of[i], ended)
		ways, err := d.gatesOf(ctx, gone)
		warn(of[i], err)
		for _, way := range ways {
			at := slices.IndexFunc(calls, func(c *calling) bool {
				return c.at == way && len(c.gone) < lineBatch
			})
			if at < 0 {
				at, calls = len(calls), append(calls, &calling{at: way})
			}
			calls[at].gone = append(calls[at].gone, gone)
		}
	}
	for _, c := range calls {
		warn(c.gone[0], d.call(ctx, c))
	}
}

// expiring prepares the end of a run whose time to start is over, or to wait in line.
func (d *Dispatcher) expiring(ctx context.Context, r run.Run, seen fronts) (*Put, error) {
	now, err := d.Clock()
	if err != nil {
		return nil, err
	}
	edition, err := d.EditionOf(ctx, r)
	def := job.Definition{}
	switch {
	case errors.Is(err, job.ErrNotFound): // of a job that was deleted: it ends as any
		edition = &job.Edition{}
	case err != nil:
		return nil, err
	default:
		def = edition.Def
	}
	r = d.MayHold(ctx, r, edition) // it may have been let in, and never started
	ended := r.Expire(now, def.Kept())
	if r.Outwaited(now) {
		if ended, err = d.outwait(ctx, r, now, def.Kept(), seen); err != nil {
			return nil, err
		}
	}
	return d.Prepare(ctx, ended, def.On, now)
}

// asLeft is a run that has ended without a start as its gates hear of it: as it stood where it waited in line.
func asLeft(stood, ended run.Run) run.Run {
	if stood.Waits() {
		return stood
	}
	return ended
}
