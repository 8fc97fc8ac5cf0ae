package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

const (
	good = reference.Success
	bad  = reference.Failure
)

// graphs are what workflows in these tests look like.
var graphs = map[string][]reference.Step{
	"chain":   {task("a", good, ""), task("b", good, "", "a"), task("c", good, "", "b")},
	"diamond": {task("a", good, ""), task("b", good, "", "a"), task("c", good, "", "a"), task("d", good, "", "b", "c")},
	"failed":  {task("a", bad, ""), task("b", good, "", "a"), task("c", good, "one_failed", "a"), task("d", good, "all_done", "b", "c")},
	"scope": {task("a", good, ""),
		{Name: "s", Rule: "all_success", Parents: []string{"a"}, Inside: []reference.Step{task("x", good, ""), task("y", bad, "", "x"), task("z", good, "always", "x")}},
		task("b", good, "one_failed", "s"), task("c", good, "", "s")},
	"allowed": {{Name: "a", End: bad, Rule: "all_success", Allowed: true}, task("b", good, "", "a"), task("c", bad, "none_failed", "a", "b"), task("d", good, "one_failed", "c")},
	"early":   {task("a", good, ""), task("b", good, ""), task("c", good, "one_success", "a", "b"), task("d", good, "always", "c")},
}

// Scenarios 2 and 3: whoever works is gone before each of its operations in turn, and its messages come again, or are lost with it.
func TestW1_W2_W3_W4_Fault41_Scenario02_Scenario03_EveryOperationOfAWorkerIsItsLast(t *testing.T) {
	for _, name := range few() {
		steps := graphs[name]
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s_lost_%t", name, lost), func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					f := newFlowWorld(newWorld(t), steps)
					met, last := f.crashing(k)
					if lost {
						f.elapsed += 20 * time.Minute // all that it held is handed out again
						f.lose()
					}
					f.calm()
					if wrong := f.wrong(); len(wrong) > 0 {
						t.Fatalf("gone before operation %d (%s):\n%s", k, last, strings.Join(wrong, "\n"))
					}
					if !met {
						break
					}
				}
			})
		}
	}
}

// A run without faults ends at once: no step waits for a check.
func TestW3_AWorkflowNeedsNoCheck(t *testing.T) {
	for name, steps := range graphs {
		t.Run(name, func(t *testing.T) {
			f := newFlowWorld(newWorld(t), steps)
			f.work()
			if wrong := f.wrong(); len(wrong) > 0 {
				t.Fatal(strings.Join(wrong, "\n"))
			}
			for path, row := range f.rows() {
				if row.Attempt != 1 || string(row.Result.Inline) != `{"day":"monday"}` && row.State == run.Succeeded {
					t.Errorf("step %s: attempt %d, result %q, want one attempt that got the payload of the run", path, row.Attempt, row.Result.Inline)
				}
			}
			if head := f.head(); head.Attempt != 0 || head.Fence != 0 {
				t.Errorf("the run has attempt %d and fence %d, and none is made of it", head.Attempt, head.Fence)
			}
		})
	}
}

// Scenario 5: every message is doubled.
func TestW1_Scenario05_EveryMessageIsDoubled(t *testing.T) {
	for name, steps := range graphs {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fate = func(queueMessage) (bool, bool) { return false, true }
			f := newFlowWorld(w, steps)
			f.work()
			f.calm()
			if wrong := f.wrong(); len(wrong) > 0 {
				t.Fatal(strings.Join(wrong, "\n"))
			}
		})
	}
}

// Every message is lost: checks alone bring the run on.
func TestW2_W3_Fault43_ChecksBringARunOnWhoseMessagesAreLost(t *testing.T) {
	for name, steps := range graphs {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n := 0
			w.fate = func(queueMessage) (bool, bool) { n++; return n%2 == 1, false }
			f := newFlowWorld(w, steps)
			f.work()
			for range 20 {
				f.calm()
			}
			if wrong := f.wrong(); len(wrong) > 0 {
				t.Fatal(strings.Join(wrong, "\n"))
			}
		})
	}
}

