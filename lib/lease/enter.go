package lease

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A run whose job bounds how many are in progress enters its gate when it is due and before its start is written: only then is it known whether
// there is room. Where others overtake the start, it enters anew. Where there is none it may wait in line: then its message is dropped, and whoever
// makes room for it sends another.

// bounded tells whether the run has to enter gates before it is started: its definition has it pass any, and it has had
// no attempt in this opening. Who has had one holds its place until it has ended.
func (o *Offer) bounded() bool {
	return o.run.Gated(&o.edition.Def) && o.run.Fence <= o.run.Opening
}

// enter has the run, which is due, pass the gate of its job; else it gives what becomes of the message.
func (o *Offer) enter(ctx context.Context) (passed bool, v verdict) {
	keyed, ok, err := o.desk.Dispatch.Keyed(ctx, o.run, o.edition)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, handBack
	case err != nil:
		return false, o.desk.unwell(ctx, o.run, "tell the key of its gate", err)
	case keyed.State.Ended():
		if left(ctx, o.desk.Dispatch, keyed) != nil {
			return false, shortly // its message finds the end
		}
		return false, drop
	case !ok: // whoever gets the message next reads the run
		return false, handBack
	}
	o.run = keyed
	entrance, err := o.desk.Dispatch.Enter(dispatch.ByMessage(ctx, o.delivery.message.Receipt), o.run, o.due(), o.edition.Def)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, handBack
	case err != nil:
		return false, o.desk.unwell(ctx, o.run, "enter the gate", err)
	}
	switch entrance {
	case dispatch.Passed:
		return true, verdict{}
	case dispatch.Skipped, dispatch.Joined:
		return false, drop
	case dispatch.Contended:
		return false, verdict{again: time.Second + o.desk.jitter()}
	}
	return false, handBack // it stands otherwise: whoever gets the message next reads the run
}

// jitter is up to a second: those that were turned away together come again apart.
func (d *Desk) jitter() time.Duration {
	return time.Duration(d.Dispatch.NewID()%1000) * time.Millisecond
}

// left has whoever waits for the place of a run that has ended let in. A run that had none is in nobody's way; of a step, those behind it wait for its
// end. What fails is left to the run's message, which is to come again, or where there is none, to the checks of those that wait.
func left(ctx context.Context, d *dispatch.Dispatcher, ended run.Run) error {
	if !ended.State.Ended() || !ended.Placed && !ended.Pauses && !ended.ID.IsStep() {
		return nil
	}
	err := d.Left(ctx, ended)
	if err != nil {
		d.Log.WarnContext(ctx, "who waits for a run's end is not let in yet", "run", ended.ID.String(), "error", err)
	}
	return err
}
