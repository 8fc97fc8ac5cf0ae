package protocol_test

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// base is when every world begins: a full hour.
var base = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// world is what all hosts share: the store, the queue, the true time.
type world struct {
	testing.TB
	lookAhead time.Duration
	lease     time.Duration // of a shard; courtesy, so nearly none unless a test is about it
	rate      int           // of catch-up; 0: the default
	callbacks dispatch.DefaultCallbacks
	shards    int
	counts    bool // the sweeps count runs
	still     bool // dispatch.Config.Still
	compile   func(schedule.Spec) (job.Fires, error)

	elapsed time.Duration // true time since base
	stepped time.Duration // how far all wall clocks are from the true time

	store  store.Store
	kept   *memory.Store // below it
	queue  *local.Queue
	blobs  *blob.Bucket
	layout timer.Layout
	lastID uint64
	hosts  map[string]*host

	fate func(queue.Outgoing) (lost, doubled bool) // of messages; nil: all arrive

	judging sync.Mutex // held while the judge is told, and never over a call of the store
	judge   *oracle.Judge
	apart   time.Duration // oracle.Config.Clocks

	mu       sync.Mutex
	written  map[string]bool // partitions
	starts   []start
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
}

type option func(*world)

func lookAhead(d time.Duration) option { return func(w *world) { w.lookAhead = d } }

// catchUpRate is how many missed fires may start in a second.
func catchUpRate(n int) option { return func(w *world) { w.rate = n } }

// callsForAll are the callbacks of jobs that name none themselves.
func callsForAll(c dispatch.DefaultCallbacks) option { return func(w *world) { w.callbacks = c } }

// shards cuts the store into so many.
func shards(n int) option { return func(w *world) { w.shards = n } }

// counting has the sweeps count runs.
func counting() option { return func(w *world) { w.counts = true } }

// still has no host wait in real time for others to come to a gate beside it.
func still() option { return func(w *world) { w.still = true } }

// clocks says how far hosts' clocks may be from the true one.
func clocks(d time.Duration) option { return func(w *world) { w.apart = d } }

func newWorld(t testing.TB, options ...option) *world {
	w := &world{TB: t, lookAhead: 2 * time.Second, lease: time.Millisecond, shards: 1, compile: job.Compile, hosts: map[string]*host{}, written: map[string]bool{},
		handlers: new(target.Registry), kept: memory.New(memory.Config{})}
	for _, o := range options {
		o(w)
	}
	w.judge = oracle.New(oracle.Config{Compile: func(spec schedule.Spec) (job.Fires, error) { return w.compile(spec) }, Clocks: w.apart,
		CatchUpRate: w.rate, Callbacks: w.callbacks})
	w.store = oracle.Watch(w.kept, func(before, after store.Item) {
		w.told(func(j *oracle.Judge) { j.Stored(w.clock(), before, after) })
	})
	w.queue = local.New(local.Config{Now: func() time.Time { return base.Add(w.elapsed) }})
	w.blobs = blob.New(memblob.OpenBucket(nil))
	w.must(w.handlers.Register("note", w.note))
	w.must(w.handlers.Register("refuse", w.refuse))
	var err error
	w.layout, err = timer.Setup(context.Background(), w.store, w.shards, w.now(), w.newID)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	if err != nil {
		w.Helper()
		w.Fatal(err)
	}
}

// clock is the wall clock of a host whose clock is right.
func (w *world) clock() time.Time { return base.Add(w.elapsed + w.stepped) }

// now is that in Unix ms.
func (w *world) now() int64 { return w.clock().UnixMilli() }

// told has the judge hear of something.
func (w *world) told(tell func(*oracle.Judge)) {
	w.judging.Lock()
	defer w.judging.Unlock()
	tell(w.judge)
}

func (w *world) newID() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++ // small, so that pauses between tries are nanoseconds
	return w.lastID
}

func (w *world) note(_ context.Context, call target.Call) (target.Result, error) {
	return target.Result{}, w.noted(call, true)
}

// refuse is a target that fails.
func (w *world) refuse(_ context.Context, call target.Call) (target.Result, error) {
	if err := w.noted(call, false); err != nil {
		return target.Result{}, err
	}
	return target.Result{}, errors.New("refused")
}

