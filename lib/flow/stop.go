package flow

import (
	"fmt"
	"slices"
)

// This file has what becomes of a scope that is stopped: since a failure in it says so that nothing in it handles, or since its time is over. That it was is a fact, which
// somebody has written down. What is open in it then ends, and what would run there is written down as cancelled. So its end follows from the ends of what is in it, as
// that of any scope, and nobody takes it to have ended as long as anything in it may still be released by somebody who has not read that fact. All that the fact says of
// the end is why.

// stops notes what the failure of a node stops: the outermost scope around it that stops for one, inside of which nothing may handle it, or the whole. Of a failure in a
// scope whose own failure something may handle, nothing is known outside of that before it has ended, and in one that was stopped no failure counts before.
func (p *planner) stops(i int) {
	if p.stopped > 0 {
		return
	}
	stop := None
	for s := p.w.Nodes[i].Scope; ; s = p.w.Nodes[s].Scope {
		if s == None {
			if p.w.Stops && p.Stop == None {
				p.Stop = p.itself(i)
			}
			break
		}
		n := &p.w.Nodes[s]
		if n.Stops {
			stop = s
		}
		if n.AllowFailure || len(n.Catch) > 0 {
			break
		}
	}
	if _, noted := p.Halt[stop]; stop == None || noted {
		return
	}
	if p.Halt == nil {
		p.Halt = map[int]int{}
	}
	p.Halt[stop] = p.itself(i)
}

// halts leaves out of Halt what is over, or in another that is stopped, and what is in these scopes of what is to run.
func (p *planner) halts() {
	for scope := range p.Halt {
		if p.States[scope].Ended() || p.w.within(scope, p.Halt) {
			delete(p.Halt, scope)
		}
	}
	if len(p.Halt) == 0 {
		p.Halt = nil
		return
	}
	halted := func(i int) bool {
		in := p.w.within(i, p.Halt)
		if in {
			p.States[i] = Pending
		}
		return in
	}
	p.Release, p.Ask = slices.DeleteFunc(p.Release, halted), slices.DeleteFunc(p.Ask, halted)
}

// within tells whether a node is in one of some scopes.
func (w *Workflow) within(index int, scopes map[int]int) bool {
	for s := w.Nodes[index].Scope; s != None; s = w.Nodes[s].Scope {
		if _, is := scopes[s]; is {
			return true
		}
	}
	return false
}

// cutOff tells whether something in a scope that was stopped was cancelled for that: what is in another scope that was stopped was so for that one, which was before.
func (p *planner) cutOff(n *Node) bool {
	for i := n.Index + 1; i < len(p.w.Nodes) && p.w.Nodes[i].Depth > n.Depth; i++ {
		if p.facts[i].State == Cancelled && p.w.StoppedBy(p.facts, i) == n.Index {
			return true
		}
	}
	return false
}

// StoppedBy finds the innermost scope around a node that was stopped, or None.
func (w *Workflow) StoppedBy(facts []Fact, index int) int {
	s := w.Nodes[index].Scope
	for s != None && !facts[s].Stopped {
		s = w.Nodes[s].Scope
	}
	return s
}

// Overrun says what a scope has failed of whose time was over.
func (n *Node) Overrun() string {
	return fmt.Sprintf("timeout: the scope was not over after %s", n.Timeout)
}

// Shown gives the states of a Plan of these facts as people see them: what was not decided when a scope around it was stopped, and never began, was cancelled with that.
func (w *Workflow) Shown(facts []Fact, d Decisions) []State {
	if !slices.ContainsFunc(facts, func(f Fact) bool { return f.Stopped }) {
		return d.States
	}
	before := slices.Clone(facts)
	for i := range before {
		if before[i].State == Cancelled && w.StoppedBy(facts, i) != None {
			before[i].State = Running
		}
	}
	states, then := slices.Clone(d.States), w.Plan(before).States
	for i := range states {
		began := facts[i].State != "" && w.Nodes[i].Kind != KindScope
		if w.StoppedBy(facts, i) != None && !facts[i].Stopped && !began && states[i].Ended() && !then[i].Ended() {
			states[i] = Cancelled
		}
	}
	return states
}

// MayStop tells whether a scope around a node may be stopped by itself.
func (w *Workflow) MayStop(index int) bool {
	for s := w.Nodes[index].Scope; s != None; s = w.Nodes[s].Scope {
		if w.Nodes[s].Stops || w.Nodes[s].Timeout != 0 {
			return true
		}
	}
	return false
}
