package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// dying gives a handler that kills the process which calls it for the first so many times, as out-of-memory would.
func dying(t *testing.T, times int64, victim *atomic.Pointer[process]) (*target.Registry, *atomic.Int64) {
	var calls atomic.Int64
	handlers, _ := handler(t, func(ctx context.Context, _ target.Call) (target.Result, error) {
		if calls.Add(1) <= times {
			victim.Load().dead.Store(true)
			<-ctx.Done()
		}
		return target.Result{}, ctx.Err()
	})
	return handlers, &calls
}

func TestP5_Fault36_AWorkerThatDiesInAnAtMostOnceRun(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var victim atomic.Pointer[process]
		handlers, calls := dying(t, 1, &victim)
		g.process("w1", options{handlers: handlers, current: &victim})
		r := g.start(atMostOnce)
		synctest.Wait()
		if now := g.want(r, run.Running, 1); now.Fence != 2 || len(now.Attempts) != 1 {
			t.Errorf("before the call the store says %+v, want the attempt recorded", now)
		}
		g.process("w2", options{handlers: handlers})
		time.Sleep(5 * time.Minute)
		g.want(r, run.Unknown, 1)
		if calls.Load() != 1 {
			t.Errorf("%d calls, want 1", calls.Load())
		}
		g.empty()
	})
}

func TestFault28_Fault34_ARunThatKillsItsWorkersIsParked(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var killer run.Run
		var victim atomic.Pointer[process]
		handlers, _ := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
			if c.Run == killer.ID.String() {
				victim.Load().dead.Store(true)
				<-ctx.Done()
				return target.Result{}, ctx.Err()
			}
			return takes(2*time.Second)(ctx, c)
		})
		j := g.job(func(d *job.Definition) { d.Retry.MaxAttempts = 1 }) // no failure is forgiven
		killer = g.queued(j, time.Now())
		neighbours := make([]run.Run, 8)
		for i := range neighbours {
			neighbours[i] = g.queued(j, time.Now())
		}
		g.send(neighbours[:4]...)
		g.send(killer)
		g.send(neighbours[4:]...)
		for n := range 6 { // a supervisor starts the process again, a minute after its death
			p := g.process(fmt.Sprintf("w%d", n), options{handlers: handlers, current: &victim})
			time.Sleep(time.Minute)
			p.stop()
		}
		if now := g.want(killer, run.Dead, 3); now.Crashes != 3 || now.Failures != 0 || !strings.Contains(now.Reason, "killed its worker") {
			t.Errorf("the killer: %+v", now)
		}
		for _, r := range neighbours {
			if now := g.want(r, run.Succeeded, g.read(r).Attempt); now.Failures != 0 || now.Crashes > 2 {
				t.Errorf("a neighbour: %d failures, %d crashes", now.Failures, now.Crashes)
			}
		}
		items, err := g.store.Get(t.Context(), g.read(killer).DeadKey())
		if err != nil || !items[0].Exists() {
			t.Errorf("the killer is not listed as a dead letter: %v", err)
		}
		g.empty()
	})
}

// TestSuspectsGoOneAtATime, in the order in which they were taken, and hold up nobody who has done nothing.
func TestFault28_SuspectsGoOneAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var suspects, most atomic.Int64
		var order []string
		handlers, calls := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
			if strings.HasPrefix(c.Job, "job-1") {
				order = append(order, c.Run) // one at a time
				most.Store(max(most.Load(), suspects.Add(1)))
				defer suspects.Add(-1)
			}
			return takes(100*time.Millisecond)(ctx, c)
		})
		suspect, other := g.job(atLeastOnce), g.job(atLeastOnce)
		var sent []string
		for range 10 {
			r := g.queued(suspect, time.Now(), func(r *run.Run) { r.Crashes = 2 })
			sent = append(sent, r.ID.String())
			g.send(r)
		}
		var free []run.Run
		for range 10 {
			free = append(free, g.queued(other, time.Now()))
		}
		g.send(free...)
		g.process("w", options{handlers: handlers, Config: worker.Config{Concurrency: 20}})
		time.Sleep(200 * time.Millisecond)
		for _, r := range free {
			g.want(r, run.Succeeded, 1)
		}
		time.Sleep(5 * time.Second)
		if most.Load() != 1 || calls.Load() != 20 {
			t.Errorf("%d suspects at once, %d runs done; want 1 and 20", most.Load(), calls.Load())
		}
		if !slices.Equal(order[:5], sent[:5]) { // the last of them may have waited for more than a moment, and come again
			t.Errorf("they went in the order %q, want %q", order, sent)
		}
	})
}

