package tick

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Recover sends everything again that has not ended, for a process that is alone on its store and has an empty queue: after its start, at
// since (Unix ms). dead tells whose leases are void. It reads the timers from the first sweep's cursor to the furthest regular check, since
// every unended run has one there: that sweep arms a check for all that it leaves behind. It may run beside the ticks.
//
// What was requested since has been sent by this process itself. An earlier one whose clock was ahead may have taken requests that look
// like it: those wait for the first sweep.
func (t *Ticker) Recover(ctx context.Context, since int64, dead func(worker string) bool) (dispatch.Repairs, error) {
	var report Report
	var errs []error
	for n := range t.Dispatch.Layout.Shards {
		if err := t.recover(ctx, n, since, dead, &report); err != nil {
			errs = append(errs, fmt.Errorf("recover shard %d: %w", n, err))
		}
	}
	t.countRepairs(report.Repairs)
	return report.Repairs, errors.Join(errs...)
}

func (t *Ticker) recover(ctx context.Context, n int, since int64, dead func(string) bool, report *Report) error {
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
	t.Dispatch.Published(s.Horizon, now)
	// What is claimed here lies below a horizon that was published.
	reach := t.Dispatch.Reach(s.Horizon, now)
	p := &pass{Ticker: t, shard: s, report: report,
		bounds: dispatch.Bounds{Now: now, Horizon: s.Horizon, Reach: reach, Resume: max(reach, now) + dispatch.ResumeAfter.Milliseconds(), Mark: t.Dispatch.NewID()}}
	done := func(t timer.Timer) bool { // its run is what this pass has armed it for, or what this process has sent
		return t.Kind == timer.Check && t.Attempt == p.bounds.Mark || t.Create != nil && t.Create.Created >= since
	}
	last := timer.Minute(max(s.Horizon, now) + timer.MaxCheckGap.Milliseconds())
	for minute := timer.Minute(min(s.Watermark, s.Swept[0])); minute <= last; minute++ {
		if err := p.whole(ctx, minute, func(p *pass, ctx context.Context, pg page) (Report, error) {
			runs := append(runsOf(slices.DeleteFunc(pg.checks, done)), runsOf(slices.DeleteFunc(pg.requests, done))...)
			claimed, err := p.claimedBy(ctx, pg.fires)
			if err != nil {
				return Report{}, err
			}
			runs = append(runs, claimed...)
			repairs, err := p.Dispatch.Check(ctx, s.Epoch, p.bounds, runs, dead)
			return Report{Repairs: repairs}, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// claimedBy lists the unended runs that fire timers have led to.
func (p *pass) claimedBy(ctx context.Context, timers []timer.Timer) (open []run.Run, err error) {
	timers = slices.DeleteFunc(timers, func(t timer.Timer) bool { return t.Nominal > p.bounds.Horizon })
	looks, err := p.looks(ctx, timers)
	if err != nil {
		return nil, err
	}
	if err := p.lookAll(ctx, looks); err != nil {
		return nil, err
	}
	for _, l := range looks {
		open = append(open, l.open...)
	}
	return open, nil
}
