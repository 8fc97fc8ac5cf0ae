package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// wish is one conditional change of a run, decided anew over whatever stands there until it is written or moot.
type wish struct {
	run     run.Run                                   // what is believed to stand; when done, what stands
	decide  func(run.Run) (run.Run, run.ClaimVerdict) // pure
	verdict run.ClaimVerdict
	err     error       // the store refused for good
	span    *trace.Span // of the claim, nil where it is not recorded

	on     job.Callbacks // of a decision over missed fires: what it calls
	callAt int64         // Unix ms: when a tick is to come upon that
}

// traced ends the claim's span, or leaves it to whoever sends the run: nil where nothing was claimed.
func (w *wish) traced(ctx context.Context) *trace.Span {
	if w.span == nil {
		return nil
	}
	if w.err != nil || w.verdict != run.Claimed || w.run.Trace.Trace != w.span.Context().Trace { // claimed over another's claim, whose trace it keeps
		w.span.Drop()
		return nil
	}
	span, r := w.span, w.run
	span.Set("belfry.tenant", r.Tenant)
	span.Set("belfry.job", r.ID.Job)
	span.Set("belfry.run", r.ID.String())
	span.Set("belfry.nominal_time", r.ID.Time().Format(time.RFC3339Nano))
	if by := trace.From(ctx); by.Trace != span.Context().Trace {
		span.Link(by) // the tick that did it, whose trace is its own
	}
	return span
}

// awake fails where a pass has slept since it read the clock, for longer than the last sweep is behind: others have done all of it by
// now. What it claims could be what has run and is gone, and would lie where no sweep comes by any more. store.ErrUnknown, for who was
// asked to do it.
func (d *Dispatcher) awake(b Bounds) error {
	if age := d.Now().Add(d.Store.Skew()).UnixMilli() - b.Now; age >= timer.Lags[timer.Sweeps-1].Milliseconds() {
		return fmt.Errorf("asleep for %s before its claims, which are left to others: %w", time.Duration(age)*time.Millisecond, store.ErrUnknown)
	}
	return nil
}

// maxRounds bounds how often one run may be overtaken while it is being claimed.
const maxRounds = 8

// grant carries wishes out, in as few batches as conflicts allow. Durable afterwards: every wish whose verdict is Claimed.
// A crash in between leaves some claimed and not sent; the timer that they came from still lies ahead of the watermark
// or the first sweep's cursor, and whoever reads it finds them Standing.
//
// Two timers may stand for one run, so a batch may ask for it twice: the second wish follows the first.
func (d *Dispatcher) grant(ctx context.Context, wishes []*wish) error {
	for len(wishes) > 0 {
		asked := make(map[store.Key]bool, len(wishes))
		var once, twice []*wish
		for _, w := range wishes {
			if key := w.run.ID.Key(w.run.Tenant); asked[key] {
				twice = append(twice, w)
			} else {
				asked[key] = true
				once = append(once, w)
			}
		}
		if err := d.grantOnce(ctx, once); err != nil {
			return err
		}
		wishes = twice
	}
	return nil
}

func (d *Dispatcher) grantOnce(ctx context.Context, wishes []*wish) error {
	open := wishes
	for round := 0; len(open) > 0 && round < maxRounds; round++ {
		var ops []store.Op
		var asked, callers []*wish
		var calling [][]store.Op // of each caller
		for _, w := range open {
			next, verdict := w.decide(w.run)
			w.verdict = verdict
			if verdict != run.Claimed && verdict != run.Placed {
				continue
			}
			op, err := next.Item(d.NewID())
			if err != nil {
				return err
			}
			w.run = next
			if next.CallsMissed(w.on) {
				request, err := d.missedOp(next, *w.on.Missed, w.callAt, op.Attempt)
				if err != nil {
					return err
				}
				calling, callers = append(calling, []store.Op{op, request}), append(callers, w)
				continue
			}
			ops, asked = append(ops, op), append(asked, w)
		}
		verdicts, err := d.WriteEach(ctx, ops)
		if err != nil {
			return err
		}
		if calling != nil {
			verdicts, asked = append(verdicts, d.writeTogether(ctx, calling)...), append(asked, callers...)
		}
		open = nil
		for i, v := range verdicts {
			w := asked[i]
			conflict := store.AsConflict(v.Err)
			switch {
			case v.Err == nil:
				w.run.Version = v.Version
				d.CountEnd(w.run)
			case conflict == nil:
				w.err = v.Err
			default:
				created := w.run
				standing, found, err := run.FromItem(w.run.Tenant, w.run.ID, conflict.Standing)
				if err == nil && !found {
					standing = created // decided again as something that is not there
					standing.Version = 0
				}
				if err != nil {
					// One record that cannot be read must not hold up the others: its run is left to whoever can.
					d.Log.ErrorContext(ctx, "a run is unreadable", "tenant", w.run.Tenant, "run", w.run.ID.String(), "error", err)
					w.verdict = run.Taken
					continue
				}
				w.run = standing
				open = append(open, w)
			}
		}
	}
	for _, w := range open {
		w.err = fmt.Errorf("run %s: overtaken %d times: %w", w.run.ID, maxRounds, store.ErrThrottled)
	}
	return nil
}

// Change applies a pure change to runs, each under the version that it was decided over. A run given with Version 0 is
// believed not to stand. What change declines stays as it is.
func (d *Dispatcher) Change(ctx context.Context, runs []run.Run, change func(run.Run) (run.Run, bool)) error {
	wishes := make([]*wish, len(runs))
	for i, r := range runs {
		wishes[i] = &wish{run: r, decide: func(r run.Run) (run.Run, run.ClaimVerdict) {
			if next, ok := change(r); ok {
				return next, run.Claimed
			}
			return r, run.Taken
		}}
	}
	return d.granted(ctx, wishes)
}

// granted carries all wishes out, or tells why one is not.
func (d *Dispatcher) granted(ctx context.Context, wishes []*wish) error {
	if err := d.grant(ctx, wishes); err != nil {
		return err
	}
	for _, w := range wishes {
		if w.err != nil {
			return fmt.Errorf("run %s: %w", w.run.ID, w.err)
		}
	}
	return nil
}