func TestP6_Fault03_AFrozenWorkerIsFenced(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var fences sync.Map
		thaw := make(chan struct{})
		f := func(name string) *target.Registry {
			handlers, _ := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
				fences.Store(name, c.Fence)
				if name == "frozen" {
					<-thaw // it heeds no context: it is stopped
				}
				_, _ = c.Log.Write([]byte("log of " + name))
				return target.Result{Body: []byte(`"` + name + `"`)}, nil
			})
			return handlers
		}
		p := g.process("frozen", options{handlers: f("frozen")})
		r := g.start(atLeastOnce)
		synctest.Wait()
		p.freeze.Store(&thaw)
		g.process("second", options{handlers: f("second")})
		time.Sleep(2 * time.Minute)
		before := g.want(r, run.Succeeded, 2)
		p.freeze.Store(nil)
		close(thaw)
		time.Sleep(time.Minute)
		after := g.read(r)
		if after.Version != before.Version || string(after.Result.Inline) != `"second"` {
			t.Errorf("the late result changed the run: version %d, then %d, result %s", before.Version, after.Version, after.Result.Inline)
		}
		if log, err := g.log(after); err != nil || log != "log of second" {
			t.Errorf("the log is %q, %v", log, err)
		}
		first, _ := fences.Load("frozen")
		second, _ := fences.Load("second")
		if first.(uint64) >= second.(uint64) {
			t.Errorf("fences %v, then %v: want them to grow", first, second)
		}
		if p.Running() != 0 {
			t.Errorf("%d attempts are still counted as under way", p.Running())
		}
	})
}

// A worker that wakes past its lease and hears that the run is another's stops its own target: what that would go on doing is a second
// effect beside the first.
func TestP6_Fault03_AFencedAttemptIsStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		stopped := make(chan error, 1)
		f := func(name string) *target.Registry {
			handlers, _ := handler(t, func(ctx context.Context, _ target.Call) (target.Result, error) {
				if name == "frozen" {
					<-ctx.Done()
					stopped <- ctx.Err()
				}
				return target.Result{}, ctx.Err()
			})
			return handlers
		}
		p := g.process("frozen", options{handlers: f("frozen")})
		r := g.start(func(d *job.Definition) { d.Timeout = schedule.Duration(time.Hour) })
		synctest.Wait()
		thaw := make(chan struct{})
		p.freeze.Store(&thaw)
		g.process("second", options{handlers: f("second")})
		time.Sleep(2 * time.Minute)
		g.want(r, run.Succeeded, 2)
		p.freeze.Store(nil)
		close(thaw)
		time.Sleep(leaseFor)
		select {
		case err := <-stopped:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the target of the first attempt ended with %v, want it to be stopped", err)
			}
		default:
			t.Error("the target of the first attempt goes on, a lease after its worker could hear that it was fenced off")
		}
	})
}

