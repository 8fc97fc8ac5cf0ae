package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// forked is a dispatcher with a workflow's run that is under way.
type forked struct {
	*gated
	head run.Run
}

func newForked(t *testing.T, steps string) *forked {
	t.Helper()
	f := &forked{gated: newGated(t)}
	f.edit(func(j *job.Job) {
		j.Generation++
		j.Def = job.Definition{Target: target.Spec{Workflow: fmt.Appendf(nil, `{"steps": {%s}}`, steps)}}.WithDefaults()
	})
	f.head = f.write(run.Run{ID: run.RequestID("report", f.now.UnixMilli(), 2), Tenant: "default", State: run.Queued, Generation: 2, Trigger: run.ByRequest, Priority: queue.Normal})
	f.head = f.write(f.head.Open(f.now.UnixMilli()))
	if err := f.Follow(t.Context(), "default", f.head.ID, false); err != nil {
		t.Fatal(err)
	}
	f.forget()
	return f
}

// step gives a step as it stands; of State 0 where it was not released.
func (f *forked) step(path string) run.Run {
	f.t.Helper()
	return f.stands(run.Run{ID: f.head.ID.At(path), Tenant: "default"})
}

// ended writes the end of a step that was released, and tells nobody.
func (f *forked) ended(path string) run.Run {
	f.t.Helper()
	s := f.write(f.step(path).Start("worker", f.now.UnixMilli(), f.Lease))
	return f.write(s.Succeed(f.now.UnixMilli(), run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}))
}

// follows has what follows from the end of a step done, and gives what was asked of the store for it.
func (f *forked) follows(path string) []string {
	f.t.Helper()
	s := f.ended(path)
	f.forget()
	if err := f.Left(f.t.Context(), s); err != nil {
		f.t.Fatal(err)
	}
	return f.forget()
}

// are holds that these steps were released, and no others of the ones that are named.
func (f *forked) are(released string, not string) {
	f.t.Helper()
	for _, path := range strings.Fields(released) {
		if f.step(path).State == 0 {
			f.t.Errorf("step %s was not released", path)
		}
	}
	for _, path := range strings.Fields(not) {
		if s := f.step(path); s.State != 0 {
			f.t.Errorf("step %s is %s, want it not released", path, s.State)
		}
	}
	f.forget()
}

// calls writes steps that call something, each with the ones that it needs.
func calls(steps ...string) string {
	for i, s := range steps {
		name, needs, _ := strings.Cut(s, ":")
		steps[i] = fmt.Sprintf(`%q: {"handler": {"name": "x"}`, name)
		if needs, rule, _ := strings.Cut(needs, "/"); needs != "" {
			steps[i] += fmt.Sprintf(`, "needs": ["%s"]`, strings.ReplaceAll(needs, " ", `", "`))
			if rule != "" {
				steps[i] += fmt.Sprintf(`, "rule": %q`, rule)
			}
		}
		steps[i] += "}"
	}
	return strings.Join(steps, ", ")
}

// However many steps a chain has, who ends one reads the run, and puts the next.
func TestW3_TheEndOfAStepReadsNoOther(t *testing.T) {
	f := newForked(t, calls("a", "b:a", "c:b", "d:c"))
	for _, path := range []string{"a", "b", "c"} {
		if got, want := f.follows(path), []string{"get run#", "write step"}; !slices.Equal(got, want) {
			t.Errorf("for the end of %s the store was asked for %q, want %q", path, got, want)
		}
	}
	if got, want := f.follows("d"), []string{"get run#", "query ", "write run#"}; !slices.Equal(got, want) {
		t.Errorf("for the last end the store was asked for %q, want %q", got, want)
	}
	if head := f.stands(f.head); head.State != run.Succeeded {
		t.Errorf("the run is %s, want it succeeded", head.State)
	}
}

