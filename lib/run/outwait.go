package run

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// A gate may bound how long a run waits in its line, by max_wait. Here is until when a run may wait there, whether that is over, and how the run ends then.

// WaitingUntil bounds how long a run that joins a line may wait there, Unix ms. Whoever was opened by hand, or has had an attempt, is skipped by no gate.
func (r Run) WaitingUntil(until int64) Run {
	if !r.Spared() {
		r.Wait.Until = until
	}
	return r
}

// Outwaited tells whether the run has waited in line for as long as it may, and its time there was over before its time to start, and before its deadline.
func (r Run) Outwaited(now int64) bool {
	until := r.Wait.Until
	return r.Waits() && until != 0 && now > until && (r.StartBy == 0 || until < r.StartBy) && (r.EndBy == 0 || until < r.EndBy)
}

// Outwait ends a run that has Outwaited its time in line. why names the gate, and who was in the way; closed says that the gate was, so that nobody could be let in, and paused that the
// run's job was, so that the run could not.
func (r Run) Outwait(why Why, closed, paused bool, now int64, retention time.Duration) Run {
	most := time.Duration(r.Wait.Until-r.Wait.Since) * time.Millisecond
	reason := "it had waited in line since " + time.UnixMilli(r.Wait.Since).UTC().Format(time.RFC3339) + ", for longer than " + schedule.Duration(most).String()
	switch {
	case closed && paused:
		reason += ", the gate was closed, and its job paused"
	case closed:
		reason += ", and the gate was closed"
	case paused:
		reason += ", and its job was paused"
	}
	r.Why = why
	r.Why.Since = r.Wait.Since
	return r.end(Skipped, now, reason, Limits{Retention: retention})
}
