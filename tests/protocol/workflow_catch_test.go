package protocol_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// fails is a step that fails of a code, and whose failures others handle.
func fails(name, code string, catch ...reference.Clause) reference.Step {
	s := task(name, bad, "")
	s.Code, s.Catch = code, catch
	return s
}

// caughtGraphs are workflows in which failures are caught.
var caughtGraphs = map[string][]reference.Step{
	"caught": {fails("a", "handler:stock", reference.Clause{Codes: []string{"handler:stock"}, To: "h"}, reference.Clause{To: "i"}),
		task("b", good, "", "a"), task("h", good, ""), task("i", good, ""), task("z", good, "none_failed_min_one_success", "b", "h", "i")},
	"uncaught": {fails("a", "handler", reference.Clause{Codes: []string{"handler:stock"}, To: "h"}), task("h", good, ""), task("b", good, "one_failed", "a")},
	"scopes": {{Name: "s", Rule: "all_success", Catch: []reference.Clause{{Codes: []string{"handler"}, To: "h"}},
		Inside: []reference.Step{task("x", good, ""), fails("y", "handler:stock"), task("w", good, "all_done", "x", "y")}},
		task("h", good, ""), task("b", good, "all_skipped", "s"), task("c", good, "", "h")},
	"two": {fails("a", "handler", reference.Clause{To: "h"}), {Name: "b", Rule: "all_success", End: good, Catch: []reference.Clause{{To: "h"}}},
		task("h", bad, ""), task("c", good, "one_failed", "h")},
}

// Failures are caught by messages alone: no step waits for a check.
func TestW1_W2_W3_FailuresAreCaught(t *testing.T) {
	for name, steps := range caughtGraphs {
		t.Run(name, func(t *testing.T) {
			f := newFlowWorld(newWorld(t), steps)
			f.work()
			if wrong := f.wrong(); len(wrong) > 0 {
				t.Fatal(strings.Join(wrong, "\n"))
			}
		})
	}
}

