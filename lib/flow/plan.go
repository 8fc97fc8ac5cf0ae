package flow

// Fact is what is known of a node because it was written down: that it was released, and how it ended. The zero Fact says that nothing is
// known of the node. Nodes that are never written down need none: what they are follows from the facts of others. Of a scope whose condition holds it
// is Running: then its steps run, and its end follows from theirs. Queued says that what it asks may not have been asked yet.
type Fact struct {
	State State
	// To is the node that a switch chose, by index, or None. It counts where State is Succeeded.
	To int
	// Code says what a node has failed of, as target.CodeOf has it. It counts where State is a failure.
	Code string
	// Stopped says of a scope that nothing in it begins any more, whatever its State. By says why: it is the node in it that has failed, by index, or None where
	// the time of the scope is over.
	Stopped bool
	By      int
}

// Decisions are what follows from the facts about the nodes of a workflow.
type Decisions struct {
	// States holds the state of every node, by index: by its fact, or as it follows from the facts of others. A node that Release or Ask
	// lists is Queued, an open scope Running, and a node of which nothing follows Pending.
	States []State
	// Release lists the tasks that are to run now and of which nothing is known, by index, ascending.
	Release []int
	// Ask lists the nodes that run now if what they ask says so, by index, ascending: switches, and tasks, passes and scopes with a condition. What comes of it is a
	// new fact.
	Ask []int
	// Halt has the scopes that a failure stops now, by index, with the node that has failed; nil where none is. Nothing in them is released or asked. That a scope is
	// stopped is a new fact.
	Halt map[int]int
	// Cancel lists the nodes that would be released or asked now, but for a scope around them that was stopped, by index, ascending. They are to be written down as
	// Cancelled, each where nothing stands: so whoever does not know of the stop competes with that.
	Cancel []int
	// Stopped has the scopes that have failed since they were stopped, by index, with the node of whose failure that was, or None where their time was over.
	Stopped map[int]int
	// Caught has the failures that were caught, by the index of the node that has failed; nil where none was.
	Caught map[int]Caught
	// Stop is the node whose failure stops the workflow, or None: nothing handles it, and the workflow is one that stops for that. Nothing is released then.
	Stop int
	// End is the state of the workflow once all nodes have ended, Succeeded or Failed, and "" before.
	End State
}

// Plan decides what follows from the facts, which are by index, one for each node. It depends on nothing else: the same facts give the same
// decisions, in whatever order they came about. And it takes nothing back: what it says of an end by some of the facts, it says by all of
// them. So one who has read only some of the nodes, and leaves the others zero, decides less, and nothing else. Of what it is to release,
// some may have been released already.
func (w *Workflow) Plan(facts []Fact) Decisions {
	p := planner{w: w, facts: facts, Decisions: Decisions{States: make([]State, len(w.Nodes)), Stop: None}}
	for i := range p.States {
		p.States[i] = Pending
	}
	if end := p.graph(w.Top); end.Ended() {
		p.End = end
	}
	if p.Stop != None {
		p.Release, p.Ask, p.Cancel, p.Halt = nil, nil, nil, nil
	}
	p.halts()
	return p.Decisions
}

type planner struct {
	w       *Workflow
	facts   []Fact
	parents []State // of the node in hand
	stopped int     // scopes around it that were stopped, or are over by their own facts
	Decisions
}

// graph decides over siblings, parents before children, and gives the state of the whole. Every failure fails it that is neither allowed nor caught, whatever came
// after: a green clean-up hides no red step.
func (p *planner) graph(siblings []int) State {
	whole := Succeeded
	open := false
	for _, i := range siblings {
		n := &p.w.Nodes[i]
		state := p.node(n)
		p.States[i] = state
		p.catch(n)
		open = open || !state.Ended()
		if p.counted(n).Failure() {
			whole = Failed
			p.stops(i)
		}
	}
	if open {
		return Running
	}
	return whole
}

func (p *planner) node(n *Node) State {
	fact := p.facts[n.Index].State
	released := fact != "" && !fact.Ended()
	switch {
	case fact.Ended():
		p.spread(n, fact)
		return fact
	case released && (n.Kind != KindScope || fact == Queued):
		return fact
	case released: // a scope that was written down when it was released
		return p.inside(n)
	}
	switch p.verdict(n) {
	case Run:
		return p.run(n)
	case Skip:
		p.spread(n, Skipped)
		return Skipped
	case Block:
		p.spread(n, UpstreamFailed)
		return UpstreamFailed
	default:
		return Pending
	}
}

// verdict is what the rule says, and where that is to run, also the switch that leads to the node.
func (p *planner) verdict(n *Node) Verdict {
	p.parents = p.parents[:0]
	for _, i := range n.Needs {
		if !n.handles(i) {
			p.parents = append(p.parents, p.counted(&p.w.Nodes[i]))
		}
	}
	v := n.Rule.Decide(p.parents...)
	if v == Run && len(n.Catches) > 0 {
		return p.caughtInto(n)
	}
	if v != Run || n.Switch == None {
		return v
	}
	switch s := p.States[n.Switch]; {
	case !s.Ended():
		return Wait
	case s == Succeeded && p.facts[n.Switch].To == n.Index:
		return Run
	default:
		return Skip
	}
}

