package control_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// TestP1_WhatIsThrottledWasNotDone lets the store refuse each of its calls in turn, and all that follow, while something is asked for.
// An error that says that nothing was done (throttled, or a refusal) leaves what a client can see as it was; else it must say that the
// outcome is unknown.
func TestP1_WhatIsThrottledWasNotDone(t *testing.T) {
	every := func(d *job.Definition) { d.Schedule = &schedule.Spec{Every: schedule.Duration(time.Second)} }
	body := control.Request{Key: "k", Delay: new(time.Second)}
	for name, ask := range map[string]func(ctx context.Context, g *rig) error{
		"put": func(ctx context.Context, g *rig) error {
			_, _, err := g.Put(ctx, "acme", "j", definition(func(d *job.Definition) { d.Description = "new" }), control.Match{})
			return err
		},
		"pause": func(ctx context.Context, g *rig) error {
			_, err := g.Pause(ctx, "acme", "j", "x", control.Match{})
			return err
		},
		"delete": func(ctx context.Context, g *rig) error { return g.Delete(ctx, "acme", "j", control.Match{}) },
		"trigger": func(ctx context.Context, g *rig) error {
			_, _, err := g.Trigger(ctx, "acme", "j", control.Request{})
			return err
		},
		"trigger with a key": func(ctx context.Context, g *rig) error { _, _, err := g.Trigger(ctx, "acme", "j", body); return err },
		"retry many": func(ctx context.Context, g *rig) error {
			_, err := g.RetryMany(ctx, "acme", control.RunFilter{Job: "failed"}, control.Bulk{}, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := 1
			if name == "retry many" {
				step = 23
			}
			for at := 1; ; at += step {
				var reached atomic.Bool
				inBubble(t, func(t *testing.T, g *rig) {
					g.put("acme", "j", every)
					g.put("acme", "failed")
					for n := range 120 { // more than a page of a bulk request
						if name == "retry many" {
							g.fail(g.trigger("acme", "failed", control.Request{Key: fmt.Sprint(n)}), "no")
						}
					}
					before := g.sight(t, body)
					var calls atomic.Int64 // listings read several partitions at once
					g.hook = func(context.Context, faulty.Call) faulty.Fault {
						if calls.Add(1) >= int64(at) {
							reached.Store(true)
							return faulty.Fault{Refuse: store.ErrThrottled}
						}
						return faulty.Fault{}
					}
					err := ask(t.Context(), g)
					g.hook = nil
					var refusal *control.Refusal
					if nothing := errors.Is(err, store.ErrThrottled) || errors.As(err, &refusal); !nothing {
						return
					}
					time.Sleep(5 * time.Minute)
					synctest.Wait()
					if after := g.sight(t, body); after != before {
						t.Errorf("throttled from call %d on, it said %q, and it was done: %s became %s", at, err, before, after)
					}
				})
				if !reached.Load() || t.Failed() {
					return
				}
			}
		})
	}
}

// sight is what a client can see: the job, how many runs wait to be made or stand, and what a key stands for.
func (g *rig) sight(t *testing.T, body control.Request) string {
	t.Helper()
	j, err := g.Job(t.Context(), "acme", "j")
	text := fmt.Sprintf("job %d %v", j.Generation, err)
	for _, name := range []string{"j", "failed"} {
		states := map[run.State]int{}
		for cursor := ""; ; {
			runs, next, err := g.Runs(t.Context(), "acme", control.RunFilter{Job: name}, cursor, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				if r.Trigger == run.ByRequest {
					states[r.State]++
				}
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		text += fmt.Sprintf(", %s %v", name, states)
	}
	items, err := g.Store.Get(t.Context(), store.Key{Partition: "idem#acme#" + body.Key, Sort: "-"})
	if err != nil {
		t.Fatal(err)
	}
	return text + fmt.Sprintf(", key used: %t", items[0].Exists())
}

// TestADeleteOfWhatIsNotThereIsNeverTold: while a delete that came too late is being settled, somebody makes the job anew. It was not
// deleted, and nobody says so.
func TestADeleteOfWhatIsNotThereIsNeverTold(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "j")
		if err := g.Delete(t.Context(), "acme", "j", control.Match{}); err != nil {
			t.Fatal(err)
		}
		made := false
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method == faulty.Get && c.Touches(func(k store.Key) bool { return k.Partition == "shard#00" }) && !made {
				made = true
				g.put("acme", "j")
			}
			return faulty.Fault{}
		}
		err := g.Delete(t.Context(), "acme", "j", control.Match{})
		g.hook = nil
		if _, there := g.Job(t.Context(), "acme", "j"); !made || there != nil {
			t.Fatalf("the job was not made anew meanwhile: %v", there)
		}
		refused(t, err, control.CodeJobNotFound)
	})
}

