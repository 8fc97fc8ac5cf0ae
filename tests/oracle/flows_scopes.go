package oracle

import (
	"bytes"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A scope that asks whether it runs has a row that says what came of that: succeeded, it runs, and its end follows from its steps; skipped, or failed, nothing in it
// does. The row is put once, when the rule of the scope lets it run, and never written again.

// asks tells whether a node is a scope that asks whether it runs, or whose row says for how long. Nothing else that asks is in these worlds.
func asks(n *flow.Node) bool { return n.Kind == flow.KindScope && (n.When != "" || n.Timeout != 0) }

func answersOnce(_, a *run.Run) string {
	return unless(a.Attempt == 0 && a.Started == 0 && a.Ended == a.Created && a.Expires > a.Created && a.Payload.IsZero() && a.Result.IsZero(), "an answer is put as it ends, without an attempt, and for as long as its run is kept")
}

// lookAnswered is lookAt for a scope that asks and whose rule lets it run.
func (f *flowState) lookAnswered(n *flow.Node, l *looked) rune {
	l.may[n.Index] = true
	s := f.steps[n.Path]
	if s == nil {
		return reference.Open
	}
	switch s.last().State {
	case run.Skipped:
		l.spread(f.workflow, n, reference.Skip)
		return reference.Skip
	case run.Cancelled:
		l.spread(f.workflow, n, reference.Upstream)
		l.of[n.Index] = "cancelled"
		return f.lookCancelled(n, l)
	case run.Failed:
		l.spread(f.workflow, n, reference.Upstream)
		return reference.Failure
	}
	return f.lookStopped(n, l)
}

// handed: what a step is handed that expressions say is the same at each attempt (W9).
func (j *Judge) handed(rs *runState, c Call) {
	if rs.given != nil && rs.givenSince == rs.head.flow.since && !bytes.Equal(rs.given, c.Payload) {
		j.violate("W9", "attempt %d of step %s of %s was handed %.200q, and one before %.200q", c.Attempt, c.Run, c.Tenant, c.Payload, rs.given)
	}
	rs.given, rs.givenSince = slices.Clone(c.Payload), rs.head.flow.since
}
