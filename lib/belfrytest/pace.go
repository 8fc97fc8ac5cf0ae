package belfrytest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/internal/virtual"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// pace moves the clock from one instant at which something is due to the next. What the ticks and workers of a node do all the
// time is done here where the diary or the queue says that there is something to do, by the same code.
type pace struct {
	clock  *virtual.Clock
	diary  *virtual.Diary
	turns  *turns
	ticks  virtual.Ticks
	moving atomic.Bool
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
		p.clock.Set(at)
		return nil
	}
	return err
}

func (p *pace) over(ctx context.Context, at time.Time) error {
	for {
		if err := p.rest(ctx); err != nil {
			return err
		}
		next, ok := p.next()
		if !ok || next.After(at) {
			break
		}
		p.clock.Set(next)
	}
	p.clock.Set(at)
	return p.rest(ctx)
}

// next is the next instant at which there may be something to do.
func (p *pace) next() (at time.Time, ok bool) {
	wake, ok := p.diary.Next()
	if ok {
		at = time.UnixMilli(wake)
	}
	if message, any := p.turns.queue.Next(); any {
		message = message.Add(time.Millisecond - 1).Truncate(time.Millisecond) // the clock shows whole ones
		if !ok || message.Before(at) {
			at, ok = message, true
		}
	}
	return at, ok
}

// rest runs what is due at this instant until there is nothing more.
func (p *pace) rest(ctx context.Context) error {
	for {
		now := p.clock.Now().UnixMilli()
		due := p.diary.Due(now, now)
		if due.Any() {
			if err := p.ticks.Pass(ctx, due, now); err != nil {
				return err
			}
		}
		if err := p.turns.all(ctx); err != nil {
			return err
		}
		if !due.Any() {
			return nil
		}
	}
}
