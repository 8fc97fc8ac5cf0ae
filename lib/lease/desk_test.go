package lease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	s := memory.New(memory.Config{})
	d, err := dispatch.New(dispatch.Config{Store: s, Book: job.NewBook(s, job.Compile),
		Queues: map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{})}, Layout: timer.Layout{Shards: 1},
		Now: time.Now, Elapsed: func() time.Duration { return 0 }, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	good := lease.Config{Dispatch: d, Queue: "default", Blobs: blob.New(memblob.OpenBucket(nil)), Metrics: metrics.New(), Name: "w"}
	for name, change := range map[string]func(*lease.Config){
		"NoDispatch": func(c *lease.Config) { c.Dispatch = nil },
		"NoBlobs":    func(c *lease.Config) { c.Blobs = nil },
		"NoMetrics":  func(c *lease.Config) { c.Metrics = nil },
		"NoName":     func(c *lease.Config) { c.Name = "" },
		"LongName":   func(c *lease.Config) { c.Name = string(make([]byte, 101)) },
		"FarName":    func(c *lease.Config) { c.Name = "host/1" },
		"NoSuchPool": func(c *lease.Config) { c.Queue = "other" },
	} {
		cfg := good
		change(&cfg)
		if _, err := lease.New(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := lease.New(good); err != nil {
		t.Error(err)
	}
}

// A host whose clock is off leaves messages to those that may start them, and asks the store for the time until it has heard that its
// clock was set right: it may have nothing else to ask.
func TestP3_Fault07_AHostWhoseClockIsOffTakesNoMessages(t *testing.T) {
	ctx := t.Context()
	asked := 0
	var s *faulty.Store
	s = faulty.New(memory.New(memory.Config{}), func(context.Context, faulty.Call) faulty.Fault {
		if asked++; asked == 3 {
			s.SetSkew(0)
		}
		return faulty.Fault{}
	})
	q := queuelocal.New(queuelocal.Config{})
	d, err := dispatch.New(dispatch.Config{Store: s, Book: job.NewBook(s, job.Compile), Queues: map[string]queue.Queue{"default": q},
		Layout: timer.Layout{Shards: 1}, Now: time.Now, Elapsed: func() time.Duration { return 0 }, NewID: rand.Uint64})
	if err != nil {
		t.Fatal(err)
	}
	desk, err := lease.New(lease.Config{Dispatch: d, Queue: "default", Blobs: blob.New(memblob.OpenBucket(nil)), Metrics: metrics.New(), Name: "w"})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := run.Message{Run: run.Run{ID: run.FireID("j", 1), Tenant: "acme", Version: 1, State: run.Succeeded}, Sent: time.Now().UnixMilli()}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if errs, err := q.Send(ctx, queue.Normal, queue.Outgoing{Body: gone}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	s.SetSkew(time.Hour)
	for range 2 {
		if _, err := desk.Take(ctx, 1, 0); !errors.Is(err, dispatch.ErrSkewed) {
			t.Fatalf("a host an hour off took messages: %v", err)
		}
	}
	if depth, err := q.Depth(ctx); err != nil || depth[queue.Normal].Ready != 1 {
		t.Fatalf("the message was taken: %+v, %v", depth, err)
	}
	if _, err := desk.Take(ctx, 1, 0); err != nil {
		t.Fatalf("the clock is right again: %v", err)
	}
	if depth, err := q.Depth(ctx); err != nil || depth[queue.Normal] != (queue.Depth{}) {
		t.Errorf("the message was not handled: %+v, %v", depth, err)
	}
}
