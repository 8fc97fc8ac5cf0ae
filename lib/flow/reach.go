package flow

import (
	"strings"
)

// ends is a set of final states.
type ends map[State]bool

// everyEnd are the states in which a step may end, one for each that rules tell apart.
var everyEnd = []State{Succeeded, Failed, UpstreamFailed, Skipped}

// reach reports the steps that can never run. It knows of each step how it may end, and looks at all mixtures of these. So it misses
// what only the dependence of two branches on one another rules out, and never refuses a step that can run.
func (c *checker) reach() {
	c.reachIn(c.w.Top, "steps", make([]ends, len(c.w.Nodes)))
}

func (c *checker) reachIn(steps []int, at string, may []ends) {
	for _, i := range steps {
		n := &c.w.Nodes[i]
		here := at + "." + n.Name
		runs, others := n.verdicts(may)
		may[i] = others
		if n.Kind == KindScope {
			c.reachIn(n.Body.Steps, here+".steps", may)
		}
		if !runs {
			c.never(n, here, may)
			may[i] = allOf(everyEnd...) // nothing is said of those behind it
			continue
		}
		for _, s := range n.endsOf(c.w, may) {
			may[i][s] = true
		}
	}
}

func allOf(states ...State) ends {
	set := ends{}
	for _, s := range states {
		set[s] = true
	}
	return set
}

// endsOf says how a step may end once it runs. Whoever operates a workflow may skip a step that waits for something.
func (n *Node) endsOf(w *Workflow, may []ends) []State {
	switch n.Kind {
	case KindPass:
		return []State{Succeeded}
	case KindFail:
		return []State{Failed}
	case KindSwitch:
		return []State{Succeeded, Failed}
	case KindScope:
		all := []State{Skipped}
		succeeds, fails := true, false
		for _, i := range n.Body.Steps {
			fails = fails || may[i][Failed]
			succeeds = succeeds && (!may[i][Failed] || len(may[i]) > 1)
		}
		if succeeds {
			all = append(all, Succeeded)
		}
		if fails {
			all = append(all, Failed)
		}
		return all
	}
	return []State{Succeeded, Failed, Skipped}
}

// verdicts tells whether a step can run, and how it may end if it does not.
func (n *Node) verdicts(may []ends) (runs bool, others ends) {
	others = ends{}
	if n.Switch != None {
		others[Skipped] = true
	}
	for _, mix := range mixtures(n.Needs, may) {
		switch n.Rule.Decide(mix...) {
		case Skip:
			others[Skipped] = true
		case Block:
			others[UpstreamFailed] = true
		}
	}
	if n.Switch == None {
		return n.canRun(may), others
	}
	// A switch that did not succeed has chosen nothing.
	chosen := may[n.Switch]
	may[n.Switch] = allOf(Succeeded)
	runs = n.canRun(may)
	may[n.Switch] = chosen
	return runs, others
}

func (n *Node) canRun(may []ends) bool {
	for _, mix := range mixtures(n.Needs, may) {
		if n.Rule.Decide(mix...) == Run {
			return true
		}
	}
	return false
}

// mixtures gives one example of each set of states in which some steps may end together: how many of them end in a way decides no rule.
func mixtures(steps []int, may []ends) [][]State {
	sets := map[int]bool{0: true}
	for _, i := range steps {
		more := map[int]bool{}
		for set := range sets {
			for k, s := range everyEnd {
				if may[i][s] {
					more[set|1<<k] = true
				}
			}
		}
		sets = more
	}
	all := make([][]State, 0, len(sets))
	for set := range sets {
		var mix []State
		for k, s := range everyEnd {
			if set&(1<<k) != 0 {
				mix = append(mix, s)
			}
		}
		all = append(all, mix)
	}
	return all
}

// never reports a step that can never run.
func (c *checker) never(n *Node, at string, may []ends) {
	var how []string
	for _, i := range n.Needs {
		var states []string
		for _, s := range everyEnd {
			if may[i][s] {
				states = append(states, string(s))
			}
		}
		const few = 4
		if len(how) == few {
			how = append(how, "…")
			break
		}
		how = append(how, c.w.Nodes[i].Name+" ends "+listOf(states))
	}
	want := "a rule that can hold: nothing can reach this step, since " + strings.Join(how, ", ")
	if n.Switch != None {
		want += "; and its switch must succeed to choose it"
	}
	c.add(at+".rule", string(n.Rule), want)
}
