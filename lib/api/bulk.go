package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// reopenRate is how many runs a second a redrive or retry starts unless told otherwise: what failed together may fail together
// again, and should not do so all at once.
const reopenRate = 10

func (a *api) cancelRuns(ctx context.Context, _ *struct{}, in input[wire.CancelRuns]) (*answer[wire.BulkVerdicts], error) {
	b := in.body
	filter, err := filterOf(b.Matching)
	if err != nil {
		return nil, err
	}
	for i, state := range filter.States {
		if state.Ended() {
			return nil, invalid.Field(fmt.Sprintf("matching.states[%d]", i), state.String(), "scheduled, queued, running or retrying: the others have ended")
		}
	}
	asked, err := bulkOf(b.Runs, b.Cursor, b.Max, b.DryRun)
	if err != nil {
		return nil, err
	}
	return a.inBulk(ctx, asked, func(bulk control.Bulk) (control.Outcome, error) {
		return a.Control.CancelMany(ctx, in.tenant, filter, bulk, b.Reason)
	})
}

func (a *api) retryRuns(ctx context.Context, _ *struct{}, in input[wire.RetryRuns]) (*answer[wire.BulkVerdicts], error) {
	b := in.body
	filter, err := filterOf(b.Matching)
	if err != nil {
		return nil, err
	}
	for i, state := range filter.States {
		if !state.Ended() || state == run.Skipped {
			return nil, invalid.Field(fmt.Sprintf("matching.states[%d]", i), state.String(), "failed, dead, cancelled, unknown or succeeded: the others have not ended, or never ran")
		}
	}
	asked, err := bulkOf(b.Runs, b.Cursor, b.Max, b.DryRun)
	if err != nil {
		return nil, err
	}
	if err := asked.pace(b.PerSecond); err != nil {
		return nil, err
	}
	return a.inBulk(ctx, asked, func(bulk control.Bulk) (control.Outcome, error) {
		return a.Control.RetryMany(ctx, in.tenant, filter, bulk, b.Force)
	})
}

// filterOf reads the filter of a bulk request, which chooses all where there is none.
func filterOf(m *wire.RunFilter) (control.RunFilter, error) {
	if m == nil {
		return control.RunFilter{}, nil
	}
	for name := range m.Labels {
		if name == "" {
			return control.RunFilter{}, invalid.Field("matching.labels", name, "names of labels")
		}
	}
	return control.RunFilter{Job: m.Job, States: statesOf(m.States), Labels: m.Labels, Error: m.Error, From: timeOf(m.From), To: timeOf(m.To)}, nil
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// statesOf reads states whose names were checked.
func statesOf(names []string) (states []run.State) {
	for _, name := range names {
		if state, ok := run.ParseState(name); ok {
			states = append(states, state)
		}
	}
	return states
}

// bulk is a bulk request as it was sent: runs are the texts of IDs, nil where a filter chooses them.
type bulk struct {
	control.Bulk
	runs []string
}

func bulkOf(runs []string, cursor string, most int, dry bool) (bulk, error) {
	switch {
	case runs != nil && most != 0:
		return bulk{}, invalid.Missing("max", "no max beside runs: all of them are meant")
	case runs != nil && cursor != "":
		return bulk{}, invalid.Missing("cursor", "no cursor beside runs: all of them are meant")
	}
	return bulk{Bulk: control.Bulk{Cursor: cursor, Max: most, DryRun: dry}, runs: runs}, nil
}

// pace sets how fast runs start, and refuses more of them than the time of one request is enough for.
func (b *bulk) pace(perSecond float64) error {
	if b.PerSecond = perSecond; perSecond == 0 {
		b.PerSecond = reopenRate
	}
	most := min(control.MaxLimit, int(b.PerSecond*control.BulkTime.Seconds()))
	field, wanted := "max", b.Max
	if b.runs != nil {
		field, wanted = "runs", len(b.runs)
	}
	if wanted > most && !b.DryRun {
		return invalid.Field(field, strconv.Itoa(wanted), fmt.Sprintf("at most %d at %v a second, or a higher per_second: one request lasts at most %s", most, b.PerSecond, control.BulkTime))
	}
	if b.Max == 0 {
		b.Max = most
	}
	return nil
}

// inBulk acts on the runs of a request and shows what became of each.
func (a *api) inBulk(ctx context.Context, asked bulk, act func(control.Bulk) (control.Outcome, error)) (*answer[wire.BulkVerdicts], error) {
	var verdicts []wire.RunVerdict
	var at []int // where the verdict of each run belongs
	if asked.runs != nil {
		verdicts, asked.Bulk.Runs = make([]wire.RunVerdict, len(asked.runs)), []run.ID{}
		for i, text := range asked.runs {
			id, err := runPath{text}.id()
			if err != nil {
				verdicts[i] = a.verdict(ctx, text, control.Verdict{Err: err})
				continue
			}
			asked.Bulk.Runs, at = append(asked.Bulk.Runs, id), append(at, i)
		}
	}
	out, err := act(asked.Bulk)
	if err != nil {
		return nil, err
	}
	if asked.runs == nil {
		verdicts = make([]wire.RunVerdict, len(out.Verdicts))
	}
	for n, v := range out.Verdicts {
		i := n
		if at != nil {
			i = at[n]
		}
		verdicts[i] = a.verdict(ctx, v.ID.String(), v)
	}
	shown := wire.BulkVerdicts{Items: []wire.RunVerdict{}, Count: out.Count, Next: out.Next}
	for _, v := range verdicts {
		if v.Status != 0 {
			shown.Items = append(shown.Items, v)
		}
	}
	for _, id := range out.Remaining {
		shown.Remaining = append(shown.Remaining, id.String())
	}
	return &answer[wire.BulkVerdicts]{shown}, nil
}

func (a *api) verdict(ctx context.Context, id string, v control.Verdict) wire.RunVerdict {
	if v.Err != nil {
		refused := a.problemOf(ctx, v.Err).Problem
		return wire.RunVerdict{Status: refused.Status, ID: id, Problem: &refused}
	}
	shown := a.runForm(ctx, v.Run)
	return wire.RunVerdict{Status: http.StatusOK, ID: id, Run: &shown}
}
