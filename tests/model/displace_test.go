package model_test

import (
	"slices"
	"sync"
	"testing"
)

// displacePan is the checker of the model of runs that make others give way, displace.pml.
var displacePan = sync.OnceValues(func() (string, error) { return build("displace.pml") })

// The bounds under which it is explored: two hands, and what each says. Where none says REPLACES, the policy is cancel.
var (
	displaceThree    = []string{"RUNS=3", "STUBBORN=1"} // three runs, which end when they are asked to
	displaceShort    = []string{"RUNS=3"}               // they end by themselves, or fail
	displaceFaults   = []string{"RUNS=2", "FAULTS=1", "STUBBORN=1"}
	displaceCancels  = []string{"RUNS=3", "CANCELS=1", "STUBBORN=1"} // somebody cancels one
	displaceTwo      = []string{"RUNS=3", "LIMIT=2"}                 // two may be in progress
	displaceReplace  = []string{"RUNS=3", "REPLACES=1"}
	displaceReplaced = []string{"RUNS=3", "REPLACES=1", "FAULTS=1"}
	displaceBoth     = []string{"RUNS=3", "REPLACES=1", "LIMIT=2"}
	displaceAll      = []string{"RUNS=2", "FAULTS=1", "CANCELS=1", "STUBBORN=1"} // of three runs there are too many states to see all of them
)

func TestG1_G2_G4_TheModelOfRunsThatGiveWayKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Three": displaceThree, "Faults": displaceFaults, "Replace": displaceReplace, "Both": displaceBoth}
	if !testing.Short() {
		all["Short"], all["Cancels"] = displaceShort, displaceCancels
		all["Two"], all["Replaced"], all["All"] = displaceTwo, displaceReplaced, displaceAll
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, displacePan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfRunsThatGiveWayTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"noreask": displaceFaults, "apart": displaceReplaced, "unfenced": displaceReplace, "unseen": displaceReplace, "follows": displaceShort, "wrongone": displaceTwo,
		"nolater": displaceReplace, "untied": displaceCancels}
	for rule, number := range plantedErrors(t, "displace.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = displaceThree
			}
			e := exploreBy(t, displacePan, slices.Concat([]string{"PLANTED=" + number}, within)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
