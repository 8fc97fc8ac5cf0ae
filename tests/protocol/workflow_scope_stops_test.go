package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// stopsAt gives the innermost scope around a step that was stopped, as the run says it, and by what; "" for none.
func (f *flowWorld) stopsAt(path string) (scope string, by int) {
	head := f.head()
	if len(head.Stops()) == 0 {
		return "", flow.None
	}
	g, err := f.host("api").control.Graph(context.Background(), tenant, f.id)
	f.must(err)
	by = flow.None
	for _, s := range head.Stops() {
		if at := g.Workflow.Nodes[s.Scope].Path; strings.HasPrefix(path, at+"/") && len(at) > len(scope) {
			scope, by = at, s.By
		}
	}
	return scope, by
}

// startedStopped notes a step that was called in a scope that had been stopped.
func (f *flowWorld) startedStopped(path string) {
	if scope, _ := f.stopsAt(path); scope != "" {
		f.breaches = append(f.breaches, "W5: step "+path+" started after scope "+scope+" was stopped")
	}
}

// came is the graph as it has come about: what was cancelled has failed of that, and so has a scope that was cut off, of what stopped it.
func (f *flowWorld) came(steps []reference.Step) []reference.Step {
	rows := f.rows()
	cut := map[string]string{}
	for path, row := range rows {
		if row.State != run.Cancelled {
			continue
		}
		if scope, by := f.stopsAt(path); scope != "" {
			cut[scope] = "timeout"
			if by != flow.None {
				g, err := f.host("api").control.Graph(context.Background(), tenant, f.id)
				f.must(err)
				cut[scope] = rows[g.Workflow.Nodes[by].Path].Code()
				if g.Workflow.Nodes[by].Kind == flow.KindScope && rows[g.Workflow.Nodes[by].Path].State != run.Failed {
					cut[scope] = "timeout" // which was stopped by its time
				}
			}
		}
	}
	var as func(steps []reference.Step, prefix string) []reference.Step
	as = func(steps []reference.Step, prefix string) []reference.Step {
		out := slices.Clone(steps)
		for k := range out {
			s := &out[k]
			path := prefix + s.Name
			s.Inside = as(s.Inside, path+"/")
			s.Stopped = cut[path]
			if s.Limit != 0 && s.When == 0 {
				s.When = reference.Success
			}
			if rows[path].State != run.Cancelled {
				continue
			}
			if s.Code = "cancelled"; len(s.Inside) > 0 {
				s.When = reference.Failure
			} else {
				s.End = reference.Failure
			}
		}
		return out
	}
	return as(steps, "")
}

// Random graphs whose scopes stop for failures, and have some time, come out as the evaluator says by how each step has ended, whatever was lost, doubled or gone; and
// nothing starts in a scope that was stopped.
func TestW1_W2_W3_W4_W5_RandomGraphsWhoseScopesStop(t *testing.T) {
	stopped := randomGraphs(t, 44, func(chance *rand.Rand, steps []reference.Step) []reference.Step {
		slow := task("more-slow", good, "")
		slow.Fails, slow.Again = 3, 2*time.Minute
		fails := task("more-bad", []rune{good, bad}[chance.IntN(2)], "all_done", "more-0")
		steps = append(steps, reference.Step{Name: "more", Rule: "all_done", Inside: append(drawSteps(chance, "more-", 1), slow, fails, task("more-last", good, "all_done", "more-slow"))},
			task("after", good, []string{"all_done", "all_success", "one_failed"}[chance.IntN(3)], "more"))
		if chance.IntN(3) == 0 {
			asking(chance, steps)
		} else {
			catching(chance, steps)
		}
		scopesAsk(chance, steps)
		scopesStop(chance, steps)
		return steps
	})
	if stopped < 20 {
		t.Errorf("only %d scopes were stopped", stopped)
	}
}

// scopesStop has scopes stop.
func scopesStop(chance *rand.Rand, steps []reference.Step) {
	for i := range steps {
		s := &steps[i]
		if len(s.Inside) == 0 {
			continue
		}
		scopesStop(chance, s.Inside)
		for k := range s.Inside {
			if in := &s.Inside[k]; len(in.Inside) == 0 && len(in.Choices) == 0 && !in.Pass && chance.IntN(2) == 0 {
				in.Fails, in.Again = 1+chance.IntN(2), 2*time.Minute
			}
		}
		s.Reads = nil
		s.Stops = chance.IntN(3) > 0
		if chance.IntN(2) == 0 {
			s.Limit = time.Duration(10+chance.IntN(120)) * time.Second
		}
	}
}

