package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A named gate is one item like any other, and its definition another, which is edited by itself. Both are read in one call, which is no snapshot. So the
// gate says under which definition it was last written, and whoever finds another one reads the definition again, behind the gate: what stands then is in
// force until the gate is written once more. After each change of a definition the gate is written (see dispatch.Dispatcher.Redefined), and a write that
// was decided under the one before meets that.

// under is what a gate says of a definition: its generation, 0 where there is none.
func under(n Named) int64 {
	if n.Version == 0 {
		return 0
	}
	return n.Generation
}

// Current tells of the definition with which a named gate was read whether the gate was last written under it. Else it may be older than the gate.
func (g Gate) Current() bool { return g.Under == under(g.Def) }

// Free tells of a named gate whether it keeps nobody out, since it has no definition.
func (g Gate) Free() bool { return g.ID().IsNamed() && g.Def.Version == 0 }

// shut tells of a named gate whether nobody is let in.
func (g Gate) shut() bool { return g.Def.Version != 0 && g.Def.Closed != nil }

// Limit is how much may be in progress at a named gate, in units; 0 for any number.
func (g Gate) Limit() int {
	if g.Def.Version == 0 {
		return 0
	}
	return g.Def.Def.Limit
}

// MaxWaiting is how many runs may wait at a named gate; any number where that is not bounded.
func (g Gate) MaxWaiting() (most int, bounded bool) {
	if most := g.Def.Def.MaxWaiting; most != nil && g.Def.Version != 0 {
		return *most, true
	}
	return 0, false
}

// WaitUntil is until when a run may wait that joins the line of a named gate at an instant, both Unix ms; 0: for ever.
func (g Gate) WaitUntil(joins int64) int64 {
	if g.Def.Version == 0 || g.Def.Def.MaxWait == 0 {
		return 0
	}
	return joins + g.Def.Def.MaxWait.Std().Milliseconds()
}

// ageing is how far a run of high priority stands ahead in the line of a named gate, and one of low priority behind, in ms. So none is overtaken by those
// that come later than that.
const ageing = 10 * 60_000

// lastDeadline is how far behind its rank a run without a deadline stands in a line by deadlines, in ms: as one with the longest deadline that there is, and a bit. So
// those with deadlines stand before it, but none waits for ever.
const lastDeadline = int64(job.MaxRetention/time.Millisecond) + 1

// shift is how far apart the keys of two orders are set in one line, in ms: further than a key of any order is behind its rank, or ahead of it, and that for
// whoever was due up to 5 years before those that stand. Whoever comes from the line of another gate may have been due long ago.
const shift = 2*lastDeadline + 2*ageing

// mostShift bounds how far behind places come: more changes of the order of a line that never was empty meanwhile mix what waits.
const mostShift = 1 << 49

// Orders is called before runs join the line of a named gate. The places of those that stand there keep the keys that they have. Where they are of another kind than
// those of the order that the gate has now, whoever joins from now on stands behind them all.
func (r *Round) Orders() {
	by := r.gate.Def.Def.Order == OrderDeadline
	switch {
	case r.gate.Waiting == 0:
		r.gate.Shift = 0
	case by != r.gate.ByDeadline && r.gate.Shift < mostShift:
		r.gate.Shift += shift
	}
	r.gate.ByDeadline = by
}

// Lead is how far ahead of its rank a run that joins the line of a named gate stands there, in ms, which is below 0 for one that stands behind it. It is settled when the run
// joins, whatever the gate says later. Orders was called before.
func (r *Round) Lead(of run.Run, rank int64) int64 {
	return r.gate.lead(of, rank) - r.gate.Shift
}

func (g Gate) lead(of run.Run, rank int64) int64 {
	switch g.Def.Def.Order {
	case OrderFIFO:
		return 0
	case OrderDeadline:
		if of.EndBy == 0 {
			return -lastDeadline
		}
		return rank - of.EndBy
	}
	switch of.Priority {
	case queue.High:
		return ageing
	case queue.Low:
		return -ageing
	}
	return 0
}

// pack makes of the names of jobs in entries numbers, for the record.
func (g *Gate) pack() {
	g.Jobs = nil
	if !g.ID().IsNamed() {
		return
	}
	g.Entries = slices.Clone(g.Entries)
	at := map[string]int{}
	for i := range g.Entries {
		e := &g.Entries[i]
		if at[e.Job] == 0 {
			g.Jobs = append(g.Jobs, e.Job)
			at[e.Job] = len(g.Jobs)
		}
		e.Of = at[e.Job]
	}
}

// unpack is the way back.
func (g *Gate) unpack() error {
	if !g.ID().IsNamed() {
		return nil
	}
	for i := range g.Entries {
		e := &g.Entries[i]
		if e.Of < 1 || e.Of > len(g.Jobs) {
			return fmt.Errorf("an entry is of job %d of %d: %w", e.Of, len(g.Jobs), record.ErrBroken)
		}
		e.Job, e.Of = g.Jobs[e.Of-1], 0
	}
	g.Jobs = nil
	return nil
}

// capped is how much of a limit a run takes that wants so many units: who wants more than there are takes all of them.
func capped(units, limit int) int {
	units = max(1, units)
	if limit > 0 {
		units = min(units, limit)
	}
	return units
}

// entryOf is the entry of a run that is let in, and takes so many units.
func (r *Round) entryOf(of run.Run, units int) Entry {
	e := Entry{Nominal: of.ID.Nominal, Random: of.ID.Random, Opening: of.Opening, Generation: of.Generation}
	e.Strict = r.strict
	if r.ranks && of.Wait.Rank >= forward { // what it had at the front of a line says nothing of when it comes
		e.Rank = of.Wait.Rank
	}
	if r.gate.ID().IsNamed() {
		e.Job = of.ID.Job
		if units > 1 {
			e.Units = units
		}
	}
	return e
}