// TestP6_AnOldAttemptBesideItsSuccessor has both in one process: the end of the old one is not the end of the new one.
func TestP6_AnOldAttemptBesideItsSuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var r run.Run
		var away atomic.Bool
		ends := []chan struct{}{make(chan struct{}), make(chan struct{})}
		handlers, calls := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
			select {
			case <-ends[c.Attempt-1]:
			case <-context.WithoutCancel(ctx).Done():
			}
			return target.Result{}, ctx.Err()
		})
		r = g.queued(g.job(atLeastOnce), time.Now())
		p := g.process("w", options{handlers: handlers, hook: func(_ context.Context, c faulty.Call) faulty.Fault {
			if away.Load() && ofRun(c, r, run.Running) {
				return faulty.Fault{Refuse: store.ErrThrottled}
			}
			return faulty.Fault{}
		}})
		g.send(r)
		synctest.Wait()
		away.Store(true) // it cannot renew
		time.Sleep(leaseFor + time.Second)
		now := time.Now().UnixMilli()
		if _, err := g.base.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now, Resume: now + 2000}, []run.Run{r}, nil); err != nil {
			t.Fatal(err)
		}
		away.Store(false)
		time.Sleep(3 * time.Second)
		if calls.Load() != 2 {
			t.Fatalf("%d calls, want 2", calls.Load())
		}
		close(ends[0])
		time.Sleep(time.Second)
		if p.Running() != 1 {
			t.Errorf("%d attempts under way, want the second", p.Running())
		}
		g.want(r, run.Running, 2)
		close(ends[1])
		time.Sleep(time.Second)
		if g.want(r, run.Succeeded, 2); p.Running() != 0 {
			t.Errorf("%d attempts under way, want none", p.Running())
		}
	})
}

func TestFault35_ALongRunKeepsItsLease(t *testing.T) {
	for name, extend := range map[string]func(queue.Message) queuefaulty.Fate{
		"AndItsMessage": nil,
		// The message comes again and again: that starts nothing.
		"WithoutItsMessage": func(queue.Message) queuefaulty.Fate { return queuefaulty.Fate{Drop: true} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				q := queuefaulty.Wrap(g.queue, queuefaulty.Hooks{Extend: extend})
				handlers, calls := handler(t, takes(20*time.Minute))
				g.process("w1", options{handlers: handlers, queue: q})
				g.process("w2", options{handlers: handlers, queue: q})
				r := g.start(func(d *job.Definition) { atMostOnce(d); d.Timeout = schedule.Duration(time.Hour) })
				time.Sleep(25 * time.Minute)
				g.want(r, run.Succeeded, 1)
				if calls.Load() != 1 {
					t.Errorf("%d calls, want 1", calls.Load())
				}
			})
		})
	}
}

func TestFault37_TwoCleanupsCountOneCrash(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var victim atomic.Pointer[process]
		handlers, _ := dying(t, 1, &victim)
		g.process("w1", options{handlers: handlers, current: &victim})
		r := g.start(atLeastOnce)
		synctest.Wait()
		g.send(g.read(r), g.read(r), g.read(r))
		time.Sleep(leaseFor + time.Second)
		for n := range 3 {
			g.process(fmt.Sprintf("cleaner%d", n), options{handlers: handlers})
		}
		var checks sync.WaitGroup
		for range 3 {
			checks.Go(func() {
				now := time.Now().UnixMilli()
				if _, err := g.base.Check(context.Background(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now, Resume: now + 2000}, []run.Run{r}, nil); err != nil {
					t.Error(err)
				}
			})
		}
		checks.Wait()
		time.Sleep(2 * time.Minute)
		if now := g.want(r, run.Succeeded, 2); now.Crashes != 1 {
			t.Errorf("%d crashes were counted, want 1", now.Crashes)
		}
	})
}

