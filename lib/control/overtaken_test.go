package control_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// TestP4_AHorizonThatMovesDuringAnEdit: a tick publishes a further horizon and passes over the place of the edit's last timer just before
// that stands. The answer says that the job fires, so its fires have their runs, and the next timer is ahead of the ticks.
func TestP4_AHorizonThatMovesDuringAnEdit(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		passes := 0
		pass := func(ahead time.Duration) { // what a tick does that finds no timer
			items, err := g.Store.Get(t.Context(), timer.ShardKey(0))
			if err != nil {
				t.Fatal(err)
			}
			shard, err := timer.ShardFromItem(0, items[0])
			if err != nil {
				t.Fatal(err)
			}
			shard.Horizon = time.Now().Add(ahead).UnixMilli()
			shard.Watermark = shard.Horizon
			op, err := shard.Put(1)
			if err == nil {
				_, err = g.Store.Write(t.Context(), op)
			}
			if err != nil {
				t.Fatal(err)
			}
			passes++
		}
		pass(20 * time.Second)
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			for _, op := range c.Ops {
				// The first time that a timer is put by itself: the successor.
				if len(c.Ops) == 1 && op.Kind == store.Put && op.If == store.Absent && strings.HasPrefix(op.Key.Partition, "due#") && passes < 3 {
					pass(time.Duration(20*(passes+1)) * time.Second)
				}
			}
			return faulty.Fault{}
		}
		began := time.Now()
		j, _, err := g.Put(t.Context(), "acme", "often", definition(func(d *job.Definition) {
			d.Schedule = &schedule.Spec{Every: schedule.Duration(2 * time.Second)}
		}), control.Match{})
		if err != nil {
			t.Fatal(err)
		}
		if passes != 3 {
			t.Errorf("the horizon moved %d times", passes)
		}
		horizon := began.Add(60 * time.Second)
		for at := began.Truncate(2 * time.Second).Add(2 * time.Second); !at.After(horizon); at = at.Add(2 * time.Second) {
			if r, err := g.Run(t.Context(), "acme", run.FireID("often", at.UnixMilli())); err != nil || r.State != run.Queued {
				t.Errorf("the fire of %s is %s, %v", at, r.State, err)
			}
		}
		next := horizon.Truncate(2 * time.Second).Add(2 * time.Second).UnixMilli()
		items, err := g.Store.Get(t.Context(), timer.NewFire("acme", "often", j.Generation, next, next).Key())
		if err != nil || !items[0].Exists() {
			t.Errorf("no timer stands ahead of the ticks: %v", err)
		}
	})
}

// TestP8_AnEditThatADeleteOvertakes: between an edit's write and its answer the job is deleted. The answer tells of the job as the edit
// left it, and not of a tombstone.
func TestP8_AnEditThatADeleteOvertakes(t *testing.T) {
	for name, edit := range map[string]func(g *rig) (job.Job, error){
		"resume": func(g *rig) (job.Job, error) { return g.Resume(t.Context(), "acme", "report", control.Match{}) },
		"put": func(g *rig) (job.Job, error) {
			j, _, err := g.Put(t.Context(), "acme", "report", definition(func(d *job.Definition) { d.Description = "another" }), control.Match{})
			return j, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				if _, _, err := g.Put(t.Context(), "acme", "report", definition(func(d *job.Definition) { d.Paused = true }), control.Match{}); err != nil {
					t.Fatal(err)
				}
				g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
					if c.Method == faulty.Get && c.Touches(func(k store.Key) bool { return k == timer.ShardKey(0) }) {
						if items, err := g.Store.Get(context.Background(), job.Key("acme", "report")); err == nil && items[0].Version == 2 {
							g.hook = nil // the edit is written, and looks at the horizon
							if err := g.Delete(context.Background(), "acme", "report", control.Match{}); err != nil {
								t.Errorf("delete: %v", err)
							}
						}
					}
					return faulty.Fault{}
				}
				j, err := edit(g)
				if err != nil || j.Deleted || j.Def.Target.Handler == nil && j.Def.Target.HTTP == nil && j.Def.Target.Exec == nil {
					t.Errorf("answered %+v, %v, want the job as the edit left it", j, err)
				}
			})
		})
	}
}
