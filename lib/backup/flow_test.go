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
