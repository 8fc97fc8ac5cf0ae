package tick_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/stats"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// server is a cloud of one shard, as a server alone has it.
func server(t *testing.T) *cloud {
	c := &cloud{T: t, durable: memory.New(memory.Config{}), sent: map[string][]time.Time{}}
	var err error
	if c.layout, err = timer.Setup(t.Context(), c.durable, 1, time.Now().UnixMilli(), c.newID); err != nil {
		t.Fatal(err)
	}
	return c
}

// counts is a store whose counts take their time, or are refused; all else is quick.
type counts struct {
	store.Store
	took    atomic.Int64 // ns, of each request
	refused atomic.Bool  // what is written of hours
	noNotes atomic.Bool  // what is owed of hours, and the list of what was counted
	unnoted atomic.Bool  // what is written of what is owed
	reads   atomic.Int64 // items of minutes
	asked   atomic.Int64 // requests for counts
}

func (s *counts) wait(ctx context.Context, partitions ...string) error {
	for _, p := range partitions {
		note := strings.HasPrefix(p, "owed#") || strings.HasPrefix(p, "swept#")
		if note && s.noNotes.Load() {
			return store.ErrThrottled
		}
		if note || strings.HasPrefix(p, "sum#") {
			s.asked.Add(1)
			select {
			case <-time.After(time.Duration(s.took.Load())):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (s *counts) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	if len(keys) > 0 {
		if err := s.wait(ctx, keys[0].Partition); err != nil {
			return nil, err
		}
	}
	return s.Store.Peek(ctx, keys...)
}

func (s *counts) Query(ctx context.Context, r store.Range) (store.Page, error) {
	if err := s.wait(ctx, r.Partition); err != nil {
		return store.Page{}, err
	}
	page, err := s.Store.Query(ctx, r)
	if strings.HasPrefix(r.Partition, "sum#") {
		s.reads.Add(int64(len(page.Items)))
	}
	return page, err
}

func (s *counts) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	partitions := make([]string, len(ops))
	for i, op := range ops {
		partitions[i] = op.Key.Partition
		if s.refused.Load() && strings.HasPrefix(op.Key.Partition, "sum#") && strings.HasPrefix(op.Key.Sort, "h#") {
			return nil, store.ErrThrottled
		}
		if s.unnoted.Load() && strings.HasPrefix(op.Key.Partition, "owed#") {
			return nil, store.ErrThrottled
		}
	}
	if err := s.wait(ctx, partitions...); err != nil {
		return nil, err
	}
	return s.Store.WriteEach(ctx, ops...)
}

// counting gives a process that counts.
func (c *cloud) counting(s *counts, lookAhead time.Duration) *tick.Ticker {
	c.Helper()
	cfg := c.dispatcher().Config
	if s.Store == nil {
		s.Store = cfg.Store
	}
	cfg.Store, cfg.Book, cfg.LookAhead = s, job.NewBook(s, job.Compile), lookAhead
	d, err := dispatch.New(cfg)
	if err != nil {
		c.Fatal(err)
	}
	ticks, err := tick.New(tick.Config{Dispatch: d, Metrics: metrics.New(), Owner: fmt.Sprint("node-", c.owners.Add(1)), Alone: true, Counts: true})
	if err != nil {
		c.Fatal(err)
	}
	return ticks
}

// put makes a job of a tenant.
func (c *cloud) put(tenant, name string, spec schedule.Spec) {
	c.Helper()
	d := c.dispatcher()
	service, err := control.New(control.Config{Store: d.Store, Blobs: blob.New(memblob.OpenBucket(nil)), Dispatch: d, Now: time.Now, NewID: c.newID,
		Can: func(string, target.Spec) error { return nil }})
	if err != nil {
		c.Fatal(err)
	}
	def := job.Definition{Schedule: &spec, Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
	if _, _, err := service.Put(c.Context(), tenant, name, def, control.Match{}); err != nil {
		c.Fatal(err)
	}
}

// ticksUntil has a process tick so far apart.
func (c *cloud) ticksUntil(t *tick.Ticker, until time.Time, every time.Duration) {
	c.Helper()
	for time.Now().Before(until) {
		began := time.Now()
		if _, err := t.Tick(c.Context()); err != nil {
			c.Fatal(err)
		}
		time.Sleep(max(every-time.Since(began), time.Millisecond))
	}
}

// hour gives what stands of an hour of a tenant.
func (c *cloud) hour(tenant string, at time.Time) (counts stats.Counts) {
	c.Helper()
	hour := at.UnixMilli() / stats.Hour
	page, err := c.durable.Query(c.Context(), stats.Hours(tenant, hour, hour+1))
	if err != nil {
		c.Fatal(err)
	}
	for _, item := range page.Items {
		_, some, err := stats.OfHour(item)
		if err != nil {
			c.Fatal(err)
		}
		counts.Merge(&some)
	}
	return counts
}

// TestCountsHoldUpNoFire has all requests for counts take three seconds, of a server that claims two seconds ahead: while its sweeps write what they have
// counted, and when an hour is added up, or its list is refused too, all that is due is sent in time.
func TestCountsHoldUpNoFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := server(t)
		began := time.Now()
		c.put("default", "often", schedule.Spec{Every: schedule.Duration(time.Second)})
		s := new(counts)
		s.took.Store(int64(3 * time.Second))
		ticks := c.counting(s, 2*time.Second)
		judged := 0
		judge := func(from time.Time) {
			for id, times := range c.sent {
				parsed, err := run.ParseID(id)
				if err != nil {
					t.Fatal(err)
				}
				if due := parsed.Time(); !due.Before(from) {
					judged++
					if late := times[0].Sub(due); late > 0 {
						t.Errorf("%s was sent %s late", id, late)
					}
				}
			}
		}
		c.ticksUntil(ticks, began.Add(6*time.Minute), time.Second)
		judge(began.Add(time.Minute))
		clear(c.sent)
		c.ticksUntil(ticks, began.Add(118*time.Minute), 20*time.Second)
		s.asked.Store(0)
		c.ticksUntil(ticks, began.Add(123*time.Minute), time.Second) // the last sweep passes the hour
		judge(began.Add(119 * time.Minute))
		clear(c.sent)
		s.noNotes.Store(true)
		c.ticksUntil(ticks, began.Add(178*time.Minute), 20*time.Second)
		c.ticksUntil(ticks, began.Add(183*time.Minute), time.Second)
		judge(began.Add(179 * time.Minute))
		if judged < 750 || s.asked.Load() < 10 {
			t.Errorf("%d runs were judged, beside %d requests for counts", judged, s.asked.Load())
		}
	})
}