const (
	stopsOnce = `{"timeout": "30d", "steps": {"before": {"handler": {"name": "act"}}, "s": {"needs": ["before"], %s "catch": [{"codes": ["%s"], "to": "h"}], "steps": {%s}},
		"h": {"handler": {"name": "act"}, "input": "${ .caught[0] }"}, "next": {"needs": ["s"], "handler": {"name": "act"}}, "other": {"needs": ["s"], "rule": "one_failed", "handler": {"name": "act"}}, "last": {"needs": ["h", "next"], "rule": "none_failed_min_one_success", "handler": {"name": "act"}}}}`
	clings = `"b": {"handler": {"name": "fails"}, "retry": {"max_attempts": 20, "initial": "1h", "max": "2h"}}, "c": {"wait": {"for": "20d"}}, "d": {"needs": ["b"], "rule": "all_done", "handler": {"name": "act"}},
		"t": {"needs": ["c"], "rule": "all_done", "timeout": "1m", "steps": {"e": {"handler": {"name": "act"}}}}, "f": {"needs": ["c"], "handler": {"name": "act"}}`
)

// stopping is a world with a run whose scope is stopped, by a failure of s/a or by its time, and caught.
func stopping(t *testing.T, scope, code, steps string, options ...option) *flowWorld {
	t.Helper()
	f := newFlowWorld(newWorld(t, options...), graphs["chain"])
	f.work()
	for name, err := range map[string]error{"fails": errors.New("told to, for now"), "breaks": target.Permanent(errors.New("told to"))} {
		f.must(f.handlers.Register(name, func(_ context.Context, c target.Call) (target.Result, error) {
			if _, path, _ := strings.Cut(c.Run, "/"); f.during != nil {
				f.during(path)
			}
			return target.Result{}, err
		}))
	}
	f.asks(fmt.Sprintf(stopsOnce, scope, code, steps))
	f.during = f.startedStopped
	return f
}

// outcome tells in what a run whose scope s was stopped, and caught of a code, has not come out so.
func (f *flowWorld) outcome(code string) (wrong []string) {
	wrong = slices.Clone(f.breaches)
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	head, rows := f.head(), f.rows()
	if head.State != run.Succeeded {
		add("W4: the run is %s (%s), want it succeeded", head.State, head.Reason)
	}
	for path, row := range rows {
		if !row.State.Ended() || row.Ended > head.Ended {
			add("W4: step %s is %s, and ended %d ms behind its run", path, row.Stage(), row.Ended-head.Ended)
		}
		if inside := strings.HasPrefix(path, "s/") && path != "s/a"; inside && (row.State != run.Cancelled || row.Reason == "" || row.Code() != "cancelled") {
			add("W5: step %s is %s (%s), want it cancelled", path, row.State, row.Reason)
		}
	}
	if got := slices.Compact(f.paths()); !slices.Equal(got, []string{"before", "h", "last"}) { // one is called again whose worker has died
		add("W1: its calls were %q", got)
	}
	if got := f.handed[f.id.String()+"/h"]; !strings.Contains(got, `"code":"`+code+`"`) || !strings.Contains(got, `"step":"s"`) {
		add("W9: who handles it was handed %s, want the code %s", got, code)
	}
	g, err := f.host("api").control.Graph(context.Background(), tenant, f.id)
	f.must(err)
	for _, s := range g.Steps {
		want := map[string]flow.State{"s": flow.Failed, "s/d": flow.Cancelled, "s/t": flow.Cancelled, "s/t/e": flow.Cancelled, "s/f": flow.Cancelled, "next": flow.Skipped, "other": flow.Skipped}[s.Node.Path]
		if want != "" && s.State != want {
			add("step %s is shown as %s, want %s", s.Node.Path, s.State, want)
		}
		if s.Node.Path == "s" && (s.Stopped == "" || s.Code != code) {
			add("the scope says %q and %q", s.Stopped, s.Code)
		}
	}
	return wrong
}

