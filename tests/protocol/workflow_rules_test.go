package protocol_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
)

// ruled is a workflow whose step i ends as the i-th letter says, each known behind the one before, and a step of each rule behind all of them. What never runs
// waits for a step that ends in its place.
func ruled(ends string) (steps []reference.Step, order []string) {
	var parents []string
	for i, end := range ends {
		before, parent := fmt.Sprintf("s%d", i), fmt.Sprintf("x%d", i) // released in the order of their names
		switch end {
		case reference.Upstream:
			steps = append(steps, task(before, bad, ""), task(parent, good, "all_success", before))
		case reference.Skip:
			steps = append(steps, task(before, good, ""), task(parent, good, "one_failed", before))
		default:
			parent = before
			steps = append(steps, task(parent, end, ""))
		}
		parents, order = append(parents, parent), append(order, before)
	}
	for _, rule := range flow.Rules {
		steps = append(steps, task(string(rule), good, string(rule), parents...))
	}
	return steps, order
}

// sequences calls f with every sequence of up to n letters out of a set.
func sequences(set string, n int, f func(ends string)) {
	var more func(ends string)
	more = func(ends string) {
		if ends != "" {
			f(ends)
		}
		for _, c := range set {
			if len(ends) < n {
				more(ends + string(c))
			}
		}
	}
	more("")
}

// Scenario 23: each of the 12 rules over each of the 69 multisets of up to 4 ends, in each order in which these can come. Every step comes out as the
// evaluator says, and the run ends, by messages alone: no check is needed.
func TestW1_W2_W3_Scenario23_EveryRuleOverEveryEndInEveryOrder(t *testing.T) {
	multisets, looked := map[string]bool{}, 0
	sequences("SFUK", 4, func(ends string) {
		sorted := []rune(ends)
		slices.Sort(sorted)
		multisets[string(sorted)] = true
		looked++
		steps, order := ruled(ends)
		f := newFlowWorld(newWorld(t), steps)
		f.work()
		wrong := f.wrong()
		var came []string
		for _, c := range f.calls {
			if slices.Contains(order, c.step.Step) {
				came = append(came, c.step.Step)
			}
		}
		if len(wrong) > 0 {
			t.Errorf("%s, as %v came:\n%s", ends, came, strings.Join(wrong, "\n"))
		}
		if !slices.Equal(came, order) {
			t.Errorf("%s: the steps came as %v, want %v", ends, came, order)
		}
	})
	if len(multisets) != 69 || looked != 4+16+64+256 {
		t.Errorf("%d multisets, in %d orders, want 69 and 340", len(multisets), looked)
	}
}
