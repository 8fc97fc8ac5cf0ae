package api

import (
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

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
	return wire.Job{Definition: j.Def, Status: &wire.JobStatus{
		Name:         j.Name,
		Generation:   j.Generation,
		ETag:         tag,
		NextRuns:     a.Control.NextRuns(j, shownFires),
		CreatedAt:    instant(j.Created),
		UpdatedAt:    instant(j.Updated),
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
		State:       r.Shown().String(),
		NominalTime: r.ID.Time(),
		Trigger:     r.Trigger.String(),
		Priority:    string(r.Priority),
		Attempt:     r.Attempt,
		Fence:       r.Fence,
		CreatedAt:   instant(r.Created),
		StartedAt:   instant(r.Started),
		EndedAt:     instant(r.Ended),
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
	if r.Through != 0 && r.Count != 1 {
		shown.Skipped = &wire.Skipped{Count: r.Count, Through: instant(r.Through)}
	}
	if !r.Why.IsZero() {
		shown.Why = &wire.Why{Code: r.Why.Code, Gate: r.Why.Gate, Policy: r.Why.Policy, InTheWay: append([]string{}, r.Why.InTheWay...)}
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

// setResult shows what its target called JSON as it is, and everything else as text, with the media type where the target named one.
// Bytes that are no text are shown as base64, which is how JSON carries them.
func setResult(shown *wire.Run, data []byte, mediaType string) {
	if len(data) == 0 {
		return
	}
	if !shown.ResultCut && mediaType == "application/json" && json.Valid(data) && utf8.Valid(data) {
		shown.Result = data
		return
	}
	shown.ResultType = mediaType
	var value any = string(data)
	if !utf8.Valid(data) {
		value = data
		shown.ResultType += ";base64"
	}
	shown.Result, _ = json.Marshal(value) // text and bytes always have a JSON form
}

// instant shows Unix ms, 0 as no time.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
