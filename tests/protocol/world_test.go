package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// base is when every world begins: a full hour.
var base = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// world is what all hosts share: the store, the queue, the true time.
type world struct {
	testing.TB
	lookAhead time.Duration
	lease     time.Duration // of a shard; courtesy, so nearly none unless a test is about it
	compile   func(schedule.Spec) (job.Fires, error)

	elapsed time.Duration // true time since base
	stepped time.Duration // how far all wall clocks are from the true time

	store  *memory.Store
	queue  *local.Queue
	blobs  *blob.Bucket
	layout timer.Layout
	lastID uint64
	hosts  map[string]*host

	fate func(queue.Outgoing) (lost, doubled bool) // of messages; nil: all arrive

	mu       sync.Mutex
	keys     map[store.Key]uint64 // every item ever written, with its highest version
	shrunk   []string             // versions that did not grow
	starts   []start
	edits    []edit
	history  map[string]map[int64]generation // by tenant#job and generation
	handlers *target.Registry
}

// start is one call of the target.
type start struct {
	tenant     string
	id         run.ID
	attempt    int
	fence      uint64
	at         int64 // Unix ms, by the worker's clock
	generation int64 // of the definition that it ran
	answered   int   // how many edits had been answered
}

// edit is an edit that was answered.
type edit struct {
	tenant, job string
	generation  int64
	at          int64 // Unix ms, the instant it speaks of
}

type option func(*world)

func lookAhead(d time.Duration) option { return func(w *world) { w.lookAhead = d } }

func newWorld(t testing.TB, options ...option) *world {
	w := &world{TB: t, lookAhead: 2 * time.Second, lease: time.Millisecond, compile: job.Compile, hosts: map[string]*host{}, keys: map[store.Key]uint64{},
		history:  map[string]map[int64]generation{},
		handlers: new(target.Registry)}
	for _, o := range options {
		o(w)
	}
	w.store = memory.New(memory.Config{})
	w.queue = local.New(local.Config{Now: func() time.Time { return base.Add(w.elapsed) }})
	w.blobs = blob.New(memblob.OpenBucket(nil))
	w.must(w.handlers.Register("note", w.note))
	var err error
	w.layout, err = timer.Setup(context.Background(), w.store, 1, w.now(), w.newID)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	if err != nil {
		w.Helper()
		w.Fatal(err)
	}
}

// now is the wall clock of a host whose clock is right, Unix ms.
func (w *world) now() int64 { return base.Add(w.elapsed + w.stepped).UnixMilli() }

func (w *world) newID() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++ // small, so that pauses between tries are nanoseconds
	return w.lastID
}

func (w *world) note(_ context.Context, call target.Call) (target.Result, error) {
	id, err := run.ParseID(call.Run)
	if err != nil {
		return target.Result{}, err
	}
	r, _ := w.run(call.Tenant, id)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts = append(w.starts, start{tenant: call.Tenant, id: id, attempt: call.Attempt, fence: call.Fence, at: w.now(),
		generation: r.Generation, answered: len(w.edits)})
	return target.Result{}, nil
}

// host is one process: its caches, its clock, its fate.
type host struct {
	*world
	name     string
	skew     time.Duration // its clock minus the true one; the store does not tell
	store    *faulty.Store
	dispatch *dispatch.Dispatcher
	ticker   *tick.Ticker
	control  *control.Service
	worker   *worker.Worker

	// before decides on each operation of the store and each message sent that could matter, counted from 1. nil: all pass.
	before func(op operation) faulty.Fault
	ops    int
}

// operation is one step of a host that others could see, or that sees others.
type operation struct {
	n    int
	text string
	call faulty.Call // zero for a message
	sent *queue.Outgoing
}

func (o operation) writes() bool {
	return o.sent != nil || o.call.Method == faulty.Write || o.call.Method == faulty.WriteEach
}

// errCrashed is what a dead host's operations give.
var errCrashed = errors.New("this host has crashed")

