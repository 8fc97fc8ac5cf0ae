package control

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Time and work of one request over many.
const (
	// BulkTime is how long one may take its time: less than clients and gateways wait, so that it can tell what it did.
	BulkTime = 15 * time.Second

	// bulkPage is how many things a filter chooses at once while they are acted on.
	bulkPage = 100

	// countedPages bounds a dry run's count, in pages of a listing.
	countedPages = 20

	// Sampled is how many things a dry run with a filter shows.
	Sampled = 20

	// slowest is the lowest rate: one a day.
	slowest = 1.0 / (24 * 60 * 60)
)

// many is a request over many things under way: those that are named, or those that a filter chooses, page by page, in a bounded time and at the
// rate asked for. T names a thing: a run, or a job as somebody saw it. V is the verdict of one.
type many[T, V any] struct {
	*Service
	named     []T // nil: those that choose gives
	choose    chooser[T]
	most      int     // with a filter; 0: MaxLimit
	perSecond float64 // 0: as fast as it goes
	dryRun    bool

	do     func(ctx context.Context, thing T) (v V, did bool)
	try    func(ctx context.Context, thing T) (v V, would bool) // tells what do would do, and changes nothing
	count  func(ctx context.Context, thing T)                   // takes a thing that a filter chose into what a dry run tells
	atOnce int                                                  // so many at once where no rate is to be kept
	spares bool                                                 // those that stay as they are count neither towards most nor for the rate

	end   time.Duration // of the time that it may take, by the clock that is never stepped
	begun bool          // something was done for which the next has to wait
	done  done[T, V]
}

// done is what became of things, in the order in which they were come to.
type done[T, V any] struct {
	Verdicts  []V
	Count     int    // how many were done; of a dry run, how many would be
	Next      string // more may match: the cursor to go on from
	Remaining []T    // of those named, the ones that the time was too short for
}

// chosen is a page of things that a filter chose: after says, for each, with which cursor to go on behind it.
type chosen[T any] struct {
	things []T
	after  func(i int) string
	next   string
}

// chooser gives the pages of a filter.
type chooser[T any] func(ctx context.Context, cursor string, limit int) (chosen[T], error)

// run acts on the things; those of a filter from a cursor on. The error is for what ended the whole, and what was done so far is told with it.
func (m *many[T, V]) run(ctx context.Context, cursor string) error {
	if err := checkRate(m.perSecond); err != nil {
		return err
	}
	m.end, m.done.Next = m.Dispatch.Elapsed()+BulkTime, cursor
	if m.most == 0 {
		m.most = MaxLimit
	}
	switch {
	case m.named != nil:
		n, err := m.all(ctx, m.named)
		m.done.Remaining = m.named[n:]
		return err
	case m.dryRun:
		return m.counted(ctx)
	}
	return m.matching(ctx)
}

// checkRate refuses a rate that is none. 0 is as fast as it goes.
func checkRate(perSecond float64) error {
	if perSecond != 0 && !(perSecond >= slowest) {
		return invalid.Field("per_second", fmt.Sprint(perSecond), fmt.Sprintf("a rate of at least %v", slowest))
	}
	return nil
}

// keepRate waits for the time of the next one.
func keepRate(ctx context.Context, perSecond float64) {
	next := time.NewTimer(time.Duration(float64(time.Second) / perSecond))
	defer next.Stop()
	select {
	case <-next.C:
	case <-ctx.Done():
	}
}

func (m *many[T, V]) paced() bool { return m.perSecond > 0 && !m.dryRun }

func (m *many[T, V]) over() bool { return m.Dispatch.Elapsed() >= m.end }

// left is how many it may still act on.
func (m *many[T, V]) left() int {
	came := len(m.done.Verdicts)
	switch {
	case m.named != nil:
		return len(m.named) - came
	case m.spares:
		return min(m.most-m.done.Count, MaxLimit-came)
	}
	return m.most - came
}

// matching acts on the things of a filter.
func (m *many[T, V]) matching(ctx context.Context) error {
	for m.left() > 0 {
		limit := min(bulkPage, m.left())
		if m.spares {
			limit = min(bulkPage, MaxLimit-len(m.done.Verdicts))
		}
		page, err := m.choose(ctx, m.done.Next, limit)
		if err != nil && len(m.done.Verdicts) > 0 {
			return nil // what was done is told, and Next says where to go on; an error would say that nothing was
		}
		if err != nil {
			return err
		}
		n, err := m.all(ctx, page.things)
		if n > 0 {
			m.done.Next = page.after(n - 1)
		}
		if err != nil || n < len(page.things) {
			return err
		}
		if m.done.Next = page.next; page.next == "" || m.over() {
			break
		}
	}
	return nil
}

// counted tells how many things a filter chooses, and what would become of the first.
func (m *many[T, V]) counted(ctx context.Context) error {
	for range countedPages {
		page, err := m.choose(ctx, m.done.Next, MaxLimit)
		if err != nil {
			return err
		}
		for _, thing := range page.things {
			m.count(ctx, thing)
		}
		if m.done.Next = page.next; page.next == "" {
			break
		}
	}
	return nil
}

// all acts on things, and gives how many it came to.
func (m *many[T, V]) all(ctx context.Context, things []T) (came int, err error) {
	type result struct {
		verdict   V
		did, came bool
	}
	atOnce := max(1, m.atOnce)
	if m.paced() {
		atOnce = 1
	}
	for came < len(things) && m.left() > 0 && !m.over() {
		if ctx.Err() != nil {
			return came, ctx.Err()
		}
		some := things[came:]
		some = some[:min(atOnce, m.left(), len(some))]
		results := make([]result, len(some))
		dispatch.Parallel(some, fanOut, func(i int, thing T) {
			r := &results[i]
			r.verdict, r.did, r.came = m.one(ctx, thing)
		})
		for _, r := range results {
			if !r.came {
				return came, ctx.Err()
			}
			m.done.Verdicts = append(m.done.Verdicts, r.verdict)
			if r.did {
				m.done.Count++
			}
			came++
		}
	}
	return came, nil
}

// one acts on a thing. came is false where the time was over before the rate let it.
func (m *many[T, V]) one(ctx context.Context, thing T) (v V, did, came bool) {
	if m.dryRun {
		v, did = m.try(ctx, thing)
		return v, did, true
	}
	if m.paced() {
		if m.spares {
			if v, would := m.try(ctx, thing); !would {
				return v, false, true
			}
		}
		if m.begun {
			keepRate(ctx, m.perSecond)
		}
		if ctx.Err() != nil || m.over() {
			return v, false, false
		}
		m.begun = true
	}
	v, did = m.do(ctx, thing)
	return v, did, true
}