func TestFault38_AStopLetsRunsEndAndHandsTheRestBack(t *testing.T) {
	for name, row := range map[string]struct {
		guarantee func(*job.Definition)
		takes     time.Duration
		heeds     bool
		state     run.State
		attempts  int
		stopped   time.Duration // at the most
	}{
		"WithinTheGrace":        {atLeastOnce, 15 * time.Second, true, run.Succeeded, 1, 15 * time.Second},
		"BeyondTheGrace":        {atLeastOnce, time.Hour, true, run.Succeeded, 2, 21 * time.Second},
		"BeyondTheGraceAndDeaf": {atLeastOnce, time.Hour, false, run.Succeeded, 2, 26 * time.Second},
		"P5_AtMostOnceWithin":   {atMostOnce, 15 * time.Second, true, run.Succeeded, 1, 15 * time.Second},
		"P5_AtMostOnceBeyond":   {atMostOnce, time.Hour, true, run.Unknown, 1, 21 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				slow, _ := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
					if !row.heeds {
						ctx = context.WithoutCancel(ctx)
					}
					return takes(row.takes)(ctx, c)
				})
				p := g.process("stopping", options{handlers: slow, Config: worker.Config{Concurrency: 1}})
				r := g.start(row.guarantee)
				waiting := g.start(atLeastOnce) // no slot is free for it
				synctest.Wait()
				began := time.Now()
				p.stop()
				if took := time.Since(began); took > row.stopped {
					t.Errorf("stopped after %s, want %s at the most", took, row.stopped)
				}
				g.want(waiting, run.Queued, 0)
				if row.attempts == 2 {
					if now := g.want(r, run.Queued, 1); now.Failures+now.Crashes != 0 || now.Attempts[0].Outcome != run.OutcomeHandedBack {
						t.Errorf("handed back as %+v", now)
					}
				}
				handlers, _ := handler(t, succeed)
				g.process("next", options{handlers: handlers})
				time.Sleep(time.Second) // at once, not after a lease
				g.want(r, row.state, row.attempts)
				g.want(waiting, run.Succeeded, 1)
				time.Sleep(time.Hour)
			})
		})
	}
}

func TestP7_Fault39_ACancelRacesTheCompletion(t *testing.T) {
	answers := map[string]struct {
		f     target.Func
		state run.State
	}{
		"Succeeded": {succeed, run.Succeeded}, // what is done is done
		"Failed":    {func(context.Context, target.Call) (target.Result, error) { return target.Result{}, errors.New("no") }, run.Cancelled},
		"Permanent": {func(context.Context, target.Call) (target.Result, error) {
			return target.Result{}, target.Permanent(errors.New("no"))
		}, run.Cancelled},
	}
	for name, row := range answers {
		t.Run(name+"BeforeTheEndIsWritten", func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				var r run.Run
				var once sync.Once
				handlers, _ := handler(t, row.f)
				r = g.queued(g.job(atLeastOnce), time.Now())
				g.process("w", options{handlers: handlers, hook: func(_ context.Context, c faulty.Call) faulty.Fault {
					if ofRun(c, r, run.Succeeded) || ofRun(c, r, run.Retrying) || ofRun(c, r, run.Failed) {
						once.Do(func() {
							if _, ok := g.cancel(r); !ok {
								t.Error("the cancel came too late")
							}
						})
					}
					return faulty.Fault{}
				}})
				g.send(r)
				time.Sleep(time.Minute)
				now := g.want(r, row.state, 1)
				if next, ok := g.cancel(r); ok || next.Version != now.Version {
					t.Errorf("an ended run was cancelled: %+v", next)
				}
				g.empty()
			})
		})
	}
	for name, heeds := range map[string]bool{"Heard": true, "Unheard": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				handlers, _ := handler(t, takes(time.Hour))
				p := g.process("w", options{handlers: handlers})
				r := g.start(atMostOnce)
				synctest.Wait()
				began := time.Now()
				if _, ok := g.cancel(r); !ok {
					t.Fatal("not cancelled")
				}
				limit := leaseFor/3 + time.Second
				if heeds {
					p.Cancelled(tenant, r.ID)
					limit = time.Second
				}
				for g.read(r).State == run.Running {
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took > limit {
					t.Errorf("cancelled after %s, want %s", took, limit)
				}
				if now := g.want(r, run.Cancelled, 1); now.Reason != "no longer needed" {
					t.Errorf("reason %q", now.Reason)
				}
			})
		})
	}
}

