package gate

import "github.com/belfry-scheduler/belfry/lib/run"

// Under strict a run that ended badly is in the way of those behind it until it has succeeded, or somebody lets the line go on. Nothing is written for that when it ends: its
// entry stays, as every entry does, and its record says how it ended. So no crash in between lets anybody pass. The entry says since when its job was strict as it was let
// in, and holds up the line for as long as the job is strict since then: so an edit to strict holds for those that are let in behind it, and one away from it lets all go on.
//
// Whoever opens such a run again writes its entry anew in the same write. So it keeps its place, and waits behind nobody who waits for it. A retry whose time runs out, before it
// has started or by its deadline, leaves all as it was: nobody has said that the line may go on.

// LetGo says that somebody has let a line go on that stood still.
type LetGo struct {
	Change Change   `cbor:"1,keyasint"`
	Strict int64    `cbor:"3,keyasint,omitempty"` // Entry.Strict of those runs: of a job that has become strict anew since, it says nothing
	Runs   []string `cbor:"2,keyasint,omitempty"` // IDs of the runs that it stood still behind, at most run.MaxInTheWay
}

// IsZero tells whether nobody has.
func (l LetGo) IsZero() bool { return l.Change.At == 0 }

// blocks tells of the run of an entry, as it stands, whether it has ended so that it holds up the line, as long as its job is strict since it was let in. One that was ended for a later
// run, which had brought a policy of its own, does not: that run comes in its place.
func (e Entry) blocks(of run.Run) bool {
	return e.Strict != 0 && (of.State.Bad() && !of.GaveWay() || e.Kept && of.RanOut()) && e.since(of) == 0
}

// keeps tells whether the run, as it stands, is in the opening in which it kept its place.
func (e Entry) keeps(of run.Run) bool { return e.Kept && e.Opening == of.Opening }

// Under has the entries of those that enter from then on say since when their job is strict, 0 for one that is not.
func (r *Round) Under(strict int64) { r.strict = strict }

// blocker tells of an entry that was looked at whether its run has ended, and holds up the line.
func (r *Round) blocker(at int) bool { return r.seen[at].State.Ended() }

// Blockers gives the runs that have ended and hold up the line, of those that were looked at.
func (r *Round) Blockers() (all []run.Run) {
	for i := range r.sure {
		if r.blocker(i) {
			all = append(all, *r.seen[i])
		}
	}
	return all
}

// InProgress is how many of the runs that were let in are in progress, and not in the way of others since they ended badly. known is false where that
// takes a look at runs that nobody has looked at.
func (r *Round) InProgress() (n int, known bool) {
	for _, e := range r.gate.Entries[r.sure:] {
		if e.Strict != 0 {
			return 0, false
		}
	}
	return r.Held() - len(r.Blockers()), true
}

// IsInProgress tells of a run whether it holds a place, and has not ended, of those that were looked at.
func (r *Round) IsInProgress(id run.ID) bool {
	at := r.find(id)
	return at >= 0 && at < r.sure && !r.blocker(at)
}

// Settle leaves out those of them that hold up nobody any more, since the job is not strict, or has become so anew after they were let in: strict is since when it is,
// 0 where it is not. It tells whether there was any.
func (r *Round) Settle(strict int64) (changed bool) {
	for i := r.sure - 1; i >= 0; i-- {
		if r.blocker(i) && r.gate.Entries[i].Strict != strict {
			r.remove(i)
			changed = true
		}
	}
	return changed
}

// GoOn leaves out the runs that have ended and hold up the line, and says who has let it go on.
func (r *Round) GoOn(by Change) (let []run.Run) {
	let = r.Blockers()
	r.gate.LetGo = LetGo{Change: by}
	for _, of := range let {
		r.gate.LetGo.Strict = r.gate.Entries[r.find(of.ID)].Strict
		r.forget(of.ID)
		if len(r.gate.LetGo.Runs) < run.MaxInTheWay {
			r.gate.LetGo.Runs = append(r.gate.LetGo.Runs, of.ID.String())
		}
	}
	return let
}

// Keep has a run that is opened again keep its place, where it has held up the line under a job that is strict since then: was is how it stood, next how it is opened. To
// be written with the run. False where it is in nobody's way, and enters anew as any.
func (r *Round) Keep(was, next run.Run, strict int64) bool {
	at := r.find(was.ID)
	if at < 0 || strict == 0 || r.gate.Entries[at].Strict != strict || !r.gate.Entries[at].blocks(was) {
		return false
	}
	e := &r.gate.Entries[at]
	e.Opening, e.Generation, e.Kept = next.Opening, next.Generation, true
	return true
}
