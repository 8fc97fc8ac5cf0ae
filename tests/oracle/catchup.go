package oracle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// skipped: what is dropped was missed, is counted, and is what the job's policy drops.
func (j *Judge) skipped(rs *runState, e *edition) {
	a := &rs.run
	if a.Count == 0 {
		// Another timer's decision holds here too, and counts its fires.
		if !slices.ContainsFunc(rs.job.runs, func(other *runState) bool {
			r := &other.run
			return r.State == run.Skipped && r.Generation == a.Generation && r.Count > 0 && r.ID.Nominal < a.ID.Nominal && r.Through == a.Through
		}) {
			j.violate("P2", "run %s of %s counts none of the fires that it drops up to %s, and no record before it does", a.ID, a.Tenant, instant(a.Through))
		}
		return
	}
	decided := a.Ended
	// What a clock has published that was set back tells nothing of when a fire was found: the decider's own clock may then be right.
	if right := j.cfg.Clocks >= AnyClock && a.Through < decided-grace; !right && !j.late(rs.job, a.Through, decided) {
		j.violate("P2", "run %s of %s drops fires up to %s, decided at %s: they were not missed", a.ID, a.Tenant, instant(a.Through), instant(decided))
	}
	if n, _ := e.Schedule.Count(time.UnixMilli(a.ID.Nominal).UTC(), time.UnixMilli(a.Through).UTC(), counted); n != a.Count {
		j.violate("P2", "run %s of %s drops %d fires up to %s, and counts %d", a.ID, a.Tenant, n, instant(a.Through), a.Count)
	}
	if strings.Contains(a.Reason, "nothing shows whether it ran") && a.Through < decided-dispatch.Forgotten.Milliseconds() {
		return
	}
	window := decided - e.Def.CatchUp.Window.Std().Milliseconds()
	spared := decided - newestWithin                // a newest fire from then on is not missed
	if lasts := e.Def.Times().Least(); lasts != 0 { // what could not start, or end in time, any more is dropped, too
		window = max(window, decided-lasts)
	}
	switch e.Def.CatchUp.Mode {
	case job.CatchUpAll:
		if a.Through >= window {
			j.violate("P2", "run %s of %s drops fires up to %s, and all since %s are to be caught up", a.ID, a.Tenant, instant(a.Through), instant(window))
		}
	case job.CatchUpOne:
		spared = min(spared, window)
	}
	// The decider may not have seen the edit that ended the generation.
	if !j.leavesNewest(e, a, min(decided, e.until), spared) && !j.leavesNewest(e, a, decided, spared) {
		j.violate("P2", "run %s of %s drops fires up to %s, the newest at %s with them", a.ID, a.Tenant, instant(a.Through), instant(decided))
	}
}

// The rule, in ms: see late, leavesNewest and allows.
const (
	grace        = 3_000
	newestWithin = 300_000
)

// late tells whether a fire that somebody handles at an instant is late: when a horizon beyond it was first published it had been over for so
// long, or it was in time then, and minutes have gone by. A clock that was ahead of who handles it tells nothing of when it was found.
func (j *Judge) late(js *jobState, fire, handled int64) bool {
	s := j.shard(j.shardOf(js))
	n, _ := slices.BinarySearchFunc(s.published, fire, func(p published, fire int64) int { return cmp.Compare(p.horizon, fire) })
	if n == len(s.published) || s.published[n].at > handled+2*dispatch.MaxSkew.Milliseconds() {
		return fire < handled-grace
	}
	return fire < s.published[n].at-grace || fire < handled-newestWithin
}

// leavesNewest tells whether the newest fire up to an instant is not among those dropped, or lies before what is spared.
func (j *Judge) leavesNewest(e *edition, a *run.Run, upTo, spared int64) bool {
	newest, ok := e.Schedule.Last(time.UnixMilli(a.ID.Nominal).UTC(), time.UnixMilli(upTo).UTC())
	return !ok || newest.UnixMilli() > a.Through || newest.UnixMilli() < spared
}

// allows tells whether a fire that is handled at an instant runs by the rule: it is not missed, or its job's policy has it run.
func (j *Judge) allows(js *jobState, e *edition, fire, found int64) bool {
	if fire >= found-grace || !j.late(js, fire, found) {
		return true
	}
	after, ok := next(e.Schedule, fire)
	newest := !ok || after > min(found, e.until)
	policy := e.Def.CatchUp
	switch {
	case newest && fire >= found-newestWithin:
		return true
	case fire < found-e.madeUpFor():
		return false
	}
	return policy.Mode == job.CatchUpAll || policy.Mode == job.CatchUpOne && newest
}

