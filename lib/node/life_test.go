package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// life is one start of a node, from New to the end of Run.
type life struct {
	*node.Node
	t    *testing.T
	stop func()

	// A life that is over is heard of no more: what its goroutines still do, a dead process would not. mu is held while the power is cut, so that
	// whoever is called before has its start in what the cut leaves, and whoever would be called after is not.
	mu   sync.RWMutex
	dead bool
}

// handle is what its jobs call.
type handle func(ctx context.Context, l *life, call target.Call) (target.Result, error)

func begin(t *testing.T, name string, s store.Store, bucket *gocloud.Bucket, f handle, change ...func(*node.Config)) *life {
	t.Helper()
	l := &life{t: t}
	handlers := new(target.Registry)
	if err := handlers.Register("f", func(ctx context.Context, call target.Call) (target.Result, error) {
		if l.isDead() {
			return target.Result{}, errors.New("dead")
		}
		return f(ctx, l, call)
	}); err != nil {
		t.Fatal(err)
	}
	targets, err := target.New(target.Config{Now: time.Now, Handlers: handlers})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cfg := node.Config{Store: s, Queues: map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now})}, Blobs: blob.New(bucket),
		Targets: targets, Metrics: metrics.New(), Now: time.Now, Elapsed: func() time.Duration { return time.Since(began) }, NewID: rand.Uint64, Name: name}
	for _, c := range change {
		c(&cfg)
	}
	if l.Node, err = node.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	l.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	t.Cleanup(l.stop) // within the bubble
	return l
}

// die ends the life of which nobody hears any more; cut takes what it leaves.
func (l *life) die(cut func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cut()
	l.dead = true
}

func (l *life) isDead() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.dead
}

