// Package budget_test counts what a run costs at the store, in the units of DynamoDB: one write unit for each KB of an item
// put or deleted, twice that in a transaction of several, one read unit for each 4 KB read strongly, half of it for a cheap
// read (Amazon DynamoDB Developer Guide, "Read and write operations"). What ticks and sweeps do by the minute, and not by the
// run, is counted apart: what they do without anything due, the items by which runs are found by time, which hold some 30
// runs for each unit, and the counts of a minute.
package budget_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
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
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// meter is a store that counts units.
type meter struct {
	store.Store
	mu            sync.Mutex
	writes, reads float64
	index         float64 // written by sweeps
	counts        float64 // so too
	steps         int     // reads of all steps of a workflow's run
}

// standing tells what is counted by the minute: the shards' progress, what the sweeps remember, and what they count.
func standing(partition string) bool {
	return strings.HasPrefix(partition, "shard#") || strings.HasPrefix(partition, "swept#") || strings.HasPrefix(partition, "owed#") || partition == stats.Partition("default")
}

func (m *meter) add(writes, reads float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes += writes
	m.reads += reads
}

func kilobytes(key store.Key, value []byte, unit int) float64 {
	const attributes = 42 // names and numbers beside the value
	return float64((len(key.Partition) + len(key.Sort) + len(value) + attributes + unit - 1) / unit)
}

func (m *meter) wrote(ops []store.Op, factor float64) {
	for _, op := range ops {
		units := factor * kilobytes(op.Key, op.Value, 1024)
		switch {
		case op.Key.Partition == stats.Partition("default"):
			m.mu.Lock()
			m.counts += units
			m.mu.Unlock()
		case standing(op.Key.Partition):
		case op.Key.Partition == run.IndexPartition("default", 0):
			m.mu.Lock()
			m.index += units
			m.mu.Unlock()
		default:
			m.add(units, 0)
		}
	}
}

func (m *meter) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	factor := 1.0
	if len(ops) > 1 {
		factor = 2
	}
	m.wrote(ops, factor)
	return m.Store.Write(ctx, ops...)
}

func (m *meter) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	m.wrote(ops, 1)
	return m.Store.WriteEach(ctx, ops...)
}

func (m *meter) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := m.Store.Get(ctx, keys...)
	m.read(items, 1)
	return items, err
}

func (m *meter) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := m.Store.Peek(ctx, keys...)
	m.read(items, 0.5)
	return items, err
}

func (m *meter) read(items []store.Item, factor float64) {
	for _, i := range items {
		if !standing(i.Partition) {
			m.add(0, factor*kilobytes(i.Key, i.Value, 4096))
		}
	}
}

// Query counts what it read beyond the one unit that an empty bucket costs, which is by the minute.
func (m *meter) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := m.Store.Query(ctx, r)
	bytes := 0
	for _, i := range page.Items {
		if !standing(i.Partition) {
			bytes += len(i.Partition) + len(i.Sort) + len(i.Value) + 42
		}
	}
	if bytes > 0 {
		m.add(0, float64(bytes)/4096)
	}
	if strings.HasPrefix(r.Partition, "step#") {
		m.mu.Lock()
		m.steps++
		m.mu.Unlock()
	}
	return page, err
}

