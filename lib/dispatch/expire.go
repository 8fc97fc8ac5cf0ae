package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Expire ends a run that is run.Run.TooLate at an instant, Unix ms, and waits in no line, and has its gate know. A *store.Conflict says that another has started it or ended it.
//
// Durable with the write: its end. A crash behind it leaves whoever waits for its place to the run's message, or to their checks.
func (d *Dispatcher) Expire(ctx context.Context, r run.Run, now int64) (run.Run, error) {
	r, def, err := d.expires(ctx, r, now)
	if err != nil {
		return run.Run{}, err
	}
	ended, err := d.PutRun(ctx, r.Expire(now, def.Kept()), def.On, now)
	if err != nil || !ended.Placed {
		return ended, err
	}
	return ended, d.Left(ctx, ended)
}

// expireEach is Expire for the runs of a check, wherever they wait: their ends in one call of the store, and each gate is told of all that leave it. What fails is left to the next check.
func (d *Dispatcher) expireEach(ctx context.Context, late []run.Run, now int64) {
	warn := func(r run.Run, err error) {
		if err != nil && store.AsConflict(err) == nil { // else another has started or ended it
			d.Log.WarnContext(ctx, "a run that is too late is left to its next check", "tenant", r.Tenant, "run", r.ID.String(), "error", err)
		}
	}
	var of []run.Run
	var puts []*Put
	seen := fronts{}
	for _, r := range late {
		put, err := d.expiring(ctx, r, now, seen)
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

// expiring prepares the end of a run that is too late.
func (d *Dispatcher) expiring(ctx context.Context, r run.Run, now int64, seen fronts) (*Put, error) {
	r, def, err := d.expires(ctx, r, now)
	if err != nil {
		return nil, err
	}
	var ended run.Run
	if !r.Outwaited(now) {
		ended = r.Expire(now, def.Kept())
	} else if ended, err = d.outwait(ctx, r, now, def.Kept(), seen); err != nil {
		return nil, err
	}
	return d.Prepare(ctx, ended, def.On, now)
}

// expires gives a run that is too late as it is to end, and by which definition. By which of its times it ends goes by the instant at which whoever calls found it too late: at another
// one it may be none.
func (d *Dispatcher) expires(ctx context.Context, r run.Run, now int64) (run.Run, job.Definition, error) {
	if !r.TooLate(now) {
		return r, job.Definition{}, fmt.Errorf("run %s is not too late", r.ID)
	}
	edition, err := d.EditionOf(ctx, r)
	if errors.Is(err, job.ErrNotFound) { // of a job that was deleted: it ends as any
		edition, err = &job.Edition{}, nil
	}
	if err != nil {
		return r, job.Definition{}, err
	}
	return d.MayHold(ctx, r, edition), edition.Def, nil // it may have been let in, and never started
}

// asLeft is a run that has ended without a start as its gates hear of it: as it stood where it waited in line.
func asLeft(stood, ended run.Run) run.Run {
	if stood.Waits() {
		return stood
	}
	return ended
}
