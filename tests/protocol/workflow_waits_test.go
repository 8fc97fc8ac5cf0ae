package protocol_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// waits gives a flowWorld with the run of a job that has these steps, which has begun: its first steps are released.
func waits(t *testing.T, steps string, options ...option) *flowWorld {
	t.Helper()
	f := newFlowWorld(newWorld(t, options...), graphs["chain"])
	f.work()
	f.asks(steps)
	f.work()
	return f
}

// asks has a job of these steps, or of a whole workflow, and asks for a run of it.
func (f *flowWorld) asks(steps string) {
	text := `{"steps": {` + steps + `}}`
	if strings.HasPrefix(steps, "{") {
		text = steps
	}
	_, _, err := f.host("api").control.Put(context.Background(), tenant, "waits", job.Definition{Target: target.Spec{Workflow: []byte(text)}}, control.Match{})
	f.must(err)
	r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "waits", controlRequest())
	f.must(err)
	f.id, f.calls = r.ID, nil
}

const (
	before = `"a": {"handler": {"name": "act"}}, `
	behind = `, "b": {"needs": ["w"], "handler": {"name": "act"}}`
)

// paths are the steps that were called, in order.
func (f *flowWorld) paths() []string {
	var paths []string
	for _, c := range f.calls {
		paths = append(paths, c.step.Step)
	}
	return paths
}

// checks are when checks of the run lie ahead of the present, Unix ms.
func (f *flowWorld) checks() []int64 {
	var wakes []int64
	for _, item := range f.items("due#") {
		one, err := timer.FromItem(item)
		f.must(err)
		if one.Kind == timer.Check && one.Run == f.id && one.Wake > f.now() {
			wakes = append(wakes, one.Wake)
		}
	}
	slices.Sort(wakes)
	return wakes
}

// A wait of any length ends when its time has come, and never before, and what follows from it goes on then, however ticks come.
func TestP3_W1_W3_AWaitEndsInTime(t *testing.T) {
	for name, ticks := range map[string]struct{ lookAhead, every, bound time.Duration }{
		"by_second": {2 * time.Second, time.Second, 3 * time.Second},
		"by_minute": {150 * time.Second, time.Minute, 2*time.Minute + 5*time.Second},
	} {
		for _, wait := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 3 * time.Minute, 7*time.Minute + time.Second, 16 * time.Minute, 40 * time.Minute, 25 * time.Hour, 50 * time.Hour} {
			if wait > time.Hour && ticks.every < time.Minute {
				continue // it is as with the others, and takes long
			}
			t.Run(name+"_"+wait.String(), func(t *testing.T) {
				t.Parallel()
				f := waits(t, before+`"w": {"needs": ["a"], "wait": {"for": "`+wait.String()+`"}}`+behind, lookAhead(ticks.lookAhead))
				row := f.rows()["w"]
				over := f.rows()["a"].Ended + wait.Milliseconds()
				if !row.Suspended() || row.NextAt != over {
					t.Fatalf("the wait is %s until %d, want it suspended until %d", row.Stage(), row.NextAt, over)
				}
				for f.now() < over+ticks.bound.Milliseconds() {
					if row := f.rows()["w"]; f.now() < over && (row.Stage() != run.Suspended || len(f.calls) != 1) {
						t.Fatalf("%d ms before its time the wait is %s", over-f.now(), row.Stage())
					}
					f.advance(ticks.every, ticks.every, "calm")
				}
				row = f.rows()["w"]
				if row.State != run.Succeeded || row.Ended < over || row.Ended > over+ticks.bound.Milliseconds() {
					t.Errorf("%s after its time the wait is %s, and ended %d ms after it", ticks.bound, row.Stage(), row.Ended-over)
				}
				if head := f.head(); head.State != run.Succeeded || !slices.Equal(f.paths(), []string{"a", "b"}) {
					t.Errorf("the run is %s, and its calls were %q", head.State, f.paths())
				}
			})
		}
	}
}

// dies has a host do something until its n-th operation, and then it is gone. It tells whether it came so far.
func (f *flowWorld) dies(n int, do func(h *host) error) (met bool) {
	h := f.restart("dies")
	h.before = func(op operation) faulty.Fault {
		if op.n < n {
			return faulty.Fault{}
		}
		met = true
		return faulty.Fault{Refuse: store.ErrClosed}
	}
	_ = do(h)
	delete(f.hosts, "dies")
	return met
}

