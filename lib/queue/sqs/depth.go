package sqs

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

var counted = []types.QueueAttributeName{
	types.QueueAttributeNameApproximateNumberOfMessages,
	types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
}

// remembered is how long a count is told again. SQS counts roughly, and is right a minute after the last change; whoever asks each
// few seconds would pay more for that than for all polls.
const remembered = 20 * time.Second

// Depth counts messages; see queue.Queue. It costs three requests in 20 s, however often it is called.
func (q *Queue) Depth(ctx context.Context) (map[queue.Priority]queue.Depth, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	known, closed := q.depths, q.closed
	q.mu.Unlock()
	switch {
	case closed:
		return nil, queue.ErrClosed
	case known != nil:
		return maps.Clone(known), nil
	}
	var depths [3]queue.Depth
	group, ctx := errgroup.WithContext(ctx)
	for rank, l := range q.lanes {
		group.Go(func() (err error) { depths[rank], err = l.depth(ctx); return err })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := map[queue.Priority]queue.Depth{}
	for rank, d := range depths {
		out[queue.Priorities[rank]] = d
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.depths == nil && !q.closed {
		q.depths = out
		q.forget = time.AfterFunc(remembered, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.depths = nil
		})
	}
	return maps.Clone(out), nil
}

func (l *lane) depth(ctx context.Context) (queue.Depth, error) {
	url, err := l.lookUp(ctx)
	if err != nil {
		return queue.Depth{}, err
	}
	out, err := call(ctx, l.q, answering, func(ctx context.Context) (*sqs.GetQueueAttributesOutput, error) {
		return l.q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: counted})
	})
	if err != nil {
		return queue.Depth{}, l.explain("GetQueueAttributes", err)
	}
	var counts [3]int64
	for i, name := range counted {
		if counts[i], err = strconv.ParseInt(out.Attributes[string(name)], 10, 64); err != nil {
			return queue.Depth{}, l.explain("GetQueueAttributes", errors.New("no "+string(name)+" in the answer"))
		}
	}
	return queue.Depth{Ready: counts[0], Delayed: counts[1], Taken: counts[2]}, nil
}

// Check tells of every queue of the pool that cannot be used, a line each: for a start, which is to fail where the address is wrong.
func (q *Queue) Check(ctx context.Context) error {
	errs := make([]error, len(q.lanes))
	var group errgroup.Group
	for rank, l := range q.lanes {
		group.Go(func() error { _, errs[rank] = l.depth(ctx); return nil })
	}
	group.Wait() //nolint:errcheck // the errors are in errs, all of them
	return errors.Join(errs...)
}
