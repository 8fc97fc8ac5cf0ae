package lambda

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// What could not be seen to stays in its queue, each message for itself, and the answer says which.
func TestTheDeadLetterQueueKeepsWhatWasNotSeenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := tickHost(t)
		handle, err := DeadLetter(h)
		if err != nil {
			t.Fatal(err)
		}
		event := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m1", Body: "no message of ours"}, {MessageId: "m2", Body: "nor this"}}}
		ask := func(ctx context.Context) string {
			t.Helper()
			answer, err := handle(ctx, event)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if got := ask(t.Context()); got != `{"batchItemFailures":[]}` {
			t.Errorf("both kept: %s", got)
		}
		if got := h.Metrics.DeadLetters.Value("message"); got != 2 {
			t.Errorf("%d messages were counted, want 2", got)
		}
		late, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		if got := ask(late); !strings.Contains(got, "m1") || !strings.Contains(got, "m2") {
			t.Errorf("without time: %s, want both to stay", got)
		}
		if err := h.Data.Blobs.Close(); err != nil {
			t.Fatal(err)
		}
		if got := ask(t.Context()); !strings.Contains(got, "m1") || !strings.Contains(got, "m2") {
			t.Errorf("without a bucket: %s, want both to stay", got)
		}
	})
}
