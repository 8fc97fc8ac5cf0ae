package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type gatePath struct {
	Gate string `path:"gate" minLength:"1" maxLength:"132" pattern:"^[A-Za-z0-9][A-Za-z0-9._:-]{0,131}$" example:"job:daily-report" doc:"its name: job:NAME is a job's own"`
}

type gateEdit struct {
	Gate    string `path:"gate" minLength:"1" maxLength:"132" pattern:"^[A-Za-z0-9][A-Za-z0-9._:-]{0,131}$" example:"stripe" doc:"its name, of 1 to 64 letters, digits, dots, underscores or hyphens"`
	IfMatch string `header:"If-Match" minLength:"1" maxLength:"256" doc:"only if the gate's ETag is this, quotes included, or * if it exists"`
}

type gatePut struct {
	gateEdit
	IfNoneMatch string `header:"If-None-Match" enum:"*" doc:"only if there is no such gate"`
}

type gateLine struct {
	page
	gatePath
	Key string `query:"key" minLength:"1" maxLength:"8192" example:"acme" doc:"where runs pass the gate by a key: the value whose line is listed, as it is or as answers show it; without it, the lines of all values are, one after the other"`
}

type gateAnswer struct {
	Status int
	ETag   string `header:"ETag" doc:"of the definition and of whether it is closed, for If-Match; none of a job's own gate"`
	Body   wire.Gate
}

// gatePattern is what the name of a gate looks like.
const gatePattern = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,131}$"

func (a *api) gates() {
	edits := []control.Code{control.CodeGateNotFound, control.CodeOwnGate, control.CodeStale, control.CodeBusy}
	register(a, operation{id: "list-gates", method: http.MethodGet, path: "/v1/gates", tag: "gates", tagged: true, scope: access.Read,
		summary: "List gates: those with names of their own, then those of jobs that bound their overlap, with how many runs are in progress and wait"}, a.listGates)
	acceptUnread(a, operation{id: "put-gate", method: http.MethodPut, path: "/v1/gates/{gate}", tag: "gates", scope: access.Write, created: true,
		summary: "Create or replace a gate, which jobs name to share its limit",
		example: map[string]any{"limit": 10},
		codes:   []control.Code{control.CodeOwnGate, control.CodeStale, control.CodeBusy}}, gateValues, a.putGate)
	register(a, operation{id: "get-gate", method: http.MethodGet, path: "/v1/gates/{gate}", tag: "gates", scope: access.Read,
		summary: "Show a gate, with how many runs are in progress and wait",
		codes:   []control.Code{control.CodeGateNotFound}}, a.getGate)
	register(a, operation{id: "delete-gate", method: http.MethodDelete, path: "/v1/gates/{gate}", tag: "gates", scope: access.Write, status: http.StatusNoContent,
		summary: "Delete a gate; runs that wait at it are let in, and jobs that name it pass as if it were not there",
		codes:   edits}, a.deleteGate)
	acceptUnread(a, operation{id: "close-gate", method: http.MethodPost, path: "/v1/gates/{gate}/close", tag: "gates", scope: access.Write,
		summary: "Close a gate: nobody is let in until it is opened, and runs in progress go on",
		example: map[string]any{"reason": "the provider is down"},
		codes:   edits}, formAlone, a.closeGate)
	acceptUnread(a, operation{id: "open-gate", method: http.MethodPost, path: "/v1/gates/{gate}/open", tag: "gates", scope: access.Write,
		summary: "Open a gate that was closed; of a job under overlap strict, let its line go on that stands still behind a run which ended badly",
		example: map[string]any{"run": "daily-report~0mi4lf3k0", "reason": "the day is made up by hand"},
		codes:   append([]control.Code{control.CodeNotBlocking, control.CodeRunNotFound}, edits...)}, formAlone, a.openGate)
	register(a, operation{id: "list-line", method: http.MethodGet, path: "/v1/gates/{gate}/line", tag: "gates", tagged: true, scope: access.Read,
		summary: "List the runs that wait at a gate, from the front of its line on",
		codes:   []control.Code{control.CodeGateNotFound}}, a.listLine)
}

func gateValues(in input[wire.GateDefinition]) error {
	return errors.Join(in.body.Called(in.path("gate")), in.body.Definition.WithDefaults().Validate())
}

func (a *api) putGate(ctx context.Context, p *gatePut, in input[wire.GateDefinition]) (*gateAnswer, error) {
	if in.body.Called(p.Gate) != nil {
		return nil, gateValues(in) // with all else that is wrong
	}
	stands := func(n gate.Named) error { return in.body.Stands(p.Gate, closure(n)) }
	n, change, err := a.Control.PutGate(ctx, in.tenant, p.Gate, in.body.Definition,
		control.GateMatch{Match: control.Match{ETag: p.IfMatch, Absent: p.IfNoneMatch != ""}, Stands: stands})
	return a.standing(ctx, putStatus(change), n, err)
}

func (a *api) closeGate(ctx context.Context, p *gateEdit, in input[wire.CloseRequest]) (*gateAnswer, error) {
	n, err := a.Control.CloseGate(ctx, in.tenant, p.Gate, who(callerOf(ctx)), in.body.Reason, control.Match{ETag: p.IfMatch})
	return a.standing(ctx, http.StatusOK, n, err)
}

