package model_test

import (
	"sync"
	"testing"
)

// chainPan is the checker of the model of two gates that runs pass one after the other, chain.pml.
var chainPan = sync.OnceValues(func() (string, error) { return build("chain.pml") })

// The bounds under which two gates are explored: two hands, room for one at each gate, and what each says.
var (
	chainTwo      = []string{"RUNS=2"}                                               // two runs that pass both
	chainOpened   = []string{"RUNS=2", "OPENINGS=1"}                                 // one is opened by hand
	chainReopened = []string{"RUNS=2", "OPENINGS=1", "CANCELS=1"}                    // and cancelled before
	chainFaults   = []string{"RUNS=2", "FAULTS=1"}                                   // a hand dies, or an answer is lost
	chainDies     = []string{"RUNS=2", "FAULTS=1", "CANCELS=1"}                      // and a run is cancelled
	chainAlone    = []string{"RUNS=3", "ALONE=1"}                                    // a third run passes the wide gate alone
	chainCancels  = []string{"RUNS=3", "ALONE=1", "CANCELS=1"}                       // and one is cancelled
	chainHeavy    = []string{"RUNS=3", "ALONE=2", "LIMIT2=2", "HEAVY=2"}             // a run takes two units of the wide gate, which has two
	chainDropped  = []string{"RUNS=3", "ALONE=2", "LIMIT2=2", "HEAVY=2", "FAULTS=1"} // and a hand dies
	chainAll      = []string{"RUNS=2", "FAULTS=1", "OPENINGS=1", "CANCELS=1"}
	chainThree    = []string{"RUNS=3", "ALONE=1", "OPENINGS=1"}
	chainDoubly   = []string{"RUNS=2", "OPENINGS=2", "CANCELS=1"}
)

func TestG1_G2_G3_G5_TheModelOfTwoGatesKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Two": chainTwo, "Opened": chainOpened, "Faults": chainFaults, "Alone": chainAlone, "Heavy": chainHeavy}
	if !testing.Short() {
		all["Reopened"], all["Dies"], all["Cancels"], all["Dropped"] = chainReopened, chainDies, chainCancels, chainDropped
		all["All"], all["Three"], all["Doubly"] = chainAll, chainThree, chainDoubly
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, chainPan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfTwoGatesTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"nowaiter": chainAlone, "reread": chainReopened, "onlynarrow": chainHeavy, "onlywhere": chainCancels, "light": chainDropped,
		"overtakes": chainHeavy, "headcount": chainHeavy, "nocheck": chainFaults}
	for rule, number := range plantedErrors(t, "chain.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = chainTwo
			}
			e := exploreBy(t, chainPan, append([]string{"PLANTED=" + number}, within...)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
