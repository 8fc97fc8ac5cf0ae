package tick

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Config is what a Ticker stands on. Fields without a default are required.
type Config struct {
	Dispatch *dispatch.Dispatcher
	Metrics  *metrics.Registry
	Owner    string        // names this process in leases
	Log      *slog.Logger  // default: discards
	Tracer   *trace.Tracer // default: traces nothing

	// Lease is for how long a pass keeps other ticks off its shard. Losing it costs double work, never a double run.
	// Default 20s.
	Lease time.Duration

	// Every is how far apart the ticks are that this process makes. Passes further apart than the longer of that and half the look-ahead, and
	// a third of a lease, are taken for an absence, after which no lease is judged for the length of one.
	Every time.Duration

	// Work bounds a pass: queries and timers together, before the cursor moves and the next pass goes on. Default 20000.
	Work int

	// Parallel is how many buckets are read at once. Default DefaultParallel.
	Parallel int

	// Alone tells that no other process ticks on this store, and that the store works on this one's processors. Then the sweeps leave room for
	// what is due: a long minute is swept in parts, by one pass after the other, and buckets of more than a page one at a time.
	Alone bool

	// Counts has the sweeps count the runs of each minute, for package stats: a write for each tenant and shard with runs in it. Nothing else rests on it.
	Counts bool
}

// DefaultParallel is the default of Config.Parallel.
const DefaultParallel = 8

// Ticker makes passes over the shards. Its methods may be called by several goroutines and processes at once.
type Ticker struct {
	Config
	store store.Store

	mu     sync.Mutex
	left   map[int]left // by number of the shard
	failed map[int]bool // by number: this process could not take it
	owing  map[int]bool // by number: this process knows whether something is left to be added up
}

// left is a shard as this process has left it, perhaps with cursors that it has not written.
type left struct {
	timer.Shard
	under underWay
}

// underWay are the minutes that a pass has begun to sweep and not ended; nil for none.
type underWay [timer.Sweeps]*minuteSweep

// New checks the configuration.
func New(cfg Config) (*Ticker, error) {
	if cfg.Dispatch == nil || cfg.Metrics == nil || cfg.Owner == "" {
		return nil, errors.New("tick: Dispatch, Metrics and Owner are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease == 0 {
		cfg.Lease = 20 * time.Second
	}
	if cfg.Work == 0 {
		cfg.Work = 20_000
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = DefaultParallel
	}
	return &Ticker{Config: cfg, store: cfg.Dispatch.Store, left: map[int]left{}, failed: map[int]bool{}, owing: map[int]bool{}}, nil
}

// Report is what a tick did.
type Report struct {
	dispatch.Tally
	Passes  int   // shards that were ours
	Behind  bool  // a pass reached its bound: call again at once
	Oldest  int64 // Unix ms: of the shards passed, the watermark furthest behind; 0 where none was
	Swept   int64 // Unix ms: of the shards passed, up to where every sweep has come; 0 where none was
	Repairs dispatch.Repairs
}

// Tick makes one pass over each shard that no other tick holds. An error of one shard does not keep the others from theirs.
func (t *Ticker) Tick(ctx context.Context) (Report, error) {
	began := t.Dispatch.Elapsed()
	ctx, ended := t.traced(ctx)
	report, err := t.passes(ctx)
	ended(report, err)
	t.count(report, t.Dispatch.Elapsed()-began)
	return report, err
}

func (t *Ticker) passes(ctx context.Context) (Report, error) {
	var report Report
	var errs []error
	for n := range t.Dispatch.Layout.Shards {
		if ctx.Err() != nil {
			return report, errors.Join(append(errs, ctx.Err())...)
		}
		if _, err := t.pass(ctx, n, stint{work: t.Work}, &report); err != nil && !errors.Is(err, errHeld) {
			errs = append(errs, fmt.Errorf("shard %d: %w", n, err))
		}
	}
	return report, errors.Join(errs...)
}

// count adds a tick to the metrics.
func (t *Ticker) count(r Report, took time.Duration) {
	m := t.Metrics
	t.countRepairs(r.Repairs)
	m.Unowned.Set(float64(t.unowned()))
	if r.Passes == 0 {
		return
	}
	m.Tick.Observe(took)
	if r.Oldest > 0 {
		m.OldestDue.Since(time.UnixMilli(r.Oldest))
	}
	m.TickItems.Add(r.Timers, "timers")
	m.TickItems.Add(r.Claimed, "claimed")
	m.TickItems.Add(r.Resent, "resent")
	m.TickItems.Add(r.Skipped, "skipped")
	m.TickItems.Add(r.Sent, "sent")
	m.TickItems.Add(r.Unsent, "unsent")
	m.TickItems.Add(r.Parked, "parked")
}

func (t *Ticker) countRepairs(r dispatch.Repairs) {
	m := t.Metrics
	m.Attempts.Add(r.Expired, "crashed")
	m.Repairs.Add(r.Claimed, "claimed")
	m.Repairs.Add(r.Resent, "resent")
	m.Repairs.Add(r.Expired, "expired")
	m.Repairs.Add(r.Watched, "watched")
}
