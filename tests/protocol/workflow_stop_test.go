package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

const (
	firstWord  = "no longer needed"
	secondWord = "asked for again"
)

// cancels has a host ask for a cancel. It tells whether the run had ended before; any other refusal is an error.
func (f *flowWorld) cancels(host, reason string) (ended bool) {
	_, err := f.host(host).control.Cancel(context.Background(), tenant, f.id, reason)
	if refusal := (*control.Refusal)(nil); errors.As(err, &refusal) && refusal.Code == control.CodeRunEnded {
		return true
	}
	f.must(err)
	return false
}

// within has one thing done, by a host that is new, and another before the n-th operation of that. It tells whether it came so far.
func (f *flowWorld) within(n int, host string, one, other func()) (met bool) {
	h := f.restart(host)
	h.before = func(op operation) faulty.Fault {
		if op.n == n && !met {
			met = true
			other()
		}
		return faulty.Fault{}
	}
	one()
	h.before = nil
	return met
}

// halted says that nothing of the run may start from now on.
func (f *flowWorld) halted() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
}

// at does something in the n-th attempt of the run, or for 0 before the first, and lets the run come to its end. It tells whether there was such an attempt.
func (f *flowWorld) at(n int, do func()) (met bool) {
	if n == 0 {
		do()
	}
	calls := 0
	f.during = func(string) {
		if calls++; calls == n {
			do()
		}
	}
	f.work()
	f.calm()
	return calls >= n
}

// wrongEnd tells in what a run that was stopped has not come to an end of one of these states, with a reason that begins so.
func (f *flowWorld) wrongEnd(want map[run.State][]string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrong, head, fits := f.breaches, f.head(), false
	for _, reason := range want[head.State] {
		fits = fits || strings.HasPrefix(head.Reason, reason)
	}
	if !fits {
		wrong = append(wrong, fmt.Sprintf("W4: the run is %s (%s), want %v", head.State, head.Reason, want))
	}
	for path, row := range f.rows() {
		if !row.State.Ended() || row.Ended > head.Ended {
			wrong = append(wrong, fmt.Sprintf("W4: step %s is %s, and ended %d ms behind its run", path, row.State, row.Ended-head.Ended))
		}
	}
	return wrong
}

// Scenario 14: a run is cancelled twice, in each attempt in turn and before the first: one cancel behind the other, and before each operation of the other.
// Both are answered, nothing starts behind the first answer, and the run ends once. A cancel of what has ended says so and changes nothing.
func TestW4_W5_Scenario14_CancelledTwice(t *testing.T) {
	for _, name := range few() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n, more := 0, true; more; n++ {
				for m := 0; ; m++ {
					f := newFlowWorld(newWorld(t), graphs[name])
					met := true
					again := func() {
						if f.cancels("other", secondWord) && n > 0 {
							t.Errorf("cancelled twice in attempt %d, before operation %d: the run had ended while a step ran", n, m)
						}
						f.halted()
					}
					more = f.at(n, func() {
						if m == 0 {
							f.cancels("asks", firstWord)
							f.halted()
							again()
							return
						}
						met = f.within(m, "asks", func() { f.cancels("asks", firstWord) }, again)
						f.halted()
					})
					if !more || !met {
						break
					}
					wrong := f.wrongEnd(map[run.State][]string{run.Cancelled: {firstWord, secondWord}})
					before := f.head()
					if !f.cancels("late", "much later") {
						wrong = append(wrong, "W4: a cancel of the run that has ended was taken")
					}
					f.calm()
					if after := f.head(); after.Ended != before.Ended || after.Reason != before.Reason || after.State != before.State {
						wrong = append(wrong, fmt.Sprintf("W4: the run was %s (%s), and is %s (%s)", before.State, before.Reason, after.State, after.Reason))
					}
					if len(wrong) > 0 {
						t.Fatalf("cancelled twice in attempt %d, before operation %d:\n%s", n, m, strings.Join(wrong, "\n"))
					}
				}
			}
		})
	}
}

// newShort is a world whose workflow has these steps and 10 seconds of time.
func newShort(t *testing.T, name string) *flowWorld {
	f := newFlowWorld(newWorld(t), graphs[name])
	f.work()
	f.must(f.define("short", `, "timeout": "10s"`))
	r, _, err := f.host("api").control.Trigger(context.Background(), tenant, "short", controlRequest())
	f.must(err)
	f.id, f.calls = r.ID, nil
	return f
}

// Scenario 14: a cancel against the end of a run's time, in each attempt in turn. Whichever was written first is what the run ends of, and neither is lost.
func TestW4_W5_Scenario14_CancelAgainstTheDeadline(t *testing.T) {
	cancelled, failed := map[run.State][]string{run.Cancelled: {firstWord}}, map[run.State][]string{run.Failed: {"timeout"}}
	either := map[run.State][]string{run.Cancelled: {firstWord}, run.Failed: {"timeout"}}
	over := func(f *flowWorld) { f.elapsed += 11 * time.Second }
	seen := func(f *flowWorld, host string) { // that its time is over
		f.must(f.host(host).dispatch.Follow(context.Background(), tenant, f.id, false))
	}
	for name, c := range map[string]struct {
		act  func(f *flowWorld, m int) (met bool) // m is 0 where the order is fixed
		want map[run.State][]string
	}{
		"cancelled_before": {func(f *flowWorld, m int) bool {
			f.cancels("asks", firstWord)
			f.halted()
			over(f)
			seen(f, "sees")
			return m == 0
		}, cancelled},
		"cancelled_behind": {func(f *flowWorld, m int) bool {
			over(f)
			seen(f, "sees")
			f.halted()
			f.cancels("asks", firstWord)
			return m == 0
		}, failed},
		"not_yet_seen": {func(f *flowWorld, m int) bool {
			over(f)
			f.cancels("asks", firstWord)
			f.halted()
			seen(f, "sees")
			return m == 0
		}, cancelled},
		"over_in_the_cancel": {func(f *flowWorld, m int) bool {
			return m == 0 || f.within(m, "asks", func() { f.cancels("asks", firstWord) }, func() { over(f); seen(f, "sees") })
		}, either},
		"cancelled_in_the_look": {func(f *flowWorld, m int) bool {
			over(f)
			return m == 0 || f.within(m, "sees", func() { seen(f, "sees") }, func() { f.cancels("asks", firstWord) })
		}, either},
	} {
		for _, graph := range few() {
			t.Run(name+"_"+graph, func(t *testing.T) {
				t.Parallel()
				ends := map[run.State]bool{}
				for n, more := 1, true; more; n++ {
					for m := 0; ; m++ {
						if len(c.want) > 1 && m == 0 {
							continue // without an operation in between there is no order
						}
						f, met := newShort(t, graph), false
						more = f.at(n, func() { met = c.act(f, m); f.halted() })
						if !more || !met {
							break
						}
						if wrong := f.wrongEnd(c.want); len(wrong) > 0 {
							t.Fatalf("in attempt %d, before operation %d:\n%s", n, m, strings.Join(wrong, "\n"))
						}
						before := f.head()
						f.calm()
						if after := f.head(); after.Ended != before.Ended || after.State != before.State {
							t.Fatalf("in attempt %d, before operation %d: the run was %s, and is %s", n, m, before.State, after.State)
						}
						ends[before.State] = true
					}
				}
				for state := range c.want {
					if !ends[state] {
						t.Errorf("no run ended %s, want it in some order", state)
					}
				}
			})
		}
	}
}
