package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/changes"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// Config is what a Node stands on. Fields without a default are required.
type Config struct {
	Store   store.Store
	Queues  map[string]queue.Queue // the pools, each with workers here or elsewhere
	Blobs   *blob.Bucket
	Targets *target.Set
	Metrics *metrics.Registry
	Now     func() time.Time
	Elapsed func() time.Duration // since some start, never stepped
	NewID   func() uint64        // random, never 0
	Name    string               // unique over all starts of all processes
	Log     *slog.Logger         // default: discards
	Tracer  *trace.Tracer        // default: traces nothing
	Changes *changes.Hub         // is told what this node writes. Default: nobody is

	// CleansBySwept says that what has expired in the store goes by Swept and not by a clock. Then timers need not be kept.
	CleansBySwept bool

	Shards      int           // of a store that is new. Default 1, with Shared SharedShards
	LookAhead   time.Duration // default 2s, with Shared SharedLookAhead, and the same in all processes
	Every       time.Duration // between two ticks. Default 1s, with Shared SharedEvery; LookAhead must be longer
	Lease       time.Duration // of a run. Default 30s
	CatchUpRate int           // missed fires that are started a second at the most, the same in all processes. Default dispatch.DefaultCatchUpRate
	Concurrency int           // attempts at once, per queue. Default 50
	Grace       time.Duration // for attempts when the node is stopped. Default 20s

	Callbacks dispatch.DefaultCallbacks // of jobs that name none themselves, the same in all processes. Default: none

	// Hurry, when it is closed, ends the grace: its owner has no more time. Default: never.
	Hurry <-chan struct{}

	// Shared says that other processes have this store and these queues too: no lease of theirs is void, the queues keep what they
	// held, and ticks take turns. Default: the node is alone, and does whatever is to be done.
	Shared  bool
	Serves  []string // with Shared: the pools whose runs this process works on. None: it has no workers
	NoTicks bool     // with Shared: others tick

	// Can tells whether the workers of a pool that this process does not work on can call a target: nil, or why not. Default: nothing is
	// known of them.
	Can func(queue string, spec target.Spec) error

	MaxReceives int // how often a queue hands out a message before it takes it away to its dead letters. Default: it never does

	// Damaged names what reads have found damaged where the data is kept, for people; it is asked with each look at the node's state. nil:
	// what keeps the data mends it.
	Damaged func() []string

	Longest   map[string]time.Duration // the longest timeout that a pool's workers can run, by name. Left out: any that a job may have
	Elsewhere map[string]string        // the pools that only workers in other processes serve: by name, whose runs they have
	RemoteKey []byte                   // 32 random bytes, for such workers: the store keeps the first. Default: there are none
	Secrets   target.Secrets           // what targets name, for workers that cannot look it up. Default target.NoSecrets
}

// Defaults where others are on the store too. The look-ahead is that of ticks which come once a minute, as a schedule's do: all
// ticks of a store claim equally far, or one would set back what another has done. A message waits in its queue for its time, so how
// often ticks come makes no run later, and each pass over a shard costs.
const (
	SharedShards    = 16
	SharedLookAhead = 150 * time.Second
	SharedEvery     = 20 * time.Second
)

// alone is the name in the leases of shards of every node that is alone on its store: it goes on at once where an earlier start has
// stopped, and waits out no lease of its own.
const alone = "node"

// Node is a scheduler in one process: control plane, ticks and workers. Control, Dispatch and Ticker may be used without Run.
type Node struct {
	Config
	Control  *control.Service
	Dispatch *dispatch.Dispatcher
	Ticker   *tick.Ticker
	Remote   *lease.Remote // serves workers in other processes; nil without a RemoteKey

	workers map[string]*worker.Worker
	began   int64        // Unix ms: what is requested from here on is sent by this process
	lastOK  atomic.Int64 // Unix ms of the last tick without an error, or of the start
	swept   atomic.Int64 // Unix ms: up to where every sweep has come
}

