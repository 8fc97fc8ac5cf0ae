package lambda

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// DeadLetter gives the handler that sees to messages which the queues have given up.
func DeadLetter(h *Host) (SQSHandler, error) {
	rescue, err := lease.NewRescue(lease.RescueConfig{Dispatch: h.Node.Dispatch, Blobs: h.Data.Blobs, Metrics: h.Metrics, Log: h.Log})
	if err != nil {
		return nil, err
	}
	return Ending(h, func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		return see(ctx, h, rescue, event), nil
	}), nil
}

// apart is how long one message goes back after another. They may have been given up together because one of them kills workers; apart,
// the others do not meet it again in one batch.
const apart = 5 * time.Second

// see looks at one message after the other: there are few, and each may be what another waits for. What is not seen to in time stays
// where it is, and comes again.
func see(ctx context.Context, h *Host, rescue *lease.Rescue, event events.SQSEvent) events.SQSEventResponse {
	answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	ctx, cancel := h.working(ctx)
	defer cancel()
	for i, r := range event.Records {
		m := sqs.Delivery(queue.Normal, r.Body, r.ReceiptHandle, r.Attributes)
		err := ctx.Err()
		if err == nil {
			err = rescue.See(ctx, m, time.Duration(i)*apart)
		}
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				h.Log.ErrorContext(ctx, "a message of the dead-letter queue stays there", "message", r.MessageId, "error", err)
			}
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		}
	}
	return answer
}
