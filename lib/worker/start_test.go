package worker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

var guarantees = map[string]func(*job.Definition){"AtLeastOnce": atLeastOnce, "AtMostOnce": atMostOnce}

func TestP5_Fault20_DoubledMessagesStartARunOnce(t *testing.T) {
	for name, guarantee := range guarantees {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				handlers, calls := handler(t, takes(90*time.Second))
				r := g.queued(g.job(guarantee), time.Now())
				g.send(r, r, r, r, r)
				g.process("w1", options{handlers: handlers})
				g.process("w2", options{handlers: handlers})
				time.Sleep(time.Minute)
				g.send(r, r) // stale by now
				time.Sleep(5 * time.Minute)
				g.want(r, run.Succeeded, 1)
				if n := calls.Load(); n != 1 {
					t.Errorf("%d calls, want 1", n)
				}
				g.empty()
			})
		})
	}
}

func TestP3_NothingStartsBeforeItsTime(t *testing.T) {
	t.Run("AMessageThatComesEarly", func(t *testing.T) {
		inBubble(t, func(t *testing.T, g *rig) {
			var at atomic.Int64
			handlers, _ := handler(t, func(context.Context, target.Call) (target.Result, error) {
				at.Store(time.Now().UnixMilli())
				return target.Result{}, nil
			})
			g.process("w", options{handlers: handlers})
			for _, ahead := range []time.Duration{700 * time.Millisecond, time.Minute} {
				due := time.Now().Add(ahead)
				r := g.queued(g.job(atLeastOnce), due)
				body, err := run.Message{Run: r, Sent: time.Now().UnixMilli()}.Encode()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := g.queue.Send(t.Context(), queue.Normal, queue.Outgoing{Body: body}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(ahead + time.Second)
				if g.want(r, run.Succeeded, 1); at.Load() != due.UnixMilli() {
					t.Errorf("%s ahead: started at %d, want %d", ahead, at.Load(), due.UnixMilli())
				}
			}
		})
	})
	beside(t, func(t *testing.T, g *rig) {
		var at atomic.Int64
		handlers, _ := handler(t, func(context.Context, target.Call) (target.Result, error) {
			at.Store(time.Now().UnixMilli())
			return target.Result{}, nil
		})
		w := g.process("w", options{handlers: handlers, idle: true})
		due := time.Now().Add(700 * time.Millisecond)
		r := g.queued(g.job(atLeastOnce), due)
		body, err := run.Message{Run: r, Sent: time.Now().UnixMilli()}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if v := w.handle(t, body, 1); !v.Delete || at.Load() != due.UnixMilli() {
			t.Errorf("started at %d, verdict %+v; want a start at %d", at.Load(), v, due.UnixMilli())
		}
		// What is further away goes back to the queue, for as long as it has.
		late := g.queued(g.job(atLeastOnce), time.Now().Add(time.Hour))
		if body, err = (run.Message{Run: late, Sent: time.Now().UnixMilli()}).Encode(); err != nil {
			t.Fatal(err)
		}
		if v := w.handle(t, body, 1); v != (verdict{Again: time.Hour}) {
			t.Errorf("an hour early: %+v", v)
		}
		g.want(late, run.Queued, 0)
	})
}

// What is lost is the answer of every try to write the start, so that nobody can tell whether it stands.
func TestP5_Fault01_AStartWhoseAnswerWasLost(t *testing.T) {
	lose := func(r *run.Run, times int64) faulty.Hook {
		var lost atomic.Int64
		return func(_ context.Context, c faulty.Call) faulty.Fault {
			if ofRun(c, *r, run.Running) && lost.Add(1) <= times {
				return faulty.Fault{Lose: store.ErrUnknown}
			}
			return faulty.Fault{}
		}
	}
	for name, row := range map[string]struct {
		guarantee func(*job.Definition)
		lost      int64
		state     run.State
		attempts  int
		calls     int64
		within    time.Duration
	}{
		"OnceAtLeastOnce":   {atLeastOnce, 1, run.Succeeded, 1, 1, 2 * time.Second},
		"OnceAtMostOnce":    {atMostOnce, 1, run.Succeeded, 1, 1, 2 * time.Second},
		"AlwaysAtLeastOnce": {atLeastOnce, 4, run.Succeeded, 2, 1, 10 * time.Second}, // no lease is waited for, and no crash counted
		"AlwaysAtMostOnce":  {atMostOnce, 4, run.Unknown, 1, 0, 2 * time.Minute},     // the recorded attempt is its only one
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				if g.elsewhere { // it asks again, and its start is known by the worker's own number of it
					row.state, row.attempts, row.calls = run.Succeeded, 1, 1
				}
				handlers, calls := handler(t, succeed)
				r := g.queued(g.job(row.guarantee), time.Now())
				g.send(r)
				g.process("w", options{handlers: handlers, hook: lose(&r, row.lost)})
				time.Sleep(row.within)
				now := g.want(r, row.state, row.attempts)
				if calls.Load() != row.calls || row.state == run.Succeeded && now.Crashes != 0 {
					t.Errorf("%d calls, %d crashes, want %d calls", calls.Load(), now.Crashes, row.calls)
				}
				g.empty()
			})
		})
	}
}

