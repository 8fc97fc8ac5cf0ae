package tick

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

	mu       sync.Mutex
	progress map[int][]int64 // by shard: up to where this process has handled each bucket, Unix ms
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
	return &Ticker{Config: cfg, store: cfg.Dispatch.Store, progress: map[int][]int64{}}, nil
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
	// Not to the horizon: after a step back of the clock that lies far ahead, and what is put in between must still be read.
	to := min(s.Horizon, now+t.Dispatch.LookAhead.Milliseconds())
	p := &pass{Ticker: t, shard: s, left: t.Work, report: report,
		bounds: dispatch.Bounds{Now: now, Horizon: s.Horizon, Resume: to + resumeAfter.Milliseconds()}}
	dueErr := p.due(ctx, s.Watermark, to)
	report.Behind = report.Behind || dueErr == nil && p.shard.Watermark < to
	if report.Oldest == 0 || p.shard.Watermark < report.Oldest {
		report.Oldest = p.shard.Watermark
	}
	if errors.Is(dueErr, errHeld) {
		return dueErr
	}
	sweepErr := p.sweeps(ctx)
	if swept := p.shard.Oldest(); report.Swept == 0 || swept < report.Swept {
		report.Swept = swept
	}
	return errors.Join(dueErr, sweepErr)
}

// count adds a tick to the metrics.
func (t *Ticker) count(r Report, took time.Duration) {
	m := t.Metrics
	t.countRepairs(r.Repairs)
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
}

func (t *Ticker) countRepairs(r dispatch.Repairs) {
	m := t.Metrics
	m.Runs.Add(r.Dead, "dead")
	m.Runs.Add(r.Unknown, "unknown")
	m.DeadLetters.Add(r.Dead, "dead")
	m.Attempts.Add(r.Expired, "crashed")
	m.Repairs.Add(r.Claimed, "claimed")
	m.Repairs.Add(r.Resent, "resent")
	m.Repairs.Add(r.Expired, "expired")
	m.Repairs.Add(r.Watched, "watched")
}

// resumeAfter is how far beyond the horizon a timer goes that puts something off to a later pass.
const resumeAfter = 2 * time.Second

// setBack is how far the watermark may be ahead of where this clock would have it. Below it the first sweep, which is further
// behind, comes upon whatever is put behind the watermark.
const setBack = time.Minute

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
	if s.Watermark > now+(t.Dispatch.LookAhead+setBack).Milliseconds() {
		// What is asked for now would lie behind all cursors. Reading again is harmless: every step finds its own traces.
		t.Log.Warn("the clock is behind the watermark, which is set back", "shard", n, "watermark", time.UnixMilli(s.Watermark))
		s.Watermark = now
		for k := range s.Swept {
			begin := now - timer.Lags[timer.Sweeps-1].Milliseconds()
			s.Swept[k] = min(s.Swept[k], begin-begin%60_000)
		}
		t.remember(n, nil)
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

// saveEvery is how much work a pass does at the most before it writes how far it came, at the end of a minute.
const saveEvery = 2000

// due handles the timers that wake in (from, to], a minute at a time, oldest first. A bucket that fails holds the watermark
// where it is, and is left alone for the rest of the pass; the others go on, and what this process has done of them it does
// not do again in its next pass.
func (p *pass) due(ctx context.Context, from, to int64) error {
	reached := p.reached(p.shard.Number, from)
	var errs []error
	saved := p.left
	for minute := timer.Minute(slices.Min(reached) + 1); minute <= timer.Minute(to) && p.left > 0; minute++ {
		hi := min(to, minute*60_000+59_999)
		failed := p.buckets(ctx, minute, reached, hi, (*pass).wake)
		for i, err := range failed {
			switch {
			case err != nil:
				errs = append(errs, err)
				reached[i] = -reached[i] // negative until the end of the pass: it failed there
			case reached[i] >= 0 && reached[i] < hi:
				reached[i] = hi
			}
		}
		if saved-p.left >= saveEvery {
			if err := p.advance(ctx, reached); err != nil {
				return err
			}
			saved = p.left
		}
	}
	return errors.Join(append(errs, p.advance(ctx, reached))...)
}

// advance writes the watermark, where all buckets have come to, and renews the lease.
//
// Durable before: every claim and check timer up to here; sent: every claim. So the watermark may pass them. A crash before
// this write makes the next pass read them again.
func (p *pass) advance(ctx context.Context, reached []int64) error {
	whole := make([]int64, len(reached))
	for i, r := range reached {
		whole[i] = max(r, -r)
	}
	p.remember(p.shard.Number, whole)
	covered := slices.Min(whole)
	if covered <= p.shard.Watermark {
		return nil
	}
	p.shard.Watermark = covered
	if now, err := p.Dispatch.Clock(); err == nil {
		p.shard.Lease = now + p.Lease.Milliseconds()
	}
	return p.save(ctx)
}

// reached is how far each bucket of a shard has been handled, by the watermark or by this process before.
func (t *Ticker) reached(shard int, watermark int64) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	first, end := t.Dispatch.Layout.BucketsOf(shard)
	reached := make([]int64, end-first)
	for i := range reached {
		reached[i] = watermark
		if known := t.progress[shard]; known != nil {
			reached[i] = max(watermark, known[i])
		}
	}
	return reached
}

func (t *Ticker) remember(shard int, reached []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress[shard] = reached
}

// page is one page of a bucket, taken apart by kind.
type page struct {
	bucket   int
	only     bool // the bucket has no other page
	last     bool // the bucket has none after it
	fires    []timer.Timer
	requests []timer.Timer
	checks   []timer.Timer
}

// handler does with a page what its pass is for.
type handler func(*pass, context.Context, page) (Report, error)

// buckets reads the timers of the shard's buckets that wake in a minute up to hi, each from behind where it has been handled to
// (a negative one is left out), several at once, and hands them on a page at a time. It gives one error a bucket.
func (p *pass) buckets(ctx context.Context, minute int64, reached []int64, hi int64, handle handler) []error {
	first, _ := p.Dispatch.Layout.BucketsOf(p.shard.Number)
	reports := make([]Report, len(reached))
	work := make([]int, len(reached))
	errs := make([]error, len(reached))
	// A few goroutines take one bucket after the other: most are empty, and a goroutine for each would cost more than they do.
	var next atomic.Int64
	var readers sync.WaitGroup
	for range min(p.Parallel, len(reached)) {
		readers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(reached); i = int(next.Add(1)) - 1 {
				if done := reached[i]; done >= 0 && done < hi {
					reports[i], work[i], errs[i] = p.bucket(ctx, minute, first+i, max(done+1, minute*60_000), hi, handle)
				}
			}
		})
	}
	readers.Wait()
	for i := range reports {
		p.report.Tally.Add(reports[i].Tally)
		p.report.Repairs.Add(reports[i].Repairs)
		p.left -= work[i]
	}
	return errs
}

// whole reads a minute in all buckets, wherever the ticks have come.
func (p *pass) whole(ctx context.Context, minute int64, handle handler) error {
	first, end := p.Dispatch.Layout.BucketsOf(p.shard.Number)
	return errors.Join(p.buckets(ctx, minute, make([]int64, end-first), minute*60_000+59_999, handle)...)
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
		pg.bucket, pg.last = bucket, items.Cursor == ""
		pg.only = pg.last && r.Cursor == ""
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
