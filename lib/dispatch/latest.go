package dispatch

import (
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// restTries is how often others may change a gate while those that wait before a run are skipped for it.
const restTries = 10

// replaces tells whether the run waits in the place of those that waited before it. Whoever stands at the front of a line that a pause holds skips nobody.
func (w *wanting) replaces() bool {
	return w.own.Policy.LatestWaits() && !w.past && !w.at.IsNamed()
}

// latest has the latest of runs that found no room wait, in place of those that waited before it: these are skipped by the write by which it joins, as many as fit, and the others behind it.
// Who is earlier than one that waits in the place of those before it is skipped, so it does not matter in which order messages come. Before a later one that merely waits it joins by its rank.
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
	stands, behind := false, false // its own place, which a claim that was taken away has left; those that are looked at stand behind it
	most := store.MaxOps
	if newest.displaces() {
		most -= endOps // one at least can be ended by the same write
	}
	for i, p := range places {
		by := standing[i]
		later := p.Named(by) && !by.Spared() && !p.Forwarded() && p.Compare(comes) > 0
		behind = behind || p.Compare(comes) > 0 // the line is in order: so are all that follow
		switch {
		case p.Run == newest.run.ID && p.Named(by):
			newest.came(Overtaken, nil)
			return earlier, true, nil
		case p == comes:
			stands = true
		case p.Named(by) && (by.Spared() || p.Forwarded()):
		case later && !newest.run.Spared() && by.OverlapUnder(&newest.def).Policy.LatestWaits():
			return d.giveWay(round, all, p.Run), false, nil
		case behind:
			more = false
		case 5+len(step.ops)+2*len(replaced) > most: // with the gate, the run that joins and its place, and what this one would take
			more = true
		case p.Named(by):
			replaced = append(replaced, by)
		default:
			step.strike(p)
		}
	}
	for _, by := range replaced {
		step.strike(gate.PlaceOf(by))
	}
	now, err := d.Clock()
	if err != nil {
		return all, false, err
	}
	var way displacing
	if newest.displaces() {
		if way, err = d.displace(newest, step, len(replaced), now); err != nil {
			return all, false, err
		}
		if len(way.later) > 0 {
			return d.giveWay(round, all, way.later...), false, nil
		}
	}
	var ops []store.Op
	switch {
	case way.more: // ends come first
	case way.enters:
		round.Enter(way.entering)
	default:
		joining := newest.run.Join(gate.Name(newest.run.ID.Job), comes.Rank, now)
		if !more { // else once nobody waits before it who is to be skipped: those would be let in, and end for it
			joining.Wait.Asks = way.asks
		}
		round.Join(joining, stands)
		ops, err = round.Puts(d.Now(), d.NewID)
	}
	if err != nil {
		return all, false, err
	}
	why := round.Why(newest.own.Policy, []run.ID{newest.run.ID})
	ends, at := store.Once(way.ops)
	for i, by := range replaced {
		replaced[i] = by.Overlapping(why, false, now, newest.def.Kept())
		op, err := replaced[i].Item(d.NewID())
		if err != nil {
			return all, false, err
		}
		ends = append(ends, op)
	}
	if len(way.given) == 0 {
		ops, ends = append(ops, ends...), nil
	}
	// Durable with this write: that the latest waits, and where, and the ends of those that waited before it, as many as fit. A crash here leaves it to whoever makes room, or to its check,
	// and those that did not fit wait on before it.
	versions, err := d.writeGateWith(ends, round, append(ops, step.ops...)...)
	if conflict := store.AsConflict(err); conflict != nil && (conflict.Op == 0 && len(way.given) > 0 || conflict.Op == 1 && !way.more && !way.enters) {
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
	if way.more {
		return all, true, nil
	}
	if way.enters {
		d.Metrics.GateLetIn.Inc(d.countedAs(newest))
		newest.came(Passed, nil)
		return earlier, false, nil // others may give way to these, where more than one may be in progress
	}
	if more {
		if err := d.skipRest(newest, way.asks); err != nil {
			d.Log.Warn("runs wait on before a later one that takes their place", "run", newest.run.ID.String(), "error", err)
		}
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

// skipRest skips those that wait before a run that has joined a line in their place, and did not fit into the write by which it did: a write for each part of the line, as long as it waits. Behind them it has
// others give way by the policy asks, "" for none.
//
// Durable with each write: the ends of those that it skips, and with the last one that it asks. A crash in between leaves the others to wait on before it, and those in progress go on: it starts in its turn.
func (d *Dispatcher) skipRest(w *wanting, asks string) error {
	for met := 0; ; {
		step, places, standing, _, err := d.front(w.at, lineLook)
		if err != nil {
			return err
		}
		ctx, cancel := d.brief()
		now, err := d.ReadRuns(ctx, []run.Run{w.run})
		cancel()
		if err != nil {
			return fmt.Errorf("read run %s, which waits in the place of others: %w", w.run.ID, err)
		}
		if !now[0].Waits() { // it was let in, or has ended: whoever came later sees to the line
			return nil
		}
		at, err := d.Clock()
		if err != nil {
			return err
		}
		// None is skipped for a run that waits no more.
		ops := []store.Op{{Kind: store.Check, Key: w.run.ID.Key(w.run.Tenant), If: store.At(store.Item{Version: now[0].Version})}}
		why := step.round.Why(w.own.Policy, []run.ID{w.run.ID})
		var skipped []run.Run
		for i, p := range places {
			by := standing[i]
			if p.Compare(w.place()) >= 0 || 3+len(ops)+len(step.ops) > store.MaxOps { // with the gate
				break
			}
			if p.Named(by) {
				if by.Spared() || p.Forwarded() {
					continue
				}
				by = by.Overlapping(why, false, at, w.def.Kept())
				op, err := by.Item(d.NewID())
				if err != nil {
					return err
				}
				ops, skipped = append(ops, op), append(skipped, by)
			}
			step.strike(p)
		}
		last := len(step.ops) == 0
		if last && (asks == "" || now[0].Wait.Asks != "") {
			return nil
		}
		if last {
			now[0].Wait.Asks = asks
			step.round.Join(now[0], true)
			if ops, err = step.round.Puts(d.Now(), d.NewID); err != nil {
				return err
			}
		}
		switch changed, err := metOthers(d.writeGate(step.round, append(ops, step.ops...)...)); {
		case err != nil:
			return err
		case changed:
			if met++; met == restTries {
				return store.ErrThrottled
			}
			continue
		}
		for _, r := range skipped {
			d.CountEnd(r)
			d.Metrics.GateSkipped.Inc(d.countedAs(w))
		}
		if d.gauge(step.round, w.def.Labels); last {
			return nil
		}
	}
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