// New sets the store up and assembles the parts; nothing runs until Run.
func New(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Store == nil || len(cfg.Queues) == 0 || cfg.Blobs == nil || cfg.Targets == nil || cfg.Metrics == nil ||
		cfg.Now == nil || cfg.Elapsed == nil || cfg.NewID == nil || cfg.Name == "" {
		return nil, errors.New("node: Store, Queues, Blobs, Targets, Metrics, Now, Elapsed, NewID and Name are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := cfg.settle(); err != nil {
		return nil, err
	}
	if cfg.CleansBySwept {
		cfg.Store = brief{cfg.Store}
	}
	cfg.Store = metrics.Store(cfg.Store, cfg.Metrics, cfg.Now)
	if cfg.Tracer != nil {
		cfg.Store = trace.Store(cfg.Store)
	}
	if cfg.Changes != nil {
		cfg.Store = changes.Store(cfg.Store, cfg.Changes)
	}
	layout, err := timer.Setup(ctx, cfg.Store, cfg.Shards, cfg.Now().UnixMilli(), cfg.NewID)
	if err != nil {
		return nil, err
	}
	n := &Node{Config: cfg, workers: map[string]*worker.Worker{}, began: cfg.Now().UnixMilli()}
	n.lastOK.Store(n.began)
	if n.Dispatch, err = dispatch.New(dispatch.Config{
		Store: cfg.Store, Book: job.NewBook(cfg.Store, job.Compile), Queues: cfg.Queues, Owners: cfg.Elsewhere, Longest: cfg.Longest, Layout: layout,
		Now: cfg.Now, Elapsed: cfg.Elapsed, NewID: cfg.NewID, Log: cfg.Log, LookAhead: cfg.LookAhead, Lease: cfg.Lease, CatchUpRate: cfg.CatchUpRate,
		Metrics: cfg.Metrics, Tracer: cfg.Tracer, Callbacks: cfg.Callbacks, Blobs: cfg.Blobs, Cancelled: n.cancelled,
	}); err != nil {
		return nil, err
	}
	owner := alone
	if cfg.Shared {
		owner = cfg.Name
	}
	if n.Ticker, err = tick.New(tick.Config{Dispatch: n.Dispatch, Metrics: cfg.Metrics, Owner: owner, Every: cfg.Every, Alone: !cfg.Shared, Counts: true,
		Log: cfg.Log, Tracer: cfg.Tracer}); err != nil {
		return nil, err
	}
	if cfg.RemoteKey != nil {
		key, err := lease.TicketKey(ctx, cfg.Store, cfg.RemoteKey, cfg.NewID())
		if err != nil {
			return nil, err
		}
		if n.Remote, err = lease.NewRemote(lease.RemoteConfig{Dispatch: n.Dispatch, Blobs: cfg.Blobs, Metrics: cfg.Metrics,
			Pools: cfg.Elsewhere, Secrets: cfg.Secrets, Key: key, Epoch: cfg.NewID(), Log: cfg.Log, MaxReceives: cfg.MaxReceives, Shared: cfg.Shared}); err != nil {
			return nil, err
		}
	} else if len(cfg.Elsewhere) > 0 {
		return nil, errors.New("node: Elsewhere without RemoteKey")
	}
	for _, name := range cfg.serves() {
		desk, err := lease.New(lease.Config{Dispatch: n.Dispatch, Queue: name, Blobs: cfg.Blobs, Metrics: cfg.Metrics, Name: cfg.Name, Log: cfg.Log,
			MaxReceives: cfg.MaxReceives})
		if err != nil {
			return nil, err
		}
		if n.workers[name], err = worker.New(worker.Config{
			Source: desk, Targets: cfg.Targets, Elapsed: cfg.Elapsed, Log: cfg.Log, Tracer: cfg.Tracer, Concurrency: cfg.Concurrency, Grace: cfg.Grace, Hurry: cfg.Hurry,
		}); err != nil {
			return nil, err
		}
	}
	n.Control, err = control.New(control.Config{
		Store: cfg.Store, Blobs: cfg.Blobs, Dispatch: n.Dispatch, Now: cfg.Now, NewID: cfg.NewID, Log: cfg.Log,
		Can: func(queue string, spec target.Spec) error {
			switch {
			case n.workers[queue] != nil:
				return cfg.Targets.Can(spec)
			case cfg.Can != nil:
				return cfg.Can(queue, spec)
			}
			return nil // who serves it comes and goes, and what nobody can run waits for who can
		},
		LiveLog: n.liveLog(),
	})
	return n, err
}

// cancelled has the worker of this process that runs it look whether a run is to stop.
func (n *Node) cancelled(tenant string, id run.ID) {
	for _, w := range n.workers {
		w.Cancelled(tenant, id)
	}
}

// liveLog gives what finds the log of an attempt under way: in this process, from a worker that calls it, or by the store that both are on.
func (n *Node) liveLog() func(context.Context, run.Run) (runlog.Log, bool) {
	shared := lease.NewLogReader(n.Dispatch, n.Blobs, n.Log)
	return func(ctx context.Context, r run.Run) (runlog.Log, bool) {
		for _, w := range n.workers {
			if so, ok := w.LiveLog(r.Tenant, r.ID); ok {
				return so, true
			}
		}
		if n.Remote != nil && (!n.Shared || lease.IsRemote(r.Worker)) {
			so, ok := n.Remote.LiveLog(r.Tenant, r.ID)
			if !n.Shared || n.Remote.Hears(r) {
				return so, ok
			}
		}
		if !n.Shared {
			return runlog.Log{}, false
		}
		return shared.LiveLog(ctx, r)
	}
}

// settle gives what was left out its default, and refuses what cannot work.
func (cfg *Config) settle() error {
	def := func(d *time.Duration, alone, shared time.Duration) {
		if *d == 0 && cfg.Shared {
			*d = shared
		} else if *d == 0 {
			*d = alone
		}
	}
	def(&cfg.LookAhead, 2*time.Second, SharedLookAhead)
	def(&cfg.Every, time.Second, SharedEvery)
	if cfg.Shards == 0 && cfg.Shared {
		cfg.Shards = SharedShards
	} else if cfg.Shards == 0 {
		cfg.Shards = 1
	}
	if !cfg.Shared && (len(cfg.Serves) > 0 || cfg.NoTicks) {
		return errors.New("node: Serves or NoTicks without Shared: who is alone on a store does whatever is to be done")
	}
	for _, name := range cfg.Serves {
		if cfg.Queues[name] == nil || cfg.Elsewhere[name] != "" {
			return fmt.Errorf("node: Serves names %q, want one of Queues that is not in Elsewhere", name)
		}
	}
	if cfg.Every >= cfg.LookAhead {
		return fmt.Errorf("node: a tick every %s with a look-ahead of %s: runs would be late; want a longer look-ahead", cfg.Every, cfg.LookAhead)
	}
	return nil
}

// serves are the pools whose runs this process works on.
func (cfg *Config) serves() []string {
	if cfg.Shared {
		return cfg.Serves
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(cfg.Queues)), func(name string) bool { return cfg.Elsewhere[name] != "" })
}