func TestFault08_Fault09_ASteppedClockEndsNoLease(t *testing.T) {
	for name, step := range map[string]time.Duration{"Forward": 3 * time.Hour, "Back": -3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				handlers, calls := handler(t, takes(5*time.Minute))
				owner := g.process("owner", options{handlers: handlers})
				judge := g.process("judge", options{handlers: handlers, idle: true})
				r := g.start(atMostOnce)
				body, err := run.Message{Run: r, Sent: time.Now().UnixMilli()}.Encode()
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(45 * time.Second)
				for i := range 2 { // before the step of their host's clock, and right after it
					if v := judge.handle(t, body, 2); v.Delete {
						t.Errorf("look %d: %+v", i, v)
					}
					g.want(r, run.Running, 1)
					for _, p := range []*process{owner, judge} {
						p.offset.Store(int64(step))
					}
				}
				time.Sleep(10 * time.Minute)
				g.want(r, run.Succeeded, 1)
				if calls.Load() != 1 {
					t.Errorf("%d calls, want 1", calls.Load())
				}
			})
		})
	}
}

// Who serves workers elsewhere judges no lease for a while when the store is back, as package node sees to.
func TestFault45_AStoreThatIsAwayForHours(t *testing.T) {
	for name, refusal := range map[string]error{"Refusing": store.ErrThrottled, "Silent": store.ErrUnknown} {
		t.Run(name, func(t *testing.T) {
			beside(t, func(t *testing.T, g *rig) {
				var away atomic.Bool
				handlers, calls := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
					if c.Attempt > 1 {
						return target.Result{}, errors.New("called again")
					}
					return takes(time.Minute)(ctx, c)
				})
				g.process("w", options{handlers: handlers, Config: worker.Config{Concurrency: 4}, hook: func(context.Context, faulty.Call) faulty.Fault {
					if away.Load() {
						return faulty.Fault{Refuse: refusal}
					}
					return faulty.Fault{}
				}})
				once := func(d *job.Definition) { d.Retry.MaxAttempts = 1 }
				runs := []run.Run{g.start(once), g.start(atMostOnce), g.start(once), g.start(atMostOnce)}
				time.Sleep(10 * time.Second)
				away.Store(true) // while they are under way; they end while it is away
				runs = append(runs, g.start(once), g.start(atMostOnce))
				time.Sleep(3 * time.Hour)
				away.Store(false)
				time.Sleep(10 * time.Minute)
				for _, r := range runs {
					if now := g.want(r, run.Succeeded, 1); now.Failures+now.Crashes != 0 {
						t.Errorf("%d failures, %d crashes", now.Failures, now.Crashes)
					}
				}
				if calls.Load() != int64(len(runs)) {
					t.Errorf("%d calls for %d runs", calls.Load(), len(runs))
				}
				g.empty()
			})
		})
	}
}

// TestFault01_AnEndWhoseAnswerWasLost: the end stands, and what follows from it is done.
func TestFault01_AnEndWhoseAnswerWasLost(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var r run.Run
		var lost atomic.Int64
		handlers, calls := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
			if c.Attempt == 1 {
				return target.Result{}, errors.New("no")
			}
			return target.Result{}, nil
		})
		r = g.queued(g.job(atLeastOnce), time.Now())
		p := g.process("w", options{handlers: handlers, hook: func(_ context.Context, c faulty.Call) faulty.Fault {
			if ofRun(c, r, run.Retrying) && lost.Add(1) <= 4 { // all tries of one write
				return faulty.Fault{Lose: store.ErrUnknown}
			}
			return faulty.Fault{}
		}})
		g.send(r)
		time.Sleep(5 * time.Second) // no lease is waited for, and no check timer
		if now := g.want(r, run.Succeeded, 2); now.Failures != 1 || now.Crashes != 0 || calls.Load() != 2 {
			t.Errorf("%d failures, %d crashes, %d calls", now.Failures, now.Crashes, calls.Load())
		}
		p.stop()
		g.empty()
	})
}

func failing(err error) target.Func {
	return func(context.Context, target.Call) (target.Result, error) { return target.Result{}, err }
}

