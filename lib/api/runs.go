package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type runPath struct {
	Run string `path:"run" minLength:"11" maxLength:"152" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?$" example:"daily-report~0mi4lf3k0" doc:"the run's ID"`
}

// id gives the run's ID; what has the form of one and yet is none names no run.
func (p runPath) id() (run.ID, error) {
	id, err := run.ParseID(p.Run)
	if err != nil {
		return run.ID{}, noSuchRun(p.Run)
	}
	return id, nil
}

func noSuchRun(id string) error {
	return &control.Refusal{Code: control.CodeRunNotFound, Message: "There is no run " + shown(id) + "."}
}

// interval is what listings by time take.
type interval struct {
	From time.Time `query:"from" doc:"at this time or later"`
	To   time.Time `query:"to" doc:"before this time"`
}

type runFilter struct {
	page
	interval
	Labels []string `query:"label" maxItems:"32" minLength:"2" maxLength:"257" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}=" doc:"as name=value, by the definition that the run has, more than once or with commas: all must hold"`
	Error  string   `query:"error" minLength:"1" maxLength:"240" doc:"part of the last error, in any letter case"`
	States []string `query:"state" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown" minItems:"1" maxItems:"11" doc:"any of these, more than once or with commas"`
	Due    string   `query:"due" enum:"true,false" doc:"true: only runs whose time has come, so none that are scheduled; all by default"`
	Sort   string   `query:"sort" enum:"due,oldest,changed" doc:"due: by nominal time, the newest first, which is the default; oldest: by nominal time, the oldest first; changed: by what changed last, the newest change first. The last puts in order the 1,000 newest by nominal time that match, and is one page, without a cursor. A cursor goes on in its own order alone"`
}

func (f runFilter) control(jobName string) (control.RunFilter, error) {
	labels, err := labelsOf(f.Labels)
	return control.RunFilter{Job: jobName, From: f.From, To: f.To, States: statesOf(f.States), Labels: labels, Error: f.Error, Due: f.Due == "true", Oldest: f.Sort == sortOldest}, err
}

// labelsOf reads labels that all must hold.
func labelsOf(texts []string) (map[string]string, error) {
	var wrong []error
	labels := map[string]string{}
	for i, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		if before, twice := labels[name]; twice && before != value {
			wrong = append(wrong, invalid.Field(fmt.Sprintf("label[%d]", i), text, "one value of "+name+": nothing has two"))
		}
		labels[name] = value
	}
	return labels, errors.Join(wrong...)
}

type jobRunList struct {
	jobPath
	runFilter
}

type runList struct {
	runFilter
	Job string `query:"job" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"of this job, also one that was deleted"`
}

type trigger struct {
	jobPath
	IdempotencyKey string `header:"Idempotency-Key" minLength:"1" maxLength:"255" pattern:"^[!-~]+$" doc:"the same key and body give the same run for at least 24 h"`
}

type runAccepted struct {
	Location string `header:"Location" doc:"where the run is to be seen"`
	Body     wire.Run
}

type logPath struct {
	runPath
	ofStep
	Attempt    int       `query:"attempt" minimum:"1" maximum:"1000000" doc:"of this attempt; by default the newest of which there is a log"`
	Offset     int64     `query:"offset" minimum:"0" maximum:"1125899906842624" doc:"without the first so many bytes that the attempt wrote: to follow a log, the Belfry-Log-Next of the answer before"`
	Tail       int       `query:"tail" minimum:"1" maximum:"1048576" doc:"only the last so many bytes at most, from the beginning of a line; instead of offset"`
	Lines      int       `query:"lines" minimum:"1" maximum:"1000000" doc:"only the last so many lines; instead of offset"`
	Since      time.Time `query:"since" doc:"only lines that came at this time or later; instead of offset. A log without times, of an older version, is sent whole"`
	Timestamps bool      `query:"timestamps" doc:"each line with the time at which it came, in UTC: 2026-11-21T12:00:00.000Z and a blank"`
}

type logText struct {
	ContentType string `header:"Content-Type"`
	Attempt     int    `header:"Belfry-Attempt" doc:"which attempt wrote it; none where no attempt has written yet"`
	Offset      string `header:"Belfry-Log-Offset" doc:"how many bytes the attempt wrote in front of what is sent"`
	Next        string `header:"Belfry-Log-Next" doc:"the offset of what follows"`
	Size        string `header:"Belfry-Log-Size" doc:"how many bytes the attempt has written so far; more than Belfry-Log-Next where the rest was too much for one answer"`
	Body        []byte
}

