package node_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuelocal "github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// sharing gives nodes the same queues, and leaves to each what it serves.
func sharing(serves ...string) func(*node.Config) {
	queues := map[string]queue.Queue{"default": queuelocal.New(queuelocal.Config{Now: time.Now}), "gpu": queuelocal.New(queuelocal.Config{Now: time.Now})}
	return func(c *node.Config) { c.Shared, c.Queues, c.Serves = true, queues, serves }
}

// TestP2_P10_ProcessesShareAStore has one that ticks and serves no pool, one that ticks and works on one pool, and one that only works
// on the other. One by one they leave and come back under new names: each fire has its run, which was called once and in time.
func TestP2_P10_ProcessesShareAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bucket := memory.New(memory.Config{}), memblob.OpenBucket(nil)
		var mu sync.Mutex
		by := map[string][]string{} // by run, who was called
		f := func(_ context.Context, l *life, call target.Call) (target.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			by[call.Run] = append(by[call.Run], l.Name)
			return target.Result{}, nil
		}
		share := sharing()
		both := func(name string) *life { // ticks, works on default
			return begin(t, name, s, bucket, f, share, func(c *node.Config) { c.Serves = []string{"default"} })
		}
		only := func(name string) *life {
			return begin(t, name, s, bucket, f, share, func(c *node.Config) { c.Serves, c.NoTicks = []string{"gpu"}, true })
		}
		ticker := begin(t, "ticker", s, bucket, f, share)
		first, worker := both("first"), only("worker")
		ticker.put("often", 5*time.Second)
		ticker.put("elsewhere", 4*time.Second, func(d *job.Definition) { d.Queue = "gpu" })
		began := time.Now()
		time.Sleep(4 * time.Minute)
		first.stop()
		second := both("second")
		time.Sleep(2 * time.Minute)
		worker.stop()
		time.Sleep(30 * time.Second)
		worker = only("worker-2")
		time.Sleep(2 * time.Minute)
		ticker.stop()
		time.Sleep(5 * time.Minute)
		ended := time.Now().Add(-time.Second)
		mu.Lock() // runs go on meanwhile
		called := maps.Clone(by)
		mu.Unlock()
		for name, every := range map[string]time.Duration{"often": 5 * time.Second, "elsewhere": 4 * time.Second} {
			found := map[int64]run.Run{}
			for _, r := range second.runs(name) {
				found[r.ID.Nominal] = r
			}
			fires := 0
			for at := began.Truncate(every).Add(every); at.Before(ended); at = at.Add(every) {
				r := found[at.UnixMilli()]
				late := r.Started - r.ID.Nominal
				if r.State != run.Succeeded || len(called[r.ID.String()]) != 1 || late > 1000 && (name == "often" || late > 31_000) {
					t.Errorf("%s of %s is %s, started %d ms late, called by %v", name, at, r.State, late, called[r.ID.String()])
				}
				fires++
			}
			if fires < 150 {
				t.Errorf("only %d fires of %s were looked at", fires, name)
			}
		}
		for id, who := range called {
			if strings.HasPrefix(id, "elsewhere") != strings.HasPrefix(who[0], "worker") {
				t.Errorf("%s was called by %s", id, who[0])
			}
		}
		if pools, err := second.Pools(t.Context()); err != nil || len(pools) != 2 {
			t.Errorf("pools %+v, %v", pools, err)
		}
		for _, c := range worker.Checks(t.Context()) {
			if c.Name == "ticks" || c.Err != nil {
				t.Errorf("a process that does not tick checks %s: %v", c.Name, c.Err)
			}
		}
		second.stop()
		worker.stop()
	})
}