func (w *world) noted(call target.Call, ok bool) error {
	id, err := run.ParseID(call.Run)
	if err != nil {
		return err
	}
	r, _ := w.run(call.Tenant, id)
	w.told(func(j *oracle.Judge) {
		j.Called(oracle.Call{At: w.clock(), Tenant: call.Tenant, Job: call.Job, Run: call.Run, Attempt: call.Attempt, Fence: call.Fence,
			Nominal: call.Nominal, Payload: call.Payload})
		j.Returned(oracle.Return{At: w.clock(), Tenant: call.Tenant, Run: call.Run, Fence: call.Fence, OK: ok})
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts = append(w.starts, start{tenant: call.Tenant, id: id, attempt: call.Attempt, fence: call.Fence, at: w.now(),
		generation: r.Generation})
	return nil
}

// uncounted is the registry of all hosts: nobody reads it, and to make one for each costs as much as many of their acts.
var uncounted = metrics.New()

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

	life context.Context // of its attempts
	dies func()          // ends it: an attempt goes on trying to write its end else

	// before decides on each operation of the store and each message sent that could matter, counted from 1. nil: all pass.
	before func(op operation) faulty.Fault
	ops    int
}

// operation is one step of a host that others could see, or that sees others.
type operation struct {
	n    int
	call faulty.Call // zero for a message
	sent *queue.Outgoing
}

// text is written for those that ask alone: most do not.
func (o operation) text() string {
	if o.sent != nil {
		return "send"
	}
	return describe(o.call)
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
	h.life, h.dies = context.WithCancel(context.Background())
	w.Cleanup(h.dies)
	h.store = faulty.New(w.store, h.hook)
	send := func(_ queue.Priority, m queue.Outgoing) (fate queuedFate) {
		fault := h.ask(operation{sent: &m})
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
		Store: looked{h.store, w.wrote}, Book: job.NewBook(h.store, w.compile), Queues: queues, Layout: w.layout, Now: now,
		Elapsed: func() time.Duration { return w.elapsed }, NewID: w.newID, LookAhead: w.lookAhead,
		CatchUpRate: w.rate, Callbacks: w.callbacks, Blobs: w.blobs, Still: w.still, Metrics: uncounted,
	})
	w.must(err)
	h.ticker, err = tick.New(tick.Config{Dispatch: h.dispatch, Metrics: uncounted, Owner: name, Parallel: 1, Lease: w.lease, Counts: w.counts})
	w.must(err)
	h.control, err = control.New(control.Config{Store: h.store, Blobs: w.blobs, Dispatch: h.dispatch, Now: now, NewID: w.newID, Can: func(string, target.Spec) error { return nil }})
	w.must(err)
	targets, err := target.New(target.Config{Now: now, Handlers: w.handlers})
	w.must(err)
	desk, err := lease.New(lease.Config{Dispatch: h.dispatch, Queue: job.DefaultQueue, Blobs: w.blobs, Metrics: uncounted, Name: name})
	w.must(err)
	still := func() time.Duration { return 0 } // no attempt here is renewed: a call takes no time, and who is stopped in one does nothing
	h.worker, err = worker.New(worker.Config{Source: desk, Targets: targets, Elapsed: still, Concurrency: 1})
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
	return h.ask(operation{call: c})
}

func (h *host) ask(op operation) faulty.Fault {
	h.ops++
	op.n = h.ops
	if h.before == nil {
		return faulty.Fault{}
	}
	return h.before(op)
}

// looked is a host's store, without the looks into buckets that were never written: no state of others can be seen in them, so none is
// an operation that a test could break, and there are 64 in each pass.
type looked struct {
	store.Store
	wrote func(partition string) bool
}

func (l looked) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if strings.HasPrefix(r.Partition, "due#") && !l.wrote(r.Partition) {
		return store.Page{}, nil
	}
	return l.Store.Query(ctx, r)
}

func (w *world) wrote(partition string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written[partition]
}

func (w *world) remember(c faulty.Call) {
	if len(c.Ops) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, op := range c.Ops {
		w.written[op.Key.Partition] = true
	}
}

// items gives all that stands in partitions that begin with a text, in the order of the keys.
func (w *world) items(partition string) []store.Item {
	var all []store.Item
	w.must(w.kept.Export(context.Background(), func(item store.Item) error {
		if strings.HasPrefix(item.Partition, partition) {
			all = append(all, item)
		}
		return nil
	}))
	slices.SortFunc(all, func(a, b store.Item) int {
		return cmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
	})
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
