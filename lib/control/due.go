package control

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

const (
	// timerSpan is how many minutes lie between a timer's and the nominal times of the runs that it stands for, at the most, for a
	// listing to find them there: up to the look-ahead, and as long as the ticks were away. What was missed for longer, and is
	// being caught up, is listed when the sweep has passed its timer.
	timerSpan = 60

	// maxUnswept bounds how many minutes of buckets one call of a listing reads: some five, mostly. There are more only while the
	// ticks are away, and after that until the sweeps have caught up; then pages are short.
	maxUnswept = 3 * timerSpan
)

// buckets is how far a listing has come with the timers that the first sweep has yet to pass, minute by minute from the end that it begins at.
type buckets struct {
	unended  bool // those of check timers too: of all runs that have not ended, but for those that wait for longer than that
	shards   []timer.Shard
	from, to int64 // the minutes that are yet to be read, both of them too
	left     int64 // how many this call may read
}

// open reads up to where the first sweep has come, Unix ms. No run is to be listed with an earlier nominal time than oldest, or a later
// one than newest, 0 for no such bound.
func (t *timeline) open(ctx context.Context, oldest, newest int64) (swept int64, err error) {
	b := &t.buckets
	if b.shards, err = t.shards(ctx); err != nil {
		return 0, err
	}
	swept = dispatch.Forever
	now := t.storeTime().UnixMilli()
	last := now + t.Dispatch.Directly().Milliseconds()
	for _, shard := range b.shards {
		swept = min(swept, shard.Swept[0], shard.Watermark)
		last = max(last, shard.Horizon)
		if t.Dispatch.Stale(shard.Horizon, now) { // by that clock, what was asked for was due soon so far ahead
			last = max(last, shard.Horizon+(t.Dispatch.Directly()-t.Dispatch.Ahead()).Milliseconds())
		}
	}
	last += 2 * dispatch.MaxSkew.Milliseconds()
	if b.unended {
		last += timer.MaxCheckGap.Milliseconds()
	}
	b.from, b.to, b.left = timer.Minute(swept), timer.Minute(last), maxUnswept
	if b.unended { // a check timer may stand for a run of any age, so all of them go first
		b.from = max(b.from, b.to-maxUnswept+1)
		return swept, nil
	}
	if newest > 0 {
		b.to = min(b.to, timer.Minute(newest)+timerSpan)
	}
	if oldest > 0 {
		b.from = max(b.from, timer.Minute(oldest)-timerSpan)
	}
	return swept, nil
}

// reach reads buckets until no timer is left that may stand for a run that goes out before the first that is pending, or before a place.
func (t *timeline) reach(ctx context.Context, upTo string) error {
	b := &t.buckets
	for b.from <= b.to && len(b.shards) > 0 {
		edge := b.edge(t.filter.Oldest)
		if sort := run.SortFrom(edge); !b.unended && (t.goesOut(sort) || upTo == sort || upTo != "" && t.pending.before(upTo, sort)) {
			return nil
		}
		if b.left == 0 {
			if err := t.flush(ctx); err != nil {
				return err
			}
			t.end(lastBefore(edge, t.filter.Oldest))
			return nil
		}
		n := min(timerSpan, b.left, b.to-b.from+1)
		first := b.to - n + 1
		if t.filter.Oldest {
			first = b.from
		}
		if err := t.minutes(ctx, first, first+n-1); err != nil {
			return err
		}
		if t.filter.Oldest {
			b.from += n
		} else {
			b.to -= n
		}
		b.left -= n
	}
	return nil
}

// edge is the nominal time (Unix ms) up to which all is known: with the oldest first no timer that is yet to be read stands for an earlier one, else none
// stands for that or a later one.
func (b *buckets) edge(oldest bool) int64 {
	if oldest {
		return max(1, (b.from-timerSpan)*60_000)
	}
	return (b.to + 1 + timerSpan) * 60_000
}

