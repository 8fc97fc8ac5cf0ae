package oracle

import (
	"bytes"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Called is told of each call of a target. It tells whether the call is stale: a target that remembers the highest fence it
// saw for a run refuses it.
func (j *Judge) Called(c Call) (stale bool) {
	j.event++
	rs := j.named(c.Tenant, c.Run)
	if rs == nil {
		j.violate("P12", "run %s was called for %s, and there is none", c.Run, c.Tenant)
		return true
	}
	if c.Job != rs.run.ID.Job || c.Nominal.UnixMilli() != rs.run.ID.Nominal {
		j.violate("P2", "run %s of %s was called as %s at %s", c.Run, c.Tenant, c.Job, c.Nominal)
	}
	s := rs.start(c.Fence)
	switch {
	case s == nil:
		j.violate("P6", "attempt %d of run %s of %s was called under fence %d, and none started under it", c.Attempt, c.Run, c.Tenant, c.Fence)
		return true
	case s.attempt != c.Attempt:
		j.violate("P6", "attempt %d of run %s of %s was called under fence %d, which is of attempt %d", c.Attempt, c.Run, c.Tenant, c.Fence, s.attempt)
	case s.called:
		j.violate("P6", "attempt %d of run %s of %s was called twice", c.Attempt, c.Run, c.Tenant)
	}
	s.called = true
	if s.orphan {
		j.violate("P8", "attempt %d of run %s of %s was started after the answer to the delete of its job, and called", c.Attempt, c.Run, c.Tenant)
	}
	j.early(c.At, s.due, rs, c.Attempt, "called")
	if s.payload != nil && !bytes.Equal(s.payload, c.Payload) {
		j.violate("P8", "run %s of %s of generation %d was called with %.80q, want %.80q", c.Run, c.Tenant, s.edition.Generation, c.Payload, s.payload)
	}
	if s.edition.Computed {
		j.handed(rs, c)
	}
	if s.edition.Def.Guarantee == job.AtMostOnce {
		for i := range rs.starts {
			if other := &rs.starts[i]; other != s && other.called && other.period == s.period {
				j.violate(rs.once(), "at-most-once run %s of %s was called in attempts %d and %d", c.Run, c.Tenant, other.attempt, s.attempt)
			}
		}
	}
	stale = c.Fence < rs.called
	rs.called = max(rs.called, c.Fence)
	return stale
}

// Returned is told how a call was answered.
func (j *Judge) Returned(r Return) {
	j.event++
	rs := j.named(r.Tenant, r.Run)
	if rs == nil {
		return // its call was judged
	}
	s := rs.start(r.Fence)
	if s == nil {
		return
	}
	s.returned, s.ok, s.result = true, r.OK, r.Result
	if rs.run.State == run.Succeeded && rs.run.Fence == r.Fence {
		j.violate("P1", "run %s of %s had succeeded before its target answered", r.Run, r.Tenant)
	}
}
