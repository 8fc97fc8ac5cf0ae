package tick

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// list collects the runs that a sweep of a minute comes upon, and writes the items by which they are found by time (run.Index).
// The sweep's cursor moves after that: what lies behind it is listed, and what lies before it is found in the buckets.
type list struct {
	*pass
	minute int64
	again  bool // it is a later sweep

	asking chan struct{} // has room for the one who reads known: not a mutex, which is not to be held over a request
	asked  bool
	known  *print // what the first sweep saw; nil in the first, and where it came upon nothing

	mu      sync.Mutex
	seen    print
	found   bool                             // the minute has timers
	waiting map[int]map[string][]run.Listing // of a later sweep, by bucket and tenant, until all of the bucket is read
	ready   map[string][]run.Listing         // by tenant
	count   int                              // in ready
}

// listedAtOnce bounds how many runs are held before they are written.
const listedAtOnce = 4096

// first gives what the first sweep saw of the minute, nil for no timers. It is read once, and where nothing is there to be compared
// with it, never.
func (l *list) first(ctx context.Context) (*print, error) {
	if !l.again {
		return nil, nil
	}
	select {
	case l.asking <- struct{}{}:
		defer func() { <-l.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.asked {
		return l.known, nil
	}
	items, err := l.store.Get(ctx, printKey(l.shard.Number, l.minute))
	if err != nil {
		return nil, err
	}
	l.used.Add(1)
	l.asked = true
	if items[0].Exists() {
		l.known = new(print)
		if err := record.Decode(items[0].Value, l.known); err != nil {
			l.Log.WarnContext(ctx, "what the first sweep remembered is unreadable: all is looked at", "minute", l.minute, "error", err)
			*l.known = print{}
			for i := range l.known.Buckets {
				l.known.Buckets[i] = 1 // no hash is likely to be that
			}
		}
	}
	return l.known, nil
}

// see takes a page of a bucket, and tells whether all of it is as the first sweep saw it.
func (l *list) see(ctx context.Context, pg page) (same bool, err error) {
	known, err := l.first(ctx)
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = true
	sum := pg.hash()
	l.seen.Buckets[pg.bucket] = l.seen.Buckets[pg.bucket]*31 + sum
	return pg.only && known != nil && sum == known.Buckets[pg.bucket], nil
}

// note takes the runs of a page.
func (l *list) note(ctx context.Context, pg page, runs []run.Run) error {
	noted := map[string][]run.Listing{}
	for _, r := range runs {
		one, err := l.Dispatch.Listing(ctx, r, (l.minute+1)*60_000)
		if err != nil {
			return err
		}
		noted[r.Tenant] = append(noted[r.Tenant], one)
	}
	l.mu.Lock()
	if l.again {
		mine := l.waiting[pg.bucket]
		if mine == nil {
			mine = map[string][]run.Listing{}
			l.waiting[pg.bucket] = mine
		}
		for tenant, listings := range noted {
			mine[tenant] = append(mine[tenant], listings...)
		}
	} else {
		l.take(noted)
	}
	if pg.last {
		l.settle(pg.bucket)
	}
	full := l.full(listedAtOnce)
	l.mu.Unlock()
	return l.write(ctx, full)
}

// settle lets go of a bucket that was read to its end: in a later sweep its runs are listed only where it has changed. Those of one
// with many pages had to be read to tell.
func (l *list) settle(bucket int) {
	if l.again && (l.known == nil || l.seen.Buckets[bucket] != l.known.Buckets[bucket]) {
		l.take(l.waiting[bucket])
	}
	delete(l.waiting, bucket)
}

func (l *list) take(noted map[string][]run.Listing) {
	for tenant, listings := range noted {
		l.ready[tenant] = append(l.ready[tenant], listings...)
		l.count += len(listings)
	}
}

// full gives what is ready, once it is so much.
func (l *list) full(much int) map[string][]run.Listing {
	if l.count < much {
		return nil
	}
	ready := l.ready
	l.ready, l.count = map[string][]run.Listing{}, 0
	return ready
}

// end writes what is left when all buckets have been read.
func (l *list) finish(ctx context.Context) error {
	for _, bucket := range slices.Sorted(maps.Keys(l.waiting)) {
		l.settle(bucket)
	}
	return l.write(ctx, l.full(1))
}

// write lists runs, those of each tenant in items of its own. Whoever sweeps the minute again after a crash comes upon the same
// runs and writes the same items, or lists some of them once more, which does no harm.
func (l *list) write(ctx context.Context, ready map[string][]run.Listing) error {
	var ops []store.Op
	for _, tenant := range slices.Sorted(maps.Keys(ready)) {
		some, err := run.Index(tenant, ready[tenant], l.Dispatch.NewID())
		if err != nil {
			return err
		}
		ops = append(ops, some...)
	}
	verdicts, err := l.Dispatch.WriteEach(ctx, ops)
	if err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Err != nil {
			return v.Err
		}
	}
	return nil
}