// Whoever works or ticks dies at each operation in turn while a failure stops a scope, and its messages are lost or come again: all that is open in the scope ends, nothing
// in it starts, and whoever handles its failure runs once.
func TestW1_W3_W4_W5_AFailureStopsItsScopeWhoseFollowersDie(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for n, more := 1, true; more; n++ {
			f := stopping(t, `"on_failure": "stop",`, "handler", `"a": {"handler": {"name": "breaks"}}, `+clings)
			more, _ = f.crashing(n)
			if lost {
				f.lose()
			}
			f.calm()
			if wrong := f.outcome("handler"); len(wrong) > 0 {
				t.Fatalf("died at %d, messages lost: %t:\n%s", n, lost, strings.Join(wrong, "\n"))
			}
		}
	}
}

// The same while the time of a scope is told and while it is over.
func TestW1_W3_W4_W5_TheTimeOfAScopeWhoseFollowersDie(t *testing.T) {
	for n, more := 1, true; more; n++ {
		f := stopping(t, `"timeout": "5m",`, "timeout", clings)
		more, _ = f.crashing(n)
		f.lose()
		for range 60 * 8 {
			if f.advance(5*time.Second, 5*time.Second, "calm"); f.head().State.Ended() {
				break
			}
		}
		if wrong := f.outcome("timeout"); len(wrong) > 0 {
			t.Fatalf("died at %d, before:\n%s", n, strings.Join(wrong, "\n"))
		}
	}
	for n, more := 1, true; more; n++ {
		f := stopping(t, `"timeout": "26h",`, "timeout", `"c": {"wait": {"for": "20d"}}, "d": {"needs": ["c"], "rule": "all_done", "handler": {"name": "act"}}`)
		f.work()
		f.advance(40*time.Minute, 10*time.Second, "calm") // it is quiet
		if checks := f.checks(); len(checks) != 1 || checks[0] < f.now()+(20*time.Hour).Milliseconds() {
			t.Fatalf("checks lie at %v, want one tomorrow", checks)
		}
		f.advance(26*time.Hour-41*time.Minute, time.Minute, "calm")
		over := f.rows()["s"].NextAt
		f.elapsed += time.Duration(over-f.now()+3000) * time.Millisecond
		more = f.dies(n, (*host).tick)
		f.lose()
		f.advance(20*time.Minute, 10*time.Second, "calm")
		if wrong := f.outcome("timeout"); len(wrong) > 0 {
			t.Fatalf("died at %d, behind:\n%s", n, strings.Join(wrong, "\n"))
		}
	}
}

// Whoever finds the time of a scope over dies at each operation in turn, and no check comes behind that: once his word is written, a step of the scope starts nothing whose
// message comes then.
func TestW5_NothingStartsBehindTheWord(t *testing.T) {
	words := 0
	for n, more := 1, true; more; n++ {
		f := stopping(t, `"timeout": "2m",`, "timeout", `"b": {"handler": {"name": "fails"}, "retry": {"max_attempts": 20, "initial": "5m", "max": "10m"}}`)
		f.work()
		f.elapsed += 2*time.Minute + 5*time.Second
		more = f.dies(n, func(h *host) error { return h.dispatch.Follow(context.Background(), tenant, f.id, false) })
		stopped := len(f.head().Stops()) > 0
		f.elapsed += 11 * time.Minute
		f.work()
		if stopped {
			words++
			f.calm()
			if wrong := f.outcome("timeout"); len(wrong) > 0 {
				t.Fatalf("died at %d:\n%s", n, strings.Join(wrong, "\n"))
			}
		}
	}
	if words < 3 {
		t.Errorf("the word was written %d times", words)
	}
}

