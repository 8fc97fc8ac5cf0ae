package tick_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// sparse is a store whose every other page is empty and has a cursor, as those are of a store that filters what it has read.
type sparse struct{ store.Store }

const more = "behind an empty page "

func (s sparse) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if len(r.Cursor) < len(more) || r.Cursor[:len(more)] != more {
		return store.Page{Cursor: more + r.Cursor}, nil
	}
	r.Cursor = r.Cursor[len(more):]
	return s.Store.Query(ctx, r)
}

// TestP2_Fault19_AnEmptyPageIsNotTheEnd has each fire lie behind an empty page.
func TestP2_Fault19_AnEmptyPageIsNotTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		const fires = 600
		c.jobs(fires)
		c.toNoon()
		c.took = time.Millisecond // so that time goes by, whatever a tick does
		cfg := c.dispatcher().Config
		cfg.Store = sparse{cfg.Store}
		d, err := dispatch.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ticks, err := tick.New(tick.Config{Dispatch: d, Metrics: metrics.New(), Owner: "sparse"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticks.Turn(t.Context(), tick.Turn{Until: d.Elapsed() + time.Minute}); err != nil {
			t.Fatal(err)
		}
		c.sentOnce(fires, noon())
		time.Sleep(time.Until(noon().Add(5 * time.Minute))) // the first sweep reads them as well
		if report, err := ticks.Turn(t.Context(), tick.Turn{Until: d.Elapsed() + time.Minute}); err != nil || report.Repairs.Claimed != 0 || report.Repairs.Watched != fires {
			t.Errorf("the sweep claimed %d fires and armed %d checks (%v), want none and %d", report.Repairs.Claimed, report.Repairs.Watched, err, fires)
		}
	})
}

// torn is a store that fails once between two pages.
type torn struct {
	store.Store
	failed *atomic.Bool
}

func (s torn) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if r.Cursor != "" && !s.failed.Swap(true) {
		return store.Page{}, store.ErrThrottled
	}
	return s.Store.Query(ctx, r)
}

// TestP2_Fault19_TheRestOfABucketWaitsForTheNextTick has a tick end behind the first page of a bucket: what lies on the others is not
// passed over.
func TestP2_Fault19_TheRestOfABucketWaitsForTheNextTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		const fires = 2*tick.PageSize + 100
		bucket := timer.BucketOf("default", "job-0")
		var names []string
		for i := 0; len(names) < fires; i++ {
			if name := fmt.Sprint("job-", i); timer.BucketOf("default", name) == bucket {
				names = append(names, name)
			}
		}
		c.named(names...)
		c.toNoon()
		cfg := c.dispatcher().Config
		failed := new(atomic.Bool)
		cfg.Store = torn{cfg.Store, failed}
		d, err := dispatch.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ticks, err := tick.New(tick.Config{Dispatch: d, Metrics: metrics.New(), Owner: "torn"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticks.Tick(t.Context()); !errors.Is(err, store.ErrThrottled) {
			t.Fatalf("the first tick ended with %v, want it throttled", err)
		}
		if n := len(c.sent); n != tick.PageSize {
			t.Fatalf("the first tick sent %d runs, want those of the first page", n)
		}
		time.Sleep(time.Minute)
		if _, err := ticks.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.sentOnce(fires, noon())
	})
}
