package control_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func (g *rig) many(tenant string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("job-%02d", i))
		g.put(tenant, names[i])
	}
	return names
}

// writesJob tells whether a call writes the record of a job.
func writesJob(c faulty.Call, name string) bool {
	return len(c.Ops) > 0 && c.Touches(func(k store.Key) bool { return strings.HasPrefix(k.Partition, "job#") && k.Sort == name })
}

// The answer to a write is lost: the job is paused, and its verdict says that nobody knows. The same request again finds it paused, and an undo that
// goes by the verdicts leaves it so.
func TestAPauseOfManyIsRepeatedBehindALostAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		names := g.many("acme", 20)
		g.put("other", "job-03")
		lost := map[string]bool{names[3]: true, names[17]: true}
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			for name := range lost {
				if writesJob(c, name) {
					return faulty.Fault{Lose: store.ErrUnknown}
				}
			}
			return faulty.Fault{}
		}
		out, err := g.PauseMany(t.Context(), "acme", control.JobFilter{}, control.JobBulk{}, "r")
		if err != nil || out.Count != 18 || len(out.Verdicts) != 20 || out.Next != "" {
			t.Fatalf("%d of %d are paused, %v", out.Count, len(out.Verdicts), err)
		}
		var undo []control.Seen
		for i, v := range out.Verdicts {
			if v.Name != names[i] || (v.Err != nil) != lost[v.Name] || v.Changed == lost[v.Name] {
				t.Errorf("verdict %d: %s changed %v, %v", i, v.Name, v.Changed, v.Err)
			}
			if v.Changed {
				undo = append(undo, control.Seen{Name: v.Name, ETag: v.Job.ETag()})
			}
		}
		g.hook = nil
		again, err := g.PauseMany(t.Context(), "acme", control.JobFilter{}, control.JobBulk{}, "other")
		if err != nil || again.Count != 0 {
			t.Errorf("again: %d are paused, %v; want that all were", again.Count, err)
		}
		back, err := g.ResumeMany(t.Context(), "acme", control.JobFilter{}, control.JobBulk{Jobs: undo})
		if err != nil || back.Count != 18 {
			t.Errorf("the undo resumes %d, %v", back.Count, err)
		}
		for _, name := range names {
			if j, err := g.Job(t.Context(), "acme", name); err != nil || j.Def.Paused != lost[name] || lost[name] && j.Reason != "r" {
				t.Errorf("%s is paused: %v, %q, %v", name, j.Def.Paused, j.Reason, err)
			}
		}
		if j, err := g.Job(t.Context(), "other", "job-03"); err != nil || j.Def.Paused {
			t.Errorf("a job of another tenant is paused: %v, %v", j.Def.Paused, err)
		}
	})
}

// A store that is slow ends a request in its time: what it has not come to is told, and done by the next ones. None is done twice.
func TestManyJobsOnASlowStoreGoOnWhereTheyStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		names := g.many("acme", 40)
		g.hook = func(ctx context.Context, c faulty.Call) faulty.Fault {
			for _, name := range names {
				if writesJob(c, name) {
					select {
					case <-time.After(10 * time.Second):
					case <-ctx.Done():
					}
				}
			}
			return faulty.Fault{}
		}
		var all []control.Seen
		for _, name := range names {
			all = append(all, control.Seen{Name: name})
		}
		for _, by := range []string{"name", "filter"} {
			asked, requests, changed := control.JobBulk{}, 0, map[string]int{}
			if by == "name" {
				asked.Jobs = all
			}
			for {
				began := time.Now()
				var out control.JobOutcome
				var err error
				if by == "name" {
					out, err = g.PauseMany(t.Context(), "acme", control.JobFilter{}, asked, "slow")
				} else {
					out, err = g.DeleteMany(t.Context(), "acme", control.JobFilter{}, asked)
				}
				if took := time.Since(began); err != nil || took > control.BulkTime+30*time.Second {
					t.Fatalf("a request by %s took %s, %v", by, took, err)
				}
				requests++
				for _, v := range out.Verdicts {
					if v.Changed {
						changed[v.Name]++
					}
				}
				if asked.Jobs, asked.Cursor = out.Remaining, out.Next; len(out.Remaining) == 0 && out.Next == "" {
					break
				}
			}
			if requests < 2 || len(changed) != len(names) {
				t.Errorf("by %s: %d jobs in %d requests, want all of them in several", by, len(changed), requests)
			}
			for name, n := range changed {
				if n != 1 {
					t.Errorf("%s was changed %d times", name, n)
				}
			}
		}
	})
}

