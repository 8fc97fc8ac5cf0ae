package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
)

const (
	// linger is how long a change waits for others that go in the same request. Nobody waits for a message that is done with, and
	// a crash in it lets the message come again, to be found done.
	linger = 20 * time.Millisecond
	// settling bounds a request for settled messages with all its tries, whoever still waits for it.
	settling = 10 * time.Second
)

// change is what is to happen to one delivery: gone, or hidden for that long.
type change struct {
	receipt string
	seconds int32
	done    chan error // holds one
}

// gathering collects changes of one kind to requests of ten. The zero value, with send, is ready.
type gathering struct {
	send func(context.Context, []change) []error

	mu  sync.Mutex
	now *batch // which is filling, nil for none
}

type batch struct {
	changes []change
	full    chan struct{}
}

// put adds a change to the batch that is filling.
func (g *gathering) put(ctx context.Context, q *Queue, c change) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now == nil {
		b := &batch{full: make(chan struct{})}
		// The batch is of several callers: it outlives the context of the one who began it.
		ctx := context.WithoutCancel(ctx)
		q.mu.Lock()
		joined := q.spawn(func() { g.run(ctx, b) })
		q.mu.Unlock()
		if !joined {
			return queue.ErrClosed
		}
		g.now = b
	}
	g.now.changes = append(g.now.changes, c)
	if len(g.now.changes) == queue.MaxBatch {
		close(g.now.full)
		g.now = nil
	}
	return nil
}

// run sends a batch when it is full, or after the linger.
func (g *gathering) run(ctx context.Context, b *batch) {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-b.full:
	case <-timer.C:
	}
	g.mu.Lock()
	if g.now == b {
		g.now = nil
	}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for i, err := range g.send(ctx, b.changes) {
		b.changes[i].done <- err
	}
}

// Delete removes messages; see queue.Queue.
func (q *Queue) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckDelete(batch); err != nil {
		return nil, fmt.Errorf("delete: %w", err)
	}
	return q.settle(ctx, batch, 0, func(l *lane) *gathering { return &l.deletes })
}

// Extend sets visibilities anew, up to whole seconds; see queue.Queue. A message that is visible already stays so.
func (q *Queue) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckExtend(visibility, batch); err != nil {
		return nil, fmt.Errorf("extend: %w", err)
	}
	return q.settle(ctx, batch, seconds(visibility), func(l *lane) *gathering { return &l.extends })
}

func (q *Queue) settle(ctx context.Context, messages []queue.Message, seconds int32, kind func(*lane) *gathering) ([]error, error) {
	if err := q.open(); err != nil {
		return nil, err
	}
	errs := make([]error, len(messages))
	changes := make([]change, len(messages))
	for i, m := range messages {
		rank := m.Priority.Rank()
		if rank < 0 {
			errs[i] = invalid.Field("priority", string(m.Priority), "the priority of a received message")
			continue
		}
		changes[i] = change{receipt: m.Receipt, seconds: seconds, done: make(chan error, 1)}
		if err := kind(q.lanes[rank]).put(ctx, q, changes[i]); err != nil {
			errs[i], changes[i].done = err, nil
		}
	}
	for i, c := range changes {
		if c.done == nil {
			continue
		}
		select {
		case errs[i] = <-c.done:
		case <-ctx.Done():
			errs[i] = ctx.Err() // it is carried out all the same, most likely
		}
	}
	return errs, nil
}

func (l *lane) deleteNow(ctx context.Context, changes []change) []error {
	return l.change(ctx, "DeleteMessage", changes, func(ctx context.Context, url *string, still []int) (answer, error) {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: url}
		for _, i := range still {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(changes[i].receipt)})
		}
		out, err := l.q.client.DeleteMessageBatch(ctx, in)
		if err != nil {
			return answer{}, err
		}
		a := answer{failed: out.Failed}
		for _, s := range out.Successful {
			a.done = append(a.done, aws.ToString(s.Id))
		}
		return a, nil
	})
}

func (l *lane) extendNow(ctx context.Context, changes []change) []error {
	return l.change(ctx, "ChangeMessageVisibility", changes, func(ctx context.Context, url *string, still []int) (answer, error) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url}
		for _, i := range still {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(changes[i].receipt), VisibilityTimeout: changes[i].seconds})
		}
		out, err := l.q.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return answer{}, err
		}
		a := answer{failed: out.Failed}
		for _, s := range out.Successful {
			a.done = append(a.done, aws.ToString(s.Id))
		}
		return a, nil
	})
}

func (l *lane) change(ctx context.Context, action string, changes []change, request func(context.Context, *string, []int) (answer, error)) []error {
	url, err := l.lookUp(ctx)
	var errs []error
	if err == nil {
		errs, err = l.entries(ctx, action, len(changes), func(ctx context.Context, still []int) (answer, error) { return request(ctx, url, still) })
	}
	if err != nil {
		errs = make([]error, len(changes))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// forgiving makes nothing of receipts that are outdated.
func forgiving(send func(context.Context, []change) []error) func(context.Context, []change) []error {
	return func(ctx context.Context, changes []change) []error {
		errs := send(ctx, changes)
		for i, err := range errs {
			errs[i] = outdated(err)
		}
		return errs
	}
}

// outdated forgives what SQS says of a receipt that is not the newest, or whose message is gone or visible again: nothing is changed
// then, and nothing needs to be. That a message may not be hidden for longer is a limit of the port.
func outdated(err error) error {
	var api smithy.APIError
	if err == nil || !errors.As(err, &api) {
		return err
	}
	text := api.ErrorMessage()
	switch code := api.ErrorCode(); {
	case strings.HasSuffix(code, "ReceiptHandleIsInvalid"), strings.HasSuffix(code, "MessageNotInflight"):
		return nil
	case !strings.HasSuffix(code, "InvalidParameterValue"):
		return err
	case strings.Contains(text, "Total VisibilityTimeout"):
		return fmt.Errorf("%w: %w", queue.ErrLimit, err)
	case strings.Contains(text, "ReceiptHandle"):
		return nil
	}
	return err
}

// seconds rounds up: what is hidden for too short a time runs twice.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }
