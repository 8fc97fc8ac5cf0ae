package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// workerOf makes a worker with a handler f.
func workerOf(t *testing.T, c *client.Client, change func(*client.WorkerConfig)) (*worker.Worker, error) {
	t.Helper()
	handlers := new(target.Registry)
	if err := handlers.Register("f", func(context.Context, target.Call) (target.Result, error) {
		t.Error("called, and no start was answered")
		return target.Result{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers, Secrets: worker.Secrets})
	if err != nil {
		t.Fatal(err)
	}
	cfg := client.WorkerConfig{Queue: "far", Name: "w-1", Targets: targets, HandlersOnly: true, Elapsed: func() time.Duration { return 0 }}
	change(&cfg)
	return c.Worker(cfg)
}

const offered = `{"items": [{"run": "a~0mwqknmhs", "kind": "handler", "handler": "f", "lease": "30s", "ticket": "t"}]}`

// A start that nobody answers is asked for under one name as long as a lease, and then given up with a word that nothing was
// called.
func TestP5_a_start_that_is_never_answered_is_given_up(t *testing.T) {
	with(t, steps{answer(200, offered)}, func(ctx context.Context, c *client.Client, s *script) {
		w, err := workerOf(t, c, func(*client.WorkerConfig) {})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := w.Pass(ctx, 0); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("given up after %s, want a lease of 30s", took)
		}
		last := len(s.asked) - 1
		if last < 10 {
			t.Fatalf("asked %+v", s.asked)
		}
		for i, a := range s.asked {
			want := "/base/v1/work/start"
			switch i {
			case 0:
				want = "/base/v1/work/take"
			case last:
				want = "/base/v1/work/leave"
			}
			if a.path != want || i > 0 && !strings.Contains(a.body, `"start":"1"`) {
				t.Errorf("request %d: %s %s, want %s of start 1", i, a.path, a.body, want)
			}
		}
	})
}

func TestAWorkerThatIsRefusedForGoodEnds(t *testing.T) {
	for _, code := range []int{401, 403, 404} {
		with(t, steps{broken, problem(503, "stopping"), problem(code, "whatever")}, func(ctx context.Context, c *client.Client, s *script) {
			w, err := workerOf(t, c, func(*client.WorkerConfig) {})
			if err != nil {
				t.Fatal(err)
			}
			var refused *client.Error
			if err := w.Run(ctx); !errors.Is(err, worker.ErrRefused) || !errors.As(err, &refused) || refused.Status != code {
				t.Errorf("%v, want it refused with %d", err, code)
			}
			if len(s.asked) != 3 {
				t.Errorf("%d requests, want it to go on until it is refused", len(s.asked))
			}
		})
	}
}

func TestAWorkerThatCannotBe(t *testing.T) {
	with(t, nil, func(_ context.Context, c *client.Client, _ *script) {
		for name, change := range map[string]func(*client.WorkerConfig){
			"NoQueue":   func(w *client.WorkerConfig) { w.Queue = "" },
			"NoTargets": func(w *client.WorkerConfig) { w.Targets = nil },
			"NoElapsed": func(w *client.WorkerConfig) { w.Elapsed = nil },
			"NoName":    func(w *client.WorkerConfig) { w.Name = "" },
			"ASlash":    func(w *client.WorkerConfig) { w.Name = "a/b" },
			"LongName":  func(w *client.WorkerConfig) { w.Name = strings.Repeat("w", 65) },
		} {
			if _, err := workerOf(t, c, change); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
	})
}
