package dispatch

import (
	"context"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// turnAway sees to runs that found no room beside runs that are known to hold their places, or beside such that wait: each joins the line, or is
// skipped where its policy says so. It gives those that are to be decided over anew, and whether others have changed the gate.
func (d *Dispatcher) turnAway(round *gate.Round, full []*wanting) (again []*wanting, met bool, err error) {
	var join, skip, replace []*wanting
	for _, w := range full {
		switch {
		case w.replaces():
			replace = append(replace, w)
		case w.mayJoin(round, round.Waiting()+len(join)):
			join = append(join, w)
		default:
			skip = append(skip, w)
		}
	}
	switch {
	case len(join) > 0:
		again, met = d.join(round, join)
		return slices.Concat(again, skip, replace), met, nil // who is in their way waits by then
	case len(replace) > 0:
		again, met, err = d.latest(round, replace)
		return append(again, skip...), met, err
	case len(skip) > 0 && round.Waiting() > 0:
		return d.behind(skip, round.Waiting())
	}
	if len(skip) > 0 && len(round.Blockers()) > 0 { // nobody may wait, so no check counts it
		d.Metrics.GateBlocked.Inc(d.countedAs(skip[0]))
	}
	d.skip(round, skip, nil)
	return nil, false, nil
}

// mayJoin tells whether the run may wait in a line of that many. Nobody skips a run that was opened by hand, nor one that there is room for beside a line of
// runs that pauses hold, or that are too late: it joins that, and is let in past it.
func (w *wanting) mayJoin(round *gate.Round, waiting int) bool {
	most, bounded := w.own.Waiting()
	if w.at.IsNamed() {
		most, bounded = round.MaxWaiting()
	}
	return w.passes && round.Fits(w.units, round.Limit()) || w.run.Spared() || !bounded || waiting < most
}

// rank is where the run stands in line: by when it was due, made or opened again, whichever is last.
func (w *wanting) rank() int64 { return max(w.due, w.run.Created, w.run.Wait.Rank) }

// behind sees to runs that their policies skip since others wait. That these do is read from the line, and not from its count: so a place that is of nobody skips nobody, up to a
// line that is too long to be looked through.
func (d *Dispatcher) behind(skip []*wanting, waiting int) (again []*wanting, met bool, err error) {
	step, places, standing, _, err := d.whoWaits(skip[0], waiting, run.MaxInTheWay)
	if err != nil {
		return skip, false, err
	}
	ctx, cancel := d.brief()
	defer cancel()
	round := step.round
	if err := d.lookAtAll(ctx, round); err != nil { // of a strict job, the run behind which its line stands still is named too
		return skip, false, err
	}
	if err := step.learn(ctx, places); err != nil {
		return skip, false, err
	}
	now, err := d.Clock()
	if err != nil {
		return skip, false, err
	}
	held := step.named() && !round.Closed() // all of them, by the pauses of their jobs, or since they are too late: their checks end these
	var ahead []run.ID
	for i, p := range places {
		if p.Named(standing[i]) {
			ahead = append(ahead, p.Run)
			held = held && (step.holds(standing[i]) || standing[i].TooLate(now))
		}
	}
	var sure []*wanting
	for _, w := range skip {
		w.passes = held
		if len(ahead) == 0 || w.mayJoin(round, round.Waiting()) || slices.Contains(ahead, w.run.ID) {
			again = append(again, w)
		} else {
			sure = append(sure, w)
		}
	}
	d.skip(round, sure, ahead)
	return again, len(again) > 0, nil
}

// whoWaits reads a gate and the front of its line anew, once whoever can be is let in. Of a line that is short enough to be looked through, places that are of nobody are gone by
// then. more says that the line goes on. It is for one that wants in, which sees to those that have given way meanwhile, also behind an error.
func (d *Dispatcher) whoWaits(wants *wanting, waiting, limit int) (step *letting, places []gate.Place, standing []run.Run, more bool, err error) {
	of := wants.at
	call := &calling{at: of, look: true}
	err = d.callIn(call, waiting <= lineLook)
	wants.given = append(wants.given, call.given...)
	if err != nil {
		return nil, nil, nil, false, err
	}
	return d.front(of, limit)
}

// front reads a gate and the front of its line, and the runs that wait there. more says that the line goes on.
func (d *Dispatcher) front(of gate.ID, limit int) (step *letting, places []gate.Place, standing []run.Run, more bool, err error) {
	round, err := d.readGate(of)
	if err != nil {
		return nil, nil, nil, false, err
	}
	ctx, cancel := d.brief()
	defer cancel()
	var items []store.Item
	for line := round.Gate().Line(limit); len(items) < limit; { // a page may be short
		page, err := d.Store.Query(ctx, line)
		if err != nil {
			return nil, nil, nil, false, fmt.Errorf("read the line of gate %s: %w", of, err)
		}
		items = append(items, page.Items...)
		if line.Cursor = page.Cursor; line.Cursor == "" {
			break
		}
		line.Limit, more = limit-len(items), len(items) >= limit
	}
	step = &letting{Dispatcher: d, calling: &calling{at: of, look: true}, round: round}
	places, standing, err = step.places(ctx, items)
	return step, places, standing, more, err
}

// join has runs wait in line: one write of the gate, the runs and their places. Whoever is the first to wait, or goes to the front of a line that a pause holds, looks at those that hold
// places once more: one may have ended since they were read, and have found nobody to let in. So does who joins a line beside room: whoever made it may have died before it let anybody in.
func (d *Dispatcher) join(round *gate.Round, all []*wanting) (again []*wanting, met bool) {
	now, err := d.Clock()
	if err != nil {
		for _, w := range all {
			w.came(0, err)
		}
		return nil, false
	}
	some := all[:min(len(all), joinBatch)]
	left, err := d.leaveWider(some)
	for err == nil && 2+2*len(some)+len(left) > store.MaxOps { // with the gate, and what the first write of a value checks
		some = some[:len(some)/2]
		left, err = d.leaveWider(some)
	}
	if err != nil {
		for _, w := range all {
			w.came(0, err)
		}
		return nil, false
	}
	joining := make([]run.Run, len(some))
	if some[0].at.IsNamed() {
		round.Orders()
	}
	until := round.Gate().WaitUntil(now)
	past := false
	for i, w := range some {
		rank := w.rank()
		if w.past { // whoever ended since may have found none but held runs in line
			rank, past = gate.Forward(rank), true
		}
		if w.at.IsNamed() {
			joining[i] = w.run.JoinNamed(w.at.Name, w.at.Key, rank, round.Lead(w.run, rank), w.units, w.placed, now).WaitingUntil(until)
		} else {
			joining[i] = w.run.Join(w.at.Name, rank, now)
		}
	}
	stand, err := d.stand(some, joining)
	if err == nil {
		err = d.armOutwaits(joining, now)
	}
	if err != nil {
		for _, w := range all {
			w.came(0, err)
		}
		return nil, false
	}
	look := !round.Closed() && (past || round.Waiting() == len(stand) || round.Room(some[0].limit(round)))
	for _, r := range joining {
		round.Join(r, stand[r.ID])
	}
	ops, err := round.Puts(d.Now(), d.NewID)
	if err == nil {
		ops = append(ops, left...)
		// Durable with this write: that they wait, and where. A crash here leaves them to whoever makes room, or to their checks.
		err = d.writeGate(round, ops...)
	}
	if look && (err == nil || passing(err)) {
		call := &calling{at: some[0].at, look: true}
		if err := d.callIn(call, false); err != nil {
			d.Log.Warn("runs that wait are left to their checks", "gate", some[0].at.String(), "error", err)
		}
		some[0].given = append(some[0].given, call.given...)
	}
	switch conflict := store.AsConflict(err); {
	case err == nil:
		d.gauge(round, some[0].def.Labels)
		for _, w := range some {
			w.came(Joined, nil)
		}
		return all[len(some):], false
	case conflict != nil && conflict.Op > 0 && conflict.Op <= 2*len(some):
		at := (conflict.Op - 1) / 2 // a run and its place are two ops
		some[at].came(Overtaken, nil)
		return slices.Concat(all[:at], all[at+1:]), true
	case conflict != nil, passing(err):
		return all, true
	}
	for _, w := range all {
		w.came(0, err)
	}
	return nil, false
}

// stand gives those of joining runs whose places stand in the line already: what takes the claim of a run that waits away leaves its place, and it comes
// back by the same rank. The gate was read before, and each write of a place is one of the gate. No other run costs a read.
func (d *Dispatcher) stand(before []*wanting, joining []run.Run) (map[run.ID]bool, error) {
	var keys []store.Key
	var of []run.ID
	for i, r := range joining {
		if rank := before[i].run.Wait.Rank; rank != 0 && rank == r.Wait.Rank {
			keys, of = append(keys, gate.PlaceOf(r).Key(r.Tenant)), append(of, r.ID)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	ctx, cancel := d.brief()
	defer cancel()
	items, err := d.Store.Get(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("read places in line: %w", err)
	}
	stand := map[run.ID]bool{}
	for i, item := range items {
		if item.Exists() {
			stand[of[i]] = true
		}
	}
	return stand, nil
}

// skip skips runs that found no room.
func (d *Dispatcher) skip(round *gate.Round, full []*wanting, ahead []run.ID) {
	if len(full) == 0 {
		return
	}
	now, unfit := d.Clock()
	var puts []*Put
	var skipped []*wanting
	for _, w := range full {
		if unfit != nil {
			w.came(0, unfit)
			continue
		}
		policy := w.own.Policy
		if w.at.IsNamed() {
			policy = ""
		}
		skips := w.run.Overlapping(round.Why(policy, ahead), len(ahead) > 0, now, w.def.Kept())
		skips.Placed, skips.NamedGates = skips.Placed || w.placed, skips.NamedGates || w.at.IsNamed() // whoever comes upon its end makes room at the gates before
		put, err := d.Prepare(context.Background(), skips, w.def.On, now)
		if err != nil {
			w.came(0, err)
			continue
		}
		puts, skipped = append(puts, put), append(skipped, w)
	}
	// Durable with this write: each end whose op is done, with the reason. A crash here leaves runs that are due, as they were.
	d.TryEach(context.Background(), puts)
	for i, w := range skipped {
		switch put := puts[i]; {
		case put.Won():
			d.Metrics.GateSkipped.Inc(d.countedAs(w))
			w.run = put.Run()
			w.came(Skipped, nil)
		case store.AsConflict(put.err) != nil:
			w.came(Overtaken, nil)
		case put.err == nil:
			w.came(0, store.ErrThrottled) // nothing was tried
		default:
			w.came(0, put.err)
		}
	}
}
