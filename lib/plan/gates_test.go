package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/plan"
)

// gated is a load of 100 runs a second of 2.04 s each, of which jobs pass two gates.
func gated() plan.Load {
	l := load()
	l.Schedules, l.Rate, l.Peak, l.AtOnce, l.Duration = 20_000, 100, 100, 0, 2*time.Second
	l.Gates = []plan.Gate{{Name: "stripe", Limit: 40}, {Name: "gpu", Limit: 8}}
	l.Passes = []plan.Pass{{Gate: "stripe", Share: 0.08, Units: 1}, {Gate: "stripe", Share: 0.02, Units: 2}, {Gate: "gpu", Share: 0.01, Units: 4}}
	return l
}

// The units of all jobs that name a gate are those in progress by Little's law, and the gate that is the fullest is told of first.
func TestJobsAreBoundedByTheirGates(t *testing.T) {
	p := made(t, gated())
	if len(p.Gates) != 2 || p.Gates[0].Name != "gpu" || p.Gates[1].Name != "stripe" {
		t.Fatalf("the gates are %+v", p.Gates)
	}
	for i, want := range []struct{ runs, units, utilization, reached float64 }{{1, 8.16, 1.02, 98.04}, {10, 24.48, 0.612, 163.4}} {
		g := p.Gates[i]
		near(t, g.Name+"'s runs", g.Runs, want.runs, 0.001)
		near(t, g.Name+"'s units", g.Units, want.units, 0.001)
		near(t, g.Name+"'s utilization", g.Utilization, want.utilization, 0.001)
		near(t, g.Name+"'s rate", g.Reached, want.reached, 0.001)
		if g.Late != (i == 0) || g.LastStart != 0 {
			t.Errorf("%s: late %v, the last after %g s", g.Name, g.Late, g.LastStart)
		}
	}
	var told []string
	for _, limit := range p.Limits {
		if limit.Of == plan.OfGate {
			told = append(told, fmt.Sprintf("%s, exceeded: %v", limit.Name, limit.Exceeds))
		}
	}
	if got := strings.Join(told, "; "); got != "the gate gpu: 8 units, always taken, exceeded: true; the gate stripe: 40 units, always taken, exceeded: false" {
		t.Errorf("the limits are %s", got)
	}
	plain := gated()
	plain.Gates, plain.Passes = nil, nil
	without := made(t, plain)
	near(t, "writes of a run", p.Table.WritesOfARun-without.Table.WritesOfARun, 0.11, 0.001) // one run in nine passes a gate
	near(t, "reads of a run", p.Table.ReadsOfARun-without.Table.ReadsOfARun, 0.11*3.5, 0.001)
	if without.Gates != nil {
		t.Errorf("without gates there are %+v", without.Gates)
	}
}

func TestAGateWithoutPassesIsPassedByAll(t *testing.T) {
	l := gated()
	l.Gates, l.Passes, l.Tenants = []plan.Gate{{Name: "all", Limit: 1000}}, nil, 4
	g := made(t, l).Gates[0]
	near(t, "a tenant's part of the runs", g.Runs, 25, 0.001)
	near(t, "its units", g.Units, 51, 0.001)
}

// What comes at a minute's first second is let in as the limit allows: 90 runs of a second each, ten at a time, take nine, and the last waits for eight.
func TestABurstDrainsThroughAGate(t *testing.T) {
	l := gated()
	l.Rate, l.Peak, l.AtOnce, l.Duration, l.Passes = 1.5, 1.5, 1, 960*time.Millisecond, nil
	l.Gates = []plan.Gate{{Name: "ten", Limit: 10}}
	g := made(t, l).Gates[0]
	near(t, "how long a run holds its unit", g.Held, 1, 0.001)
	near(t, "the last start", g.LastStart, 8, 0.001)
	if g.Late {
		t.Error("8 s are too late for 30")
	}
	l.Late = 5 * time.Second
	if g := made(t, l).Gates[0]; !g.Late {
		t.Error("8 s are in time for 5")
	}
	l.Late = time.Duration(g.LastStart*1e9) - 1 // what is left of a reckoning
	if g := made(t, l).Gates[0]; g.Late {
		t.Errorf("%.12f s are too late for %s", g.LastStart, l.Late)
	}
}

// A retry keeps its units while it waits for its next attempt.
func TestRetriesHoldTheirUnits(t *testing.T) {
	l := gated()
	before := made(t, l).Gates[0].Held
	l.Retries = 1
	if after := made(t, l).Gates[0].Held; after <= 2*before {
		t.Errorf("with a retry %g s, without one %g s", after, before)
	}
}

// One item is written by all who pass a gate, and bends on DynamoDB.
func TestAGateIsAHotKey(t *testing.T) {
	l := gated()
	l.Duration, l.Gates, l.Passes = 20*time.Millisecond, []plan.Gate{{Name: "hot", Limit: 1000}}, nil
	for _, key := range made(t, l).Table.Keys {
		if key.Key == "gate#TENANT#hot" {
			near(t, "its units", key.Units, 100, 0.001)
			if key.Reached > 1000 || key.Reached < 100 {
				t.Errorf("it bends at %g runs/s", key.Reached)
			}
			return
		}
	}
	t.Error("no key is the gate's")
}

func TestGatesThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*plan.Load){
		`--passes: got "strpe", want a gate that --gate gives, such as --gate strpe=10; did you mean "stripe"?`: func(l *plan.Load) { l.Passes[0].Gate = "strpe" },
		`--passes: got "gpu=1%x9", want 1 to 8 units, the limit of the gate gpu`:                                func(l *plan.Load) { l.Passes[2].Units = 9 },
		`--passes: got "stripe=95%x2", want 0.0001% of the runs or more, and at most 100% for all that pass`:    func(l *plan.Load) { l.Passes[1].Share = 0.95 },
		`--gate: got "gpu=0", want a limit from 1 to 1000`:                                                      func(l *plan.Load) { l.Gates[1].Limit = 0; l.Passes[2].Units = 1 },
		`--gate: got "stripe", want each gate once`:                                                             func(l *plan.Load) { l.Gates[1].Name = "stripe"; l.Passes = l.Passes[:2] },
		`--gate: got "job:a", want`: func(l *plan.Load) { l.Gates[1].Name = "job:a"; l.Passes = l.Passes[:2] },
	} {
		l := gated()
		change(&l)
		wrong := invalid.All(l.Check(plan.Typist(false)))
		if len(wrong) != 1 || !strings.HasPrefix(wrong[0].Error(), want) {
			t.Errorf("%v, want %s", wrong, want)
		}
	}
	for _, text := range []string{"stripe", "stripe=", "stripe=x", "stripe=1.5"} {
		if g, err := plan.ParseGate(text); err == nil {
			t.Errorf("--gate %s is %+v", text, g)
		}
	}
	for _, text := range []string{"stripe", "stripe=", "stripe=5%x", "stripe=5%x1.5", "stripe=-1"} {
		if p, err := plan.ParsePass(text); err == nil {
			t.Errorf("--passes %s is %+v", text, p)
		}
	}
	if p, err := plan.ParsePass("gpu=5%x2"); err != nil || p != (plan.Pass{Gate: "gpu", Share: 0.05, Units: 2}) {
		t.Errorf("gpu=5%%x2 is %+v, %v", p, err)
	}
}
