package tick_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// odd is a store in which looking takes long, and which may answer as DynamoDB does: a page that is full has a cursor, also where nothing
// is left.
type odd struct {
	store.Store
	peek   time.Duration // takes a look at runs
	query  time.Duration // takes a page of the timers of noon
	full   bool          // pages that are full have a cursor
	looked *atomic.Int64 // runs
}

func (s odd) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	s.looked.Add(int64(len(keys)))
	time.Sleep(s.peek)
	return s.Store.Peek(ctx, keys...)
}

func (s odd) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if noon := timer.Partition(timer.Minute(noon().UnixMilli()), 0); strings.HasPrefix(r.Partition, noon[:strings.LastIndex(noon, "#")+1]) {
		time.Sleep(s.query)
	}
	p, err := s.Store.Query(ctx, r)
	if s.full && err == nil && len(p.Items) == r.Limit && p.Cursor == "" {
		p.Cursor = r.After(p.Items[len(p.Items)-1].Sort)
	}
	return p, err
}

// over gives a ticker whose passes have little room, over an odd store.
func (c *cloud) over(s odd, alone bool) *tick.Ticker {
	c.Helper()
	cfg := c.dispatcher().Config
	s.Store = cfg.Store
	cfg.Store = s
	d, err := dispatch.New(cfg)
	if err != nil {
		c.Fatal(err)
	}
	ticks, err := tick.New(tick.Config{Dispatch: d, Metrics: metrics.New(), Owner: "node", Work: 1000, Alone: alone})
	if err != nil {
		c.Fatal(err)
	}
	return ticks
}

// TestP2_P4_ALongMinuteIsSweptInParts has the sweep of a minute take several times the look-ahead of a tick that is alone. In between it
// publishes its horizon and claims what is due, and no run is looked at twice, but by the next life of a process that dies on the way. Where
// others tick as well, it does all of the minute: what it knows would be worth nothing to them.
func TestP2_P4_ALongMinuteIsSweptInParts(t *testing.T) {
	for _, row := range []struct {
		name        string
		alone, dies bool
	}{{"alone", true, false}, {"dies", true, true}, {"shared", false, false}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				names := c.crowd(3)
				c.toNoon()
				store := odd{peek: 13 * time.Second, looked: new(atomic.Int64)} // three times that for a page, and a part
				ticks := c.over(store, row.alone)
				if _, err := ticks.Turn(t.Context(), tick.Turn{}); err != nil {
					t.Fatal(err)
				}
				c.end(names)
				time.Sleep(time.Until(noon().Add(3*time.Minute + time.Second)))
				shard := c.layout.ShardOf(timer.BucketOf("default", "job-0"))
				store.looked.Store(0)
				parts := 0
				for end := noon().Add(time.Minute).UnixMilli(); parts < 99 && c.shard(shard).Swept[0] < end; parts++ {
					began := time.Now()
					report, err := ticks.Tick(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					left := c.shard(shard)
					if took := time.Since(began); row.alone && took > 150*time.Second/4+3*store.peek {
						t.Errorf("part %d took %s, want no more than a quarter of the look-ahead and a page", parts, took)
					}
					if left.Horizon < began.Add(150*time.Second).UnixMilli() {
						t.Errorf("in part %d fires are claimed up to %s only", parts, time.UnixMilli(left.Horizon))
					}
					if !report.Behind && left.Swept[0] < end {
						t.Errorf("part %d left some of the minute, and did not say so", parts)
					}
					if row.dies && parts == 1 {
						ticks = c.over(store, true)
						store.looked.Store(0)
					}
				}
				if n := int(store.looked.Load()); n != len(names) {
					t.Errorf("%d runs were looked at, want each of %d once", n, len(names))
				}
				if row.alone && parts < 3 || !row.alone && parts != 1 {
					t.Errorf("it took %d parts", parts)
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

// TestP2_P4_WhatComesLateIsFound has a timer come late, when the first sweep has passed, onto the first page of a bucket of several. However
// that bucket is cut into pages, and into parts of a sweep, a later sweep comes upon it. The bucket beside it, which has not changed, is not
// looked into: a run that is taken away from there is not missed.
func TestP2_P4_WhatComesLateIsFound(t *testing.T) {
	for _, row := range []struct {
		name  string
		pages int
		odd   odd
	}{
		{"one page", 1, odd{}},
		{"pages", 3, odd{}},
		{"pages that end with an empty one", 2, odd{full: true}},
		{"one page, and an empty one", 1, odd{full: true}},
		{"cut before the last page", 2, odd{query: 40 * time.Second}},
		{"cut before the last page of three", 3, odd{query: 25 * time.Second}},
		{"cut where a changed bucket is read once more", 2, odd{peek: 40 * time.Second}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				names := c.crowd(row.pages)
				bucket := timer.BucketOf("default", names[0])
				c.toNoon()
				if _, err := c.ticker().Turn(t.Context(), tick.Turn{}); err != nil {
					t.Fatal(err)
				}
				page, err := c.durable.Query(t.Context(), store.Range{Partition: timer.Partition(timer.Minute(noon().UnixMilli()), bucket), Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				late, err := timer.FromItem(page.Items[0])
				if err != nil {
					t.Fatal(err)
				}
				c.end(names)
				lose := func(name string) { c.drop(run.FireID(name, noon().UnixMilli()).Key("default")) }
				c.drop(page.Items[0].Key)
				lose(late.Job)
				row.odd.looked = new(atomic.Int64)
				quick, slow := c.over(odd{full: row.odd.full, looked: row.odd.looked}, true), c.over(row.odd, true)
				until := func(ticks *tick.Ticker, after time.Duration) (claimed int) {
					for time.Now().Before(noon().Add(after)) {
						time.Sleep(time.Minute)
						report, err := ticks.Turn(t.Context(), tick.Turn{})
						if err != nil {
							t.Fatal(err)
						}
						claimed += report.Repairs.Claimed
					}
					return claimed
				}
				if n := until(quick, 5*time.Minute); n != 0 {
					t.Errorf("the first sweep claimed %d fires, want none", n)
				}
				back := page.Items[0]
				if _, err := c.durable.Write(t.Context(), store.Op{Kind: store.Put, Key: back.Key, Value: back.Value, Expires: back.Expires}); err != nil {
					t.Fatal(err)
				}
				lose(names[slices.IndexFunc(names, func(name string) bool { return timer.BucketOf("default", name) != bucket })])
				row.odd.looked.Store(0)
				until(quick, 9*time.Minute)
				if n := until(slow, 20*time.Minute); n != 1 {
					t.Errorf("the second sweep claimed %d fires, want the one whose timer came late", n)
				}
				if swept := c.shard(c.layout.ShardOf(bucket)).Swept[1]; swept <= noon().UnixMilli() {
					t.Errorf("the second sweep has come to %s only", time.UnixMilli(swept))
				}
				if n, most := int(row.odd.looked.Load()), row.pages*tick.PageSize+10; n > most {
					t.Errorf("%d runs were looked at, want those of the changed bucket, %d at most", n, most)
				}
			})
		})
	}
}

func (c *cloud) drop(key store.Key) {
	c.Helper()
	if _, err := c.durable.Write(c.Context(), store.Op{Kind: store.Delete, Key: key}); err != nil {
		c.Fatal(err)
	}
}
