package virtual

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Ticks makes the passes of a node that is alone on a store of one shard, where there is something for them to do.
type Ticks struct {
	Dispatch *dispatch.Dispatcher
	Metrics  *metrics.Registry
	Log      *slog.Logger
	Work     int // as tick.Config's
}

// Pass makes a pass over what is due and nothing else. last is when ticks made their last pass before it, Unix ms by the hosts' clocks then:
// a moment ago, unless there were none for a while, or the clocks were stepped.
//
// Between the instants of a diary there are no timers, so the shard's cursors may be put right before what is due, where passes over all the
// minutes in between would have moved them, and the horizon to where the last of these would have published it. A new ticker remembers no
// cursor of its own.
func (t *Ticks) Pass(ctx context.Context, d Due, last int64) error {
	if err := t.place(ctx, d, last); err != nil {
		return fmt.Errorf("place the cursors: %w", err)
	}
	ticker, err := t.ticker()
	if err != nil {
		return err
	}
	for {
		report, err := ticker.Tick(ctx)
		if err != nil || !report.Behind {
			return err
		}
	}
}

// Recover fills an empty queue from the store, as a node that is started does, and judges no lease. since is when it was, Unix ms; unread is from
// where on there are timers and minutes that ticks have still to come to.
func (t *Ticks) Recover(ctx context.Context, unread Due, since int64) error {
	now := t.Dispatch.Now().UnixMilli()
	unread.Wake, unread.Timers = min(unread.Wake, now), unread.Timers && unread.Wake <= now
	if err := t.place(ctx, unread, now); err != nil {
		return fmt.Errorf("place the cursors: %w", err)
	}
	ticker, err := t.ticker()
	if err != nil {
		return err
	}
	_, err = ticker.Recover(ctx, since, func(string) bool { return false })
	return err
}

func (t *Ticks) ticker() (*tick.Ticker, error) {
	return tick.New(tick.Config{Dispatch: t.Dispatch, Metrics: t.Metrics, Owner: "virtual", Log: t.Log, Work: t.Work, Parallel: 1})
}

func (t *Ticks) place(ctx context.Context, d Due, last int64) error {
	items, err := t.Dispatch.Store.Get(ctx, timer.ShardKey(0))
	if err != nil {
		return err
	}
	shard, err := timer.ShardFromItem(0, items[0])
	if err != nil {
		return err
	}
	stood := shard
	now := t.Dispatch.Now().UnixMilli()
	watermark := now
	if d.Timers {
		watermark = d.Wake - 1
	}
	shard.Watermark = max(shard.Watermark, watermark) // a pass has looked a little further than its own instant
	for k := range shard.Swept {
		swept := minuteOf(now - timer.Lags[k].Milliseconds())
		if k == 0 && d.Sweeps {
			swept = d.Minute
		}
		shard.Swept[k] = max(shard.Swept[k], swept)
	}
	// So long before the last pass that its horizon lies before it: a fire at that very instant is not one of those which were found in time.
	shard.Passed = last - 1 - t.Dispatch.LookAhead.Milliseconds()
	shard.Horizon = max(shard.Horizon, t.Dispatch.HorizonAt(shard.Passed))
	if shard.Watermark == stood.Watermark && shard.Swept == stood.Swept && shard.Passed == stood.Passed && shard.Horizon == stood.Horizon {
		return nil
	}
	op, err := shard.Put(t.Dispatch.NewID())
	if err != nil {
		return err
	}
	_, err = t.Dispatch.Write(ctx, op)
	return err
}