func TestFault02_AStartThatLandsLateIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, succeed)
		land := make(chan struct{})
		var late atomic.Int64
		r := g.queued(g.job(atMostOnce), time.Now())
		p := g.process("w", options{handlers: handlers, hook: func(_ context.Context, c faulty.Call) faulty.Fault {
			if ofRun(c, r, run.Running) && late.Add(1) <= 4 {
				return faulty.Fault{Late: land}
			}
			return faulty.Fault{}
		}})
		g.send(r)
		time.Sleep(time.Minute)
		before := g.want(r, run.Succeeded, 1)
		close(land)
		synctest.Wait()
		if after := g.read(r); after.Version != before.Version || calls.Load() != 1 {
			t.Errorf("the late start made version %d of %d; %d calls", after.Version, before.Version, calls.Load())
		}
		p.stop()
	})
}

func TestFault21_ReceivesAreNoAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		r := g.queued(g.job(atLeastOnce), time.Now())
		g.send(r)
		for range 20 { // by a worker that dies before it starts anything
			if taken, err := g.queue.Receive(t.Context(), 1, time.Second, time.Second); err != nil || len(taken) != 1 {
				t.Fatalf("%d messages, %v", len(taken), err)
			}
			time.Sleep(2 * time.Second)
		}
		handlers, _ := handler(t, succeed)
		g.process("w", options{handlers: handlers})
		time.Sleep(time.Second)
		if now := g.want(r, run.Succeeded, 1); now.Crashes+now.Failures != 0 {
			t.Errorf("%d crashes and %d failures were counted", now.Crashes, now.Failures)
		}
	})
}

func TestFault22_AMessageThatIsNotDeletedIsHarmless(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var deletes atomic.Int64
		q := queuefaulty.Wrap(g.queue, queuefaulty.Hooks{Delete: func(queue.Message) queuefaulty.Fate { return queuefaulty.Fate{Drop: deletes.Add(1) <= 3} }})
		handlers, calls := handler(t, succeed)
		g.process("w", options{handlers: handlers, queue: q})
		r := g.start(atMostOnce)
		time.Sleep(10 * time.Minute)
		g.want(r, run.Succeeded, 1)
		if calls.Load() != 1 || deletes.Load() != 4 {
			t.Errorf("%d calls and %d deletes, want 1 and 4", calls.Load(), deletes.Load())
		}
		g.empty()
	})
}

// Nobody can run it for hours: its messages, one more with each check, do not add up, and the run is not discarded.
func TestP11_Fault31_MessagesThatNobodyCanTakeDoNotAddUp(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.process("old", options{handlers: new(target.Registry)})
		r := g.queued(g.job(atLeastOnce), time.Now())
		for range 8 {
			g.send(r)
			time.Sleep(15 * time.Minute)
		}
		g.want(r, run.Queued, 0)
		g.empty()
	})
}

func TestFault31_AWorkerWithoutTheHandlerLeavesTheRunToOthers(t *testing.T) {
	for name, guarantee := range guarantees {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				old := g.process("old", options{handlers: new(target.Registry)})
				r := g.start(guarantee)
				time.Sleep(2 * time.Minute)
				g.want(r, run.Queued, 0)
				old.stop()
				handlers, _ := handler(t, succeed)
				g.process("new", options{handlers: handlers})
				time.Sleep(2 * time.Minute)
				g.want(r, run.Succeeded, 1)
			})
		})
	}
}

