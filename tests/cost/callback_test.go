package cost

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// What an end takes that calls another job, beyond one that calls nothing, its callback's own run included: that is a run like others, but for its timer, which is
// written in one transaction with the end. docs/cost.md tells of it.
func TestWhatACallbackTakes(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	const runs = 60
	takes := func(t *testing.T, on job.Callbacks) (writes, reads float64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, lone, ok())
			time.Sleep(17 * time.Second)
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}}
			for _, name := range []string{"tell", "report"} { // the one that calls comes behind the one that is called
				if _, _, err := r.Control.Put(r.ctx, "default", name, def, control.Match{}); err != nil {
					t.Fatal(err)
				}
				def.On = on
			}
			asked := 0
			ask := func(minute int) error { // each second one: what is remembered of a job for a minute is read anew for each
				if minute%2 > 0 || asked == runs {
					return nil
				}
				asked++
				_, _, err := r.Control.Trigger(r.ctx, "default", "report", control.Request{})
				return err
			}
			if err := r.minutes(2, nil); err != nil {
				t.Fatal(err)
			}
			before := r.meter.read()
			if err := r.minutes(2*runs+90, ask); err != nil { // until the last sweep has come upon all of them
				t.Fatal(err)
			}
			u := r.meter.read()
			writes, reads = (u.Writes-before.Writes-u.Shared+before.Shared)/runs, (u.Reads-before.Reads)/runs
		})
		return writes, reads
	}
	plainWrites, plainReads := takes(t, job.Callbacks{})
	tell := &job.Callback{Job: "tell"}
	for name, row := range map[string]struct {
		on            job.Callbacks
		writes, reads float64
	}{
		"a success calls":                        {job.Callbacks{Succeeded: tell}, 6, 5.5},
		"a failure would call":                   {job.Callbacks{Failed: tell}, 0, 0},
		"it would call if it had recovered, too": {job.Callbacks{Recovered: tell}, 0, 2},
	} {
		writes, reads := takes(t, row.on)
		t.Logf("%s: %.2f write units and %.2f read units a run, and %.2f and %.2f without a callback", name, writes, reads, plainWrites, plainReads)
		if math.Abs(writes-plainWrites-row.writes) > 0.25 || math.Abs(reads-plainReads-row.reads) > 0.25 {
			t.Errorf("%s: it takes %.2f write units and %.2f read units, want some %.2f and %.2f", name, writes-plainWrites, reads-plainReads, row.writes, row.reads)
		}
	}
}

// What a stretch of missed fires takes that calls another job, beyond one that calls nothing, its callback's own run included.
func TestWhatACallbackOfMissedFiresTakes(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	takes := func(t *testing.T, on job.Callbacks) (writes, reads float64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, lone, ok())
			time.Sleep(17 * time.Second)
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}}
			if _, _, err := r.Control.Put(r.ctx, "default", "tell", def, control.Match{}); err != nil {
				t.Fatal(err)
			}
			def.Schedule, def.CatchUp.Mode, def.On = &schedule.Spec{Every: schedule.Duration(10 * time.Minute)}, job.CatchUpNone, on
			if _, _, err := r.Control.Put(r.ctx, "default", "report", def, control.Match{}); err != nil {
				t.Fatal(err)
			}
			if err := r.minutes(12, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(57 * time.Minute) // nobody ticks
			before := r.meter.read()
			if err := r.minutes(90, nil); err != nil { // until the last sweep has come upon it
				t.Fatal(err)
			}
			u := r.meter.read()
			writes, reads = u.Writes-before.Writes-u.Shared+before.Shared, u.Reads-before.Reads
		})
		return writes, reads
	}
	plainWrites, plainReads := takes(t, job.Callbacks{})
	writes, reads := takes(t, job.Callbacks{Missed: &job.Callback{Job: "tell"}})
	t.Logf("it takes %.2f write units and %.2f read units, and %.2f and %.2f without a callback", writes, reads, plainWrites, plainReads)
	if wantWrites, wantReads := 7.0, 8.0; math.Abs(writes-plainWrites-wantWrites) > 0.25 || math.Abs(reads-plainReads-wantReads) > 0.25 {
		t.Errorf("it takes %.2f write units and %.2f read units, want some %.0f and %.0f", writes-plainWrites, reads-plainReads, wantWrites, wantReads)
	}
}

// What an end takes that is told of together with four others of its window, beside one that is told of by itself.
func TestWhatAWindowTakes(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	const runs = 60
	takes := func(t *testing.T, on job.Callbacks) (writes, reads float64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, lone, func(_ context.Context, call target.Call) (target.Result, error) {
				if call.Job == "report" {
					return target.Result{}, errFails
				}
				return target.Result{}, nil
			})
			time.Sleep(17 * time.Second)
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Retry: job.Retry{MaxAttempts: 1}}
			for _, name := range []string{"tell", "report"} {
				if _, _, err := r.Control.Put(r.ctx, "default", name, def, control.Match{}); err != nil {
					t.Fatal(err)
				}
				def.On = on
			}
			asked := 0
			ask := func(minute int) error { // five in each window of ten minutes
				if minute%2 > 0 || asked == runs {
					return nil
				}
				asked++
				_, _, err := r.Control.Trigger(r.ctx, "default", "report", control.Request{})
				return err
			}
			if err := r.minutes(2, nil); err != nil {
				t.Fatal(err)
			}
			before := r.meter.read()
			if err := r.minutes(2*runs+90, ask); err != nil { // until the last sweep has come upon all of them
				t.Fatal(err)
			}
			u := r.meter.read()
			writes, reads = (u.Writes-before.Writes-u.Shared+before.Shared)/runs, (u.Reads-before.Reads)/runs
		})
		return writes, reads
	}
	plainWrites, plainReads := takes(t, job.Callbacks{})
	for name, row := range map[string]struct {
		on            job.Callbacks
		writes, reads float64
	}{
		"each by itself": {job.Callbacks{Failed: &job.Callback{Job: "tell"}}, 5, 5.5},
		"five together":  {job.Callbacks{Failed: &job.Callback{Job: "tell", Window: schedule.Duration(10 * time.Minute)}}, 7.2, 2.3},
	} {
		writes, reads := takes(t, row.on)
		t.Logf("%s: %.2f write units and %.2f read units a run, and %.2f and %.2f without a callback", name, writes, reads, plainWrites, plainReads)
		if math.Abs(writes-plainWrites-row.writes) > 0.25 || math.Abs(reads-plainReads-row.reads) > 0.25 {
			t.Errorf("%s: it takes %.2f write units and %.2f read units, want some %.2f and %.2f", name, writes-plainWrites, reads-plainReads, row.writes, row.reads)
		}
	}
}
