package dispatch

import (
	"slices"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// replaces tells whether the run waits in the place of those that waited before it. Whoever stands at the front of a line that a pause holds skips nobody.
func (w *wanting) replaces() bool {
	return w.own.Policy.LatestWaits() && !w.past && !w.at.IsNamed()
}

// latest has the latest of runs that found no room wait, in place of those that waited before it: these are skipped by the write by which it joins. Who is earlier than one that waits is skipped,
// so it does not matter in which order messages come.
func (d *Dispatcher) latest(round *gate.Round, all []*wanting) (again []*wanting, met bool, err error) {
	slices.SortFunc(all, func(a, b *wanting) int { return a.place().Compare(b.place()) })
	newest := all[len(all)-1]
	earlier, comes := all[:len(all)-1], newest.place()
	var step *letting
	var places []gate.Place
	var standing []run.Run
	more := false
	switch {
	case round.Waiting() > 0:
		if step, places, standing, more, err = d.whoWaits(newest, round.Waiting(), lineLook); err != nil {
			return all, false, err
		}
		if round = step.round; round.Waiting() == 0 {
			return all, true, nil // they were let in, and there may be room for more
		}
	case newest.displaces():
		step = &letting{Dispatcher: d, calling: &calling{at: newest.at}, round: round}
	default:
		again, met = d.join(round, all[len(all)-1:])
		if len(again) == 0 && newest.entrance == Joined {
			return d.giveWay(round, earlier, newest.run.ID), false, nil
		}
		return append(again, earlier...), met, nil
	}
	var replaced []run.Run
	stands := false // its own place, which a claim that was taken away has left
	most := store.MaxOps
	if newest.displaces() {
		most -= endOps // one at least can be ended by the same write
	}
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
		case 5+len(step.ops)+2*len(replaced) > most: // with the gate, the run that joins and its place, and what this one would take
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
	var way displacing
	if newest.displaces() && !more {
		if way, err = d.displace(newest, step, len(replaced), now); err != nil {
			return all, false, err
		}
		if len(way.later) > 0 {
			return d.giveWay(round, all, way.later...), false, nil
		}
		more = way.more
	}
	var ops []store.Op
	switch {
	case more:
	case way.enters:
		round.Enter(way.entering)
	default:
		joining := newest.run.Join(gate.Name(newest.run.ID.Job), comes.Rank, now)
		joining.Wait.Asks = way.asks
		round.Join(joining, stands)
		ops, err = round.Puts(d.Now(), d.NewID)
	}
	if err != nil {
		return all, false, err
	}
	why := round.Why(newest.own.Policy, []run.ID{inTheWay})
	ends, at := store.Once(way.ops)
	for i, by := range replaced {
		replaced[i] = by.Overlapping(why, now, newest.def.Kept())
		op, err := replaced[i].Item(d.NewID())
		if err != nil {
			return all, false, err
		}
		ends = append(ends, op)
	}
	if len(way.given) == 0 {
		ops, ends = append(ops, ends...), nil
	}
	// Durable with this write: that the latest waits, and where, and the ends of those that waited before it. A crash here leaves it to whoever makes room, or to its check.
	versions, err := d.writeGateWith(ends, round, append(ops, step.ops...)...)
	if conflict := store.AsConflict(err); conflict != nil && (conflict.Op == 0 && len(way.given) > 0 || conflict.Op == 1 && !more && !way.enters) {
		newest.came(Overtaken, nil)
		return earlier, true, nil
	}
	if len(way.given) > 0 {
		newest.given = append(newest.given, way.written(versions, at, err)...)
	}
	if met, err := metOthers(err); met || err != nil {
		return all, met, err
	}
	for _, r := range replaced {
		d.CountEnd(r)
		d.Metrics.GateSkipped.Inc(d.countedAs(newest))
	}
	for range way.given {
		d.Metrics.GateGaveWay.Inc(d.countedAs(newest))
	}
	d.gauge(round, newest.def.Labels)
	if more {
		return all, true, nil
	}
	if way.enters {
		d.Metrics.GateLetIn.Inc(d.countedAs(newest))
		newest.came(Passed, nil)
		return earlier, false, nil // others may give way to these, where more than one may be in progress
	}
	if way.asks != "" { // who has ended meanwhile found nobody to let in
		call := &calling{at: newest.at, look: true}
		if err := d.callIn(call, false); err != nil {
			d.Log.Warn("a run that waits for others to stop is left to its check", "run", newest.run.ID.String(), "error", err)
		}
		newest.given = append(newest.given, call.given...)
	}
	newest.came(Joined, nil)
	return d.giveWay(round, earlier, newest.run.ID), false, nil
}

// giveWay skips runs for later ones, and gives those that nobody skips.
func (d *Dispatcher) giveWay(round *gate.Round, earlier []*wanting, to ...run.ID) (spared []*wanting) {
	var skip []*wanting
	for _, w := range earlier {
		if w.run.Spared() {
			spared = append(spared, w)
		} else {
			skip = append(skip, w)
		}
	}
	d.skip(round, skip, to)
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
