package tick_test

import (
	"context"
	"fmt"
	"sync"
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
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

const shards = 16

// cloud is a store and a queue that take their time, and ticks that begin with nothing. It lives in a synctest bubble.
type cloud struct {
	*testing.T
	durable *memory.Store
	layout  timer.Layout
	took    time.Duration // by each request of the store or the queue
	busy    bool          // only what does the work takes it: looking is quick
	owners  atomic.Int64
	ids     atomic.Uint64

	mu   sync.Mutex
	sent map[string][]time.Time // when, by run
}

func newCloud(t *testing.T) *cloud {
	time.Sleep(time.Until(noon().Add(-10 * time.Minute))) // so that no long night is swept first
	c := &cloud{T: t, durable: memory.New(memory.Config{}), sent: map[string][]time.Time{}}
	var err error
	c.layout, err = timer.Setup(t.Context(), c.durable, shards, time.Now().UnixMilli(), c.newID)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cloud) newID() uint64 { return c.ids.Add(1) }

// wait is how long requests take that go out so many at a time.
func (c *cloud) wait(ctx context.Context, requests, together int) {
	if c.took == 0 {
		return
	}
	over := time.NewTimer(c.took * time.Duration((requests+together-1)/together))
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
}

// slow is the store, as one that is reached over a network: each call takes its time, of writes that go alone 32 at once.
type slow struct {
	*faulty.Store
	cloud *cloud
}

func (s slow) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	s.cloud.wait(ctx, len(ops), 32)
	return s.Store.WriteEach(ctx, ops...)
}

// noted is the queue: it notes what is sent.
type noted struct {
	queue.Queue
	cloud *cloud
}

func (n noted) Send(ctx context.Context, _ queue.Priority, batch ...queue.Outgoing) ([]error, error) {
	n.cloud.wait(ctx, 1, 1)
	for _, m := range batch {
		message, err := run.DecodeMessage(m.Body)
		if err != nil {
			return nil, err
		}
		n.cloud.mu.Lock()
		n.cloud.sent[message.Run.ID.String()] = append(n.cloud.sent[message.Run.ID.String()], time.Now())
		n.cloud.mu.Unlock()
	}
	return make([]error, len(batch)), nil
}

func (n noted) Depth(context.Context) (map[queue.Priority]queue.Depth, error) { return nil, nil }

// dispatcher is that of a process that has just started.
func (c *cloud) dispatcher() *dispatch.Dispatcher {
	c.Helper()
	s := slow{faulty.New(c.durable, func(ctx context.Context, call faulty.Call) faulty.Fault {
		if call.Method != faulty.WriteEach && !c.busy {
			c.wait(ctx, 1, 1)
		}
		return faulty.Fault{}
	}), c}
	began := time.Now()
	d, err := dispatch.New(dispatch.Config{Store: s, Book: job.NewBook(s, job.Compile), Queues: map[string]queue.Queue{"default": noted{cloud: c}},
		Layout: c.layout, Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: c.newID, LookAhead: 150 * time.Second})
	if err != nil {
		c.Fatal(err)
	}
	return d
}

func (c *cloud) ticker() *tick.Ticker {
	c.Helper()
	t, err := tick.New(tick.Config{Dispatch: c.dispatcher(), Metrics: metrics.New(), Owner: fmt.Sprint("tick-", c.owners.Add(1))})
	if err != nil {
		c.Fatal(err)
	}
	return t
}

// jobs makes so many that fire daily at noon.
func (c *cloud) jobs(n int) {
	c.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
	}
	c.named(names...)
}

