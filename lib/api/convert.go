package api

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// shownFires is how many of its next fires a job tells.
const shownFires = 5

func (a *api) jobForm(j job.Job) wire.Job {
	tag := ""
	if j.Generation != 0 { // a dry run's has none yet
		tag = j.ETag()
	}
	final, _ := j.Def.FinalRun()
	return wire.Job{Name: j.Name, Definition: j.Def, Status: &wire.JobStatus{
		Generation:   j.Generation,
		ETag:         tag,
		NextRuns:     a.Control.NextRuns(j, shownFires),
		FinalRun:     final,
		CreatedAt:    instant(j.Created),
		UpdatedAt:    instant(j.Updated),
		Tries:        j.Def.Retry.Tries(),
		PausedReason: j.Reason,
		Fault:        j.Fault,
	}}
}

// runForm leaves the result out, but for whether it was cut: it may have to be fetched. Labels that cannot be read are left out too, since
// the request itself has been answered by now.
func (a *api) runForm(ctx context.Context, r run.Run) wire.Run {
	labels, err := a.Control.Labels(ctx, r)
	if err != nil {
		a.Log.WarnContext(ctx, "a run is shown without its labels", "run", r.ID.String(), "error", err)
	}
	shown := wire.Run{
		ID:          r.ID.String(),
		Job:         r.ID.Job,
		Generation:  r.Generation,
		State:       a.Control.Shown(ctx, r).String(),
		NominalTime: r.ID.Time(),
		Trigger:     r.Trigger.String(),
		Priority:    string(r.Priority),
		Attempt:     r.Attempt,
		Fence:       r.Fence,
		CreatedAt:   instant(r.Created),
		StartedAt:   instant(r.Started),
		EndedAt:     instant(r.Ended),
		ChangedAt:   a.Control.Changed(ctx, r),
		ReleasedAt:  instant(r.Released),
		ReleasedBy:  r.Releasing.By,
		ReleasedFor: r.Releasing.Reason,
		IgnorePause: r.IgnorePause,
		Overlap:     r.Overlap.String(),
		Worker:      r.Worker,
		Reason:      r.Reason,
		ResultCut:   r.Result.Cut,
		Labels:      labels,
		Trace:       r.Trace.ID(),
		Attempts:    attemptForms(r),
	}
	if r.State == run.Retrying || r.State == run.Queued {
		shown.NextAttemptAt = instant(r.NextAt)
	}
	if r.State == run.Queued {
		shown.StartBy = instant(r.StartBy)
	}
	if r.State != run.Scheduled {
		shown.EndBy = instant(r.EndBy)
	}
	if r.Through != 0 && r.Count != 1 {
		shown.Skipped = &wire.Skipped{Count: r.Count, Through: instant(r.Through)}
	}
	if !r.Callback.IsZero() {
		shown.Trigger, shown.Callback = run.ByCallback, &wire.CallbackOf{Event: r.Callback.Event, Run: r.Callback.Run, Count: r.Callback.Count}
	}
	shown.On = wire.Calling(r.Callees.Succeeded, r.Callees.Failed)
	if !r.Why.IsZero() {
		shown.Why = wire.NewWhy(r.Why.Code, r.Why.Gate, gate.ShownKey(gate.WhyKey(r)), r.Why.Policy, r.Why.InTheWay, r.Reason)
		shown.Why.Since = instant(r.Why.Since)
	}
	if d := r.Discarded; !d.IsZero() {
		shown.Discarded = &wire.Discarded{At: instant(d.At), By: d.By, Note: d.Note}
	}
	return shown
}

func attemptForms(r run.Run) []wire.Attempt {
	shown := make([]wire.Attempt, len(r.Attempts))
	for i, t := range r.Attempts {
		shown[i] = wire.Attempt{Attempt: t.Number, StartedAt: instant(t.Started), EndedAt: instant(t.Ended), Outcome: t.Outcome.String(), Error: t.Error}
	}
	return shown
}

// instant shows Unix ms, 0 as no time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
