package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// manyJobs is the path over many jobs, and of what is done to them: below the one name that no job has, so that it takes no other name away.
const manyJobs = "/v1/jobs/" + batchPath

func (a *api) manyJobs() {
	busy := []control.Code{control.CodeBusy}
	accept(a, operation{id: "pause-jobs", method: http.MethodPost, path: manyJobs + "/pause", tag: "jobs", scope: access.Write, batch: true, codes: busy,
		summary: "Pause jobs, by name or by filter, with a verdict for each; those that are paused keep their reason",
		example: map[string]any{"matching": map[string]any{"labels": map[string]any{"team": "billing"}}, "reason": "the database moves", "dry_run": true}},
		func(in input[wire.PauseJobs]) (overJobs, error) { return jobsOf(in.body.ChosenJobs) }, a.pauseJobs)
	accept(a, operation{id: "resume-jobs", method: http.MethodPost, path: manyJobs + "/resume", tag: "jobs", scope: access.Write, batch: true, codes: busy,
		summary: "Resume paused jobs, by name or by filter, with a verdict for each",
		example: map[string]any{"jobs": []any{map[string]any{"name": "daily-report"}}}},
		resumeOf, a.resumeJobs)
	accept(a, operation{id: "delete-jobs", method: http.MethodPost, path: manyJobs + "/delete", tag: "jobs", scope: access.Write, batch: true, codes: busy,
		summary: "Delete jobs, by name or by filter, with a verdict for each",
		example: map[string]any{"matching": map[string]any{"prefix": "try-"}, "dry_run": true}},
		func(in input[wire.DeleteJobs]) (overJobs, error) { return jobsOf(in.body.ChosenJobs) }, a.deleteJobs)
	accept(a, operation{id: "label-jobs", method: http.MethodPost, path: manyJobs + "/label", tag: "jobs", scope: access.Write, batch: true, codes: busy,
		summary: "Give jobs labels and take others from them, by name or by filter, with a verdict for each",
		example: map[string]any{"matching": map[string]any{"prefix": "report-"}, "set": map[string]any{"team": "billing"}, "remove": []any{"old"}}},
		labelsOfMany, a.labelJobs)
	accept(a, operation{id: "export-jobs", method: http.MethodPost, path: exportPath, tag: "jobs", scope: access.Read, batch: true,
		summary: "Give the definitions of jobs, by name or by filter, as files have them"}, exportOf, a.exportJobs)
}

// overJobs is a request over many jobs.
type overJobs struct {
	filter control.JobFilter
	bulk   control.JobBulk
}

// jobsOf reads which jobs a request is about.
func jobsOf(c wire.ChosenJobs) (overJobs, error) {
	bulk := control.JobBulk{Cursor: c.Cursor, Max: c.Max, Since: timeOf(c.UnchangedSince), DryRun: c.DryRun}
	filter, wrong := jobFilterOf(c.Matching)
	all := []error{wrong}
	if c.Jobs != nil {
		if c.Max != 0 {
			all = append(all, invalid.Missing("max", "no max beside jobs: all of them are meant"))
		}
		if c.Cursor != "" {
			all = append(all, noCursor)
		}
		bulk.Jobs = make([]control.Seen, len(c.Jobs))
		names := make([]string, len(c.Jobs))
		for i, j := range c.Jobs {
			names[i], bulk.Jobs[i] = j.Name, control.Seen{Name: j.Name, ETag: j.ETag}
		}
		all = append(all, eachOnce(names, "jobs[%d].name"))
	}
	return overJobs{filter, bulk}, errors.Join(all...)
}

var noCursor = invalid.Missing("cursor", "no cursor beside jobs: all of them are meant")

// eachOnce refuses names that are given twice. field is that of one of them, by its place.
func eachOnce(names []string, field string) error {
	var wrong []error
	seen := make(map[string]int, len(names))
	for i, name := range names {
		if first, twice := seen[name]; twice {
			wrong = append(wrong, invalid.Field(fmt.Sprintf(field, i), name, fmt.Sprintf("each job once; jobs[%d] is that job", first)))
			continue
		}
		seen[name] = i
	}
	return errors.Join(wrong...)
}