// madeUpFor is how long ago a missed fire was at most that its job has made up for, ms: it lies in the window of catch-up, and may start still.
func (e *edition) madeUpFor() int64 {
	window := e.Def.CatchUp.Window.Std().Milliseconds()
	if lasts := e.Def.Times().Least(); lasts != 0 {
		window = min(window, lasts+e.Def.Schedule.Jitter.Std().Milliseconds())
	}
	return window
}

// caughtUp: a fire that was found late runs only where the rule has it run, or had when it was found first: by whoever claimed or decided
// over an earlier fire of the generation, and may have been stopped among its claims. Others claim for it up to its horizon, however late.
func (j *Judge) caughtUp(rs *runState, e *edition) {
	a := &rs.run
	fire := a.ID.Nominal
	if j.allows(rs.job, e, fire, a.Created) {
		return
	}
	slack := (2*time.Minute + 2*j.cfg.Clocks).Milliseconds() // from the pass's look at its clock to the timer
	for _, o := range e.owed {
		if e.Def.CatchUp.Mode != job.CatchUpNone && o.from <= fire && fire <= o.upTo && fire >= o.by-slack-e.madeUpFor() {
			return // it was found in its window, and waited for its place
		}
	}
	reach := j.shard(j.shardOf(rs.job)).reach + 2*j.cfg.Clocks.Milliseconds()
	for _, other := range rs.job.runs {
		if r := &other.run; other != rs && !r.ID.OnDemand() && r.ID.Nominal < fire && r.Created+reach >= fire && j.allows(rs.job, e, fire, r.Created) {
			return
		}
	}
	j.violate("P2", "run %s of %s was made at %s, too late for catch-up of mode %s in %s", a.ID, a.Tenant, instant(a.Created), e.Def.CatchUp.Mode, e.Def.CatchUp.Window)
}

// place is when a run that makes up for a missed fire is to start; 0 for all others.
func (rs *runState) place() int64 {
	if rs.run.State != run.Queued || rs.run.Attempt > 0 || rs.run.ID.OnDemand() {
		return 0
	}
	return rs.run.NextAt
}

// apart is how far places of one job are from each other.
const apart = 1000

// paced: a fire that was missed and runs has its place. In no second are there more than the rate, and of one job more than one.
func (j *Judge) paced(rs *runState, e *edition, b *run.Run) {
	a, place := &rs.run, rs.place()
	if j.cfg.Clocks >= AnyClock || b.NextAt == place && b.Version != 0 {
		return // the same seconds come again where a clock is set back
	}
	if place == 0 {
		after, ok := next(e.Schedule, a.ID.Nominal)
		spared := a.ID.Nominal >= a.Created-newestWithin && (!ok || after > min(a.Created, e.until))
		if e.Def.CatchUp.Mode != job.CatchUpNone && !spared && a.ID.Nominal < a.Created-grace && j.late(rs.job, a.ID.Nominal, a.Created) {
			j.violate("P11", "run %s of %s makes up for a fire that was missed, and has no place", a.ID, a.Tenant)
		}
		return
	}
	if place < a.Created {
		j.violate("P11", "run %s of %s has the place %s, before it was claimed at %s", a.ID, a.Tenant, instant(place), instant(a.Created))
	}
	i, _ := slices.BinarySearch(rs.job.places, place)
	rs.job.places = slices.Insert(rs.job.places, i, place)
	for k := max(i-1, 0); k < i+1 && k+1 < len(rs.job.places); k++ {
		if one, other := rs.job.places[k], rs.job.places[k+1]; other-one < apart {
			j.violate("P11", "missed fires of %s of %s have the places %s and %s, less than a second apart", rs.job.name, a.Tenant, instant(one), instant(other))
		}
	}
	i, _ = slices.BinarySearch(j.places, place)
	j.places = slices.Insert(j.places, i, place)
	for k := max(i-j.cfg.CatchUpRate, 0); k <= i && k+j.cfg.CatchUpRate < len(j.places); k++ {
		if one, other := j.places[k], j.places[k+j.cfg.CatchUpRate]; other-one < 1000 {
			j.violate("P11", "more than %d missed fires have places in the second from %s on, to %s", j.cfg.CatchUpRate, instant(one), instant(other))
			return
		}
	}
}
