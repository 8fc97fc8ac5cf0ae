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
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// open starts a node over a store and gives what stops it. note is told of every start of a run.
func open(t *testing.T, over store.Store, name string, note func()) (n *node.Node, stop func()) {
	t.Helper()
	handlers := new(target.Registry)
	if err := handlers.Register("note", func(context.Context, target.Call) (target.Result, error) {
		note()
		return target.Result{}, nil
	}); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	n, err = node.New(t.Context(), node.Config{
		Store:   over,
		Queues:  map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})},
		Blobs:   blob.New(memblob.OpenBucket(nil)),
		Targets: targets, Metrics: metrics.New(), Now: time.Now,
		Elapsed: func() time.Duration { return time.Since(begin) }, NewID: rand.Uint64, Name: name,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return n, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func everySecond(t *testing.T, n *node.Node) {
	t.Helper()
	def := job.Definition{Schedule: &schedule.Spec{Every: schedule.Duration(time.Second)},
		Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
	if _, _, err := n.Control.Put(t.Context(), "default", "tick", def, control.Match{}); err != nil {
		t.Fatal(err)
	}
}

func TestANodeFiresOnTheSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var started []time.Time
		n, stop := open(t, memory.New(memory.Config{Now: time.Now}), "test-1", func() {
			mu.Lock()
			defer mu.Unlock()
			started = append(started, time.Now())
		})
		time.Sleep(1500 * time.Millisecond)
		everySecond(t, n)
		time.Sleep(time.Minute)
		runs, _, err := n.Control.Runs(t.Context(), "default", control.RunFilter{Job: "tick"}, "", 100)
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
	})
}

// The node before left its lease on the shard; it is void, and not waited for.
func TestFault17_a_restarted_node_fires_at_once(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := memory.New(memory.Config{Now: time.Now})
		n, stop := open(t, over, "test-1", func() {})
		everySecond(t, n)
		time.Sleep(2500 * time.Millisecond)
		stop()

		var mu sync.Mutex
		var latest time.Duration
		starts := 0
		restarted := time.Now()
		_, stop = open(t, over, "test-2", func() {
			mu.Lock()
			defer mu.Unlock()
			starts++
			latest = time.Since(restarted)
		})
		time.Sleep(5 * time.Second)
		stop()
		mu.Lock()
		defer mu.Unlock()
		if starts != 5 || latest < 4*time.Second {
			t.Errorf("%d starts within 5 s of the restart, the last after %s; want one a second", starts, latest)
		}
	})
}
