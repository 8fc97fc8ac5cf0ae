package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// A step that waits has a row, and nobody: no message, no worker, no slot. Whoever follows its run and finds its time come ends it, under the version of its row, so
// it ends once. For that a check of the run lies at its time.
//
// A run of which nothing is open but steps that wait is quiet: its regular checks stop, and the next one lies where the first of these ends, or where a day of the run
// is over. Nothing follows in a quiet run unless one of them ends, at whose time a check lies, or somebody ends the run, who arms a check before. A check that finds
// anything else goes on regularly. So a run that has a step which a message is to bring on has regular checks.

// quietCheck is how far apart the checks of a quiet run are, at the most.
const quietCheck = 24 * time.Hour

// late is how long whoever puts a step that waits may take until ticks come to its check. Where that was too short, the first sweep finds the check.
func (d *Dispatcher) late() time.Duration {
	if d.LookAhead < whole {
		return time.Second // one process works on the store, with one clock
	}
	return Promptness
}

// endWaits ends the steps that wait whose time has come, and gives all as they stand behind that: who ends a step at the same time has not seen these ends, and leaves
// what follows from both to this one. A *store.Conflict says that another has ended one.
//
// A wait that goes on behind the time of a scope around it is left to whoever stops that scope, however late both are found.
//
// Durable afterwards: the ends. A crash behind them leaves what follows to the check that lies at the time of the wait, or to the regular one that this has armed.
func (f *following) endWaits(ctx context.Context, steps []run.Run) ([]run.Run, error) {
	limits := underTime(f.workflow, f.head, steps)
	var ends []run.Run
	var ops []store.Op
	for _, s := range steps {
		late := func(scope run.Run) bool { return scope.NextAt < s.NextAt && f.within(s, scope) }
		if !s.Suspended() || s.NextAt > f.now || slices.ContainsFunc(limits, late) {
			continue
		}
		end := s.Resume(f.now, f.def.Kept())
		op, err := end.Item(f.NewID())
		if err != nil {
			return nil, err
		}
		ends, ops = append(ends, end), append(ops, op)
	}
	if len(ends) == 0 {
		return steps, nil
	}
	verdicts, err := f.WriteEach(ctx, ops)
	if err != nil {
		return nil, err
	}
	for i, v := range verdicts {
		if v.Err != nil {
			return nil, v.Err
		}
		ends[i].Version = v.Version
		f.CountEnd(ends[i])
	}
	return f.Steps(ctx, f.head)
}

// armWaits arms the check that finds the time of the first of these rows come, where the other checks of the run would come too late for that.
func (f *following) armWaits(ctx context.Context, rows []run.Run) error {
	until := first(rows, 0)
	if until == 0 {
		return nil
	}
	check := timer.NewCheck(f.head.Tenant, f.head.ID, max(f.pastEnd(until), f.HorizonAt(f.now+f.late().Milliseconds())+1))
	if check.Wake >= timer.NextCheck(f.head.Tenant, f.head.ID, f.now+f.Directly().Milliseconds()-1).Wake {
		return nil // that one finds it ahead
	}
	return f.Arm(ctx, check)
}

// first is when the first of the steps is over that wait beyond an instant, or the time of the first scope, both Unix ms; 0 where there is none.
func first(steps []run.Run, after int64) int64 {
	at := int64(0)
	for _, s := range steps {
		if (s.Suspended() || s.Limited()) && s.NextAt > after && (at == 0 || s.NextAt < at) {
			at = s.NextAt
		}
	}
	return at
}

// Rouse arms a regular check of a workflow's run, for whoever is about to change what a quiet run waits for. Durable afterwards: the check.
func (d *Dispatcher) Rouse(ctx context.Context, head run.Run) error {
	now, err := d.Clock()
	if err != nil {
		return err
	}
	return d.Arm(ctx, timer.NextCheck(head.Tenant, head.ID, now+d.Directly().Milliseconds()))
}

// MayBeQuiet tells whether a run that goes by an edition may be quiet: its workflow has steps that wait.
func MayBeQuiet(head run.Run, e *job.Edition) bool {
	if !head.Heads() || e.Def.Target.Workflow == nil {
		return false
	}
	w, err := flow.Of(e)
	return err != nil || w.Waits()
}

// waking is a run's next timer.
type waking struct {
	timer.Timer
	due   int64 // Unix ms: by then the time of a step that waits had come, and the timer is a regular one, or earlier; 0 for none
	quiet int64 // Unix ms: the run is quiet until then, if nobody ends what it waits for; 0: it is not

	read  bool      // its steps were, for that
	steps []run.Run // as they stood then
}

// wakeupOfWaits is wakeup for a workflow's run some of whose steps may wait, of which regular is the next timer else.
func (d *Dispatcher) wakeupOfWaits(ctx context.Context, head run.Run, w *flow.Workflow, regular timer.Timer, reach int64, followed bool) waking {
	now, err := d.Clock()
	if err != nil {
		return waking{Timer: regular}
	}
	steps, err := d.Steps(ctx, head)
	if err != nil {
		return waking{Timer: regular} // whoever follows the run tells of it
	}
	waits := underTime(w, head, steps)
	for _, s := range steps {
		if s.Suspended() {
			waits = append(waits, s)
		}
	}
	next := waking{Timer: regular, read: true, steps: steps}
	if overdue := first(waits, 0); overdue != 0 && overdue <= now {
		if next.due = now; !followed {
			next.Wake = reach + 1
		}
	}
	until := first(waits, now)
	if until == 0 {
		return next
	}
	if end := lasts(head, w); next.due == 0 && now < end && quiet(w, head, steps) {
		next.quiet = min(until, end)
		next.Wake = min(nextDay(head, reach), max(d.pastEnd(end), reach+1))
	}
	next.Wake = min(next.Wake, max(d.pastEnd(until), reach+1))
	return next
}

// quiet tells whether nothing of a run is open but steps that wait, and nothing follows from the others.
func quiet(w *flow.Workflow, head run.Run, steps []run.Run) bool {
	facts := FactsOf(w, head, steps)
	for _, s := range steps {
		n, ok := w.Node(s.ID.Step)
		if s.State == 0 || !ok || !s.State.Ended() && (!s.Suspended() || w.StoppedBy(facts, n.Index) != flow.None) {
			return false
		}
	}
	plan := w.Plan(facts)
	return plan.Settled()
}

// listQuiet lists a run that is quiet until an instant (Unix ms) as one that waits, where it is not yet: no timer of the next minutes stands for it. It is written before
// the timer, so a crash in between leaves an item that names a run too soon, which does no harm.
func (d *Dispatcher) listQuiet(ctx context.Context, head run.Run, until int64) error {
	listed := head
	listed.NextAt = until
	op, err := listed.WaitingOp(d.NewID())
	if err != nil {
		return err
	}
	items, err := d.Store.Get(ctx, op.Key)
	if err != nil || items[0].Exists() {
		return err
	}
	_, err = d.Write(ctx, op)
	return err
}

// nextDay is the first instant beyond reach (Unix ms) at which a day of the run is over.
func nextDay(head run.Run, reach int64) int64 {
	day := quietCheck.Milliseconds()
	return head.ID.Nominal + (max(0, reach-head.ID.Nominal)/day+1)*day
}
