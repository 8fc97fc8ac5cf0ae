package work

import (
	"context"
	"encoding/base64"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lambda"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

const tenant = "acme"

// stack is the worker function over engines in memory, and what stands between it and its queues.
type stack struct {
	*lambda.Host
	t       *testing.T
	invoke  lambda.SQSHandler
	told    *recorded
	timeout time.Duration // of the function
	jobs    int64
}

// recorded is a queue that tells what it was asked for.
type recorded struct {
	queue.Queue
	mu      sync.Mutex
	extends []queue.Message
	deletes []queue.Message
}

func (r *recorded) Extend(ctx context.Context, d time.Duration, batch ...queue.Message) ([]error, error) {
	r.mu.Lock()
	r.extends = append(r.extends, batch...)
	r.mu.Unlock()
	return r.Queue.Extend(ctx, d, batch...)
}

func (r *recorded) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	r.mu.Lock()
	r.deletes = append(r.deletes, batch...)
	r.mu.Unlock()
	return r.Queue.Delete(ctx, batch...)
}

func newStack(t *testing.T, call target.Func) *stack {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &stack{t: t, told: &recorded{Queue: queuelocal.New(queuelocal.Config{Now: time.Now})}, timeout: 15 * time.Minute}
	began := time.Now()
	elapsed := func() time.Duration { return time.Since(began) }
	log := slog.New(slog.DiscardHandler)
	data := &cloud.Data{Store: memory.New(memory.Config{Now: time.Now}), Blobs: blob.New(memblob.OpenBucket(nil)),
		Queues: map[string]queue.Queue{job.DefaultQueue: s.told}}
	handlers := new(target.Registry)
	must(handlers.Register("f", call))
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	must(err)
	n, err := node.New(t.Context(), node.Config{Store: data.Store, Queues: data.Queues, Blobs: data.Blobs, Targets: targets, Metrics: metrics.New(),
		Now: time.Now, Elapsed: elapsed, NewID: rand.Uint64, Name: "worker", Shared: true, Log: log})
	must(err)
	vault, err := secret.New(secret.Config{Store: data.Store, Now: time.Now, Random: rand.NewChaCha8([32]byte{}), NewID: rand.Uint64})
	must(err)
	s.Host = &lambda.Host{Settings: lambda.Settings{Queue: "sqs://prod-belfry", MaxReceives: 10}, Data: data, Node: n, Vault: vault, Metrics: n.Metrics,
		Log: log, Now: time.Now, Elapsed: elapsed, NewID: rand.Uint64}
	s.invoke, err = calling(s.Host, targets)
	must(err)
	return s
}

// run makes a job and a queued run of it, and sends it.
func (s *stack) run(change ...func(*job.Definition)) run.Run {
	s.t.Helper()
	s.jobs++
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}, Timeout: schedule.Duration(time.Minute)}.WithDefaults()
	for _, c := range change {
		c(&def)
	}
	j := job.Job{Tenant: tenant, Name: "j" + strconv.FormatInt(s.jobs, 10), Generation: s.jobs, Def: def}
	op, err := j.Put(1)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.Data.Store.Write(s.t.Context(), op); err != nil {
		s.t.Fatal(err)
	}
	now := time.Now().UnixMilli()
	r := run.Run{ID: run.RequestID(j.Name, now, rand.Uint64()), Tenant: tenant, State: run.Queued, Trigger: run.ByRequest,
		Priority: queue.Normal, Generation: j.Generation, Created: now}
	if op, err = r.Item(rand.Uint64()); err != nil {
		s.t.Fatal(err)
	}
	versions, err := s.Data.Store.Write(s.t.Context(), op)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Version = versions[0]
	if unsent, err := s.Node.Dispatch.Send(s.t.Context(), []dispatch.Outgoing{{Run: r, Queue: def.Queue}}); err != nil || len(unsent) > 0 {
		s.t.Fatalf("%d not sent, %v", len(unsent), err)
	}
	return r
}

func (s *stack) want(r run.Run, state run.State, attempts int) run.Run {
	s.t.Helper()
	items, err := s.Data.Store.Get(s.t.Context(), r.ID.Key(tenant))
	if err != nil {
		s.t.Fatal(err)
	}
	now, _, err := run.FromItem(tenant, r.ID, items[0])
	if err != nil {
		s.t.Fatal(err)
	}
	if now.State != state || now.Attempt != attempts {
		s.t.Errorf("run %s is %s after %d attempts, want %s after %d", r.ID, now.State, now.Attempt, state, attempts)
	}
	return now
}

const normalARN = "arn:aws:sqs:eu-west-1:123456789012:prod-belfry-default-normal"

// event is what Lambda gives the function, of up to so many messages that wait.
func (s *stack) event(most int) (events.SQSEvent, []queue.Message) {
	s.t.Helper()
	var event events.SQSEvent
	var taken []queue.Message
	for len(taken) < most {
		got, err := s.told.Receive(s.t.Context(), min(most-len(taken), queue.MaxBatch), 0, 6*s.timeout)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		taken = append(taken, got...)
	}
	for i, m := range taken {
		event.Records = append(event.Records, events.SQSMessage{MessageId: "m" + strconv.Itoa(i), ReceiptHandle: m.Receipt,
			Body: base64.StdEncoding.EncodeToString(m.Body), EventSourceARN: normalARN, EventSource: "aws:sqs",
			Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.Receives), "SentTimestamp": strconv.FormatInt(m.Sent.UnixMilli(), 10)}})
	}
	return event, taken
}

// mapping does what an event source mapping does, once: it gives the function a batch, and deletes what is not in its answer.
func (s *stack) mapping(most int) (failed []events.SQSBatchItemFailure, messages int) {
	s.t.Helper()
	event, taken := s.event(most)
	ctx, cancel := context.WithTimeout(s.t.Context(), s.timeout)
	defer cancel()
	answer, err := s.invoke(ctx, event)
	if err != nil {
		s.t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, f := range answer.BatchItemFailures {
		kept[f.ItemIdentifier] = true
	}
	for i, m := range taken {
		if !kept["m"+strconv.Itoa(i)] {
			if _, err := s.told.Queue.Delete(s.t.Context(), m); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return answer.BatchItemFailures, len(taken)
}

// depth is how many messages there are: to be had now, and in all.
func (s *stack) depth() (ready, all int64) {
	s.t.Helper()
	depth, err := s.told.Depth(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range depth {
		ready, all = ready+d.Ready, all+d.Ready+d.Delayed+d.Taken
	}
	return ready, all
}