func TestARunKeepsToItsBudget(t *testing.T) {
	ok := func(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil }
	onceFailing := func() target.Func {
		return func(_ context.Context, call target.Call) (target.Result, error) {
			if call.Attempt == 1 {
				return target.Result{}, fmt.Errorf("not yet")
			}
			return target.Result{}, nil
		}
	}
	const fires, requests = 40, 200
	fired := func(jobs int) func(context.Context, *testing.T, *node.Node) {
		return func(ctx context.Context, t *testing.T, n *node.Node) {
			def := job.Definition{Schedule: &schedule.Spec{Cron: "* * * * *"}, Target: target.Spec{Handler: &target.Handler{Name: "h"}}}
			for i := range jobs {
				if _, _, err := n.Control.Put(ctx, "default", fmt.Sprintf("minutely-%02d", i), def, control.Match{}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(fires * time.Minute)
		}
	}
	requested := func(delay time.Duration, key string) func(context.Context, *testing.T, *node.Node) {
		return func(ctx context.Context, t *testing.T, n *node.Node) {
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}}
			if _, _, err := n.Control.Put(ctx, "default", "on-demand", def, control.Match{}); err != nil {
				t.Fatal(err)
			}
			for i := range requests {
				req := control.Request{Delay: new(delay), Payload: []byte(`{"n":1}`)}
				if key != "" {
					req.Key = fmt.Sprint(key, i)
				}
				if _, _, err := n.Control.Trigger(ctx, "default", "on-demand", req); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(delay + 5*time.Minute)
		}
	}
	stops := func(ctx context.Context, _ target.Call) (target.Result, error) {
		<-ctx.Done() // each run but the last gives way
		return target.Result{}, ctx.Err()
	}
	givesWay := func(policy job.OverlapPolicy) func(context.Context, *testing.T, *node.Node) {
		return func(ctx context.Context, t *testing.T, n *node.Node) {
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Overlap: job.Overlap{Policy: policy}}
			if _, _, err := n.Control.Put(ctx, "default", "on-demand", def, control.Match{}); err != nil {
				t.Fatal(err)
			}
			for range requests {
				if _, _, err := n.Control.Trigger(ctx, "default", "on-demand", control.Request{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
			}
			if n := n.Dispatch.Metrics.Runs.Value(run.Cancelled.String()); n != requests-1 {
				t.Errorf("%d runs gave way, want %d", n, requests-1)
			}
		}
	}
	for _, c := range []struct {
		name          string
		handler       target.Func
		make          func(context.Context, *testing.T, *node.Node)
		writes, reads float64 // a run, at most
		runs          float64
		index         float64 // write units of the index a run, at most
		counts        float64 // write units of the counts in all, at most: one a minute
	}{
		{"Fire", ok, fired(1), 4, 1.6, fires, 1, fires}, // alone in its minute
		{"FireAmongFifty", ok, fired(50), 4, 1.6, 50 * fires, 0.05, fires},
		{"FireWithARetry", onceFailing(), fired(1), 6, 3.6, fires, 1, fires},      // the second delivery looks first, and its start at the job: it may be deleted
		{"RequestNow", ok, requested(0, ""), 4, 2.1, requests, 0.06, 2},           // 1.6, and some are looked at again while they wait
		{"RequestLater", ok, requested(time.Hour, ""), 6, 1.6, requests, 0.06, 2}, // put and listed when it is asked for, claimed when it is due
		{"RequestThatEndsAnother", stops, givesWay(job.OverlapReplace), 10, 7.7, requests, 0.06, 5},
		{"RequestThatHasAnotherStop", stops, givesWay(job.OverlapCancel), 25, 13.5, requests, 0.06, 5},
		{"RequestWithAKey", ok, requested(0, "k"), 5, 2.1, requests, 0.06, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &meter{Store: memory.New(memory.Config{})}
				n := open(t, m, c.handler)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- n.Run(ctx) }()
				time.Sleep(2 * time.Second)
				began := time.Now()
				c.make(ctx, t, n)
				t.Logf("%s: %.2f write units and %.2f read units a run, and %.3f for the index; %.0f runs, %s", c.name, m.writes/c.runs, m.reads/c.runs, m.index/c.runs, c.runs, time.Since(began))
				const slack = 1.1 // the job's own writes, and the first successor
				if m.writes/c.runs > c.writes*slack || m.reads/c.runs > c.reads*slack {
					t.Errorf("%.2f write units and %.2f read units a run, want at most %.0f and %.1f", m.writes/c.runs, m.reads/c.runs, c.writes, c.reads)
				}
				if m.index == 0 || m.index/c.runs > c.index {
					t.Errorf("%.3f write units of the index a run, want some, and at most %.2f", m.index/c.runs, c.index)
				}
				t.Logf("%s: %.0f write units for counts in all", c.name, m.counts)
				if m.counts == 0 || m.counts > c.counts {
					t.Errorf("%.0f write units for counts, want some, and at most %.0f", m.counts, c.counts)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func open(t *testing.T, s store.Store, handler target.Func, change ...func(*node.Config)) *node.Node {
	t.Helper()
	handlers := new(target.Registry)
	if err := handlers.Register("h", handler); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cfg := node.Config{
		Store: s, Queues: map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})},
		Blobs: blob.New(memblob.OpenBucket(nil)), Targets: targets, Metrics: metrics.New(), Now: time.Now,
		Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Name: "budget",
	}
	for _, c := range change {
		c(&cfg)
	}
	n, err := node.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
