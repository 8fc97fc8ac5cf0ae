package flow

import "slices"

// Known is what somebody has read of a node. The zero Known says that nobody has.
type Known struct {
	Read bool
	Fact Fact // what stands there; the zero Fact says that nothing does
}

// Walk is what whoever has ended a task does next. At most one of its fields asks for something. Where none does, nothing follows from the end, or another
// brings it on.
type Walk struct {
	// Release lists tasks that are to run now, by index, ascending. Each is put where nothing stands. Where something stands at one of them already,
	// somebody knew more: then all are to be read, as for All.
	Release []int
	// Read is a task to be read before Walk is asked again, or None.
	Read int
	// All says that all nodes are to be read and Plan asked: too few are known, or the workflow may be over.
	All bool
}

// Walk decides what follows from the end of a task, as Plan does, for somebody who has not read the other nodes, where no scope was stopped. known is by index, one for each node; the
// ended task is among those that were read, and the others were read after its end was durable. looks is how many more may be read one by one.
//
// What Walk releases, Plan releases by all of the facts. What it leaves out is left to others: of those that a node waits for, one is open, and whoever ends
// that reads this end. For that the others need not be read: what a rule decides while one is open, it decides by one end alone, and whoever wrote that
// end has seen to it. The end of the workflow is left to Plan: where nobody is sure to be open, Walk asks for All.
func (w *Workflow) Walk(ended int, known []Known, looks int) Walk {
	k := walker{w: w, ended: ended, known: known, next: None}
	plan := w.Plan(k.assume())
	if len(plan.Ask) > 0 || plan.Stop != None || len(plan.Halt) > 0 {
		return Walk{Read: None, All: true} // what is asked may be about any of them, and what stops the run or a scope stops all in it
	}
	k.states = plan.States
	leaves := true
	for _, i := range k.reached() {
		leaves = k.leaves(i) && leaves
	}
	switch {
	case leaves:
		return Walk{Release: plan.Release, Read: None}
	case k.next != None && looks > 0:
		return Walk{Read: k.next}
	}
	return Walk{Read: None, All: true}
}

// walker decides what follows from one end.
type walker struct {
	w      *Workflow
	ended  int
	known  []Known
	states []State // by what is known and assumed
	next   int     // a node to be read, or None

	// By index, where a node stands to the ended one.
	before []bool // it is needed, directly or not, by the ended node or by a scope around that
	inside []bool // it is a scope around the ended node
	behind []bool // it needs the ended node, or a scope around that, directly or not; or it is in a scope that does

	asked, sure []bool // what open has said
}

// assume gives facts for Plan that leave out what was not read: behind the end nothing is taken to stand, which putting it finds out, and elsewhere a task
// is taken to be open.
func (k *walker) assume() []Fact {
	n := len(k.w.Nodes)
	facts := make([]Fact, n)
	k.before, k.inside, k.behind = make([]bool, n), make([]bool, n), make([]bool, n)
	k.asked, k.sure = make([]bool, n), make([]bool, n)
	for s := k.w.Nodes[k.ended].Scope; s != None; s = k.w.Nodes[s].Scope {
		k.inside[s] = true
	}
	for i := n - 1; i >= 0; i-- {
		if i == k.ended || k.inside[i] || k.before[i] {
			for _, p := range k.w.Nodes[i].Needs {
				k.before[p] = true
			}
		}
	}
	for i := range k.w.Nodes {
		node := &k.w.Nodes[i]
		k.behind[i] = node.Scope != None && k.behind[node.Scope]
		for _, p := range node.Needs {
			k.behind[i] = k.behind[i] || p == k.ended || k.inside[p] || k.behind[p]
		}
		switch {
		case k.known[i].Read:
			facts[i] = k.known[i].Fact
		case k.inside[i]:
			facts[i].State = Running
		case !k.behind[i] && node.Kind == KindScope && node.Asks(): // it may not run, and then nothing in it
			facts[i].State = Queued
		case !k.behind[i] && (node.Kind == KindTask || node.Asks()):
			facts[i].State = Running
		}
	}
	return facts
}

// top stands for the whole workflow where nodes are meant that an end counts for.
const top = None

// reached gives the nodes that have not ended and that the end counts for: those that need the ended node, the scope around it, and last the whole. What it
// ends besides and nobody writes down, such as a skip, counts for others in turn.
func (k *walker) reached() []int {
	var open []int
	seen := map[int]bool{}
	for todo := []int{k.ended}; len(todo) > 0; todo = todo[1:] {
		n := &k.w.Nodes[todo[0]]
		for _, i := range slices.Concat(n.Next, []int{n.Scope}) {
			switch {
			case seen[i] || i == top:
			case !k.states[i].Ended():
				open = append(open, i)
			case !k.known[i].Read:
				todo = append(todo, i)
			}
			seen[i] = true
		}
	}
	if seen[top] {
		open = append(open, top)
	}
	return open
}

// leaves tells whether a node that has not ended is left to others, since one that it waits for is sure to be open. Where none is, it says whom to read.
func (k *walker) leaves(i int) bool {
	of, all := k.w.Top, true
	if i != top {
		of, all = k.waitsFor(i)
	}
	if i != top && k.open(i) || slices.ContainsFunc(of, k.open) {
		return true
	}
	if k.next == None {
		k.next = k.unread(of, all)
	}
	return false
}

// waitsFor gives the nodes that a node waits for. all says that each must end before it does: so it is of a scope that runs, and no rule decides early.
func (k *walker) waitsFor(i int) (of []int, all bool) {
	n := &k.w.Nodes[i]
	if n.Kind == KindScope && k.states[i] == Running {
		return n.Body.Steps, true
	}
	return n.Needs, false
}

// open tells whether a node is sure not to have ended, whatever stands at those that were not read.
func (k *walker) open(i int) bool {
	switch {
	case k.states[i].Ended():
		return false
	case k.known[i].Read && k.known[i].Fact.State != "" && k.w.Nodes[i].Kind != KindScope:
		return true
	case k.w.Nodes[i].Kind == KindTask && k.states[i] == Queued: // it is released now
		return true
	case !k.behind[i] && !k.inside[i]:
		return false
	case k.asked[i]:
		return k.sure[i]
	}
	k.asked[i] = true
	if of, all := k.waitsFor(i); all {
		k.sure[i] = slices.ContainsFunc(of, k.open)
	} else {
		// Of one that was not read, an end may have decided the node by itself.
		k.sure[i] = !slices.ContainsFunc(of, func(p int) bool { return !k.states[p].Ended() && !k.open(p) })
	}
	return k.sure[i]
}

// unread gives a task that may be open: the first behind the ended one, or else the first of all; None where each was read. Of those that must all end, the ones
// before the ended node have ended, but for some under early rules.
func (k *walker) unread(of []int, all bool) int {
	first := None
	for _, i := range of {
		if k.w.Nodes[i].Kind != KindTask && !k.w.Nodes[i].Asks() || k.w.Nodes[i].Kind == KindScope || k.known[i].Read || k.behind[i] || all && k.before[i] {
			continue
		}
		if i > k.ended {
			return i
		}
		if first == None {
			first = i
		}
	}
	return first
}
