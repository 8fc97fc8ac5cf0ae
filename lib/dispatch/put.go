package dispatch

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// PutRun writes a run as decided, under the version it was decided over, together with what must stand beside it: the listing
// of a dead letter, and the timer of a retry that is further away than a queue can hold a message. It gives the run as
// written, or a *store.Conflict.
func (d *Dispatcher) PutRun(ctx context.Context, r run.Run, now int64) (run.Run, error) {
	id := d.NewID()
	op, err := r.Item(id)
	if err != nil {
		return run.Run{}, err
	}
	ops := []store.Op{op}
	if r.State.DeadLetter() {
		letter, err := r.DeadLetterOp(id)
		if err != nil {
			return run.Run{}, err
		}
		ops = append(ops, letter)
	}
	if WaitsInStore(r, now) {
		check, err := timer.NewCheck(r.Tenant, r.ID, r.NextAt).Put(id)
		if err != nil {
			return run.Run{}, err
		}
		check.If = store.Any // another look at the same instant is as good
		ops = append(ops, check)
		if err := d.listWaiting(ctx, r); err != nil {
			return run.Run{}, err
		}
	}
	versions, err := d.Write(ctx, ops...)
	if err != nil {
		return run.Run{}, err
	}
	r.Version = versions[0]
	return r, nil
}

// WaitsInStore tells whether a run's next try is further away than a queue can hold its message: a timer wakes it then.
func WaitsInStore(r run.Run, now int64) bool {
	return r.State == run.Retrying && time.Duration(r.NextAt-now)*time.Millisecond > queue.MaxDelay
}