// put makes a job that calls "f"; every 0 is one on demand.
func (l *life) put(name string, every time.Duration, change ...func(*job.Definition)) {
	l.t.Helper()
	def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "f"}}}
	if every > 0 {
		def.Schedule = &schedule.Spec{Every: schedule.Duration(every)}
	}
	for _, c := range change {
		c(&def)
	}
	if _, _, err := l.Control.Put(l.t.Context(), "default", name, def, control.Match{}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *life) runs(name string) []run.Run {
	l.t.Helper()
	var all []run.Run
	for cursor := ""; ; {
		runs, next, err := l.Control.Runs(l.t.Context(), "default", control.RunFilter{Job: name}, cursor, 1000)
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, runs...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

func atMostOnce(d *job.Definition) { d.Guarantee = job.AtMostOnce }

func openPebble(t *testing.T, fs vfs.FS) *pebble.Store {
	t.Helper()
	s, err := pebble.Open(pebble.Config{Dir: "/data", FS: fs, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestP1_P2_P5_Fault50_ACrash cuts the power again and again under load. What was accepted is there and ends; no fire is lost or
// doubled; at most once is called once; a run that was under way goes on at once, since its lease is void.
func TestP1_P2_P5_Fault50_ACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 7))
		mem := vfs.NewCrashableMem()
		bucket := memblob.OpenBucket(nil)
		var mu sync.Mutex
		calls := map[string]int{}
		f := func(ctx context.Context, l *life, call target.Call) (target.Result, error) {
			mu.Lock()
			calls[call.Run]++
			mu.Unlock()
			select {
			case <-time.After(time.Duration(len(call.Run)%3) * 700 * time.Millisecond):
			case <-ctx.Done():
			}
			return target.Result{}, ctx.Err()
		}
		s := openPebble(t, mem)
		l := begin(t, "life-0", s, bucket, f)
		l.put("most", time.Second, atMostOnce)
		l.put("least", time.Second)
		l.put("demand", 0)
		first := time.Now()
		var accepted []run.ID
		const crashes = 8
		for n := 1; n <= crashes; n++ {
			until := time.Now().Add(time.Duration(3000+random.IntN(4000)) * time.Millisecond)
			for time.Now().Before(until) {
				r, _, err := l.Control.Trigger(t.Context(), "default", "demand", control.Request{Delay: new(time.Duration(random.IntN(3)) * time.Second)})
				if err != nil {
					t.Fatal(err)
				}
				accepted = append(accepted, r.ID)
				time.Sleep(350 * time.Millisecond)
			}
			var cut *vfs.MemFS
			l.die(func() { cut = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random}) })
			l.stop()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			mem = cut
			s = openPebble(t, mem)
			began := time.Now()
			l = begin(t, fmt.Sprintf("life-%d", n), s, bucket, f)
			time.Sleep(4 * time.Second)
			for _, r := range l.runs("least") {
				if r.ID.Time().Before(began) && !r.State.Ended() {
					t.Errorf("crash %d: %s is still %s 4s after the start", n, r.ID, r.State)
				}
			}
		}
		last := time.Now()
		time.Sleep(10 * time.Second)
		fires := map[string]map[int64]run.State{"most": {}, "least": {}}
		unknown := 0
		for name, seen := range fires {
			for _, r := range l.runs(name) {
				seen[r.ID.Nominal] = r.State
				switch {
				case name == "most" && r.State == run.Unknown:
					unknown++
				case r.ID.Time().Before(last) && r.State != run.Succeeded:
					t.Errorf("%s ended as %s: %+v", r.ID, r.State, r.Attempts)
				}
				mu.Lock()
				n := calls[r.ID.String()]
				mu.Unlock()
				if name == "most" && n > 1 {
					t.Errorf("%s was called %d times", r.ID, n)
				}
			}
			for at := first.Truncate(time.Second).Add(time.Second); at.Before(last); at = at.Add(time.Second) {
				if _, ok := seen[at.UnixMilli()]; !ok {
					t.Errorf("%s has no run for %s", name, at)
				}
			}
		}
		if unknown == 0 || unknown > 2*crashes {
			t.Errorf("%d runs are unknown after %d crashes", unknown, crashes)
		}
		for _, id := range accepted {
			if r, err := l.Control.Run(t.Context(), "default", id); err != nil || r.State != run.Succeeded {
				t.Errorf("%s was accepted, and is %s, %v", id, r.State, err)
			}
		}
		l.stop()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFault17_RestartsMoreOftenThanThePeriod: no fire waits for a process that lives long enough.
func TestFault17_RestartsMoreOftenThanThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Config{})
		bucket := memblob.OpenBucket(nil)
		f := func(context.Context, *life, target.Call) (target.Result, error) { return target.Result{}, nil }
		l := begin(t, "life-0", s, bucket, f)
		l.put("often", 30*time.Second)
		for n := range 40 {
			time.Sleep(7 * time.Second)
			l.stop()
			l = begin(t, fmt.Sprintf("life-%d", n+1), s, bucket, f)
		}
		time.Sleep(5 * time.Second)
		runs := l.runs("often")
		for _, r := range runs {
			if r.State != run.Succeeded || r.Attempt != 1 || r.Started-r.ID.Nominal > 2000 {
				t.Errorf("%s is %s after %d attempts, started %d ms late", r.ID, r.State, r.Attempt, r.Started-r.ID.Nominal)
			}
		}
		if len(runs) != 9 {
			t.Errorf("%d runs in 285 seconds, want 9", len(runs))
		}
		l.stop()
	})
}

