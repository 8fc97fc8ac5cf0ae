package api

import (
	"context"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// lastRunsPath only reads, though its method is POST.
const lastRunsPath = "/v1/runs/last"

// OnlyReads tells whether a request changes nothing, whatever it asks for.
func OnlyReads(r *http.Request) bool {
	return r.Method == http.MethodGet || r.URL.Path == lastRunsPath || r.URL.Path == exportPath
}

// shownLast is how many of its last runs a job shows unless told otherwise.
const shownLast = 10

// lastRunsOf gives the names of the jobs.
func lastRunsOf(in input[wire.LastRunsRequest]) ([]string, error) {
	return in.body.Jobs, eachOnce(in.body.Jobs, "jobs[%d]")
}

func (a *api) listLastRuns(ctx context.Context, _ *struct{}, in input[wire.LastRunsRequest], jobs []string) (*answer[wire.LastRunsList], error) {
	limit := in.body.Limit
	if limit == 0 {
		limit = shownLast
	}
	last, err := a.Control.LastRuns(ctx, in.tenant, jobs, limit)
	if err != nil {
		return nil, err
	}
	list := wire.LastRunsList{Items: make([]wire.LastRuns, len(last))}
	for i, one := range last {
		list.Items[i] = a.lastRunsForm(ctx, one)
	}
	return &answer[wire.LastRunsList]{list}, nil
}

func (a *api) lastRunsForm(ctx context.Context, l control.LastRuns) wire.LastRuns {
	shown := wire.LastRuns{Job: l.Job, Runs: make([]wire.LastRun, len(l.Runs)), Partial: l.More, LastSucceededAt: l.Succeeded}
	for i, r := range l.Runs {
		shown.Runs[i] = a.lastRunForm(ctx, r)
	}
	return shown
}

func (a *api) lastRunForm(ctx context.Context, r run.Run) wire.LastRun {
	shown := wire.LastRun{ID: r.ID.String(), State: a.Control.Shown(ctx, r).String(), NominalTime: r.ID.Time(), StartedAt: instant(r.Started), EndedAt: instant(r.Ended), Attempt: r.Attempt}
	if n := len(r.Attempts); n > 0 {
		shown.Error = r.Attempts[n-1].Error
	}
	return shown
}