// A run of which nothing is open but waits is looked at once a day, and found whenever one ends.
func TestP4_W3_ARunThatWaitsIsQuiet(t *testing.T) {
	f := waits(t, `{"timeout": "60d", "steps": {`+before+`"w": {"needs": ["a"], "wait": {"for": "6d"}}, "x": {"wait": {"for": "2d"}}`+behind+`}}`, lookAhead(150*time.Second))
	checks := map[int64]bool{}
	for f.now() < f.rows()["w"].NextAt-time.Minute.Milliseconds() {
		for _, wake := range f.checks() {
			checks[wake] = true
		}
		f.advance(time.Minute, time.Minute, "calm")
	}
	if len(checks) > 12 {
		t.Errorf("%d checks in six days, want one a day and few more", len(checks))
	}
	if rows := f.rows(); rows["x"].State != run.Succeeded || rows["x"].Ended > f.head().Started+(2*24*time.Hour+3*time.Minute).Milliseconds() {
		t.Errorf("the wait of two days is %s: %+v", rows["x"].Stage(), rows["x"])
	}
	f.advance(4*time.Minute, time.Minute, "calm")
	if head := f.head(); head.State != run.Succeeded || !slices.Equal(f.paths(), []string{"a", "b"}) {
		t.Errorf("the run is %s, and its calls were %q", head.State, f.paths())
	}
}

// A run is quiet when nothing but waits is open, and not while a step of it is in a queue: that one's message may be lost, and is found.
func TestW3_ARunWithAQueuedStepIsNotQuiet(t *testing.T) {
	const steps = `"w": {"wait": {"for": "3d"}}, "a": {"handler": {"name": "act"}}, "c": {"needs": ["a"], "handler": {"name": "act"}}`
	f := waits(t, steps)
	f.advance(20*time.Minute, 10*time.Second, "calm")
	if checks := f.checks(); len(checks) != 1 || checks[0] < f.now()+(20*time.Hour).Milliseconds() {
		t.Fatalf("checks lie at %v, want one tomorrow", checks)
	}
	f = newFlowWorld(newWorld(t), graphs["chain"])
	f.work()
	f.asks(steps)
	f.must(f.host("worker").worker.Pass(context.Background(), 0)) // which opens it
	f.lose()
	f.advance(17*time.Minute, 10*time.Second, "calm")
	if got := f.paths(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("its calls were %q, want both", got)
	}
}

// Whoever follows a run dies at each operation in turn: while the wait is put, and while it ends. The wait ends when its time has come and not before, once, and the run
// goes on and ends, as late as its checks are at the most.
func TestW1_W3_W4_AWaitWhoseFollowersDie(t *testing.T) {
	const wait = 5 * time.Minute
	for n, more := 1, true; more; n++ {
		f := newFlowWorld(newWorld(t), graphs["chain"])
		f.work()
		f.asks(before + `"w": {"needs": ["a"], "wait": {"for": "5m"}}` + behind)
		more, _ = f.crashing(n)
		f.lose()
		for range 60 * 8 {
			if row := f.rows()["w"]; row.Suspended() && row.NextAt != f.rows()["a"].Ended+wait.Milliseconds() {
				t.Fatalf("died at %d: it waits %d ms longer than it says, from the end of the step before it", n, row.NextAt-f.rows()["a"].Ended-wait.Milliseconds())
			}
			if row, ok := f.rows()["w"]; ok && row.State == run.Succeeded && row.Ended < f.rows()["a"].Ended+wait.Milliseconds() {
				t.Fatalf("died at %d: the wait has ended %d ms early", n, f.rows()["a"].Ended+wait.Milliseconds()-row.Ended)
			}
			if f.advance(5*time.Second, 5*time.Second, "calm"); f.head().State.Ended() {
				break
			}
		}
		if head := f.head(); head.State != run.Succeeded {
			t.Errorf("died at %d: the run is %s, want it succeeded", n, head.State)
		}
	}
	for n, more := 1, true; more; n++ {
		f := waits(t, before+`"w": {"needs": ["a"], "wait": {"for": "40m"}}`+behind)
		f.advance(39*time.Minute+30*time.Second, 10*time.Second, "calm") // it is quiet
		over := f.rows()["w"].NextAt
		f.elapsed += 35 * time.Second
		more = f.dies(n, (*host).tick)
		f.lose()
		if row := f.rows()["w"]; row.State == run.Succeeded && row.Ended < over {
			t.Errorf("died at %d: the wait has ended %d ms early", n, over-row.Ended)
		}
		f.advance(20*time.Minute, 10*time.Second, "calm")
		if head := f.head(); head.State != run.Succeeded || len(f.calls) != 2 {
			t.Errorf("died at %d: the run is %s after %q, want it succeeded", n, head.State, f.paths())
		}
	}
}

