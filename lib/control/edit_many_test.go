package control_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
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

func every(d time.Duration) func(*job.Definition) {
	return func(def *job.Definition) { def.Schedule = &schedule.Spec{Every: schedule.Duration(d)} }
}

func batch(n int, change ...func(*job.Definition)) []control.Wanted {
	wanted := make([]control.Wanted, n)
	for i := range wanted {
		wanted[i] = control.Wanted{Name: fmt.Sprintf("job-%03d", i), Def: definition(change...)}
	}
	return wanted
}

// armed tells whether the job's first fire after its edit has its timer.
func (g *rig) armed(j job.Job) bool {
	g.t.Helper()
	next := g.NextRuns(j, 1)
	if len(next) == 0 {
		return false
	}
	nominal := next[0].UnixMilli()
	items, err := g.Store.Get(g.t.Context(), timer.NewFire(j.Tenant, j.Name, j.Generation, nominal, nominal).Key())
	if err != nil {
		g.t.Fatal(err)
	}
	return items[0].Exists()
}

func (g *rig) publish(ahead time.Duration) {
	g.t.Helper()
	items, err := g.Store.Get(g.t.Context(), timer.ShardKey(0))
	if err != nil {
		g.t.Fatal(err)
	}
	shard, err := timer.ShardFromItem(0, items[0])
	if err != nil {
		g.t.Fatal(err)
	}
	shard.Horizon = time.Now().Add(ahead).UnixMilli()
	op, err := shard.Put(1)
	if err == nil {
		_, err = g.Store.Write(g.t.Context(), op)
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// Each job of a batch is put as it would be alone, and says so.
func TestABatchOfJobsIsPutAsEachAloneWouldBe(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		wanted := batch(130, every(time.Hour))
		g.put("acme", "job-007", every(time.Hour))
		g.put("acme", "job-008", every(time.Minute))
		g.put("acme", "job-009", every(time.Minute))
		if err := g.Delete(t.Context(), "acme", "job-009", control.Match{}); err != nil {
			t.Fatal(err)
		}
		wanted[10].Name = "no name"
		wanted[11].Def.Timeout = -1
		wanted[12].Name = wanted[13].Name
		past := time.Now().Add(-time.Hour)
		wanted[14].Def.Schedule = &schedule.Spec{At: &past}
		wanted[15].Def.Schedule = nil
		time.Sleep(time.Second)
		for i, p := range g.PutMany(t.Context(), "acme", wanted) {
			want := map[int]control.Change{7: control.Unchanged, 8: control.Updated}[i]
			if want == 0 {
				want = control.Created
			}
			if bad := i == 10 || i == 11 || i == 13 || i == 14; bad {
				if p.Err == nil {
					t.Errorf("job %d was taken: %+v", i, p)
				}
				continue
			}
			if p.Err != nil || p.Change != want {
				t.Errorf("job %d: %s, %v, want %s", i, p.Change, p.Err, want)
				continue
			}
			j, err := g.Job(t.Context(), "acme", wanted[i].Name)
			if err != nil || j.Generation != p.Job.Generation || j.Version != p.Job.Version || j.ETag() != p.Job.ETag() {
				t.Errorf("job %d stands as %+v, %v, and the answer was %+v", i, j, err, p.Job)
			}
			if g.armed(j) != (i != 15) {
				t.Errorf("job %d: its first fire has a timer: %v", i, g.armed(j))
			}
		}
		if jobs, _, err := g.Jobs(t.Context(), "acme", control.JobFilter{}, "", 1000); err != nil || len(jobs) != 126 {
			t.Errorf("%d jobs are listed, %v, want 126", len(jobs), err)
		}
	})
}