func TestRetriesEndWithTheBudget(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, failing(errors.New("no luck")))
		g.process("w", options{handlers: handlers})
		r := g.start(func(d *job.Definition) { d.Retry.MaxAttempts = 4 })
		time.Sleep(time.Minute)
		now := g.want(r, run.Dead, 4)
		if calls.Load() != 4 || now.Reason != "attempts spent" || now.Attempts[3].Error != "handler: no luck" {
			t.Errorf("%d calls, %+v", calls.Load(), now)
		}
		for i := 1; i < len(now.Attempts); i++ {
			wait := time.Duration(now.Attempts[i].Started-now.Attempts[i-1].Ended) * time.Millisecond
			if shortest := time.Second << (i - 1); wait < shortest || wait > 2*shortest+10*time.Millisecond {
				t.Errorf("waited %s before attempt %d, want %s to %s", wait, i+1, shortest, 2*shortest)
			}
		}
		items, err := g.store.Get(t.Context(), now.DeadKey())
		if err != nil || !items[0].Exists() {
			t.Errorf("it is not listed as a dead letter: %v", err)
		}
	})
}

func TestPermanentFailuresAreNotTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, failing(target.Permanent(errors.New("no such customer"))))
		g.process("w", options{handlers: handlers})
		r := g.start(atLeastOnce)
		time.Sleep(time.Hour)
		now := g.want(r, run.Failed, 1)
		if calls.Load() != 1 || now.Attempts[0].Error != "handler: no such customer" {
			t.Errorf("%d calls, %+v", calls.Load(), now)
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var starts []time.Time
		handlers, _ := handler(t, func(context.Context, target.Call) (target.Result, error) {
			starts = append(starts, time.Now())
			return target.Result{}, target.RetryAfter(10*time.Minute, errors.New("busy"))
		})
		g.process("w", options{handlers: handlers})
		r := g.start(func(d *job.Definition) { d.Retry.MaxAttempts = 2 })
		time.Sleep(time.Hour)
		g.want(r, run.Dead, 2)
		if len(starts) != 2 || starts[1].Sub(starts[0]) < 10*time.Minute || starts[1].Sub(starts[0]) > 10*time.Minute+time.Second {
			t.Errorf("started at %v, want 10m apart", starts)
		}
	})
}

func TestFault24_AWaitLongerThanTheQueueCanHoldIsATimer(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, _ := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
			if c.Attempt == 1 {
				return target.Result{}, target.RetryAfter(5*time.Hour, errors.New("closed until noon"))
			}
			return target.Result{}, nil
		})
		g.process("w", options{handlers: handlers})
		r := g.start(atLeastOnce)
		time.Sleep(time.Second)
		now := g.want(r, run.Retrying, 1)
		if wait := now.NextAt - now.Attempts[0].Ended; wait != (5 * time.Hour).Milliseconds() {
			t.Errorf("the next attempt is %d ms away", wait)
		}
		g.empty() // the store holds it
		check := timer.NewCheck(tenant, r.ID, now.NextAt)
		items, err := g.store.Get(t.Context(), check.Key())
		if err != nil || !items[0].Exists() {
			t.Fatalf("there is no timer at %d: %v", now.NextAt, err)
		}
		time.Sleep(5 * time.Hour)
		at := time.Now().UnixMilli()
		if _, err := g.base.Check(t.Context(), 1, dispatch.Bounds{Now: at, Horizon: at + 2000, Reach: at + 2000, Resume: at + 4000}, []run.Run{r}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		g.want(r, run.Succeeded, 2)
	})
}

func TestATimeoutEndsTheAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, takes(time.Hour))
		g.process("w", options{handlers: handlers})
		r := g.start(func(d *job.Definition) { d.Timeout = schedule.Duration(5 * time.Second); d.Retry.MaxAttempts = 2 })
		time.Sleep(time.Minute)
		now := g.want(r, run.Dead, 2)
		if !strings.HasPrefix(now.Attempts[0].Error, "timeout:") || calls.Load() != 2 {
			t.Errorf("%+v", now.Attempts)
		}
	})
}

func TestP5_AtMostOnceATimeoutLeavesUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, takes(time.Hour))
		g.process("w", options{handlers: handlers})
		r := g.start(atMostOnce, func(d *job.Definition) { d.Timeout = schedule.Duration(5 * time.Second) })
		time.Sleep(time.Minute)
		if g.want(r, run.Unknown, 1); calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
	})
}

