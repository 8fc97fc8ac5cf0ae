package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Put is a run as decided, on its way to the store under the version that it was decided over, together with what must stand beside
// it: the listing of a dead letter, the timer of a retry that is further away than a queue can hold a message, and those of callbacks.
type Put struct {
	run     run.Run
	ops     []store.Op
	on      job.Callbacks
	now     int64     // Unix ms: as of when it was decided
	calls   []run.Run // callbacks whose timers are among ops, and which are sent behind these
	waiting []waits   // callbacks whose timers are among ops, and which wait for others
	turn    int       // which of ops says that the job has recovered, 0 for none
	streak  int       // which of ops counts the runs that ended badly in a row, 0 for none
	done    bool      // it is known what became of it
	err     error     // of the try that was made, done or not
}

// Prepare makes a put of a run as decided at now (Unix ms). Its definition names the callbacks on, its own request may name others, and Config.Callbacks are
// for the rest. What lists a run that is to wait for long is written first.
func (d *Dispatcher) Prepare(ctx context.Context, r run.Run, on job.Callbacks, now int64) (*Put, error) {
	id := d.NewID()
	r, streak, counted, err := d.streak(ctx, r, on.PauseAfter, id)
	if err != nil {
		return nil, err
	}
	op, err := r.Item(id)
	if err != nil {
		return nil, err
	}
	p := &Put{run: r, on: d.Callbacks.Over(r, on), now: now, ops: []store.Op{op}}
	if counted {
		p.streak, p.ops = len(p.ops), append(p.ops, streak)
	}
	if lists(r) {
		letter, err := r.DeadLetterOp(id)
		if err != nil {
			return nil, err
		}
		p.ops = append(p.ops, letter)
	}
	if WaitsInStore(r, now) {
		check, err := timer.NewCheck(r.Tenant, r.ID, r.NextAt).Put(id)
		if err != nil {
			return nil, err
		}
		check.If = store.Any // another look at the same instant is as good
		p.ops = append(p.ops, check)
		if r.ID.IsStep() {
			return p, nil // no list has steps
		}
		if err := d.listWaiting(ctx, r); err != nil {
			return nil, err
		}
	}
	return p, p.calling(ctx, d, id)
}

// Alone tells whether the put of a run as decided at now is of the run and nothing else.
func (d *Dispatcher) Alone(r run.Run, on job.Callbacks, now int64) bool {
	_, ends := r.Ends()
	return !lists(r) && !WaitsInStore(r, now) && !(ends && on.PauseAfter > 0) && !r.CallsBack(d.Callbacks.Over(r, on))
}

// lists tells whether the run is to stand among the dead letters. Of a workflow its run does, and no step.
func lists(r run.Run) bool { return r.State.DeadLetter() && !r.ID.IsStep() }

// tryFor bounds a try, and a third of a lease does: the call of the store answers for all at once, so one op that is not answered holds the
// others up for so long.
const tryFor = time.Second

// TryEach tries puts of different runs once, each on its own and all in one call of the store. Those that write more than the run are
// left to Do, and so is what comes of a try that was throttled, or whose outcome is unknown: none waits for another's repetition.
func (d *Dispatcher) TryEach(ctx context.Context, puts []*Put) {
	puts = slices.DeleteFunc(slices.Clone(puts), func(p *Put) bool { return len(p.ops) > 1 })
	if len(puts) == 0 {
		return
	}
	ops := make([]store.Op, len(puts))
	for i, p := range puts {
		ops[i] = p.ops[0]
	}
	ctx, cancel := context.WithTimeout(ctx, min(tryFor, d.Lease/3))
	defer cancel()
	verdicts, err := d.Store.WriteEach(ctx, ops...)
	for i, p := range puts {
		switch {
		case errors.Is(err, store.ErrTooLarge), errors.Is(err, store.ErrClosed): // of the whole call: nothing was written
		case err != nil: // also of a refusal of the whole call, which Do meets again
			p.err = fmt.Errorf("%w: %w", store.ErrUnknown, err)
		default:
			p.run.Version, p.err = verdicts[i].Version, verdicts[i].Err
			if p.done = !passing(p.err); p.Won() {
				d.CountEnd(p.run)
			}
		}
	}
}

