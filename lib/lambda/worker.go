package lambda

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/target/awstarget"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// SQSHandler answers events of an event source mapping that reports batch item failures.
type SQSHandler func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// Worker gives the handler that works on runs: one event, one pass over its messages, all at once.
func Worker(h *Host) (SQSHandler, error) {
	targets, err := target.New(target.Config{Secrets: secret.Finder(h.Vault.Source()), Now: h.Now, AWS: awstarget.New(h.Data.AWS).Call, ARNs: h.ARNs})
	if err != nil {
		return nil, err
	}
	address, err := sqs.ParseURL(h.Queue)
	if err != nil {
		return nil, err
	}
	w := &working{Host: h, prefix: address.Prefix, targets: targets}
	return Ending(h, w.handle), nil
}

type working struct {
	*Host
	prefix  string
	targets *target.Set
}

// handle works on the messages of an event until they are settled. An error is for what is wrong with the function, and leaves all of
// them in their queue.
func (w *working) handle(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
	batches, err := deliveries(w.prefix, w.Data.Queues, event)
	if err != nil {
		return events.SQSEventResponse{}, err
	}
	var passes sync.WaitGroup
	errs := make(chan error, len(event.Records)+len(batches))
	for pool, b := range batches {
		desk, err := lease.New(lease.Config{Dispatch: w.Node.Dispatch, Queue: pool, From: b, Blobs: w.Data.Blobs, Metrics: w.Metrics,
			Name: w.Node.Name, MaxReceives: w.MaxReceives, Log: w.Log})
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		one, err := worker.New(worker.Config{Source: desk, Targets: w.targets, Elapsed: w.Elapsed, Log: w.Log})
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		for range (len(b.waiting) + queue.MaxBatch - 1) / queue.MaxBatch {
			passes.Go(func() { errs <- one.Pass(ctx, w.left(ctx)) })
		}
	}
	passes.Wait()
	close(errs)
	answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for _, b := range batches {
		answer.BatchItemFailures = append(answer.BatchItemFailures, b.failures()...)
	}
	for err := range errs {
		if err != nil {
			w.Log.ErrorContext(ctx, "messages were not taken, and wait in their queue", "error", err)
		}
	}
	return answer, nil
}

// margin is what an invocation keeps of its time, for attempts to stop, and their ends to be written.
const margin = 15 * time.Second

// left is how long an invocation may go on working, 0 where it has no end.
func (h *Host) left(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := end.Sub(h.Now())
	return max(left-min(margin, left/4), time.Millisecond)
}

// working is the context of what begins nothing new when the invocation is about to end.
func (h *Host) working(ctx context.Context) (context.Context, context.CancelFunc) {
	left := h.left(ctx)
	if left == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, left)
}
