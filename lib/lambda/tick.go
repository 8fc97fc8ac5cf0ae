package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/belfry-scheduler/belfry/lib/tick"
)

// TickHandler answers what asks for a tick: the schedule, each minute, with whatever it sends, and the messages of other ticks.
type TickHandler func(context.Context, json.RawMessage) (events.SQSEventResponse, error)

// Tick gives the handler of the function that ticks. An invocation works until nothing is left that is due or its time is nearly over;
// where one tick is not enough it has others started by the queue BELFRY_TICK_QUEUE.
func Tick(h *Host) (TickHandler, error) {
	var ask func(context.Context, []tick.Help) error
	if h.TickQueue != "" {
		ask = crew{client: sqs.NewFromConfig(h.Data.AWS), queue: h.TickQueue}.ask
	}
	return Ending(h, func(ctx context.Context, event json.RawMessage) (events.SQSEventResponse, error) {
		turn := tick.Turn{Work: tick.CalledWork, Ask: ask}
		if left := h.Left(ctx); left > 0 {
			turn.Until = h.Elapsed() + left
		}
		// Nothing goes back to the queue: the next tick by the clock asks again, if it must.
		answer := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
		var from events.SQSEvent
		if err := json.Unmarshal(event, &from); err != nil || len(from.Records) == 0 {
			_, err := h.Node.Ticker.Turn(ctx, turn) // by the clock
			if h.Now().Minute() == cleaning {
				h.cleanUp(ctx)
			}
			return answer, err
		}
		var errs []error
		for _, message := range from.Records {
			turn.Help = new(tick.Help)
			if err := json.Unmarshal([]byte(message.Body), turn.Help); err != nil {
				h.Log.ErrorContext(ctx, "a message that asks for help is unreadable and dropped", "message", message.MessageId, "error", err)
				continue
			}
			_, err := h.Node.Ticker.Turn(ctx, turn)
			errs = append(errs, err)
		}
		return answer, errors.Join(errs...)
	}), nil
}

// crew is the queue by which a tick has others started.
type crew struct {
	client interface {
		SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	}
	queue string // its URL
}

// mostEntries is what SQS takes at once.
const mostEntries = 10

func (c crew) ask(ctx context.Context, wanted []tick.Help) error {
	for len(wanted) > 0 {
		n := min(len(wanted), mostEntries)
		entries := make([]types.SendMessageBatchRequestEntry, n)
		for i, help := range wanted[:n] {
			body, err := json.Marshal(help)
			if err != nil {
				return err
			}
			entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body))}
		}
		answer, err := c.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &c.queue, Entries: entries})
		if err != nil {
			return fmt.Errorf("queue %s: %w", c.queue, err)
		}
		if refused := len(answer.Failed); refused == n {
			return fmt.Errorf("queue %s: %s", c.queue, aws.ToString(answer.Failed[0].Message))
		}
		wanted = wanted[n:]
	}
	return nil
}