func (a *api) runs() {
	links := map[string]*huma.Link{}
	for _, id := range []string{"get-run", "cancel-run", "retry-run", "get-run-logs"} {
		links[id] = &huma.Link{OperationID: id, Parameters: map[string]any{"run": "$response.body#/id"}}
	}
	acceptUnread(a, operation{id: "trigger-job", method: http.MethodPost, path: "/v1/jobs/{job}/runs", tag: "runs", scope: access.Run, status: http.StatusAccepted, links: links,
		summary: "Run a job now, at a time or after a delay",
		example: map[string]any{"delay": "10m", "payload": map[string]any{"report": "once"}},
		codes:   []control.Code{control.CodeJobNotFound, control.CodeKeyReused, control.CodeBusy}}, a.triggerValues, a.triggerJob)
	acceptUnread(a, operation{id: "trigger-jobs", method: http.MethodPost, path: "/v1/runs/batch", tag: "runs", scope: access.Run, batch: true,
		summary: "Ask for many runs, with a verdict for each"}, a.triggersValues, a.triggerJobs)
	accept(a, operation{id: "cancel-runs", method: http.MethodPost, path: "/v1/runs/cancel", tag: "runs", scope: access.Run, batch: true,
		summary: "Cancel runs by ID or by filter, with a verdict for each",
		example: map[string]any{"matching": map[string]any{"job": "daily-report", "states": []string{"scheduled", "queued"}}, "dry_run": true},
		codes:   []control.Code{control.CodeBusy}}, cancelOf, a.cancelRuns)
	accept(a, operation{id: "retry-runs", method: http.MethodPost, path: "/v1/runs/retry", tag: "runs", scope: access.Run, batch: true,
		summary: "Run ended runs again, by ID or by filter, with a verdict for each",
		example: map[string]any{"matching": map[string]any{"labels": map[string]any{"team": "billing"}, "error": "connection refused"}, "dry_run": true},
		codes:   []control.Code{control.CodeBusy}}, retryOf, a.retryRuns)
	register(a, operation{id: "list-job-runs", method: http.MethodGet, path: "/v1/jobs/{job}/runs", tag: "runs", tagged: true, scope: access.Read,
		summary: "List a job's runs, newest or oldest first",
		codes:   []control.Code{control.CodeJobNotFound}}, a.listJobRuns)
	register(a, operation{id: "list-runs", method: http.MethodGet, path: "/v1/runs", tag: "runs", tagged: true, scope: access.Read,
		summary: "List the runs of all jobs, newest or oldest first"}, a.listRuns)
	accept(a, operation{id: "list-last-runs", method: http.MethodPost, path: lastRunsPath, tag: "runs", scope: access.Read,
		summary: "List the last few runs of many jobs, newest first",
		example: map[string]any{"jobs": []string{"daily-report", "clean-up"}, "limit": 10}}, lastRunsOf, a.listLastRuns)
	register(a, operation{id: "get-run", method: http.MethodGet, path: "/v1/runs/{run}", tag: "runs", tagged: true, scope: access.Read,
		summary: "Show a run with its result, or with why it does not go on",
		codes:   []control.Code{control.CodeRunNotFound}}, a.getRun)
	acceptUnread(a, operation{id: "cancel-run", method: http.MethodPost, path: "/v1/runs/{run}/cancel", tag: "runs", scope: access.Run,
		summary: "Cancel a run that has not ended; one that is running is told to stop",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeRunEnded, control.CodeBusy}}, formAlone, a.cancelRun)
	acceptUnread(a, operation{id: "retry-run", method: http.MethodPost, path: "/v1/runs/{run}/retry", tag: "runs", scope: access.Run,
		summary: "Run an ended run again, with a new attempt budget",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeRunNotEnded, control.CodeBegun, control.CodeStale, control.CodeBusy}}, formAlone, a.retryRun)
	acceptUnread(a, operation{id: "release-run", method: http.MethodPost, path: "/v1/runs/{run}/release", tag: "runs", scope: access.Run,
		summary: "Let a run that waits at a gate go to the front of the line; the limit holds for it, too",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeNotWaiting, control.CodeBusy}}, formAlone, a.releaseRun)
	register(a, operation{id: "get-run-logs", method: http.MethodGet, path: "/v1/runs/{run}/logs", tag: "runs", scope: access.Read, media: mediaText,
		summary: "Show what an attempt wrote, or has written so far",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeStepNotFound, codeLogExpired}}, a.getRunLogs)
	register(a, operation{id: "get-run-payload", method: http.MethodGet, path: "/v1/runs/{run}/payload", tag: "runs", scope: access.Read, media: mediaJSON, empty: true, ranged: true,
		summary: "Show what a run, or a step of a workflow's run, hands to its target, as it was given",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeStepNotFound, control.CodeNotReleased, control.CodeExpression, codePayloadExpired, codeNoSuchRange}}, a.getRunPayload)
	register(a, operation{id: "get-run-result", method: http.MethodGet, path: "/v1/runs/{run}/result", tag: "runs", scope: access.Read, media: mediaBytes, empty: true, ranged: true,
		summary: "Show what the target of a run, or of a step of a workflow's run, answered, to the byte, or what a scope gives",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeStepNotFound, control.CodeExpression, codeResultExpired, codeNoSuchRange}}, a.getRunResult)
	a.steps()
}

