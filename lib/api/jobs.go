package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type jobPath struct {
	Job string `path:"job" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" example:"daily-report" doc:"the job's name"`
}

type jobEdit struct {
	jobPath
	IfMatch string `header:"If-Match" minLength:"1" maxLength:"256" doc:"only if the job's ETag is this, quotes included, or * if it exists"`
}

// dryRun is for requests that can be tried.
type dryRun struct {
	DryRun string   `query:"dry_run" enum:"true,false" doc:"true: check everything and tell what would be done, but store nothing"`
	Beside []string `query:"beside" maxItems:"200" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"in a dry run: names of jobs that callbacks may name as if they stood, since other requests of the same change put them; more than once or with commas"`
}

func (d dryRun) dry() bool { return d.DryRun == "true" }

// beside gives the jobs that count as standing, those of the request among them.
func (d dryRun) beside(jobs []wire.NamedJob) map[string]bool {
	beside := make(map[string]bool, len(jobs)+len(d.Beside))
	for _, entry := range jobs {
		beside[entry.Name] = true
	}
	for _, name := range d.Beside {
		beside[name] = true
	}
	return beside
}

type jobPut struct {
	jobEdit
	dryRun
	IfNoneMatch string `header:"If-None-Match" enum:"*" doc:"only if there is no such job"`
}

type jobPatch struct {
	jobEdit
	dryRun
}

type jobList struct {
	page
	Prefix   string   `query:"prefix" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"beginning of the names"`
	Contains string   `query:"contains" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9._-]+$" doc:"part of the names, in any letter case; each page looks at 1,000 jobs at most, and may be empty and have a next one"`
	Labels   []string `query:"label" maxItems:"32" minLength:"2" maxLength:"257" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}=" doc:"as name=value, more than once or with commas: all must hold"`
	Paused   string   `query:"paused" enum:"true,false" doc:"only paused jobs, or only those that are not"`
}

type jobAnswer struct {
	Status int
	ETag   string `header:"ETag" doc:"of the definition, for If-Match"`
	Body   wire.Job
}

func (a *api) jobs() {
	links := map[string]*huma.Link{}
	for _, id := range []string{"get-job", "pause-job", "resume-job", "list-job-runs", "trigger-job", "delete-job"} {
		links[id] = &huma.Link{OperationID: id, Parameters: map[string]any{"job": "$request.path.job"}}
	}
	acceptUnread(a, operation{id: "put-job", method: http.MethodPut, path: "/v1/jobs/{job}", tag: "jobs", scope: access.Write, created: true, links: links,
		summary: "Create or replace a job",
		example: map[string]any{
			"schedule": map[string]any{"cron": "30 9 * * 1-5", "timezone": "Europe/Berlin"},
			"target":   map[string]any{"http": map[string]any{"url": "https://example.org/report", "method": "POST"}},
			"payload":  map[string]any{"report": "daily"},
			"labels":   map[string]any{"team": "billing"},
		},
		codes: []control.Code{control.CodeStale, control.CodeBusy}}, a.jobValues, a.putJob)
	acceptUnread(a, operation{id: "patch-job", method: http.MethodPatch, path: "/v1/jobs/{job}", tag: "jobs", scope: access.Write, takes: mediaMerge,
		summary: "Change some fields of a job, by a merge patch",
		example: map[string]any{"retry": map[string]any{"max_attempts": 3}, "labels": map[string]any{"team": "billing", "old": nil}},
		codes:   []control.Code{control.CodeJobNotFound, control.CodeStale, control.CodeBusy}}, formAlone, a.patchJob)
	register(a, operation{id: "get-job", method: http.MethodGet, path: "/v1/jobs/{job}", tag: "jobs", scope: access.Read,
		summary: "Show a job",
		codes:   []control.Code{control.CodeJobNotFound}}, a.getJob)
	register(a, operation{id: "list-job-fires", method: http.MethodGet, path: "/v1/jobs/{job}/fires", tag: "jobs", tagged: true, scope: access.Read,
		summary: "Show when a job fires next, and what changes of the clock do to that",
		codes:   []control.Code{control.CodeJobNotFound}}, a.listJobFires)
	register(a, operation{id: "delete-job", method: http.MethodDelete, path: "/v1/jobs/{job}", tag: "jobs", scope: access.Write, status: http.StatusNoContent,
		summary: "Delete a job; nothing of it starts any more, and its ended runs stay until they expire",
		codes:   []control.Code{control.CodeJobNotFound, control.CodeStale, control.CodeBusy}}, a.deleteJob)
	register(a, operation{id: "list-jobs", method: http.MethodGet, path: "/v1/jobs", tag: "jobs", tagged: true, scope: access.Read,
		summary: "List jobs by name"}, a.listJobs)
	acceptUnread(a, operation{id: "put-jobs", method: http.MethodPost, path: manyJobs, tag: "jobs", scope: access.Write, batch: true,
		summary: "Create or replace many jobs, with a verdict for each"}, a.batchValues, a.putJobs)
	a.manyJobs()
	acceptUnread(a, operation{id: "pause-job", method: http.MethodPost, path: "/v1/jobs/{job}/pause", tag: "jobs", scope: access.Write,
		summary: "Pause a job: it makes no runs until it is resumed, and does not make up for them",
		codes:   []control.Code{control.CodeJobNotFound, control.CodeStale, control.CodeBusy}}, formAlone, a.pauseJob)
	acceptUnread(a, operation{id: "resume-job", method: http.MethodPost, path: "/v1/jobs/{job}/resume", tag: "jobs", scope: access.Write,
		summary: "Resume a paused job",
		codes:   []control.Code{control.CodeJobNotFound, control.CodeStale, control.CodeBusy}}, formAlone, a.resumeJob)
}