// While the first are deleted somebody takes the label off a later one: it no longer matches, and stays.
func TestAJobThatNoLongerMatchesIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var names []string
		for i := range 30 {
			names = append(names, fmt.Sprintf("job-%02d", i))
			g.put("acme", names[i], func(d *job.Definition) { d.Labels = map[string]string{"team": "a"} })
		}
		var once sync.Once
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if writesJob(c, names[0]) {
				once.Do(func() { g.put("acme", names[25]) })
			}
			return faulty.Fault{}
		}
		out, err := g.DeleteMany(t.Context(), "acme", control.JobFilter{Labels: map[string]string{"team": "a"}}, control.JobBulk{})
		if err != nil || out.Count != 29 || len(out.Verdicts) != 30 {
			t.Fatalf("%d of %d were deleted, %v", out.Count, len(out.Verdicts), err)
		}
		refused(t, out.Verdicts[25].Err, control.CodeStale)
		if _, err := g.Job(t.Context(), "acme", names[25]); err != nil {
			t.Errorf("the one that no longer matches: %v", err)
		}
	})
}

// A rate is kept among what is done alone, and ends with the time of a request: what it has not come to by then is left.
func TestARateIsKeptWithinTheTimeOfARequest(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		names := g.many("acme", 5)
		var runs []run.ID
		var asked []control.Seen
		for i, name := range names {
			asked = append(asked, control.Seen{Name: name})
			if i == 1 {
				continue // stays as it is, and takes no time
			}
			if _, err := g.Pause(t.Context(), "acme", name, "", control.Match{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			r, _, err := g.Trigger(t.Context(), "acme", names[1], control.Request{})
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r.ID)
		}
		began := time.Now()
		out, err := g.ResumeMany(t.Context(), "acme", control.JobFilter{}, control.JobBulk{Jobs: asked, PerSecond: 0.1})
		if took := time.Since(began); err != nil || out.Count != 2 || len(out.Verdicts) != 3 || len(out.Remaining) != 2 || took != 20*time.Second {
			t.Errorf("%d of %d jobs are resumed in %s and %d remain, %v; want 2 of 3 at 0 and 10 s, and nothing once the time is over", out.Count, len(out.Verdicts), took, len(out.Remaining), err)
		}
		began = time.Now()
		cancelled, err := g.CancelMany(t.Context(), "acme", control.RunFilter{}, control.Bulk{Runs: runs, PerSecond: 0.1}, "")
		if took := time.Since(began); err != nil || cancelled.Count != 2 || len(cancelled.Remaining) != 1 || took != 20*time.Second {
			t.Errorf("%d runs are cancelled in %s and %d remain, %v", cancelled.Count, took, len(cancelled.Remaining), err)
		}
		for _, rate := range []float64{-1, 1e-9, math.NaN()} {
			if _, err := g.ResumeMany(t.Context(), "acme", control.JobFilter{}, control.JobBulk{PerSecond: rate}); invalid.All(err) == nil {
				t.Errorf("jobs at %v a second: %v", rate, err)
			}
			if _, err := g.CancelMany(t.Context(), "acme", control.RunFilter{}, control.Bulk{PerSecond: rate}, ""); invalid.All(err) == nil {
				t.Errorf("runs at %v a second: %v", rate, err)
			}
		}
	})
}
