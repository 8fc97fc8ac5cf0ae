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
	}
	s := run.Streak{}
	for i, e := range []end{
		{run.Succeeded, 5, run.Streak{}},
		{run.Failed, 5, run.Streak{Generation: 5, Count: 1}},
		{run.Cancelled, 5, run.Streak{Generation: 5, Count: 1}},
		{run.Skipped, 5, run.Streak{Generation: 5, Count: 1}},
		{run.Dead, 5, run.Streak{Generation: 5, Count: 2}},
		{run.Unknown, 5, run.Streak{Generation: 5, Count: 3}},
		{run.Retrying, 5, run.Streak{Generation: 5, Count: 3}},
		{run.Dead, 4, run.Streak{Generation: 5, Count: 3}},
		{run.Succeeded, 4, run.Streak{Generation: 5, Count: 3}},
		{run.Dead, 6, run.Streak{Generation: 6, Count: 1}},
		{run.Succeeded, 7, run.Streak{}},
		{run.Dead, 7, run.Streak{Generation: 7, Count: 1}},
		{run.Succeeded, 7, run.Streak{}},
	} {
		next, changed := s.Next(run.Run{State: e.state, Generation: e.generation})
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
