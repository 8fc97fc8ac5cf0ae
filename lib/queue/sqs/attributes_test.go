package sqs_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

func TestTraceAndFenceAreAttributes(t *testing.T) {
	type attribute struct{ DataType, StringValue string }
	var sent struct {
		Entries []struct{ MessageSystemAttributes, MessageAttributes map[string]attribute }
	}
	q := over(t, through(func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		if operation == "SendMessageBatch" {
			if err := json.Unmarshal(body, &sent); err != nil {
				t.Error(err)
			}
		}
		return forward(body)
	}).over(pool()))
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	from, _ := trace.Parse(parent)
	errs, err := q.Send(t.Context(), queue.Normal,
		queue.Outgoing{Body: []byte("traced"), Trace: from.Context, Fence: 1<<64 - 1}, queue.Outgoing{Body: []byte("plain")})
	if err != nil || errs[0] != nil || errs[1] != nil || len(sent.Entries) != 2 {
		t.Fatalf("%v, %v, %d entries", errs, err, len(sent.Entries))
	}
	first, second := sent.Entries[0], sent.Entries[1]
	header := attribute{"String", "Root=1-0af76519-16cd43dd8448eb211c80319c;Parent=b7ad6b7169203331;Sampled=1"}
	if first.MessageSystemAttributes["AWSTraceHeader"] != header || first.MessageAttributes["traceparent"] != (attribute{"String", parent}) ||
		first.MessageAttributes["fence"] != (attribute{"Number", "18446744073709551615"}) {
		t.Errorf("got %+v", first)
	}
	if len(second.MessageSystemAttributes)+len(second.MessageAttributes) != 0 {
		t.Errorf("got %+v, want nothing", second)
	}
}
