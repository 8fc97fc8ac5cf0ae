package api

import (
	"cmp"
	"context"
	"errors"
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
const reopenRate = 10.0

// overRuns is a bulk request over runs.
type overRuns struct {
	filter control.RunFilter
	bulk
}

func cancelOf(in input[wire.CancelRuns]) (overRuns, error) {
	b := in.body
	filter, wrong := filterOf(b.Matching, "scheduled, queued, running or retrying: the others have ended", func(s run.State) bool { return !s.Ended() })
	asked, err := bulkOf(b.Runs, b.Cursor, b.Max, b.DryRun)
	return overRuns{filter, asked}, errors.Join(wrong, err)
}

func (a *api) cancelRuns(ctx context.Context, _ *struct{}, in input[wire.CancelRuns], asked overRuns) (*answer[wire.BulkVerdicts], error) {
	return a.inBulk(ctx, asked.bulk, func(bulk control.Bulk) (control.Outcome, error) {
		return a.Control.CancelMany(ctx, in.tenant, asked.filter, bulk, in.body.Reason)
	})
}

func retryOf(in input[wire.RetryRuns]) (overRuns, error) {
	b := in.body
	filter, wrong := filterOf(b.Matching, "failed, dead, cancelled, unknown or succeeded: the others have not ended, or never ran",
		func(s run.State) bool { return s.Ended() && s != run.Skipped })
	asked, err := bulkOf(b.Runs, b.Cursor, b.Max, b.DryRun)
	if err == nil {
		err = asked.pace(b.PerSecond)
	}
	asked.EndedBefore = timeOf(b.EndedBefore)
	return overRuns{filter, asked}, errors.Join(wrong, err)
}

func (a *api) retryRuns(ctx context.Context, _ *struct{}, in input[wire.RetryRuns], asked overRuns) (*answer[wire.BulkVerdicts], error) {
	return a.inBulk(ctx, asked.bulk, func(bulk control.Bulk) (control.Outcome, error) {
		return a.Control.RetryMany(ctx, in.tenant, asked.filter, bulk, in.body.Force)
	})
}

// filterOf reads the filter of a bulk request, which chooses all where there is none. Of states it takes those that fit, which want lists.
func filterOf(m *wire.RunFilter, want string, fits func(run.State) bool) (control.RunFilter, error) {
	if m == nil {
		return control.RunFilter{}, nil
	}
	wrong := []error{namesOfLabels(m.Labels)}
	for i, name := range m.States {
		if state, ok := run.ParseState(name); ok && !fits(state) {
			wrong = append(wrong, invalid.Field(fmt.Sprintf("matching.states[%d]", i), name, want))
		}
	}
	return control.RunFilter{Job: m.Job, States: statesOf(m.States), Labels: m.Labels, Error: m.Error, From: timeOf(m.From), To: timeOf(m.To)}, errors.Join(wrong...)
}

func namesOfLabels(labels map[string]string) error {
	if _, is := labels[""]; is {
		return invalid.Field("matching.labels", "", "names of labels")
	}
	return nil
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
	var wrong []error
	if runs != nil && most != 0 {
		wrong = append(wrong, invalid.Missing("max", "no max beside runs: all of them are meant"))
	}
	if runs != nil && cursor != "" {
		wrong = append(wrong, invalid.Missing("cursor", "no cursor beside runs: all of them are meant"))
	}
	return bulk{Bulk: control.Bulk{Cursor: cursor, Max: most, DryRun: dry}, runs: runs}, errors.Join(wrong...)
}

// pace sets how fast runs start, and refuses more of them than the time of one request is enough for.
func (b *bulk) pace(perSecond float64) (err error) {
	b.PerSecond = cmp.Or(perSecond, reopenRate)
	b.Max, err = mostAt(b.PerSecond, b.Max, len(b.runs), b.DryRun, func(want string) error {
		return invalid.Field("runs", strconv.Itoa(len(b.runs)), want)
	})
	return err
}

// mostAt is how many of those that match a request acts on at a rate: most, or where that is 0 as many as its time is enough for. It refuses more of
// them, and with tooMany more that are named, except in a dry run.
func mostAt(perSecond float64, most, named int, dry bool, tooMany func(want string) error) (int, error) {
	fit := min(control.MaxLimit, int(perSecond*control.BulkTime.Seconds()))
	want := fmt.Sprintf("at most %d at %v a second, or a higher per_second: one request lasts at most %s", fit, perSecond, control.BulkTime)
	switch {
	case dry:
	case most > fit:
		return most, invalid.Field("max", strconv.Itoa(most), want)
	case named > fit:
		return most, tooMany(want)
	}
	return cmp.Or(most, fit), nil
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
	explain(refusedOf(shown.Items))
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
	return wire.RunVerdict{Status: http.StatusOK, ID: id, State: a.Control.Shown(ctx, v.Run).String()}
}

func refusedOf(verdicts []wire.RunVerdict) (problems []*wire.Problem) {
	for _, v := range verdicts {
		if v.Problem != nil {
			problems = append(problems, v.Problem)
		}
	}
	return problems
}
