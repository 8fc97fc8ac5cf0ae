// Package faults_test runs whole schedulers, ticks and workers and control plane together, through the faults that felled
// others, under virtual time. What is proven step by step stands in tests/protocol; here stands what a user would see.
package faults_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

const tenant = "default"

// house is a store that lasts, and nodes that come and go over it. It lives in a synctest bubble.
type house struct {
	*testing.T
	durable *memory.Store
	blobs   *blob.Bucket

	mu     sync.Mutex
	calls  []call
	hook   faulty.Hook
	wrap   func(queue.Queue) queue.Queue
	handle target.Func
	step   time.Duration // how far the hosts' wall clocks are stepped
	every  time.Duration // between two ticks, 0 for the node's own: long, where a test lives for hours
}

// call is one call of the target.
type call struct {
	run     string
	job     string
	nominal time.Time
	at      time.Time
	fence   uint64
}

func newHouse(t *testing.T) *house {
	return &house{T: t, durable: memory.New(memory.Config{}), blobs: blob.New(memblob.OpenBucket(nil))}
}

// running is a node at work.
type running struct {
	*node.Node
	store *faulty.Store
	stop  func()
}

// open starts a node with an empty queue, as a process that has just started.
func (h *house) open(name string) *running {
	h.Helper()
	handlers := new(target.Registry)
	if err := handlers.Register("note", func(ctx context.Context, c target.Call) (target.Result, error) {
		h.mu.Lock()
		h.calls = append(h.calls, call{run: c.Run, job: c.Job, nominal: c.Nominal, at: time.Now(), fence: c.Fence})
		handle := h.handle
		h.mu.Unlock()
		if handle != nil {
			return handle(ctx, c)
		}
		return target.Result{}, nil
	}); err != nil {
		h.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		h.Fatal(err)
	}
	var q queue.Queue = local.New(local.Config{Now: time.Now})
	if h.wrap != nil {
		q = h.wrap(q)
	}
	s := faulty.New(h.durable, func(ctx context.Context, c faulty.Call) faulty.Fault {
		h.mu.Lock()
		hook := h.hook
		h.mu.Unlock()
		if hook == nil {
			return faulty.Fault{}
		}
		return hook(ctx, c)
	})
	began := time.Now()
	n, err := node.New(h.Context(), node.Config{
		Every: h.every, LookAhead: 2 * h.every,
		Store: s, Queues: map[string]queue.Queue{"default": q}, Blobs: h.blobs, Targets: targets, Metrics: metrics.New(),
		Now: func() time.Time {
			h.mu.Lock()
			defer h.mu.Unlock()
			return time.Now().Add(h.step)
		},
		Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Name: name,
	})
	if err != nil {
		h.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	var once sync.Once
	r := &running{Node: n, store: s, stop: func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				h.Error(err)
			}
		})
	}}
	h.Cleanup(r.stop)
	return r
}

// put creates or replaces a job that calls the noting handler.
func (h *house) put(n *running, name string, spec *schedule.Spec, change ...func(*job.Definition)) job.Job {
	h.Helper()
	def := job.Definition{Schedule: spec, Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
	for _, c := range change {
		c(&def)
	}
	j, _, err := n.Control.Put(h.Context(), tenant, name, def, control.Match{})
	if err != nil {
		h.Fatal(err)
	}
	return j
}

// called is how often each fire of a job was called, and whether any call came before its nominal time.
func (h *house) called(name string) map[time.Time]int {
	h.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	fires := map[time.Time]int{}
	for _, c := range h.calls {
		if c.job == name {
			fires[c.nominal]++
			if c.at.Before(c.nominal) {
				h.Errorf("%s was called at %s, before its time", c.run, c.at)
			}
		}
	}
	return fires
}

// once asserts that each fire of a job in [from, to) was called exactly once, and before to nothing else was.
func (h *house) once(name string, every time.Duration, from, to time.Time) {
	h.Helper()
	fires := h.called(name)
	ms := every.Milliseconds()
	for at := time.UnixMilli((from.UnixMilli() + ms - 1) / ms * ms); at.Before(to); at = at.Add(every) {
		if n := fires[at.UTC()]; n != 1 {
			h.Errorf("%s: the fire of %s was called %d times, want once", name, at.UTC().Format(time.TimeOnly), n)
		}
		delete(fires, at.UTC())
	}
	for at, n := range fires {
		if at.Before(to) || n != 1 {
			h.Errorf("%s: called %d times for %s, which is no fire of it", name, n, at)
		}
	}
}

func (h *house) fault(hook faulty.Hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

// runs lists all runs of a job, newest first.
func (h *house) runs(n *running, name string) []run.Run {
	h.Helper()
	var all []run.Run
	for cursor := ""; ; {
		page, next, err := n.Control.Runs(h.Context(), tenant, control.RunFilter{Job: name}, cursor, control.MaxLimit)
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

func states(runs []run.Run) map[run.State]int {
	n := map[run.State]int{}
	for _, r := range runs {
		n[r.State]++
	}
	return n
}

func every(d time.Duration) *schedule.Spec { return &schedule.Spec{Every: schedule.Duration(d)} }

func partitions(prefix string) func(store.Key) bool {
	return func(k store.Key) bool { return len(k.Partition) >= len(prefix) && k.Partition[:len(prefix)] == prefix }
}