func TestFault45_TheStoreIsAwayForHours(t *testing.T) {
	outages := 3
	if testing.Short() {
		outages = 1
	}
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s := faulty.New(memory.New(memory.Config{}), func(context.Context, faulty.Call) faulty.Fault {
			if away.Load() {
				return faulty.Fault{Refuse: store.ErrUnknown}
			}
			return faulty.Fault{}
		})
		var calls atomic.Int64
		l := begin(t, "life", s, memblob.OpenBucket(nil), func(ctx context.Context, _ *life, call target.Call) (target.Result, error) {
			if strings.HasPrefix(call.Job, "long") {
				calls.Add(1)
				select {
				case <-time.After(time.Duration(outages)*90*time.Minute + 30*time.Minute):
				case <-ctx.Done():
				}
			}
			return target.Result{}, ctx.Err()
		})
		long := func(d *job.Definition) { d.Timeout = schedule.Duration(10 * time.Hour) }
		l.put("long-least", 0, long)
		l.put("long-most", 0, long, atMostOnce)
		l.put("minutely", time.Minute)
		for _, name := range []string{"long-least", "long-most"} {
			if _, _, err := l.Control.Trigger(t.Context(), "default", name, control.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		for range outages {
			away.Store(true)
			time.Sleep(time.Minute)
			if err := l.Ready(t.Context()); err == nil {
				t.Error("the node says that it is ready")
			}
			time.Sleep(59 * time.Minute)
			away.Store(false)
			time.Sleep(30 * time.Minute)
			if err := l.Ready(t.Context()); err != nil {
				t.Errorf("the store is back, and the node says %v", err)
			}
		}
		time.Sleep(time.Hour + 30*time.Second) // not at a fire
		for _, name := range []string{"long-least", "long-most"} {
			for _, r := range l.runs(name) {
				if r.State != run.Succeeded || r.Attempt != 1 || r.Crashes != 0 {
					t.Errorf("%s is %s after %d attempts and %d crashes", r.ID, r.State, r.Attempt, r.Crashes)
				}
			}
		}
		ran, skipped := 0, 0
		for _, r := range l.runs("minutely") {
			switch r.State {
			case run.Succeeded:
				ran++
			case run.Skipped:
				skipped += r.Count
			default:
				t.Errorf("%s is %s: %s", r.ID, r.State, r.Reason)
			}
		}
		if all := 90*outages + 70; ran+skipped < all-5 || ran+skipped > all+1 || skipped < 50*outages || ran < all-60*outages-5 {
			t.Errorf("%d ran and %d were skipped in %d minutes, of which %d without a store", ran, skipped, all, 60*outages)
		}
		l.stop()
	})
}

// TestRetention lets days pass: runs and dead letters go when their time is over and the last sweep has passed it.
func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Pointer[node.Node]
		s := memory.New(memory.Config{Now: func() time.Time { // as the program has it
			if n := n.Load(); n != nil {
				return n.Swept()
			}
			return time.Unix(0, 0)
		}})
		l := begin(t, "life", s, memblob.OpenBucket(nil), func(context.Context, *life, target.Call) (target.Result, error) {
			return target.Result{}, target.Permanent(errors.New("no"))
		}, func(c *node.Config) { c.Every, c.LookAhead = 10*time.Minute, 14*time.Minute })
		n.Store(l.Node)
		l.put("fails", 20*time.Minute, func(d *job.Definition) { d.Retention = schedule.Duration(24 * time.Hour) })
		length := 48 * time.Hour
		if testing.Short() {
			length = 27 * time.Hour
		}
		time.Sleep(length)
		found, _, err := l.Control.DeadLetters(t.Context(), "default", control.DeadFilter{}, "", 1000)
		// A day's, and those that wait for the last sweep.
		if runs := len(l.runs("fails")); err != nil || runs < 72 || runs > 80 || len(found) < 72 || len(found) > 80 {
			t.Errorf("%d runs and %d dead letters are kept, %v; want a day's, which are 72", runs, len(found), err)
		}
		l.stop()
	})
}

func TestExpiredBlobsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := memblob.OpenBucket(nil)
		blobs := blob.New(bucket)
		for i := range 2500 {
			ref := blob.Ref{Tenant: "default", Kind: blob.Log, ID: fmt.Sprint(i), Expires: time.Now().Add(-48 * time.Hour)}
			if i%5 == 0 {
				ref.Expires = time.Now().Add(48 * time.Hour)
			}
			if _, err := blobs.Put(t.Context(), ref, []byte("log")); err != nil {
				t.Fatal(err)
			}
		}
		l := begin(t, "life", memory.New(memory.Config{}), bucket, nil)
		time.Sleep(time.Minute)
		left := 0
		list := bucket.List(nil)
		for _, err := list.Next(t.Context()); err == nil; _, err = list.Next(t.Context()) {
			left++
		}
		if left != 500 {
			t.Errorf("%d blobs are left, want the 500 that have not expired", left)
		}
		l.stop()
	})
}

// TestFault38_AStoppedNodeLeavesNothingBehind: synctest fails a test that leaves a goroutine.
func TestFault38_AStoppedNodeLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Config{})
		bucket := memblob.OpenBucket(nil)
		started := make(chan struct{}, 10)
		f := func(ctx context.Context, _ *life, call target.Call) (target.Result, error) {
			started <- struct{}{}
			wait := 10 * time.Second
			if call.Job == "long" && call.Attempt == 1 {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
			return target.Result{}, ctx.Err()
		}
		l := begin(t, "life-1", s, bucket, f)
		for _, name := range []string{"short", "long"} {
			l.put(name, 0, func(d *job.Definition) { d.Timeout = schedule.Duration(2 * time.Hour) })
			if _, _, err := l.Control.Trigger(t.Context(), "default", name, control.Request{}); err != nil {
				t.Fatal(err)
			}
			<-started
		}
		began := time.Now()
		l.stop()
		if took := time.Since(began); took > 21*time.Second {
			t.Errorf("stopped after %s, want the grace of 20s", took)
		}
		if r := l.runs("short")[0]; r.State != run.Succeeded {
			t.Errorf("what could end in the grace is %s", r.State)
		}
		if r := l.runs("long")[0]; r.State != run.Queued || r.Failures+r.Crashes != 0 {
			t.Errorf("what could not is %s, with %d failures and %d crashes", r.State, r.Failures, r.Crashes)
		}
		l = begin(t, "life-2", s, bucket, f)
		time.Sleep(15 * time.Second)
		if r := l.runs("long")[0]; r.State != run.Succeeded || r.Attempt != 2 {
			t.Errorf("after the start it is %s, attempt %d", r.State, r.Attempt)
		}
		l.stop()
	})
}

func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faulty.New(memory.New(memory.Config{}), nil)
		l := begin(t, "life", s, memblob.OpenBucket(nil), nil)
		synctest.Wait()
		if err := l.Ready(t.Context()); err != nil {
			t.Errorf("right after the start: %v", err)
		}
		s.SetSkew(5 * time.Second)
		if err := l.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "clock") {
			t.Errorf("with a clock that is off: %v", err)
		}
		s.SetSkew(0)
		time.Sleep(time.Minute)
		if err := l.Ready(t.Context()); err != nil {
			t.Errorf("with the clock right again: %v", err)
		}
		pools, err := l.Pools(t.Context())
		if err != nil || len(pools) != 1 || pools[0].Name != "default" || pools[0].Concurrency != 50 || pools[0].Running != 0 {
			t.Errorf("pools %+v, %v", pools, err)
		}
		l.stop()
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, "life", memory.New(memory.Config{}), memblob.OpenBucket(nil), nil)
		for name, change := range map[string]func(*node.Config){
			"NoStore":        func(c *node.Config) { c.Store = nil },
			"NoQueues":       func(c *node.Config) { c.Queues = nil },
			"NoName":         func(c *node.Config) { c.Name = "" },
			"ShortLookAhead": func(c *node.Config) { c.Every, c.LookAhead = 2*time.Second, time.Second },
			"OddShards":      func(c *node.Config) { c.Store, c.Shards = memory.New(memory.Config{}), 3 },
		} {
			cfg := l.Config
			change(&cfg)
			if _, err := node.New(t.Context(), cfg); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
		l.stop()
	})
}
