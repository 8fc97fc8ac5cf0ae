package protocol_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// outlives gives a flowWorld in which the run of a job has a step that waits for 14 minutes between two attempts, and then one that never may start.
func outlives(t *testing.T, timeout string, options ...option) *flowWorld {
	f := newFlowWorld(newWorld(t, options...), graphs["chain"])
	f.work()
	f.must(f.handlers.Register("flaky", func(context.Context, target.Call) (target.Result, error) {
		f.mu.Lock()
		f.calls = append(f.calls, call{})
		f.mu.Unlock()
		return target.Result{}, errors.New("not yet")
	}))
	text := `{"timeout": "` + timeout + `", "steps": {"a": {"handler": {"name": "flaky"}, "retry": {"initial": "14m", "factor": 1, "max": "14m"}},
		"b": {"needs": ["a"], "rule": "all_done", "handler": {"name": "act"}}}}`
	_, _, err := f.host("api").control.Put(context.Background(), tenant, "short", job.Definition{Target: target.Spec{Workflow: []byte(text)}}, control.Match{})
	f.must(err)
	return f
}

// A step waits for a retry beyond the end of its workflow's time. A check that lies there ends the run, however ticks come, and whether the run was opened at
// once or late.
func TestW3_W4_Scenario14_AStepThatOutlivesTheTimeOfItsRun(t *testing.T) {
	for name, ticks := range map[string]struct {
		lookAhead, every, bound time.Duration
	}{
		"by_second": {2 * time.Second, time.Second, 65 * time.Second},
		"by_minute": {150 * time.Second, time.Minute, 2 * time.Minute},
	} {
		for _, held := range []time.Duration{0, 33 * time.Minute} {
			for _, timeout := range []time.Duration{time.Second, 30 * time.Second, 2 * time.Minute, 3 * time.Minute, 6 * time.Minute, 13 * time.Minute} {
				t.Run(strings.Join([]string{name, held.String(), timeout.String()}, "_"), func(t *testing.T) {
					t.Parallel()
					f := outlives(t, timeout.String(), lookAhead(ticks.lookAhead))
					r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "short", controlRequest())
					f.must(err)
					f.id, f.calls = r.ID, nil
					for wait := time.Duration(0); wait < held; wait += ticks.every { // no worker is there
						f.elapsed += ticks.every
						f.must(f.host("calm").tick())
					}
					f.work()
					opened := f.head()
					if !opened.Heads() {
						t.Fatalf("the run is %s", opened.State)
					}
					over := opened.Started + timeout.Milliseconds()
					for f.now() < over+ticks.bound.Milliseconds() {
						f.advance(ticks.every, ticks.every, "calm")
					}
					head, rows := f.head(), f.rows()
					if head.State != run.Failed || !strings.HasPrefix(head.Reason, "timeout") || head.Ended < over {
						t.Errorf("%s after the end of its time the run is %s (%s), and ended %d ms after it", ticks.bound, head.State, head.Reason, head.Ended-over)
					}
					if len(rows) != 1 || rows["a"].State != run.Cancelled || len(f.calls) != 1 {
						t.Errorf("%d steps were released and %d attempts made, and the first step is %s, want it alone, called once and cancelled", len(rows), len(f.calls), rows["a"].State)
					}
					f.advance(40*time.Minute, time.Minute, "calm")
					if len(f.calls) != 1 || f.head().Ended != head.Ended {
						t.Errorf("40 minutes later %d attempts have been made, and the run has ended at %d, want 1 and still %d", len(f.calls), f.head().Ended, head.Ended)
					}
				})
			}
		}
	}
}

// A step is in the hands of a worker when its workflow's time is over: it is told to stop within seconds, and the run ends with it.
func TestW4_W5_Scenario14_AStepThatIsUnderWayWhenTheTimeIsOver(t *testing.T) {
	f := newFlowWorld(newWorld(t), graphs["chain"])
	f.work()
	f.must(f.define("short", `, "timeout": "90s"`))
	r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "short", controlRequest())
	f.must(err)
	f.id, f.calls = r.ID, nil
	told := time.Duration(-1)
	f.during = func(path string) {
		if path == "a" {
			for range 80 {
				f.elapsed += time.Second
				if f.elapsed%(20*time.Second) == 0 {
					f.must(f.host("calm").tick())
				}
			}
			return
		}
		over := f.head().Started + (90 * time.Second).Milliseconds()
		for range 25 {
			f.elapsed += time.Second
			f.must(f.host("calm").tick())
			if f.rows()[path].Cancel {
				told = time.Duration(f.now()-over) * time.Millisecond
				return
			}
		}
	}
	f.work()
	f.during = nil
	f.calm()
	if told < 0 || told > 5*time.Second {
		t.Errorf("the step was told to stop %s after the end of the time, want within seconds", told)
	}
	if head := f.head(); head.State != run.Failed || !strings.HasPrefix(head.Reason, "timeout") || len(f.calls) != 2 {
		t.Errorf("the run is %s (%s) after %d calls, want failed for its timeout after 2", head.State, head.Reason, len(f.calls))
	}
}