// tenants makes so many, each with a job that fires every ten minutes.
func (c *cloud) tenants(n int) (names []string) {
	c.Helper()
	for i := range n {
		names = append(names, fmt.Sprint("t-", i))
		c.put(names[i], "a", schedule.Spec{Every: schedule.Duration(10 * time.Minute)})
	}
	return names
}

// added is how many tenants have an hour that is added up in full.
func (c *cloud) added(tenants []string, at time.Time, due int) (n int) {
	c.Helper()
	for _, tenant := range tenants {
		switch counts := c.hour(tenant, at); counts.Due() {
		case due:
			n++
		case 0:
		default:
			c.Errorf("of %s %d runs are added up, want %d or none", tenant, counts.Due(), due)
		}
	}
	return n
}

// kill has the runs of a tenant's job that were due in an hour end as dead.
func (c *cloud) kill(tenant string, hour time.Time) {
	c.Helper()
	for at := hour; at.Before(hour.Add(time.Hour)); at = at.Add(10 * time.Minute) {
		id := run.FireID("a", at.UnixMilli())
		items, err := c.durable.Get(c.Context(), id.Key(tenant))
		if err != nil {
			c.Fatal(err)
		}
		r, ok, err := run.FromItem(tenant, id, items[0])
		if err != nil || !ok {
			c.Fatalf("run %s: %t, %v", id, ok, err)
		}
		r.State = run.Dead
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

// TestAnHourIsAddedUpInParts has so many tenants that one pass has no time for them all: each minute some more are added up, also by the next life of the process,
// and none is left out for good. Runs that end three hours late are counted with their end, in parts too.
func TestAnHourIsAddedUpInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := server(t)
		began := time.Now()
		tenants := c.tenants(60)
		hour := began.Add(time.Hour)
		s := new(counts)
		s.took.Store(int64(50 * time.Millisecond)) // two for each hour, eight tenants at a time, in a part of half a second
		ticks := c.counting(s, 2*time.Second)
		c.ticksUntil(ticks, began.Add(3*time.Hour+30*time.Second), 30*time.Second)
		some := c.added(tenants, hour, 6)
		if some == 0 || some > 24 {
			t.Errorf("the first part added %d tenants up", some)
		}
		ticks = c.counting(s, 2*time.Second)
		c.ticksUntil(ticks, began.Add(3*time.Hour+10*time.Minute), 30*time.Second)
		if n := c.added(tenants, hour, 6); n != len(tenants) {
			t.Errorf("%d of %d tenants are added up", n, len(tenants))
		}
		dead := tenants[:30]
		for _, tenant := range dead {
			c.kill(tenant, hour)
		}
		c.ticksUntil(ticks, began.Add(7*time.Hour+30*time.Second), 30*time.Second)
		if n := c.hour(tenants[59], hour).Open; n != 6 {
			t.Errorf("%d runs are open", n)
		}
		c.ticksUntil(ticks, began.Add(7*time.Hour+50*time.Minute), 30*time.Second)
		for i, tenant := range tenants {
			counts := c.hour(tenant, hour)
			if i < len(dead) && counts.In(run.Dead) != 6 || i >= len(dead) && counts.Open != 6 || counts.Due() != 6 {
				t.Errorf("%s: %+v", tenant, counts)
			}
		}
	})
}

