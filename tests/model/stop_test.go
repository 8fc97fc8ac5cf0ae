package model_test

import (
	"sync"
	"testing"
)

// stopPan is the checker of the model of a scope that is stopped, stop.pml.
var stopPan = sync.OnceValues(func() (string, error) { return build("stop.pml") })

// The bounds under which a stop is explored, with two hands: what the last step of the scope is.
var (
	stopTask  = bound("KIND=0 FAULTS=1") // a task
	stopAsked = bound("KIND=1 FAULTS=1") // one that whoever asks it skips
	stopWait  = bound("KIND=2 FAULTS=1") // a wait that is not over before
)

func TestW1_W2_W3_W4_W5_TheModelOfAStopKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Asked": stopAsked, "Wait": stopWait}
	if !testing.Short() {
		all["Task"] = stopTask
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreBy(t, stopPan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestEachRuleOfAStopTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	bounds := map[string][]string{"noput": stopAsked, "leaves": stopWait}
	for rule, number := range plantedErrors(t, "stop.pml") {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			within := bounds[rule]
			if within == nil {
				within = stopTask
			}
			e := exploreBy(t, stopPan, append([]string{"PLANTED=" + number}, within...)...)
			if e.broken == "" {
				t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
			}
			t.Logf("breaks %s, found after %d states", e.broken, e.states)
		})
	}
}
