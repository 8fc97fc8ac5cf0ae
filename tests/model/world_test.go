package model_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	faultyqueue "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// A world of the model's size, of the real code: one job of one shard, that fires at the instants 1 to 5.
const (
	tenant, name = "default", "a"
	beat         = 2 * time.Second // between two instants
	lookAhead    = 2 * beat        // LA of trace.pml
	most         = 12              // its ticks
	instants     = 5               // its N
)

// origin is the instant 0. The whole world lies in one minute.
var origin = time.Date(2026, 1, 5, 0, 0, 4, 0, time.UTC)

// world is what all processes share.
type world struct {
	*testing.T
	rand     *rand.Rand
	now      int // the true time, in beats since origin
	store    store.Store
	queue    *local.Queue
	layout   timer.Layout
	lastID   uint64
	blobs    *blob.Bucket
	handlers *target.Registry
	trace    *trace
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, rand: rand.New(rand.NewPCG(seed, 1)), store: memory.New(memory.Config{}), handlers: new(target.Registry), blobs: blob.New(memblob.OpenBucket(nil))}
	w.queue = local.New(local.Config{Now: w.clock})
	w.must(w.handlers.Register("note", func(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil }))
	var err error
	w.layout, err = timer.Setup(t.Context(), w.store, 1, origin.Add(-beat).UnixMilli(), w.newID)
	w.must(err)
	_, _, err = w.host("first", &actor{}, 0).control.Put(t.Context(), tenant, name, w.definition(1, 0), control.Match{})
	w.must(err)
	w.trace = newTrace(w)
	return w
}

func (w *world) must(err error) {
	if err != nil {
		w.Helper()
		w.Fatal(err)
	}
}

func (w *world) clock() time.Time { return origin.Add(time.Duration(w.now) * beat) }

func (w *world) newID() uint64 {
	w.lastID++
	return w.lastID
}

// definition fires at every instant, or at every second one, from 1 to 5. No two edits are the same.
func (w *world) definition(every, edit int) job.Definition {
	start, end := origin.Add(beat), origin.Add(instants*beat+time.Second)
	spec := &schedule.Spec{Every: schedule.Duration(time.Duration(every) * beat), Start: &start, End: &end}
	return job.Definition{Description: strings.Repeat("x", edit), Schedule: spec, Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
}

// host is one process of the real code.
type host struct {
	ticker  *tick.Ticker
	control *control.Service
	worker  *worker.Worker
}

// host starts one, whose clock is so many beats ahead, and whose steps are those of what the actor does.
func (w *world) host(owner string, a *actor, ahead int) *host {
	now := func() time.Time { return w.clock().Add(time.Duration(ahead) * beat) }
	elapsed := func() time.Duration { return time.Duration(w.now) * beat }
	seen := stepped{Store: w.store, w: w, a: a}
	queues := map[string]queue.Queue{job.DefaultQueue: faultyqueue.Wrap(w.queue, faultyqueue.Hooks{Send: func(_ queue.Priority, m queue.Outgoing) faultyqueue.Fate { return w.sends(a.p, m) }})}
	d, err := dispatch.New(dispatch.Config{Store: seen, Book: job.NewBook(seen, job.Compile), Queues: queues, Layout: w.layout, Now: now, Elapsed: elapsed,
		NewID: w.newID, LookAhead: lookAhead})
	w.must(err)
	h := &host{}
	// A lease that is over at once: it would keep ticks apart, and is no part of what keeps them right.
	h.ticker, err = tick.New(tick.Config{Dispatch: d, Metrics: metrics.New(), Owner: owner, Parallel: 1, Lease: -time.Millisecond})
	w.must(err)
	h.control, err = control.New(control.Config{Store: seen, Blobs: w.blobs, Dispatch: d, Now: now, NewID: w.newID, Can: func(string, target.Spec) error { return nil }})
	w.must(err)
	targets, err := target.New(target.Config{Now: now, Handlers: w.handlers})
	w.must(err)
	desk, err := lease.New(lease.Config{Dispatch: d, Queue: job.DefaultQueue, Blobs: w.blobs, Metrics: metrics.New(), Name: owner})
	w.must(err)
	h.worker, err = worker.New(worker.Config{Source: desk, Targets: targets, Elapsed: elapsed, Concurrency: 1})
	w.must(err)
	return h
}

var errCrashed = errors.New("this host has crashed")

// process is something that a host does, stopped before each of its steps.
type process struct {
	of     *actor
	edits  bool
	turn   chan bool // the next step may be done; false: it has crashed
	still  chan bool // it waits for its turn; false: it has ended
	seen   seen
	failed error
}

// actor is a host that does one thing at a time.
type actor struct {
	*host
	p    *process
	left int // its last pass, whose cursors its next one may write
}

// step waits for the turn of a process. The worker needs none.
func (p *process) step() error {
	if p == nil {
		return nil
	}
	p.still <- true
	if !<-p.turn {
		return errCrashed
	}
	return nil
}

// begin lets a process go on to its first step.
func (p *process) begin(act func() error) bool {
	p.turn, p.still = make(chan bool), make(chan bool)
	go func() {
		p.failed = act()
		p.still <- false
	}()
	return <-p.still
}

// next does a step, and tells whether there is another.
func (p *process) next(lives bool) bool {
	p.turn <- lives
	return <-p.still
}

// sends is the queue: it loses some messages, and doubles some.
func (w *world) sends(p *process, m queue.Outgoing) faultyqueue.Fate {
	if err := p.step(); err != nil {
		return faultyqueue.Fate{Err: err, Drop: true}
	}
	w.trace.sent(p, m)
	return faultyqueue.Fate{Drop: w.rand.IntN(5) == 0, Double: w.rand.IntN(4) == 0}
}

// stepped is the store as a process sees it: a step for each operation that others could see.
type stepped struct {
	store.Store
	w *world
	a *actor
}

func (s stepped) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	if err := s.a.p.step(); err != nil {
		return nil, err
	}
	items, err := s.Store.Get(ctx, keys...)
	s.w.trace.read(s.a.p, items)
	return items, err
}

