package budget_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A run that waits is looked at once a day: a month of it costs some thirty writes. The wait itself is three at the most. A look reads all steps twice: before it is written
// when the next one comes, and behind that. A sweep reads them once more.
func TestAMonthOfWaiting(t *testing.T) {
	ok := func(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil }
	const ofARun, ofAStep, ofAWait = 4, 3, 3
	days := 30
	if testing.Short() {
		days = 6
	}
	for _, c := range []struct {
		name, wait string
		lasts      time.Duration
		checks     float64 // of the run, at most
		reads      int     // of its steps, at most
	}{
		{"TenSeconds", "10s", 10 * time.Second, 1, 6},
		{"FiveMinutes", "5m", 5 * time.Minute, 2, 7},
		{"AnHour", "1h", time.Hour, 2, 7},
		{"AMonth", fmt.Sprint(days, "d"), time.Duration(days) * 24 * time.Hour, float64(days + 4), 3*days + 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &meter{Store: memory.New(memory.Config{})}
				n := open(t, m, ok, func(cfg *node.Config) {
					if c.lasts > time.Hour { // as where processes share a store
						cfg.Every, cfg.LookAhead = time.Minute, node.SharedLookAhead
					}
				})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- n.Run(ctx) }()
				time.Sleep(2 * time.Second)
				def := job.Definition{Target: target.Spec{Workflow: []byte(`{"timeout": "60d", "steps": {"a": {"handler": {"name": "h"}},
					"w": {"needs": ["a"], "wait": {"for": "` + c.wait + `"}}, "b": {"needs": ["w"], "handler": {"name": "h"}}}}`)}}
				if _, _, err := n.Control.Put(ctx, "default", "flow", def, control.Match{}); err != nil {
					t.Fatal(err)
				}
				m.writes, m.reads, m.steps = 0, 0, 0
				r, _, err := n.Control.Trigger(ctx, "default", "flow", control.Request{})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.lasts + 4*time.Minute)
				if r, err = n.Control.Run(ctx, "default", r.ID); err != nil || !r.State.Ended() {
					t.Fatalf("the run is %s: %v", r.State, err)
				}
				t.Logf("%s: %.0f write units and %.1f read units; its steps were read %d times", c.name, m.writes, m.reads, m.steps)
				if most := ofARun + 2*ofAStep + ofAWait + c.checks; m.writes > most {
					t.Errorf("%.0f write units, want at most %.0f", m.writes, most)
				}
				if m.steps > c.reads {
					t.Errorf("its steps were read %d times, want at most %d", m.steps, c.reads)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
