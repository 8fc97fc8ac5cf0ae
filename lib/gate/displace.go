package gate

import (
	"slices"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// Under some policies earlier runs give way to later ones. Earlier and later are those of the line, for runs that hold places too: so it does not matter in which order messages
// come. What a run is ranked by is in its entry, since its record forgets it when it starts.

// Ranks has the round say in the entries of those that enter from then on how their runs are ranked.
func (r *Round) Ranks() { r.ranks = true }

// Asks tells whether one that waits has earlier runs asked to stop.
func (r *Round) Asks() bool { return r.gate.Asks && r.gate.Waiting > 0 }

// AskNoMore says that nobody who waits has others asked to stop any more.
func (r *Round) AskNoMore() { r.gate.Asks = false }

// Enter lets a run in by itself, in a place that another has just left.
func (r *Round) Enter(of run.Run) {
	r.forget(of.ID)
	r.entered = append(r.entered, r.entryOf(of, 1))
}

// rankOf is where a run that holds a place comes in the order of the line. One that was let in under another policy is ranked by when it was made, or is for.
func (r *Round) rankOf(at int) Place {
	e, of := r.gate.Entries[at], r.seen[at]
	rank := e.Rank
	if rank == 0 {
		rank = max(of.ID.Nominal, of.Created)
	}
	return Place{Rank: rank, Run: of.ID, Of: r.gate.Key}
}

// Later names the runs that hold places and come later than a place.
func (r *Round) Later(than Place) (later []run.ID) {
	for i := range r.sure {
		if !r.blocker(i) && r.rankOf(i).Compare(than) > 0 {
			later = append(later, r.seen[i].ID)
		}
	}
	return later
}

// GiveWay gives the runs that are to give way to one at a place, the earliest first, so that so many more have room: of those that hold places and come before it, but
// for those that were opened by hand. anew leaves out whom somebody has asked to stop before. All entries were looked at.
func (r *Round) GiveWay(to Place, more int, anew bool) []run.Run {
	var at []int
	for i := range r.sure {
		if of := r.seen[i]; of.State != 0 && !r.blocker(i) && !of.ByHand() && !(anew && of.Cancel) && r.rankOf(i).Compare(to) < 0 {
			at = append(at, i)
		}
	}
	slices.SortFunc(at, func(a, b int) int { return r.rankOf(a).Compare(r.rankOf(b)) })
	var giving []run.Run
	for _, i := range at[:max(0, min(len(at), more))] {
		giving = append(giving, *r.seen[i])
	}
	return giving
}

// Stopping counts the runs that hold places and were asked to stop.
func (r *Round) Stopping() (n int) {
	for _, of := range r.seen {
		if of.State == run.Running && of.Cancel {
			n++
		}
	}
	return n
}

// Lacks is how many of those that hold places would have to go for so many more to have room.
func (r *Round) Lacks(more, limit int) int {
	if limit == 0 {
		return 0
	}
	return r.Units() + more - limit
}