// TestAnHourIsAddedUpOnceTheStoreTakesIt, however long it has refused that. What is left to be done is known to the next life of the process.
func TestAnHourIsAddedUpOnceTheStoreTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := server(t)
		began := time.Now()
		tenants := c.tenants(5)
		s := new(counts)
		ticks := c.counting(s, 2*time.Second)
		s.refused.Store(true)
		c.ticksUntil(ticks, began.Add(5*time.Hour+2*time.Minute), 30*time.Second)
		if n := c.added(tenants, began.Add(time.Hour), 6); n != 0 {
			t.Fatalf("%d are added up though none may be", n)
		}
		s.refused.Store(false)
		ticks = c.counting(s, 2*time.Second)
		c.ticksUntil(ticks, began.Add(5*time.Hour+5*time.Minute), 30*time.Second)
		for hour := 1; hour < 4; hour++ {
			if n := c.added(tenants, began.Add(time.Duration(hour)*time.Hour), 6); n != len(tenants) {
				t.Errorf("hour %d: %d of %d tenants are added up", hour, n, len(tenants))
			}
		}
		page, err := c.durable.Query(t.Context(), store.Range{Partition: "owed#00"})
		if err != nil || len(page.Items) == 0 {
			t.Fatalf("nothing is owed, though all runs are open: %v", err)
		}
	})
}

// TestAnHourIsAddedUpThoughItsListCameLate: while nothing can be noted of what is to be added up, since the store is slow or refuses it, the sweeps go on,
// and whoever comes next makes the lists of all hours that were passed over.
func TestAnHourIsAddedUpThoughItsListCameLate(t *testing.T) {
	for name, fails := range map[string]func(*counts){
		"slow":    func(s *counts) { s.took.Store(int64(3 * time.Second)) },
		"refused": func(s *counts) { s.noNotes.Store(true) },
		"unnoted": func(s *counts) { s.refused.Store(true); s.unnoted.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := server(t)
				began := time.Now()
				tenants := c.tenants(5)
				s := new(counts)
				ticks := c.counting(s, 2*time.Second)
				c.ticksUntil(ticks, began.Add(118*time.Minute), 30*time.Second)
				fails(s) // the last sweeps of two hours
				c.ticksUntil(ticks, began.Add(185*time.Minute), 30*time.Second)
				if n := c.added(tenants, began, 5) + c.added(tenants, began.Add(time.Hour), 6); n != 0 {
					t.Fatalf("%d are added up though none may be", n)
				}
				report, err := ticks.Tick(t.Context())
				if swept := began.Add(183*time.Minute - timer.Lags[timer.Sweeps-1]).UnixMilli(); err != nil || report.Swept < swept {
					t.Errorf("the last sweep has come to %d, %d ms before where it might be: %v", report.Swept, swept-report.Swept, err)
				}
				s.took.Store(0)
				s.noNotes.Store(false)
				s.unnoted.Store(false)
				s.refused.Store(false)
				ticks = c.counting(s, 2*time.Second)
				c.ticksUntil(ticks, began.Add(190*time.Minute), 30*time.Second)
				// Of the hour in which the jobs were made, the first fire came ten minutes after that.
				if n, m := c.added(tenants, began, 5), c.added(tenants, began.Add(time.Hour), 6); n != len(tenants) || m != len(tenants) {
					t.Errorf("%d and %d of %d tenants are added up", n, m, len(tenants))
				}
			})
		})
	}
}