func TestFault53_NewerMessagesAndRecordsAreLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, succeed)
		w := g.process("old", options{handlers: handlers, idle: true})
		r := g.queued(g.job(atLeastOnce), time.Now())
		body, err := run.Message{Run: r, Sent: time.Now().UnixMilli()}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		newer := append([]byte{record.Format + 1}, body[1:]...)
		if v := w.handle(t, newer, 1); v.Delete || v.Again <= 0 {
			t.Errorf("a message of a newer format: %+v, want it kept for another worker", v)
		}
		if v := w.handle(t, []byte{record.Format, 0xff}, 1); !v.Delete {
			t.Errorf("an unreadable message: %+v, want it dropped", v)
		}
		// A newer worker wrote the run meanwhile, in its own form.
		value := append([]byte{record.Format + 1}, "whatever that is"...)
		g.write(store.Op{Kind: store.Put, Key: r.ID.Key(tenant), If: store.Version(r.Version), Value: value})
		for receives := 1; receives <= 2; receives++ {
			if v := w.handle(t, body, receives); v.Delete || v.Again <= 0 {
				t.Errorf("receive %d of a run of a newer format: %+v, want it kept for another worker", receives, v)
			}
		}
		items, err := g.store.Get(t.Context(), r.ID.Key(tenant))
		if err != nil || string(items[0].Value) != string(value) || items[0].Version != 2 || calls.Load() != 0 {
			t.Errorf("the newer record is now %+v, %v; %d calls", items[0], err, calls.Load())
		}
	})
}

func TestMessagesOlderThanTheirLifeStartNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, succeed)
		w := g.process("w", options{handlers: handlers, idle: true})
		r := g.queued(g.job(atLeastOnce), time.Now())
		body, err := run.Message{Run: r, Sent: time.Now().UnixMilli()}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease.MessageLife + time.Second)
		if v := w.handle(t, body, 1); !v.Delete || calls.Load() != 0 {
			t.Errorf("verdict %+v, %d calls; want it dropped", v, calls.Load())
		}
		g.want(r, run.Queued, 0)
	})
}

func TestP12_RunsOfTheSameNameAreApart(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, _ := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
			_, _ = c.Log.Write([]byte("log of " + c.Tenant))
			return takes(10*time.Second)(ctx, c)
		})
		p := g.process("w", options{handlers: handlers})
		j := g.job(atLeastOnce)
		theirs := j
		theirs.Tenant, theirs.Def.Timeout = "rival", schedule.Duration(time.Second) // too short for it
		op, err := theirs.Put(1)
		if err != nil {
			t.Fatal(err)
		}
		g.write(op)
		same := func(r *run.Run) { r.ID = run.RequestID(j.Name, time.Now().UnixMilli(), 7) }
		mine, other := g.queued(j, time.Now(), same), g.queued(theirs, time.Now(), same)
		g.send(mine)
		time.Sleep(5 * time.Second)
		p.Cancelled("rival", mine.ID)
		g.want(other, run.Queued, 0)
		time.Sleep(6 * time.Second)
		done := g.want(mine, run.Succeeded, 1)
		if log, err := g.log(done); err != nil || log != "log of acme" {
			t.Errorf("log %q, %v", log, err)
		}
		g.want(other, run.Queued, 0)
		g.send(other)
		time.Sleep(time.Minute)
		if g.elsewhere { // the pool is one tenant's
			g.want(other, run.Queued, 0)
			return
		}
		if now := g.read(other); now.Failures == 0 || g.read(mine).Version != done.Version {
			t.Errorf("the other tenant's run ran by another definition: %+v", now)
		}
	})
}

func TestP11_NoMoreAttemptsAtOnceThanAllowed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var now, most atomic.Int64
		handlers, calls := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			return takes(time.Second)(ctx, c)
		})
		j := g.job(atLeastOnce)
		for range 40 {
			g.send(g.queued(j, time.Now()))
		}
		began := time.Now()
		p := g.process("w", options{handlers: handlers, Config: worker.Config{Concurrency: 4}})
		for calls.Load() < 40 || p.Running() > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		if most.Load() != 4 || time.Since(began) > 11*time.Second {
			t.Errorf("%d at once, %s for 40 runs of a second; want 4 and 10s", most.Load(), time.Since(began))
		}
		g.empty()
	})
}

