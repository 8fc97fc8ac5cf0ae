package gate

import (
	"cmp"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Verdict is what a gate says to a run that is due.
type Verdict uint8

// The verdicts.
const (
	Holds  Verdict = iota + 1 // it was let in before, as it stands
	Enters                    // there is room: it is let in when the gate is written
	Full                      // as many others as the limit allows have entries
	Behind                    // others wait, whom nobody overtakes
	Late                      // it was let in since, as it stands later: what asks is late, and has to read the run again
)

// Round decides over a gate as it was read, for any number of runs that are due. What it comes to holds when the gate is written under the
// version that was read; where nobody enters, it holds as it is.
type Round struct {
	gate    Gate
	sure    int     // so many of the entries, from the first on, were seen to hold a place since the gate was read
	entered []Entry // in this round
	joined  []run.Run

	ranks  bool  // entries are to say how their runs are ranked
	strict int64 // what entries are to say of job.Overlap.StrictSince

	seen []*run.Run // of the entries that are sure: their runs as they were seen
}

// Begin begins a round. What it comes to is decided by the definition with which a named gate was read, if it was.
func (g Gate) Begin() *Round {
	if g.Def.Name != "" {
		g.Under = under(g.Def)
	}
	g.Entries = slices.Clone(g.Entries)
	return &Round{gate: g}
}

// Admit asks for a run that takes so many units, of which up to limit may be in progress. past says that the run need not wait behind the line: a pause
// holds those that wait in it, and not this run. A run that is Full may have room when Unsure entries have been looked at. A gate that is closed lets nobody in,
// and those that were let in before go on.
func (r *Round) Admit(of run.Run, units, limit int, past bool) Verdict {
	at := r.find(of.ID)
	others, units := r.Units(), capped(units, limit)
	if at >= 0 {
		others -= r.gate.Entries[at].units()
		switch since := r.gate.Entries[at].since(of); {
		case since == 0:
			return Holds
		case since < 0:
			return Late
		}
	}
	switch {
	case r.gate.Waiting > 0 && !past, r.gate.shut():
		return Behind
	case others+units > limit:
		return Full
	}
	r.forget(of.ID) // of an earlier opening, or of a claim that was taken away
	r.entered = append(r.entered, r.entryOf(of, units))
	return Enters
}

// find is where the entry of a run stands, -1 for nowhere.
func (r *Round) find(id run.ID) int {
	return slices.IndexFunc(r.gate.Entries, func(e Entry) bool { return r.gate.Run(e) == id })
}

func (r *Round) forget(id run.ID) {
	if at := r.find(id); at >= 0 {
		r.remove(at)
	}
}

// Forget takes out the entry of a run, and tells whether there was one.
func (r *Round) Forget(id run.ID) bool {
	had := r.find(id) >= 0
	r.forget(id)
	return had
}

func (r *Round) remove(at int) {
	r.gate.Entries = slices.Delete(r.gate.Entries, at, at+1)
	if at < r.sure {
		r.sure--
		r.seen = slices.Delete(r.seen, at, at+1)
	}
}

// Unsure names runs of entries that nobody has looked at in this round, at most so many, those that were let in first before the others. Their
// runs are to be read, strongly, and told to Learn in the same order.
func (r *Round) Unsure(most int) []run.ID {
	var ids []run.ID
	for _, e := range r.gate.Entries[r.sure:min(len(r.gate.Entries), r.sure+most)] {
		ids = append(ids, r.gate.Run(e))
	}
	return ids
}

// Learn leaves out the entries that hold no place, of those that Unsure has named. A run that does not exist has Version 0; one that cannot be
// read has no State, and holds its place.
func (r *Round) Learn(standing []run.Run) {
	var kept []Entry
	for i := range standing {
		of := &standing[i]
		if e := r.gate.Entries[r.sure+i]; r.gate.held(e, *of) {
			kept, r.seen = append(kept, e), append(r.seen, of)
		}
	}
	r.gate.Entries = slices.Replace(r.gate.Entries, r.sure, r.sure+len(standing), kept...)
	r.sure += len(kept)
}

// LeaveUnsure leaves out the entries that nobody has looked at, and tells whether there are any: for whoever shows the gate.
func (r *Round) LeaveUnsure() bool {
	all := len(r.gate.Entries)
	r.gate.Entries = r.gate.Entries[:r.sure]
	return r.sure < all
}

// A gate of so many entries is about to take more than 1 KB, a unit of DynamoDB's writes, and old ones are looked at before it is written.
const (
	long  = 24
	looks = 16 // entries that are looked at for one write
)

// Old names runs of entries that may be left out of a long gate before it is written, none where it is short: others with each version of the
// gate. Their runs may be read the cheap way, and are to be told to Shed in the same order.
func (r *Round) Old() []run.ID {
	n := len(r.gate.Entries)
	if n < long {
		return nil
	}
	var ids []run.ID
	for k := range looks {
		ids = append(ids, r.gate.Run(r.gate.Entries[r.old(k)]))
	}
	return ids
}

// old is where the k-th of those entries stands.
func (r *Round) old(k int) int {
	return int((r.gate.Version*looks + uint64(k)) % uint64(len(r.gate.Entries)))
}

// Shed leaves out the entries that Old has named and whose runs have ended, but for those that may hold up their lines still, or have gone on to a later opening or claim. Both hold for ever, so they may have been
// read the cheap way; that a run is not there may be older than the run. Nothing else may be asked of the round after that but its Gate.
func (r *Round) Shed(standing []run.Run) {
	gone := map[int]bool{}
	for k, of := range standing {
		e := r.gate.Entries[r.old(k)]
		gone[r.old(k)] = e.since(of) > 0 || e.since(of) == 0 && of.State.Ended() && !e.blocks(of)
	}
	var kept []Entry
	for i, e := range r.gate.Entries {
		if !gone[i] {
			kept = append(kept, e)
		}
	}
	r.gate.Entries, r.sure, r.seen = kept, 0, nil
}

// held tells whether the entry's run, as it stands, holds the place. Who waits at another gate keeps the places that it was given on the way there. It will go on from
// there, so none of them may be left out: a delivery of it may have found its entry before.
func (g Gate) held(e Entry, of run.Run) bool {
	switch {
	case of.Version == 0:
		return false
	case of.State == 0: // of a newer version of Belfry
		return true
	case of.State.Ended():
		return e.blocks(of)
	case of.Waits() && of.Wait.Gate == g.Name:
		return false
	case e.keeps(of): // its claim may be taken away, and given again
		return true
	case of.State == run.Fenced, of.State == run.Scheduled:
		return false
	}
	return e.since(of) == 0
}

// since tells whether a run stands later than it did when it entered: 0 where it is in the same opening, claimed for the same generation.
// Generations never fall. Openings may, with the mark of an edit, which forgets them: then a higher generation comes after it.
func (e Entry) since(of run.Run) int {
	if e.keeps(of) {
		return 0
	}
	return cmp.Or(cmp.Compare(of.Generation, e.Generation), cmp.Compare(of.Opening, e.Opening))
}

// Tenant is whose gate it is.
func (r *Round) Tenant() string { return r.gate.Tenant }

// Held is how many entries there are, with those of who enters in this round.
func (r *Round) Held() int { return len(r.gate.Entries) + len(r.entered) }

// Units is how much of the limit they take.
func (r *Round) Units() (n int) {
	for _, e := range r.gate.Entries {
		n += e.units()
	}
	for _, e := range r.entered {
		n += e.units()
	}
	return n
}

// Waiting is how many places stand in the line.
func (r *Round) Waiting() int { return r.gate.Waiting }

// Entered tells how many runs enter in this round.
func (r *Round) Entered() int { return len(r.entered) }

// ID names the gate.
func (r *Round) ID() ID { return r.gate.ID() }

// Limit is how much may be in progress at a named gate, in units; 0 for any number.
func (r *Round) Limit() int { return r.gate.Limit() }

// MaxWaiting is how many runs may wait at a named gate; any number where that is not bounded.
func (r *Round) MaxWaiting() (most int, bounded bool) { return r.gate.MaxWaiting() }

// Free tells of a named gate whether it keeps nobody out, since it has no definition.
func (r *Round) Free() bool { return r.gate.Free() }

// Closed tells of a named gate whether nobody is let in.
func (r *Round) Closed() bool { return r.gate.shut() }

// Gate is the gate as it is to be written, with those that enter behind the others.
func (r *Round) Gate() Gate {
	g := r.gate
	g.Entries = append(slices.Clone(g.Entries), r.entered...)
	g.Asks = r.Asks()
	return g
}

// Why says what was in the way of a run that is skipped by its job's policy: those that are in progress, or those that wait before it, where room
// is theirs. Under queue_latest, cancel and replace it is the later one that takes its place, and nobody else. At a closed gate it is those that wait: nobody in progress
// there is in the way.
func (r *Round) Why(policy job.OverlapPolicy, waiting []run.ID) run.Why {
	why := run.Why{Code: run.WhyOverlap, Gate: r.gate.Name, Policy: string(policy)}
	if r.gate.ID().IsNamed() {
		why.Key = r.gate.Key
	}
	holders := r.gate.Entries
	switch {
	case r.Closed():
		why.Code, holders = run.WhyClosed, nil
	case policy.LatestWaits():
		holders = nil
	case policy == job.OverlapQueue, policy == job.OverlapStrict, policy == job.OverlapAllow, policy == "":
		why.Code = run.WhyFull
	}
	for _, e := range holders[:min(len(holders), run.MaxInTheWay)] {
		why.InTheWay = append(why.InTheWay, r.gate.Run(e).String())
	}
	for _, id := range waiting {
		if len(why.InTheWay) < run.MaxInTheWay {
			why.InTheWay = append(why.InTheWay, id.String())
		}
	}
	return why
}

// Known is how many of the entries were seen to hold a place since the gate was read.
func (r *Round) Known() int { return r.sure }

// WhyOutwaited says what was in the way of a run that has waited at a named gate for as long as it may: those that are in progress, and those that waited before it.
func (r *Round) WhyOutwaited(ahead []run.ID) run.Why {
	why := r.Why("", ahead)
	why.Code = run.WhyMaxWait
	return why
}
