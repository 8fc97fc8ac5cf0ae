package dispatch

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// The end of a run whose job names callbacks is written together with a request for each: its timer, which holds the run on demand that tells of the end. So
// there is no end without its callback, and no callback without its end, wherever a crash comes. All else is as with any request that is due at once.

// calls has the runs on demand that a run's end asks for written with it.
func (p *Put) calling(ctx context.Context, d *Dispatcher, attempt uint64) error {
	if !p.run.CallsBack(p.on) {
		return nil
	}
	e, _ := p.run.Ends()
	events := []job.Event{e}
	if p.on.Recovered != nil {
		recovered, err := p.turning(ctx, d, e, attempt)
		if err != nil {
			return err
		}
		if recovered {
			events = append(events, job.OnRecovered)
		}
	}
	for _, e := range events {
		called := p.on.Of(e)
		if called == nil {
			continue
		}
		if called.Window != 0 {
			waiting := d.toWait(p.run, e, *called, 0)
			op, err := waiting.Put(attempt)
			if err != nil {
				return err
			}
			op.If = store.Any // it is of this very end
			p.waiting = append(p.waiting, waits{waiting, len(p.ops)})
			p.ops = append(p.ops, op)
			continue
		}
		call := p.run.Call(e, called.Job)
		op, err := callOp(call, attempt)
		if err != nil {
			return err
		}
		p.calls, p.ops = append(p.calls, call), append(p.ops, op)
	}
	return nil
}

// turning has a job that was well be down with this end, or be well again, and tells whether it has recovered.
func (p *Put) turning(ctx context.Context, d *Dispatcher, e job.Event, attempt uint64) (recovered bool, err error) {
	r := p.run
	if e != job.OnSucceeded {
		op, err := r.DownOp(attempt)
		p.ops = append(p.ops, op)
		return false, err
	}
	items, err := d.Store.Get(ctx, run.DownKey(r.Tenant, r.ID.Job), job.Key(r.Tenant, r.ID.Job))
	if err != nil {
		return false, fmt.Errorf("read how the last run of %s ended: %w", r.ID.Job, err)
	}
	if !items[0].Exists() {
		return false, nil
	}
	p.turn = len(p.ops) // of several successes at once, one has the job recover
	p.ops = append(p.ops, store.Op{Kind: store.Delete, Key: items[0].Key, If: store.At(items[0]), Attempt: attempt})
	down, err := run.DownFromItem(items[0])
	if err != nil {
		d.Log.WarnContext(ctx, "how the last run of a job ended cannot be read, and is forgotten", "job", r.ID.Job, "error", err)
		return false, nil
	}
	j, err := job.FromItem(r.Tenant, r.ID.Job, items[1])
	return err == nil && down.Generation >= j.Born, nil
}

// callOp puts the timer of a callback. Whoever wrote it sends the run as well, so only the sweeps look at it.
func callOp(call run.Run, attempt uint64) (store.Op, error) {
	op, err := timer.NewRequest(call, call.ID.Nominal, true).Put(attempt)
	op.If = store.Any // it is of this very end
	return op, err
}

// The record of missed fires is written together with the request for the callback that tells of them. That one wakes as what a pass leaves to a later one
// does: a pass after an outage has many such records to write, and sends none of their callbacks itself. However long the pass has slept, no sweep has gone by that
// time: it would have come upon the timer of the fires, which wakes before, and have written their record.

// missedOp puts the timer of a callback that tells of missed fires, of which a run is the record.
func (d *Dispatcher) missedOp(missed run.Run, to job.Callback, wake int64, attempt uint64) (store.Op, error) {
	request := timer.NewRequest(missed.Call(job.OnMissed, to.Job), wake, false)
	if to.Window != 0 {
		request = d.toWait(missed, job.OnMissed, to, wake)
	}
	op, err := request.Put(attempt)
	op.If = store.Any // it is of this very record
	return op, err
}

// writeTogether does writes of several items each, independently, and gives the verdict of each write: the version is that of its first item.
func (d *Dispatcher) writeTogether(ctx context.Context, all [][]store.Op) []store.Verdict {
	verdicts := make([]store.Verdict, len(all))
	var group errgroup.Group
	group.SetLimit(readers)
	for i, ops := range all {
		group.Go(func() error {
			versions, err := d.Write(ctx, ops...)
			if verdicts[i].Err = err; err == nil {
				verdicts[i].Version = versions[0]
			}
			return nil
		})
	}
	_ = group.Wait() // each has its own error
	return verdicts
}

// lateCall is for how long the bucket of a callback's timer is sure to be swept yet, beyond its wake, in ms.
const lateCall = 30_000

// callBack makes and sends callbacks whose timers are durable. What fails is left to the first sweep, which makes them in 2 to 3 minutes.
func (d *Dispatcher) callBack(ctx context.Context, calls []run.Run) {
	if len(calls) == 0 {
		return
	}
	if err := d.callNow(ctx, calls); err != nil {
		d.Log.WarnContext(ctx, "a callback is left to the first sweep", "run", calls[0].ID.String(), "of", calls[0].Callback.Run, "error", err)
	}
}

func (d *Dispatcher) callNow(ctx context.Context, calls []run.Run) error {
	now, err := d.Clock()
	if err != nil {
		return err
	}
	if ended := calls[0].Created; now > ended+lateCall { // the process was stopped between the decision and its write
		again := make([]timer.Timer, len(calls))
		for i, call := range calls {
			again[i] = timer.NewRequest(call, now, true)
		}
		if err := d.Arm(ctx, again...); err != nil {
			return err
		}
	}
	runs := make([]run.Run, 0, len(calls))
	for _, call := range calls {
		// Whether it exists is all that a remembered job is asked here: the run binds to it as it stands, below.
		j, err := d.Book.Known(ctx, call.Tenant, call.ID.Job, d.Now())
		if err != nil {
			return fmt.Errorf("read job %s: %w", call.ID.Job, err)
		}
		if j.Def.Paused || DeletedFor(j, call) || d.Astray(call.Created, now+Promptness.Milliseconds()) {
			runs = append(runs, call) // it is put with the mark of whose it is, and held or cancelled
			continue
		}
		call.State, call.Generation, call.Priority = run.Queued, j.Generation, j.Def.Priority
		call = call.Lasting(call.ID.Nominal, j.Def.Times())
		op, err := call.Item(d.NewID())
		if err != nil {
			return err
		}
		versions, err := d.Write(ctx, op)
		if store.AsConflict(err) != nil {
			continue // whoever put it sends it
		}
		if err != nil {
			return fmt.Errorf("put run %s: %w", call.ID, err)
		}
		call.Version = versions[0]
		runs = append(runs, call)
	}
	if len(runs) == 0 {
		return nil
	}
	reach := now + d.Directly().Milliseconds()
	_, err = d.Requests(ctx, runs[0].Tenant, 0, Bounds{Now: now, Horizon: reach, Reach: reach, Resume: reach + ResumeAfter.Milliseconds()}, runs)
	return err
}
