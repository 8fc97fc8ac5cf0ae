package oracle

import (
	"bytes"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A scope of a workflow is stopped by a word in the record of its run: when its time is over (P3), or a failure in it that nothing in it handles says so (W2). Behind that
// nothing is put in it but to be cancelled, and what was put before ends. The scope has failed of what stopped it, where that has cut something off.

// stop is a scope that was stopped.
type stop struct {
	since int // the event
	by    int // the node whose failure that was, or flow.None
}

func stopsMore(b, a *run.Run) string {
	return unless(bytes.HasPrefix(a.Stopped, b.Stopped), "a stop of a scope was taken back")
}

// cutBy is the innermost scope around a step that was stopped, by index, or flow.None.
func (f *flowState) cutBy(path string) int {
	n, ok := f.workflow.Node(path)
	if !ok {
		return flow.None
	}
	for s := n.Scope; s != flow.None; s = f.workflow.Nodes[s].Scope {
		if _, stopped := f.stops[s]; stopped {
			return s
		}
	}
	return flow.None
}

// stopsScopes: a scope is stopped once, and in none that was before; by its time when that is over, and else by a failure.
func (j *Judge) stopsScopes(at time.Time, rs *runState, b *run.Run) {
	a, f := &rs.run, rs.flow
	for _, s := range a.Stops()[len(b.Stops()):] {
		if s.Scope >= len(f.workflow.Nodes) || f.workflow.Nodes[s.Scope].Kind != flow.KindScope || s.By >= len(f.workflow.Nodes) {
			j.violate("W8", "run %s of %s stops what is no scope of its workflow: %+v", a.ID, a.Tenant, s)
			continue
		}
		n := &f.workflow.Nodes[s.Scope]
		_, again := f.stops[s.Scope]
		if around := f.cutBy(n.Path); again || around != flow.None {
			j.violate("W4", "run %s of %s stops scope %s, which was stopped before, or in one that was", a.ID, a.Tenant, n.Path)
		}
		row := f.steps[n.Path]
		switch {
		case s.By != flow.None:
			if l := f.look(); !n.Stops || !f.workflow.Within(s.By, s.Scope) || !f.fatal(n.Body.Steps, &l) {
				j.violate("W2", "a failure of %s stops scope %s of run %s of %s, it says, and none does: %s", f.workflow.Nodes[s.By].Path, n.Path, a.ID, a.Tenant, l.text(f.workflow))
			}
		case row == nil || row.last().NextAt == 0:
			j.violate("P3", "the time of scope %s of run %s of %s is over, it says, and it has none", n.Path, a.ID, a.Tenant)
		case ms(at) < row.last().NextAt-j.cfg.Clocks.Milliseconds():
			j.violate("P3", "the time of scope %s of run %s of %s is over, it says, and that is at %s", n.Path, a.ID, a.Tenant, instant(row.last().NextAt))
		}
		if f.stops == nil {
			f.stops = map[int]stop{}
		}
		f.stops[s.Scope] = stop{j.event, s.By}
	}
}

// cutOff: what never ran is put as cancelled in a scope that was stopped, and nowhere else.
func (j *Judge) cutOff(rs *runState) {
	if a := &rs.run; rs.head.flow.cutBy(a.ID.Step) == flow.None {
		j.violate("W5", "step %s of %s is put as cancelled, and no scope around it was stopped", a.ID, a.Tenant)
	}
}

// lookCancelled is what the end of a node counts as that was cancelled: in a scope that was stopped, the run goes on with that.
func (f *flowState) lookCancelled(n *flow.Node, l *looked) rune {
	if f.cutBy(n.Path) != flow.None {
		return reference.Failure
	}
	return l.cancelled
}

// lookStopped is lookIn for a scope that runs, which may have been stopped.
func (f *flowState) lookStopped(n *flow.Node, l *looked) rune {
	end := f.lookIn(n.Body.Steps, l)
	s, stopped := f.stops[n.Index]
	if !stopped || end == reference.Open || !f.cut(n) {
		return end
	}
	if l.cut[n.Index] = "timeout"; s.by != flow.None {
		l.cut[n.Index] = l.of[s.by]
	}
	return reference.Failure
}

// cut tells whether something was cancelled in a scope for its stop.
func (f *flowState) cut(n *flow.Node) bool {
	return slices.ContainsFunc(f.workflow.Nodes, func(in flow.Node) bool {
		s := f.steps[in.Path]
		return s != nil && s.last().State == run.Cancelled && f.cutBy(in.Path) == n.Index
	})
}
