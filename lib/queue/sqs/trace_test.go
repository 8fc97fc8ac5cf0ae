package sqs_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

type spans struct {
	mu  sync.Mutex
	all []trace.Data
}

func (s *spans) Export(d trace.Data) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}
func (s *spans) Flush(context.Context) error { return nil }
func (s *spans) Close(context.Context) error { return nil }

func (s *spans) find(t *testing.T, name string) trace.Data {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(d trace.Data) bool { return d.Name == name })
	if i < 0 {
		t.Fatalf("no span %q in %+v", name, s.all)
	}
	return s.all[i]
}

// TestTheTraceGoesThroughTheQueue from the request to the target: in the body, by which the worker goes on with it, and beside it for
// X-Ray and for people.
func TestTheTraceGoesThroughTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var headers []string
		q := over(t, through(func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
			if operation == "SendMessageBatch" {
				var in struct {
					Entries []struct {
						MessageSystemAttributes map[string]struct{ StringValue string }
					}
				}
				if err := json.Unmarshal(body, &in); err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, e := range in.Entries {
					headers = append(headers, e.MessageSystemAttributes["AWSTraceHeader"].StringValue)
				}
				mu.Unlock()
			}
			return forward(body)
		}).over(pool()))
		kept := &spans{}
		tracer, err := trace.New(trace.Config{Export: kept, Ratio: 0, Now: time.Now, NewID: rand.Uint64})
		if err != nil {
			t.Fatal(err)
		}
		called := make(chan trace.Context, 1)
		handlers := new(target.Registry)
		if err := handlers.Register("note", func(_ context.Context, c target.Call) (target.Result, error) {
			called <- c.Trace
			return target.Result{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		n, err := node.New(t.Context(), node.Config{
			Store: memory.New(memory.Config{Now: time.Now}), Queues: map[string]queue.Queue{job.DefaultQueue: q},
			Blobs: blob.New(memblob.OpenBucket(nil)), Targets: targets, Metrics: metrics.New(), Now: time.Now, NewID: rand.Uint64, Name: "test",
			Elapsed: func() time.Duration { return time.Since(began) }, Tracer: tracer,
		})
		if err != nil {
			t.Fatal(err)
		}
		running, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(running) }()

		from, _ := trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		ctx, request := tracer.Begin(trace.With(t.Context(), from), trace.Server, "request")
		def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
		if _, _, err := n.Control.Put(ctx, "acme", "report", def, control.Match{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := n.Control.Trigger(ctx, "acme", "report", control.Request{}); err != nil {
			t.Fatal(err)
		}
		request.End()
		seen := <-called
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}

		asked, sent, attempt, call := kept.find(t, "request"), kept.find(t, "queue send"), kept.find(t, "attempt"), kept.find(t, "target handler")
		if sent.Above != asked.Span || attempt.Above != asked.Span || attempt.Local || call.Above != attempt.Span || seen != call.Context || call.Trace != from.Trace {
			t.Errorf("do not join: %+v, %+v, %+v, %+v; the target saw %+v", asked, sent, attempt, call, seen)
		}
		// A message may be sent more than once.
		if len(headers) == 0 || slices.ContainsFunc(headers, func(h string) bool { return h != asked.XRay() }) {
			t.Errorf("AWSTraceHeader %q, want %q", headers, asked.XRay())
		}
	})
}
