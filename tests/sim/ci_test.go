package sim

import (
	"testing"
	"time"
)

// The worlds of CI take so many steps together, some 30 s of one processor, and each so many at the most. On a busy machine they end
// when their time is over.
const (
	ciSum   = 1_200_000
	ciSteps = 60_000
	ciTime  = 2 * time.Minute
)

// TestP1_P2_P3_P4_P5_P6_P7_P8_P9_P10_P11_P12_Fault05_Fault07_Fault11_Fault12_Fault17_Simulation runs some worlds that are always the same,
// and others that are new each day. make sim runs thousands.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_P10_P11_P12_Fault05_Fault07_Fault11_Fault12_Fault17_Simulation(t *testing.T) {
	end := time.Now().Add(ciTime)
	worlds, steps, simulated := 0, uint64(0), time.Duration(0)
	run := func(seed uint64) bool {
		if steps > ciSum || time.Now().After(end) {
			return false
		}
		r := Run(t, Config{Seed: seed, Most: ciSteps})
		worlds, steps, simulated = worlds+1, steps+r.Steps, simulated+r.Simulated
		if len(r.Violations) > 0 {
			t.Error(Report(r, nil))
			mask, small := Shrink(t, r, nil, time.Now().Add(20*time.Second))
			t.Fatalf("shrunk from %d steps to %d:\n%s", r.Steps, small.Steps, Report(small, mask))
		}
		return true
	}
	for seed := range uint64(20) {
		run(seed + 1)
	}
	today := uint64(time.Now().Unix()/86_400) * 100_000
	for seed := today; run(seed); seed++ {
	}
	t.Logf("%d worlds, %d steps, %s simulated", worlds, steps, simulated.Round(time.Minute))
}