// TestP5_AStartVoidsNobodysLease: what runs in another process goes on when one starts beside it.
func TestP5_AStartVoidsNobodysLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bucket, share := memory.New(memory.Config{}), memblob.OpenBucket(nil), sharing("default")
		f := func(ctx context.Context, _ *life, _ target.Call) (target.Result, error) {
			select {
			case <-time.After(5 * time.Minute):
			case <-ctx.Done():
			}
			return target.Result{}, ctx.Err()
		}
		l := begin(t, "first", s, bucket, f, share)
		l.put("long", time.Hour, func(d *job.Definition) {
			atMostOnce(d)
			d.Timeout = schedule.Duration(10 * time.Minute)
		})
		time.Sleep(time.Hour + time.Minute - time.Duration(time.Now().UnixNano()%int64(time.Hour)))
		if r := l.runs("long")[0]; r.State != run.Running || r.Worker != "first" {
			t.Fatalf("it is %s with %s", r.State, r.Worker)
		}
		for _, name := range []string{"second", "third"} {
			begin(t, name, s, bucket, f, share)
			time.Sleep(time.Minute)
		}
		time.Sleep(5 * time.Minute)
		for _, r := range l.runs("long") {
			if r.ID.Time().Before(time.Now()) && (r.State != run.Succeeded || r.Attempt != 1 || r.Crashes != 0) {
				t.Errorf("%s is %s after %d attempts and %d crashes", r.ID, r.State, r.Attempt, r.Crashes)
			}
		}
	})
}

// A log that a worker of another process writes is followed from any server on the store, as is that of a workflow's step.
func TestALogIsFollowedFromAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bucket, share := memory.New(memory.Config{}), memblob.OpenBucket(nil), sharing()
		gate := make(chan struct{})
		f := func(_ context.Context, l *life, call target.Call) (target.Result, error) {
			_, _ = call.Log.Write([]byte("on " + l.Name + "\n"))
			<-gate
			_, _ = call.Log.Write([]byte("opened\n"))
			return target.Result{}, nil
		}
		server := begin(t, "server", s, bucket, f, share)
		begin(t, "worker", s, bucket, f, share, func(c *node.Config) { c.Serves, c.NoTicks = []string{"default"}, true })
		server.put("long", 0)
		server.put("graph", 0, func(d *job.Definition) {
			d.Target = target.Spec{Workflow: []byte(`{"steps": {"only": {"handler": {"name": "f"}}}}`)}
		})
		log := func(l *life, r run.Run, step string) string {
			t.Helper()
			id := r.ID
			if step != "" {
				id = id.At(step)
			}
			r, err := l.Control.Run(t.Context(), "default", id)
			if err != nil {
				t.Fatal(err)
			}
			so, err := l.Control.LogOf(t.Context(), r, 0)
			if err != nil {
				t.Fatal(err)
			}
			return string(so.Text())
		}
		runs := map[string]run.Run{}
		for name, step := range map[string]string{"long": "", "graph": "only"} {
			r, _, err := server.Control.Trigger(t.Context(), "default", name, control.Request{})
			if err != nil {
				t.Fatal(err)
			}
			runs[step] = r
		}
		time.Sleep(server.Dispatch.Lease / 2) // it has renewed
		other := begin(t, "other", s, bucket, f, share, func(c *node.Config) { c.NoTicks = true })
		for step, r := range runs {
			for _, l := range []*life{server, other} {
				if text := log(l, r, step); text != "" {
					t.Errorf("nobody has asked, and %s reads %q of %s", l.Name, text, r.ID)
				}
			}
		}
		time.Sleep(server.Dispatch.Lease/3 + time.Second)
		for step, r := range runs {
			for _, l := range []*life{server, other} {
				if text := log(l, r, step); text != "on worker\n" {
					t.Errorf("a renewal later %s reads %q of %s", l.Name, text, r.ID)
				}
			}
		}
		close(gate)
		time.Sleep(10 * time.Second)
		for step, r := range runs {
			if text := log(other, r, step); text != "on worker\nopened\n" {
				t.Errorf("in the end %s has written %q", r.ID, text)
			}
		}
	})
}

