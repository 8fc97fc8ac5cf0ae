package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Under the policies cancel and replace, earlier runs that are in progress give way to a later one: they are asked to stop, and it waits in line meanwhile; or they are ended by the
// write of the gate by which it enters, or where others wait before it, while it waits too. What follows from an end or a cancel is seen to when nobody waits for this gate any more: it may ask for the same one.

// displaces tells whether earlier runs that are in progress give way to this one. To what was opened by hand nobody does: it waits in line under every policy.
func (w *wanting) displaces() bool {
	return w.replaces() && w.own.Policy.Displaces() && !w.run.Spared()
}

// given is a run that has given way, or was asked to.
type given struct {
	stood    run.Run // as it was seen before
	put      *Put    // of its end, or of what it was asked
	versions []uint64
}

// displacing is what a run comes to that displaces others.
type displacing struct {
	later    []run.ID // those in progress that come later: it is skipped for them
	asks     string   // the policy by which it joins the line and has others give way
	enters   bool     // with the write that ends the others
	entering run.Run
	yielding
}

// yielding is one write by which runs give way.
type yielding struct {
	checks int  // that lead the ops
	more   bool // there are more to give way than the write takes: they are for the next
	given  []given
	ops    []store.Op // of the checks, and of all that give way: two ends may say the same of their job
}

// Bounds of the ends in one write.
const (
	endBatch = 20 // runs
	endOps   = 3  // the most that one takes: the run, that its job is down, and a callback
)

// displace decides over the holders of a gate for a run that is to displace some, behind those that wait before it. skips is how many of these are skipped by the same write.
func (d *Dispatcher) displace(w *wanting, step *letting, skips int, now int64) (way displacing, err error) {
	round, policy := step.round, w.own.Policy
	round.Ranks()
	ctx, cancel := d.brief()
	defer cancel()
	if err := d.lookAtAll(ctx, round); err != nil {
		return way, err
	}
	lacking := round.Lacks(1, w.limit(round))
	giving := round.GiveWay(w.place(), lacking, false)
	if later := round.Later(w.place()); len(giving) < lacking && len(later) > 0 {
		way.later = later[:min(len(later), run.MaxInTheWay)]
		return way, nil
	}
	if policy == job.OverlapCancel || round.Waiting() > 0 || lacking <= 0 || len(giving) < lacking {
		way.asks = string(policy)
		return way, nil
	}
	switch jobs, err := d.Book.Jobs(ctx, w.run.Tenant, w.run.ID.Job); {
	case err != nil:
		return way, fmt.Errorf("read job %s, which may be paused: %w", w.run.ID.Job, err)
	case jobs[0].Def.Paused || jobs[0].Broken != nil || waitsForNone(jobs[0], w.run): // it would not start: nobody gives way to it before it may
		way.asks = string(policy)
		return way, nil
	}
	// None is ended for a run that was cancelled meanwhile, or whose claim was taken away.
	checks := []store.Op{{Kind: store.Check, Key: w.run.ID.Key(w.run.Tenant), If: store.At(store.Item{Version: w.run.Version})}}
	room := store.MaxOps - 1 - len(step.ops) - skips // beside the gate
	if way.yielding, err = d.yield(ctx, round, giving, checks, round.Why(policy, []run.ID{w.run.ID}), now, room); err != nil || way.more {
		return way, err
	}
	for _, g := range way.given {
		round.Forget(g.stood.ID)
	}
	way.enters, way.entering = true, w.run
	way.entering.Wait.Rank = w.rank()
	return way, nil
}

// yield prepares the write by which holders of a gate give way as why says, of so many ops at most: under cancel they are asked to stop, and under replace they end.
func (d *Dispatcher) yield(ctx context.Context, round *gate.Round, giving []run.Run, checks []store.Op, why run.Why, now int64, room int) (way yielding, err error) {
	way.checks, way.ops = len(checks), checks
	for _, stood := range giving {
		if way.more = len(way.given) == endBatch || len(way.given) > 0 && len(way.ops)+endOps > room; way.more {
			return way, nil
		}
		def, quiet := job.Definition{}, false
		switch edition, err := d.EditionOf(ctx, stood); {
		case err == nil:
			def, quiet = edition.Def, MayBeQuiet(stood, edition)
		case !Unreadable(err):
			return way, fmt.Errorf("read the definition of run %s, which gives way: %w", stood.ID, err)
		}
		replaces := why.Policy == string(job.OverlapReplace)
		if quiet || replaces && stood.Heads() { // durable before, since behind an end no other check of it is armed: one that stops its steps, should this process die
			if err := d.Rouse(ctx, stood); err != nil {
				return way, err
			}
		}
		next, ok := stood, true
		next.GateKey = round.ID().Key // which no record says of who has entered and not started
		if replaces {
			next = next.Replaced(why, now, Limits(def))
		} else {
			next, ok = next.GiveWay(why, now, def.Kept())
		}
		if !ok {
			continue
		}
		put, err := d.Prepare(ctx, next, def.On, now)
		if err != nil {
			return way, err
		}
		way.given, way.ops = append(way.given, given{stood: stood, put: put}), append(way.ops, put.ops...)
	}
	return way, nil
}

