package oracle

import (
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// standstill is what a run means for the line of a strict job, from when it was let in there.
type standstill struct {
	strict int64  // since which generation its job was strict as it was let in, without a break; 0: it was not, or nobody can tell
	holds  bool   // it has ended badly, and neither has ended otherwise since, nor did anybody let the line go on
	kept   uint64 // the opening in which it kept its place, 0 for none
}

// strictSince is the generation with which a job came to be strict, without a break up to an edition; 0 where that is not.
func (js *jobState) strictSince(e *edition) (since int64) {
	for _, one := range slices.Backward(js.editions) {
		switch {
		case e == nil || one.Generation > e.Generation:
		case one.deleted || one.Def.Overlap.Policy != job.OverlapStrict:
			return since
		default:
			since = one.Generation
		}
	}
	return since
}

// entersStrictly notes since when the job of a run is strict that is let in. Who lets in from the line reads the job behind the gate; looked is the event by which that was written before.
func (rs *runState) entersStrictly(looked int) {
	e := rs.job.byGeneration[rs.run.Generation]
	if rs.run.Waits() {
		if e = rs.job.newest(); e.since >= looked {
			e = nil // it may have been read before
		}
	}
	rs.still = standstill{strict: rs.job.strictSince(e)}
}

// holdsUp is told of a change of a run that was in progress, or holds up its line.
func (rs *runState) holdsUp(at time.Time) {
	switch a := &rs.run; {
	case (a.State.Bad() && !a.GaveWay() || rs.retryRanOut()) && rs.inProgress() && rs.still.strict != 0:
		rs.still.holds = true
		rs.held = append(rs.held, place{ms(at), forever, rs.places[len(rs.places)-1].key})
	case a.State.Ended() && (!a.State.Bad() || a.GaveWay()):
		rs.goesOn(ms(at))
	}
}

// retryRanOut tells whether the run had ended badly, was opened again and kept its place, and has ended since its time was over: that decides nothing about the line.
func (rs *runState) retryRanOut() bool {
	a := &rs.run
	late := a.State == run.Skipped && a.Why.Code == run.WhyExpired || a.State == run.Cancelled && a.Why.Code == run.WhyDeadline
	return late && rs.still.kept != 0 && rs.still.kept == a.Opening
}

// goesOn is told that a run holds up nobody any more.
func (rs *runState) goesOn(at int64) {
	rs.still.holds = false
	if n := len(rs.held); n > 0 && rs.held[n-1].until == forever {
		rs.held[n-1].until = at
	}
}

// staysKept tells whether a run that kept its place holds it behind a change of its record, whatever became of its claim.
func (rs *runState) staysKept(b *run.Run) bool {
	a := &rs.run
	return rs.still.kept != 0 && rs.still.kept == a.Opening && a.Opening == b.Opening && !a.State.Ended() && a.State != run.Fenced
}

// letGo is told of a write of a gate, by which somebody may let the line go on.
func (j *Judge) letGo(at time.Time, js *jobState, before store.Item, g gate.Gate) {
	old, err := gate.FromItem(js.tenant, g.Name, before)
	if err == nil && old.LetGo.Change == g.LetGo.Change {
		return
	}
	for _, id := range g.LetGo.Runs {
		if rs := j.named(js.tenant, id); rs != nil && rs.job == js {
			rs.goesOn(ms(at))
		}
	}
}

// stoodStill: nobody is let in while a run that ended badly holds up the line, as long as the job is strict since that was let in (G3).
func (j *Judge) stoodStill(js *jobState, key string, lets []*runState) {
	strict := js.strictSince(js.newest())
	if strict == 0 {
		return
	}
	for _, other := range js.runs {
		n := len(other.held)
		if !other.still.holds || other.still.strict != strict || other.held[n-1].key != key || other.inProgress() {
			continue
		}
		for _, rs := range lets {
			if e := js.byGeneration[rs.run.Generation]; rs == other || !rs.run.Waits() && (e == nil || e.Def.Overlap.Policy != job.OverlapStrict) {
				continue // by its own definition it need not wait for that
			}
			j.violate("G3", "run %s of %s was let in while its line stood still behind run %s", rs.id(), js.tenant, other.id())
		}
	}
}
