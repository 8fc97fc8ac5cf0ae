package simulate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	bloblocal "github.com/belfry-scheduler/belfry/lib/blob/local"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/internal/virtual"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

const tenant = "default"

// house is a scheduler in memory, put together as a node is, whose workers are elsewhere. What it stands on outlives the process.
type house struct {
	clock  *virtual.Clock
	diary  *virtual.Diary
	ledger *ledger
	blobs  *blob.Bucket
	layout timer.Layout
	ids    func() uint64 // of runs on demand
	draws  func() uint64 // of everything else
	drawn  bool          // the waits between attempts are drawn
	jitter job.Jitter
	until  time.Time // the schedules fire up to here
	key    []byte
	starts uint64    // of the process
	fresh  time.Time // by the hosts' clocks: what expires then or later stays, however late it is; zero for the time itself

	pools     []string
	announced []lease.Announced // of each pool

	// looked is told of each run that somebody is about to look at, whose lease is to be what its worker has made it by now.
	looked func(context.Context, run.ID) error

	seams seams

	process
}

// seams are where a demonstration puts faults between the process and what that stands on, and where it looks on. Nil fields are left out.
type seams struct {
	store   func(store.Store) store.Store
	queue   func(queue.Queue) queue.Queue
	wrote   func(*store.Op) // is told of each item that was written, in the middle of the write
	message noteMessage     // is told what is done with each message of a run
}

// process is what a kill ends.
type process struct {
	mail     []*mailbox // of each pool
	dispatch *dispatch.Dispatcher
	ticks    virtual.Ticks
	control  *control.Service
	remote   *lease.Remote
}

// build puts a house together, in which schedules fire up to an instant. The process dies at each cut-th write, 0 for never.
func build(ctx context.Context, s Scenario, seed *uint64, until time.Time, cut int, looked func(context.Context, run.ID) error, between seams) (*house, error) {
	h := &house{looked: looked, seams: between, clock: virtual.NewClock(s.Start), diary: virtual.NewDiary(), drawn: seed != nil, jitter: jitter(seed), until: until}
	var handlers []string
	h.pools, handlers = needs(s)
	if s.Events && between.message != nil {
		return nil, errors.New("a demonstration tells its events itself")
	}
	h.ledger = newLedger(h.diary.Watch(memory.New(memory.Config{Now: h.expiry})), cut, h.clock.Now)
	if s.Events {
		h.ledger.events = map[run.ID][]Event{}
	}
	h.ledger.watch = between.wrote
	draws := rand.New(rand.NewPCG(1, 2))
	if seed != nil {
		draws = rand.New(rand.NewPCG(*seed, 3))
	}
	var drawing sync.Mutex
	h.draws = func() uint64 {
		drawing.Lock()
		defer drawing.Unlock()
		return max(1, draws.Uint64())
	}
	var asked atomic.Uint64 // they are numbered: those of one instant are in the order in which they were asked for
	h.ids = func() uint64 { return asked.Add(1) }
	for _, name := range h.pools {
		h.announced = append(h.announced, lease.Announced{Worker: "worker", Queue: name, Handlers: handlers, HTTP: true, Exec: true, AWS: true, Email: true})
	}
	h.key = make([]byte, 32)
	for i := range 4 {
		binary.BigEndian.PutUint64(h.key[8*i:], h.draws())
	}
	var err error
	if h.layout, err = timer.Setup(ctx, h.ledger, 1, s.Start.UnixMilli(), h.draws); err != nil {
		return nil, err
	}
	if h.blobs, err = bloblocal.Open(ctx, "mem://"); err != nil {
		return nil, err
	}
	return h, h.start()
}

// expiry is the clock by which items expire. It stands while there are no ticks, and until they have read what was due meanwhile: timers outlive
// any absence of a server that cleans up by what it has swept.
func (h *house) expiry() time.Time {
	if !h.fresh.IsZero() {
		return h.fresh
	}
	return h.clock.Now()
}

