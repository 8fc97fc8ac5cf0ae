// Package faulty puts what goes wrong with queues between a test, or a demonstration, and a queue: messages lost, doubled, delayed and refused,
// answers lost. What it does to each message, hooks say; without hooks it does nothing.
package faulty

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

// Fate is what becomes of one message on one way. The zero value is that nothing happens to it.
type Fate struct {
	Err    error         // what the caller is told about it, whatever became of it
	Drop   bool          // it goes no further: not sent, lost after the queue handed it out, not deleted, not extended
	Double bool          // sent or received twice
	Delay  time.Duration // added to a send's own delay, up to what the queue takes
}

// Hooks decide, message by message. Nil lets all messages pass. They are called concurrently where the queue is.
type Hooks struct {
	Send    func(queue.Priority, queue.Outgoing) Fate
	Receive func(queue.Message) Fate // Err fails the whole Receive: what it took is lost till its visibility ends
	Delete  func(queue.Message) Fate
	Extend  func(queue.Message) Fate
}

// Wrap gives a queue that lives through what the hooks say. The port's limits on batches hold for what the caller passes.
func Wrap(q queue.Queue, hooks Hooks) queue.Queue {
	return &faulty{Queue: q, hooks: hooks}
}

type faulty struct {
	queue.Queue
	hooks Hooks
}

func (f *faulty) Send(ctx context.Context, priority queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	if f.hooks.Send == nil {
		return f.Queue.Send(ctx, priority, batch...)
	}
	if err := queue.CheckSend(priority, batch); err != nil {
		return nil, err
	}
	return each(batch, func(m queue.Outgoing) Fate { return f.hooks.Send(priority, m) },
		func(m queue.Outgoing, fate Fate) ([]error, error) {
			m.Delay = min(m.Delay+fate.Delay, queue.MaxDelay)
			if fate.Double {
				if errs, err := f.Queue.Send(ctx, priority, m); err != nil || errs[0] != nil {
					return errs, err
				}
			}
			return f.Queue.Send(ctx, priority, m)
		})
}

func (f *faulty) Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]queue.Message, error) {
	taken, err := f.Queue.Receive(ctx, max, wait, visibility)
	if err != nil || f.hooks.Receive == nil {
		return taken, err
	}
	var arrived []queue.Message
	for _, m := range taken {
		fate := f.hooks.Receive(m)
		if fate.Err != nil {
			return nil, fate.Err
		}
		if !fate.Drop {
			arrived = append(arrived, m)
		}
		if fate.Double && len(arrived) < max {
			arrived = append(arrived, m)
		}
	}
	return arrived, nil
}

func (f *faulty) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	if f.hooks.Delete == nil {
		return f.Queue.Delete(ctx, batch...)
	}
	if err := queue.CheckDelete(batch); err != nil {
		return nil, err
	}
	return each(batch, f.hooks.Delete, func(m queue.Message, _ Fate) ([]error, error) {
		return f.Queue.Delete(ctx, m)
	})
}

func (f *faulty) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	if f.hooks.Extend == nil {
		return f.Queue.Extend(ctx, visibility, batch...)
	}
	if err := queue.CheckExtend(visibility, batch); err != nil {
		return nil, err
	}
	return each(batch, f.hooks.Extend, func(m queue.Message, _ Fate) ([]error, error) {
		return f.Queue.Extend(ctx, visibility, m)
	})
}

// each lets every message of a batch that is not dropped go its way alone.
func each[M any](batch []M, hook func(M) Fate, pass func(M, Fate) ([]error, error)) ([]error, error) {
	errs := make([]error, len(batch))
	for i, m := range batch {
		fate := hook(m)
		errs[i] = fate.Err
		if fate.Drop {
			continue
		}
		passed, err := pass(m, fate)
		if err != nil {
			return nil, err
		}
		if errs[i] == nil {
			errs[i] = passed[0]
		}
	}
	return errs, nil
}
