package tick

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// walk is a way through the buckets of a shard in one minute.
type walk struct {
	minute int64
	begin  string                       // the lowest sort key of the minute
	from   []string                     // by bucket, where it begins; "" leaves the bucket out
	to     string                       // before this sort key it ends
	enough func() bool                  // asked before each page; nil: never
	moved  func(i int, position string) // told behind which sort keys all of a bucket was handled; nil: nobody
	long   chan struct{}                // has room for those who read a bucket of more than a page; nil: all may
	handle handler

	beginning sync.Mutex // of a page: held while that is decided and counted
	next      int        // the bucket to be taken next
}

// handler does with a page what its pass is for.
type handler func(*pass, context.Context, page) (Report, error)

// page is one page of a bucket, taken apart by kind.
type page struct {
	bucket   int
	only     bool // the bucket has no other page, before it or after
	last     bool // the bucket has none after it
	fires    []timer.Timer
	requests []timer.Timer
	checks   []timer.Timer
}

// walk reads the timers, several buckets at once, and hands them on a page at a time. It gives one error a bucket.
func (p *pass) walk(ctx context.Context, w *walk) []error {
	errs := make([]error, len(w.from))
	w.begin = timer.SortFrom(w.minute * 60_000)
	// A few goroutines take one bucket after the other: most are empty, and a goroutine for each would cost more than they do.
	read := func() {
		for i, more := p.take(w); more; i, more = p.take(w) {
			errs[i] = p.bucket(ctx, w, i)
		}
	}
	var readers sync.WaitGroup
	for range min(p.Parallel, len(w.from)) - 1 {
		readers.Go(read)
	}
	read()
	readers.Wait()
	return errs
}

// whole walks through all of a minute, wherever the ticks have come.
func (p *pass) whole(ctx context.Context, minute int64, handle handler) error {
	return errors.Join(p.walk(ctx, &walk{minute: minute, from: p.beginning(minute), to: timer.SortFrom((minute + 1) * 60_000), handle: handle})...)
}

// beginning gives where a minute begins, for each bucket.
func (p *pass) beginning(minute int64) []string {
	first, end := p.Dispatch.Layout.BucketsOf(p.shard.Number)
	return slices.Repeat([]string{timer.SortFrom(minute * 60_000)}, end-first)
}

// PageSize is how many timers of a bucket are read at once: it bounds the memory of its reading, and with it that of a pass.
const PageSize = 256

func (p *pass) bucket(ctx context.Context, w *walk, i int) error {
	first, _ := p.Dispatch.Layout.BucketsOf(p.shard.Number)
	r := store.Range{Partition: timer.Partition(w.minute, first+i), From: max(w.from[i], w.begin), To: w.to, Limit: PageSize}
	for more := true; more; more = p.begin(w) { // take has begun the first page
		items, err := p.store.Query(ctx, r)
		if err != nil {
			return fmt.Errorf("bucket %s: %w", r.Partition, err)
		}
		if err := p.together(ctx, r, &items); err != nil {
			return err
		}
		pg, err := p.sort(items.Items)
		if err != nil {
			return err
		}
		p.used.Add(int64(max(len(items.Items), len(pg.fires)+len(pg.requests)+len(pg.checks))))
		pg.bucket, pg.last = first+i, items.Cursor == ""
		pg.only = pg.last && r.Cursor == "" && w.from[i] <= w.begin
		position := w.to
		if len(items.Items) > 0 {
			if err := p.handle(ctx, w.handle, pg); err != nil {
				return err
			}
			if !pg.last {
				position = items.Items[len(items.Items)-1].Sort + "\x00"
			}
		}
		if w.moved != nil && (pg.last || len(items.Items) > 0) {
			w.moved(i, position)
		}
		if pg.last { // an empty page with a cursor is not the end
			return nil
		}
		if w.long != nil && r.Cursor == "" {
			if err := ctx.Err(); err != nil { // of two that are ready select takes any
				return err
			}
			select {
			case w.long <- struct{}{}:
				defer func() { <-w.long }()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r.Cursor = items.Cursor
	}
	return nil
}

// take begins with the next bucket, and counts its first page: in one step too, so that buckets are begun in their order, and those that are left are the last.
func (p *pass) take(w *walk) (i int, more bool) {
	w.beginning.Lock()
	defer w.beginning.Unlock()
	for w.next < len(w.from) && (w.from[w.next] == "" || w.from[w.next] >= w.to) {
		w.next++
	}
	if w.next == len(w.from) || w.enough != nil && w.enough() {
		return 0, false
	}
	p.used.Add(1)
	w.next++
	return w.next - 1, true
}

// begin counts a page that is to be read, unless it is enough. Both are one step, so that no two readers take the last page that a pass
// has left, and how many buckets it comes to does not depend on which of them is faster.
func (p *pass) begin(w *walk) bool {
	w.beginning.Lock()
	defer w.beginning.Unlock()
	if w.enough != nil && w.enough() {
		return false
	}
	p.used.Add(1)
	return true
}

// together reads on while the page ends among callbacks that are to be told of together.
func (p *pass) together(ctx context.Context, r store.Range, page *store.Page) error {
	for page.Cursor != "" && len(page.Items) > 0 && len(page.Items) < dispatch.MaxTogether {
		// One that cannot be read waits for nobody, and is told of when the page is taken apart.
		if last, _ := timer.FromItem(page.Items[len(page.Items)-1]); !last.Waits() {
			return nil
		}
		r.Cursor = page.Cursor
		more, err := p.store.Query(ctx, r)
		if err != nil {
			return fmt.Errorf("bucket %s: %w", r.Partition, err)
		}
		p.used.Add(1)
		page.Items, page.Cursor = append(page.Items, more.Items...), more.Cursor
	}
	return nil
}

func (p *pass) handle(ctx context.Context, handle handler, pg page) error {
	one, err := handle(p, ctx, pg)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = true
	p.report.Tally.Add(one.Tally)
	p.report.Repairs.Add(one.Repairs)
	return err
}

// sort takes a page apart. A broken timer is parked where it is, and told of; one that a newer Belfry wrote stops the cursor
// here, since passing over it would lose it.
func (p *pass) sort(items []store.Item) (page, error) {
	var pg page
	for i, item := range items {
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
		case timer.Batch:
			if cap(pg.requests)-len(pg.requests) < len(t.Batch) { // most pages that have one are full of them
				pg.requests = slices.Grow(pg.requests, (len(items)-i)*len(t.Batch))
			}
			pg.requests = t.AppendSingles(pg.requests)
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