// named makes jobs that fire daily at noon.
func (c *cloud) named(names ...string) {
	c.Helper()
	d := c.dispatcher()
	service, err := control.New(control.Config{Store: d.Store, Blobs: blob.New(memblob.OpenBucket(nil)), Dispatch: d, Now: time.Now, NewID: c.newID,
		Can: func(string, target.Spec) error { return nil }})
	if err != nil {
		c.Fatal(err)
	}
	def := job.Definition{Schedule: &schedule.Spec{Cron: "0 12 * * *"}, Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
	for _, name := range names {
		if _, _, err := service.Put(c.Context(), "default", name, def, control.Match{}); err != nil {
			c.Fatal(err)
		}
	}
}

// sentOnce asserts that each of so many runs was sent, before an instant, and once.
func (c *cloud) sentOnce(n int, before time.Time) {
	c.Helper()
	if len(c.sent) != n {
		c.Errorf("%d runs were sent, want %d", len(c.sent), n)
	}
	late, twice := 0, 0
	for _, times := range c.sent {
		if len(times) != 1 {
			twice++
		}
		if !times[0].Before(before) {
			late++
		}
	}
	if late+twice > 0 {
		c.Errorf("%d runs were sent late and %d more than once", late, twice)
	}
}

// noon is when the jobs fire; a bubble's clock begins at midnight.
func noon() time.Time { return time.Now().Truncate(24 * time.Hour).Add(12 * time.Hour) }

// toNoon lets ticks go by until the first that sees noon.
func (c *cloud) toNoon() {
	c.Helper()
	time.Sleep(time.Until(noon().Add(-179 * time.Second)))
	if _, err := c.ticker().Turn(c.Context(), tick.Turn{}); err != nil {
		c.Fatal(err)
	}
	time.Sleep(time.Minute)
}

// TestP2_P11_AMillionFiresInOneMinute has a million jobs fire at one second, scaled down: 25 times fewer, of which each takes 25 times
// as long as it would with requests of 10 ms. One tick cannot do it. It asks others, and each fire is sent before it is due, and once.
func TestP2_P11_AMillionFiresInOneMinute(t *testing.T) {
	const scale = 25
	for _, one := range []struct {
		name         string
		fires, asked int
		together     int // that Lambda starts at once
	}{
		{"a thousand", 1000 / scale, 0, shards},
		{"a hundred thousand", 100_000 / scale, 8, shards},
		{"a million, fifteen helpers", 1_000_000 / scale, shards - 1, shards},
		{"a million, five helpers at a time", 1_000_000 / scale, shards - 1, 5},
	} {
		if testing.Short() && one.fires > 100_000/scale {
			continue
		}
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				c.jobs(one.fires)
				c.toNoon()
				c.took = scale * 10 * time.Millisecond
				var crew sync.WaitGroup
				var asked, working, most atomic.Int64
				places := make(chan struct{}, one.together)
				var turn func(help *tick.Help)
				ask := func(_ context.Context, wanted []tick.Help) error {
					for _, help := range wanted {
						asked.Add(1)
						crew.Go(func() {
							places <- struct{}{}
							defer func() { <-places }()
							most.Store(max(most.Load(), working.Add(1)))
							defer working.Add(-1)
							turn(&help)
						})
					}
					return nil
				}
				turn = func(help *tick.Help) {
					time.Sleep(time.Second) // a cold start
					if _, err := c.ticker().Turn(t.Context(), tick.Turn{Work: 5000 / scale, Until: 105 * time.Second, Help: help, Ask: ask}); err != nil {
						t.Error(err)
					}
				}
				turn(nil)
				crew.Wait()
				t.Logf("%d fires: %d helpers, %d at once, all sent %s before noon", one.fires, asked.Load(), most.Load(), time.Until(noon()))
				c.sentOnce(one.fires, noon())
				if n := int(asked.Load()); n < one.asked || n > 2*one.asked {
					t.Errorf("%d helpers were asked, want %d and some who go on for them", n, one.asked)
				}
			})
		})
	}
}

