package tick

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Config is what a Ticker stands on. Fields without a default are required.
type Config struct {
	Dispatch *dispatch.Dispatcher
	Metrics  *metrics.Registry
	Owner    string       // names this process in leases
	Log      *slog.Logger // default: discards

	// Lease is for how long a pass keeps other ticks off its shard. Losing it costs double work, never a double run.
	// Default 20s.
	Lease time.Duration

	// Work bounds a pass: queries and timers together, before the cursor moves and the next pass goes on. Default 20000.
	Work int

	// Parallel is how many buckets are read at once. Default 8.
	Parallel int
}

// Ticker makes passes over the shards. Its methods may be called by several goroutines and processes at once.
type Ticker struct {
	Config
	store store.Store
}

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
		cfg.Parallel = 8
	}
	return &Ticker{Config: cfg, store: cfg.Dispatch.Store}, nil
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
	report, err := t.passes(ctx)
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
		if err := t.pass(ctx, n, &report); err != nil && !errors.Is(err, errHeld) {
			errs = append(errs, fmt.Errorf("shard %d: %w", n, err))
		}
	}
	return report, errors.Join(errs...)
}

// errHeld says that another tick has the shard, or took it over.
var errHeld = errors.New("the shard is held by another tick")

// pass is one pass over a shard: lease and horizon, due timers, watermark, sweeps.
func (t *Ticker) pass(ctx context.Context, n int, report *Report) error {
	s, now, err := t.take(ctx, n)
	if err != nil {
		return err
	}
	report.Passes++
	p := &pass{Ticker: t, shard: s, left: t.Work, report: report,
		bounds: dispatch.Bounds{Now: now, Horizon: s.Horizon, Resume: s.Horizon + resumeAfter.Milliseconds()}}
	covered, err := p.due(ctx, s.Watermark, s.Horizon)
	if err != nil {
		return err
	}
	report.Behind = report.Behind || covered < s.Horizon
	if covered > s.Watermark {
		// Durable before: every claim and check timer up to here; sent: every claim. So the watermark may pass them. A crash
		// before this write makes the next pass read them again.
		p.shard.Watermark = covered
		if err := p.save(ctx); err != nil {
			return err
		}
	}
	if report.Oldest == 0 || covered < report.Oldest {
		report.Oldest = covered
	}
	err = p.sweeps(ctx)
	if swept := p.shard.Oldest(); report.Swept == 0 || swept < report.Swept {
		report.Swept = swept
	}
	return err
}

// count adds a tick to the metrics.
func (t *Ticker) count(r Report, took time.Duration) {
	m := t.Metrics
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
	m.Runs.Add(r.Skipped, "skipped")
	m.Runs.Add(r.Repairs.Dead, "dead")
	m.Runs.Add(r.Repairs.Unknown, "unknown")
	m.DeadLetters.Add(r.Repairs.Dead, "dead")
	m.Attempts.Add(r.Repairs.Expired, "crashed")
	m.Repairs.Add(r.Repairs.Claimed, "claimed")
	m.Repairs.Add(r.Repairs.Resent, "resent")
	m.Repairs.Add(r.Repairs.Expired, "expired")
	m.Repairs.Add(r.Repairs.Watched, "watched")
}

// resumeAfter is how far beyond the horizon a timer goes that puts something off to a later pass.
const resumeAfter = 2 * time.Second

// take leases a shard and publishes the horizon. Durable afterwards: that this pass will claim nothing beyond it. Only then
// is anything read. The clock is not read again: however long the pass is stopped, it stays below what it published.
func (t *Ticker) take(ctx context.Context, n int) (timer.Shard, int64, error) {
	items, err := t.store.Get(ctx, timer.ShardKey(n))
	if err != nil {
		return timer.Shard{}, 0, err
	}
	s, err := timer.ShardFromItem(n, items[0])
	if err != nil {
		return timer.Shard{}, 0, err
	}
	now, err := t.Dispatch.Clock()
	if err != nil {
		return timer.Shard{}, 0, err
	}
	length := t.Lease.Milliseconds()
	// A lease further away than its length was written before the clock was stepped back: void.
	if s.Owner != t.Owner && s.Lease > now && s.Lease <= now+length {
		return timer.Shard{}, 0, errHeld
	}
	if s.Version == 0 {
		return timer.Shard{}, 0, fmt.Errorf("shard %d was never set up: %w", n, record.ErrBroken)
	}
	s.Epoch++
	s.Owner, s.Lease = t.Owner, now+length
	s.Horizon = max(s.Horizon, now+t.Dispatch.LookAhead.Milliseconds())
	if err := t.write(ctx, &s); err != nil {
		return timer.Shard{}, 0, err
	}
	return s, now, nil
}

func (t *Ticker) write(ctx context.Context, s *timer.Shard) error {
	op, err := s.Put(t.Dispatch.NewID())
	if err != nil {
		return err
	}
	versions, err := t.Dispatch.Write(ctx, op)
	if store.AsConflict(err) != nil {
		return errHeld
	}
	if err != nil {
		return err
	}
	s.Version = versions[0]
	return nil
}

