package lease_test

import (
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
