package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type deadList struct {
	Page
	Between
	Job   string `query:"job" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"of this job"`
	Error string `query:"error" minLength:"1" maxLength:"240" doc:"part of the last error"`
}

const (
	// redriveRate is how many runs a second a redrive starts unless told otherwise: what failed together may fail together
	// again, and should not do so all at once.
	redriveRate = 10

	// redriveTime is how long one request may take its time: less than clients and gateways wait, so that it can tell what it did.
	redriveTime = 15 * time.Second
)

// pace gives the rate of a redrive and how many runs it may take on.
func pace(perSecond float64, wanted int, field string) (rate float64, most int, err error) {
	if rate = perSecond; rate == 0 {
		rate = redriveRate
	}
	most = min(control.MaxLimit, int(rate*redriveTime.Seconds()))
	if wanted > most {
		return 0, 0, invalid.Field(field, strconv.Itoa(wanted), fmt.Sprintf("at most %d at %v a second, or a higher per_second: one request lasts at most %s", most, rate, redriveTime))
	}
	if wanted != 0 {
		most = wanted
	}
	return rate, most, nil
}

func (a *api) deadLetters() {
	register(a, operation{id: "list-dead-letters", method: http.MethodGet, path: "/v1/dead-letters", tag: "dead letters", scope: access.Read,
		summary: "List runs that ended dead or failed and were not redriven since"}, a.listDeadLetters)
	register(a, operation{id: "redrive", method: http.MethodPost, path: "/v1/dead-letters/redrive", tag: "dead letters", scope: access.Run,
		summary: "Queue dead letters again, by ID or by filter, with a verdict for each",
		codes:   []control.Code{control.CodeBusy}}, a.redrive)
}

func (a *api) listDeadLetters(ctx context.Context, p *deadList, in input[noBody]) (*answer[wire.DeadLetterPage], error) {
	filter := control.DeadFilter{Job: p.Job, Error: p.Error, From: p.From, To: p.To}
	letters, next, err := a.Control.DeadLetters(ctx, in.tenant, filter, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	shown := wire.DeadLetterPage{Items: make([]wire.DeadLetter, len(letters)), Next: next}
	for i, l := range letters {
		shown.Items[i] = wire.DeadLetter{Run: l.Run.String(), Job: l.Run.Job, State: l.State.String(), EndedAt: l.Ended.UTC(), Error: l.Error}
	}
	return &answer[wire.DeadLetterPage]{shown}, nil
}

func (a *api) redrive(ctx context.Context, _ *struct{}, in input[wire.Redrive]) (*answer[wire.RunVerdicts], error) {
	if in.body.Matching != nil {
		return a.redriveMatching(ctx, in)
	}
	if in.body.Max != 0 {
		return nil, invalid.Missing("max", "no max beside runs: all of them are redriven")
	}
	rate, _, err := pace(in.body.PerSecond, len(in.body.Runs), "runs")
	if err != nil {
		return nil, err
	}
	verdicts := make([]wire.RunVerdict, len(in.body.Runs))
	var ids []run.ID
	var at []int // where the verdict of each of ids belongs
	for i, text := range in.body.Runs {
		id, err := runPath{text}.id()
		if err != nil {
			verdicts[i] = a.redriven(ctx, text, err)
			continue
		}
		ids, at = append(ids, id), append(at, i)
	}
	done, err := a.Control.Redrive(ctx, in.tenant, ids, rate)
	if err != nil {
		return nil, err
	}
	for n, d := range done {
		verdicts[at[n]] = a.redriven(ctx, d.Run.String(), d.Err)
	}
	return &answer[wire.RunVerdicts]{wire.RunVerdicts{Items: verdicts}}, nil
}

func (a *api) redriveMatching(ctx context.Context, in input[wire.Redrive]) (*answer[wire.RunVerdicts], error) {
	rate, most, err := pace(in.body.PerSecond, in.body.Max, "max")
	if err != nil {
		return nil, err
	}
	m := in.body.Matching
	filter := control.DeadFilter{Job: m.Job, Error: m.Error}
	if m.From != nil {
		filter.From = *m.From
	}
	if m.To != nil {
		filter.To = *m.To
	}
	done, err := a.Control.RedriveMatching(ctx, in.tenant, filter, most, rate)
	if err != nil {
		return nil, err
	}
	verdicts := make([]wire.RunVerdict, len(done))
	for i, d := range done {
		verdicts[i] = a.redriven(ctx, d.Run.String(), d.Err)
	}
	return &answer[wire.RunVerdicts]{wire.RunVerdicts{Items: verdicts}}, nil
}

func (a *api) redriven(ctx context.Context, id string, err error) wire.RunVerdict {
	if err == nil {
		return wire.RunVerdict{Status: http.StatusOK, ID: id}
	}
	refused := a.problemOf(ctx, err).Problem
	return wire.RunVerdict{Status: refused.Status, ID: id, Problem: &refused}
}
