package worker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// several are runs that are due, and whose messages are received together.
func (g *rig) several(n int) []run.Run {
	g.t.Helper()
	j := g.job(atLeastOnce)
	var all []run.Run
	for range n {
		all = append(all, g.queued(j, time.Now()))
	}
	g.send(all...)
	return all
}

// deletions counts the calls that delete messages.
type deletions struct {
	queue.Queue
	mu    sync.Mutex
	sizes []int
}

func (d *deletions) Delete(ctx context.Context, batch ...queue.Message) ([]error, error) {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(batch))
	d.mu.Unlock()
	return d.Queue.Delete(ctx, batch...)
}

func TestRunsThatAreTakenTogetherAreWrittenTogether(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		handlers, _ := handler(t, takes(time.Second))
		all := g.several(10)
		q := &deletions{}
		p := g.process("w", options{handlers: handlers, around: func(inner queue.Queue) queue.Queue { q.Queue = inner; return q }})
		time.Sleep(2 * time.Second)
		for _, r := range all {
			g.want(r, run.Succeeded, 1)
		}
		g.empty()
		if each, one := p.store.Count(faulty.WriteEach), p.store.Count(faulty.Write); each != (faulty.Counts{Calls: 2, Items: 20}) || one.Calls != 0 {
			t.Errorf("%+v and %+v by itself, want ten starts and ten ends by one call each", each, one)
		}
		if !slices.Equal(q.sizes, []int{10}) {
			t.Errorf("messages were deleted by %v at once, want all by one call", q.sizes)
		}
	})
}

// One of the writes that go together is throttled, or its answer lost, and what is tried again after it takes its time: nobody waits
// for it but its run, which is called once.
func TestP7_P11_Fault01_Fault48_AWriteAmongOthersHoldsUpNoneOfThem(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"Throttled":  {Refuse: store.ErrThrottled},
		"LostBefore": {Refuse: store.ErrUnknown},
		"AnswerLost": {Lose: store.ErrUnknown},
	} {
		for _, state := range []run.State{run.Running, run.Succeeded} {
			t.Run(name+strings.ToUpper(state.String()[:1])+state.String()[1:], func(t *testing.T) {
				beside(t, func(t *testing.T, g *rig) {
					handlers, calls := handler(t, succeed)
					all := g.several(10)
					slow := all[3]
					goOn := make(chan struct{})
					var again sync.Once
					g.process("w", options{handlers: handlers, hook: func(ctx context.Context, c faulty.Call) faulty.Fault {
						if !ofRun(c, slow, state) {
							return faulty.Fault{}
						}
						if c.Method == faulty.WriteEach {
							return fault
						}
						again.Do(func() {
							select {
							case <-goOn:
							case <-ctx.Done():
							}
						})
						return faulty.Fault{}
					}})
					time.Sleep(time.Second)
					for _, r := range all {
						if r.ID != slow.ID {
							g.want(r, run.Succeeded, 1)
						}
					}
					close(goOn)
					time.Sleep(time.Second)
					g.want(slow, run.Succeeded, 1)
					if calls.Load() != 10 {
						t.Errorf("%d calls, want 10", calls.Load())
					}
					g.empty()
				})
			})
		}
	}
}

// Attempts that end at once, each in its own way, and a message that is there twice.
func TestP7_P10_EndsOfAllKindsGoTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var all []run.Run
		handlers, _ := handler(t, func(ctx context.Context, c target.Call) (target.Result, error) {
			if c.Attempt > 1 {
				return target.Result{}, nil
			}
			if _, err := takes(time.Second)(ctx, c); err != nil {
				return target.Result{}, err
			}
			switch slices.IndexFunc(all, func(r run.Run) bool { return r.ID.String() == c.Run }) % 4 {
			case 0:
				return target.Result{}, target.Permanent(errors.New("never"))
			case 1:
				return target.Result{}, errors.New("soon")
			case 2:
				return target.Result{}, target.RetryAfter(2*queue.MaxDelay, errors.New("later"))
			}
			return target.Result{Body: []byte("7")}, nil
		})
		all = g.several(8)
		g.send(all[3], all[7])
		g.process("w", options{handlers: handlers})
		time.Sleep(time.Minute)
		for i, r := range all {
			want := []struct {
				state    run.State
				attempts int
			}{{run.Failed, 1}, {run.Succeeded, 2}, {run.Retrying, 1}, {run.Succeeded, 1}}[i%4]
			g.want(r, want.state, want.attempts)
		}
		g.empty()
	})
}