func (a *api) jobValues(in input[wire.Job]) error {
	return errors.Join(in.body.Called(in.path("job")), a.Control.Check(in.tenant, in.body.Definition))
}

func (a *api) putJob(ctx context.Context, p *jobPut, in input[wire.Job]) (*jobAnswer, error) {
	if err := notReserved("job", p.Job); err != nil {
		return nil, err
	}
	if in.body.Called(p.Job) != nil {
		return nil, a.jobValues(in) // with all else that is wrong
	}
	match := control.Match{ETag: p.IfMatch, Absent: p.IfNoneMatch != ""}
	if p.dry() {
		before, after, _, err := a.Control.Preview(ctx, in.tenant, p.Job, in.body.Definition, match, p.beside(nil))
		if err != nil {
			return nil, err
		}
		answer := &jobAnswer{Status: http.StatusOK, Body: a.jobForm(after)}
		if before.Generation != 0 {
			answer.ETag = before.ETag() // to be sent as If-Match with the request that is in earnest
		}
		return answer, nil
	}
	j, change, err := a.Control.Put(ctx, in.tenant, p.Job, in.body.Definition, match)
	if err != nil {
		return nil, err
	}
	return &jobAnswer{Status: putStatus(change), ETag: j.ETag(), Body: a.jobForm(j)}, nil
}

func (a *api) patchJob(ctx context.Context, p *jobPatch, in input[mergePatch]) (*jobAnswer, error) {
	match := control.Match{ETag: p.IfMatch}
	change := func(def job.Definition) (job.Definition, error) { return a.patched(in.tenant, p.Job, def, in.body) }
	if p.dry() {
		before, after, _, err := a.Control.PreviewPatch(ctx, in.tenant, p.Job, change, match, p.beside(nil))
		if err != nil {
			return nil, err
		}
		return &jobAnswer{Status: http.StatusOK, ETag: before.ETag(), Body: a.jobForm(after)}, nil
	}
	j, _, err := a.Control.Patch(ctx, in.tenant, p.Job, change, match)
	if err != nil {
		return nil, err
	}
	return &jobAnswer{Status: http.StatusOK, ETag: j.ETag(), Body: a.jobForm(j)}, nil
}