// Awaits lists what a node that has not ended waits for, by index, ascending: the parents without an end of holder, which is the node itself or else the
// scope around it that is the first to wait; or of a scope that has begun, what is directly in it and has no end. holder is None where nothing is waited
// for. states are those that Counted gives of a Plan, or what has become of these since.
func (w *Workflow) Awaits(index int, states []State) (holder int, open []int) {
	without := func(all []int) []int {
		var open []int
		for _, i := range all {
			if !states[i].Ended() {
				open = append(open, i)
			}
		}
		return open
	}
	for n := index; n != None; n = w.Nodes[n].Scope {
		judged := w.Nodes[n].judged()
		parents := make([]State, len(judged))
		for i, needed := range judged {
			parents[i] = w.Nodes[needed].counts(states[needed])
		}
		led := w.Nodes[n].Switch
		switch v := w.Nodes[n].Rule.Decide(parents...); {
		case v == Wait:
			return n, without(judged)
		case v == Run && len(without(w.Nodes[n].Catches)) > 0:
			return n, without(w.Nodes[n].Catches)
		case v == Run && led != None && !states[led].Ended():
			return n, []int{led}
		}
	}
	if n := &w.Nodes[index]; n.Kind == KindScope && (!n.Asks() || states[index] == Running) {
		return index, without(n.Body.Steps)
	}
	return None, nil
}

// counts is what a state of the node counts as, for rules and for the whole.
func (n *Node) counts(s State) State {
	if n.AllowFailure && s.Failure() {
		return Succeeded
	}
	return s
}

// run gives the state of a node that is to run.
func (p *planner) run(n *Node) State {
	if p.stopped > 0 && (n.Asks() || n.Kind == KindTask) {
		p.Cancel = append(p.Cancel, n.Index)
		return Queued
	}
	if n.Asks() {
		p.Ask = append(p.Ask, n.Index)
		return Queued
	}
	switch n.Kind {
	case KindScope:
		return p.inside(n)
	case KindPass:
		return Succeeded
	case KindFail:
		return Failed
	default:
		p.Release = append(p.Release, n.Index)
	}
	return Queued
}

// inside decides over what is in a scope.
func (p *planner) inside(n *Node) State {
	if !p.facts[n.Index].Stopped {
		return p.graph(n.Body.Steps)
	}
	p.stopped++
	state := p.graph(n.Body.Steps)
	p.stopped--
	if state.Ended() && p.cutOff(n) {
		if p.Stopped == nil {
			p.Stopped = map[int]int{}
		}
		p.Stopped[n.Index] = p.facts[n.Index].By
		return Failed
	}
	return state
}

// itself is the node that has failed by itself: of a scope, the first in it.
func (p *planner) itself(index int) int {
	if p.w.Nodes[index].Kind == KindScope {
		if cause := p.w.Cause(index, &p.Decisions); cause != None {
			return cause
		}
	}
	return index
}

// spread gives the nodes inside of a scope the states that they have now that the scope has ended. Where it never ran, none of them does: nor where what it
// asks has failed, or it was cancelled.
func (p *planner) spread(n *Node, end State) {
	if n.Kind != KindScope {
		return
	}
	if end == Failed && n.When != "" || end == Cancelled {
		end = UpstreamFailed
	}
	if end == Skipped || end == UpstreamFailed {
		for _, i := range n.Body.Steps {
			p.States[i] = end
			p.spread(&p.w.Nodes[i], end)
		}
		return
	}
	// By its own fact it is over. What follows of its steps is told; nothing in it is released any more.
	cancel := len(p.Cancel)
	p.stopped++
	p.inside(n)
	p.stopped--
	p.Cancel = p.Cancel[:cancel]
	for i := n.Index + 1; i < len(p.States) && p.w.Nodes[i].Depth > n.Depth; i++ {
		if p.facts[i].State == "" && !p.States[i].Ended() {
			p.States[i] = Pending
		}
	}
}

// Cause finds the failure that a scope has failed of, or for None the workflow: the first node in it, in the order of nodes, that has
// failed by itself, or of a scope that was stopped the one that did that. It gives None where there is none: a scope has failed by itself where its time was over.
func (w *Workflow) Cause(scope int, d *Decisions) int {
	if by, stopped := d.Stopped[scope]; stopped {
		return by
	}
	for _, i := range w.Siblings(scope) {
		if !d.counted(&w.Nodes[i]).Failure() {
			continue
		}
		if w.Nodes[i].Kind == KindScope {
			if cause := w.Cause(i, d); cause != None {
				return cause
			}
		}
		return i
	}
	return None
}
