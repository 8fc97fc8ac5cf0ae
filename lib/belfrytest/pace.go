package belfrytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// pace moves the clock from one instant at which something is due to the next. What the ticks and workers of a node do all the
// time is done here where the diary says that there is something to do, by the same code.
type pace struct {
	clock    *clock
	diary    *diary
	turns    *turns
	dispatch *dispatch.Dispatcher
	metrics  *metrics.Registry
	log      *slog.Logger
	moving   atomic.Bool
}

var errMoving = errors.New("the clock is being moved already: Advance was called by a handler, or by two goroutines at once")

// to moves the clock to an instant, over all that is due on the way. Where Belfry was stopped, nothing is.
func (p *pace) to(ctx context.Context, at time.Time) error {
	if p.moving.Swap(true) {
		return errMoving
	}
	defer p.moving.Store(false)
	err := p.over(ctx, at)
	if errors.Is(err, errStopped) || errors.Is(err, store.ErrClosed) {
		p.clock.set(at.UTC().Truncate(time.Millisecond))
		return nil
	}
	return err
}

func (p *pace) over(ctx context.Context, at time.Time) error {
	for {
		if err := p.rest(ctx); err != nil {
			return err
		}
		next, ok := p.diary.next(at.UnixMilli())
		if !ok {
			break
		}
		p.clock.set(time.UnixMilli(next).UTC())
	}
	p.clock.set(at.UTC().Truncate(time.Millisecond))
	return p.rest(ctx)
}

// rest runs what is due at this instant until there is nothing more.
func (p *pace) rest(ctx context.Context) error {
	for {
		due := p.diary.due(p.clock.Now().UnixMilli())
		if due.timers || due.sweeps {
			if err := p.tick(ctx, due); err != nil {
				return err
			}
		}
		if err := p.turns.all(ctx); err != nil {
			return err
		}
		if !due.timers && !due.sweeps {
			return nil
		}
	}
}

// tick makes a pass over what is due and nothing else. Between the instants of the diary there are no timers, so the shard's
// cursors may be put right before what is due, where passes over all the minutes in between would have moved them. A new
// ticker remembers no cursor of its own.
func (p *pace) tick(ctx context.Context, d due) error {
	items, err := p.dispatch.Store.Get(ctx, timer.ShardKey(0))
	if err != nil {
		return err
	}
	shard, err := timer.ShardFromItem(0, items[0])
	if err != nil {
		return err
	}
	now := p.clock.Now().UnixMilli()
	shard.Watermark = now
	if d.timers {
		shard.Watermark = d.wake - 1
	}
	for k := range shard.Swept {
		shard.Swept[k] = minuteOf(now - timer.Lags[k].Milliseconds())
	}
	if d.sweeps {
		// The first sweep watches over what has not ended. The later ones are for writes and messages that went astray, and none does
		// here.
		shard.Swept[0] = d.minute
	}
	op, err := shard.Put(p.dispatch.NewID())
	if err == nil {
		_, err = p.dispatch.Write(ctx, op)
	}
	if err != nil {
		return fmt.Errorf("place the cursors: %w", err)
	}
	ticker, err := tick.New(tick.Config{Dispatch: p.dispatch, Metrics: p.metrics, Owner: "test", Log: p.log, Parallel: 1})
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

func minuteOf(ms int64) int64 { return ms - ms%60_000 }
