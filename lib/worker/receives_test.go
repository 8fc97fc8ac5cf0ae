package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// strict is a queue that gives up a message after so many receives, as one of SQS with a dead-letter queue does.
type strict struct {
	queue.Queue
	most int

	mu      sync.Mutex
	sends   int
	givenUp []queue.Message
}

func (s *strict) Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]queue.Message, error) {
	all, err := s.Queue.Receive(ctx, max, wait, visibility)
	var kept []queue.Message
	for _, m := range all {
		if m.Receives <= s.most {
			kept = append(kept, m)
			continue
		}
		if _, err := s.Delete(ctx, m); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.givenUp = append(s.givenUp, m)
		s.mu.Unlock()
	}
	return kept, err
}

func (s *strict) Send(ctx context.Context, p queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	s.mu.Lock()
	s.sends += len(batch)
	s.mu.Unlock()
	return s.Queue.Send(ctx, p, batch...)
}

func (s *strict) lost(t *testing.T) []queue.Message {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]queue.Message(nil), s.givenUp...)
}

func fiftyAttempts(d *job.Definition) {
	d.Retry = job.Retry{MaxAttempts: 50, Initial: schedule.Duration(time.Second), Factor: 1, Max: schedule.Duration(time.Minute)}
}

func TestP10_Fault21_ARunHasMoreAttemptsThanItsQueueHasReceives(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		q := &strict{Queue: g.queue, most: 5}
		g.queue = q
		g.base = g.dispatcher(g.store, q, time.Now)
		handlers, calls := handler(t, func(context.Context, target.Call) (target.Result, error) {
			return target.Result{}, errors.New("not yet")
		})
		g.process("w1", options{handlers: handlers, desk: lease.Config{MaxReceives: q.most}})
		r := g.start(fiftyAttempts)
		time.Sleep(10 * time.Minute)
		g.want(r, run.Dead, 50)
		if calls.Load() != 50 {
			t.Errorf("%d calls, want 50", calls.Load())
		}
		if lost := q.lost(t); len(lost) > 0 {
			t.Errorf("the queue gave up %d messages of a healthy run", len(lost))
		}
		if q.sends > 1+50/2 {
			t.Errorf("%d messages were sent for 50 attempts, want one in two at most", q.sends)
		}
		g.empty()
	})
}

// Between the fresh message and the end of the old one the process may die. Then there are two.
func TestP10_Fault20_AMessageThatWasReplacedAndNotDeleted(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		inner := &strict{Queue: g.queue, most: 5}
		var lost atomic.Int64
		g.queue = queuefaulty.Wrap(inner, queuefaulty.Hooks{Delete: func(m queue.Message) queuefaulty.Fate {
			if m.Receives > 1 {
				lost.Add(1)
				return queuefaulty.Fate{Drop: true}
			}
			return queuefaulty.Fate{}
		}})
		g.base = g.dispatcher(g.store, g.queue, time.Now)
		handlers, calls := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
			if c.Attempt < 8 {
				return target.Result{}, errors.New("not yet")
			}
			return target.Result{}, nil
		})
		g.process("w1", options{handlers: handlers, desk: lease.Config{MaxReceives: 5}})
		r := g.start(fiftyAttempts)
		time.Sleep(30 * time.Minute)
		g.want(r, run.Succeeded, 8)
		if calls.Load() != 8 || lost.Load() == 0 {
			t.Errorf("%d calls, want 8; %d messages stayed that were replaced, want some", calls.Load(), lost.Load())
		}
	})
}

// A store that is away for a minute has workers hand messages back every other second.
func TestFault45_AStoreThatIsAwayUsesUpNoMessage(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		q := &strict{Queue: g.queue, most: 5}
		g.queue = q
		g.base = g.dispatcher(g.store, q, time.Now)
		handlers, _ := handler(t, succeed)
		var away atomic.Bool
		away.Store(true)
		g.process("w1", options{handlers: handlers, desk: lease.Config{MaxReceives: q.most}, hook: func(context.Context, faulty.Call) faulty.Fault {
			if away.Load() {
				return faulty.Fault{Refuse: store.ErrThrottled}
			}
			return faulty.Fault{}
		}})
		r := g.start(atLeastOnce)
		time.Sleep(10 * time.Minute)
		away.Store(false)
		time.Sleep(time.Minute)
		g.want(r, run.Succeeded, 1)
		if lost := q.lost(t); len(lost) > 0 {
			t.Errorf("the queue gave up %d messages while the store was away", len(lost))
		}
		g.empty()
	})
}
