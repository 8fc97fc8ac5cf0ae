package node_test

import (
	"context"
	"math/rand/v2"
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
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func TestANodeFiresOnTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var started []time.Time
		handlers := new(target.Registry)
		if err := handlers.Register("note", func(ctx context.Context, call target.Call) (target.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, time.Now())
			return target.Result{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
		if err != nil {
			t.Fatal(err)
		}
		n, err := node.New(t.Context(), node.Config{
			Store:   memory.New(memory.Config{Now: time.Now}),
			Queues:  map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})},
			Blobs:   blob.New(memblob.OpenBucket(nil)),
			Targets: targets, Metrics: metrics.New(), Now: time.Now,
			Elapsed: func() time.Duration { return time.Since(begin) }, NewID: rand.Uint64, Name: "test-1",
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		time.Sleep(1500 * time.Millisecond)
		def := job.Definition{Schedule: &schedule.Spec{Every: schedule.Duration(time.Second)},
			Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
		if _, _, err := n.Control.Put(ctx, "default", "tick", def, control.Match{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		runs, _, err := n.Control.Runs(ctx, "default", control.RunFilter{Job: "tick"}, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for _, r := range runs {
			if r.State == run.Succeeded {
				ended++
			}
		}
		mu.Lock()
		for i, at := range started {
			if at.Nanosecond() != 0 {
				t.Errorf("start %d at %s, want the second", i, at)
			}
		}
		if len(started) != 60 || ended != 60 {
			t.Errorf("%d starts in a minute, %d runs succeeded, want 60 of each", len(started), ended)
		}
		mu.Unlock()
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