// Before a join of many, another step that is open is reason enough to go.
func TestW3_TheEndOfOneOfManyReadsOneThatIsOpen(t *testing.T) {
	var steps, names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("s%02d", i))
		steps = append(steps, names[i])
	}
	f := newForked(t, calls(append(steps, "z:"+strings.Join(names, " "))...))
	if got, want := f.follows("s07"), []string{"get run#", "get step"}; !slices.Equal(got, want) {
		t.Errorf("the store was asked for %q, want %q", got, want)
	}
	// Two are read by themselves, which had ended, and then all.
	f.ended("s09")
	f.ended("s10")
	if got, want := f.follows("s08"), []string{"get run#", "get step", "get step", "query "}; !slices.Equal(got, want) {
		t.Errorf("the store was asked for %q, want %q", got, want)
	}
	f.are("s59", "z")
	for _, path := range names {
		if !f.step(path).State.Ended() {
			f.follows(path)
		}
	}
	f.are("z", "")
}

// A step that another end had released early has ended already: whoever would release it too goes on behind it.
func TestW1_W3_WhoFindsAStepReleasedLooksBehindIt(t *testing.T) {
	f := newForked(t, calls("a", "b", "z:a b/one_success", "y:z b/all_done"))
	f.follows("a")
	f.are("z", "y")
	f.follows("z")
	f.are("", "y")
	f.follows("b")
	f.are("y", "")
	if z := f.step("z"); z.State != run.Succeeded {
		t.Errorf("the step that had ended is %s now", z.State)
	}
}

// Of steps that end while what follows from another end is being done, one reading sees all, and it is a new one: what was read before does not say how they ended.
func TestW3_StepsThatEndAtOnceAreFollowedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForked(t, calls("a", "b", "c", "d", "x:a", "y:b", "z:b c d"))
		a, b, c, d := f.ended("a"), f.ended("b"), f.ended("c"), f.ended("d")
		stop, wait := make(chan struct{}), true
		f.fail(func(_ context.Context, call faulty.Call) faulty.Fault {
			if wait && call.Method == faulty.WriteEach { // the first has read what it reads
				wait = false
				<-stop
			}
			return faulty.Fault{}
		})
		f.forget()
		done := make(chan error, 4)
		left := func(s run.Run) { done <- f.Left(t.Context(), s) }
		go left(a)
		synctest.Wait()
		for _, s := range []run.Run{b, c, d} {
			go left(s)
		}
		synctest.Wait()
		if len(done) != 0 {
			t.Errorf("%d were answered while the first was under way", len(done))
		}
		close(stop)
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if got, want := f.forget(), []string{"get run#", "write step", "get run#", "query ", "write step", "write step"}; !slices.Equal(got, want) {
			t.Errorf("the store was asked for %q, want %q", got, want)
		}
		f.are("x y z", "")
	})
}

// What cannot be done for some that ended at once is told to each: their messages come again.
func TestW3_WhatFailsForManyIsToldToEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForked(t, calls("a", "b", "c", "z:a b c"))
		ends := []run.Run{f.ended("a"), f.ended("b"), f.ended("c")}
		f.fail(func(context.Context, faulty.Call) faulty.Fault { return faulty.Fault{Refuse: store.ErrThrottled} })
		done := make(chan error, len(ends))
		for _, s := range ends {
			go func() { done <- f.Left(t.Context(), s) }()
		}
		for range ends {
			if err := <-done; err == nil {
				t.Error("an end was said to be followed, though nothing can be read")
			}
		}
		f.fail(nil)
		if err := f.Left(t.Context(), ends[1]); err != nil {
			t.Error(err)
		}
		f.are("z", "")
	})
}

// A run does not end before its last step, which a host may have ended whose clock is ahead.
func TestARunEndsNoEarlierThanItsSteps(t *testing.T) {
	for name, stop := range map[string]bool{"by itself": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			f := newForked(t, `"a": {"handler": {"name": "h"}}`)
			s := f.ended("a")
			s.Ended += 700
			s = f.write(s)
			if stop {
				next, _ := f.head.AskCancel(f.now.UnixMilli(), "no longer needed", 24*time.Hour)
				f.head = f.write(next)
			}
			if err := f.Left(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if head := f.stands(f.head); !head.State.Ended() || head.Ended != s.Ended {
				t.Errorf("the run is %s at %d, want it ended at %d, when its step ended", head.State, head.Ended, s.Ended)
			}
		})
	}
}