// host gives the host of a name, started where it is not.
func (w *world) host(name string) *host {
	if h := w.hosts[name]; h != nil {
		return h
	}
	h := &host{world: w, name: name}
	h.store = faulty.New(w.store, h.hook)
	send := func(_ queue.Priority, m queue.Outgoing) (fate queuedFate) {
		fault := h.ask(operation{text: "send", sent: &m})
		fate.err, fate.drop = fault.Refuse, fault.Refuse != nil
		if fault.Lose != nil {
			fate.err = fault.Lose
		}
		if w.fate != nil && !fate.drop {
			fate.drop, fate.double = w.fate(m)
		}
		return fate
	}
	now := func() time.Time { return base.Add(w.elapsed + w.stepped + h.skew) }
	queues := map[string]queue.Queue{job.DefaultQueue: wrap(w.queue, send)}
	var err error
	h.dispatch, err = dispatch.New(dispatch.Config{
		Store: h.store, Book: job.NewBook(h.store, w.compile), Queues: queues, Layout: w.layout, Now: now,
		Elapsed: func() time.Duration { return w.elapsed }, NewID: w.newID, LookAhead: w.lookAhead,
	})
	w.must(err)
	h.ticker, err = tick.New(tick.Config{Dispatch: h.dispatch, Metrics: metrics.New(), Owner: name, Parallel: 1, Lease: w.lease})
	w.must(err)
	h.control, err = control.New(control.Config{Store: h.store, Blobs: w.blobs, Dispatch: h.dispatch, Now: now, NewID: w.newID, Can: func(string, target.Spec) error { return nil }})
	w.must(err)
	targets, err := target.New(target.Config{Now: now, Handlers: w.handlers})
	w.must(err)
	desk, err := lease.New(lease.Config{Dispatch: h.dispatch, Queue: job.DefaultQueue, Blobs: w.blobs, Metrics: metrics.New(), Name: name})
	w.must(err)
	h.worker, err = worker.New(worker.Config{Source: desk, Targets: targets, Elapsed: h.dispatch.Elapsed, Concurrency: 1})
	w.must(err)
	w.hosts[name] = h
	return h
}

// restart forgets the host: the next use of its name is a new process.
func (w *world) restart(name string) *host {
	delete(w.hosts, name)
	return w.host(name)
}

func (h *host) hook(_ context.Context, c faulty.Call) faulty.Fault {
	h.remember(c)
	if idle(h.world, c) {
		return faulty.Fault{}
	}
	return h.ask(operation{text: describe(c), call: c})
}

func (h *host) ask(op operation) faulty.Fault {
	h.ops++
	op.n = h.ops
	if h.before == nil {
		return faulty.Fault{}
	}
	return h.before(op)
}

// idle tells whether a call is a look into a bucket that was never written: no state of others can be seen in it.
func idle(w *world, c faulty.Call) bool {
	if c.Method != faulty.Query || !strings.HasPrefix(c.Range.Partition, "due#") {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.keys[store.Key{Partition: c.Range.Partition}]
	return !known
}

func (w *world) remember(c faulty.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, op := range c.Ops {
		if _, seen := w.keys[op.Key]; !seen {
			w.keys[op.Key] = 0
		}
		w.keys[store.Key{Partition: op.Key.Partition}] = 0 // marks the partition as written
	}
}

// watch looks at every item: P6 wants versions that only grow.
func (w *world) watch() {
	for _, item := range w.items("") {
		if highest := w.keys[item.Key]; item.Version < highest {
			w.shrunk = append(w.shrunk, fmt.Sprintf("%s fell from version %d to %d", item.Key, highest, item.Version))
		}
		w.keys[item.Key] = item.Version
	}
}

// items gives all that stands in partitions of a prefix, in the order of the keys.
func (w *world) items(prefix string) []store.Item {
	var keys []store.Key
	w.mu.Lock()
	for k := range w.keys {
		if k.Sort != "" && strings.HasPrefix(k.Partition, prefix) {
			keys = append(keys, k)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(keys, func(a, b store.Key) int { return strings.Compare(a.String(), b.String()) })
	var all []store.Item
	for len(keys) > 0 {
		n := min(len(keys), store.MaxKeys)
		items, err := w.store.Get(context.Background(), keys[:n]...)
		w.must(err)
		for _, item := range items {
			if item.Exists() {
				all = append(all, item)
			}
		}
		keys = keys[n:]
	}
	return all
}

func describe(c faulty.Call) string {
	var text []string
	for _, k := range c.Keys {
		text = append(text, k.String())
	}
	for _, op := range c.Ops {
		text = append(text, op.Key.String())
	}
	if c.Method == faulty.Query {
		text = append(text, c.Range.Partition)
	}
	return string(c.Method) + " " + strings.Join(text, " ")
}

// work lets a worker handle every message that can be received now.
func (w *world) work() {
	h := w.host("worker")
	ctx := context.Background()
	for {
		depth, err := w.queue.Depth(ctx)
		w.must(err)
		ready := int64(0)
		for _, d := range depth {
			ready += d.Ready
		}
		if ready == 0 {
			return
		}
		w.must(h.worker.Pass(ctx, 0))
	}
}
