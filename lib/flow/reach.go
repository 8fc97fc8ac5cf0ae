package flow

import "strings"

// everyEnd are the states in which a step may end, one for each that rules tell apart.
var everyEnd = []State{Succeeded, Failed, UpstreamFailed, Skipped}

// reach reports the steps that can never run. It knows of each step how it may end, and looks at all mixtures of these. So it misses
// what only the dependence of two branches on one another rules out, and never refuses a step that can run.
func (c *checker) reach() {
	c.reachIn(c.w.Top, "steps", make([]outcomes, len(c.w.Nodes)))
}

// reachIn fills in how the steps of one graph may end, those in its scopes included.
func (c *checker) reachIn(steps []int, at string, may []outcomes) {
	for _, i := range steps {
		n := &c.w.Nodes[i]
		here := at + "." + n.Name
		if n.Kind == KindScope {
			c.reachIn(n.Body.Steps, here+".steps", may)
		}
		runs, otherwise := n.reachable(may)
		if !runs {
			c.unreachable(n, here, may)
			may[i] = everyOutcome // nothing is said of those behind it
			continue
		}
		may[i] = otherwise | n.counted(n.runsTo(may))
	}
}

// counted is what ends of a step count as, for those that need it.
func (n *Node) counted(ends outcomes) outcomes {
	if ends&failures == 0 {
		return ends
	}
	switch all := n.catchesAll(); {
	case all:
		ends = ends&^failures | skips
	case len(n.Catch) > 0:
		ends |= skips
	}
	if n.AllowFailure && ends&failures != 0 {
		return ends&^failures | successes
	}
	return ends
}

// runsTo says how a step may end once it runs. Whoever operates a workflow may skip a task or scope.
func (n *Node) runsTo(may []outcomes) outcomes {
	switch n.Kind {
	case KindPass:
		if n.When != "" {
			return successes | failures | skips
		}
		return successes
	case KindWait:
		ends := successes
		if n.When != "" || n.Wait.Computed() {
			ends |= failures
		}
		if n.When != "" {
			ends |= skips
		}
		return ends
	case KindFail:
		return failures
	case KindSwitch:
		return successes | failures
	case KindScope:
		fails, succeeds := outcomes(0), successes
		if n.When != "" || n.Timeout != 0 {
			fails = failures
		}
		for _, i := range n.Body.Steps {
			fails |= may[i] & failures
			if may[i] == failures {
				succeeds = 0
			}
		}
		return fails | succeeds | skips
	}
	return successes | failures | skips
}

// reachable tells whether a step can run, and how it may end without having run.
func (n *Node) reachable(may []outcomes) (runs bool, otherwise outcomes) {
	for _, mix := range n.mixtures(may) {
		switch n.Rule.Decide(mix...) {
		case Run:
			runs = true
		case Skip:
			otherwise |= skips
		case Block:
			otherwise |= upstreamFailures
		}
	}
	if len(n.Catches) > 0 {
		return runs, otherwise | skips // nothing may have been caught
	}
	if n.Switch == None {
		return runs, otherwise
	}
	// A switch that did not succeed has chosen nothing.
	choosing := may[n.Switch]
	may[n.Switch] = successes
	runs = false
	for _, mix := range n.mixtures(may) {
		runs = runs || n.Rule.Decide(mix...) == Run
	}
	may[n.Switch] = choosing
	return runs, otherwise | skips
}

// mixtures gives one example of each set of states in which the steps that a step needs may end together: how many end in a way decides no
// rule.
func (n *Node) mixtures(may []outcomes) [][]State {
	sets := [everyOutcome + 1]bool{0: true}
	for _, i := range n.judged() {
		var more [everyOutcome + 1]bool
		for set, found := range sets {
			for _, s := range everyEnd {
				if found && may[i]&s.seen() != 0 {
					more[outcomes(set)|s.seen()] = true
				}
			}
		}
		sets = more
	}
	var all [][]State
	for set, found := range sets {
		if found {
			all = append(all, statesIn(outcomes(set)))
		}
	}
	return all
}

func statesIn(set outcomes) []State {
	var states []State
	for _, s := range everyEnd {
		if set&s.seen() != 0 {
			states = append(states, s)
		}
	}
	return states
}

// unreachable reports a step that can never run.
func (c *checker) unreachable(n *Node, at string, may []outcomes) {
	var how []string
	for _, i := range n.judged() {
		const few = 4
		if len(how) == few {
			how = append(how, "…")
			break
		}
		var states []string
		for _, s := range statesIn(may[i]) {
			states = append(states, string(s))
		}
		how = append(how, c.w.Nodes[i].Name+" ends "+listOf(states))
	}
	want := "a rule that can hold: nothing can reach this step, since " + strings.Join(how, ", ")
	if n.Switch != None {
		want += "; and its switch must succeed to choose it"
	}
	c.add(at+".rule", string(n.Rule), want)
}
