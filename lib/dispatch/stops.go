package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A scope is stopped by a word in the record of its run, which each start of a step reads. It is durable before the steps are read again. Of those in the scope, the ones
// that have not started are then ended, and those that run are asked to stop; and what would be released is put as cancelled where nothing stands, so that whoever has not
// read the word competes with that for one key. The scope has ended when all in it has, by rows alone, and whoever sees a row that was cancelled, and not the word, has read
// the run too early, and reads it again. So nobody goes on behind the scope by another end of it.

// plan decides what follows from the steps of a run. A *store.Conflict says that the run was read before one of its scopes was stopped, since when a step in it has ended.
func (f *following) plan(steps []run.Run) (flow.Decisions, error) {
	facts := FactsOf(f.workflow, f.head, steps)
	for i, fact := range facts {
		if fact.State == flow.Cancelled && f.workflow.MayStop(i) && f.workflow.StoppedBy(facts, i) == flow.None {
			return flow.Decisions{Stop: flow.None}, errElse
		}
	}
	return f.workflow.Plan(facts), nil
}

// stopping gives the scopes that are to be stopped now: for a failure, or since their time is over; nil where there are none, or where the whole is over or stopped.
func (f *following) stopping(plan flow.Decisions, steps []run.Run) map[int]int {
	if plan.End != "" || plan.Stop != flow.None {
		return nil
	}
	stops := maps.Clone(plan.Halt)
	for _, s := range underTime(f.workflow, f.head, steps) {
		n, _ := f.workflow.Node(s.ID.Step)
		if _, fails := stops[n.Index]; fails || s.NextAt > f.now {
			continue
		}
		if stops == nil {
			stops = map[int]int{}
		}
		stops[n.Index] = flow.None
	}
	return stops
}

// stopScopes writes down that scopes are stopped, and brings the run on behind that.
//
// Durable before any step is looked up again: nothing in them starts that is put behind it. A crash here leaves the rest to the check of the run, and to the message of who
// has ended.
func (f *following) stopScopes(ctx context.Context, stops map[int]int, again bool) error {
	next := f.head
	for _, scope := range slices.Sorted(maps.Keys(stops)) { // one around another stands before it, and stops that, too
		if facts := FactsOf(f.workflow, next, nil); f.workflow.StoppedBy(facts, scope) == flow.None {
			next = next.Stop(run.Stop{Scope: scope, By: stops[scope]})
		}
	}
	var err error
	if f.head, err = f.PutRun(ctx, next, f.def.On, f.now); err != nil {
		return err
	}
	return f.step(ctx, again)
}

// stopped tells whether a scope around a step was stopped, and says why the step ends.
func (f *following) stopped(s run.Run) (reason string, stopped bool) {
	if len(f.head.Stopped) == 0 {
		return "", false
	}
	n, ok := f.workflow.Node(s.ID.Step)
	if !ok {
		return "", false
	}
	facts := FactsOf(f.workflow, f.head, nil)
	by := f.workflow.StoppedBy(facts, n.Index)
	switch {
	case by == flow.None:
		return "", false
	case facts[by].By == flow.None:
		return fmt.Sprintf("timeout: scope %s was not over after %s", f.workflow.Nodes[by].Path, f.workflow.Nodes[by].Timeout), true
	}
	return fmt.Sprintf("step %s has failed, which stops scope %s", f.workflow.Nodes[facts[by].By].Path, f.workflow.Nodes[by].Path), true
}

// endStopped ends what has not started in scopes that were stopped, and asks what runs there to stop. It gives all steps as they stand then.
func (f *following) endStopped(ctx context.Context, steps []run.Run) ([]run.Run, error) {
	if len(f.head.Stopped) == 0 {
		return steps, nil
	}
	return f.stopSteps(ctx, steps, f.stopped)
}

// cancel puts nodes that would run in scopes that were stopped as cancelled. Where another has put one, that is a *store.Conflict. It gives the steps with these.
func (f *following) cancel(ctx context.Context, nodes []int, steps []run.Run) ([]run.Run, error) {
	if len(nodes) == 0 {
		return steps, nil
	}
	rows := make([]run.Run, len(nodes))
	for i, index := range nodes {
		path := f.workflow.Nodes[index].Path
		reason, _ := f.stopped(run.Run{ID: f.head.ID.At(path)})
		rows[i] = f.head.Answered(path, run.Answer{State: run.Cancelled, Reason: reason}, f.now, f.expires())
	}
	// They are not counted as steps that have ended, since none of them was released.
	//
	// Durable with this write: that each of them whose op is done never runs. A crash here leaves the others to whoever follows the run next.
	written, err := f.put(ctx, rows)
	if err == nil && len(written) < len(rows) {
		err = errElse
	}
	return append(slices.Clone(steps), written...), err
}

// within tells whether a step is in a scope whose row another is.
func (f *following) within(step, scope run.Run) bool {
	in, found := f.workflow.Node(step.ID.Step)
	around, known := f.workflow.Node(scope.ID.Step)
	return found && known && f.workflow.Within(in.Index, around.Index)
}

// underTime gives the rows of the scopes whose time counts: they have not ended, and neither they nor scopes around them were stopped.
func underTime(w *flow.Workflow, head run.Run, steps []run.Run) []run.Run {
	if !slices.ContainsFunc(steps, run.Run.Limited) {
		return nil
	}
	facts := FactsOf(w, head, steps)
	states := w.Plan(facts).States
	var open []run.Run
	for _, s := range steps {
		n, ok := w.Node(s.ID.Step)
		if ok && s.Limited() && !facts[n.Index].Stopped && w.StoppedBy(facts, n.Index) == flow.None && !states[n.Index].Ended() {
			open = append(open, s)
		}
	}
	return open
}
