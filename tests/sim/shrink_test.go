package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestShrink: what a broken promise does not need is switched off, and what it needs stays. Each world is one whose violations are known.
func TestShrink(t *testing.T) {
	t.Parallel()
	tried := 0
	for seed := range uint64(200) {
		drawn := Draw(seed)
		if drawn.Faults.Lost == 0 || len(drawn.Clients) < 3 || drawn.Names < 5 {
			continue
		}
		tried++
		world := func(mask Mask, _ uint64) (Result, bool) {
			m := drawn.without(mask)
			r := Result{Seed: seed, Mix: m, Steps: uint64(m.Length / time.Second)}
			switch {
			case m.Faults.Lost > 0 && !m.Clients[1].Off && m.Names >= 3 && m.Length >= 90*time.Second:
				r.Violations = []string{"P2: lost"}
			case m.Faults.Lost > 0: // another promise is another matter
				r.Violations = []string{"P8: started"}
			}
			return r, true
		}
		failed, _ := world(nil, 0)
		mask, small := simplest(failed, nil, world)
		if got := small.Violations; len(got) != 1 || got[0] != "P2: lost" {
			t.Fatalf("seed %d was shrunk to a world that breaks %q, under %s", seed, got, mask)
		}
		if again, _ := world(mask, 0); again.Mix.String() != small.Mix.String() {
			t.Fatalf("seed %d under %s is another world than the one that was found:\n%s\n%s", seed, mask, again.Mix, small.Mix)
		}
		for _, s := range small.Mix.switches() {
			if needed := s.name == "lost" || s.name == "client1"; s.on != needed {
				t.Errorf("seed %d: %s is %t in the simplest world", seed, s.name, s.on)
			}
		}
		if small.Mix.Names >= 6 || small.Mix.Length >= 3*time.Minute {
			t.Errorf("seed %d is left with %d names and %s", seed, small.Mix.Names, small.Mix.Length)
		}
		if report := Report(small, mask); !strings.Contains(report, fmt.Sprintf("make sim SEED=%d WITHOUT=%s\n", seed, mask)) || !strings.Contains(report, "P2: lost") {
			t.Errorf("seed %d: the report does not say how to see it:\n%s", seed, report)
		}
	}
	if tried < 10 {
		t.Errorf("only %d worlds were shrunk", tried)
	}
}

// TestShrinkEnds: what was found by then is given when there is no more time.
func TestShrinkEnds(t *testing.T) {
	t.Parallel()
	failed := Result{Mix: Draw(1), Steps: 100, Violations: []string{"P2: lost"}}
	calls := 0
	mask, small := simplest(failed, nil, func(mask Mask, most uint64) (Result, bool) {
		calls++
		if most > failed.Steps+lookEvery {
			t.Errorf("a world of %d steps may take %d", failed.Steps, most)
		}
		return Result{Mix: Draw(1).without(mask), Steps: 50, Violations: failed.Violations}, calls <= 3
	})
	if len(mask) == 0 || len(mask) > 3 || small.Steps != 50 {
		t.Errorf("three tries gave %q and %d steps", mask, small.Steps)
	}
}
