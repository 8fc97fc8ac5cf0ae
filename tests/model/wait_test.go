package model_test

import (
	"sync"
	"testing"
)

// waitPan is the checker of the model of a step that waits, wait.pml.
var waitPan = sync.OnceValues(func() (string, error) { return build("wait.pml") })

// The bounds under which a wait is explored, with two hands.
var (
	waitLost   = bound("UNTIL=1 LOSSES=1")  // it is over before the first regular check
	waitDeaths = bound("UNTIL=7 FAULTS=1")  // the run is quiet before it is over
	waitCancel = bound("UNTIL=9 CANCELS=1") // and is cancelled

	// What takes longer, in the deep suite.
	waitShort = bound("UNTIL=1 FAULTS=1 LOSSES=1")
	waitLong  = bound("UNTIL=7 FAULTS=1 LOSSES=1")

	waitStopped = bound("UNTIL=9 FAULTS=1 CANCELS=1") // where a rule is missed: too many states to see all of them
)

func TestP3_W1_W3_W4_TheModelOfAWaitKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Lost": waitLost}
	if !testing.Short() {
		all["Deaths"], all["Cancel"], all["Short"], all["Long"] = waitDeaths, waitCancel, waitShort, waitLong
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, waitPan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfAWaitTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"over": waitLost, "nochecked": waitStopped}
	for rule, number := range plantedErrors(t, "wait.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = waitDeaths
			}
			e := exploreBy(t, waitPan, append([]string{"PLANTED=" + number}, within...)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
