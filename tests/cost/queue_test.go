package cost

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

// till is a pool's queue that counts requests by Amazon SQS's pricing: each action is one, of up to ten messages, and each 64 KB begun
// of its payload another.
type till struct {
	queue.Queue
	now func() time.Time

	mu       sync.Mutex
	requests float64
	open     time.Time
	gathered int
}

const (
	chunk  = 64 << 10
	linger = 20 * time.Millisecond // lib/queue/sqs gathers changes for that long
)

func (q *till) count(requests float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests += requests
}

func (q *till) Send(ctx context.Context, p queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	bytes := 0
	for _, m := range batch {
		bytes += base64.StdEncoding.EncodedLen(len(m.Body)) // SQS takes text
	}
	q.count(upTo(bytes, chunk))
	return q.Queue.Send(ctx, p, batch...)
}

// Extend counts a request for what is changed within the linger, up to ten.
func (q *till) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	q.mu.Lock()
	for range batch {
		if now := q.now(); q.gathered == 0 || q.gathered == queue.MaxBatch || now.Sub(q.open) > linger {
			q.open, q.gathered = now, 0
			q.requests++
		}
		q.gathered++
	}
	q.mu.Unlock()
	return q.Queue.Extend(ctx, visibility, batch...)
}

// event is the messages that Lambda has received for one invocation, as a queue to take them from. Lambda deletes what is done in
// one request.
type event struct {
	*till

	mu      sync.Mutex
	waiting []queue.Message
	done    []queue.Message
}

// receive is a batch as Lambda would get it, nil where no message is due.
func (q *till) receive(ctx context.Context, most int, visibility time.Duration) (*event, error) {
	messages, err := q.Queue.Receive(ctx, most, 0, visibility)
	if err != nil || len(messages) == 0 {
		return nil, err // what is asked in vain is counted by the month: it costs the same with and without runs
	}
	bytes := 0
	for _, m := range messages {
		bytes += base64.StdEncoding.EncodedLen(len(m.Body))
	}
	q.count(upTo(bytes, chunk))
	return &event{till: q, waiting: messages}, nil
}

func (e *event) Receive(ctx context.Context, most int, wait, visibility time.Duration) ([]queue.Message, error) {
	if err := errors.Join(ctx.Err(), queue.CheckReceive(most, wait, visibility)); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(most, len(e.waiting))
	taken := e.waiting[:n]
	e.waiting = e.waiting[n:]
	return taken, nil
}

func (e *event) Delete(_ context.Context, batch ...queue.Message) ([]error, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = append(e.done, batch...)
	return make([]error, len(batch)), nil
}

// end deletes what is done, as Lambda does after the function has answered.
func (e *event) end(ctx context.Context) error {
	e.mu.Lock()
	done := slices.Clone(e.done)
	e.mu.Unlock()
	if len(done) == 0 {
		return nil
	}
	e.count(1)
	errs, err := e.Queue.Delete(ctx, done...)
	return errors.Join(append(errs, err)...)
}
