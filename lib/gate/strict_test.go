package gate_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// strictly is the gate of these runs, let in while the job was strict since generation 1.
func strictly(runs ...run.Run) gate.Gate {
	g := of(runs...)
	for i := range g.Entries {
		g.Entries[i].Strict = 1
	}
	return g
}

// A long gate is tidied of what has ended, and not of who holds up the line.
func TestG3_TidyingLeavesWhoHoldsUpTheLine(t *testing.T) {
	var runs []run.Run
	for n := range 24 {
		runs = append(runs, fire(n))
	}
	round := strictly(runs...).Begin()
	var standing []run.Run
	for n, id := range round.Old() {
		r := run.Run{ID: id, Tenant: "acme", Version: 8, State: run.Succeeded, Generation: 1}
		if n == 3 {
			r.State = run.Dead
		}
		standing = append(standing, r)
	}
	round.Shed(standing)
	if left := round.Gate(); len(left.Entries) != 24-len(standing)+1 {
		t.Errorf("%d entries are left, of 24, %d of which have ended and one of these badly", len(left.Entries), len(standing))
	}
}

// Of whoever tells of its end, only one that holds up the line keeps its place until its record is read, and one that tells of none.
func TestG3_WhoLeavesWhenItTellsOfItsEnd(t *testing.T) {
	gaveWay := in(run.Unknown, fire(0))
	gaveWay.Why.Policy = string(job.OverlapReplace)
	for name, row := range map[string]struct {
		gone           run.Run
		left, doubtful bool
	}{
		"it succeeded":                 {in(run.Succeeded, fire(0)), true, false},
		"it was cancelled":             {in(run.Cancelled, fire(0)), true, false},
		"it died":                      {in(run.Dead, fire(0)), false, true},
		"it was ended for a later run": {gaveWay, true, false},
		"it says nothing of an end":    {in(run.Running, fire(0)), false, true},
		"it is opened again":           {opened(in(run.Dead, fire(0)), 5), true, false},
		"another run is at the gate":   {in(run.Succeeded, fire(1)), false, false},
	} {
		round := strictly(fire(0)).Begin()
		if left, doubtful := round.Leave(row.gone); left != row.left || doubtful != row.doubtful {
			t.Errorf("%s: it left: %v, the gate doubts it: %v", name, left, doubtful)
		}
	}
}

// Whoever is opened again keeps its place where it held up the line of the job as it is, and enters anew otherwise.
func TestG3_WhoKeepsItsPlace(t *testing.T) {
	dead := in(run.Dead, fire(0))
	next := opened(in(run.Queued, fire(0)), 9)
	for name, row := range map[string]struct {
		was    run.Run
		strict int64
		keeps  bool
	}{
		"it died":                    {dead, 1, true},
		"it failed":                  {in(run.Failed, fire(0)), 1, true},
		"its end is unknown":         {in(run.Unknown, fire(0)), 1, true},
		"it succeeded":               {in(run.Succeeded, fire(0)), 1, false},
		"it was cancelled":           {in(run.Cancelled, fire(0)), 1, false},
		"the job is strict anew":     {dead, 2, false},
		"the job is not strict":      {dead, 0, false},
		"it was let in before":       {opened(dead, 5), 1, false},
		"another run is at the gate": {in(run.Dead, fire(1)), 1, false},
	} {
		round := strictly(fire(0)).Begin()
		if got := round.Keep(row.was, next, row.strict); got != row.keeps {
			t.Errorf("%s: it keeps its place: %v", name, got)
		}
		if row.keeps && round.Admit(next, 1, 1, false) != gate.Holds {
			t.Errorf("%s: it does not hold the place that it kept", name)
		}
	}
}

// The gate of a value is kept for as long as a run may hold up its line.
func TestG3_AGateOfAValueIsKeptForWhoHoldsItUp(t *testing.T) {
	now := time.UnixMilli(nominal)
	for _, strict := range []int64{0, 1} {
		g := of(fire(0))
		g.Key, g.Entries[0].Strict = gate.KeyOf("acme"), strict
		op, err := g.Put(now, 1)
		want := map[int64]time.Duration{0: gate.KeepKey, 1: gate.Keep}[strict]
		if err != nil || !op.Expires.Equal(now.Add(want)) {
			t.Errorf("strict since %d: kept until %s, %v", strict, op.Expires, err)
		}
	}
}
