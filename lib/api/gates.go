package api

import (
	"context"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type gateLine struct {
	page
	Key  string `query:"key" minLength:"1" maxLength:"8192" example:"acme" doc:"where the job has a limit for each value of a key: the value whose line is listed, as it is or as answers show it; without it, the lines of all values are, one after the other"`
	Gate string `path:"gate" minLength:"1" maxLength:"132" pattern:"^[A-Za-z0-9][A-Za-z0-9._:-]{0,131}$" example:"job:daily-report" doc:"its name: job:NAME is a job's own"`
}

// gatePattern is what the name of a gate looks like.
const gatePattern = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,131}$"

func (a *api) gates() {
	register(a, operation{id: "list-gates", method: http.MethodGet, path: "/v1/gates", tag: "gates", tagged: true, scope: access.Read,
		summary: "List the gates of jobs that bound their overlap, with how many runs are in progress and wait"}, a.listGates)
	register(a, operation{id: "list-line", method: http.MethodGet, path: "/v1/gates/{gate}/line", tag: "gates", tagged: true, scope: access.Read,
		summary: "List the runs that wait at a gate, from the front of its line on",
		codes:   []control.Code{control.CodeGateNotFound}}, a.listLine)
}

func (a *api) listGates(ctx context.Context, p *page, in input[noBody]) (*answer[wire.GatePage], error) {
	gates, next, err := a.Control.Gates(ctx, in.tenant, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, gates, next, gateForm, control.AfterGate)
	return &answer[wire.GatePage]{wire.GatePage{Items: items, Next: next}}, nil
}

func gateForm(g control.Gate) wire.Gate {
	o := g.Job.Def.Overlap
	shown := wire.Gate{Name: gate.Name(g.Job.Name), Job: g.Job.Name, Policy: string(o.Policy), Limit: o.Limit, InProgress: g.InProgress, Waiting: g.Waiting, Paused: g.Job.Def.Paused,
		Key: o.Key, MoreKeys: g.More}
	if most, bounded := o.Waiting(); bounded {
		shown.MaxWaiting = &most
	}
	for _, k := range g.Keys {
		shown.Keys = append(shown.Keys, wire.KeyGate(k))
	}
	return shown
}

func (a *api) listLine(ctx context.Context, p *gateLine, in input[noBody]) (*answer[wire.LinePage], error) {
	runs, next, err := a.Control.GateLine(ctx, in.tenant, p.Gate, p.Key, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, runs, next, func(r run.Run) wire.InLine {
		return wire.InLine{ID: r.ID.String(), Key: gate.ShownKey(r.GateKey), NominalTime: r.ID.Time(), Since: instant(r.Wait.Since), StartBy: instant(r.StartBy)}
	}, control.AfterInLine)
	return &answer[wire.LinePage]{wire.LinePage{Items: items, Next: next}}, nil
}
