package belfry

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// MaxRuns is of a schedule: it comes and goes with that, in whatever order a program says what.
func TestMaxRunsEndsASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, "memory:")
		fires := make(chan string, 200)
		note := func(_ context.Context, j *Job[string]) error {
			fires <- j.Name
			return nil
		}
		Handle(b, "before", note)
		Handle(b, "after", note)
		Handle(b, "on-demand", note)
		schedule := func(name string, opts ...ScheduleOption) {
			t.Helper()
			if err := b.Schedule(t.Context(), name, "@every 1m", opts...); err != nil {
				t.Fatal(err)
			}
		}
		schedule("before", MaxRuns(2))
		start(t, b)
		schedule("after", MaxRuns(1))
		schedule("after", As("beside"), MaxRuns(3))
		time.Sleep(time.Hour)
		got := map[string]int{}
		for len(fires) > 0 {
			got[<-fires]++
		}
		if got["before"] != 2 || got["after"] != 1 || got["beside"] != 3 || len(got) != 3 {
			t.Errorf("fired %v, want before 2, after 1 and beside 3", got)
		}
		for _, name := range []string{"before", "after", "beside", "on-demand"} {
			if err := b.Unschedule(t.Context(), name); err != nil {
				t.Errorf("unschedule %s: %v", name, err)
			}
		}
		if def := standing(t, b, "before").Def; def.MaxRuns != 0 || def.Schedule != nil {
			t.Errorf("unscheduled it stands with %d fires of %+v", def.MaxRuns, def.Schedule)
		}
		if err := b.Schedule(t.Context(), "before", "@daily", MaxRuns(10_001)); !HasCode(err, CodeInvalid) {
			t.Errorf("too many: %v", err)
		}
	})
}

// A program that says nothing of a job's times at its next start leaves them as they stand, whoever wrote them.
func TestMaxRunsStandsUntilTheNextSchedule(t *testing.T) {
	data := "pebble://" + t.TempDir()
	program := func(does func(*Belfry)) {
		b, err := Open(t.Context(), data, Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		Handle(b, "a", func(context.Context, *Job[string]) error { return nil })
		start(t, b)
		does(b)
		if err := b.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	schedule := func(b *Belfry, opts ...ScheduleOption) {
		t.Helper()
		if err := b.Schedule(t.Context(), "a", "@daily", opts...); err != nil {
			t.Fatal(err)
		}
	}
	var patched job.Job
	program(func(b *Belfry) {
		schedule(b, MaxRuns(3))
		if def := standing(t, b, "a").Def; def.MaxRuns != 3 {
			t.Errorf("scheduled it has %d fires", def.MaxRuns)
		}
		if err := b.put(t.Context(), "a", func(def job.Definition) job.Definition { // as an operator does
			def.MaxRuns = 7
			return def
		}); err != nil {
			t.Fatal(err)
		}
		patched = standing(t, b, "a")
	})
	program(func(b *Belfry) {
		if got := standing(t, b, "a"); got.Def.MaxRuns != 7 || got.Generation != patched.Generation {
			t.Errorf("started again it has %d fires in generation %d, want 7 in %d", got.Def.MaxRuns, got.Generation, patched.Generation)
		}
		schedule(b)
		if got := standing(t, b, "a").Def; got.MaxRuns != 0 || got.Schedule == nil {
			t.Errorf("scheduled without, it has %d fires of %+v", got.MaxRuns, got.Schedule)
		}
	})
}