// TestP5_AStopDuringTheStart stops the worker while the write of the start is under way: the run was not given up halfway.
func TestP5_Fault38_AStopDuringTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, succeed)
		r := g.queued(g.job(atMostOnce), time.Now())
		reached, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p := g.process("w", options{handlers: handlers, hook: func(ctx context.Context, c faulty.Call) faulty.Fault {
			if ofRun(c, r, run.Running) {
				once.Do(func() { close(reached) })
				<-goOn
			}
			return faulty.Fault{}
		}})
		g.send(r)
		<-reached
		go p.stop()
		synctest.Wait()
		close(goOn)
		p.stop()
		g.want(r, run.Succeeded, 1)
		if calls.Load() != 1 {
			t.Errorf("%d calls, want 1", calls.Load())
		}
	})
}

func TestPayloadsReachTheTarget(t *testing.T) {
	for name, row := range map[string]struct {
		ref  func(g *rig, r *run.Run)
		want string
	}{
		"OfTheJob": {func(*rig, *run.Run) {}, `{"of":"job"}`},
		"Inline":   {func(_ *rig, r *run.Run) { r.Payload.Inline = []byte(`{"of":"run"}`) }, `{"of":"run"}`},
		"Blob": {func(g *rig, r *run.Run) {
			key, err := g.blobs.Put(context.Background(), blob.Ref{Tenant: tenant, Kind: blob.Payload, ID: r.ID.String()}, []byte(`{"of":"blob"}`))
			if err != nil {
				g.t.Fatal(err)
			}
			r.Payload.Blob = key
		}, `{"of":"blob"}`},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				var got atomic.Value
				handlers, _ := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
					got.Store(string(c.Payload))
					return target.Result{}, nil
				})
				g.process("w", options{handlers: handlers})
				j := g.job(func(d *job.Definition) { d.Payload = []byte(`{"of":"job"}`) })
				g.send(g.queued(j, time.Now(), func(r *run.Run) { row.ref(g, r) }))
				time.Sleep(time.Second)
				if got.Load() != row.want {
					t.Errorf("got %v, want %s", got.Load(), row.want)
				}
			})
		})
	}
}

func TestFault34_BlobsThatAreAwayCostNoAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, succeed)
		bucket := memblob.OpenBucket(nil)
		away := blob.New(bucket)
		if err := bucket.Close(); err != nil {
			t.Fatal(err)
		}
		p := g.process("away", options{handlers: handlers, blobs: away})
		var gone run.Run
		put := func(r *run.Run) {
			key, err := g.blobs.Put(t.Context(), blob.Ref{Tenant: tenant, Kind: blob.Payload, ID: r.ID.String()}, []byte("1"))
			if err != nil {
				t.Fatal(err)
			}
			r.Payload.Blob = key
		}
		r := g.queued(g.job(atMostOnce), time.Now(), put)
		gone = g.queued(g.job(atLeastOnce), time.Now(), put)
		if err := g.blobs.Delete(t.Context(), tenant, gone.Payload.Blob); err != nil {
			t.Fatal(err)
		}
		g.send(r, gone)
		time.Sleep(time.Hour)
		g.want(r, run.Queued, 0)
		p.stop()
		g.process("here", options{handlers: handlers})
		time.Sleep(time.Minute)
		g.want(r, run.Succeeded, 1)
		// A payload that is gone for good is a failure that no attempt will mend, and the target never hears of it.
		if now := g.want(gone, run.Failed, 1); len(now.Attempts) != 1 || now.Attempts[0].Error == "" || calls.Load() != 1 {
			t.Errorf("%+v, %d calls", now, calls.Load())
		}
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		good := g.process("w", options{handlers: new(target.Registry), idle: true}).Config
		for name, change := range map[string]func(*worker.Config){
			"NoSource":  func(c *worker.Config) { c.Source = nil },
			"NoTargets": func(c *worker.Config) { c.Targets = nil },
			"NoElapsed": func(c *worker.Config) { c.Elapsed = nil },
		} {
			cfg := good
			change(&cfg)
			if _, err := worker.New(cfg); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
		if _, err := worker.New(good); err != nil {
			t.Error(err)
		}
	})
}
