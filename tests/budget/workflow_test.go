package budget_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// chain is a workflow of so many steps, each behind the one before.
func chain(steps int) string {
	texts := make([]string, steps)
	for i := range texts {
		texts[i] = fmt.Sprintf(`"s%03d": {"handler": {"name": "h"}}`, i)
		if i > 0 {
			texts[i] = fmt.Sprintf(`"s%03d": {"needs": ["s%03d"], "handler": {"name": "h"}}`, i, i-1)
		}
	}
	return strings.Join(texts, ",")
}

// fan is a workflow of so many steps at once, and one behind all of them.
func fan(steps int) string {
	texts, names := make([]string, steps-1), make([]string, steps-1)
	for i := range texts {
		texts[i] = fmt.Sprintf(`"s%03d": {"handler": {"name": "h"}}`, i)
		names[i] = fmt.Sprintf(`"s%03d"`, i)
	}
	return strings.Join(append(texts, `"z": {"needs": [`+strings.Join(names, ",")+`], "handler": {"name": "h"}}`), ",")
}

// A step costs three writes, and its run four beside them, to the unit. It costs little more than two reads, which are of its run, however many steps are before
// it or beside it.
func TestAStepKeepsToItsBudget(t *testing.T) {
	ok := func(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil }
	const runs, ofARun, ofAStep = 20, 4, 3
	for _, c := range []struct {
		name     string
		steps    int
		workflow string
		reads    float64 // a step, at most, the run's own share included
	}{
		{"ChainOfTen", 10, chain(10), 2.35},
		{"ChainOfAHundred", 100, chain(100), 2.1},
		{"FanOfAHundred", 100, fan(100), 4}, // by chance each that ends reads all others
	} {
		t.Run(c.name, func(t *testing.T) {
			writes, reads := unitsOf(t, c.workflow, runs, ok)
			steps := float64(runs * c.steps)
			t.Logf("%s: %.2f write units and %.2f read units a step", c.name, writes/steps, reads/steps)
			if want := float64(ofARun + ofAStep*c.steps); writes/runs > want {
				t.Errorf("%.2f write units a run, want at most %.0f: %d of its own, and %d for each of %d steps", writes/runs, want, ofARun, ofAStep, c.steps)
			}
			if reads/steps > c.reads {
				t.Errorf("%.2f read units a step, want at most %.2f", reads/steps, c.reads)
			}
		})
	}
}

// unitsOf gives what so many runs of a workflow cost, whose tasks call a handler.
func unitsOf(t *testing.T, workflow string, runs int, handler target.Func) (writes, reads float64) {
	synctest.Test(t, func(t *testing.T) {
		m := &meter{Store: memory.New(memory.Config{})}
		n := open(t, m, handler)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		time.Sleep(2 * time.Second)
		def := job.Definition{Target: target.Spec{Workflow: []byte(`{"steps": {` + workflow + `}}`)}}
		if _, _, err := n.Control.Put(ctx, "default", "flow", def, control.Match{}); err != nil {
			t.Fatal(err)
		}
		m.writes, m.reads = 0, 0
		for range runs {
			if _, _, err := n.Control.Trigger(ctx, "default", "flow", control.Request{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Minute)
		writes, reads = m.writes, m.reads
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return writes, reads
}

// A failure that is caught costs what one costs that is allowed: nothing beside the two steps.
func TestACaughtFailureCostsNothing(t *testing.T) {
	const runs = 20
	fails := func(_ context.Context, c target.Call) (target.Result, error) {
		if strings.HasSuffix(c.Run, "/a") {
			return target.Result{}, target.Permanent(errors.New("no"))
		}
		return target.Result{}, nil
	}
	writes, reads := unitsOf(t, `"a": {"handler": {"name": "h"}, "allow_failure": true}, "b": {"needs": ["a"], "handler": {"name": "h"}}`, runs, fails)
	caughtWrites, caughtReads := unitsOf(t, `"a": {"handler": {"name": "h"}, "catch": [{"codes": ["handler"], "to": "b"}]}, "b": {"handler": {"name": "h"}}`, runs, fails)
	t.Logf("allowed: %.2f write units and %.2f read units a run; caught: %.2f and %.2f", writes/runs, reads/runs, caughtWrites/runs, caughtReads/runs)
	if caughtWrites != writes || caughtReads > reads {
		t.Errorf("caught: %.2f write units and %.2f read units a run, want %.2f and %.2f", caughtWrites/runs, caughtReads/runs, writes/runs, reads/runs)
	}
}