// TestATurnStopsCleanBeforeItsEnd has a tick that has not the time for its minute, and nobody to ask. What it has done is written: who
// comes next, and knows nothing of it, does the rest and nothing again.
func TestATurnStopsCleanBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		const fires = 6000
		c.jobs(fires)
		c.toNoon()
		c.took = 200 * time.Millisecond
		turns, claimed := 0, 0
		for behind := true; behind && turns < 50; turns++ {
			report, err := c.ticker().Turn(t.Context(), tick.Turn{Until: 20 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if report.Resent > 0 {
				t.Errorf("turn %d sent %d runs again", turns, report.Resent)
			}
			claimed += report.Claimed
			behind = report.Behind
		}
		if turns < 4 || claimed != fires {
			t.Errorf("%d runs were claimed in %d turns, want %d in several", claimed, turns, fires)
		}
		c.sentOnce(fires, noon().Add(time.Hour))
	})
}

// TestP11_AShardIsKeptForAsLongAsItsWorkTakes has one page take longer than a lease: others find the shard held all that time.
func TestP11_AShardIsKeptForAsLongAsItsWorkTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		const fires = 1500
		c.jobs(fires)
		c.toNoon()
		first := c.ticker()
		c.took, c.busy = 8*time.Second, true
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := first.Tick(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		other := c.ticker()
		again := 0
		for working := true; working; {
			select {
			case <-done:
				working = false
			case <-time.After(5 * time.Second):
				report, err := other.Tick(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				again += report.Resent
			}
		}
		if again > 0 {
			t.Errorf("another tick took the shard in between, and sent %d runs again", again)
		}
		c.sentOnce(fires, noon().Add(24*time.Hour))
	})
}

// TestHelpersEnd holds that help that was asked for too long ago, or handed on too often, is none.
func TestHelpersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.jobs(100)
		c.toNoon()
		now := time.Now()
		for _, help := range []tick.Help{
			{At: now.Add(-6 * time.Minute).UnixMilli(), Upto: noon().UnixMilli(), Generation: 1},
			{At: now.UnixMilli(), Upto: noon().UnixMilli(), Generation: 9},
		} {
			report, err := c.ticker().Turn(t.Context(), tick.Turn{Help: &help})
			if err != nil || report.Passes != 0 {
				t.Errorf("%+v: %d passes, %v, want none", help, report.Passes, err)
			}
		}
		if _, err := c.ticker().Turn(t.Context(), tick.Turn{}); err != nil {
			t.Fatal(err)
		}
		late := tick.Help{At: now.UnixMilli(), Upto: noon().UnixMilli(), Generation: 1, Shard: 3}
		if report, err := c.ticker().Turn(t.Context(), tick.Turn{Help: &late}); err != nil || report.Passes != 0 {
			t.Errorf("help where nothing is left made %d passes, %v, want none", report.Passes, err)
		}
		c.sentOnce(100, noon())
	})
}

// TestATickIsCountedWhereOthersHaveTheShards holds that the tick of each minute tells of itself where servers on the same store tick too,
// and have every shard when it comes. An alarm takes its silence for ticks that do not come.
func TestATickIsCountedWhereOthersHaveTheShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		if _, err := c.ticker().Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		counted := func(ticker *tick.Ticker) (n uint64) {
			ticker.Metrics.Each(time.Now(), func(f metrics.Family, samples []metrics.Sample) {
				if f.Name == "belfry_tick_seconds" {
					n = samples[0].Histogram.Count
				}
			})
			return n
		}
		now := time.Now().UnixMilli()
		for _, one := range []struct {
			what string
			turn tick.Turn
			want uint64
		}{
			{"by the clock", tick.Turn{}, 1},
			{"a helper", tick.Turn{Help: &tick.Help{At: now, Upto: now + 1_000_000, Generation: 1}}, 0},
		} {
			other := c.ticker()
			if report, err := other.Turn(t.Context(), one.turn); err != nil || report.Passes != 0 {
				t.Fatalf("%s: %d passes, %v, want none", one.what, report.Passes, err)
			}
			if n := counted(other); n != one.want {
				t.Errorf("%s: counted %d ticks, want %d", one.what, n, one.want)
			}
		}
	})
}
