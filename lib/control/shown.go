package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Shown is the state that a user sees now: see run.Run.Shown.
func (s *Service) Shown(ctx context.Context, r run.Run) run.State {
	now := s.storeTime().UnixMilli()
	return r.Shown(s.due(ctx, r, now), now)
}

// Changed is when a run came to where it stands: see run.Run.Changed.
func (s *Service) Changed(ctx context.Context, r run.Run) time.Time {
	now := s.storeTime().UnixMilli()
	return time.UnixMilli(r.Changed(s.due(ctx, r, now), now)).UTC()
}

// storeTime is the store's time, as well as it is known.
func (s *Service) storeTime() time.Time { return s.Now().Add(s.Store.Skew()) }

// due is when a run that has not begun may start, Unix ms. Editions are remembered, so of a fire whose job has a jitter this reads only what
// was not seen before; where that cannot be read, the fire is due at its nominal time.
func (s *Service) due(ctx context.Context, r run.Run, now int64) int64 {
	due := max(r.ID.Nominal, r.NextAt)
	if r.Stage() != run.Queued || r.ID.OnDemand() || due > now || now >= r.ID.Nominal+schedule.MaxJitter.Std().Milliseconds() {
		return due
	}
	if edition, err := s.Dispatch.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation); err == nil {
		return max(due, edition.Due(r.Tenant, r.ID.Job, r.ID.Nominal))
	}
	return due
}

// RecentRuns are runs by what changed last.
type RecentRuns struct {
	Runs []run.Run // the newest change first

	// LookedBackTo is where the older ones begin that were not looked at, by nominal time; zero where all were.
	LookedBackTo time.Time
}

// RunsByChange lists runs, the newest change first, limit of them at most. No index has them in this order, and to keep one would cost each
// change of each run a write. So it puts in order what Runs gives as one page of MaxLimit: a run that is older than all of these, and has
// changed since, is not among them.
func (s *Service) RunsByChange(ctx context.Context, tenant string, f RunFilter, limit int) (RecentRuns, error) {
	runs, next, err := s.Runs(ctx, tenant, f, "", MaxLimit)
	if err != nil {
		return RecentRuns{}, err
	}
	var recent RecentRuns
	if next != "" {
		last, err := f.behind(next)
		if err != nil {
			return RecentRuns{}, err
		}
		recent.LookedBackTo = last.Time()
	}
	type change struct {
		at  time.Time
		run run.Run
	}
	changes := make([]change, len(runs))
	for i, r := range runs {
		changes[i] = change{s.Changed(ctx, r), r}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(b.at.Compare(a.at), strings.Compare(b.run.ID.Place(), a.run.ID.Place()))
	})
	for _, c := range changes[:min(len(changes), pageLimit(limit))] {
		recent.Runs = append(recent.Runs, c.run)
	}
	return recent, nil
}
