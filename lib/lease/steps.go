package lease

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// The run of a workflow is opened by whoever gets its message, on the server's side: nothing of it is for a worker. Its steps are runs as any
// others, but for two things: before one starts, its run is read, and when one has ended, what waits for it follows before its message goes.

// branch opens the run of a workflow, which may start, and releases its first steps. It gives the run as it stands, to be looked at again, or what
// becomes of the message.
func (o *Offer) branch(ctx context.Context) (*run.Run, verdict) {
	d := o.desk
	now, err := d.Dispatch.Clock()
	if err != nil {
		return nil, shortly
	}
	if wait := o.wait(now); wait > 0 {
		return nil, verdict{again: wait}
	}
	if o.bounded() {
		if passed, v := o.enter(ctx); !passed {
			return nil, v
		}
		if now, err = d.Dispatch.Clock(); err != nil { // the run's own time counts from then
			return nil, shortly
		}
	}
	opened, err := d.Dispatch.Open(ctx, o.run, o.edition, now)
	if conflict := store.AsConflict(err); conflict != nil {
		standing, _, err := run.FromItem(o.run.Tenant, o.run.ID, conflict.Standing)
		if err != nil {
			return nil, d.unwell(ctx, o.run, "read", err)
		}
		return &standing, verdict{}
	}
	if err != nil {
		return nil, d.unwell(ctx, o.run, "open the workflow", err)
	}
	if !o.run.Spared() {
		d.Metrics.Lateness.Observe(time.Duration(now-max(o.run.ID.Nominal, o.run.Wait.LetIn)) * time.Millisecond)
	}
	if err := d.Dispatch.Follow(ctx, opened.Tenant, opened.ID, false); err != nil {
		return nil, d.unwell(ctx, opened, "release the first steps", err)
	}
	return nil, drop
}

// found does for a run that was found ended, or under way as a workflow's, what its writer may have died before.
func found(ctx context.Context, d *dispatch.Dispatcher, r run.Run) error {
	if !r.Heads() && !(r.ID.IsStep() && r.State.Ended()) {
		return left(ctx, d, r)
	}
	err := d.Follow(ctx, r.Tenant, r.ID, true)
	if err != nil {
		d.Log.WarnContext(ctx, "what follows in a workflow's run is left to its message, or its check", "run", r.ID.String(), "error", err)
	}
	return err
}

// mayStart asks the run that a step is of whether it may start. It gives the run that brings the payload.
func (o *Offer) mayStart(ctx context.Context) (brings run.Run, may bool, err error) {
	if !o.run.ID.IsStep() {
		return o.run, true, nil
	}
	return o.desk.Dispatch.MayStart(ctx, o.run)
}

// stopped is what becomes of the message of a step that may not start.
func (o *Offer) stopped(ctx context.Context, err error) verdict {
	switch {
	case err != nil && ctx.Err() != nil:
		return handBack
	case err != nil:
		return o.desk.unwell(ctx, o.run, "read the run of the step", err)
	}
	return drop
}

// brings gives the run that brings the payload of an attempt: of a step, the run that it is of.
func (r *Remote) brings(ctx context.Context, of run.Run) (run.Run, error) {
	if !of.ID.IsStep() {
		return of, nil
	}
	return r.read(ctx, run.Run{ID: of.ID.Whole(), Tenant: of.Tenant})
}
