package oracle

import (
	"fmt"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// looked is how a workflow stands, as the reference evaluator has it.
type looked struct {
	ends  []rune // by node
	may   []bool // which tasks are to run, or have
	whole rune

	cancelled rune // what the end of a step counts as that was cancelled
}

// look evaluates a workflow by the ends of its steps, for what is to run and how it ends.
func (f *flowState) look() looked { return f.lookWith(reference.Failure) }

// lookShown is the same for what is shown. A step is cancelled with its run, and by no failure, so that decides nothing of others.
func (f *flowState) lookShown() looked { return f.lookWith(reference.Open) }

func (f *flowState) lookWith(cancelled rune) looked {
	nodes := f.workflow.Nodes
	l := looked{cancelled: cancelled, ends: make([]rune, len(nodes)), may: make([]bool, len(nodes))}
	for i := range l.ends {
		l.ends[i] = reference.Open
	}
	l.whole = f.lookIn(f.workflow.Top, &l)
	return l
}

func (f *flowState) lookIn(siblings []int, l *looked) rune {
	whole, open := reference.Success, false
	for _, i := range siblings { // each behind those that it needs
		n := &f.workflow.Nodes[i]
		l.ends[i] = f.lookAt(n, l)
		open = open || l.ends[i] == reference.Open
		if l.counted(n) == reference.Failure {
			whole = reference.Failure
		}
	}
	if open {
		return reference.Open
	}
	return whole
}

// counted is what the end of a node counts as for others.
func (l *looked) counted(n *flow.Node) rune {
	if n.AllowFailure && l.ends[n.Index] == reference.Failure {
		return reference.Success
	}
	return l.ends[n.Index]
}

func (f *flowState) lookAt(n *flow.Node, l *looked) rune {
	parents := make([]rune, len(n.Needs))
	for i, p := range n.Needs {
		parents[i] = l.counted(&f.workflow.Nodes[p])
	}
	switch verdict := reference.Decide(string(n.Rule), string(parents)); {
	case verdict == reference.Open:
		return verdict
	case verdict != reference.Run:
		l.spread(f.workflow, n, verdict)
		return verdict
	}
	switch n.Kind {
	case flow.KindScope:
		return f.lookIn(n.Body.Steps, l)
	case flow.KindPass:
		return reference.Success
	case flow.KindFail:
		return reference.Failure
	}
	l.may[n.Index] = true
	s := f.steps[n.Path]
	if s == nil {
		return reference.Open
	}
	switch state := s.last().State; {
	case state == run.Succeeded:
		return reference.Success
	case state == run.Cancelled:
		return l.cancelled
	case state.Ended():
		return reference.Failure
	}
	return reference.Open
}

// spread ends what is inside of a scope that never ran as the scope itself ends.
func (l *looked) spread(w *flow.Workflow, n *flow.Node, end rune) {
	if n.Kind != flow.KindScope {
		return
	}
	for _, i := range n.Body.Steps {
		l.ends[i] = end
		l.spread(w, &w.Nodes[i], end)
	}
}

// text shows the ends of the nodes.
func (l *looked) text(w *flow.Workflow) string {
	parts := make([]string, len(w.Nodes))
	for i := range w.Nodes {
		parts[i] = fmt.Sprintf("%s %c", w.Nodes[i].Path, l.ends[i])
	}
	return strings.Join(parts, ", ")
}