// TestAnHourOfManyLongNames has more to be noted of an hour than one item has room for: all of it is, in parts, and added up once the store takes it.
func TestAnHourOfManyLongNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := server(t)
		began := time.Now()
		// What the first sweep remembers of some minutes, as if it had come upon so many tenants in each.
		type counted struct {
			Tenant  string  `cbor:"1,keyasint"`
			Minutes []int64 `cbor:"2,keyasint"`
		}
		var tenants []string
		for minute := range 4 {
			var print struct {
				Buckets [timer.Buckets]uint64 `cbor:"1,keyasint"`
				Counted []counted             `cbor:"2,keyasint"`
			}
			at := began.UnixMilli()/stats.Minute + int64(minute)
			for i := range 1500 {
				tenant := fmt.Sprintf("%064d", minute*1500+i)
				tenants = append(tenants, tenant)
				print.Counted = append(print.Counted, counted{tenant, []int64{0}})
				sum := stats.Sum{Place: stats.Place{Tenant: tenant, Minute: at, Swept: at}}
				sum.Count(run.Run{State: run.Succeeded})
				op, err := sum.Put(time.Now(), c.newID())
				if err != nil {
					t.Fatal(err)
				}
				c.write(op)
			}
			value, err := record.Encode(print)
			if err != nil {
				t.Fatal(err)
			}
			c.write(store.Op{Kind: store.Put, Key: store.Key{Partition: "swept#00", Sort: fmt.Sprintf("%010d", at)}, Value: value})
		}
		s := new(counts)
		s.refused.Store(true)
		ticks := c.counting(s, 2*time.Second)
		c.ticksUntil(ticks, began.Add(2*time.Hour+3*time.Minute), 30*time.Second)
		page, err := c.durable.Query(t.Context(), store.Range{Partition: "owed#00"})
		bytes := 0
		for _, item := range page.Items {
			bytes += len(item.Value)
		}
		if err != nil || bytes < store.MaxItemBytes {
			t.Fatalf("%d bytes are noted, and %v: no more than one item has room for", bytes, err)
		}
		s.refused.Store(false)
		ticks = c.counting(s, 2*time.Second)
		c.ticksUntil(ticks, began.Add(2*time.Hour+6*time.Minute), 30*time.Second)
		if n := c.added(tenants, began, 1); n != len(tenants) {
			t.Errorf("%d of %d tenants are added up", n, len(tenants))
		}
		page, err = c.durable.Query(t.Context(), store.Range{Partition: "owed#00"})
		if err != nil || len(page.Items) > 0 {
			t.Errorf("%d parts are owed still: %v", len(page.Items), err)
		}
	})
}

// write writes to the store, past everybody.
func (c *cloud) write(op store.Op) {
	c.Helper()
	if _, err := c.durable.Write(c.Context(), op); err != nil {
		c.Fatal(err)
	}
}

// TestAShardReadsItsOwnCountsAlone when it adds up, of a tenant whose runs lie in all shards.
func TestAShardReadsItsOwnCountsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		began := time.Now()
		for i := range 48 {
			c.put("default", fmt.Sprint("job-", i), schedule.Spec{Every: schedule.Duration(10 * time.Minute)})
		}
		s := new(counts)
		ticks := c.counting(s, 150*time.Second)
		c.ticksUntil(ticks, began.Add(4*time.Hour), time.Minute)
		items := 0
		for shard := range shards {
			page, err := c.durable.Query(t.Context(), stats.Minutes("default", shard, 0, time.Now().UnixMilli()/stats.Minute))
			if err != nil {
				t.Fatal(err)
			}
			items += len(page.Items)
		}
		if n := int(s.reads.Load()); n == 0 || n > items {
			t.Errorf("%d items of minutes were read, of %d", n, items)
		}
	})
}