// Somebody reads the run before a scope of it is stopped, and its steps behind that, at each operation of his: he takes no step that was cancelled for a failure of the scope.
func TestW2_W4_WhoHasReadTheRunBeforeAStop(t *testing.T) {
	for n, more := 1, true; more; n++ {
		f := stopping(t, `"timeout": "10m",`, "timeout", `"c": {"wait": {"for": "20d"}}`)
		f.work()
		f.elapsed += 10*time.Minute + time.Second
		follow := func(host string) func() {
			return func() { f.must(f.host(host).dispatch.Follow(context.Background(), tenant, f.id, false)) }
		}
		more = f.within(n, "slow", follow("slow"), follow("quick"))
		f.work()
		f.calm()
		if wrong := f.outcome("timeout"); len(wrong) > 0 {
			t.Fatalf("stopped before operation %d:\n%s", n, strings.Join(wrong, "\n"))
		}
		if f.rows()["other"].Version != 0 {
			t.Fatalf("stopped before operation %d: what follows from a failure that nobody handles was released", n)
		}
	}
}

// The time of a scope is over in time, and never before, however ticks come.
func TestP3_W3_TheTimeOfAScopeIsOverInTime(t *testing.T) {
	for name, ticks := range map[string]struct{ lookAhead, every, bound time.Duration }{
		"by_second": {2 * time.Second, time.Second, 3 * time.Second},
		"by_minute": {150 * time.Second, time.Minute, 2*time.Minute + 5*time.Second},
	} {
		for _, limit := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 3 * time.Minute, 16 * time.Minute, 40 * time.Minute, 25 * time.Hour} {
			if limit > time.Hour && ticks.every < time.Minute {
				continue
			}
			for what, steps := range map[string]string{"waits": `"c": {"wait": {"for": "20d"}}`, "tries": `"b": {"handler": {"name": "fails"}, "retry": {"max_attempts": 100, "initial": "30s", "max": "50m"}}`} {
				t.Run(name+"_"+what+"_"+limit.String(), func(t *testing.T) {
					t.Parallel()
					f := stopping(t, `"timeout": "`+limit.String()+`",`, "timeout", steps, lookAhead(ticks.lookAhead))
					f.work()
					over := f.rows()["before"].Ended + limit.Milliseconds()
					if row := f.rows()["s"]; row.State != run.Succeeded || row.NextAt != over {
						t.Fatalf("the scope is %s until %d, want until %d", row.State, row.NextAt, over)
					}
					for f.now() < over+ticks.bound.Milliseconds() {
						if f.now() < over && len(f.head().Stops()) > 0 {
							t.Fatalf("%d ms before its time the scope was stopped", over-f.now())
						}
						f.advance(ticks.every, ticks.every, "calm")
					}
					if wrong := f.outcome("timeout"); len(wrong) > 0 {
						t.Error(strings.Join(wrong, "\n"))
					}
				})
			}
		}
	}
}

// Nobody comes by between the time of a scope and the end of a wait in it, which is later: the scope was over first, so it is stopped, and the wait is cancelled. One that was
// to end before has.
func TestW2_W5_AWaitBehindTheTimeOfItsScopeDoesNotEnd(t *testing.T) {
	f := stopping(t, `"timeout": "1h",`, "timeout", `"a": {"wait": {"for": "50m"}}, "c": {"wait": {"for": "2h"}}`)
	f.work()
	f.elapsed += 5 * time.Hour
	f.calm()
	if wrong := f.outcome("timeout"); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	if a := f.rows()["s/a"]; a.State != run.Succeeded {
		t.Errorf("what was over before is %s (%s)", a.State, a.Reason)
	}
}

// The time of a scope that has ended, or was stopped, keeps no run from being quiet that waits behind it.
func TestP4_W3_ARunIsQuietBehindTheTimeOfAScope(t *testing.T) {
	for name, steps := range map[string]string{
		"it has ended":   `"s": {"timeout": "10m", "steps": {"a": {"handler": {"name": "act"}}}}, "w": {"needs": ["s"], "wait": {"for": "30d"}}`,
		"it was stopped": `"s": {"timeout": "10m", "steps": {"c": {"wait": {"for": "1d"}}}}, "w": {"needs": ["s"], "rule": "all_done", "wait": {"for": "30d"}}`,
	} {
		f := waits(t, `{"timeout": "60d", "steps": {`+steps+`}}`)
		f.advance(30*time.Minute, 10*time.Second, "calm")
		if row := f.rows()["w"]; !row.Suspended() {
			t.Fatalf("%s: behind the scope the wait is %s", name, row.Stage())
		}
		if checks := f.checks(); len(checks) != 1 || checks[0] < f.now()+(20*time.Hour).Milliseconds() {
			t.Errorf("%s: checks lie at %v, want one tomorrow", name, checks)
		}
	}
}