// Run is the run, as written where the put has won.
func (p *Put) Run() run.Run { return p.run }

// Won tells whether a try has written the run.
func (p *Put) Won() bool { return p.done && p.err == nil }

// Do gives the run as written, or a *store.Conflict. It goes on where a try left it: the same op again, which finds what the try may
// have done.
func (d *Dispatcher) Do(ctx context.Context, p *Put) (run.Run, error) {
	for round := 0; !p.done; round++ {
		var versions []uint64
		if versions, p.err = d.write(ctx, p.err, p.ops); p.err == nil {
			p.run.Version = versions[0]
			d.CountEnd(p.run)
			// Durable now: the end, and the timers of its callbacks. A crash here leaves these to the first sweep.
			d.callBack(ctx, p.calls)
			d.putOff(ctx, p.waiting, versions)
		}
		if conflict := store.AsConflict(p.err); conflict != nil && conflict.Op > 0 && (conflict.Op == p.turn || conflict.Op == p.streak) {
			// Another run has ended meanwhile, and had the job recover, or be down again, or was counted. What stands in the way is no run: nobody else is to see it.
			if p.err = d.prepareAnew(ctx, p, round); p.err == nil {
				continue
			}
		} else if p.streak > 0 && errors.Is(p.err, store.ErrThrottled) { // which a transaction also is told of that met another at what both write
			p.err = fmt.Errorf("run %s: %w: %w", p.run.ID, errCrowded, p.err)
		}
		p.done = true
	}
	if p.err != nil {
		return run.Run{}, p.err
	}
	return p.run, nil
}

// errCrowded is of a put beside whose run others have written too often, or write all the time. The store may well be well.
var errCrowded = errors.New("others end at the same time")

// prepareAnew prepares a put over what others have written beside their runs. Those that end at once wait for each other a while, and not all for the same.
func (d *Dispatcher) prepareAnew(ctx context.Context, p *Put, round int) error {
	if round == maxRounds {
		return fmt.Errorf("run %s: %w: overtaken %d times: %w", p.run.ID, errCrowded, maxRounds, store.ErrThrottled)
	}
	if err := d.pause(ctx, round); err != nil {
		return err
	}
	again, err := d.Prepare(ctx, p.run, p.on, p.now)
	if err == nil {
		*p = *again
	}
	return err
}

// CountEnd adds the end of a run, or of a step, to the metrics and to its trace, and nothing for one that goes on. Whoever writes a run calls it, once
// the write is durable; whoever only finds the end does not. A decision over missed fires counts each of them.
func (d *Dispatcher) CountEnd(r run.Run) {
	d.tell(r)
	switch {
	case r.ID.IsStep():
		if r.State.Ended() {
			d.Metrics.Steps.Inc(r.State.String())
		}
		return // no list has steps: of a workflow its run is counted among runs and dead letters
	case r.Missed():
		d.Metrics.Runs.Add(r.Count, r.State.String())
		d.Metrics.Skipped.Add(r.Count, "missed")
	case r.State.Ended():
		d.Metrics.Runs.Inc(r.State.String())
		if r.State == run.Skipped {
			d.Metrics.Skipped.Inc(r.Why.Code)
		}
		if r.Why.Code == run.WhyDeadline {
			d.Metrics.Overran.Inc()
		}
	}
	if r.State.DeadLetter() {
		d.Metrics.DeadLetters.Inc(r.State.String())
	}
}

// PutRun prepares a put and does it.
func (d *Dispatcher) PutRun(ctx context.Context, r run.Run, on job.Callbacks, now int64) (run.Run, error) {
	p, err := d.Prepare(ctx, r, on, now)
	if err != nil {
		return run.Run{}, err
	}
	return d.Do(ctx, p)
}

// WaitsInStore tells whether a run's next try is further away than a queue can hold its message: a timer wakes it then.
func WaitsInStore(r run.Run, now int64) bool {
	return r.State == run.Retrying && time.Duration(r.NextAt-now)*time.Millisecond > queue.MaxDelay
}