func TestACutLogCountsWhatIsMissing(t *testing.T) {
	for logged, want := range map[string]string{"0123456789": "0123456789", "0123456789a": "01\n… 1 byte is not kept …\n3456789a",
		"012\n456789ab": "01\n… 1 line, 2 bytes are not kept …\n456789ab"} {
		beside(t, func(t *testing.T, g *rig) {
			handlers, _ := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
				_, _ = c.Log.Write([]byte(logged))
				return target.Result{}, nil
			})
			p := g.process("w", options{handlers: handlers, Config: worker.Config{MaxLog: 10}})
			r := g.start(atLeastOnce)
			time.Sleep(time.Second)
			if log, err := g.log(g.want(r, run.Succeeded, 1)); err != nil || log != want {
				t.Errorf("the log is %q, %v; want %q", log, err, want)
			}
			p.stop()
		})
	}
}

func TestResultsAndLogsAreKept(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, row := range map[string]struct {
		result target.Result
		inline bool
		kind   string
	}{
		"Small":    {target.Result{Body: []byte(`{"n":1}`), ContentType: "application/json"}, true, "application/json"},
		"NoType":   {target.Result{Body: []byte(`{"n":1}`)}, true, ""},
		"Large":    {target.Result{Body: []byte(long), ContentType: "text/plain"}, false, "text/plain"},
		"LongType": {target.Result{Body: []byte("x"), ContentType: strings.Repeat("t", 500)}, true, ""},
		"Largest":  {target.Result{Body: []byte(long[:run.MaxResult]), ContentType: "text/plain"}, true, "text/plain"},
		"Larger":   {target.Result{Body: []byte(long[:run.MaxResult+1]), ContentType: "text/plain"}, false, "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				handlers, _ := handler(t, func(_ context.Context, c target.Call) (target.Result, error) {
					_, _ = c.Log.Write([]byte(strings.Repeat("0123456789", 15)))
					return row.result, nil
				})
				p := g.process("w", options{handlers: handlers, Config: worker.Config{MaxLog: 100}})
				r := g.queued(g.job(atLeastOnce), time.Now(), func(r *run.Run) { r.Payload.Inline = []byte(strings.Repeat("1", 300)) })
				g.send(r)
				time.Sleep(time.Second)
				now := g.want(r, run.Succeeded, 1)
				got := now.Result.Inline
				if !row.inline {
					var err error
					if got, err = g.blobs.Get(t.Context(), tenant, now.Result.Blob); err != nil {
						t.Fatal(err)
					}
				}
				if string(got) != string(row.result.Body) || (now.Result.Blob == "") != row.inline || now.Result.Type != row.kind {
					t.Errorf("kept %d bytes of %s, blob %q", len(got), now.Result.Type, now.Result.Blob)
				}
				log, err := g.log(now)
				want := "0123456789012345678901234\n… 50 bytes are not kept …\n" + strings.Repeat("5678901234", 7) + "56789"
				if g.elsewhere { // its limit is no setting
					want = strings.Repeat("0123456789", 15)
				}
				if err != nil || log != want {
					t.Errorf("the log is %q, %v", log, err)
				}
				if _, err := g.blobs.Get(t.Context(), "other", now.Log); !errors.Is(err, blob.ErrNotFound) {
					t.Errorf("another tenant reads the log: %v", err)
				}
				p.stop()
			})
		})
	}
}

// TestALostResultIsNoFailure: the work was done, and is said to be done.
func TestALostResultIsNoFailure(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, _ := handler(t, func(context.Context, target.Call) (target.Result, error) {
			if err := g.blobs.Close(); err != nil { // from now on nothing can be put
				t.Error(err)
			}
			return target.Result{Body: []byte(strings.Repeat("x", 5000))}, nil
		})
		g.process("w", options{handlers: handlers})
		r := g.start(atLeastOnce)
		time.Sleep(10 * time.Second)
		if now := g.want(r, run.Succeeded, 1); now.Reason != "the result could not be kept" || !now.Result.IsZero() {
			t.Errorf("%+v", now)
		}
	})
}
