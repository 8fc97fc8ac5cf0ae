package tick_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// crowd makes jobs that fire at noon, all in buckets of one shard, so many pages of them in each.
func (c *cloud) crowd(pages int) (names []string) {
	c.Helper()
	first, end := c.layout.BucketsOf(c.layout.ShardOf(timer.BucketOf("default", "job-0")))
	count := map[int]int{}
	for i := 0; len(names) < pages*tick.PageSize*(end-first); i++ {
		name := fmt.Sprint("job-", i)
		if b := timer.BucketOf("default", name); b >= first && b < end && count[b] < pages*tick.PageSize {
			count[b]++
			names = append(names, name)
		}
	}
	c.named(names...)
	return names
}

// lookedAt is a store in which looking at runs takes long. It counts them.
type lookedAt struct {
	store.Store
	took  time.Duration
	count *atomic.Int64
}

func (s lookedAt) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	s.count.Add(int64(len(keys)))
	select {
	case <-time.After(s.took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Store.Peek(ctx, keys...)
}

// TestP2_P4_ALongMinuteIsSweptInParts has the sweep of a minute take several times the look-ahead of its tick. In between the tick
// publishes its horizon and claims what is due; no run is looked at twice; and another tick, which knows nothing of how far
// the sweep has come, is kept off the shard while the first one lives, and does all of it when that one has died.
func TestP2_P4_ALongMinuteIsSweptInParts(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				names := c.crowd(6)
				c.toNoon()
				var count atomic.Int64
				ticker := func(owner string) *tick.Ticker {
					cfg := c.dispatcher().Config
					cfg.Store = lookedAt{cfg.Store, 7 * time.Second, &count} // three times that for a page
					d, err := dispatch.New(cfg)
					if err != nil {
						t.Fatal(err)
					}
					ticks, err := tick.New(tick.Config{Dispatch: d, Metrics: metrics.New(), Owner: owner, Work: 1000})
					if err != nil {
						t.Fatal(err)
					}
					return ticks
				}
				ticks, other := ticker("first"), ticker("second")
				if _, err := ticks.Turn(t.Context(), tick.Turn{}); err != nil {
					t.Fatal(err)
				}
				c.end(names)
				time.Sleep(time.Until(noon().Add(3*time.Minute + time.Second)))
				shard := c.layout.ShardOf(timer.BucketOf("default", "job-0"))
				count.Store(0)
				parts := 0
				for end := noon().Add(time.Minute).UnixMilli(); parts < 20; parts++ {
					began := time.Now()
					report, err := ticks.Tick(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > 150*time.Second/4+21*time.Second {
						t.Errorf("part %d took %s, want no more than a quarter of the look-ahead and a page", parts, took)
					}
					if left := c.shard(shard); left.Horizon < began.Add(150*time.Second).UnixMilli() {
						t.Errorf("in part %d fires are claimed up to %s only", parts, time.UnixMilli(left.Horizon))
					}
					if c.shard(shard).Swept[0] >= end {
						break
					}
					if !report.Behind {
						t.Errorf("part %d left some of the minute, and did not say so", parts)
					}
					epoch := c.shard(shard).Epoch
					if _, err := other.Tick(t.Context()); err != nil || c.shard(shard).Epoch != epoch {
						t.Errorf("behind part %d another tick had the shard (%v)", parts, err)
					}
					if dies && parts == 1 {
						ticks, other = other, ticks
						time.Sleep(ticks.Lease + time.Second)
						count.Store(0)
					}
				}
				if n := int(count.Load()); n != len(names) {
					t.Errorf("%d runs were looked at, want each of %d once", n, len(names))
				}
				if parts < 2 || parts == 20 {
					t.Errorf("it took %d further parts, want some", parts)
				}
			})
		})
	}
}

// end has the noon runs of jobs succeed.
func (c *cloud) end(names []string) {
	c.Helper()
	for _, name := range names {
		id := run.FireID(name, noon().UnixMilli())
		items, err := c.durable.Get(c.Context(), id.Key("default"))
		if err != nil {
			c.Fatal(err)
		}
		r, ok, err := run.FromItem("default", id, items[0])
		if err != nil || !ok {
			c.Fatalf("run %s: %t, %v", id, ok, err)
		}
		r.State = run.Succeeded
		op, err := r.Item(c.newID())
		if err != nil {
			c.Fatal(err)
		}
		op.If = store.Any
		if _, err := c.durable.Write(c.Context(), op); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *cloud) shard(n int) timer.Shard {
	c.Helper()
	items, err := c.durable.Get(c.Context(), timer.ShardKey(n))
	if err != nil {
		c.Fatal(err)
	}
	s, err := timer.ShardFromItem(n, items[0])
	if err != nil {
		c.Fatal(err)
	}
	return s
}

// TestP2_ALaterSweepLooksAtBucketsThatHaveChanged has a timer come late, when the first sweep has passed, into one of two buckets of several
// pages, and takes away a run of each. The second sweep comes upon what is missing in the bucket that has changed, and has no reason to look at
// the other.
func TestP2_ALaterSweepLooksAtBucketsThatHaveChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		names := c.crowd(3)
		late := names[0]
		bucket := timer.BucketOf("default", late)
		changed := slices.IndexFunc(names[1:], func(name string) bool { return timer.BucketOf("default", name) == bucket })
		same := slices.IndexFunc(names, func(name string) bool { return timer.BucketOf("default", name) != bucket })
		gone := []string{late, names[1:][changed], names[same]}
		c.toNoon()
		if _, err := c.ticker().Turn(t.Context(), tick.Turn{}); err != nil {
			t.Fatal(err)
		}
		for _, name := range gone {
			c.drop(run.FireID(name, noon().UnixMilli()).Key("default"))
		}
		page, err := c.durable.Query(t.Context(), store.Range{Partition: timer.Partition(timer.Minute(noon().UnixMilli()), bucket), Limit: 4 * tick.PageSize})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(page.Items, func(i store.Item) bool {
			one, err := timer.FromItem(i)
			return err == nil && one.Job == late
		})
		c.drop(page.Items[i].Key)
		until := func(after time.Duration) (claimed int) {
			for time.Now().Before(noon().Add(after)) {
				time.Sleep(time.Minute)
				report, err := c.ticker().Turn(t.Context(), tick.Turn{})
				if err != nil {
					t.Fatal(err)
				}
				claimed += report.Repairs.Claimed
			}
			return claimed
		}
		if n := until(5 * time.Minute); n != 2 {
			t.Errorf("the first sweep claimed %d fires, want the 2 that have a timer", n)
		}
		for _, name := range gone[1:] {
			c.drop(run.FireID(name, noon().UnixMilli()).Key("default"))
		}
		back := page.Items[i]
		if _, err := c.durable.Write(t.Context(), store.Op{Kind: store.Put, Key: back.Key, Value: back.Value, Expires: back.Expires}); err != nil {
			t.Fatal(err)
		}
		if n := until(14 * time.Minute); n != 2 {
			t.Errorf("the second sweep claimed %d fires, want 2: that whose timer came late, and another of its bucket", n)
		}
		if n := until(65 * time.Minute); n != 0 {
			t.Errorf("the last sweep claimed %d fires, want none: nothing has changed", n)
		}
	})
}

func (c *cloud) drop(key store.Key) {
	c.Helper()
	if _, err := c.durable.Write(c.Context(), store.Op{Kind: store.Delete, Key: key}); err != nil {
		c.Fatal(err)
	}
}