func (a *api) openGate(ctx context.Context, p *gateEdit, in input[wire.OpenRequest]) (*gateAnswer, error) {
	since, seen := int64(0), ""
	if at := in.body.Since; !at.IsZero() {
		since, seen = at.UnixMilli(), at.Format(time.RFC3339Nano)
	}
	if _, own := gate.OwnOf(p.Gate); own {
		g, err := a.Control.OpenLine(ctx, in.tenant, p.Gate, who(callerOf(ctx)), control.Opening{Run: in.body.Run, Since: since, Key: in.body.Key, Reason: in.body.Reason}, control.Match{ETag: p.IfMatch})
		if err != nil {
			return nil, err
		}
		return &gateAnswer{Status: http.StatusOK, Body: gateForm(g)}, nil
	}
	if err := errors.Join(notNamed("run", in.body.Run), notNamed("since", seen), notNamed("key", in.body.Key)); err != nil {
		return nil, err
	}
	n, err := a.Control.OpenGate(ctx, in.tenant, p.Gate, who(callerOf(ctx)), in.body.Reason, control.Match{ETag: p.IfMatch})
	return a.standing(ctx, http.StatusOK, n, err)
}

// notNamed refuses what only the own gate of a job takes.
func notNamed(field, text string) error {
	if text == "" {
		return nil
	}
	return invalid.Field(field, text, "the field left out: only the line of a job's own gate, job:NAME, stands still behind a run")
}

// standing answers an edit with how the gate stands then.
func (a *api) standing(ctx context.Context, status int, n gate.Named, err error) (*gateAnswer, error) {
	if err != nil {
		return nil, err
	}
	g, err := a.Control.Stands(ctx, n)
	if err != nil {
		return nil, err
	}
	return &gateAnswer{Status: status, ETag: n.ETag(), Body: gateForm(g)}, nil
}

func (a *api) getGate(ctx context.Context, p *gatePath, in input[noBody]) (*gateAnswer, error) {
	g, err := a.Control.Gate(ctx, in.tenant, p.Gate)
	if err != nil {
		return nil, err
	}
	shown := gateForm(g)
	return &gateAnswer{Status: http.StatusOK, ETag: shown.ETag, Body: shown}, nil
}

func (a *api) deleteGate(ctx context.Context, p *gateEdit, in input[noBody]) (*struct{}, error) {
	return nil, a.Control.DeleteGate(ctx, in.tenant, p.Gate, control.Match{ETag: p.IfMatch})
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
	shown := wire.Gate{Name: g.Name(), InProgress: g.InProgress, Units: g.Units, Waiting: g.Waiting, MoreWaiting: g.MoreWaiting, MoreKeys: g.More}
	for _, k := range g.Keys {
		shown.Keys = append(shown.Keys, wire.KeyGate(k))
	}
	if n := g.Named; n.Version != 0 {
		def := n.Def.Shown()
		shown.Limit, shown.MaxWaiting, shown.Order = def.Limit, def.MaxWaiting, string(def.Order)
		shown.MaxWait = def.MaxWait
		shown.Generation, shown.ETag, shown.CreatedAt, shown.UpdatedAt = n.Generation, n.ETag(), instant(n.Created), instant(n.Updated)
		shown.Closed = closure(n)
		if n.Opened != nil {
			shown.Opened = &wire.GateOpened{At: instant(n.Opened.At), Reason: n.Opened.Reason, By: n.Opened.By}
		}
		return shown
	}
	o := g.Job.Def.Overlap
	shown.Job, shown.Policy, shown.Limit, shown.Key, shown.Paused = g.Job.Name, string(o.Policy), o.Limit, o.Key, g.Job.Def.Paused
	if most, bounded := o.Waiting(); bounded {
		shown.MaxWaiting = &most
	}
	shown.BlockedBy = blockedBy(g.Blocked)
	if let := g.LetGo; !let.IsZero() {
		shown.Opened = &wire.GateOpened{At: instant(let.Change.At), Reason: let.Change.Reason, By: let.Change.By, Runs: let.Runs}
	}
	return shown
}

func blockedBy(all []control.Blocker) (shown []wire.BlockedBy) {
	for _, b := range all {
		shown = append(shown, wire.BlockedBy{Run: b.Run, Key: b.Key, State: b.State.String(), Since: instant(b.Since)})
	}
	return shown
}

// closure shows that a gate is closed, nil where it is open.
func closure(n gate.Named) *wire.GateClosure {
	if n.Closed == nil {
		return nil
	}
	return &wire.GateClosure{Since: instant(n.Closed.At), Reason: n.Closed.Reason, By: n.Closed.By}
}

func (a *api) listLine(ctx context.Context, p *gateLine, in input[noBody]) (*answer[wire.LinePage], error) {
	runs, next, err := a.Control.GateLine(ctx, in.tenant, p.Gate, p.Key, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, runs, next, func(r run.Run) wire.InLine {
		return wire.InLine{ID: r.ID.String(), Key: gate.ShownKey(gate.Of(r).Key), NominalTime: r.ID.Time(), Since: instant(r.Wait.Since), StartBy: instant(r.StartBy),
			WaitUntil: instant(r.Wait.Until), EndBy: instant(r.EndBy), Overlap: r.Overlap.String()}
	}, control.AfterInLine)
	return &answer[wire.LinePage]{wire.LinePage{Items: items, Next: next}}, nil
}
