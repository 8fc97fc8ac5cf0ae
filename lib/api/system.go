package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type cronPreview struct {
	Expr     string    `query:"expr" required:"true" minLength:"1" maxLength:"1024" example:"30 9 * * 1-5" doc:"five fields, six with leading seconds, or a macro such as @daily"`
	Timezone string    `query:"timezone" minLength:"1" maxLength:"128" example:"Europe/Berlin" doc:"IANA name, UTC by default"`
	From     time.Time `query:"from" doc:"fires after this time, now by default"`
	Count    int       `query:"count" minimum:"1" maximum:"1000" doc:"how many, 5 by default"`
}

type wideList struct{ widePage }

func (a *api) system() {
	register(a, operation{id: "preview-cron", method: http.MethodGet, path: "/v1/cron", tag: "system", scope: access.Read,
		summary: "Show what a cron expression means, field by field, when it fires next, and how other schedulers take it"}, a.previewCron)
	register(a, operation{id: "list-queues", method: http.MethodGet, path: "/v1/queues", tag: "system", tagged: true, scope: access.Read,
		summary: "List by name the pools of workers and what waits for them: the server's own, for its tenant, and the tenant's elsewhere"}, a.listQueues)
	register(a, operation{id: "list-workers", method: http.MethodGet, path: "/v1/workers", tag: "system", tagged: true, scope: access.Read,
		summary: "List by queue and ID the workers of this process, for the tenant of the server, and those of the tenant elsewhere"}, a.listWorkers)
	register(a, operation{id: "health", method: http.MethodGet, path: "/healthz", tag: "system", scope: access.Open,
		summary: "Tell whether the process answers"}, a.health)
	register(a, operation{id: "ready", method: http.MethodGet, path: "/readyz", tag: "system", scope: access.Open,
		summary: "Tell whether the process can do its work",
		codes:   []control.Code{codeNotReady}}, a.ready)
}

func (a *api) previewCron(_ context.Context, p *cronPreview, _ input[noBody]) (*answer[wire.Cron], error) {
	compiled, err := schedule.Spec{Cron: p.Expr, Timezone: p.Timezone}.Check()
	if err != nil {
		return nil, renamed(err, "cron", "expr")
	}
	from, count := p.From, p.Count
	if from.IsZero() {
		from = a.Now()
	}
	if count == 0 {
		count = shownFires
	}
	shown := wire.CronForm(compiled, from, count)
	return &answer[wire.Cron]{shown}, nil
}

// renamed gives a field the name that it has in the query.
func renamed(err error, from, to string) error {
	for _, e := range invalid.All(err) {
		if e.Field == from {
			e.Field = to
		}
	}
	return err
}

func (a *api) listQueues(ctx context.Context, p *wideList, in input[noBody]) (*answer[wire.QueuePage], error) {
	queues, err := a.Queues(ctx, in.tenant)
	if err != nil {
		return nil, err
	}
	items, next, err := part(a, p.widePage, queues, func(q wire.Queue) []string { return []string{q.Name} })
	if err != nil {
		return nil, err
	}
	return &answer[wire.QueuePage]{wire.QueuePage{Items: items, Next: next}}, nil
}

func (a *api) listWorkers(ctx context.Context, p *wideList, in input[noBody]) (*answer[wire.WorkerPage], error) {
	workers, err := a.Workers(ctx, in.tenant)
	if err != nil {
		return nil, err
	}
	items, next, err := part(a, p.widePage, workers, func(w wire.Worker) []string { return []string{w.Queue, w.ID} })
	if err != nil {
		return nil, err
	}
	return &answer[wire.WorkerPage]{wire.WorkerPage{Items: items, Next: next}}, nil
}

func (a *api) health(context.Context, *struct{}, input[noBody]) (*answer[wire.Health], error) {
	return &answer[wire.Health]{wire.Health{Status: "ok", Version: a.Version}}, nil
}

func (a *api) ready(ctx context.Context, _ *struct{}, _ input[noBody]) (*answer[wire.Readiness], error) {
	checks := append([]wire.Check{}, a.Ready(ctx)...)
	var failing []string
	for _, c := range checks {
		if c.State == wire.CheckFailing {
			failing = append(failing, c.Name+": "+c.Detail)
		}
	}
	if len(failing) > 0 {
		p := newProblem(codeNotReady, "Not ready. "+strings.Join(failing, "; "))
		p.Checks = checks
		return nil, p
	}
	return &answer[wire.Readiness]{wire.Readiness{Status: "ok", Version: a.Version, Checks: checks}}, nil
}
