package protocol_test

import (
	"context"
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
							met += op.text() + "; "
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

// landing is a write of a workflow's run whose answer fails, and which lands when somebody calls land.
type landing struct {
	*flowWorld
	n    int // of the operation
	land chan struct{}
	host *host
	what string // "step running", "run succeeded"; "" until it was met, and of an operation that is no write of these
}

// late has a worker's n-th operation be late, where it is a write of the run or of a step.
func (f *flowWorld) late(n int) *landing {
	return &landing{flowWorld: f, n: n, land: make(chan struct{})}
}

func (l *landing) fault(op operation) faulty.Fault {
	if op.n != l.n || op.call.Method == "" || !op.writes() {
		return faulty.Fault{}
	}
	l.host = l.hosts["worker"]
	for _, one := range op.call.Ops {
		kind := "step "
		switch {
		case one.Key == l.id.Key(tenant):
			kind = "run "
		case one.Key.Partition != run.StepPartition(tenant, l.id):
			continue
		}
		written, _, err := run.FromItem(tenant, l.id, store.Item{Key: one.Key, Value: one.Value, Version: 1})
		l.must(err)
		l.what = kind + written.State.String()
	}
	if l.what == "" {
		return faulty.Fault{}
	}
	return faulty.Fault{Late: l.land}
}

// lands has it land now, if it is late at all.
func (l *landing) lands() {
	close(l.land)
	if l.host != nil {
		l.host.store.Landed()
	}
}

// lateWays are what becomes of the worker whose write is late, and of its messages.
var lateWays = map[string]func(l *landing) (more bool){
	"lives": func(l *landing) bool {
		h := l.restart("worker")
		h.before = l.fault
		l.work()
		more := h.ops >= l.n
		l.advance(9*time.Minute, 10*time.Second, "calm")
		return more
	},
	"gone": func(l *landing) bool {
		more, _ := l.crashingAfter(l.n+1, l.fault)
		l.advance(9*time.Minute, 10*time.Second, "calm")
		return more
	},
	"gone_with_its_messages": func(l *landing) bool { // nobody has looked at the run when it lands
		more, _ := l.crashingAfter(l.n+1, l.fault)
		l.elapsed += 9 * time.Minute
		l.lose()
		return more
	},
}

// Scenario 4: the answer to each write of a step and of the run in turn fails, and the write lands 9 minutes later. Meanwhile its worker goes on, or is gone, and
// its messages come again, or are lost.
func TestW1_W2_W3_W4_Scenario04_EveryWriteLandsNineMinutesLater(t *testing.T) {
	for way, until := range lateWays {
		for _, name := range few() {
			t.Run(way+"_"+name, func(t *testing.T) {
				t.Parallel()
				met, end := map[string]bool{}, "run succeeded"
				if reference.Evaluate(graphs[name]).End == bad {
					end = "run failed"
				}
				for n := 1; ; n++ {
					f := newFlowWorld(newWorld(t), graphs[name])
					l := f.late(n)
					more := until(l)
					before, called := f.head(), len(f.calls)
					l.lands()
					f.work()
					f.calm()
					met[l.what] = true
					wrong := f.wrong()
					if after := f.head(); before.State.Ended() && (after.State != before.State || after.Ended != before.Ended || len(f.calls) != called) {
						wrong = append(wrong, fmt.Sprintf("W4: the run had ended %s, and is %s after %d more calls", before.State, after.State, len(f.calls)-called))
					}
					if len(wrong) > 0 {
						t.Fatalf("late was operation %d (%s):\n%s", n, l.what, strings.Join(wrong, "\n"))
					}
					if !more {
						break
					}
				}
				for _, what := range []string{"run running", "step queued", "step running", "step succeeded", end} {
					if !met[what] {
						t.Errorf("no write of a %s was late, of %v", what, slices.Sorted(maps.Keys(met)))
					}
				}
			})
		}
	}
}

// newOnce is a world with a workflow whose step a may start at most once: b follows its success, and c its failure.
func newOnce(t *testing.T) *flowWorld {
	f := newFlowWorld(newWorld(t), []reference.Step{task("x", good, "")})
	f.work()
	text := `{"steps": {"a": {"handler": {"name": "act"}, "guarantee": "at_most_once"}, "b": {"needs": ["a"], "handler": {"name": "act"}}, "c": {"needs": ["a"], "rule": "one_failed", "handler": {"name": "act"}}}}`
	api := f.host("api").control
	_, _, err := api.Put(context.Background(), tenant, "once", job.Definition{Target: target.Spec{Workflow: []byte(text)}}, control.Match{})
	f.must(err)
	r, _, err := api.Trigger(context.Background(), tenant, "once", controlRequest())
	f.must(err)
	f.id, f.calls = r.ID, nil
	return f
}

// wrongOnce tells in what the run of newOnce has not come out right.
func (f *flowWorld) wrongOnce() error {
	calls := map[string]int{}
	for _, c := range f.calls {
		calls[c.step.Step]++
	}
	rows := f.rows()
	a, head := rows["a"], f.head()
	_, b := rows["b"]
	_, c := rows["c"]
	switch {
	case calls["a"] > 1:
		return fmt.Errorf("it was called %d times", calls["a"])
	case a.State == run.Succeeded && (!b || c || head.State != run.Succeeded):
		return fmt.Errorf("it succeeded, and the others did not follow: the run is %s (%s)", head.State, head.Reason)
	case a.State == run.Unknown && (b || !c || head.State != run.Failed):
		return fmt.Errorf("it is unknown, and that did not count as a failure: the run is %s (%s)", head.State, head.Reason)
	case a.State != run.Succeeded && a.State != run.Unknown:
		return fmt.Errorf("it is %s: the run is %s (%s)", a.State, head.State, head.Reason)
	}
	return nil
}

// A step that may start at most once ends as unknown where its worker dies in it, and that is a failure to those behind it: W13.
func TestW13_AStepAtMostOnceWhoseWorkerDies(t *testing.T) {
	for k := 1; ; k++ {
		f := newOnce(t)
		met, last := f.crashing(k)
		f.elapsed += 31 * time.Second
		f.calm()
		if err := f.wrongOnce(); err != nil {
			t.Fatalf("gone before operation %d (%s): %v", k, last, err)
		}
		if !met {
			break
		}
	}
}

// Nor does it start twice where a write of its run lands 9 minutes after its answer failed.
func TestW13_Scenario04_AStepAtMostOnceWhoseWritesLandLate(t *testing.T) {
	for way, until := range lateWays {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				f := newOnce(t)
				l := f.late(n)
				more := until(l)
				l.lands()
				f.work()
				f.calm()
				if err := f.wrongOnce(); err != nil {
					t.Fatalf("late was operation %d (%s): %v", n, l.what, err)
				}
				if !more {
					break
				}
			}
		})
	}
}