// Scenario 13: a cancel is asked for in each attempt in turn. Nothing starts after its answer, and the run ends cancelled.
func TestW4_W5_Scenario13_CancelInEveryAttempt(t *testing.T) {
	for name, steps := range graphs {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				f := newFlowWorld(newWorld(t), steps)
				calls := 0
				f.during = func(string) {
					if calls++; calls == n {
						if _, err := f.host("api").control.Cancel(context.Background(), tenant, f.id, "no longer needed"); err != nil {
							t.Error(err)
						}
						f.mu.Lock()
						f.stopped = true
						f.mu.Unlock()
					}
				}
				f.work()
				f.calm()
				if calls < n {
					break
				}
				head := f.head()
				if len(f.breaches) > 0 || head.State != run.Cancelled || head.Reason != "no longer needed" {
					t.Errorf("cancelled in call %d: the run is %s (%s)\n%s", n, head.State, head.Reason, strings.Join(f.breaches, "\n"))
				}
				for path, row := range f.rows() {
					if !row.State.Ended() {
						t.Errorf("cancelled in call %d: step %s is %s", n, path, row.State)
					}
				}
			}
		})
	}
}

// Scenario 14: a run over its time ends failed, with nothing started after.
func TestW4_Scenario14_ARunIsOverItsTime(t *testing.T) {
	f := newFlowWorld(newWorld(t), graphs["chain"])
	f.work()
	f.must(f.define("short", `, "timeout": "30s"`))
	r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "short", controlRequest())
	f.must(err)
	f.id, f.calls = r.ID, nil
	f.during = func(string) { f.elapsed += 40 * time.Second }
	f.work()
	f.during = nil
	f.calm()
	head := f.head()
	if head.State != run.Failed || !strings.HasPrefix(head.Reason, "timeout") || len(f.calls) != 1 {
		t.Errorf("the run is %s (%s) after %d calls, want failed for its timeout after 1", head.State, head.Reason, len(f.calls))
	}
}

// Scenarios 6 to 9: whoever works stands still before each of its operations in turn, for an hour. Others go on, the run ends, is cancelled, or somebody tries
// to redrive it, which is refused; and then it wakes and goes on as if nothing had been.
func TestW1_W4_W5_Scenario06_Scenario07_Scenario08_Scenario09_AWorkerThatStoodStill(t *testing.T) {
	for _, name := range few() {
		for _, meanwhile := range []string{"nothing", "a cancel", "a redrive"} {
			t.Run(fmt.Sprintf("%s_and_%s_meanwhile", name, meanwhile), func(t *testing.T) {
				t.Parallel()
				cancelled := meanwhile == "a cancel"
				for k := 1; ; k++ {
					f := newFlowWorld(newWorld(t), graphs[name])
					thaw := f.freezing(k)
					if thaw == nil {
						break
					}
					if cancelled {
						_, err := f.host("api").control.Cancel(context.Background(), tenant, f.id, "no longer needed")
						f.must(err)
						f.mu.Lock()
						f.stopped = true
						f.mu.Unlock()
					}
					f.elapsed += 35 * time.Second
					f.calm()
					f.advance(time.Hour, time.Minute, "calm")
					before := f.head()
					if meanwhile == "a redrive" {
						f.isNotRedriven(t)
					}
					thaw()
					f.calm()
					after := f.head()
					if before.State.Ended() && (before.State != after.State || before.Ended != after.Ended) {
						t.Errorf("stood still before operation %d: the run was %s and is %s", k, before.State, after.State)
					}
					wrong := f.breaches
					if !cancelled {
						wrong = f.wrong()
					} else if after.State != run.Cancelled {
						wrong = append(wrong, "the run is "+after.State.String())
					}
					if len(wrong) > 0 {
						t.Fatalf("stood still before operation %d:\n%s", k, strings.Join(wrong, "\n"))
					}
					if meanwhile == "a redrive" {
						f.isNotRedriven(t)
					}
				}
			})
		}
	}
}

// isNotRedriven has the run redriven, which is refused, whether it has ended or not, and changes nothing.
func (f *flowWorld) isNotRedriven(t *testing.T) {
	t.Helper()
	before := f.head()
	want := control.CodeBegun
	if !before.State.Ended() {
		want = control.CodeRunNotEnded
	}
	var refused *control.Refusal
	if _, err := f.host("api").control.Retry(context.Background(), tenant, f.id, true, time.Time{}); !errors.As(err, &refused) || refused.Code != want {
		t.Errorf("redriven when it was %s: %v, want %s", before.State, err, want)
	}
	if after := f.head(); after.Version != before.Version {
		t.Errorf("a redrive that was refused has written the run: version %d, then %d", before.Version, after.Version)
	}
}

