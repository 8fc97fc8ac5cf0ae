package run

import "time"

// This file has the decisions over steps that wait for a time to come. Such a step is stored as Queued with NextAt, which no other step has: an attempt that begins
// clears it, and one that is to be made again makes the step Retrying. So no number of a state is new to an older process, which would take it for an end.

// Suspended tells whether the run is a step that waits until NextAt. No message of it is anywhere, and no worker has it.
func (r Run) Suspended() bool { return r.State == Queued && r.NextAt != 0 && r.ID.IsStep() }

// Suspend is a step of the workflow's run that waits until an instant. until, now and expires (Unix ms) are as for Release.
func (r Run) Suspend(path string, until, now, expires int64) Run {
	step := r.Release(path, now, now, expires)
	step.NextAt = until
	return step
}

// Resume ends a step that was suspended, whose time has come by now (Unix ms).
func (r Run) Resume(now int64, retention time.Duration) Run {
	return r.end(Succeeded, now, WaitedUntil(r.NextAt), Limits{Retention: retention})
}

// WaitedUntil is the reason of a step that has waited until an instant (Unix ms).
func WaitedUntil(at int64) string {
	return "it waited until " + time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}