// A cancel ends a wait in the same answer, also where whoever was asked for it dies at any operation: a check finds its word.
func TestW4_W5_AWaitIsCancelled(t *testing.T) {
	for n, more := 1, true; more; n++ {
		f := waits(t, before+`"w": {"needs": ["a"], "wait": {"for": "6d"}}`+behind)
		f.advance(40*time.Minute, 10*time.Second, "calm") // it is quiet
		more = f.dies(n, func(h *host) error {
			_, err := h.control.Cancel(context.Background(), tenant, f.id, firstWord)
			return err
		})
		head, row := f.head(), f.rows()["w"]
		if !more && (head.State != run.Cancelled || row.State != run.Cancelled || row.Reason != firstWord) {
			t.Errorf("after the answer the run is %s, and its wait %s (%s)", head.State, row.Stage(), row.Reason)
		}
		if !head.Cancel && !head.State.Ended() {
			continue // the word was not written
		}
		f.advance(17*time.Minute, 10*time.Second, "calm")
		if head := f.head(); head.State != run.Cancelled || len(f.calls) != 1 {
			t.Errorf("died at %d: the run is %s 17 minutes after its cancel", n, head.State)
		}
	}
}

// The time of a run is over while it waits: the wait ends cancelled, and the run failed, in time.
func TestW4_W5_AWaitBeyondTheTimeOfItsRun(t *testing.T) {
	for _, timeout := range []string{"30s", "4m", "50m", "26h"} {
		f := waits(t, `{"timeout": "`+timeout+`", "steps": {"w": {"wait": {"until": "2040-01-01T00:00:00Z"}}, "b": {"needs": ["w"], "rule": "all_done", "handler": {"name": "act"}}}}`)
		d, err := time.ParseDuration(timeout)
		f.must(err)
		over := f.head().Started + d.Milliseconds()
		for f.now() < over+70_000 {
			if !f.rows()["w"].Suspended() && f.now() < over {
				t.Fatalf("timeout %s: the wait is %s before it", timeout, f.rows()["w"].Stage())
			}
			f.advance(10*time.Second, 10*time.Second, "calm")
		}
		if head, row := f.head(), f.rows()["w"]; head.State != run.Failed || !strings.HasPrefix(head.Reason, "timeout") || row.State != run.Cancelled || len(f.calls) != 0 {
			t.Errorf("timeout %s: the run is %s (%s), its wait %s, and %d steps were called", timeout, head.State, head.Reason, row.Stage(), len(f.calls))
		}
	}
}

