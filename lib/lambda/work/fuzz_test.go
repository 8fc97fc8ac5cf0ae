package work

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

// FuzzDeliveries reads anything as an event of SQS. Each message of it is to be worked on once, by the pool of its queue, and is a failure
// until that has been done; an event of a queue that is none of ours is refused whole.
func FuzzDeliveries(f *testing.F) {
	f.Add(`{"Records":[{"messageId":"1","receiptHandle":"r","body":"AaA=","eventSourceARN":"arn:aws:sqs:eu-west-1:123456789012:belfry-default-high","attributes":{"ApproximateReceiveCount":"3","SentTimestamp":"1800000000000"}},
		{"messageId":"2","receiptHandle":"s","body":"no base64","eventSourceARN":"arn:aws:sqs:eu-west-1:123456789012:belfry-a-b-low"}]}`)
	f.Add(`{"Records":[{"eventSourceARN":"belfry--low"}]}`)
	f.Add(`{"Records":[{"eventSourceARN":"belfry-default-none"}]}`)
	pools := map[string]queue.Queue{"default": nil, "a-b": nil}
	for name := range pools {
		pools[name] = &recorded{}
	}
	f.Fuzz(func(t *testing.T, text string) {
		var event events.SQSEvent
		if json.Unmarshal([]byte(text), &event) != nil {
			return
		}
		batches, err := deliveries("belfry", pools, event)
		if err != nil {
			return
		}
		left := len(event.Records)
		for pool, b := range batches {
			if len(b.failures()) != len(b.waiting) {
				t.Fatalf("%s: %d messages wait, and %d are failures", pool, len(b.waiting), len(b.failures()))
			}
			for len(b.waiting) > 0 {
				got, err := b.Receive(t.Context(), queue.MaxBatch, 0, queue.MaxVisibility)
				if err != nil || len(got) == 0 {
					t.Fatalf("%s: %d messages, %v", pool, len(got), err)
				}
				for _, m := range got {
					if m.Priority.Rank() < 0 || m.Receives < 1 {
						t.Fatalf("%s: %+v", pool, m)
					}
				}
				left -= len(got)
			}
		}
		if left != 0 {
			t.Fatalf("of %d messages %d are not worked on", len(event.Records), left)
		}
	})
}
