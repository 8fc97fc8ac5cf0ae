package tick

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Recover sends everything again that has not ended, for a process that is alone on its store and has an empty queue: after
// its start. dead tells whose leases are void. It reads the timers from the oldest cursor to the furthest regular check, since
// every unended run has one there, and may run beside the ticks.
func (t *Ticker) Recover(ctx context.Context, dead func(worker string) bool) (dispatch.Repairs, error) {
	var report Report
	var errs []error
	for n := range t.Dispatch.Layout.Shards {
		if err := t.recover(ctx, n, dead, &report); err != nil {
			errs = append(errs, fmt.Errorf("recover shard %d: %w", n, err))
		}
	}
	t.count(report, 0)
	return report.Repairs, errors.Join(errs...)
}

func (t *Ticker) recover(ctx context.Context, n int, dead func(string) bool, report *Report) error {
	items, err := t.store.Get(ctx, timer.ShardKey(n))
	if err != nil {
		return err
	}
	s, err := timer.ShardFromItem(n, items[0])
	if err != nil {
		return err
	}
	now, err := t.Dispatch.Clock()
	if err != nil {
		return err
	}
	// Nothing here is claimed, only looked after; so no horizon needs to be published.
	p := &pass{Ticker: t, shard: s, report: report,
		bounds: dispatch.Bounds{Now: now, Horizon: max(s.Horizon, now), Resume: max(s.Horizon, now) + resumeAfter.Milliseconds()}}
	last := timer.Minute(p.bounds.Horizon + timer.MaxCheckGap.Milliseconds())
	for minute := timer.Minute(s.Oldest()); minute <= last; minute++ {
		if err := p.buckets(ctx, minute, minute*60_000, minute*60_000+59_999, func(p *pass, ctx context.Context, pg page) (Report, error) {
			runs := append(runsOf(pg.checks), runsOf(pg.requests)...)
			for _, f := range pg.fires {
				claimed, err := p.claimedBy(ctx, f)
				if err != nil {
					return Report{}, err
				}
				runs = append(runs, claimed...)
			}
			repairs, err := p.Dispatch.Check(ctx, s.Epoch, p.bounds, runs, dead)
			return Report{Repairs: repairs}, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// claimedBy lists the runs that a fire timer may have led to.
func (p *pass) claimedBy(ctx context.Context, t timer.Timer) ([]run.Run, error) {
	if t.Nominal > p.bounds.Horizon {
		return nil, nil
	}
	edition, err := p.Dispatch.Book.Edition(ctx, t.Tenant, t.Job, t.Generation)
	if errors.Is(err, job.ErrNotFound) || err == nil && edition.Schedule == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var runs []run.Run
	for from := t.Nominal; from <= t.To; {
		fires, err := dispatch.FiresBetween(edition.Schedule, from, t.To, pageSize)
		if err != nil {
			return nil, err
		}
		for _, f := range fires {
			runs = append(runs, run.Run{ID: run.FireID(t.Job, f), Tenant: t.Tenant})
		}
		if len(fires) < pageSize {
			break
		}
		from = fires[len(fires)-1] + 1
	}
	return runs, nil
}
