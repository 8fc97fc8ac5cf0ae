package model_test

import (
	"slices"
	"sync"
	"testing"
)

// strictPan is the checker of the model of a line that stands still, strict.pml.
var strictPan = sync.OnceValues(func() (string, error) { return build("strict.pml") })

// The bounds under which it is explored: two hands and one who opens or edits, and what each says.
var (
	strictRetry  = []string{"HANDS=1", "RUNS=3", "FAILS=1", "RETRIES=1"}
	strictBoth   = []string{"HANDS=1", "RUNS=2", "FAILS=2", "RETRIES=1", "OPENS=1"}
	strictEdit   = []string{"HANDS=1", "RUNS=3", "FAILS=1", "EDITS=1"}
	strictAnew   = []string{"HANDS=1", "RUNS=2", "FAILS=1", "EDITS=2", "OPERATORS=2"} // to another policy, and back
	strictPruned = []string{"HANDS=1", "RUNS=3", "FAILS=1", "PRUNES=1"}
	strictHands  = []string{"RUNS=2", "FAILS=1", "RETRIES=1"}
	strictOpen   = []string{"RUNS=2", "FAILS=1", "OPENS=1"}
	strictFaults = []string{"RUNS=2", "FAILS=1", "RETRIES=1", "FAULTS=1"}
	strictAll    = []string{"HANDS=1", "RUNS=3", "FAILS=2", "RETRIES=1", "OPENS=1"}
)

func TestG1_G2_G3_TheModelOfALineThatStandsStillKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Retry": strictRetry, "Both": strictBoth, "Edit": strictEdit, "Anew": strictAnew, "Pruned": strictPruned, "Hands": strictHands}
	if !testing.Short() {
		all["Open"], all["All"], all["Faults"] = strictOpen, strictAll, strictFaults
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, strictPan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfALineThatStandsStillTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"nosettle": strictEdit, "noopen": strictBoth, "nocas": strictAll, "noedit": strictEdit, "jobfirst": strictAnew, "forever": strictPruned}
	for rule, number := range plantedErrors(t, "strict.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = strictRetry
			}
			e := exploreBy(t, strictPan, slices.Concat([]string{"PLANTED=" + number}, within)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
