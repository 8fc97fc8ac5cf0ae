package oracle

import (
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// broughtPolicies are those that a run may be asked for with, in place of its job's. That of a strict job changes nothing, and no run has it.
var broughtPolicies = []job.OverlapPolicy{job.OverlapAllow, job.OverlapSkip, job.OverlapQueue, job.OverlapQueueOne, job.OverlapQueueLatest, job.OverlapCancel, job.OverlapReplace}

// overlap is what holds of its job's gate for a run: its own policy with the limit and the key of its job, and the bound of the line where the policy has one. Who brings allow has no
// limit.
func (rs *runState) overlap() (o job.Overlap) {
	e, own := rs.job.byGeneration[rs.run.Generation], rs.run.Overlap.Policy()
	switch {
	case e == nil:
		return o
	case own == "" || e.Def.Overlap.IsZero():
		return e.Def.Overlap
	case own == job.OverlapAllow:
		return o
	}
	o.Policy, o.Limit, o.Key = own, e.Def.Overlap.Limit, e.Def.Overlap.Key
	if own == job.OverlapQueue {
		o.MaxWaiting = e.Def.Overlap.MaxWaiting
	}
	return o
}

// asksWith is told of a request for a run that brings a policy.
func (js *jobState) asksWith(policy string) {
	if policy == "" {
		return
	}
	if js.mayBring == nil {
		js.mayBring = map[string]int{}
	}
	js.mayBring[policy]++
}

// brings: each run that goes by a policy of its own was asked for with that, of a job that has a policy itself or by one that needs none (G4).
func (j *Judge) brings(rs *runState) {
	own := rs.run.Overlap.String()
	if own == "" {
		return
	}
	if !slices.Contains(broughtPolicies, job.OverlapPolicy(own)) {
		j.violate("G4", "run %s of %s goes by %q, which no request may bring", rs.id(), rs.job.tenant, own)
	}
	if rs.job.mayBring[own] > 0 {
		rs.job.mayBring[own]--
	} else {
		j.violate("G4", "run %s of %s goes by %s, and no such request was left", rs.id(), rs.job.tenant, own)
	}
	if own != string(job.OverlapAllow) && !slices.ContainsFunc(rs.job.editions, func(e *edition) bool { return !e.deleted && !e.Def.Overlap.IsZero() }) {
		j.violate("G4", "run %s of %s goes by %s, and its job never had a limit", rs.id(), rs.job.tenant, own)
	}
}

// bringsWhatWasAsked: the run that an answer names goes by the policy of its request (G4). That of a strict job changes nothing, and is not kept.
func (j *Judge) bringsWhatWasAsked(q *asking, rs *runState) {
	want := q.Own
	if want == string(job.OverlapStrict) {
		want = ""
	}
	if rs.run.Overlap.String() != want {
		j.violate("G4", "run %s of %s was asked for with the policy %q, and goes by %q", rs.id(), q.Tenant, q.Own, rs.run.Overlap)
	}
}

// passesBy: who brings allow has no entry at its job's own gate (G1).
func (j *Judge) passesBy(rs *runState) {
	if rs.run.Overlap.Policy() == job.OverlapAllow {
		j.violate("G1", "run %s of %s was asked for with allow, and has an entry at its job's gate", rs.id(), rs.job.tenant)
	}
}
