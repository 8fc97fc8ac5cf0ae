package backup_test

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/backup"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// A workflow's run that was under way when a backup was taken ends as unknown in a copy of the past, with its steps, and nothing of it starts. Where
// the copy goes on with it, it goes on to its end.
func TestAWorkflowInACopy(t *testing.T) {
	for name, row := range map[string]struct {
		resume      bool
		guarantee   job.Guarantee
		later       time.Duration // the copy is made
		whole, step run.State
		reason      string // of the run
	}{
		"a copy of the past": {false, job.AtLeastOnce, 0, run.Unknown, run.Unknown, "restored"},
		"one that goes on":   {true, job.AtLeastOnce, 0, run.Succeeded, run.Succeeded, ""},
		"one that goes on, of a step that starts at most once": {true, job.AtMostOnce, 0, run.Failed, run.Unknown, "step a is unknown"},
		"one that goes on when its time is over":               {true, job.AtLeastOnce, 3 * time.Hour, run.Failed, run.Cancelled, "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := live(t, emptyTarget(t), "original")
				l.put("slow", 0, func(d *job.Definition) {
					d.Timeout, d.Target.Handler = 0, nil
					d.Target.Workflow = []byte(`{"timeout": "2h", "defaults": {"timeout": "5m"}, "steps": {"a": {"handler": {"name": "f"}, "guarantee": "` + string(row.guarantee) + `"}, "b": {"needs": ["a"], "rule": "all_done", "handler": {"name": "f"}}}}`)
				})
				id := l.trigger("slow", 0)
				time.Sleep(5 * time.Second)
				if r, step := l.get(id), l.get(id.At("a")); r.State != run.Running || step.State != run.Running {
					t.Fatalf("the run is %s, its first step %s", r.State, step.State)
				}
				var out bytes.Buffer
				if _, _, err := backup.Write(t.Context(), &out, backup.Source{Store: l.on.Store, Blobs: l.on.Blobs, Now: time.Now}, nil); err != nil {
					t.Fatal(err)
				}
				l.stop()
				time.Sleep(row.later)
				soon := timer.NewCheck("default", id, time.Now().Add(time.Minute).UnixMilli())
				copied, _ := past{text: out.Bytes()}.restore(t, backup.Options{Resume: row.resume})
				if checks, err := copied.on.Store.Get(t.Context(), soon.Key()); err != nil || checks[0].Exists() != row.resume {
					t.Errorf("a check within a minute stands: %t, want %t: the run's time may be over (%v)", checks[0].Exists(), row.resume, err)
				}
				time.Sleep(40 * time.Minute)
				if r, step := copied.get(id), copied.get(id.At("a")); r.State != row.whole || step.State != row.step || !strings.Contains(r.Reason, row.reason) {
					t.Errorf("the run is %s (%s), its first step %s; want %s and %s", r.State, r.Reason, step.State, row.whole, row.step)
				}
				if times, _ := copied.called(id.At("b")); (times > 0) != (row.resume && row.later == 0) {
					t.Errorf("the second step was called %d times", times)
				}
			})
		})
	}
}

// A step that waits goes on waiting in a copy that goes on with its run, until the instant that was told once; where that is over, it ends at the first check. In a
// copy of the past it ends as unknown, as all of its run.
func TestScenario39_AWaitInACopy(t *testing.T) {
	for name, row := range map[string]struct {
		resume      bool
		later       time.Duration // the copy is made
		after       time.Duration // by then, from the start of the copy, all has ended
		whole, wait run.State
	}{
		"a copy of the past":                {false, 0, time.Minute, run.Unknown, run.Unknown},
		"one that goes on":                  {true, 20 * time.Minute, 72 * time.Minute, run.Succeeded, run.Succeeded},
		"one that goes on behind its time":  {true, 3 * time.Hour, 3 * time.Minute, run.Succeeded, run.Succeeded},
		"one that goes on behind the run's": {true, 7 * time.Hour, 3 * time.Minute, run.Failed, run.Cancelled},
		"one that goes on just before":      {true, 89 * time.Minute, 5 * time.Minute, run.Succeeded, run.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := live(t, emptyTarget(t), "original")
				l.put("trial", 0, func(d *job.Definition) {
					d.Timeout, d.Target.Handler = 0, nil
					d.Target.Workflow = []byte(`{"timeout": "6h", "steps": {"w": {"wait": {"for": "2h"}}, "b": {"needs": ["w"], "handler": {"name": "f"}}}}`)
				})
				id := l.trigger("trial", 0)
				time.Sleep(30 * time.Minute) // it is quiet
				wait := l.get(id.At("w"))
				if !wait.Suspended() {
					t.Fatalf("the wait is %s", wait.Stage())
				}
				over := time.UnixMilli(wait.NextAt)
				var out bytes.Buffer
				if _, _, err := backup.Write(t.Context(), &out, backup.Source{Store: l.on.Store, Blobs: l.on.Blobs, Now: time.Now}, nil); err != nil {
					t.Fatal(err)
				}
				l.stop()
				time.Sleep(row.later)
				copied, _ := past{text: out.Bytes()}.restore(t, backup.Options{Resume: row.resume})
				begun := time.Now()
				if until := over.Add(-10 * time.Second); row.resume && begun.Before(until) {
					time.Sleep(until.Sub(begun))
					if wait := copied.get(id.At("w")); !wait.Suspended() || !time.UnixMilli(wait.NextAt).Equal(over) {
						t.Errorf("ahead of its time the wait is %s until %s, want it suspended until %s", wait.Stage(), time.UnixMilli(wait.NextAt), over)
					}
				}
				time.Sleep(time.Until(begun.Add(row.after)))
				if r, wait := copied.get(id), copied.get(id.At("w")); r.State != row.whole || wait.Stage() != row.wait {
					t.Errorf("the run is %s (%s), its wait %s; want %s and %s", r.State, r.Reason, wait.Stage(), row.whole, row.wait)
				}
				if times, _ := copied.called(id.At("b")); (times > 0) != (row.wait == run.Succeeded) {
					t.Errorf("the step behind it was called %d times", times)
				}
			})
		})
	}
}