// A worker elsewhere calls one of two servers on a store, and its log is followed at either. Where it calls the server that is asked, the log goes
// through memory.
func TestALogOfAWorkerElsewhereIsFollowedAtAnyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bucket, share := memory.New(memory.Config{}), memblob.OpenBucket(nil), sharing()
		server := func(name string) *life {
			return begin(t, name, s, bucket, nil, share, func(c *node.Config) {
				c.NoTicks, c.RemoteKey, c.Elsewhere = true, make([]byte, 32), map[string]string{"gpu": "default"}
			})
		}
		called, other := server("called"), server("other")
		called.put("far", 0, func(d *job.Definition) { d.Queue = "gpu" })
		r, _, err := called.Control.Trigger(t.Context(), "default", "far", control.Request{})
		if err != nil {
			t.Fatal(err)
		}
		offers, err := called.Remote.Take(t.Context(), "default", lease.Announced{Queue: "gpu", Worker: "w", Handlers: []string{"f"}}, 1, 10*time.Second)
		if err != nil || len(offers) != 1 {
			t.Fatalf("%d offers, %v", len(offers), err)
		}
		holder := lease.Holder{Worker: "w", Start: "1"}
		task, ticket, err := called.Remote.Start(t.Context(), "default", r.ID, offers[0].Ticket, holder)
		if err != nil {
			t.Fatal(err)
		}
		claim := lease.Claim{Run: r.ID, Fence: task.Fence, Holder: holder, Ticket: ticket}
		log := runlog.NewKeeper(time.Now, runlog.MaxBytes)
		_, _ = log.Write([]byte("begun\n"))
		by := called
		renew := func() (read bool) {
			t.Helper()
			time.Sleep(by.Dispatch.Lease / 3)
			renewed, err := by.Remote.Renew(t.Context(), "default", claim)
			if err != nil {
				t.Fatal(err)
			}
			if renewed.Read {
				so := log.Log(false)
				so.Attempt = task.Attempt
				if read, err := by.Remote.Show(t.Context(), "default", claim, so); !read || err != nil {
					t.Errorf("it is to show its log, and nobody reads it: %v", err)
				}
			}
			return renewed.Read
		}
		reads := func(l *life) string {
			t.Helper()
			time.Sleep(3 * time.Second)
			r, err := l.Control.Run(t.Context(), "default", r.ID)
			if err != nil {
				t.Fatal(err)
			}
			so, err := l.Control.LogOf(t.Context(), r, 0)
			if err != nil {
				t.Fatal(err)
			}
			return string(so.Text())
		}
		if renew() {
			t.Error("nobody has asked for its log, and it is to show it")
		}
		version := called.runs("far")[0].Version
		if text := reads(called); text != "" || called.runs("far")[0].Version != version {
			t.Errorf("the server that it calls reads %q, and has written the run", text)
		}
		if !renew() || reads(called) != "begun\n" {
			t.Error("the server that it calls reads nothing")
		}
		for renew() { // until nobody counts as reading
		}
		reads(other)
		if !renew() || reads(other) != "begun\n" {
			t.Error("the other server reads nothing")
		}
		_, _ = log.Write([]byte("goes on\n"))
		if !renew() || reads(other) != "begun\ngoes on\n" {
			t.Error("the other server reads no more")
		}
		for renew() {
		}

		// Its connection moves: the server that it called takes it, two renewals later, for one of another, and others find it at the new one.
		by = other
		_, _ = log.Write([]byte("moved\n"))
		var text string
		for renewals := 0; text != "begun\ngoes on\nmoved\n"; renewals++ {
			if renewals == 5 {
				t.Fatalf("five renewals after the worker has left it, the server that it called reads %q", text)
			}
			renew()
			text = reads(called)
		}
		for renew() {
		}
		_, _ = log.Write([]byte("and back\n"))
		by = called
		renew()
		reads(called)
		if !renew() || reads(called) != "begun\ngoes on\nmoved\nand back\n" {
			t.Error("the server that it calls again reads nothing")
		}
		if _, err := called.Remote.Finish(t.Context(), "default", claim, worker.End{Outcome: run.OutcomeSucceeded, Log: log.Log(true)}); err != nil {
			t.Fatal(err)
		}
		if text := reads(other); text != "begun\ngoes on\nmoved\nand back\n" {
			t.Errorf("in the end it reads %q", text)
		}
	})
}