// pass is the state of one pass over one shard.
type pass struct {
	*Ticker
	shard  timer.Shard
	bounds dispatch.Bounds
	left   int // of Config.Work
	report *Report
}

func (p *pass) save(ctx context.Context) error { return p.write(ctx, &p.shard) }

// due handles the timers that wake in (from, to], a minute at a time, oldest first, and gives up to where it came.
func (p *pass) due(ctx context.Context, from, to int64) (covered int64, err error) {
	covered = from
	for minute := timer.Minute(from + 1); minute <= timer.Minute(to); minute++ {
		if p.left <= 0 {
			return covered, nil
		}
		lo, hi := max(from+1, minute*60_000), min(to, minute*60_000+59_999)
		if err := p.buckets(ctx, minute, lo, hi, (*pass).wake); err != nil {
			return covered, err
		}
		covered = hi
	}
	return covered, nil
}

// page is one page of a bucket, taken apart by kind.
type page struct {
	bucket   int
	only     bool // the bucket has no other page
	fires    []timer.Timer
	requests []timer.Timer
	checks   []timer.Timer
}

// handler does with a page what its pass is for.
type handler func(*pass, context.Context, page) (Report, error)

// buckets reads the timers of all buckets of the shard that wake in [lo, hi] of a minute, several buckets at once, and
// hands them on a page at a time. Errors of one bucket leave the others to be done.
func (p *pass) buckets(ctx context.Context, minute, lo, hi int64, handle handler) error {
	first, end := p.Dispatch.Layout.BucketsOf(p.shard.Number)
	reports := make([]Report, end-first)
	work := make([]int, end-first)
	errs := make([]error, end-first)
	var group errgroup.Group
	group.SetLimit(p.Parallel)
	for bucket := first; bucket < end; bucket++ {
		i := bucket - first
		group.Go(func() error {
			reports[i], work[i], errs[i] = p.bucket(ctx, minute, bucket, lo, hi, handle)
			return nil
		})
	}
	_ = group.Wait() // its errors are in errs
	for i := range reports {
		p.report.Tally.Add(reports[i].Tally)
		p.report.Repairs.Add(reports[i].Repairs)
		p.left -= work[i]
	}
	return errors.Join(errs...)
}

// pageSize bounds the memory of a bucket's reading, and with it that of a pass.
const pageSize = 256

func (p *pass) bucket(ctx context.Context, minute int64, bucket int, lo, hi int64, handle handler) (report Report, work int, err error) {
	r := store.Range{Partition: timer.Partition(minute, bucket), From: timer.SortFrom(lo), To: timer.SortFrom(hi + 1), Limit: pageSize}
	for {
		items, err := p.store.Query(ctx, r)
		if err != nil {
			return report, work, fmt.Errorf("bucket %s: %w", r.Partition, err)
		}
		work += 1 + len(items.Items)
		pg, err := p.sort(items.Items)
		if err != nil {
			return report, work, err
		}
		pg.bucket, pg.only = bucket, r.Cursor == "" && items.Cursor == ""
		if len(items.Items) > 0 {
			one, err := handle(p, ctx, pg)
			report.Tally.Add(one.Tally)
			report.Repairs.Add(one.Repairs)
			if err != nil {
				return report, work, err
			}
		}
		if items.Cursor == "" { // an empty page with a cursor is not the end
			return report, work, nil
		}
		r.Cursor = items.Cursor
	}
}

// sort takes a page apart. A broken timer is parked where it is, and told of; one that a newer Belfry wrote stops the cursor
// here, since passing over it would lose it.
func (p *pass) sort(items []store.Item) (page, error) {
	var pg page
	for _, item := range items {
		t, err := timer.FromItem(item)
		switch {
		case errors.Is(err, record.ErrNewer):
			return page{}, err
		case err != nil:
			p.Log.Error("a timer is unreadable and left where it is", "key", item.Key.String(), "error", err)
			p.Metrics.Unreadable.Inc()
			continue
		}
		switch t.Kind {
		case timer.Fire:
			pg.fires = append(pg.fires, t)
		case timer.Request:
			pg.requests = append(pg.requests, t)
		case timer.Check:
			pg.checks = append(pg.checks, t)
		}
	}
	return pg, nil
}

// wake is what the main pass does with a page.
func (p *pass) wake(ctx context.Context, pg page) (report Report, err error) {
	if report.Tally, err = p.fires(ctx, pg.fires); err != nil {
		return report, err
	}
	tally, err := p.requests(ctx, pg.requests)
	report.Tally.Add(tally)
	if err != nil {
		return report, err
	}
	report.Repairs, err = p.Dispatch.Check(ctx, p.shard.Epoch, p.bounds, runsOf(pg.checks), nil)
	report.Timers += len(pg.checks)
	return report, err
}
