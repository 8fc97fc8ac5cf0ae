package protocol_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A workflow's run holds its place at the gate of its job from when it is opened until it has ended, and no longer, whoever dies.
func TestG1_G2_AWorkflowHoldsItsPlaceToItsEnd(t *testing.T) {
	for k := 1; ; k++ {
		f := newFlowWorld(newWorld(t), graphs["diamond"])
		f.work()
		f.must(f.defineAs("gated", "", job.Definition{Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: 1}}))
		var ids []run.ID
		for range 3 {
			r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "gated", controlRequest())
			f.must(err)
			ids = append(ids, r.ID)
			f.elapsed += time.Second
		}
		f.during = func(string) { f.elapsed += 100 * time.Millisecond }
		met, last := f.crashing(k)
		f.during = nil
		for range 3 {
			f.id = ids[2]
			f.calm()
		}
		for i, id := range ids {
			f.id = id
			if wrong := f.wrong(); len(wrong) > 0 {
				t.Fatalf("gone before operation %d (%s), run %d:\n%s", k, last, i, strings.Join(wrong, "\n"))
			}
			for _, other := range ids[:i] {
				a, _ := f.world.run(tenant, other)
				b, _ := f.world.run(tenant, id)
				if a.Started < b.Ended && b.Started < a.Ended {
					t.Errorf("gone before operation %d (%s): two runs were in progress at once", k, last)
				}
			}
		}
		if !met {
			break
		}
	}
}

// Edits and a delete touch no run whose workflow has begun: it goes on as it was defined.
func TestW8_Fault44_Scenario29_EditsAndDeletesTouchNoOpenRun(t *testing.T) {
	for name, act := range map[string]func(h *host) error{
		"edit":   func(h *host) error { return h.put(tenant, "flow", definition(nil, 7)) },
		"pause":  func(h *host) error { return h.pause(tenant, "flow") },
		"delete": func(h *host) error { return h.delete(tenant, "flow") },
		"created again": func(h *host) error {
			return errors.Join(h.delete(tenant, "flow"), h.put(tenant, "flow", definition(nil, 7)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlowWorld(newWorld(t), graphs["diamond"])
			once := false
			f.during = func(string) {
				if !once {
					once = true
					f.must(act(f.host("api")))
					f.elapsed += time.Minute
				}
			}
			f.work()
			f.calm()
			if wrong := f.wrong(); len(wrong) > 0 {
				t.Fatal(strings.Join(wrong, "\n"))
			}
		})
	}
}

// A delete that was answered before a workflow's run was opened is seen: nothing of it starts.
func TestP8_AWorkflowOfADeletedJobDoesNotBegin(t *testing.T) {
	f := newFlowWorld(newWorld(t), graphs["chain"])
	f.elapsed += time.Minute // nobody worked, so that the delete looks for no run of so long ago
	f.must(f.host("api").delete(tenant, "flow"))
	f.work()
	f.calm()
	if head := f.head(); head.State != run.Cancelled || len(f.calls) != 0 {
		t.Errorf("the run is %s (%s) after %d calls, want it cancelled without any", head.State, head.Reason, len(f.calls))
	}
}

// One has read the job of a workflow's run and goes on to release its first step, and another, who saw no step, has read that the job was deleted since:
// whichever comes first, the run does not end over a step that runs.
func TestW4_W5_ARunOfADeletedJobDoesNotEndOverAStepThatRuns(t *testing.T) {
	over := 0 // worlds in which one stood still over the start of a step
	for n, more := 1, true; more; n++ {
		for m := 1; ; m++ {
			f := newFlowWorld(newWorld(t), graphs["chain"])
			f.elapsed += time.Minute // nobody worked, so that its job is looked at
			release := f.freezing(n)
			if more = release != nil; !more {
				break
			}
			f.must(f.host("api").delete(tenant, "flow"))
			f.elapsed += time.Minute // its message comes again
			cancel := f.freezing(m)
			if cancel == nil {
				release()
				break
			}
			f.during = func(step string) {
				if cancel == nil {
					return
				}
				if f.rows()[step].State == run.Running { // else another has taken it over
					over++
				}
				goOn := cancel
				cancel = nil
				goOn()
				if head := f.head(); head.State.Ended() && f.rows()[step].State == run.Running {
					t.Errorf("one before its operation %d, one before its %d: the run is %s, and step %s runs", n, m, head.State, step)
				}
			}
			release()
			if cancel != nil {
				cancel()
			}
			f.during = nil
			f.calm()
			if head := f.head(); !head.State.Ended() {
				t.Errorf("one before its operation %d, one before its %d: the run is %s", n, m, head.State)
			}
		}
	}
	if over == 0 {
		t.Error("nobody stood still over the start of a step")
	}
}
