package budget_test

import (
	"context"
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
			synctest.Test(t, func(t *testing.T) {
				m := &meter{Store: memory.New(memory.Config{})}
				n := open(t, m, ok)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- n.Run(ctx) }()
				time.Sleep(2 * time.Second)
				def := job.Definition{Target: target.Spec{Workflow: []byte(`{"steps": {` + c.workflow + `}}`)}}
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
				steps := float64(runs * c.steps)
				t.Logf("%s: %.2f write units and %.2f read units a step", c.name, m.writes/steps, m.reads/steps)
				if want := float64(ofARun + ofAStep*c.steps); m.writes/runs > want {
					t.Errorf("%.2f write units a run, want at most %.0f: %d of its own, and %d for each of %d steps", m.writes/runs, want, ofARun, ofAStep, c.steps)
				}
				if m.reads/steps > c.reads {
					t.Errorf("%.2f read units a step, want at most %.2f", m.reads/steps, c.reads)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
