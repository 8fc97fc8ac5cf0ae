package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// place is a time in which a run is in progress at its job's gate: from the write that lets it in until it has ended, or its claim was taken
// away. Unix ms.
type place struct {
	since, until int64
}

// inProgress tells whether the run is let in, and has not ended.
func (rs *runState) inProgress() bool {
	n := len(rs.places)
	return n > 0 && rs.places[n-1].until == forever
}

// leaves is told of a run's end, or of anything else after which it would have to be let in anew.
func (rs *runState) leaves(at int64) {
	if rs.inProgress() {
		rs.places[len(rs.places)-1].until = at
	}
}

// active tells whether a run that was let in is in progress in this state.
func active(s run.State) bool { return s == run.Queued || s == run.Running || s == run.Retrying }

// sameStay tells whether a run that was let in before a change of its record is in progress behind it.
func sameStay(b, a *run.Run) bool {
	return active(b.State) && active(a.State) && b.Opening == a.Opening && b.Generation == a.Generation
}

// storedGate: whoever is in progress keeps its entry, and whoever is let in finds room (G1).
func (j *Judge) storedGate(at time.Time, key store.Key, rest string, before, after store.Item) {
	j.storedOther(key, before, after)
	tenant, named, _ := strings.Cut(rest, "#")
	jobName := strings.TrimPrefix(named, "job:")
	js := j.job(tenant, jobName)
	g, err := gate.FromItem(tenant, jobName, after)
	switch {
	case err != nil:
		j.violate("G1", "%s: %v", key, err)
		return
	case key != gate.Key(tenant, jobName) || len(js.editions) == 0:
		j.violate("P12", "%s is the gate of no job", key)
		return
	}
	standing := map[*runState]bool{}
	var lets []*runState
	for i, e := range g.Entries {
		if slices.ContainsFunc(g.Entries[:i], func(other gate.Entry) bool { return g.Run(other) == g.Run(e) }) {
			j.violate("G1", "run %s of %s has two entries at its gate", g.Run(e), tenant)
		}
		rs := j.runs[g.Run(e).Key(tenant)]
		if rs == nil {
			j.violate("G1", "run %s of %s has an entry at its gate, and never was", g.Run(e), tenant)
			continue
		}
		if active(rs.run.State) && e.Opening == rs.run.Opening && e.Generation == rs.run.Generation {
			standing[rs] = true
			if !rs.inProgress() {
				rs.places = append(rs.places, place{since: ms(at), until: forever})
				lets = append(lets, rs)
			}
		}
	}
	for _, rs := range js.runs {
		if rs.inProgress() && !standing[rs] {
			j.violate("G1", "run %s of %s is %s, and has lost its entry at its gate in version %d", rs.id(), tenant, rs.run.State, after.Version)
			rs.leaves(ms(at))
		}
	}
	for _, rs := range lets {
		if limit := rs.limit(); limit > 0 && len(standing) > limit {
			j.violate("G1", "run %s of %s was let in as one of %d, and its job allows %d at once", rs.id(), tenant, len(standing), limit)
		}
	}
}

// limit is how many runs may be in progress where this one is let in; 0 for any number.
func (rs *runState) limit() int {
	if e := rs.job.byGeneration[rs.run.Generation]; e != nil {
		return e.Def.Overlap.Limit
	}
	return 0
}

// bounds tells whether a generation says how many runs may be in progress at once.
func (js *jobState) bounds(generation int64) bool {
	e := js.byGeneration[generation]
	return e != nil && !e.Def.Overlap.IsZero()
}

// letIn: what starts has an entry that was written behind its claim (G1).
func (j *Judge) letIn(rs *runState) {
	if limit := rs.limit(); limit > 0 && !rs.inProgress() {
		j.violate("G1", "run %s of %s started, its job allows %d at once, and it was not let in", rs.id(), rs.job.tenant, limit)
	}
}

// overlapped: who is skipped for overlap names gate, policy and who was in the way, and they all were, at one instant between the time from
// which its worker may have looked and the write (G4). size is that of its record.
func (j *Judge) overlapped(at time.Time, rs *runState, b *run.Run, size int) {
	a := &rs.run
	e := rs.job.byGeneration[a.Generation]
	if e == nil || e.Def.Overlap.Limit == 0 || a.Why.Code != run.WhyOverlap || a.Why.Gate != gate.Name(a.ID.Job) || a.Why.Policy != string(e.Def.Overlap.Policy) {
		j.violate("G4", "run %s of %s of generation %d is skipped for %s by %q at %q, which its job does not say", a.ID, a.Tenant, a.Generation, a.Why.Code, a.Why.Policy, a.Why.Gate)
		return
	}
	if rs.byHand {
		j.violate("G4", "run %s of %s was opened by hand, and is skipped", a.ID, a.Tenant)
	}
	if want := min(e.Def.Overlap.Limit, run.MaxInTheWay); len(a.Why.InTheWay) < want && size < roomy {
		j.violate("G4", "run %s of %s is skipped and names %q, fewer than the %d that its job allows at once", a.ID, a.Tenant, a.Why.InTheWay, want)
	}
	var others []*runState
	for _, id := range a.Why.InTheWay {
		other := j.named(a.Tenant, id)
		if other == nil || other.job != rs.job || other == rs {
			j.violate("G4", "run %s of %s is skipped, and run %s in its way is no other run of its job", a.ID, a.Tenant, id)
			return
		}
		others = append(others, other)
	}
	from := max(rs.due(b), rs.written) - j.cfg.Clocks.Milliseconds()
	if !together(others, from, ms(at)) {
		j.violate("G4", "run %s of %s is skipped for %q, and they were not in progress at one time from %s to %s", a.ID, a.Tenant, a.Why.InTheWay, instant(from), instant(ms(at)))
	}
}

// roomy is the size of a record that has room to name another run, in bytes.
const roomy = 700

// due is when the next attempt of a run may start, Unix ms. b is the run as it waits.
func (rs *runState) due(b *run.Run) int64 {
	due := max(b.ID.Nominal, b.NextAt)
	if e := rs.job.byGeneration[b.Generation]; e != nil && !b.ID.OnDemand() {
		due = max(due, e.Due(b.Tenant, b.ID.Job, b.ID.Nominal))
	}
	return due
}

// together tells whether runs were in progress all at one instant from one time to another.
func together(runs []*runState, from, to int64) bool {
	instants := []int64{from}
	for _, rs := range runs {
		for _, p := range rs.places {
			instants = append(instants, p.since)
		}
	}
	return slices.ContainsFunc(instants, func(t int64) bool {
		return from <= t && t <= to && !slices.ContainsFunc(runs, func(rs *runState) bool {
			return !slices.ContainsFunc(rs.places, func(p place) bool { return p.since <= t && t <= p.until })
		})
	})
}