// Until when a wait waits is told once: by an instant, by a time in a zone, and by an expression. What gives none fails the step for good, and what is past ends at once.
func TestW9_WhatAWaitWaitsUntil(t *testing.T) {
	later := base.Add(90 * time.Minute).UTC()
	for name, row := range map[string]struct {
		wait   string
		until  time.Time // zero: it has ended
		state  run.State
		reason string
	}{
		"instant":     {`"until": "` + later.Format(time.RFC3339) + `"`, later, 0, ""},
		"offset":      {`"until": "` + later.In(time.FixedZone("", 3600)).Format(time.RFC3339) + `"`, later, 0, ""},
		"zone":        {`"until": "` + later.Add(9*time.Hour).Format("2006-01-02T15:04:05") + `[Asia/Tokyo]"`, later, 0, ""},
		"expression":  {`"until": "${ .input.at }"`, later, 0, ""},
		"text":        {`"until": "${ .input.day }T00:00[UTC]"`, later.Truncate(24 * time.Hour).Add(24 * time.Hour), 0, ""},
		"of a step":   {`"until": "${ .steps.a.ended_at | .[:19] + \"Z\" | fromdate + 3600 | todate }"`, base.Add(time.Hour), 0, ""},
		"past":        {`"until": "2001-01-01T00:00:00Z"`, time.Time{}, run.Succeeded, "it waited until 2001-01-01T00:00:00Z"},
		"no instant":  {`"until": "${ .input.no }"`, time.Time{}, run.Failed, "expression: steps.w.wait.until: it gives null; want an instant"},
		"no time":     {`"until": "${ \"tomorrow\" }"`, time.Time{}, run.Failed, `expression: steps.w.wait.until: it gives "tomorrow"; want an instant`},
		"it fails":    {`"until": "${ error(\"so\") }"`, time.Time{}, run.Failed, "expression: steps.w.wait.until: "},
		"not at all":  {`"for": "1h"}, "when": ".input.no == 1"`, time.Time{}, run.Skipped, "its condition does not hold"},
		"if it holds": {`"for": "1h"}, "when": ".input.no == null"`, base.Add(time.Hour), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlowWorld(newWorld(t), graphs["chain"])
			f.work()
			wait := `"wait": {` + row.wait + `}`
			if strings.Contains(row.wait, "when") {
				wait = `"wait": {` + row.wait
			}
			text := fmt.Sprintf(`{"steps": {%s"w": {"needs": ["a"], %s}%s}}`, before, wait, behind)
			_, _, err := f.host("api").control.Put(context.Background(), tenant, "waits", job.Definition{Target: target.Spec{Workflow: []byte(text)}}, control.Match{})
			f.must(err)
			r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "waits", control.Request{
				Payload: fmt.Appendf(nil, `{"at": %q, "day": %q}`, later.Format(time.RFC3339), later.Add(24*time.Hour).Format("2006-01-02"))})
			f.must(err)
			f.id = r.ID
			f.work()
			w := f.rows()["w"]
			if !row.until.IsZero() {
				if !w.Suspended() || w.NextAt != row.until.UnixMilli() {
					t.Errorf("it is %s until %s (%s), want %s", w.Stage(), time.UnixMilli(w.NextAt).UTC(), w.Reason, row.until)
				}
				return
			}
			if w.State != row.state || !strings.HasPrefix(w.Reason, row.reason) || !f.head().State.Ended() {
				t.Errorf("it is %s (%s), want %s (%s); the run is %s", w.Stage(), w.Reason, row.state, row.reason, f.head().State)
			}
		})
	}
}

// A step ends at each operation of whoever ends a wait beside it. One of the two sees both ends, and what needs both goes on with them, without another check.
func TestW3_W4_AWaitEndsBesideAStep(t *testing.T) {
	steps := `"v": {"wait": {"for": "39m50s"}}, "s": {"needs": ["v"], "handler": {"name": "act"}}, "w": {"wait": {"for": "40m"}},
		"c": {"needs": ["s", "w"], "handler": {"name": "act"}}`
	for i := range 30 { // so many that whoever ends a step reads few others
		steps += fmt.Sprintf(`, "p%02d": {"pass": {}}`, i)
	}
	for n, more := 1, true; more; n++ {
		f := waits(t, steps)
		f.advance(39*time.Minute+40*time.Second, 10*time.Second, "calm")
		f.elapsed += 12 * time.Second
		f.must(f.host("calm").tick()) // which puts the step in its queue
		if s := f.rows()["s"]; s.State != run.Queued {
			t.Fatalf("the step is %s", s.Stage())
		}
		f.elapsed += 11 * time.Second
		more = f.within(n, "ticks", func() { f.must(f.host("ticks").tick()) }, f.work)
		if rows := f.rows(); rows["s"].State.Ended() && rows["w"].State.Ended() && rows["c"].Version == 0 {
			t.Errorf("it ended before operation %d: both have ended, and nobody has released what needs them", n)
		}
		f.work()
		if head := f.head(); head.State != run.Succeeded {
			t.Errorf("it ended before operation %d: the run is %s", n, head.State)
		}
	}
}