// Run schedules and works until ctx ends, then drains. It returns when all its parts have.
func (n *Node) Run(ctx context.Context) error {
	if n.Remote != nil {
		// Workers elsewhere live on while this process is away, and could not renew their leases.
		n.Dispatch.Unsettle()
		defer context.AfterFunc(ctx, n.Remote.Close)()
	}
	var parts sync.WaitGroup
	parts.Go(func() { <-ctx.Done() }) // where others tick and work, there is nothing else to wait for
	if !n.NoTicks {
		parts.Go(func() { n.tickLoop(ctx) })
		parts.Go(func() { n.housekeeping(ctx) })
	}
	if !n.Shared {
		parts.Go(func() { n.recover(ctx) })
	}
	errs := make([]error, 0, len(n.workers))
	var mu sync.Mutex
	for _, name := range slices.Sorted(maps.Keys(n.workers)) {
		parts.Go(func() {
			err := n.workers[name].Run(ctx)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	parts.Wait()
	return errors.Join(errs...)
}

func (n *Node) tickLoop(ctx context.Context) {
	every := time.NewTicker(n.Every)
	defer every.Stop()
	reached := n.Elapsed() // when the store was last known to answer
	for {
		if n.Elapsed()-reached > n.Every+n.Dispatch.Lease/3 { // ticks are Every apart by themselves, which may be more than a third of a lease
			// While no tick succeeded, no lease may have been renewed: the workers of this process live, and have not been heard.
			n.Dispatch.Unsettle()
		}
		report, err := n.Ticker.Tick(ctx)
		switch {
		case err == nil:
			reached = n.Elapsed()
			n.lastOK.Store(n.Now().UnixMilli())
			n.swept.Store(report.Swept)
		case ctx.Err() == nil:
			n.Log.Error("a tick failed; the next one goes on from where it stood", "error", err)
		}
		if err == nil && report.Behind {
			if ctx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// recover fills the queue, which is in memory, from the store. The leases of an earlier start's own workers are void: they are
// gone with it. Those of workers elsewhere run on.
func (n *Node) recover(ctx context.Context) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		repairs, err := n.Ticker.Recover(ctx, n.began, func(worker string) bool { return worker != n.Name && !lease.IsRemote(worker) })
		if err == nil {
			if repairs.Resent+repairs.Expired+repairs.Claimed > 0 {
				n.Log.Info("runs of an earlier start go on", "queued", repairs.Resent, "were_running", repairs.Expired)
			}
			return
		}
		if ctx.Err() != nil {
			return
		}
		n.Log.Error("the queue was not filled from the store; trying again", "error", err)
		if !sleep(ctx, wait) {
			return
		}
	}
}

// housekeeping measures the queues, and deletes expired blobs.
func (n *Node) housekeeping(ctx context.Context) {
	for beat := 0; sleep(ctx, 5*time.Second); beat++ {
		waiting := map[queue.Priority]queue.Depth{}
		for name, q := range n.Queues {
			depth, err := q.Depth(ctx)
			if err != nil {
				n.Log.Warn("the depth of a queue is unknown", "queue", name, "error", err)
				continue
			}
			for priority, d := range depth {
				all := waiting[priority]
				all.Ready, all.Delayed, all.Taken = all.Ready+d.Ready, all.Delayed+d.Delayed, all.Taken+d.Taken
				waiting[priority] = all
			}
		}
		n.Metrics.SetQueue(waiting)
		if beat%720 != 1 { // once an hour, soon after the start
			continue
		}
		const batch = 1000
		for {
			deleted, err := n.Blobs.DeleteExpired(ctx, n.Now(), batch)
			if err != nil && ctx.Err() == nil {
				n.Log.Warn("expired blobs were not deleted", "error", err)
			}
			if err != nil || deleted < batch {
				break
			}
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Swept is up to when every timer has been looked at for the last time, 1970 before the first tick. What expires before it may
// be cleaned up: an unread timer lies behind it.
func (n *Node) Swept() time.Time { return time.UnixMilli(n.swept.Load()) }

// Pool is a queue and its workers, for people.
type Pool struct {
	Name        string
	Owner       string // whose it is, "" for everybody's
	Depth       map[queue.Priority]queue.Depth
	Concurrency int // of the worker here, 0 where the pool is served elsewhere
	Running     int
}

// Pools lists the queues with what they hold.
func (n *Node) Pools(ctx context.Context) ([]Pool, error) {
	var pools []Pool
	for name, q := range n.Queues {
		depth, err := q.Depth(ctx)
		if err != nil {
			return nil, err
		}
		pool := Pool{Name: name, Owner: n.Elsewhere[name], Depth: depth}
		if w := n.workers[name]; w != nil {
			pool.Concurrency, pool.Running = w.Concurrency, w.Running()
		}
		pools = append(pools, pool)
	}
	return pools, nil
}
