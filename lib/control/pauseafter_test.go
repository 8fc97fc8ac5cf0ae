package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// Of the runs that end badly at once one pauses the job. The others, and those of older generations, read the job and nothing else; the one itself finishes what it has begun.
func TestP8_OneOfManyBadEndsPausesTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		pausing := func(d *job.Definition) { d.PauseAfter = 2 }
		first := g.put("acme", "j", pausing)
		ended := func(generation int64, n uint64) run.Run {
			return run.Run{ID: run.RequestID("j", generation, n), Tenant: "acme", Generation: generation, State: run.Dead, Pauses: true}
		}
		asks := func(runs ...run.Run) (calls []string) {
			t.Helper()
			g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
				calls = append(calls, string(c.Method))
				return faulty.Fault{}
			}
			defer func() { g.hook = nil }()
			if err := g.Dispatch.PauseJob(ctx, runs...); err != nil {
				t.Fatal(err)
			}
			return calls
		}
		looks := func(when string, runs ...run.Run) {
			t.Helper()
			before, err := g.Job(ctx, "acme", "j")
			if err != nil {
				t.Fatal(err)
			}
			if calls := asks(runs...); !slices.Equal(calls, []string{string(faulty.Get)}) {
				t.Errorf("%s: the store was asked %v, want one read", when, calls)
			}
			after, err := g.Job(ctx, "acme", "j")
			if err != nil || after.Generation != before.Generation {
				t.Errorf("%s: the job was edited: %v", when, err)
			}
		}
		time.Sleep(time.Second)
		edited := g.put("acme", "j", pausing, func(d *job.Definition) { d.Description = "other" })
		looks("a run of an older generation", ended(first.Generation, 1))
		one, other, third := ended(edited.Generation, 2), ended(edited.Generation, 3), ended(edited.Generation, 4)
		asks(one)
		paused, err := g.Job(ctx, "acme", "j")
		if n := g.Dispatch.Metrics.JobsPaused.Value(); n != 1 {
			t.Errorf("%d jobs are counted as paused", n)
		}
		if err != nil || !paused.Def.Paused || paused.Generation == edited.Generation {
			t.Fatalf("it is paused: %v, of generation %d: %v", paused.Def.Paused, paused.Generation, err)
		}
		looks("another", other)
		looks("others", other, third)
		for _, among := range [][]run.Run{{one}, {other, one, third}} {
			if calls := asks(among...); len(calls) < 2 {
				t.Errorf("the one itself, among %d, asks %v, and settles nothing", len(among), calls)
			}
		}
		if err := g.Delete(ctx, "acme", "j", control.Match{}); err != nil {
			t.Fatal(err)
		}
		calls := asks(other)
		if len(calls) != 1 {
			t.Errorf("of a job that is deleted: %v", calls)
		}
	})
}

// A pause that holds is counted once, whatever fails behind its write: the next who asks finishes it, and finds it paused.
func TestP8_APauseThatIsNotFinishedIsCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		j := g.put("acme", "j", func(d *job.Definition) { d.PauseAfter = 1 })
		time.Sleep(time.Second)
		r := run.Run{ID: run.RequestID("j", j.Generation, 1), Tenant: "acme", Generation: j.Generation, State: run.Dead, Pauses: true}
		written := false
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if written {
				return faulty.Fault{Refuse: store.ErrThrottled}
			}
			written = slices.ContainsFunc(c.Ops, func(op store.Op) bool { return op.Key == job.Key("acme", "j") })
			return faulty.Fault{}
		}
		if err := g.Dispatch.PauseJob(t.Context(), r); err == nil {
			t.Fatal("it is finished though the store is unwell")
		}
		g.hook = nil
		for range 2 {
			if n := g.Dispatch.Metrics.JobsPaused.Value(); n != 1 {
				t.Errorf("%d jobs are counted as paused", n)
			}
			if err := g.Dispatch.PauseJob(t.Context(), r); err != nil {
				t.Error(err)
			}
		}
	})
}