// TestP8_ABatchClaimsWhatFiresInsideTheHorizon: the ticks have passed there, so whoever makes the job claims its fires.
func TestP8_ABatchClaimsWhatFiresInsideTheHorizon(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.publish(10 * time.Second)
		began := time.Now()
		for i, p := range g.PutMany(t.Context(), "acme", append(batch(60, every(2*time.Second)), control.Wanted{Name: "later", Def: definition(every(time.Hour))})) {
			if p.Err != nil {
				t.Fatalf("job %d: %v", i, p.Err)
			}
			for at := began.Truncate(2 * time.Second).Add(2 * time.Second); p.Job.Name != "later" && !at.After(began.Add(10*time.Second)); at = at.Add(2 * time.Second) {
				if r, err := g.Run(t.Context(), "acme", run.FireID(p.Job.Name, at.UnixMilli())); err != nil || r.State != run.Queued {
					t.Fatalf("the fire of %s at %s is %s, %v", p.Job.Name, at, r.State, err)
				}
			}
		}
	})
}

// TestP8_ABatchThatAnEditOvertakes: between the batch's write and its answer two of its jobs are replaced. What the answer says of the one
// that was to fire soon is settled, and the newer definition stands of both.
func TestP8_ABatchThatAnEditOvertakes(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.publish(10 * time.Second)
		wanted := batch(5, every(time.Hour))
		wanted[4].Def = definition(every(2 * time.Second))
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method == faulty.Get && slices.Contains(c.Keys, timer.ShardKey(0)) {
				g.hook = nil
				g.put("acme", "job-003", every(time.Minute))
				g.put("acme", "job-004", every(time.Minute))
			}
			return faulty.Fault{}
		}
		began := time.Now()
		for i, p := range g.PutMany(t.Context(), "acme", wanted) {
			if p.Err != nil || p.Change != control.Created {
				t.Errorf("job %d: %s, %v", i, p.Change, p.Err)
			}
		}
		for _, name := range []string{"job-003", "job-004"} {
			if j, err := g.Job(t.Context(), "acme", name); err != nil || j.Def.Schedule.Every.Std() != time.Minute || !g.armed(j) {
				t.Errorf("%s stands as %+v, %v", name, j.Def.Schedule, err)
			}
		}
		if runs := g.all("acme", control.RunFilter{Job: "job-004", To: began.Add(time.Minute)}); len(runs) != 0 {
			t.Errorf("%d runs of a definition that was replaced before it was answered", len(runs))
		}
	})
}

// Somebody makes one of the jobs between the batch's reads and its write: that one is edited, and no other suffers.
func TestABatchWithAJobThatWasMadeMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var writes atomic.Int64
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method == faulty.Write {
				if writes.Add(1) == 1 {
					g.put("acme", "job-003", every(time.Minute))
				}
			}
			return faulty.Fault{}
		}
		for i, p := range g.PutMany(t.Context(), "acme", batch(20, every(time.Hour))) {
			want := control.Created
			if i == 3 {
				want = control.Updated
			}
			if p.Err != nil || p.Change != want || !g.armed(p.Job) {
				t.Errorf("job %d: %s, %v, want %s", i, p.Change, p.Err, want)
			}
		}
	})
}

// TestP1_ABatchWhoseWriteIsUnknownIsNotRefused: what may have been done is not said to be refused, and the same batch finishes it.
func TestP1_ABatchWhoseWriteIsUnknownIsNotRefused(t *testing.T) {
	for name, fails := range map[string]func(faulty.Call) bool{
		"the write":       func(c faulty.Call) bool { return c.Method == faulty.Write },
		"the second look": func(c faulty.Call) bool { return c.Method == faulty.Get && slices.Contains(c.Keys, timer.ShardKey(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
					if !fails(c) {
						return faulty.Fault{}
					}
					if c.Method == faulty.Write {
						return faulty.Fault{Lose: store.ErrUnknown}
					}
					return faulty.Fault{Refuse: store.ErrThrottled}
				}
				for i, p := range g.PutMany(t.Context(), "acme", batch(10, every(time.Hour))) {
					if !errors.Is(p.Err, store.ErrUnknown) {
						t.Errorf("job %d: %v, want an outcome that is unknown", i, p.Err)
					}
				}
				g.hook = nil
				for i, p := range g.PutMany(t.Context(), "acme", batch(10, every(time.Hour))) {
					if p.Err != nil || p.Change != control.Unchanged || !g.armed(p.Job) {
						t.Errorf("job %d again: %s, %v", i, p.Change, p.Err)
					}
				}
			})
		})
	}
}