func putStatus(change control.Change) int {
	if change == control.Created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (a *api) getJob(ctx context.Context, p *jobPath, in input[noBody]) (*jobAnswer, error) {
	j, err := a.Control.Job(ctx, in.tenant, p.Job)
	if err != nil {
		return nil, err
	}
	return &jobAnswer{Status: http.StatusOK, ETag: j.ETag(), Body: a.jobForm(j)}, nil
}

func (a *api) deleteJob(ctx context.Context, p *jobEdit, in input[noBody]) (*struct{}, error) {
	return nil, a.Control.Delete(ctx, in.tenant, p.Job, control.Match{ETag: p.IfMatch})
}

func (a *api) listJobs(ctx context.Context, p *jobList, in input[noBody]) (*answer[wire.JobPage], error) {
	labels, err := labelsOf(p.Labels)
	if err != nil {
		return nil, err
	}
	filter := control.JobFilter{Prefix: p.Prefix, Contains: p.Contains, Labels: labels}
	if p.Paused != "" {
		paused := p.Paused == "true"
		filter.Paused = &paused
	}
	jobs, next, err := a.Control.Jobs(ctx, in.tenant, filter, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, jobs, next, a.jobForm, control.AfterJob)
	return &answer[wire.JobPage]{wire.JobPage{Items: items, Next: next}}, nil
}

func (a *api) batchValues(in input[wire.JobBatch]) error {
	wrong := []error{namesOf(in.body.Jobs)}
	for i, entry := range in.body.Jobs {
		if err := a.Control.Check(in.tenant, entry.Definition); err != nil {
			wrong = append(wrong, invalid.Under(fmt.Sprintf("jobs[%d]", i), err))
		}
		if len(wrong) > invalid.Most {
			break // more are not named
		}
	}
	return errors.Join(wrong...)
}

// namesOf refuses names that no job may have, and those that stand twice in a batch.
func namesOf(jobs []wire.NamedJob) error {
	var wrong []error
	seen := map[string]int{}
	for i, entry := range jobs {
		field := fmt.Sprintf("jobs[%d].name", i)
		if first, twice := seen[entry.Name]; twice {
			wrong = append(wrong, invalid.Field(field, entry.Name, fmt.Sprintf("each job once; jobs[%d] has that name", first)))
			continue
		}
		wrong = append(wrong, notReserved(field, entry.Name))
		seen[entry.Name] = i
	}
	return errors.Join(wrong...)
}

func (a *api) putJobs(ctx context.Context, p *dryRun, in input[wire.JobBatch]) (*answer[wire.JobVerdicts], error) {
	if err := namesOf(in.body.Jobs); err != nil {
		return nil, err
	}
	verdicts := make([]wire.JobVerdict, len(in.body.Jobs))
	if p.dry() {
		beside := p.beside(in.body.Jobs)
		inParallel(len(verdicts), func(i int) { verdicts[i] = a.previewOne(ctx, in.tenant, in.body.Jobs[i], beside) })
	} else {
		a.placeAll(ctx, in, verdicts)
	}
	var refused []*wire.Problem
	for _, v := range verdicts {
		if v.Problem != nil {
			refused = append(refused, v.Problem)
		}
	}
	explain(refused)
	return &answer[wire.JobVerdicts]{wire.JobVerdicts{Items: verdicts}}, nil
}

// placeAll puts the jobs of a batch.
func (a *api) placeAll(ctx context.Context, in input[wire.JobBatch], verdicts []wire.JobVerdict) {
	wanted := make([]control.Wanted, len(in.body.Jobs))
	for i, entry := range in.body.Jobs {
		wanted[i] = control.Wanted{Name: entry.Name, Def: entry.Definition}
	}
	for i, placed := range a.Control.PutMany(ctx, in.tenant, wanted) {
		if placed.Err != nil {
			verdicts[i] = a.refusedJob(ctx, wanted[i].Name, placed.Err)
			continue
		}
		v := wire.JobVerdict{Name: wanted[i].Name, Status: putStatus(placed.Change), Change: placed.Change.String(), ETag: placed.Job.ETag()}
		if next := a.Control.NextRuns(placed.Job, 1); len(next) > 0 {
			v.NextRun = next[0]
		}
		verdicts[i] = v
	}
}

func (a *api) refusedJob(ctx context.Context, name string, err error) wire.JobVerdict {
	refused := a.problemOf(ctx, err).Problem
	return wire.JobVerdict{Name: name, Status: refused.Status, Problem: &refused}
}

func (a *api) previewOne(ctx context.Context, tenant string, entry wire.NamedJob, beside map[string]bool) wire.JobVerdict {
	_, _, change, err := a.Control.Preview(ctx, tenant, entry.Name, entry.Definition, control.Match{}, beside)
	if err != nil {
		return a.refusedJob(ctx, entry.Name, err)
	}
	return wire.JobVerdict{Name: entry.Name, Status: putStatus(change), Change: change.String()}
}

func (a *api) pauseJob(ctx context.Context, p *jobEdit, in input[wire.PauseRequest]) (*jobAnswer, error) {
	j, err := a.Control.Pause(ctx, in.tenant, p.Job, in.body.Reason, control.Match{ETag: p.IfMatch})
	if err != nil {
		return nil, err
	}
	return &jobAnswer{Status: http.StatusOK, ETag: j.ETag(), Body: a.jobForm(j)}, nil
}

func (a *api) resumeJob(ctx context.Context, p *jobEdit, in input[wire.Nothing]) (*jobAnswer, error) {
	j, err := a.Control.Resume(ctx, in.tenant, p.Job, control.Match{ETag: p.IfMatch})
	if err != nil {
		return nil, err
	}
	return &jobAnswer{Status: http.StatusOK, ETag: j.ETag(), Body: a.jobForm(j)}, nil
}
