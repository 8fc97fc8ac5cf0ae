package model_test

import (
	"slices"
	"sync"
	"testing"
)

// linePan is the checker of the model of the line at a job's own gate, line.pml.
var linePan = sync.OnceValues(func() (string, error) { return build("line.pml") })

// The bounds under which the line is explored: two hands, one place, and what each says.
var (
	lineThree    = []string{"RUNS=3"}                            // three runs
	lineOpened   = []string{"RUNS=2", "OPENINGS=1"}              // a run is opened by hand
	lineCancels  = []string{"RUNS=2", "CANCELS=1"}               // one is cancelled
	lineFaults   = []string{"RUNS=2", "FAULTS=1"}                // a hand dies, or an answer is lost
	lineReopened = []string{"RUNS=2", "OPENINGS=1", "CANCELS=1"} // both of these
	lineAll      = []string{"RUNS=2", "FAULTS=1", "OPENINGS=1", "CANCELS=1"}
	lineFew      = []string{"RUNS=3", "CANCELS=1"}
	lineTwo      = []string{"RUNS=3", "LIMIT=2", "FAULTS=1"}
)

func TestG1_G2_G3_TheModelOfALineKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Three": lineThree, "Opened": lineOpened, "Cancels": lineCancels, "Faults": lineFaults, "Reopened": lineReopened}
	if !testing.Short() {
		all["All"], all["Few"], all["Two"] = lineAll, lineFew, lineTwo
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, linePan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfALineTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"nocheck": lineFaults, "nolook": lineFaults, "nowake": lineReopened, "late": lineReopened}
	for rule, number := range plantedErrors(t, "line.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = lineOpened
			}
			e := exploreBy(t, linePan, slices.Concat([]string{"PLANTED=" + number}, within)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