// TestP4_LeasesAreJudgedHoweverFarApartTicksAre has a run whose worker died and whose message is lost: nothing but a check ends its lease.
// Ticks that are always further apart than half the look-ahead must not look like ones that were away each time.
func TestP4_LeasesAreJudgedHoweverFarApartTicksAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bucket, share := memory.New(memory.Config{}), memblob.OpenBucket(nil), sharing()
		f := func(context.Context, *life, target.Call) (target.Result, error) { return target.Result{}, nil }
		server := begin(t, "server", s, bucket, f, share, func(c *node.Config) { c.NoTicks = true })
		server.put("once", 0)
		r, _, err := server.Control.Trigger(t.Context(), "default", "once", control.Request{})
		if err != nil {
			t.Fatal(err)
		}
		if lost, err := server.Queues["default"].Receive(t.Context(), 10, 0, queue.MaxVisibility); err != nil || len(lost) != 1 {
			t.Fatalf("%d messages, %v", len(lost), err)
		}
		now := time.Now().UnixMilli()
		if _, err := server.Dispatch.PutRun(t.Context(), server.runs("once")[0].Start("gone", now, server.Dispatch.Lease), job.Callbacks{}, now); err != nil {
			t.Fatal(err)
		}
		begin(t, "all", s, bucket, f, share, func(c *node.Config) {
			c.Serves, c.LookAhead, c.Every = []string{"default"}, 2*time.Minute, 97*time.Second
		})
		time.Sleep(time.Hour)
		if got := server.runs("once")[0]; got.ID != r.ID || got.State != run.Succeeded || got.Attempt != 2 || got.Crashes != 1 {
			t.Errorf("%s is %s after %d attempts and %d crashes, want it succeeded by its second", got.ID, got.State, got.Attempt, got.Crashes)
		}
	})
}

func TestNewRefusesRolesThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, "life", memory.New(memory.Config{}), memblob.OpenBucket(nil), nil, sharing("default", "gpu"))
		if l.LookAhead != node.SharedLookAhead || l.Every != node.SharedEvery || l.Dispatch.Layout.Shards != node.SharedShards {
			t.Errorf("a look-ahead of %s, a tick every %s, %d shards", l.LookAhead, l.Every, l.Dispatch.Layout.Shards)
		}
		for name, change := range map[string]func(*node.Config){
			"ServesAlone":   func(c *node.Config) { c.Shared = false },
			"NoTicksAlone":  func(c *node.Config) { c.Shared, c.Serves, c.NoTicks = false, nil, true },
			"ServesUnknown": func(c *node.Config) { c.Serves = []string{"mail"} },
			"ServesTwice": func(c *node.Config) {
				c.Elsewhere, c.RemoteKey = map[string]string{"gpu": "default"}, make([]byte, 32)
			},
		} {
			cfg := l.Config
			cfg.Metrics = metrics.New()
			change(&cfg)
			if _, err := node.New(t.Context(), cfg); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
	})
}

// TestAProcessThatOnlyServesLivesOn: that it has nothing to do is not its end.
func TestAProcessThatOnlyServesLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, "server", memory.New(memory.Config{}), memblob.OpenBucket(nil), nil, sharing(), func(c *node.Config) { c.NoTicks = true })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		time.Sleep(time.Hour)
		select {
		case err := <-done:
			t.Fatalf("it ended: %v", err)
		default:
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
