package sqs

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

// requestBytes bounds the bodies of one request, except for a body that alone has more.
const requestBytes = 256 << 10

// Send puts messages in; see queue.Queue. ErrFull is what SQS throttled in each of several tries.
func (q *Queue) Send(ctx context.Context, priority queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := queue.CheckSend(priority, batch); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	if err := q.open(); err != nil || len(batch) == 0 {
		return nil, err
	}
	l := q.lanes[priority.Rank()]
	all := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, m := range batch {
		all[i] = types.SendMessageBatchRequestEntry{
			MessageBody: aws.String(base64.StdEncoding.EncodeToString(m.Body)),
			// Rounded down: a worker waits out what is left of a second, while nothing makes up for a second lost.
			DelaySeconds: int32(m.Delay / time.Second),
		}
		if m.Group != "" {
			all[i].MessageGroupId = aws.String(m.Group)
		}
		all[i].MessageSystemAttributes, all[i].MessageAttributes = attributesOf(m)
	}
	errs := make([]error, 0, len(batch))
	for len(all) > 0 {
		n, size := 1, len(*all[0].MessageBody)
		for n < len(all) && size+len(*all[n].MessageBody) <= requestBytes {
			size += len(*all[n].MessageBody)
			n++
		}
		some, err := l.sendNow(ctx, all[:n])
		if err != nil {
			if len(errs) == 0 {
				return nil, err
			}
			some = make([]error, n)
			for i := range some {
				some[i] = err
			}
		}
		errs = append(errs, some...)
		all = all[n:]
	}
	return errs, nil
}

// attributesOf is what tools see of a message: X-Ray its own header, others the trace as W3C has it, and the fencing version.
func attributesOf(m queue.Outgoing) (system map[string]types.MessageSystemAttributeValue, own map[string]types.MessageAttributeValue) {
	own = map[string]types.MessageAttributeValue{}
	if header := m.Trace.XRay(); header != "" {
		system = map[string]types.MessageSystemAttributeValue{
			string(types.MessageSystemAttributeNameForSendsAWSTraceHeader): {DataType: aws.String("String"), StringValue: aws.String(header)},
		}
		own["traceparent"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(m.Trace.Traceparent())}
	}
	if m.Fence != 0 {
		own["fence"] = types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: aws.String(strconv.FormatUint(m.Fence, 10))}
	}
	return system, own
}

// sendNow sends what fits into one request.
func (l *lane) sendNow(ctx context.Context, all []types.SendMessageBatchRequestEntry) ([]error, error) {
	url, err := l.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	return l.entries(ctx, "SendMessage", len(all), func(ctx context.Context, still []int) (answer, error) {
		in := &sqs.SendMessageBatchInput{QueueUrl: url}
		for _, i := range still {
			e := all[i]
			e.Id = aws.String(strconv.Itoa(i))
			in.Entries = append(in.Entries, e)
		}
		out, err := l.q.client.SendMessageBatch(ctx, in)
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
