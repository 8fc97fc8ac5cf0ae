package run_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/run"
)

func TestP8_HowEndsAreCounted(t *testing.T) {
	type end struct {
		state      run.State
		generation int64
		want       run.Streak
		pauses     bool
	}
	s := run.Streak{}
	for i, e := range []end{
		{run.Succeeded, 5, run.Streak{}, false},
		{run.Failed, 5, run.Streak{Generation: 5, Count: 1}, false},
		{run.Cancelled, 5, run.Streak{Generation: 5, Count: 1}, false},
		{run.Skipped, 5, run.Streak{Generation: 5, Count: 1}, false},
		{run.Dead, 5, run.Streak{Generation: 5, Count: 2}, false},
		{run.Unknown, 5, run.Streak{Generation: 5, Count: 3}, true},
		{run.Failed, 5, run.Streak{Generation: 5, Count: 3}, true}, // and no further
		{run.Retrying, 5, run.Streak{Generation: 5, Count: 3}, false},
		{run.Cancelled, 5, run.Streak{Generation: 5, Count: 3}, false},
		{run.Dead, 4, run.Streak{Generation: 5, Count: 3}, false},
		{run.Succeeded, 4, run.Streak{Generation: 5, Count: 3}, false},
		{run.Dead, 6, run.Streak{Generation: 6, Count: 1}, false},
		{run.Succeeded, 7, run.Streak{}, false},
		{run.Dead, 7, run.Streak{Generation: 7, Count: 1}, false},
		{run.Succeeded, 7, run.Streak{}, false},
	} {
		r := run.Run{State: e.state, Generation: e.generation}
		next, changed := s.Next(r, 3)
		if pauses := next.Pauses(r, 3); pauses != e.pauses {
			t.Errorf("%d: %s of generation %d pauses the job: %v", i, e.state, e.generation, pauses)
		}
		if next != e.want || changed != (next != s) {
			t.Errorf("%d: %s of generation %d makes %+v (%v), want %+v", i, e.state, e.generation, next, changed, e.want)
		}
		s = next
	}
}

func TestAReopenedRunPausesNothing(t *testing.T) {
	if r := (run.Run{State: run.Dead, Pauses: true}).Reopen(3, 0, ""); r.Pauses {
		t.Error("it says still that its job is to be paused")
	}
}