// Scenarios 2 and 3 where failures are caught: whoever works is gone before each of its operations in turn, and its messages come again, or are lost with it.
func TestW1_W2_W3_W4_Fault41_Scenario02_Scenario03_EveryOperationOfAWorkerIsItsLastWhereFailuresAreCaught(t *testing.T) {
	for name, steps := range caughtGraphs {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s_lost_%t", name, lost), func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					f := newFlowWorld(newWorld(t), steps)
					met, last := f.crashing(k)
					if lost {
						f.elapsed += 20 * time.Minute
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

// Random graphs in which failures are caught come out as the evaluator says, whatever was lost, doubled or gone.
func TestW1_W2_W3_W4_W5_RandomGraphsThatCatch(t *testing.T) {
	randomGraphs(t, 41, func(chance *rand.Rand, steps []reference.Step) []reference.Step {
		catching(chance, steps)
		return steps
	})
}

// catching has failures of some steps be handled by steps behind them.
func catching(chance *rand.Rand, steps []reference.Step) {
	for i := range steps {
		s := &steps[i]
		s.Code = []string{"handler", "handler:stock"}[chance.IntN(2)]
		catching(chance, s.Inside)
		if chance.IntN(2) == 0 {
			continue
		}
		for _, codes := range [][]string{{"handler:stock"}, {"handler"}, nil} {
			k := i + 1 + chance.IntN(4)
			if k >= len(steps) || chance.IntN(2) == 0 || codes != nil && len(s.Inside) > 0 && !mayFail(s.Inside, codes[0]) {
				continue
			}
			to := &steps[k]
			s.Catch = append(s.Catch, reference.Clause{Codes: codes, To: to.Name})
			to.Parents = slices.DeleteFunc(to.Parents, func(p string) bool { return p == s.Name })
			s.Allowed = s.Allowed && codes != nil
		}
	}
}

// mayFail tells whether a scope may fail of a code.
func mayFail(steps []reference.Step, _ string) bool {
	return slices.ContainsFunc(steps, func(s reference.Step) bool {
		return !s.Allowed && !slices.ContainsFunc(s.Catch, func(c reference.Clause) bool { return c.Codes == nil })
	})
}

// newStopping is a world whose workflow has these steps, and stops when one fails.
func newStopping(t *testing.T, steps []reference.Step) *flowWorld {
	f := newFlowWorld(newWorld(t), steps)
	f.work()
	f.must(f.define("stops", `, "on_failure": "stop"`))
	r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "stops", controlRequest())
	f.must(err)
	f.id, f.calls, f.handed, f.tries = r.ID, nil, map[string]string{}, map[string]int{}
	return f
}

// stopped tells in what a run that one failure stops has not come to its end: as failed of that step, with every step ended.
func (f *flowWorld) stoppedOf(path string) []string {
	return f.wrongEnd(map[run.State][]string{run.Failed: {"step " + path + " is failed: handler: told to"}})
}

// What no failure is stops nothing: one that is allowed, or that is caught, directly or by the scope around.
func TestW2_OnlyAFailureThatNothingHandlesStopsTheRun(t *testing.T) {
	allowed := task("a", bad, "")
	allowed.Allowed = true
	for name, steps := range map[string][]reference.Step{
		"allowed": {allowed, task("b", good, "", "a")},
		"caught":  caughtGraphs["caught"],
		"scopes":  caughtGraphs["scopes"],
		"scope_may_fail": {{Name: "s", Rule: "all_success", Allowed: true, Inside: []reference.Step{task("x", bad, ""), task("y", good, "all_done", "x")}},
			task("b", good, "", "s")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStopping(t, steps)
			f.work()
			if wrong := f.wrong(); len(wrong) > 0 {
				t.Fatal(strings.Join(wrong, "\n"))
			}
		})
	}
}

// A failure stops the run: what waits for it and what is queued ends cancelled, and nothing starts behind the word.
func TestW2_W4_W5_AFailureStopsTheRun(t *testing.T) {
	steps := []reference.Step{fails("a", "handler"), task("b", good, "all_done", "a"), task("c", good, ""), task("d", good, "", "c"),
		{Name: "s", Rule: "all_success", Inside: []reference.Step{task("x", good, ""), task("y", good, "", "x")}}}
	f := newStopping(t, steps)
	f.work()
	wrong := f.stoppedOf("a")
	for path, row := range f.rows() {
		if want := map[string]run.State{"a": run.Failed}[path]; want != 0 && row.State != want {
			wrong = append(wrong, fmt.Sprintf("step %s is %s", path, row.State))
		}
		if path == "b" || path == "d" && row.State == run.Succeeded {
			wrong = append(wrong, fmt.Sprintf("step %s was released and is %s", path, row.State))
		}
	}
	if len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
}

// Where a scope has failed of a step and nothing around can handle it, the run does not wait for the others in it.
func TestW2_W4_AFailureInAScopeStopsTheRunAtOnce(t *testing.T) {
	slow := task("slow", good, "")
	slow.Fails, slow.Again = 1, 14*time.Minute
	f := newStopping(t, []reference.Step{{Name: "s", Rule: "all_success", Inside: []reference.Step{fails("x", "handler"), slow}}})
	f.work()
	if wrong := f.stoppedOf("s/x"); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
	if rows := f.rows(); rows["s/slow"].State != run.Cancelled {
		t.Errorf("the other step of the scope is %s, want it cancelled", rows["s/slow"].State)
	}
}

// Whoever works is gone before each of its operations in turn, where a failure stops the run: it ends failed of that step, and nothing starts once that is written.
func TestW3_W4_W5_Fault41_EveryOperationOfAWorkerIsItsLastWhereAFailureStops(t *testing.T) {
	steps := []reference.Step{fails("a", "handler"), task("b", good, ""), task("c", good, "", "b"), task("d", good, "all_done", "a", "c")}
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost_%t", lost), func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				f := newStopping(t, steps)
				f.during = func(path string) {
					if f.head().Cancel {
						t.Errorf("gone before operation %d: step %s starts behind the word", k, path)
					}
				}
				met, last := f.crashing(k)
				if lost {
					f.elapsed += 20 * time.Minute
					f.lose()
				}
				f.calm()
				if wrong := f.stoppedOf("a"); len(wrong) > 0 {
					t.Fatalf("gone before operation %d (%s):\n%s", k, last, strings.Join(wrong, "\n"))
				}
				if !met {
					break
				}
			}
		})
	}
}

// A step is put by somebody who has read that the run goes on, and stands still while another stops it: the step ends without a start.
func TestW4_W5_AStepThatIsPutBehindTheWordStartsNot(t *testing.T) {
	steps := []reference.Step{task("b", good, ""), task("c", good, "", "b"), fails("z", "handler")}
	behind := 0
	for k := 1; ; k++ {
		f := newStopping(t, steps)
		thaw := f.freezing(k)
		if thaw == nil {
			break
		}
		f.elapsed += 35 * time.Second
		f.calm()
		head := f.head()
		f.mu.Lock()
		f.stopped = head.State.Ended()
		f.mu.Unlock()
		thaw()
		f.calm()
		if after := f.head(); after.State != run.Failed || !strings.HasPrefix(after.Reason, "step z is failed: handler: told to") || len(f.breaches) > 0 {
			t.Fatalf("stood still before operation %d: the run is %s (%s)\n%s", k, after.State, after.Reason, strings.Join(f.breaches, "\n"))
		}
		for path, row := range f.rows() {
			if !row.State.Ended() {
				t.Errorf("stood still before operation %d: step %s is %s", k, path, row.State)
			}
			if head.State.Ended() && row.Ended > head.Ended && row.State == run.Cancelled {
				behind++
			}
		}
	}
	if behind == 0 {
		t.Error("nobody has put a step behind the word")
	}
}

