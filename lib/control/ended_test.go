package control_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// Every way in which a request ends a run is counted, once.
func TestARunThatARequestEndsIsCountedOnce(t *testing.T) {
	later := time.Hour
	running := func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) }
	retrying := func(r run.Run, now int64) run.Run {
		return r.Fail(now, run.Failure{Error: "no", NextAt: now + time.Minute.Milliseconds()}, run.Limits{MaxFailures: 9, MaxCrashes: 3, Retention: time.Hour})
	}
	for name, way := range map[string]struct {
		ends  uint64 // as cancelled
		doing func(t *testing.T, g *rig)
	}{
		"cancelled while scheduled": {1, func(t *testing.T, g *rig) {
			g.mustCancel(g.trigger("default", "a", control.Request{Delay: new(later)}))
		}},
		"cancelled while queued": {1, func(t *testing.T, g *rig) {
			g.mustCancel(g.trigger("default", "a", control.Request{}))
		}},
		"cancelled while it waits for its next attempt": {1, func(t *testing.T, g *rig) {
			r := g.trigger("default", "a", control.Request{})
			g.write(r, running)
			g.write(r, retrying)
			g.mustCancel(r)
		}},
		"a cancel that was asked for twice": {1, func(t *testing.T, g *rig) {
			r := g.trigger("default", "a", control.Request{})
			g.mustCancel(r)
			_, err := g.Cancel(t.Context(), "default", r.ID, "")
			refused(t, err, control.CodeRunEnded)
		}},
		"a cancel whose answer was lost": {1, func(t *testing.T, g *rig) {
			r := g.trigger("default", "a", control.Request{})
			lost := false
			g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
				for _, op := range c.Ops {
					if op.Key == r.ID.Key("default") && !lost {
						lost = true
						return faulty.Fault{Lose: store.ErrUnknown}
					}
				}
				return faulty.Fault{}
			}
			g.mustCancel(r)
			if !lost {
				t.Error("no answer was lost")
			}
		}},
		"a cancel that the store refused": {0, func(t *testing.T, g *rig) {
			r := g.trigger("default", "a", control.Request{})
			g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
				for _, op := range c.Ops {
					if op.Key == r.ID.Key("default") {
						return faulty.Fault{Refuse: store.ErrThrottled}
					}
				}
				return faulty.Fault{}
			}
			if _, err := g.Cancel(t.Context(), "default", r.ID, ""); !errors.Is(err, store.ErrThrottled) {
				t.Errorf("cancel: %v, want it refused", err)
			}
		}},
		"a running one is only asked to stop": {0, func(t *testing.T, g *rig) {
			r := g.trigger("default", "a", control.Request{})
			g.write(r, running)
			g.mustCancel(r)
		}},
		"many at once": {3, func(t *testing.T, g *rig) {
			for range 3 {
				g.trigger("default", "a", control.Request{Delay: new(later)})
			}
			done, err := g.CancelMany(t.Context(), "default", control.RunFilter{Job: "a"}, control.Bulk{}, "")
			if err != nil || done.Count != 3 {
				t.Errorf("%d cancelled, %v; want 3", done.Count, err)
			}
		}},
		"a dry run of many": {0, func(t *testing.T, g *rig) {
			g.trigger("default", "a", control.Request{Delay: new(later)})
			if _, err := g.CancelMany(t.Context(), "default", control.RunFilter{Job: "a"}, control.Bulk{DryRun: true}, ""); err != nil {
				t.Error(err)
			}
		}},
		"its job is deleted, twice": {2, func(t *testing.T, g *rig) {
			g.trigger("default", "a", control.Request{Delay: new(later)})
			g.trigger("default", "a", control.Request{Delay: new(30 * time.Second)}) // it is sent already
			if err := g.Delete(t.Context(), "default", "a", control.Match{}); err != nil {
				t.Error(err)
			}
			refused(t, g.Delete(t.Context(), "default", "a", control.Match{}), control.CodeJobNotFound)
		}},
		"opened again and cancelled again": {2, func(t *testing.T, g *rig) {
			r := g.trigger("default", "a", control.Request{})
			g.mustCancel(r)
			if _, err := g.Retry(t.Context(), "default", r.ID, false, time.Time{}); err != nil {
				t.Error(err)
			}
			g.mustCancel(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.put("default", "a", func(d *job.Definition) { d.Retry.MaxAttempts = 9 })
				way.doing(t, g)
				g.hook = nil
				for _, s := range run.States() {
					want := uint64(0)
					if s == run.Cancelled {
						want = way.ends
					}
					if got := g.Dispatch.Metrics.Runs.Value(s.String()); s.Ended() && got != want {
						t.Errorf("%d counted as %s, want %d", got, s, want)
					}
				}
			})
		})
	}
}

func (g *rig) mustCancel(r run.Run) {
	g.t.Helper()
	if _, err := g.Cancel(g.t.Context(), r.Tenant, r.ID, ""); err != nil {
		g.t.Fatal(err)
	}
}
