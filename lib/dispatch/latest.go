package dispatch

import (
	"slices"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// replaces tells whether the run waits in the place of those that waited before it. Whoever stands at the front of a line that a pause holds skips nobody.
func (w *wanting) replaces() bool {
	return w.def.Overlap.Policy == job.OverlapQueueLatest && !w.past && !w.at.IsNamed()
}

// latest has the latest of runs that found no room wait, in place of those that waited before it: these are skipped by the write by which it joins. Who is earlier than one that waits is skipped,
// so it does not matter in which order messages come.
func (d *Dispatcher) latest(round *gate.Round, all []*wanting) (again []*wanting, met bool, err error) {
	slices.SortFunc(all, func(a, b *wanting) int { return a.place().Compare(b.place()) })
	newest := all[len(all)-1]
	earlier, comes := all[:len(all)-1], newest.place()
	if round.Waiting() == 0 {
		again, met = d.join(round, all[len(all)-1:])
		if len(again) == 0 && newest.entrance == Joined {
			return d.giveWay(round, earlier, newest.run.ID), false, nil
		}
		return append(again, earlier...), met, nil
	}
	step, places, standing, more, err := d.whoWaits(newest.at, round.Waiting(), lineLook)
	if err != nil {
		return all, false, err
	}
	if round = step.round; round.Waiting() == 0 {
		return all, true, nil // they were let in, and there may be room for more
	}
	var replaced []run.Run
	stands := false // its own place, which a claim that was taken away has left
	for i, p := range places {
		by := standing[i]
		later := p.Named(by) && !by.Spared() && !p.Forwarded() && p.Compare(comes) > 0
		if later && newest.run.Spared() { // which joins before it. The line is in order: so are all behind it
			more = false
			break
		}
		switch {
		case p.Run == newest.run.ID && p.Named(by):
			newest.came(Overtaken, nil)
			return earlier, true, nil
		case p == comes:
			stands = true
		case p.Named(by) && (by.Spared() || p.Forwarded()):
		case later:
			return d.giveWay(round, all, p.Run), false, nil
		case 5+len(step.ops)+2*len(replaced) > store.MaxOps: // with the gate, the run that joins and its place, and what this one would take
			more = true
		case p.Named(by):
			replaced = append(replaced, by)
		default:
			step.strike(p)
		}
	}
	inTheWay := newest.run.ID
	if more = more && len(replaced) > 1; more { // a line from before the policy was this one: the last that was seen stays for now
		inTheWay = replaced[len(replaced)-1].ID
		replaced = replaced[:len(replaced)-1]
	}
	for _, by := range replaced {
		step.strike(gate.PlaceOf(by))
	}
	now, err := d.Clock()
	if err != nil {
		return all, false, err
	}
	var ops []store.Op
	if !more {
		joining := newest.run.Join(gate.Name(newest.run.ID.Job), comes.Rank, now)
		round.Join(joining, stands)
		if ops, err = round.Puts(d.Now(), d.NewID); err != nil {
			return all, false, err
		}
	}
	why := round.Why(job.OverlapQueueLatest, []run.ID{inTheWay})
	for i, by := range replaced {
		replaced[i] = by.Overlapping(why, now, newest.def.Kept())
		op, err := replaced[i].Item(d.NewID())
		if err != nil {
			return all, false, err
		}
		ops = append(ops, op)
	}
	// Durable with this write: that the latest waits, and where, and the ends of those that waited before it. A crash here leaves it to whoever makes room, or to its check.
	err = d.writeGate(round, append(ops, step.ops...)...)
	if conflict := store.AsConflict(err); conflict != nil && conflict.Op == 1 && !more {
		newest.came(Overtaken, nil)
		return earlier, true, nil
	}
	if met, err := metOthers(err); met || err != nil {
		return all, met, err
	}
	for _, r := range replaced {
		d.CountEnd(r)
		d.Metrics.GateSkipped.Inc(d.countedAs(newest))
	}
	d.gauge(round.Gate(), newest.def.Labels)
	if more {
		return all, true, nil
	}
	newest.came(Joined, nil)
	return d.giveWay(round, earlier, newest.run.ID), false, nil
}

// giveWay skips runs for a later one that waits, and gives those that nobody skips.
func (d *Dispatcher) giveWay(round *gate.Round, earlier []*wanting, to run.ID) (spared []*wanting) {
	var skip []*wanting
	for _, w := range earlier {
		if w.run.Spared() {
			spared = append(spared, w)
		} else {
			skip = append(skip, w)
		}
	}
	d.skip(round, skip, []run.ID{to})
	return spared
}

// metOthers tells whether a write of a gate has met others, or may have been done: what it was decided over is to be read again. Another error stays one.
func metOthers(err error) (bool, error) {
	met := store.AsConflict(err) != nil || passing(err)
	if met {
		err = nil
	}
	return met, err
}

func (w *wanting) place() gate.Place {
	return gate.Place{Rank: w.rank(), Run: w.run.ID, Of: w.run.GateKey}
}