// start starts the process over what stands.
func (h *house) start() error {
	h.ledger.lives()
	h.starts++
	log := slog.New(slog.DiscardHandler)
	registry := metrics.New()
	queues, pools := map[string]queue.Queue{}, map[string]string{}
	h.mail = make([]*mailbox, len(h.pools))
	note := h.seams.message
	if note == nil && h.ledger.events != nil {
		note = func(id run.ID, _ uint64, event string, hidden time.Duration) { h.ledger.message(id, event, hidden) }
	}
	under := store.Store(h.ledger)
	if h.seams.store != nil {
		under = h.seams.store(h.ledger)
	}
	for i, name := range h.pools {
		h.mail[i] = newMailbox(h.clock.Passed, h.looked, note)
		queues[name], pools[name] = h.mail[i], tenant
		if h.seams.queue != nil {
			queues[name] = h.seams.queue(h.mail[i])
		}
	}
	book := job.NewBook(under, func(spec schedule.Spec) (job.Fires, error) {
		fires, err := job.Compile(spec)
		if err != nil {
			return nil, err
		}
		return ending{fires, h.until}, nil
	})
	book.Jitter = h.jitter
	var err error
	if h.dispatch, err = dispatch.New(dispatch.Config{Store: under, Book: book, Queues: queues, Layout: h.layout, Now: h.clock.Now, Elapsed: h.clock.Elapsed,
		NewID: h.draws, Log: log, Metrics: registry, Blobs: h.blobs, Still: true,
		LookAhead: time.Millisecond, // nothing is claimed before its very instant
	}); err != nil {
		return err
	}
	h.ticks = virtual.Ticks{Dispatch: h.dispatch, Metrics: registry, Log: log}
	if h.ledger.cut > 0 {
		h.ticks.Work = 4 // a pass is to come further than its lease before the server dies again
	}
	if h.remote, err = lease.NewRemote(lease.RemoteConfig{Dispatch: h.dispatch, Blobs: h.blobs, Metrics: registry, Pools: pools, Key: h.key, Epoch: h.starts,
		Log: log}); err != nil {
		return err
	}
	h.control, err = control.New(control.Config{Store: under, Blobs: h.blobs, Dispatch: h.dispatch, Now: h.clock.Now, NewID: h.ids, Log: log,
		Can: func(string, target.Spec) error { return nil },
	})
	return err
}

func (h *house) close() {
	h.remote.Close()
	_ = h.blobs.Close()
}

// definitions are all that a scenario has, in its order.
func definitions(s Scenario) []Job {
	all := slices.Clone(s.Jobs)
	for _, l := range s.Script {
		if l.Do == Put {
			all = append(all, Job{l.Job, l.Definition})
		}
	}
	return all
}

// needs are the pools that definitions name, those of steps among them, and the handlers.
func needs(s Scenario) (pools, handlers []string) {
	queues, named := map[string]bool{job.DefaultQueue: true}, map[string]bool{}
	need := func(queue string, spec target.Spec) {
		if queue != "" {
			queues[queue] = true
		}
		if spec.Handler != nil {
			named[spec.Handler.Name] = true
		}
	}
	for _, j := range definitions(s) {
		need(j.Definition.Queue, j.Definition.Target)
		if w := workflowOf(j.Definition); w != nil {
			for i := range w.Nodes {
				if t := w.Nodes[i].Task; t != nil {
					need(t.Queue, t.Target)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(queues)), slices.Sorted(maps.Keys(named))
}

// workflowOf is the workflow of a definition that was checked, nil for one with another target.
func workflowOf(def job.Definition) *flow.Workflow {
	if def.Target.Workflow == nil {
		return nil
	}
	w, err := flow.Read(def.Target.Workflow)
	if err != nil {
		return nil
	}
	return w
}

// firesLater tells whether a job would fire behind the end of the schedules' time.
func (h *house) firesLater(ctx context.Context, s Scenario) (bool, error) {
	asked := map[string]bool{}
	for _, d := range definitions(s) {
		if asked[d.Name] {
			continue
		}
		asked[d.Name] = true
		j, err := h.dispatch.Book.Job(ctx, tenant, d.Name)
		if err != nil {
			return false, err
		}
		if !j.Active() {
			continue
		}
		fires, err := h.dispatch.Book.Draft(j.Def)
		if err != nil {
			return false, err
		}
		if e, ok := fires.(ending); ok {
			if _, more := e.Fires.Next(e.until); more {
				return true, nil
			}
		}
	}
	return false, nil
}

// ending are the fires of a schedule up to an instant.
type ending struct {
	job.Fires
	until time.Time
}

func (e ending) Next(after time.Time) (time.Time, bool) {
	at, ok := e.Fires.Next(after)
	if !ok || at.After(e.until) {
		return time.Time{}, false
	}
	return at, true
}

func (e ending) Last(from, upTo time.Time) (time.Time, bool) {
	if upTo.After(e.until) {
		upTo = e.until
	}
	if upTo.Before(from) {
		return time.Time{}, false
	}
	return e.Fires.Last(from, upTo)
}

func (e ending) Count(from, upTo time.Time, limit int) (n int, more bool) {
	if upTo.After(e.until) {
		upTo = e.until
	}
	if upTo.Before(from) {
		return 0, false
	}
	return e.Fires.Count(from, upTo, limit)
}

// jitter gives the shares of a seed, and all of the jitter without one.
func jitter(seed *uint64) job.Jitter {
	if seed == nil {
		return func(_, _ string, _ int64, longest time.Duration) time.Duration { return longest }
	}
	return func(tenant, name string, nominal int64, longest time.Duration) time.Duration {
		share := job.Hash(tenant, fmt.Sprint(name, "#", nominal, "#", *seed)) % (uint64(longest.Milliseconds()) + 1)
		return time.Duration(share) * time.Millisecond
	}
}
