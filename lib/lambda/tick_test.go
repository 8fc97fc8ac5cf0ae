package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// tickHost is a host over engines of this process.
func tickHost(t *testing.T) (*Host, store.Store) {
	t.Helper()
	targets, err := target.New(target.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	durable := memory.New(memory.Config{})
	data := &cloud.Data{Blobs: blob.New(memblob.OpenBucket(nil))}
	h := &Host{Data: data, Metrics: metrics.New(), Log: slog.New(slog.DiscardHandler), Now: time.Now, Elapsed: elapsed(), NewID: rand.Uint64}
	h.Node, err = node.New(t.Context(), node.Config{Store: durable, Queues: map[string]queue.Queue{"default": local.New(local.Config{Now: time.Now})},
		Blobs: data.Blobs, Targets: targets, Metrics: h.Metrics, Now: h.Now, Elapsed: h.Elapsed, NewID: h.NewID,
		Name: "tick", Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	return h, durable
}

func epoch(t *testing.T, s store.Store) uint64 {
	t.Helper()
	items, err := s.Get(t.Context(), timer.ShardKey(5))
	if err != nil {
		t.Fatal(err)
	}
	shard, err := timer.ShardFromItem(5, items[0])
	if err != nil {
		t.Fatal(err)
	}
	return shard.Epoch
}

// TestTickAnswersBothOfItsEvents holds that the schedule's event makes a pass whatever it says, that a message of another tick makes one
// where something is left, and that no message ever goes back to its queue.
func TestTickAnswersBothOfItsEvents(t *testing.T) {
	h, durable := tickHost(t)
	handle, err := Tick(h)
	if err != nil {
		t.Fatal(err)
	}
	asks := func(help tick.Help) string {
		body, _ := json.Marshal(help)
		event, _ := json.Marshal(map[string]any{"Records": []map[string]string{{"messageId": "1", "eventSource": "aws:sqs", "body": string(body)}}})
		return string(event)
	}
	now := time.Now().UnixMilli()
	left := tick.Help{At: now, Upto: now + 100_000_000, Generation: 1, Shard: 3}
	old := left
	old.At -= 600_000
	for _, c := range []struct {
		what, event string
		passes      uint64
	}{
		{"the schedule's, empty", `{}`, 1},
		{"the schedule's, as EventBridge has it", `{"version":"0","source":"aws.scheduler","detail":"{}"}`, 1},
		{"what is no object", `"tick"`, 1},
		{"help where something is left", asks(left), 1},
		{"help that was asked for long ago", asks(old), 0},
		{"a message that nobody can read", `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"?"}]}`, 0},
	} {
		before := epoch(t, durable)
		answer, err := handle(t.Context(), json.RawMessage(c.event))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if text, _ := json.Marshal(answer); string(text) != `{"batchItemFailures":[]}` {
			t.Errorf("%s: the answer is %s, want an empty list", c.what, text)
		}
		if got := epoch(t, durable) - before; got != c.passes {
			t.Errorf("%s: %d passes over a shard, want %d", c.what, got, c.passes)
		}
	}
}

// outbox takes what is sent.
type outbox struct {
	batches [][]tick.Help
	refuses bool
}

func (o *outbox) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	var batch []tick.Help
	answer := new(sqs.SendMessageBatchOutput)
	for _, e := range in.Entries {
		var help tick.Help
		if err := json.Unmarshal([]byte(aws.ToString(e.MessageBody)), &help); err != nil {
			return nil, err
		}
		batch = append(batch, help)
		if o.refuses {
			answer.Failed = append(answer.Failed, types.BatchResultErrorEntry{Id: e.Id, Message: aws.String("no")})
		}
	}
	o.batches = append(o.batches, batch)
	if aws.ToString(in.QueueUrl) == "" {
		return nil, errors.New("no queue")
	}
	return answer, nil
}

// TestTickAsksByItsQueue holds that helpers are asked for in batches that SQS takes, and that a queue that takes none is told of.
func TestTickAsksByItsQueue(t *testing.T) {
	var sent outbox
	wanted := make([]tick.Help, 15)
	for i := range wanted {
		wanted[i] = tick.Help{At: 1, Upto: 2, Generation: 1, Shard: i}
	}
	c := crew{client: &sent, queue: "https://sqs.example/ticks"}
	if err := c.ask(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	if len(sent.batches) != 2 || len(sent.batches[0]) != 10 || sent.batches[1][4] != wanted[14] {
		t.Errorf("sent %v, want fifteen in batches of ten", sent.batches)
	}
	sent.refuses = true
	if err := c.ask(t.Context(), wanted[:1]); err == nil || !strings.Contains(err.Error(), "https://sqs.example/ticks") {
		t.Errorf("a refusal gave %v, want an error that names the queue", err)
	}
}