// Scenario 1: of many parents that end at once, by as many workers, whoever is last releases the join, once.
func TestW1_W3_Fault40_Scenario01_ManyParentsEndAtOnce(t *testing.T) {
	steps := []reference.Step{}
	var names []string
	for i := range 30 {
		name := fmt.Sprintf("p%02d", i)
		steps, names = append(steps, task(name, good, "")), append(names, name)
	}
	steps = append(steps, task("join", good, "", names...))
	f := newFlowWorld(newWorld(t), steps)
	for range 4 {
		done := make(chan struct{})
		const workers = 8
		for n := range workers {
			h := f.host(fmt.Sprintf("worker-%d", n))
			go func() {
				for range 40 {
					if err := h.worker.Pass(context.Background(), 0); err != nil {
						t.Error(err)
					}
				}
				done <- struct{}{}
			}()
		}
		for range workers {
			<-done
		}
	}
	if wrong := f.wrong(); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	if n := len(f.calls); n != 31 {
		t.Errorf("%d calls, want 31", n)
	}
}

// Nor does a step start that was released in time, and came to no worker before the time was over.
func TestW4_Scenario14_AStepThatComesToAWorkerTooLate(t *testing.T) {
	f := newFlowWorld(newWorld(t), graphs["chain"])
	f.work()
	f.must(f.defineAs("short", `, "timeout": "30s"`, job.Definition{}))
	r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "short", controlRequest())
	f.must(err)
	f.id, f.calls = r.ID, nil
	f.must(f.host("worker").worker.Pass(context.Background(), 0))
	if rows := f.rows(); rows["a"].State != run.Queued {
		t.Fatalf("the first step is %s, want it queued", rows["a"].State)
	}
	f.elapsed += 31 * time.Second
	f.work()
	if head := f.head(); head.State != run.Failed || !strings.HasPrefix(head.Reason, "timeout") || len(f.calls) != 0 {
		t.Errorf("the run is %s (%s) after %d calls, want failed for its timeout without any", head.State, head.Reason, len(f.calls))
	}
}

// A step that waits for long between two attempts is woken by a timer of its own, and stands in no list: its run does, once.
func TestW3_AStepThatWaitsForDaysBetweenAttempts(t *testing.T) {
	f := newFlowWorld(newWorld(t), graphs["chain"])
	f.work()
	failures := 0
	f.must(f.handlers.Register("flaky", func(context.Context, target.Call) (target.Result, error) {
		if failures++; failures < 3 {
			return target.Result{}, errors.New("not yet")
		}
		return target.Result{}, nil
	}))
	text := `{"steps": {"a": {"handler": {"name": "flaky"}, "retry": {"initial": "3d", "factor": 1, "max": "3d"}}, "b": {"needs": ["a"], "handler": {"name": "act"}}}}`
	api := f.host("api").control
	_, _, err := api.Put(context.Background(), tenant, "slow", job.Definition{Target: target.Spec{Workflow: []byte(text)}}, control.Match{})
	f.must(err)
	r, _, err := api.Trigger(context.Background(), tenant, "slow", controlRequest())
	f.must(err)
	f.id = r.ID
	for day := 0; day < 12 && !f.head().State.Ended(); day++ {
		for range 4 {
			f.advance(6*time.Hour, 15*time.Minute, "calm")
			f.advance(time.Minute, 10*time.Second, "calm")
			runs, _, err := api.Runs(context.Background(), tenant, control.RunFilter{}, "", 100)
			f.must(err)
			open, _, err := api.Runs(context.Background(), tenant, control.RunFilter{States: []run.State{run.Running, run.Retrying}}, "", 100)
			f.must(err)
			if len(runs) != 2 || len(open) > 1 {
				t.Fatalf("day %d: %d runs are listed, and %d of them open, want 2 and 1", day, len(runs), len(open))
			}
		}
	}
	if head := f.head(); head.State != run.Succeeded || failures != 3 {
		t.Errorf("the run is %s (%s) after %d attempts of its first step, want it succeeded after 3", head.State, head.Reason, failures)
	}
}

// Scenario 34, in small: the only process is gone before each of its operations in turn, and its queue with it. The next one looks at all that has not
// ended when it starts, and the run comes to its end without any check.
func TestW3_Scenario34_ARestartOfAServerThatIsAlone(t *testing.T) {
	for name, steps := range graphs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				f := newFlowWorld(newWorld(t), steps)
				f.must(f.host("api").tick())
				met, last := f.crashing(k)
				f.elapsed += 31 * time.Second // what it held is handed out again, to be lost
				f.lose()
				_, err := f.host("next").ticker.Recover(context.Background(), f.now(), func(worker string) bool { return worker == "worker" })
				f.must(err)
				f.work()
				if wrong := f.wrong(); len(wrong) > 0 {
					t.Fatalf("gone before operation %d (%s):\n%s", k, last, strings.Join(wrong, "\n"))
				}
				if !met {
					break
				}
			}
		})
	}
}