func request(t wire.Trigger, key string) control.Request {
	return control.Request{At: t.At, Delay: (*time.Duration)(t.Delay), Payload: t.Payload, Key: key, Callees: calleesOf(t.On), IgnorePause: t.IgnorePause, Overlap: t.Overlap}
}

func calleesOf(on *wire.RunCallbacks) (c run.Callees) {
	if on == nil {
		return c
	}
	if on.Succeeded != nil {
		c.Succeeded = on.Succeeded.Job
	}
	if on.Failed != nil {
		c.Failed = on.Failed.Job
	}
	return c
}

func (a *api) triggerValues(in input[wire.Trigger]) error {
	return a.Control.CheckRequest(request(in.body, ""))
}

func (a *api) triggersValues(in input[wire.RunBatch]) error {
	var wrong []error
	for i, entry := range in.body.Runs {
		if err := a.Control.CheckRequest(request(entry.Trigger, "")); err != nil {
			wrong = append(wrong, invalid.Under(fmt.Sprintf("runs[%d]", i), err))
		}
		if len(wrong) > invalid.Most {
			break // more are not named
		}
	}
	return errors.Join(wrong...)
}

func (a *api) triggerJob(ctx context.Context, p *trigger, in input[wire.Trigger]) (*runAccepted, error) {
	r, _, err := a.Control.Trigger(ctx, in.tenant, p.Job, request(in.body, p.IdempotencyKey))
	if err != nil {
		return nil, err
	}
	return &runAccepted{Location: "/v1/runs/" + r.ID.String(), Body: a.runForm(ctx, r)}, nil
}

func (a *api) triggerJobs(ctx context.Context, _ *struct{}, in input[wire.RunBatch]) (*answer[wire.RunVerdicts], error) {
	asked := make([]control.Asked, len(in.body.Runs))
	for i, entry := range in.body.Runs {
		asked[i] = control.Asked{Job: entry.Job, Request: request(entry.Trigger, entry.IdempotencyKey)}
	}
	verdicts := make([]wire.RunVerdict, len(asked))
	for i, one := range a.Control.TriggerMany(ctx, in.tenant, asked) {
		if one.Err != nil {
			refused := a.problemOf(ctx, one.Err).Problem
			verdicts[i] = wire.RunVerdict{Status: refused.Status, Problem: &refused}
			continue
		}
		verdicts[i] = wire.RunVerdict{Status: http.StatusAccepted, ID: one.Run.ID.String(), State: a.Control.Shown(ctx, one.Run).String()}
	}
	explain(refusedOf(verdicts))
	return &answer[wire.RunVerdicts]{wire.RunVerdicts{Items: verdicts}}, nil
}

func (a *api) listJobRuns(ctx context.Context, p *jobRunList, in input[noBody]) (*answer[wire.RunPage], error) {
	if _, err := a.Control.Job(ctx, in.tenant, p.jobPath.Job); err != nil {
		return nil, err
	}
	return a.pageOfRuns(ctx, in.tenant, p.runFilter, p.jobPath.Job)
}

func (a *api) listRuns(ctx context.Context, p *runList, in input[noBody]) (*answer[wire.RunPage], error) {
	return a.pageOfRuns(ctx, in.tenant, p.runFilter, p.Job)
}

func (a *api) pageOfRuns(ctx context.Context, tenant string, f runFilter, jobName string) (*answer[wire.RunPage], error) {
	if f.Sort == sortChanged {
		return a.runsByChange(ctx, tenant, f, jobName)
	}
	filter, err := f.control(jobName)
	if err != nil {
		return nil, err
	}
	runs, next, err := a.Control.Runs(ctx, tenant, filter, f.Cursor, f.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, runs, next, func(r run.Run) wire.Run { return a.runForm(ctx, r) }, func(r run.Run) string { return filter.After(r.ID) })
	return &answer[wire.RunPage]{wire.RunPage{Items: items, Next: next}}, nil
}

// Orders of a listing of runs beside the usual one.
const (
	sortOldest  = "oldest"  // the oldest nominal time first
	sortChanged = "changed" // by what changed last
)

