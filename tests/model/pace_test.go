package model_test

import (
	"sync"
	"testing"
)

// pacePan is the checker of the model of places that lapse, pace.pml.
var pacePan = sync.OnceValues(func() (string, error) { return build("pace.pml") })

// The bounds under which the pace is explored.
var (
	paceOnce  = []string{"RUNS=3", "OUTAGES=1"}           // an outage while places wait
	paceMore  = []string{"RUNS=4", "OUTAGES=1"}           // and more runs
	paceTwice = []string{"RUNS=2", "OUTAGES=2"}           // two outages
	paceBusy  = []string{"RUNS=3", "OUTAGES=0", "BUSY=1"} // none, and a worker that comes late
	paceLong  = []string{"RUNS=3", "OUTAGES=2"}           // all that fits into memory
)

func TestP2_P3_P11_Fault17_TheModelOfThePaceKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Once": paceOnce, "More": paceMore, "Twice": paceTwice, "Busy": paceBusy}
	if !testing.Short() {
		all["Long"] = paceLong
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, pacePan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfThePaceTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"always": paceBusy}
	for rule, number := range plantedErrors(t, "pace.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = paceOnce
			}
			e := exploreBy(t, pacePan, append([]string{"PLANTED=" + number}, within...)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