// written says what became of the write by which runs gave way: at is where each of the ops stood in it. Of one that may have been done, what follows is seen to as well.
func (way *yielding) written(versions []uint64, at []int, err error) []given {
	if err != nil {
		if passing(err) {
			return way.given
		}
		return nil
	}
	at = at[way.checks:]
	for i := range way.given {
		for range way.given[i].put.ops {
			way.given[i].versions = append(way.given[i].versions, versions[at[0]])
			at = at[1:]
		}
	}
	return way.given
}

// LookAt reads runs of entries that nobody has looked at, as many as are read at once, and leaves out those that hold no place. read is ReadRuns, or PeekRuns for whoever only shows
// the gate. more is false where all were looked at before.
func (d *Dispatcher) LookAt(ctx context.Context, round *gate.Round, read func(context.Context, []run.Run) ([]run.Run, error)) (more bool, err error) {
	var unsure []run.Run
	for _, id := range round.Unsure(store.MaxKeys) {
		unsure = append(unsure, run.Run{ID: id, Tenant: round.Tenant()})
	}
	if len(unsure) == 0 {
		return false, nil
	}
	standing, err := read(ctx, unsure)
	if err != nil {
		return false, fmt.Errorf("read the runs at gate %s: %w", round.ID(), err)
	}
	round.Learn(standing)
	return true, nil
}

// lookAtAll looks at all entries that nobody has looked at, and settles what they hold up.
func (d *Dispatcher) lookAtAll(ctx context.Context, round *gate.Round) error {
	for {
		more, err := d.LookAt(ctx, round, d.ReadRuns)
		if err != nil {
			return err
		}
		if !more {
			_, err := d.Settle(round)
			return err
		}
	}
}

// mayAsk tells whether one that waits may be about to ask others to stop.
func (l *letting) mayAsk() bool {
	return l.calling.look && !l.named() && !l.gone() && l.round.Asks()
}

// ask has earlier runs give way to the one that waits for that: as many as it takes for it, and those before it in line, to have room. It tells whether there is more to do: any has
// ended of it, or there are more than one write takes.
//
// Durable with it: that they were asked, or have ended, and nothing where the gate or the run that waits stands otherwise than was read. A crash before leaves it to the message of
// the run that waits, or to its check.
func (l *letting) ask() (again bool, err error) {
	if !l.mayAsk() {
		return false, nil
	}
	ctx, cancel := l.brief()
	defer cancel()
	page, err := l.Store.Query(ctx, l.round.Gate().Line(lineLook))
	if err != nil {
		return false, fmt.Errorf("read the line of gate %s: %w", l.calling.at, err)
	}
	places, standing, err := l.places(ctx, page.Items)
	if err != nil {
		return false, err
	}
	var asking *run.Run // the latest of those that do
	before, ahead := 0, 0
	asks := page.Cursor != "" || len(places) < len(page.Items) // what is not seen may
	for i, p := range places {
		by := &standing[i]
		if !p.Named(*by) {
			asks = asks || by.Version != 0 && by.State == 0 // of a newer version of Belfry
			continue
		}
		asks = asks || by.Wait.Asks != ""
		if l.bars(*by) != barNone { // it is not let in, however many end for it
			continue
		}
		if by.Wait.Asks != "" {
			asking, ahead = by, before
		}
		before++
	}
	if !asks { // who did has left the line: nobody reads it for that any more
		l.round.AskNoMore()
		return false, l.writeGate(l.round)
	}
	if asking == nil {
		return false, nil
	}
	policy := job.OverlapPolicy(asking.Wait.Asks)
	lacking, anew := l.round.Lacks(ahead+1, l.limit()), policy != job.OverlapReplace // which ends those, too, that were asked and go on
	if anew {
		lacking -= l.round.Stopping()
	}
	checks := []store.Op{
		{Kind: store.Check, Key: l.calling.at.Item(), If: store.At(store.Item{Version: l.round.Gate().Version})},
		{Kind: store.Check, Key: asking.ID.Key(asking.Tenant), If: store.At(store.Item{Version: asking.Version})},
	}
	giving := l.round.GiveWay(gate.PlaceOf(*asking), lacking, anew)
	way, err := l.yield(ctx, l.round, giving, checks, l.round.Why(policy, []run.ID{asking.ID}), l.now, store.MaxOps)
	if err != nil || len(way.given) == 0 {
		return false, err
	}
	ops, at := store.Once(way.ops)
	versions, err := l.writeBriefly(ops...)
	l.calling.given = append(l.calling.given, way.written(versions, at, err)...)
	if err != nil {
		return false, err
	}
	again = way.more
	for _, g := range way.given {
		l.Metrics.GateGaveWay.Inc(l.Metrics.Gate(l.calling.at.Series(), gate.OwnSeries(l.job.Def.Labels)))
		again = again || g.put.run.State.Ended()
	}
	return again, nil
}

