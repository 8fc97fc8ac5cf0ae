package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// looked is how a workflow stands, as the reference evaluator has it.
type looked struct {
	ends  []rune // by node
	may   []bool // which tasks are to run, or have, and which scopes are to be asked
	whole rune

	cancelled rune // what the end of a step counts as that was cancelled

	caught map[int]int    // who handles the failure of a node
	of     map[int]string // what each node that failed has failed of
	unsure map[int]bool   // those that ended as unknown, or a scope for one that did
	cut    map[int]string // of scopes that were cut off, what they have failed of for that
	halts  bool           // a failure that nothing can handle stops the run
}

// look evaluates a workflow by the ends of its steps, for what is to run and how it ends.
func (f *flowState) look() looked { return f.lookWith(reference.Failure) }

// lookShown is the same for what is shown. A step is cancelled with its run, and by no failure, so that decides nothing of others.
func (f *flowState) lookShown() looked { return f.lookWith(reference.Open) }

func (f *flowState) lookWith(cancelled rune) looked {
	nodes := f.workflow.Nodes
	l := looked{cancelled: cancelled, ends: make([]rune, len(nodes)), may: make([]bool, len(nodes)), caught: map[int]int{}, of: map[int]string{}, unsure: map[int]bool{}, cut: map[int]string{}}
	for i := range l.ends {
		l.ends[i] = reference.Open
	}
	l.whole = f.lookIn(f.workflow.Top, &l)
	l.halts = f.workflow.Stops && f.fatal(f.workflow.Top, &l)
	return l
}

// fatal tells whether one of siblings has failed, or one in a scope of them, so that nothing handles it: neither by itself nor by a scope around.
func (f *flowState) fatal(siblings []int, l *looked) bool {
	for _, i := range siblings {
		n := &f.workflow.Nodes[i]
		if l.counted(n) == reference.Failure || n.Body != nil && !n.AllowFailure && len(n.Catch) == 0 && f.fatal(n.Body.Steps, l) {
			return true
		}
	}
	return false
}

func (f *flowState) lookIn(siblings []int, l *looked) rune {
	whole, open := reference.Success, false
	for _, i := range siblings { // each behind those that it needs
		n := &f.workflow.Nodes[i]
		if l.ends[i] = f.lookAt(n, l); l.ends[i] == reference.Failure {
			l.handled(f.workflow, n)
		}
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

// handled notes who handles the failure of a node: whom the first clause names that has its code, a code of which that is a part, or none.
func (l *looked) handled(w *flow.Workflow, n *flow.Node) {
	if n.Body != nil {
		for _, i := range slices.Backward(n.Body.Steps) {
			if l.counted(&w.Nodes[i]) == reference.Failure { // the first of them is looked at last
				l.of[n.Index], l.unsure[n.Index] = l.of[i], l.unsure[i]
			}
		}
	}
	if why, cut := l.cut[n.Index]; cut {
		l.of[n.Index], l.unsure[n.Index] = why, false
	}
	of := l.of[n.Index]
	for _, clause := range n.Catch {
		takes := clause.Codes == nil
		for _, code := range clause.Codes {
			takes = takes || code == of || strings.HasPrefix(of, code+":") || code == "unknown" && l.unsure[n.Index]
		}
		if takes {
			l.caught[n.Index] = clause.To
			return
		}
	}
}

// failedOf is what a step has failed of, by what its last attempt says: the word before its message.
func failedOf(r *run.Run) string {
	n := len(r.Attempts)
	switch {
	case r.State == run.Cancelled:
		return "cancelled"
	case n == 0 && r.State == run.Failed:
		word, _, _ := strings.Cut(r.Reason, ": ")
		return word
	case n > 0 && r.Attempts[n-1].Outcome == run.OutcomeFailed:
		word, _, _ := strings.Cut(r.Attempts[n-1].Error, ": ")
		return word
	}
	return "crash"
}

// counted is what the end of a node counts as for others.
func (l *looked) counted(n *flow.Node) rune {
	if _, caught := l.caught[n.Index]; caught {
		return reference.Skip
	}
	if n.AllowFailure && l.ends[n.Index] == reference.Failure {
		return reference.Success
	}
	return l.ends[n.Index]
}

func (f *flowState) lookAt(n *flow.Node, l *looked) rune {
	var parents []rune
	into, waits := false, false // a failure was caught into the node; it waits for somebody whose failures it handles
	for _, p := range n.Needs {
		if !slices.Contains(n.Catches, p) {
			parents = append(parents, l.counted(&f.workflow.Nodes[p]))
			continue
		}
		to, caught := l.caught[p]
		into, waits = into || caught && to == n.Index, waits || l.ends[p] == reference.Open
	}
	switch verdict := reference.Decide(string(n.Rule), string(parents)); {
	case verdict == reference.Open:
		return verdict
	case verdict != reference.Run:
		l.spread(f.workflow, n, verdict)
		return verdict
	case len(n.Catches) > 0 && waits:
		return reference.Open
	case len(n.Catches) > 0 && !into:
		l.spread(f.workflow, n, reference.Skip)
		return reference.Skip
	}
	switch n.Kind {
	case flow.KindScope:
		if asks(n) {
			return f.lookAnswered(n, l)
		}
		return f.lookStopped(n, l)
	case flow.KindPass:
		return reference.Success
	case flow.KindFail:
		l.of[n.Index] = n.Fail.Code
		return reference.Failure
	}
	l.may[n.Index] = true
	s := f.steps[n.Path]
	if s == nil {
		return reference.Open
	}
	l.of[n.Index], l.unsure[n.Index] = failedOf(s.last()), s.last().State == run.Unknown
	switch state := s.last().State; {
	case state == run.Succeeded:
		return reference.Success
	case state == run.Cancelled:
		return f.lookCancelled(n, l)
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
