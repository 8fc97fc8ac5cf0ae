package lease

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// A run whose job bounds how many are in progress enters its gate when it is due and before its start is written: only then is it known whether
// there is room. Where others overtake the start, it enters anew.

// bounded tells whether the run has to enter the gate of its job before it is started: its definition bounds how many are in progress, and it has had
// no attempt in this opening. Who has had one holds its place until it has ended.
func (o *Offer) bounded() bool {
	return !o.edition.Def.Overlap.IsZero() && o.run.Fence <= o.run.Opening
}

// enter has the run, which is due, pass the gate of its job; else it gives what becomes of the message.
func (o *Offer) enter(ctx context.Context) (passed bool, v verdict) {
	entrance, err := o.desk.Dispatch.Enter(ctx, o.run, o.edition.Def)
	switch {
	case err != nil && ctx.Err() != nil:
		return false, handBack
	case err != nil:
		return false, o.desk.unwell(ctx, o.run, "enter the gate", err)
	}
	switch entrance {
	case dispatch.Passed:
		return true, verdict{}
	case dispatch.Skipped:
		return false, drop
	case dispatch.NoRoom:
		return false, o.wanted(ctx)
	case dispatch.Contended:
		return false, verdict{again: time.Second + o.desk.jitter()}
	}
	return false, handBack // it stands otherwise: whoever gets the message next reads the run
}

// jitter is up to a second: those that were turned away together come again apart.
func (d *Desk) jitter() time.Duration {
	return time.Duration(d.Dispatch.NewID()%1000) * time.Millisecond
}

const (
	// longestRoom is how long a run that nobody may skip waits at the most before it asks again whether there is room.
	longestRoom = 15 * time.Second

	// askingFor is how old the message of such a run may be. Checks send others meanwhile, and of one that is an hour late they do so whatever the
	// queue's depth: messages do not add up.
	askingFor = time.Hour
)

// wanted is the verdict for a run that found no room and that nobody may skip: it comes again, the later the more often it has. Where its job was
// deleted, it ends.
func (o *Offer) wanted(ctx context.Context) verdict {
	look := &Offer{run: o.run}
	o.desk.look(ctx, o.run.Tenant, look)
	now, err := o.desk.Dispatch.Clock()
	switch {
	case err != nil:
		return shortly
	case look.gone:
		next, _ := o.run.AskCancel(now, dispatch.Deleted, dispatch.Limits(o.edition.Def).Retention)
		_, err := o.desk.Dispatch.PutRun(ctx, next, now)
		switch {
		case err == nil:
			return drop
		case store.AsConflict(err) != nil:
			return handBack
		}
		return o.desk.unwell(ctx, o.run, "end a run of a deleted job", err)
	}
	if message, err := run.DecodeMessage(o.delivery.message.Body); err == nil && now-message.Sent > askingFor.Milliseconds() {
		return drop
	}
	return verdict{again: min(time.Second<<min(max(o.delivery.message.Receives-1, 0), 4), longestRoom) + o.desk.jitter()}
}