func (a *api) runsByChange(ctx context.Context, tenant string, f runFilter, jobName string) (*answer[wire.RunPage], error) {
	if f.Cursor != "" {
		return nil, invalid.Field("cursor", f.Cursor, "none beside sort=changed, which is one page: from and to bound what is looked at")
	}
	filter, err := f.control(jobName)
	if err != nil {
		return nil, err
	}
	recent, err := a.Control.RunsByChange(ctx, tenant, filter, f.limit())
	if err != nil {
		return nil, err
	}
	items, _ := fill(a, recent.Runs, "", func(r run.Run) wire.Run { return a.runForm(ctx, r) }, func(run.Run) string { return "" })
	return &answer[wire.RunPage]{wire.RunPage{Items: items, LookedBackTo: recent.LookedBackTo}}, nil
}

func (a *api) getRun(ctx context.Context, p *runPath, in input[noBody]) (*answer[wire.Run], error) {
	r, err := a.findRun(ctx, in.tenant, *p)
	if err != nil {
		return nil, err
	}
	shown := a.runForm(ctx, r)
	result, err := a.resultForm(ctx, r)
	if err != nil {
		return nil, err
	}
	shown.Result, shown.ResultType, shown.ResultSize, shown.Reason = result.shown, result.as, result.size, withReason(shown.Reason, result.gone)
	shown.Waiting = a.waiting(ctx, r)
	shown.Steps = a.stepStates(ctx, r)
	return &answer[wire.Run]{shown}, nil
}

// goneReason says why there is no file of a result. Files may be cleaned up a while before their runs.
func goneReason(key string, now time.Time) string {
	if blob.Expired(key, now) {
		return "the result was cleaned up"
	}
	return "the result is lost: its file is gone"
}

func withReason(before, more string) string {
	if before == "" || more == "" {
		return before + more
	}
	return before + "; " + more
}

func (a *api) findRun(ctx context.Context, tenant string, p runPath) (run.Run, error) {
	id, err := p.id()
	if err != nil {
		return run.Run{}, err
	}
	return a.Control.Run(ctx, tenant, id)
}

func (a *api) cancelRun(ctx context.Context, p *runPath, in input[wire.CancelRequest]) (*answer[wire.Run], error) {
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	r, err := a.Control.Cancel(ctx, in.tenant, id, in.body.Reason)
	if err != nil {
		return nil, err
	}
	return &answer[wire.Run]{a.runForm(ctx, r)}, nil
}

func (a *api) retryRun(ctx context.Context, p *runPath, in input[wire.RetryRequest]) (*answer[wire.Run], error) {
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	r, err := a.Control.Retry(ctx, in.tenant, id, in.body.Force, timeOf(in.body.EndedBefore))
	if err != nil {
		return nil, err
	}
	return &answer[wire.Run]{a.runForm(ctx, r)}, nil
}

func (a *api) releaseRun(ctx context.Context, p *runPath, in input[wire.ReleaseRequest]) (*answer[wire.Run], error) {
	id, err := p.id()
	if err != nil {
		return nil, err
	}
	r, err := a.Control.Release(ctx, in.tenant, id, who(callerOf(ctx)), in.body.Reason)
	if err != nil {
		return nil, err
	}
	return &answer[wire.Run]{a.runForm(ctx, r)}, nil
}

func (a *api) getRunLogs(ctx context.Context, p *logPath, in input[noBody]) (*logText, error) {
	for name, given := range map[string]bool{"tail": p.Tail > 0, "lines": p.Lines > 0, "since": !p.Since.IsZero()} {
		if given && p.Offset > 0 {
			return nil, invalid.Field(name, "an offset, too", "offset, or "+name)
		}
	}
	r, err := a.taskRun(ctx, in.tenant, p.runPath, p.Step, "log")
	if err != nil {
		return nil, err
	}
	log, err := a.Control.LogOf(ctx, r, p.Attempt)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, newProblem(codeLogExpired, "This log was cleaned up: a log is kept for the retention of its job and a day, from the end of its attempt; that of a workflow's step for the timeout of the workflow, that retention and a day, from the start of the run.")
	}
	if err != nil {
		return nil, err
	}
	from := p.Offset
	if p.Tail > 0 {
		from = max(from, log.LastBytes(p.Tail))
	}
	if p.Lines > 0 {
		from = max(from, log.LastLines(p.Lines))
	}
	if !p.Since.IsZero() {
		from = max(from, log.Since(p.Since))
	}
	shown := log.Show(runlog.View{From: from, Follow: p.Offset > 0, Times: p.Timestamps, Most: mostOfALog})
	return &logText{ContentType: "text/plain; charset=utf-8", Attempt: log.Attempt, Body: shown.Text,
		Offset: strconv.FormatInt(shown.From, 10), Next: strconv.FormatInt(shown.Next, 10), Size: strconv.FormatInt(log.Written(), 10)}, nil
}

// mostOfALog is how much of a log one answer holds. Only times of very short lines make it more than is kept of one.
const mostOfALog = 4 << 20
