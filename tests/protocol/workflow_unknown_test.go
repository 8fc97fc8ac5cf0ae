package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Scenario 4: of each operation of a worker in turn the answer is lost, or it is lost itself, or it is refused for load, once or for a while.
func TestW1_W2_W3_W4_Scenario04_EveryOperationWithoutAnAnswer(t *testing.T) {
	for how, fault := range map[string]faulty.Fault{"answer_lost": {Lose: store.ErrUnknown}, "lost": {Refuse: store.ErrUnknown}, "throttled": {Refuse: store.ErrThrottled}} {
		for _, name := range few() {
			for _, times := range []int{1, 8} {
				t.Run(fmt.Sprintf("%s_%s_%d", how, name, times), func(t *testing.T) {
					t.Parallel()
					for k := 1; ; k++ {
						f := newFlowWorld(newWorld(t), graphs[name])
						h := f.restart("worker")
						met := ""
						h.before = func(op operation) faulty.Fault {
							if op.n < k || op.n >= k+times {
								return faulty.Fault{}
							}
							met += op.text + "; "
							return fault
						}
						f.work()
						f.calm()
						if wrong := f.wrong(); len(wrong) > 0 {
							t.Fatalf("from operation %d on (%s):\n%s", k, met, strings.Join(wrong, "\n"))
						}
						if met == "" {
							break
						}
					}
				})
			}
		}
	}
}

// few are the graphs that tests take which break each operation.
func few() []string {
	if testing.Short() {
		return []string{"diamond", "failed"}
	}
	return slices.Sorted(maps.Keys(graphs))
}

// A step that may start at most once ends as unknown where its worker dies in it, and that is a failure to those behind it: W13.
func TestW13_AStepAtMostOnceWhoseWorkerDies(t *testing.T) {
	for k := 1; ; k++ {
		f := newFlowWorld(newWorld(t), []reference.Step{task("x", good, "")})
		f.work()
		text := `{"steps": {"a": {"handler": {"name": "act"}, "guarantee": "at_most_once"}, "b": {"needs": ["a"], "handler": {"name": "act"}}, "c": {"needs": ["a"], "rule": "one_failed", "handler": {"name": "act"}}}}`
		api := f.host("api").control
		_, _, err := api.Put(context.Background(), tenant, "once", job.Definition{Target: target.Spec{Workflow: []byte(text)}}, control.Match{})
		f.must(err)
		r, _, err := api.Trigger(context.Background(), tenant, "once", controlRequest())
		f.must(err)
		f.id, f.calls = r.ID, nil
		met, last := f.crashing(k)
		f.elapsed += 31 * time.Second
		f.calm()
		calls := map[string]int{}
		for _, c := range f.calls {
			calls[c.step.Step]++
		}
		rows := f.rows()
		a, head := rows["a"], f.head()
		_, b := rows["b"]
		_, c := rows["c"]
		var wrong error
		switch {
		case calls["a"] > 1:
			wrong = fmt.Errorf("it was called %d times", calls["a"])
		case a.State == run.Succeeded && (!b || c || head.State != run.Succeeded):
			wrong = errors.New("it succeeded, and the others did not follow")
		case a.State == run.Unknown && (b || !c || head.State != run.Failed):
			wrong = errors.New("it is unknown, and that did not count as a failure")
		case a.State != run.Succeeded && a.State != run.Unknown:
			wrong = fmt.Errorf("it is %s", a.State)
		}
		if wrong != nil {
			t.Fatalf("gone before operation %d (%s): %v; the run is %s (%s)", k, last, wrong, head.State, head.Reason)
		}
		if !met {
			break
		}
	}
}
