package sim

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/tests/process"
)

// ciSeeds are the worlds that are always the same. Each comes to its end in ciSteps, two thirds of them in half of that: else the judge
// would not see whether what was accepted has ended. They differ in pace, shape, faults and what their clients do; lines of the first stand still behind runs that ended badly, requests of the second bring policies of their own, and gates of the third bound how long runs wait, or let in by deadlines; jobs of the one before the last seven have deadlines, schedules of the two after it end after so many
// fires, and bad ends in a row pause jobs of the second; steps of the three before the last two wait, and scopes of the last two are stopped.
var ciSeeds = []uint64{65, 118, 127, 2, 4, 6, 8, 10, 12, 13, 17, 19, 23, 24, 33, 35, 36, 43, 45, 49, 82, 97, 100, 104, 109, 58, 47, 30, 88, 112, 34, 61}

// A world takes so many steps at the most. Where a seed was drawn, worlds from it on follow, until all together have taken ciSum.
const (
	ciSum   = 1_200_000
	ciSteps = 60_000
)

// TestP1_P2_P3_P4_P5_P6_P7_P8_P9_P10_P11_P12_Fault05_Fault07_Fault11_Fault12_Fault17_Simulation runs some worlds that are always the same,
// to their ends, and in make test-deep others as well. make sim runs thousands.
func TestP1_P2_P3_P4_P5_P6_P7_P8_P9_P10_P11_P12_Fault05_Fault07_Fault11_Fault12_Fault17_Simulation(t *testing.T) {
	worlds, ended, steps, simulated := 0, 0, uint64(0), time.Duration(0)
	run := func(seed uint64) bool {
		r := Run(t, Config{Seed: seed, Most: ciSteps})
		if len(r.Violations) > 0 {
			t.Error(Report(r, nil))
			mask, small := Shrink(t, r, nil, time.Now().Add(20*time.Second))
			t.Fatalf("shrunk from %d steps to %d:\n%s", r.Steps, small.Steps, Report(small, mask))
		}
		worlds, steps, simulated = worlds+1, steps+r.Steps, simulated+r.Simulated
		if r.Ended {
			ended++
		}
		return r.Ended
	}
	for _, seed := range ciSeeds {
		if !run(seed) {
			t.Errorf("seed %d did not come to its end in %d steps: take another one that does into ciSeeds", seed, ciSteps)
		}
	}
	for seed := process.Seed(t); process.Drawn() && steps < ciSum; seed++ {
		run(seed)
	}
	t.Logf("%d worlds, %d of them to their ends, %d steps, %s simulated", worlds, ended, steps, simulated.Round(time.Minute))
}
