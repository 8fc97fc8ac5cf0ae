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
	spared := decided - newestWithin // a newest fire from then on is not missed
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
// long, or it was in time then, and minutes have gone by.
func (j *Judge) late(js *jobState, fire, handled int64) bool {
	s := j.shard(j.shardOf(js))
	n, _ := slices.BinarySearchFunc(s.published, fire, func(p published, fire int64) int { return cmp.Compare(p.horizon, fire) })
	if n == len(s.published) {
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
	case fire < found-policy.Window.Std().Milliseconds():
		return false
	}
	return policy.Mode == job.CatchUpAll || policy.Mode == job.CatchUpOne && newest
}

// caughtUp: a fire that was found late runs only where the rule has it run, or had when it was found first: by whoever claimed or decided
// over an earlier fire of the generation, and may have been stopped among its claims. Others claim for it up to its horizon, however late.
func (j *Judge) caughtUp(rs *runState, e *edition) {
	a := &rs.run
	fire := a.ID.Nominal
	if j.allows(rs.job, e, fire, a.Created) {
		return
	}
	reach := j.shard(j.shardOf(rs.job)).reach + 2*j.cfg.Clocks.Milliseconds()
	for _, other := range rs.job.runs {
		if r := &other.run; other != rs && !r.ID.OnDemand() && r.ID.Nominal < fire && r.Created+reach >= fire && j.allows(rs.job, e, fire, r.Created) {
			return
		}
	}
	j.violate("P2", "run %s of %s was made at %s, too late for catch-up of mode %s in %s", a.ID, a.Tenant, instant(a.Created), e.Def.CatchUp.Mode, e.Def.CatchUp.Window)
}
