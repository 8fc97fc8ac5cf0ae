package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// deadFilter is what chooses dead letters.
type deadFilter struct {
	interval
	Job     string `query:"job" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" doc:"of this job"`
	Error   string `query:"error" minLength:"1" maxLength:"240" doc:"part of the last error, in any letter case"`
	Pattern string `query:"pattern" minLength:"1" maxLength:"100" doc:"pattern of the last error, as the groups of dead letters have it"`
}

func (f deadFilter) control() control.DeadFilter {
	return control.DeadFilter{Job: f.Job, Error: f.Error, Pattern: f.Pattern, From: f.From, To: f.To}
}

type deadList struct {
	page
	deadFilter
}

type deadGroups struct{ deadFilter }

func (a *api) deadLetters() {
	register(a, operation{id: "list-dead-letters", method: http.MethodGet, path: "/v1/dead-letters", tag: "dead letters", tagged: true, scope: access.Read,
		summary: "List runs that ended dead or failed and were neither redriven nor discarded since"}, a.listDeadLetters)
	register(a, operation{id: "group-dead-letters", method: http.MethodGet, path: "/v1/dead-letters/groups", tag: "dead letters", tagged: true, scope: access.Read,
		summary: "Group the newest dead letters by the pattern of their errors"}, a.groupDeadLetters)
	accept(a, operation{id: "redrive", method: http.MethodPost, path: "/v1/dead-letters/redrive", tag: "dead letters", scope: access.Run,
		summary: "Queue dead letters again, by ID or by filter, with a verdict for each",
		codes:   []control.Code{control.CodeBusy}}, redriveOf, a.redrive)
	accept(a, operation{id: "discard-dead-letters", method: http.MethodPost, path: "/v1/dead-letters/discard", tag: "dead letters", scope: access.Run,
		summary: "Settle dead letters without running them again, by ID or by filter, with a verdict for each",
		example: map[string]any{"matching": map[string]any{"job": "daily-report", "error": "no such account"}, "note": "accounts were closed", "dry_run": true},
		codes:   []control.Code{control.CodeBusy}}, discardOf, a.discard)
}

func (a *api) discard(ctx context.Context, _ *struct{}, in input[wire.Discard], asked bulk) (*answer[wire.BulkVerdicts], error) {
	return a.inBulk(ctx, asked, func(bulk control.Bulk) (control.Outcome, error) {
		return a.Control.Discard(ctx, in.tenant, deadFilterOf(in.body.Matching), bulk, who(callerOf(ctx)), in.body.Note)
	})
}

func discardOf(in input[wire.Discard]) (bulk, error) {
	return bulkOf(in.body.Runs, in.body.Cursor, in.body.Max, in.body.DryRun)
}

// who names a caller for people: the token's name and ID, or as whatever stands in front of Belfry knows them; "" where nobody is asked.
func who(c access.Caller) string {
	if c.Name != "" && c.Token != "" {
		return c.Name + " (" + c.Token + ")"
	}
	return cmp.Or(c.Name, c.Token)
}

func deadFilterOf(m *wire.DeadFilter) control.DeadFilter {
	if m == nil {
		return control.DeadFilter{}
	}
	return control.DeadFilter{Job: m.Job, Error: m.Error, Pattern: m.Pattern, From: timeOf(m.From), To: timeOf(m.To)}
}

func (a *api) listDeadLetters(ctx context.Context, p *deadList, in input[noBody]) (*answer[wire.DeadLetterPage], error) {
	letters, next, err := a.Control.DeadLetters(ctx, in.tenant, p.deadFilter.control(), p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, letters, next, deadLetterForm, func(l control.DeadLetter) string { return l.After(in.tenant) })
	return &answer[wire.DeadLetterPage]{wire.DeadLetterPage{Items: items, Next: next}}, nil
}

func deadLetterForm(l control.DeadLetter) wire.DeadLetter {
	return wire.DeadLetter{ID: l.Run.String(), Job: l.Run.Job, State: l.State.String(), EndedAt: l.Ended.UTC(), Error: l.Error}
}

// What an answer with groups holds at the most.
const (
	shownGroups    = 200
	shownGroupJobs = 10
)

func (a *api) groupDeadLetters(ctx context.Context, p *deadGroups, in input[noBody]) (*answer[wire.DeadLetterGroups], error) {
	found, err := a.Control.Causes(ctx, in.tenant, p.deadFilter.control())
	if err != nil {
		return nil, err
	}
	causes := found.Causes[:min(len(found.Causes), shownGroups)]
	groups := wire.DeadLetterGroups{Items: make([]wire.DeadLetterGroup, len(causes)), MoreGroups: len(found.Causes) - len(causes),
		LookedAt: found.Count, Since: found.Since, More: found.More}
	for i, c := range causes {
		groups.Items[i] = wire.DeadLetterGroup{Pattern: c.Pattern, Kind: target.KindOf(c.Newest.Error), Sample: c.Newest.Error, Run: c.Newest.Run.String(), Count: c.Count,
			Jobs: c.Jobs[:min(len(c.Jobs), shownGroupJobs)], JobCount: len(c.Jobs), FirstAt: c.First, LastAt: c.Last}
	}
	return &answer[wire.DeadLetterGroups]{groups}, nil
}

func (a *api) redrive(ctx context.Context, _ *struct{}, in input[wire.Redrive], asked bulk) (*answer[wire.BulkVerdicts], error) {
	return a.inBulk(ctx, asked, func(bulk control.Bulk) (control.Outcome, error) {
		return a.Control.Redrive(ctx, in.tenant, deadFilterOf(in.body.Matching), bulk)
	})
}

func redriveOf(in input[wire.Redrive]) (bulk, error) {
	b := in.body
	asked, err := bulkOf(b.Runs, b.Cursor, b.Max, b.DryRun)
	if err == nil {
		err = asked.pace(b.PerSecond)
	}
	asked.EndedBefore = timeOf(b.EndedBefore)
	return asked, err
}
