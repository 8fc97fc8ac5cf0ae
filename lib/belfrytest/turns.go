package belfrytest

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// turns is the source of a worker that takes one run after the other, and only when it is told to.
type turns struct {
	desk    *lease.Desk
	queue   *local.Queue
	now     func() time.Time
	begin   chan struct{} // there may be something to take
	rest    chan error    // there is nothing more, and nothing runs
	over    chan struct{} // closed when the worker has stopped
	stopped func() bool   // nothing more is to be taken; set before the worker begins
	busy    bool          // the worker's own: it was told to, and has not said that it rests
}

func newTurns(desk *lease.Desk, q *local.Queue, now func() time.Time) *turns {
	return &turns{desk: desk, queue: q, now: now, begin: make(chan struct{}), rest: make(chan error), over: make(chan struct{})}
}

// errStopped says that the worker runs nothing any more.
var errStopped = errors.New("this Belfry was stopped")

// all has the worker run whatever can be received, until nothing is left.
func (s *turns) all(ctx context.Context) error {
	select {
	case s.begin <- struct{}{}:
	case <-s.over:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-s.rest:
		return err
	case <-s.over:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Take is called again when what it gave has ended, since the worker has one place.
func (s *turns) Take(ctx context.Context, most int, _ time.Duration) ([]worker.Offer, error) {
	for {
		if !s.busy {
			select {
			case <-s.begin:
				s.busy = true
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if s.stopped() {
			<-ctx.Done() // soon: whoever stopped it has the worker stopped, too
			return nil, ctx.Err()
		}
		offers, err := s.take(ctx, most)
		if len(offers) > 0 {
			return offers, nil
		}
		s.busy = false
		if errors.Is(err, queue.ErrClosed) {
			err = nil
		}
		select {
		case s.rest <- err:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Start is the desk's.
func (s *turns) Start(taking, attempts context.Context, offers []worker.Offer, begun func(int, worker.Attempt, error)) {
	s.desk.Start(taking, attempts, offers, begun)
}

// take gives what can be received, or nothing; messages that give no run are settled on the way.
func (s *turns) take(ctx context.Context, most int) ([]worker.Offer, error) {
	for {
		offers, err := s.desk.Take(ctx, most, 0)
		if err != nil || len(offers) > 0 {
			return offers, err
		}
		if at, ok := s.queue.Next(); !ok || at.After(s.now()) {
			return nil, nil
		}
	}
}