// The last step of a scope ends before each operation of whoever finds its time over, and somebody who brings the run on stands still before each of his meanwhile: the scope
// has succeeded or was stopped, for all who go on behind it.
func TestW2_W4_TheLastStepOfAScopeEndsWithItsTime(t *testing.T) {
	ends := map[string]int{}
	judge := func(f *flowWorld, at string) {
		f.calm()
		called := strings.Join(f.paths(), " ")
		wrong := f.breaches
		if head := f.head(); head.State != run.Succeeded {
			wrong = append(wrong, fmt.Sprintf("W4: the run is %s (%s)", head.State, head.Reason))
		}
		rows := f.rows()
		if rows["other"].Version != 0 {
			wrong = append(wrong, "W2: what follows from a failure that nobody handles was released")
		}
		if next, handled := rows["next"].Version != 0, rows["h"].Version != 0; next == handled {
			wrong = append(wrong, fmt.Sprintf("W2: behind the scope what follows from its success was released: %t, and from its failure: %t", next, handled))
		}
		for path, row := range rows {
			if !row.State.Ended() {
				wrong = append(wrong, fmt.Sprintf("W4: step %s is %s", path, row.Stage()))
			}
		}
		if len(wrong) > 0 {
			t.Fatalf("%s: called %s\n%s", at, called, strings.Join(wrong, "\n"))
		}
		ends[called]++
	}
	const steps = `"a": {"wait": {"for": "9m58s"}}, "b": {"needs": ["a"], "handler": {"name": "act"}}, "d": {"needs": ["b"], "when": ".input.no == 1", "handler": {"name": "act"}}`
	for n, more := 1, true; more; n++ {
		f := stopping(t, `"timeout": "10m",`, "timeout", steps)
		f.work()
		f.advance(9*time.Minute+50*time.Second, 10*time.Second, "calm")
		f.elapsed += 10 * time.Second
		f.must(f.host("calm").tick()) // which puts b in its queue
		f.elapsed += 5 * time.Second
		more = f.within(n, "ticks", func() { f.must(f.host("ticks").tick()) }, f.work)
		f.work()
		judge(f, fmt.Sprintf("b ended before operation %d", n))
	}
	for n := 1; ; n++ {
		f := stopping(t, `"timeout": "10m",`, "timeout", steps)
		f.work()
		f.advance(9*time.Minute+50*time.Second, 10*time.Second, "calm")
		f.elapsed += 10 * time.Second
		f.must(f.host("calm").tick())
		thaw := f.freezing(n)
		if thaw == nil {
			judge(f, "nobody stood still")
			break
		}
		f.advance(3*time.Minute, 10*time.Second, "calm")
		thaw()
		judge(f, fmt.Sprintf("stood still before %d", n))
	}
	if len(ends) < 2 {
		t.Errorf("the runs came out as %v, want both ways", ends)
	}
	t.Logf("%v", ends)
}

// A step that runs is told to stop when its scope is, the scope ends when it has ended, and what is beside it goes on.
func TestW4_W5_WhatRunsInAScopeIsToldToStop(t *testing.T) {
	f := stopping(t, `"on_failure": "stop",`, "handler", `"a": {"needs": ["c"], "handler": {"name": "breaks"}}, "b": {"handler": {"name": "act"}}, "c": {"handler": {"name": "act"}}`)
	marked, open := false, false
	f.during = func(path string) {
		f.startedStopped(path)
		if path != "s/b" {
			return
		}
		other := f.host("other")
		for range 10 {
			f.must(other.worker.Pass(context.Background(), 0))
		}
		row := f.rows()["s/b"]
		marked, open = row.State == run.Running && row.Cancel, f.rows()["h"].Version == 0
	}
	f.work()
	f.calm()
	if !marked || !open {
		t.Errorf("while it ran it was told: %t, and nobody went on behind its scope: %t", marked, open)
	}
	if head := f.head(); head.State != run.Succeeded || f.rows()["next"].Version != 0 || f.rows()["h"].State != run.Succeeded {
		t.Errorf("the run is %s (%s), and h %s", head.State, head.Reason, f.rows()["h"].State)
	}
}