// TestP1_Fault01_AnEditIsDoneOnce: the answer to an edit's write is lost, and somebody edits the job before the write is tried again. What
// was asked for once is not done a second time, over the other's edit; whether it was done is not known.
func TestP1_Fault01_AnEditIsDoneOnce(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, g *rig, first job.Job) error{
		"put": func(ctx context.Context, g *rig, _ job.Job) error {
			_, _, err := g.Put(ctx, "acme", "j", definition(func(d *job.Definition) { d.Description = "mine" }), control.Match{})
			return err
		},
		"put, guarded": func(ctx context.Context, g *rig, first job.Job) error {
			_, _, err := g.Put(ctx, "acme", "j", definition(func(d *job.Definition) { d.Description = "mine" }), control.Match{ETag: first.ETag()})
			return err
		},
		"pause": func(ctx context.Context, g *rig, _ job.Job) error {
			_, err := g.Pause(ctx, "acme", "j", "x", control.Match{})
			return err
		},
		"delete": func(ctx context.Context, g *rig, _ job.Job) error { return g.Delete(ctx, "acme", "j", control.Match{}) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				first := g.put("acme", "j")
				var theirs job.Job
				writes := 0
				g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
					if c.Method != faulty.Write || !c.Touches(func(k store.Key) bool { return k.Sort == "j" }) {
						return faulty.Fault{}
					}
					switch writes++; writes {
					case 1:
						return faulty.Fault{Lose: store.ErrUnknown}
					case 2:
						theirs = g.put("acme", "j", func(d *job.Definition) { d.Description = "theirs" })
					}
					return faulty.Fault{}
				}
				err := ask(t.Context(), g, first)
				g.hook = nil
				if writes < 3 || !errors.Is(err, store.ErrUnknown) {
					t.Errorf("after %d writes: %v, want an unknown outcome", writes, err)
				}
				if j, err := g.Job(t.Context(), "acme", "j"); err != nil || j.Generation != theirs.Generation || j.Def.Description != "theirs" {
					t.Errorf("the other's edit was overwritten: %+v, %v", j, err)
				}
			})
		})
	}
}

// TestP1_Fault01_ARetryIsDoneOnce is the same of a run, which a worker has started in between.
func TestP1_Fault01_ARetryIsDoneOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "j")
		r := g.fail(g.trigger("acme", "j", control.Request{}), "no")
		writes := 0
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method != faulty.Write || !c.Touches(func(k store.Key) bool { return k == r.ID.Key("acme") }) {
				return faulty.Fault{}
			}
			switch writes++; writes {
			case 1:
				return faulty.Fault{Lose: store.ErrUnknown}
			case 2:
				g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
			}
			return faulty.Fault{}
		}
		_, err := g.Retry(t.Context(), "acme", r.ID, false, time.Time{})
		if writes < 3 || !errors.Is(err, store.ErrUnknown) {
			t.Errorf("after %d writes: %v, want an unknown outcome", writes, err)
		}
	})
}