func jobFilterOf(m *wire.JobFilter) (control.JobFilter, error) {
	if m == nil {
		return control.JobFilter{}, nil
	}
	return control.JobFilter{Prefix: m.Prefix, Contains: m.Contains, Labels: m.Labels, Paused: m.Paused}, namesOfLabels(m.Labels)
}

func resumeOf(in input[wire.ResumeJobs]) (overJobs, error) {
	asked, err := jobsOf(in.body.ChosenJobs)
	b := &asked.bulk
	if b.PerSecond = in.body.PerSecond; err != nil || b.PerSecond == 0 {
		return asked, err
	}
	b.Max, err = mostAt(b.PerSecond, b.Max, len(b.Jobs), b.DryRun, func(string) error {
		return invalid.Field("per_second", fmt.Sprint(b.PerSecond), fmt.Sprintf("a rate at which %d jobs take at most %s, or fewer jobs", len(b.Jobs), control.BulkTime))
	})
	return asked, err
}

func labelsOfMany(in input[wire.LabelJobs]) (overJobs, error) {
	asked, err := jobsOf(in.body.ChosenJobs)
	return asked, errors.Join(err, control.CheckLabels(in.body.Set, in.body.Remove))
}

func (a *api) pauseJobs(ctx context.Context, _ *struct{}, in input[wire.PauseJobs], asked overJobs) (*answer[wire.BulkJobVerdicts], error) {
	return a.altered(ctx, control.Updated)(a.Control.PauseMany(ctx, in.tenant, asked.filter, asked.bulk, in.body.Reason))
}

func (a *api) resumeJobs(ctx context.Context, _ *struct{}, in input[wire.ResumeJobs], asked overJobs) (*answer[wire.BulkJobVerdicts], error) {
	return a.altered(ctx, control.Updated)(a.Control.ResumeMany(ctx, in.tenant, asked.filter, asked.bulk))
}

func (a *api) deleteJobs(ctx context.Context, _ *struct{}, in input[wire.DeleteJobs], asked overJobs) (*answer[wire.BulkJobVerdicts], error) {
	return a.altered(ctx, control.Deleted)(a.Control.DeleteMany(ctx, in.tenant, asked.filter, asked.bulk))
}

func (a *api) labelJobs(ctx context.Context, _ *struct{}, in input[wire.LabelJobs], asked overJobs) (*answer[wire.BulkJobVerdicts], error) {
	return a.altered(ctx, control.Updated)(a.Control.LabelMany(ctx, in.tenant, asked.filter, asked.bulk, in.body.Set, in.body.Remove))
}

// altered shows what became of many jobs; change is what became of those that were changed.
func (a *api) altered(ctx context.Context, change control.Change) func(control.JobOutcome, error) (*answer[wire.BulkJobVerdicts], error) {
	return func(out control.JobOutcome, err error) (*answer[wire.BulkJobVerdicts], error) {
		if err != nil {
			return nil, err
		}
		shown := wire.BulkJobVerdicts{Items: make([]wire.JobVerdict, len(out.Verdicts)), Count: out.Count, LookedAt: out.At, Next: out.Next}
		var refused []*wire.Problem
		for i, v := range out.Verdicts {
			one := &shown.Items[i]
			if v.Err != nil {
				*one = a.refusedJob(ctx, v.Name, v.Err)
				refused = append(refused, one.Problem)
				continue
			}
			*one = wire.JobVerdict{Name: v.Name, Status: http.StatusOK, Change: control.Unchanged.String()}
			if v.Changed {
				one.Change = change.String()
			}
			if v.Changed && change == control.Deleted {
				one.Status = http.StatusNoContent
			} else {
				one.ETag = v.Job.ETag()
			}
		}
		explain(refused)
		for _, s := range out.Remaining {
			shown.Remaining = append(shown.Remaining, wire.SeenJob{Name: s.Name, ETag: s.ETag})
		}
		return &answer[wire.BulkJobVerdicts]{shown}, nil
	}
}
