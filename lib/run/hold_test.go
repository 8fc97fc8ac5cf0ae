package run_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// A pause takes the claim of a run on demand that has not started, and of no other.
func TestP8_WhatAPauseHolds(t *testing.T) {
	asked := run.Run{ID: run.RequestID("report", 1_800_000_000_000, 1), Version: 3, State: run.Queued, Generation: 5}
	with := func(change func(r *run.Run)) run.Run {
		r := asked
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		r     run.Run
		holds bool
	}{
		"claimed":           {asked, true},
		"held already":      {with(func(r *run.Run) { r.State = run.Scheduled }), false},
		"it ignores pauses": {with(func(r *run.Run) { r.IgnorePause = true }), false},
		"had an attempt":    {with(func(r *run.Run) { r.Attempt = 1 }), false},
		"running":           {with(func(r *run.Run) { r.State = run.Running }), false},
		"a fire":            {with(func(r *run.Run) { r.ID.Random = "" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			next, holds := c.r.Hold(5)
			if holds != c.holds || holds && (next.State != run.Scheduled || next.Generation != 6) || !holds && next.Generation != c.r.Generation {
				t.Errorf("held: %v, as %+v", holds, next)
			}
		})
	}
	ignoring := with(func(r *run.Run) { r.IgnorePause = true })
	if next, ok := ignoring.Unbind(6); !ok || next.State != run.Scheduled || !next.IgnorePause {
		t.Errorf("the edit that pauses its job leaves %+v", next)
	}
	if next, verdict := (run.Run{ID: asked.ID, Version: 4, State: run.Scheduled, Generation: 6, IgnorePause: true}).Claim(run.Claim{Generation: 6, Trigger: run.ByRequest}); verdict != run.Claimed || !next.IgnorePause {
		t.Errorf("the claim of the paused generation: %d, %+v", verdict, next)
	}
	if next := with(func(r *run.Run) { r.State, r.IgnorePause = run.Failed, true }).Reopen(7, 0, "again"); !next.IgnorePause {
		t.Error("a retry forgets the word")
	}
}