func (s stepped) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if !strings.HasPrefix(r.Partition, "due#") || !s.w.trace.ours(r.Partition) { // nothing is ever there
		return s.Store.Query(ctx, r)
	}
	if err := s.a.p.step(); err != nil {
		return store.Page{}, err
	}
	page, err := s.Store.Query(ctx, r)
	s.w.trace.read(s.a.p, page.Items)
	s.w.trace.looked(s.a.p, page)
	return page, err
}

func (s stepped) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	if err := s.a.p.step(); err != nil {
		return nil, errors.Join(err, store.ErrUnknown)
	}
	keys := make([]store.Key, len(ops))
	for i, op := range ops {
		keys[i] = op.Key
	}
	before, err := s.Store.Get(ctx, keys...)
	s.w.must(err)
	versions, failed := s.Store.Write(ctx, ops...)
	s.w.trace.wrote(s.a.p, before, ops, failed)
	return versions, failed
}

func (s stepped) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(ops))
	for _, i := range s.w.rand.Perm(len(ops)) { // in any order, says the port
		versions, err := s.Write(ctx, ops[i])
		if verdicts[i].Err = err; err == nil {
			verdicts[i].Version = versions[0]
		} else if conflict := store.AsConflict(err); conflict != nil {
			conflict.Op = i
		}
	}
	return verdicts, nil
}

// live gives what a world did. In a bubble the machine's clock stands still, so that no lease is renewed because a test was slow.
func live(t *testing.T, seed uint64) (rows []row) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { rows = interleave(t, seed) })
	return rows
}

// interleave lets ticks, edits and a worker go on in an order that the seed draws, sleep, wake and crash.
func interleave(t *testing.T, seed uint64) []row {
	w := newWorld(t, seed)
	hosts := []*actor{{}, {}, {}, {}, {}}
	var busy []*process
	work := w.host("worker", &actor{}, 0)
	edits, passes := 0, 0
	end := func(p *process) {
		p.of.p = nil
		busy = slices.DeleteFunc(busy, func(q *process) bool { return q == p })
		w.trace.ended(p)
	}
	begin := func(n int) {
		a := hosts[n]
		if a.p != nil {
			return
		}
		p := &process{of: a, edits: n >= 3}
		a.p = p
		if a.host == nil { // in a new process
			a.host, a.left = w.host(string(rune('v'+n)), a, w.rand.IntN(2)*(1-n/3)), 0
		}
		var act func() error
		if p.edits {
			if edits++; edits > 2 {
				a.p = nil
				return
			}
			def := w.definition(1+w.rand.IntN(2), edits)
			def.Paused = w.rand.IntN(4) == 0
			act = func() error {
				_, _, err := a.control.Put(context.Background(), tenant, name, def, control.Match{})
				return err
			}
		} else {
			if passes++; passes > most {
				a.p = nil
				return
			}
			act = func() error { _, err := a.ticker.Tick(context.Background()); return err }
		}
		if busy = append(busy, p); !p.begin(act) {
			end(p)
		}
	}
	for range 600 {
		switch x := w.rand.IntN(100); {
		case x < 3 && w.now < 9:
			w.now++
		case x < 8:
			begin(w.rand.IntN(3))
		case x < 11:
			begin(3 + w.rand.IntN(2))
		case x < 16:
			w.must(work.worker.Pass(context.Background(), 0))
		case len(busy) > 0:
			i := len(busy) - 1
			if w.rand.IntN(10) < 6 {
				i = w.rand.IntN(len(busy))
			}
			p, lives := busy[i], w.rand.IntN(120) > 0
			for more := p.next(lives); ; more = p.next(lives) {
				if !more {
					end(p)
				}
				if !lives {
					p.of.host = nil
				}
				if lives || !more {
					break
				}
			}
		}
	}
	for _, p := range busy { // they sleep for ever
		for p.next(false) {
		}
	}
	return slices.DeleteFunc(w.trace.rows, func(r row) bool { return r.b < 0 }) // an edit that read the job, and never came to write it
}
