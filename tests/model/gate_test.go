package model_test

import (
	"slices"
	"sync"
	"testing"
)

// gatePan is the checker of the model of a job's own gate, gate.pml.
var gatePan = sync.OnceValues(func() (string, error) { return build("gate.pml") })

// The bounds under which the gate is explored: two workers, one place, and what each says.
var (
	gateOpened   = []string{"RUNS=2", "OPENINGS=1"}                         // a run is opened by hand
	gateRetries  = []string{"RUNS=2", "AGAIN=1"}                            // an attempt is tried again, or its lease runs out
	gateThree    = []string{"RUNS=3"}                                       // three runs
	gateEdited   = []string{"RUNS=2", "EDITS=1"}                            // an edit takes claims away, and gives them again
	gateAll      = []string{"RUNS=2", "AGAIN=1", "OPENINGS=1", "CANCELS=1"} // all but the edit
	gateTwice    = []string{"RUNS=2", "OPENINGS=2"}                         // two openings by hand
	gateTwo      = []string{"RUNS=3", "LIMIT=2"}                            // three runs, and room for two
	gateNarrowed = []string{"RUNS=2", "EDITS=1", "LIMIT=2", "LIMIT2=1"}     // an edit lowers the limit
	gateCancels  = []string{"RUNS=2", "EDITS=1", "CANCELS=1"}               // an edit and a cancel

	gateReopened = []string{"RUNS=2", "EDITS=1", "CANCELS=1", "OPENINGS=1"} // where a rule is missed: too many states to see all of them
)

func TestG1_G4_TheModelOfAGateKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Opened": gateOpened, "Retries": gateRetries}
	if !testing.Short() {
		all["Three"], all["Edited"] = gateThree, gateEdited
		all["All"], all["Twice"], all["Two"], all["Narrowed"], all["Cancels"] = gateAll, gateTwice, gateTwo, gateNarrowed, gateCancels
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, gatePan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfAGateTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"nogen": gateEdited, "overskip": gateEdited, "byorder": gateReopened, "retriesgo": slices.Concat(gateOpened, gateRetries)}
	for rule, number := range plantedErrors(t, "gate.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = gateOpened
			}
			e := exploreBy(t, gatePan, append([]string{"PLANTED=" + number}, within...)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