// A store that answers no more holds up as many ends as there are, and each is written when it is back.
func TestP7_Fault45_EndsWaitForAStoreThatIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, takes(time.Second))
		all := g.several(30)
		away := time.Now().Add(time.Second)
		back := away.Add(3 * time.Minute)
		p := g.process("w", options{handlers: handlers, hook: func(_ context.Context, c faulty.Call) faulty.Fault {
			if now := time.Now(); now.Before(away) || !now.Before(back) {
				return faulty.Fault{}
			}
			return faulty.Fault{Refuse: errors.Join(store.ErrUnknown, errors.New("nobody answers"))}
		}})
		time.Sleep(time.Minute)
		if n := p.Running(); n != len(all) {
			t.Errorf("%d attempts are kept while the store is away, want %d", n, len(all))
		}
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		for _, r := range all {
			g.want(r, run.Succeeded, 1)
		}
		if n := p.Running(); n != 0 || calls.Load() != int64(len(all)) {
			t.Errorf("%d attempts under way, %d calls, want none and %d", n, calls.Load(), len(all))
		}
		g.empty()
	})
}

// Of the first lease two thirds are left when a start has been written, however slow that was: what is alive is not taken for dead.
func TestP5_Fault45_ASlowStartLeavesTimeToRenew(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		handlers, calls := handler(t, takes(time.Minute))
		r := g.queued(g.job(atMostOnce), time.Now())
		var tries atomic.Int64
		g.process("w1", options{handlers: handlers, Config: worker.Config{Concurrency: 1}, hook: func(ctx context.Context, c faulty.Call) faulty.Fault {
			if !ofRun(c, r, run.Running) {
				return faulty.Fault{}
			}
			slow := 300 * time.Millisecond // renewals
			switch tries.Add(1) {
			case 1:
				slow = 20 * time.Second // never in time
			case 2:
				slow = 8900 * time.Millisecond
			}
			return late(ctx, slow)
		}})
		g.send(r)
		time.Sleep(25 * time.Second)
		g.process("w2", options{handlers: handlers})
		time.Sleep(3 * time.Minute)
		g.want(r, run.Succeeded, 1)
		if calls.Load() != 1 {
			t.Errorf("%d calls, want 1", calls.Load())
		}
	})
}

// late lets a call happen after a while, or says that nobody knows, when its context ends before.
func late(ctx context.Context, by time.Duration) faulty.Fault {
	select {
	case <-time.After(by):
		return faulty.Fault{}
	case <-ctx.Done():
		return faulty.Fault{Refuse: store.ErrUnknown}
	}
}

// What nobody answers holds up those that it was written with for a second.
func TestP11_Fault48_ASilentWriteAmongOthersHoldsThemUpForAMoment(t *testing.T) {
	for _, state := range []run.State{run.Running, run.Succeeded} {
		t.Run(state.String(), func(t *testing.T) {
			beside(t, func(t *testing.T, g *rig) {
				handlers, _ := handler(t, succeed)
				soon := g.queued(g.job(atLeastOnce), time.Now().Add(300*time.Millisecond)) // it is not written with them
				body, err := run.Message{Run: soon, Sent: time.Now().UnixMilli()}.Encode()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := g.queue.Send(t.Context(), queue.Normal, queue.Outgoing{Body: body}); err != nil {
					t.Fatal(err)
				}
				all := g.several(10)
				g.process("w", options{handlers: handlers, hook: func(ctx context.Context, c faulty.Call) faulty.Fault {
					if !ofRun(c, all[8], state) { // one of those that are taken with it
						return faulty.Fault{}
					}
					return late(ctx, 5*time.Second)
				}})
				time.Sleep(400 * time.Millisecond)
				if state == run.Running {
					g.want(soon, run.Succeeded, 1)
				}
				time.Sleep(2600 * time.Millisecond)
				for i, r := range all {
					if i != 8 {
						g.want(r, run.Succeeded, 1)
					}
				}
				time.Sleep(10 * time.Second)
				g.want(all[8], run.Succeeded, 1)
				g.empty()
			})
		})
	}
}

// A worker that is told to stop while its store is silent is gone when the ends have had the length of a lease.
func TestP11_AStopUnderASilentStoreEnds(t *testing.T) {
	beside(t, func(t *testing.T, g *rig) {
		handlers, _ := handler(t, takes(2*time.Second))
		g.several(10)
		silent := time.Now().Add(time.Second)
		p := g.process("w", options{handlers: handlers, Config: worker.Config{Grace: time.Second}, hook: func(ctx context.Context, _ faulty.Call) faulty.Fault {
			if time.Now().Before(silent) {
				return faulty.Fault{}
			}
			<-ctx.Done()
			return faulty.Fault{Refuse: store.ErrUnknown}
		}})
		time.Sleep(2500 * time.Millisecond)
		began := time.Now()
		p.stop()
		if took := time.Since(began); took > leaseFor+2*time.Second {
			t.Errorf("it took %s, want the length of a lease and little more", took)
		}
	})
}
