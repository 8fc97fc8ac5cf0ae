package control

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// deed is what is done to each run: do changes it, try only tells whether do would.
type deed struct {
	do, try func(ctx context.Context, id run.ID) (run.Run, error)
}

// CancelMany cancels runs. A filter without states chooses all that have not ended.
func (s *Service) CancelMany(ctx context.Context, tenant string, f RunFilter, b Bulk, reason string) (Outcome, error) {
	if len(f.States) == 0 {
		f.States = []run.State{run.Scheduled, run.Queued, run.Waiting, run.Running, run.Retrying}
	}
	return s.bulk(ctx, s.chooseRuns(tenant, f), b, deed{
		do: func(ctx context.Context, id run.ID) (run.Run, error) { return s.Cancel(ctx, tenant, id, reason) },
		try: func(ctx context.Context, id run.ID) (run.Run, error) {
			r, err := s.Run(ctx, tenant, id)
			if err == nil {
				err = mayCancel(r)
			}
			return r, err
		},
	})
}

// RetryMany opens ended runs again. A filter without states chooses those that are failed or dead; none chooses dead letters that were discarded.
func (s *Service) RetryMany(ctx context.Context, tenant string, f RunFilter, b Bulk, force bool) (Outcome, error) {
	if len(f.States) == 0 {
		f.States = []run.State{run.Failed, run.Dead}
	}
	f.spare, f.ended = true, b.EndedBefore
	return s.bulk(ctx, s.chooseRuns(tenant, f), b, s.reopening(tenant, reopening{reason: retried, force: force, spare: b.Runs == nil, ended: b.EndedBefore}))
}

// Redrive opens dead letters again. One that was discarded is opened where it is named.
func (s *Service) Redrive(ctx context.Context, tenant string, f DeadFilter, b Bulk) (Outcome, error) {
	if before := b.EndedBefore; !before.IsZero() && (f.To.IsZero() || before.Before(f.To)) {
		f.To = before
	}
	return s.bulk(ctx, s.chooseDeadLetters(tenant, f), b, s.reopening(tenant, reopening{reason: "redriven", spare: b.Runs == nil, ended: b.EndedBefore}))
}

func (s *Service) reopening(tenant string, how reopening) deed {
	return deed{
		do: func(ctx context.Context, id run.ID) (run.Run, error) { return s.reopen(ctx, tenant, id, how) },
		try: func(ctx context.Context, id run.ID) (run.Run, error) {
			if _, err := s.reopenable(ctx, tenant, id); err != nil {
				return run.Run{}, err
			}
			r, err := s.Run(ctx, tenant, id)
			if err == nil {
				err = how.may(r)
			}
			return r, err
		},
	}
}

func (s *Service) chooseRuns(tenant string, f RunFilter) chooser[run.ID] {
	return func(ctx context.Context, cursor string, limit int) (chosen[run.ID], error) {
		runs, next, err := s.Runs(ctx, tenant, f, cursor, limit)
		ids := make([]run.ID, len(runs))
		for i, r := range runs {
			ids[i] = r.ID
		}
		return chosen[run.ID]{things: ids, next: next, after: func(i int) string { return f.After(ids[i]) }}, err
	}
}

// bulk acts on runs one after the other. Each has its own verdict; the error is for what ended the whole, and the outcome so far is given with
// it. A dry run with a filter counts all that it chooses, and tries the first.
func (s *Service) bulk(ctx context.Context, choose chooser[run.ID], b Bulk, d deed) (Outcome, error) {
	m := many[run.ID, Verdict]{Service: s, named: b.Runs, choose: choose, most: b.Max, perSecond: b.PerSecond, dryRun: b.DryRun}
	by := func(act func(ctx context.Context, id run.ID) (run.Run, error)) func(ctx context.Context, id run.ID) (Verdict, bool) {
		return func(ctx context.Context, id run.ID) (Verdict, bool) {
			r, err := act(ctx, id)
			return Verdict{ID: id, Run: r, Err: err}, err == nil
		}
	}
	m.do, m.try = by(d.do), by(d.try)
	m.count = func(ctx context.Context, id run.ID) {
		if m.done.Count++; len(m.done.Verdicts) < Sampled {
			v, _ := m.try(ctx, id)
			m.done.Verdicts = append(m.done.Verdicts, v)
		}
	}
	err := m.run(ctx, b.Cursor)
	return Outcome(m.done), err
}