// Scenario 24: a failure has a chain of as many steps as there may be skipped, and then one runs. Whoever works is gone before each of its operations.
func TestW1_W2_W3_Scenario24_ASkipThatGoesThroughAWholeWorkflow(t *testing.T) {
	steps := []reference.Step{fails("first", "handler", reference.Clause{To: "handler"}), task("handler", good, "")}
	before := "first"
	for i := range flow.MaxNodes - 3 {
		name := fmt.Sprintf("s%03d", i)
		steps = append(steps, task(name, good, "", before))
		before = name
	}
	steps = append(steps, task("last", good, "all_skipped", before))
	for k := 1; ; k++ {
		f := newFlowWorld(newWorld(t), steps)
		met, last := f.crashing(k)
		f.calm()
		if wrong := f.wrong(); len(wrong) > 0 {
			t.Fatalf("gone before operation %d (%s):\n%s", k, last, strings.Join(wrong, "\n"))
		}
		if !met {
			return
		}
	}
}

// Scenario 36: the store is away for two hours, while a failure is caught.
func TestW2_W3_Scenario36_TheStoreIsAwayWhileAFailureIsCaught(t *testing.T) {
	f := newFlowWorld(newWorld(t), caughtGraphs["caught"])
	until := f.elapsed + 2*time.Hour
	gone := func(operation) faulty.Fault {
		if f.elapsed < until {
			return faulty.Fault{Refuse: store.ErrThrottled}
		}
		return faulty.Fault{}
	}
	f.during = func(string) { f.host("worker").before = gone }
	f.must(f.host("worker").worker.Pass(context.Background(), 0))
	f.elapsed = until + time.Minute
	f.calm()
	if wrong := f.wrong(); len(wrong) > 0 {
		t.Fatal(strings.Join(wrong, "\n"))
	}
}

// What a step reads of the failures that it handles is the same at each attempt, and is read through a pass, and in a scope, as by the step itself. A failure of an expression
// is caught as any other: of what the step is handed, and of what it asks.
func TestW2_W9_Scenario25_WhatWasCaughtIsReadAsItWas(t *testing.T) {
	workflow := `{"steps": {"extract": {"handler": {"name": "give"}},
		"bad": {"needs": ["extract"], "handler": {"name": "give"}, "retry": {"max_attempts": 1}, "catch": [{"to": "handles"}]},
		"handed": {"needs": ["extract"], "handler": {"name": "give"}, "input": "${ .steps.extract.result.x }", "catch": [{"codes": ["expression"], "to": "handles"}]},
		"asks": {"needs": ["extract"], "handler": {"name": "give"}, "when": ".steps.extract.result", "catch": [{"codes": ["timeout"], "to": "other"}, {"codes": ["expression"], "to": "relay"}]},
		"two": {"needs": ["extract"], "handler": {"name": "give"}, "when": "true, false", "catch": [{"codes": ["expression"], "to": "group"}]},
		"handles": {"handler": {"name": "give"}, "input": "${ .caught }", "retry": {"max_attempts": 3}},
		"relay": {"pass": {"input": "${ .caught[0].step + \" \" + .caught[0].code }"}}, "reads": {"needs": ["relay"], "handler": {"name": "give"}, "input": "${ .steps.relay.result }"},
		"group": {"steps": {"x": {"handler": {"name": "give"}, "input": "${ .caught[0].step }"}}}, "other": {"handler": {"name": "give"}},
		"empty": {"handler": {"name": "give"}, "catch": [{"to": "other"}]}}}`
	for k := 1; ; k++ {
		d := newDataWorld(newWorld(t), workflow, `null`, `7`)
		d.fails["bad"], d.fails["handles"] = 100, 2
		met, last := d.crashing(k)
		d.calm()
		head := d.head()
		if head.State != run.Succeeded {
			t.Fatalf("gone before operation %d (%s): the run is %s (%s)", k, last, head.State, head.Reason)
		}
		const want = `[{"code":"handler","error":"handler: told to","step":"bad"},{"code":"expression","error":"expression: steps.handed.input: expected an object but got: number (7)","step":"handed"}]`
		for _, got := range d.inputs["handles"] {
			if got != want {
				t.Errorf("gone before operation %d (%s): the step that handles them was handed\n%s, want\n%s", k, last, got, want)
			}
		}
		if got := d.handed("reads"); got != `"asks expression"` {
			t.Errorf("gone before operation %d (%s): through a pass it is %s", k, last, got)
		}
		if got := d.handed("group/x"); got != `"two"` || len(d.inputs["other"]) > 0 {
			t.Errorf("gone before operation %d (%s): in a scope it is %s, and %d were handed what was not caught", k, last, got, len(d.inputs["other"]))
		}
		if !met {
			return
		}
	}
}
