// Package work works on runs in AWS Lambda: SQS gives a function the messages of a batch, and the function makes one pass of a worker
// over them. It is apart from package lambda, which all functions link, for the sake of what targets of AWS bring.
package work

import (
	"context"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/target/awstarget"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// Handler gives the handler that works on runs: one event, one pass over its messages, all at once.
func Handler(h *lambda.Host) (lambda.SQSHandler, error) {
	targets, err := target.New(target.Config{Secrets: secret.Finder(h.Vault.Source()), Now: h.Now, AWS: h.Outward(awstarget.New(h.Data.AWS).Call), ARNs: h.ARNs})
	if err != nil {
		return nil, err
	}
	return calling(h, targets)
}

func calling(h *lambda.Host, targets *target.Set) (lambda.SQSHandler, error) {
	address, err := sqs.ParseURL(h.Queue)
	if err != nil {
		return nil, err
	}
	w := &working{Host: h, prefix: address.Prefix, targets: targets}
	return lambda.Ending(h, w.handle), nil
}

type working struct {
	*lambda.Host
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
		one, err := worker.New(worker.Config{Source: desk, Targets: w.targets, Elapsed: w.Elapsed, Log: w.Log, Tracer: w.Tracer})
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		for range (len(b.waiting) + queue.MaxBatch - 1) / queue.MaxBatch {
			passes.Go(func() { errs <- one.Pass(ctx, w.Left(ctx)) })
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
