package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// batch is the messages of an event, as a queue to receive them from. What becomes of a message is told to the queue that it came
// from; of one that is done only where its visibility ends before that of the others, since Lambda deletes what is done.
type batch struct {
	queue.Queue // the pool

	mu      sync.Mutex
	waiting []queue.Message
	open    []string          // IDs of what is not done, in the order of the event
	ids     map[string]string // by receipt
	moved   map[string]bool   // by receipt: whose visibility is not the queue's any more
}

// deliveries are the messages of an event by pool. prefix is that of the queues' names.
func deliveries(prefix string, pools map[string]queue.Queue, event events.SQSEvent) (map[string]*batch, error) {
	batches := map[string]*batch{}
	for _, r := range event.Records {
		pool, priority, err := origin(prefix, r.EventSourceARN)
		if err != nil {
			return nil, err
		}
		b := batches[pool]
		if b == nil {
			if pools[pool] == nil {
				return nil, fmt.Errorf("an event of the queue %s: this function knows no pool %q: add it to BELFRY_QUEUES", r.EventSourceARN, pool)
			}
			b = &batch{Queue: pools[pool], ids: map[string]string{}, moved: map[string]bool{}}
			batches[pool] = b
		}
		b.waiting = append(b.waiting, sqs.Delivery(priority, r.Body, r.ReceiptHandle, r.Attributes))
		b.open = append(b.open, r.MessageId)
		b.ids[r.ReceiptHandle] = r.MessageId
	}
	return batches, nil
}

// origin is the pool and the priority of a queue, by its ARN: arn:aws:sqs:eu-west-1:123456789012:PREFIX-POOL-PRIORITY.
func origin(prefix, arn string) (pool string, priority queue.Priority, err error) {
	name := arn[strings.LastIndexByte(arn, ':')+1:]
	rest, ours := strings.CutPrefix(name, prefix+"-")
	if cut := strings.LastIndexByte(rest, '-'); ours && cut > 0 {
		pool, priority = rest[:cut], queue.Priority(rest[cut+1:])
	}
	if priority.Rank() < 0 {
		return "", "", fmt.Errorf("an event of the queue %q: want one of %s-POOL-PRIORITY, as BELFRY_QUEUE says", arn, prefix)
	}
	return pool, priority, nil
}

// Receive gives messages of the event. Their visibility is the queue's, which is longer than an invocation.
func (b *batch) Receive(ctx context.Context, max int, wait, visibility time.Duration) ([]queue.Message, error) {
	if err := errors.Join(ctx.Err(), queue.CheckReceive(max, wait, visibility)); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(max, len(b.waiting))
	taken := b.waiting[:n]
	b.waiting = b.waiting[n:]
	return taken, nil
}

// Delete marks messages as done.
func (b *batch) Delete(ctx context.Context, messages ...queue.Message) ([]error, error) {
	if err := errors.Join(ctx.Err(), queue.CheckDelete(messages)); err != nil {
		return nil, err
	}
	var now []queue.Message
	b.mu.Lock()
	for _, m := range messages {
		id := b.ids[m.Receipt]
		b.open = slices.DeleteFunc(b.open, func(open string) bool { return open == id })
		if b.moved[m.Receipt] {
			now = append(now, m)
		}
	}
	b.mu.Unlock()
	errs := make([]error, len(messages))
	if len(now) == 0 {
		return errs, nil
	}
	// Its visibility was set anew while it was worked on, and ends soon. Others of the batch may take longer, and until then Lambda
	// deletes nothing.
	if _, err := b.Queue.Delete(ctx, now...); err != nil {
		return nil, err
	}
	return errs, nil
}

// Extend sets visibilities at the queue.
func (b *batch) Extend(ctx context.Context, visibility time.Duration, messages ...queue.Message) ([]error, error) {
	b.mu.Lock()
	for _, m := range messages {
		b.moved[m.Receipt] = true
	}
	b.mu.Unlock()
	return b.Queue.Extend(ctx, visibility, messages...)
}

// failures are the messages that are not done, for Lambda to leave where they are: an empty list and never null, which Lambda and its
// emulators take for something else.
func (b *batch) failures() []events.SQSBatchItemFailure {
	b.mu.Lock()
	defer b.mu.Unlock()
	failures := make([]events.SQSBatchItemFailure, len(b.open))
	for i, id := range b.open {
		failures[i].ItemIdentifier = id
	}
	return failures
}
