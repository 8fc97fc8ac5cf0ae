package run

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// This file has the decisions over the run of a workflow and over its steps. A step is an ordinary run in another place; what is its own is how it
// begins, and that the run it is of may end it.

// Open begins the run of a workflow at now (Unix ms). That is no attempt, and nobody holds a lease of it. The run must be Queued and due.
func (r Run) Open(now int64) Run {
	r.State, r.Started, r.NextAt = Running, now, 0
	r.Wait = Wait{}
	return r
}

// Release is a step of the workflow's run, queued at now where nothing stands yet, since another ended at since (both Unix ms), or the run was opened.
// Its definition is that of the run, so it has the run's generation. expires (Unix ms) is when its run is kept no longer at the latest. Its end leaves that as it is, unless it
// comes so late that less than the retention is left.
func (r Run) Release(path string, since, now, expires int64) Run {
	id := r.ID.At(path)
	return Run{ID: id, Tenant: r.Tenant, State: Queued, Generation: r.Generation, Trigger: r.Trigger, Priority: r.Priority, Created: now,
		Lag: max(0, now-since), Trace: r.spanOf(id), Expires: expires}
}

// Answer is what came of what a node of a workflow asked.
type Answer struct {
	State  State  // Succeeded, Skipped or Failed, or Cancelled where it was not asked, since a scope around it was stopped
	Chose  string // of a switch: the path of the step that it chose, "" for none
	Reason string // for people: what it chose, or why it failed or was skipped
}

// Answered is a node of the workflow's run that has ended without an attempt, by what came of what it asked. now and expires are those of Release.
func (r Run) Answered(path string, a Answer, now, expires int64) Run {
	id := r.ID.At(path)
	end := Run{ID: id, Tenant: r.Tenant, State: a.State, Generation: r.Generation, Trigger: r.Trigger, Created: now, Ended: now, Chose: a.Chose,
		Reason: cut(a.Reason, newestError), Trace: r.spanOf(id), Expires: expires}
	if a.State == Skipped {
		end.Why.Code = WhyWhen
	}
	return end
}

// Fault is what the newest attempt failed of, or why there was none.
func (r Run) Fault() string {
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Error != "" {
		return r.Attempts[n-1].Error
	}
	return r.Reason
}

// Late is how late a step is that starts at now (Unix ms): since the end that it follows from, or the opening of its run.
func (r Run) Late(now int64) time.Duration {
	return time.Duration(now-r.Created+r.Lag) * time.Millisecond
}

// Branch is the span of a whole workflow's run, which those of its steps go below. r is the run, or one of its steps.
func (r Run) Branch() trace.Context { return r.spanOf(r.ID.Whole()) }

// spanOf is a span that everybody finds who knows what it is of: nobody has a workflow's run in hand from its opening to its end, to name one.
func (r Run) spanOf(id ID) trace.Context { return r.Trace.Named(r.Tenant + "/" + id.String()) }

// LateFor tells the workflow's run that its time is over, or that the failure of a step stops it: nothing of it starts any more, and it ends as failed.
func (r Run) LateFor(reason string) Run {
	r.Cancel, r.Overdue, r.Reason = true, true, cut(reason, maxReasonSize)
	return r
}

// Close ends the run of a workflow of which all steps have ended. Of one that was cancelled nothing else counts.
func (r Run) Close(state State, now int64, reason string, l Limits) Run {
	switch {
	case r.Overdue:
		return r.end(Failed, now, r.Reason, l)
	case r.Cancel:
		return r.end(Cancelled, now, r.Reason, l)
	}
	return r.end(state, now, reason, l)
}