// seeOff does what follows for runs that have given way, or were asked to: their workers hear of it, the steps of workflows' runs stop, whoever they call is called, and those that wait for
// them elsewhere are let in. What fails is left to their messages and checks.
func (d *Dispatcher) seeOff(ctx context.Context, all []given) {
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.Lease) // what has been written is seen to, also where the worker that wrote it is being stopped
	defer cancel()
	runs := make([]run.Run, len(all))
	for i, g := range all {
		if runs[i] = g.stood; g.versions != nil {
			d.CountEnd(g.put.run)
			d.callBack(ctx, g.put.calls)
			d.putOff(ctx, g.put.waiting, g.versions)
		}
	}
	standing, err := d.ReadRuns(ctx, runs)
	if err != nil {
		d.Log.WarnContext(ctx, "what follows from runs that have given way is left to their messages", "first", runs[0].ID.String(), "error", err)
		return
	}
	for i, g := range all {
		if err := d.stopOff(ctx, g.stood, standing[i]); err != nil {
			d.Log.WarnContext(ctx, "what follows from a run that has given way is left to its message, or its check", "run", g.stood.ID.String(), "error", err)
		}
	}
}

func (d *Dispatcher) stopOff(ctx context.Context, stood, now run.Run) error {
	if stood.State == run.Running && !stood.Heads() && (now.Cancel || now.State.Ended()) {
		d.Cancelled(stood.Tenant, stood.ID)
	}
	switch {
	case now.Heads():
		return d.Follow(ctx, now.Tenant, now.ID, false)
	case !now.State.Ended():
		return nil
	}
	if edition, err := d.EditionOf(ctx, stood); err == nil {
		stood = d.MayHold(ctx, stood, edition) // it may have been let in, and not started
	}
	left := now
	if !now.Placed || stood.Waits() {
		left = stood
	}
	return errors.Join(d.stopStepsOf(ctx, now), d.Left(ctx, left))
}

// stopStepsOf ends what has not started of a workflow's run that has given way at once, and asks what runs of it to stop. Nothing starts of a run that has ended.
func (d *Dispatcher) stopStepsOf(ctx context.Context, head run.Run) error {
	if !head.GaveWay() || !head.Headed() {
		return nil
	}
	now, err := d.Clock()
	if err != nil {
		return err
	}
	kept := job.DefaultRetention
	if edition, err := d.EditionOf(ctx, head); err == nil {
		kept = edition.Def.Kept()
	}
	steps, err := d.Steps(ctx, head)
	if err != nil {
		return err
	}
	var open []run.Run
	for _, s := range steps {
		if s.State != 0 && !s.State.Ended() {
			open = append(open, s)
		}
	}
	if err := d.Change(ctx, open, func(s run.Run) (run.Run, bool) {
		if s.State == run.Running && s.Cancel {
			return s, false
		}
		return s.AskCancel(now, head.Reason, kept)
	}); err != nil {
		return err
	}
	for _, s := range open {
		if s.State == run.Running {
			d.Cancelled(s.Tenant, s.ID)
		}
	}
	return nil
}