// lastBefore is behind all that goes out up to a nominal time, and before all the rest: no name of a job is lower than "0", and none that is as long as
// may be is higher than "zz…".
func lastBefore(edge int64, oldest bool) run.ID {
	if oldest {
		return run.RequestID(strings.Repeat("z", job.MaxName), edge-1, math.MaxUint64)
	}
	return run.FireID("0", edge)
}

// minutes takes the runs that the timers of some minutes stand for.
func (t *timeline) minutes(ctx context.Context, from, to int64) error {
	var group errgroup.Group
	group.SetLimit(fanOut)
	look := &lookout{timeline: t}
	for n, s := range t.buckets.shards {
		first, end := t.Dispatch.Layout.BucketsOf(n)
		for minute := max(from, timer.Minute(min(s.Swept[0], s.Watermark))); minute <= to; minute++ {
			for bucket := first; bucket < end; bucket++ {
				group.Go(func() error { return look.bucket(ctx, minute, bucket) })
			}
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	t.add(look.found...)
	return nil
}

// lookout collects runs from several buckets at once.
type lookout struct {
	*timeline
	mu    sync.Mutex
	found []run.ID
}

func (l *lookout) bucket(ctx context.Context, minute int64, bucket int) error {
	var found []run.ID
	for next := (store.Range{Partition: timer.Partition(minute, bucket)}); ; {
		page, err := l.Store.Query(ctx, next)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			some, err := l.timer(ctx, item)
			if err != nil {
				return err
			}
			found = append(found, some...)
		}
		if next.Cursor = page.Cursor; next.Cursor == "" {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = append(l.found, found...)
	return nil
}

// timer names the runs of one timer. Those of other tenants lie in the same buckets, and are told apart by their keys.
func (l *lookout) timer(ctx context.Context, item store.Item) ([]run.ID, error) {
	kind, tenant, id, nominal, ok := timer.FromSort(item.Sort)
	switch {
	case !ok || tenant != l.tenant || kind == timer.Check && !l.buckets.unended:
		return nil, nil
	case kind == timer.Request, kind == timer.Check:
		if l.to != "" && run.SortFrom(nominal) >= l.to {
			return nil, nil
		}
		one, err := run.ParseID(id)
		if err != nil {
			l.unreadable(l.tenant, item, err)
			return nil, nil
		}
		if one.IsStep() {
			return nil, nil // its run is listed
		}
		return []run.ID{one}, nil
	}
	t, err := timer.FromItem(item)
	if err != nil {
		l.unreadable(l.tenant, item, err)
		return nil, nil
	}
	if t.Kind == timer.Batch {
		ids := make([]run.ID, 0, timer.Together)
		for _, one := range t.AppendSingles(nil) {
			if l.to == "" || run.SortFrom(one.Nominal) < l.to {
				ids = append(ids, one.Run)
			}
		}
		return ids, nil
	}
	return l.fires(ctx, t)
}

// inTime is how long a stretch of fires may be to be listed one by one. In a longer one most may have been skipped, by a
// decision that stands at the first of them.
const inTime = 10 * time.Minute

// fires names the runs of a fire timer.
func (l *lookout) fires(ctx context.Context, t timer.Timer) (ids []run.ID, err error) {
	edition, err := l.Dispatch.Book.Edition(ctx, t.Tenant, t.Job, t.Generation)
	switch {
	case dispatch.Unreadable(err):
		return nil, nil
	case err != nil || edition.Schedule == nil:
		return nil, err
	}
	short := t.To-t.Nominal <= inTime.Milliseconds()
	for from := t.Nominal; from <= t.To; {
		fires := dispatch.FiresBetween(edition.Schedule, from, t.To, store.MaxKeys)
		if len(fires) == 0 {
			return ids, nil
		}
		from = fires[len(fires)-1] + 1
		runs := make([]run.Run, len(fires))
		for i, f := range fires {
			runs[i] = run.Run{ID: run.FireID(t.Job, f), Tenant: t.Tenant}
		}
		if !short {
			if runs, err = l.Dispatch.PeekRuns(ctx, runs); err != nil {
				return nil, err
			}
		}
		for _, r := range runs {
			ids = append(ids, r.ID)
			from = max(from, r.Through+1)
		}
	}
	return ids, nil
}
