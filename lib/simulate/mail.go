package simulate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// mailbox is a pool's queue. While a tick makes its pass, which goes by the buckets of its timers, it keeps what is sent, and puts it in the
// order of the fires. No call of it ends by a context, since these have bounds in real time.
type mailbox struct {
	*local.Queue
	looked func(context.Context, run.ID) error // is told of each run whose message is received
	note   noteMessage                         // is told what is done with each message; nil where nobody asks
	taken  map[string]named                    // what a message names, by receipt, which is all that a worker elsewhere keeps of it; nil where nobody asks

	kept queue.Message // that was kept back by the newest Extend; zero for none

	mu    sync.Mutex
	holds bool
	held  []letter
}

// noteMessage is told what is done with a message of a run, under which fence it would be started by that, and for how long nobody can take it then.
type noteMessage func(id run.ID, fence uint64, event string, hidden time.Duration)

// named is what a message names: a run, and the fence that an attempt would start under.
type named struct {
	id    run.ID
	fence uint64
}

type letter struct {
	priority queue.Priority
	out      queue.Outgoing
	id       run.ID
}

func newMailbox(now func() time.Time, looked func(context.Context, run.ID) error, note noteMessage) *mailbox {
	m := &mailbox{Queue: local.New(local.Config{Now: now}), looked: looked, note: note}
	if note != nil {
		m.taken = map[string]named{}
	}
	return m
}

func (m *mailbox) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds = true
}

// release sends what was kept: what is due first, and then by the names of the jobs.
func (m *mailbox) release(ctx context.Context) error {
	m.mu.Lock()
	held := m.held
	m.holds, m.held = false, nil
	m.mu.Unlock()
	if len(held) > 1 {
		for i := range held {
			message, err := run.DecodeMessage(held[i].out.Body)
			if err != nil {
				return err
			}
			held[i].id = message.Run.ID
		}
		slices.SortStableFunc(held, func(a, b letter) int {
			return cmp.Or(cmp.Compare(a.id.Nominal, b.id.Nominal), strings.Compare(a.id.Job, b.id.Job))
		})
	}
	for _, l := range held {
		errs, err := m.send(ctx, l.priority, l.out)
		if err = errors.Join(append(errs, err)...); err != nil && !errors.Is(err, queue.ErrFull) { // its check sends what a full queue refuses
			return err
		}
	}
	return nil
}

func (m *mailbox) Send(ctx context.Context, priority queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	m.mu.Lock()
	holds := m.holds
	if holds {
		for _, out := range batch {
			m.held = append(m.held, letter{priority: priority, out: out})
		}
	}
	m.mu.Unlock()
	if holds {
		return make([]error, len(batch)), nil
	}
	return m.send(ctx, priority, batch...)
}

func (m *mailbox) send(ctx context.Context, priority queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	errs, err := m.Queue.Send(context.WithoutCancel(ctx), priority, batch...)
	for i := range errs {
		if m.note == nil || errs[i] != nil {
			continue
		}
		message, err := run.DecodeMessage(batch[i].Body)
		if err != nil {
			return errs, err
		}
		m.note(message.Run.ID, batch[i].Fence, eventSent, batch[i].Delay)
	}
	return errs, err
}

// noted tells what was done with the messages of a batch, but for those that have an error of their own.
func (m *mailbox) noted(batch []queue.Message, event string, hidden time.Duration, errs []error) {
	for i := range errs {
		if of, ok := m.taken[batch[i].Receipt]; ok && errs[i] == nil {
			m.note(of.id, of.fence, event, hidden)
		}
	}
}

func (m *mailbox) Receive(ctx context.Context, max int, _, visibility time.Duration) ([]queue.Message, error) {
	messages, err := m.Queue.Receive(context.WithoutCancel(ctx), max, 0, visibility)
	for _, received := range messages {
		message, err := run.DecodeMessage(received.Body)
		if err != nil {
			return nil, err
		}
		if err := m.looked(ctx, message.Run.ID); err != nil {
			return nil, err
		}
		if m.note != nil {
			of := named{message.Run.ID, message.Run.Version + 1}
			m.taken[received.Receipt] = of
			m.note(of.id, of.fence, eventTaken, 0)
		}
	}
	return messages, err
}

func (m *mailbox) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	errs, err := m.Queue.Delete(context.WithoutCancel(ctx), batch...)
	m.noted(batch, eventDeleted, 0, errs)
	return errs, err
}

func (m *mailbox) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	m.mu.Lock()
	m.kept = batch[len(batch)-1]
	m.mu.Unlock()
	errs, err := m.Queue.Extend(context.WithoutCancel(ctx), visibility, batch...)
	m.noted(batch, eventHidden, visibility, errs)
	return errs, err
}

// forget begins a call that may keep a message back.
func (m *mailbox) forget() { m.kept = queue.Message{} }

// keep keeps the message back for longer that the call has kept back.
func (m *mailbox) keep(ctx context.Context, visibility time.Duration) error {
	if m.kept.Receipt == "" || visibility <= 0 {
		return nil
	}
	errs, err := m.Queue.Extend(context.WithoutCancel(ctx), visibility, m.kept)
	return errors.Join(append(errs, err)...)
}

// nextMessage is when a pool has a message that can be received, or never.
func (p *player) nextMessage() int64 {
	next := never
	for _, m := range p.mail {
		if at, ok := m.Next(); ok {
			next = min(next, at.Add(time.Millisecond-1).UnixMilli()) // the clock shows whole ones
		}
	}
	return next
}
