package oracle

import (
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
	late := decided - job.MissedAfter.Milliseconds()
	window := decided - e.Def.CatchUp.Window.Std().Milliseconds()
	if a.Through >= late {
		j.violate("P2", "run %s of %s drops fires up to %s, decided at %s: they were not missed", a.ID, a.Tenant, instant(a.Through), instant(decided))
	}
	if n, _ := e.Schedule.Count(time.UnixMilli(a.ID.Nominal).UTC(), time.UnixMilli(a.Through).UTC(), counted); n != a.Count {
		j.violate("P2", "run %s of %s drops %d fires up to %s, and counts %d", a.ID, a.Tenant, n, instant(a.Through), a.Count)
	}
	if strings.Contains(a.Reason, "nothing shows whether it ran") && a.Through < decided-dispatch.Forgotten.Milliseconds() {
		return
	}
	switch e.Def.CatchUp.Mode {
	case job.CatchUpAll:
		if a.Through >= window {
			j.violate("P2", "run %s of %s drops fires up to %s, and all since %s are to be caught up", a.ID, a.Tenant, instant(a.Through), instant(window))
		}
	case job.CatchUpOne:
		// The decider may not have seen the edit that ended the generation.
		if !j.leavesLatest(e, a, min(late-1, e.until), window) && !j.leavesLatest(e, a, late-1, window) {
			j.violate("P2", "run %s of %s drops fires up to %s, the latest missed one with them", a.ID, a.Tenant, instant(a.Through))
		}
	}
}

// leavesLatest tells whether the latest fire up to an instant is not among those dropped, or too old.
func (j *Judge) leavesLatest(e *edition, a *run.Run, upTo, window int64) bool {
	latest, ok := e.Schedule.Last(time.UnixMilli(a.ID.Nominal).UTC(), time.UnixMilli(upTo).UTC())
	return !ok || latest.UnixMilli() > a.Through || latest.UnixMilli() < window
}

// caughtUp: a fire that was found late runs only where the job's policy has it run, or where it had been found in time before.
func (j *Judge) caughtUp(rs *runState, e *edition) {
	a := &rs.run
	late := a.Created - job.MissedAfter.Milliseconds()
	fire := a.ID.Nominal
	if fire >= late {
		return
	}
	switch window := a.Created - e.Def.CatchUp.Window.Std().Milliseconds(); {
	case fire < window:
	case e.Def.CatchUp.Mode == job.CatchUpAll:
		return
	case e.Def.CatchUp.Mode == job.CatchUpOne:
		if after, ok := next(e.Schedule, fire); !ok || after >= late || after > e.until {
			return
		}
	}
	// Whoever had found an earlier fire in time may have been stopped among its claims, and up to its horizon others claim for it.
	reach := j.shard(j.shardOf(rs.job)).reach + 2*j.cfg.Clocks.Milliseconds()
	for _, other := range rs.job.runs {
		if r := &other.run; other != rs && !r.ID.OnDemand() && r.ID.Nominal < fire && r.Created+reach >= fire {
			return
		}
	}
	j.violate("P2", "run %s of %s was made at %s, too late for catch-up of mode %s in %s", a.ID, a.Tenant, instant(a.Created), e.Def.CatchUp.Mode, e.Def.CatchUp.Window)
}
