package faults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func TestP2_P3_Fault05_TwoSchedulersOverOneStoreMakeEachRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a, b := h.open("a"), h.open("b")
		h.put(a, "j", every(10*time.Second))
		from := time.Now()
		time.Sleep(3 * time.Minute)
		a.stop()
		b.stop()
		h.once("j", 10*time.Second, from.Add(time.Millisecond), time.Now())
	})
}

func TestFault12_AnotherOwnerOfTheShardGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.open("a")
		h.put(a, "j", every(7*time.Second))
		from := time.Now()
		time.Sleep(30*time.Second + 300*time.Millisecond)
		a.stop() // with its lease on the shard still running
		b := h.open("b")
		time.Sleep(time.Minute)
		b.stop()
		h.once("j", 7*time.Second, from.Add(time.Millisecond), time.Now().Add(-time.Second))
	})
}

func TestP3_Fault07_AHostFarFromTheStoresTimeClaimsAndStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.open("a")
		h.put(a, "j", every(10*time.Second), func(d *job.Definition) { d.CatchUp.Mode = job.CatchUpAll })
		a.store.SetSkew(-5 * time.Minute) // this host is five minutes ahead
		from := time.Now()
		time.Sleep(time.Minute)
		// What had been claimed within the look-ahead is all that could be under way.
		if n := len(h.called("j")); n > 1 {
			t.Errorf("%d runs started on a host five minutes ahead", n)
		}
		if err := a.Ready(t.Context()); err == nil {
			t.Error("a skewed host says that it is ready")
		}
		var refused *control.Refusal
		if _, _, err := a.Control.Trigger(t.Context(), tenant, "j", control.Request{}); !errors.As(err, &refused) || refused.Code != control.CodeClockSkewed {
			t.Errorf("a request got %v, want a refusal for the clock", err)
		}
		a.store.SetSkew(0)
		time.Sleep(time.Minute)
		a.stop()
		h.once("j", 10*time.Second, from.Add(time.Millisecond), time.Now().Add(-time.Second))
	})
}

func TestFault08_AClockThatStepsBackRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.open("a")
		h.put(a, "j", every(10*time.Second))
		time.Sleep(65 * time.Second)
		before := len(h.called("j"))
		h.mu.Lock()
		h.step = -30 * time.Second
		h.mu.Unlock()
		time.Sleep(25 * time.Second) // the wall clock is still where it has been before
		for at, n := range h.called("j") {
			if n != 1 {
				t.Errorf("the fire of %s was called %d times", at, n)
			}
		}
		if after := len(h.called("j")); after > before+1 {
			t.Errorf("%d calls in a time that the clock has already shown", after-before)
		}
		time.Sleep(time.Minute)
		if after := len(h.called("j")); after < before+4 {
			t.Errorf("only %d further calls when the clock had come past where it was", after-before)
		}
	})
}

func TestP2_Fault10_Fault18_AfterADowntimeThePolicyDecides(t *testing.T) {
	for _, down := range []time.Duration{3 * time.Hour, 14 * 24 * time.Hour} {
		for _, c := range []struct {
			policy job.CatchUp
			ran    func(missed int) int // of the missed fires, besides the newest, which is 2 minutes and 30 seconds old
		}{
			{job.CatchUp{Mode: job.CatchUpNone}, func(int) int { return 0 }},
			{job.CatchUp{Mode: job.CatchUpOne}, func(int) int { return 0 }},
			{job.CatchUp{Mode: job.CatchUpAll}, func(missed int) int { return missed }},
			{job.CatchUp{Mode: job.CatchUpAll, Window: schedule.Duration(time.Hour)}, func(int) int { return 11 }},
		} {
			if down > 24*time.Hour && (c.policy.Mode != job.CatchUpOne) {
				continue // reading weeks of minutes takes seconds; the rules are the same
			}
			t.Run(fmt.Sprintf("%s_%s_%s", down, c.policy.Mode, c.policy.Window), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := newHouse(t)
					h.every = 20 * time.Second
					a := h.open("a")
					const interval = 5 * time.Minute
					h.put(a, "j", every(interval), func(d *job.Definition) { d.CatchUp = c.policy })
					time.Sleep(12*time.Minute + 30*time.Second)
					a.stop()
					stopped := time.Now()
					time.Sleep(down)
					back := time.Now()
					b := h.open("b")
					time.Sleep(20 * time.Minute)
					end := time.Now()
					b.stop()

					ran, missed := 0, 0
					fires := h.called("j")
					for at := stopped.Truncate(interval).Add(interval); at.Before(back.Truncate(interval)); at = at.Add(interval) {
						missed++
						ran += fires[at.UTC()]
					}
					if want := c.ran(missed); ran != want {
						t.Errorf("%d of %d missed fires ran, want %d", ran, missed, want)
					}
					// Nothing is dropped in silence: what did not run is counted in records of what was skipped.
					skipped := 0
					for _, r := range h.runs(b, "j") {
						if r.State == run.Skipped {
							skipped += r.Count
							if r.Reason == "" {
								t.Errorf("run %s was skipped without a reason", r.ID)
							}
						}
					}
					if skipped != missed-ran {
						t.Errorf("%d fires are recorded as skipped, want %d", skipped, missed-ran)
					}
					// And from the newest on it goes on as if nothing had been.
					for at := back.Truncate(interval); at.Before(end); at = at.Add(interval) {
						if fires[at.UTC()] != 1 {
							t.Errorf("the fire of %s after the downtime was called %d times", at, fires[at.UTC()])
						}
					}
				})
			})
		}
	}
}

func TestFault13_AnEditMakesNoRunForThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.every = 20 * time.Second
		a := h.open("a")
		h.put(a, "j", &schedule.Spec{Cron: "0 0 * * *"})
		time.Sleep(10*time.Hour + 30*time.Second)
		edited := time.Now()
		h.put(a, "j", &schedule.Spec{Cron: "*/5 * * * *"})
		time.Sleep(11 * time.Minute)
		for at := range h.called("j") {
			if at.Before(edited) {
				t.Errorf("the edit of %s led to a run for %s", edited, at)
			}
		}
		if n := len(h.called("j")); n != 2 {
			t.Errorf("%d runs in eleven minutes of the new schedule, want 2", n)
		}
	})
}

func TestFault14_ResumingMakesNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.every = 20 * time.Second
		a := h.open("a")
		h.put(a, "j", every(time.Minute), func(d *job.Definition) { d.CatchUp.Mode = job.CatchUpAll })
		time.Sleep(150 * time.Second)
		if _, err := a.Control.Pause(t.Context(), tenant, "j", "test", control.Match{}); err != nil {
			t.Fatal(err)
		}
		before := len(h.called("j"))
		time.Sleep(5*time.Hour + 10*time.Second)
		if n := len(h.called("j")); n != before {
			t.Errorf("%d runs while it was paused", n-before)
		}
		if _, err := a.Control.Resume(t.Context(), tenant, "j", control.Match{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n := len(h.called("j")) - before; n != 2 {
			t.Errorf("%d runs in two minutes after it was resumed, want 2", n)
		}
	})
}

func TestFault04_Fault13_DeletedAndMadeAgainIsAnotherJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.open("a")
		first := h.put(a, "j", every(time.Minute))
		time.Sleep(90 * time.Second)
		if err := a.Control.Delete(t.Context(), tenant, "j", control.Match{}); err != nil {
			t.Fatal(err)
		}
		if err := a.Control.Delete(t.Context(), tenant, "j", control.Match{ETag: first.ETag()}); err == nil {
			t.Error("a job was deleted twice")
		}
		second := h.put(a, "j", every(time.Hour))
		if second.Generation <= first.Generation {
			t.Errorf("generation %d after %d: it must not restart", second.Generation, first.Generation)
		}
		if _, _, err := a.Control.Put(t.Context(), tenant, "j", job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "note"}}},
			control.Match{ETag: first.ETag()}); err == nil {
			t.Error("an edit that was meant for the deleted job passed")
		}
		before := len(h.called("j"))
		time.Sleep(10 * time.Minute)
		if n := len(h.called("j")); n != before {
			t.Errorf("%d runs of the deleted job's schedule", n-before)
		}
	})
}

func TestP10_Fault25_ARunWhoseMessagesAreLostStillRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.every = 10 * time.Second
		lost := map[string]int{}
		h.wrap = func(q queue.Queue) queue.Queue {
			return queuefaulty.Wrap(q, queuefaulty.Hooks{Send: func(_ queue.Priority, m queue.Outgoing) queuefaulty.Fate {
				message, err := run.DecodeMessage(m.Body)
				if err != nil {
					t.Error(err)
				}
				h.mu.Lock()
				defer h.mu.Unlock()
				id := message.Run.ID.String()
				lost[id]++
				return queuefaulty.Fate{Drop: lost[id] == 1} // the first message of each run
			}})
		}
		a := h.open("a")
		h.put(a, "j", &schedule.Spec{Cron: "0 * * * *"})
		h.put(a, "demand", nil)
		if _, _, err := a.Control.Trigger(t.Context(), tenant, "demand", control.Request{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(70 * time.Minute)
		for _, name := range []string{"j", "demand"} {
			if s := states(h.runs(a, name)); s[run.Succeeded] != 1 || len(s) != 1 {
				t.Errorf("%s: %v, want one run that succeeded", name, s)
			}
		}
	})
}

func TestP4_Fault33_QueuedRunsWithoutAMessageAreFoundAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		dropped := true
		h.wrap = func(q queue.Queue) queue.Queue {
			return queuefaulty.Wrap(q, queuefaulty.Hooks{Send: func(queue.Priority, queue.Outgoing) queuefaulty.Fate {
				h.mu.Lock()
				defer h.mu.Unlock()
				return queuefaulty.Fate{Drop: dropped}
			}})
		}
		a := h.open("a")
		h.put(a, "demand", nil)
		if _, _, err := a.Control.Trigger(t.Context(), tenant, "demand", control.Request{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		a.stop()
		h.mu.Lock()
		dropped = false
		h.mu.Unlock()
		b := h.open("b")
		time.Sleep(3 * time.Second)
		if s := states(h.runs(b, "demand")); s[run.Succeeded] != 1 {
			t.Errorf("%v three seconds after the start, want the run to have succeeded", s)
		}
	})
}

func TestFault29_UnreadableRecordsHoldNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		a := h.open("a")
		h.put(a, "well", every(30*time.Second))
		h.put(a, "sick", every(30*time.Second))
		from := time.Now()
		time.Sleep(45 * time.Second)
		// The job's record, the record of its next run, and a timer in its bucket.
		next := time.Now().Truncate(30 * time.Second).Add(30 * time.Second).UnixMilli()
		broken := timer.NewFire(tenant, "well", 1, next, next).Key()
		broken.Sort += "#nonsense"
		for _, key := range []store.Key{job.Key(tenant, "sick"), run.FireID("sick", next).Key(tenant), broken} {
			if _, err := h.durable.Write(t.Context(), store.Op{Kind: store.Put, Key: key, Value: []byte{record.Format, 0xff}}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(15 * time.Minute)
		a.stop()
		h.once("well", 30*time.Second, from.Add(time.Millisecond), time.Now())
	})
}

func TestFault30_Fault19_APageOfExemptTimersDoesNotHoldTheSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		h.every = 20 * time.Second
		a := h.open("a")
		h.put(a, "j", every(time.Minute))
		// More timers than a page holds, all of jobs that do not exist, in every bucket of a minute to come.
		wake := time.Now().Add(2 * time.Minute).Truncate(time.Minute).UnixMilli()
		for i := range 64 * 600 {
			key := timer.NewFire(tenant, fmt.Sprintf("gone-%d", i), 1, wake, wake)
			op, err := key.Put(uint64(i + 1))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.durable.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		// One run among them is claimed, and its message gone.
		time.Sleep(75 * time.Minute)
		items, err := h.durable.Get(t.Context(), timer.ShardKey(0))
		if err != nil {
			t.Fatal(err)
		}
		s, err := timer.ShardFromItem(0, items[0])
		if err != nil {
			t.Fatal(err)
		}
		if behind := time.Since(time.UnixMilli(s.Oldest())); behind > timer.Lags[timer.Sweeps-1]+2*time.Minute {
			t.Errorf("the last sweep is %s behind", behind)
		}
		if n := len(h.called("j")); n < 74 {
			t.Errorf("%d runs in 75 minutes", n)
		}
	})
}

func TestP11_Fault46_AFloodIsRefusedWithATimeToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t)
		full := false
		h.wrap = func(q queue.Queue) queue.Queue {
			return queuefaulty.Wrap(q, queuefaulty.Hooks{Send: func(queue.Priority, queue.Outgoing) queuefaulty.Fate {
				h.mu.Lock()
				defer h.mu.Unlock()
				if full {
					return queuefaulty.Fate{Drop: true, Err: queue.ErrFull}
				}
				return queuefaulty.Fate{}
			}})
		}
		a := h.open("a")
		h.put(a, "j", nil)
		h.mu.Lock()
		full = true
		h.mu.Unlock()
		accepted, refused := 0, 0
		for range 100 {
			_, _, err := a.Control.Trigger(t.Context(), tenant, "j", control.Request{})
			var refusal *control.Refusal
			switch {
			case err == nil:
				accepted++
			case errors.As(err, &refusal) && refusal.Code == control.CodeBusy && refusal.RetryAfter > 0:
				refused++
			default:
				t.Fatal(err)
			}
		}
		if refused < 90 || accepted == 0 {
			t.Errorf("%d accepted and %d refused of 100 while the queue was full", accepted, refused)
		}
		h.mu.Lock()
		full = false
		h.mu.Unlock()
		time.Sleep(5 * time.Minute)
		// What was accepted is not swallowed.
		if s := states(h.runs(a, "j")); s[run.Succeeded] != accepted || len(s) != 1 {
			t.Errorf("%v, want the %d accepted runs to have succeeded", s, accepted)
		}
	})
}

func TestFault48_AThrottledPartitionIsLateAlone(t *testing.T) {
	for name, slow := range map[string]func(store.Key) bool{
		"RunsOfOneJob":  partitions("run#" + tenant + "#slow#"),
		"OneBucket":     nil, // that of the slow job, below
		"OneJobsRecord": func(k store.Key) bool { return k == job.Key(tenant, "slow") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t)
				a := h.open("a")
				h.put(a, "slow", every(20*time.Second))
				well := "well"
				for timer.BucketOf(tenant, well) == timer.BucketOf(tenant, "slow") {
					well += "x"
				}
				h.put(a, well, every(20*time.Second))
				if slow == nil {
					bucket := fmt.Sprintf("#%02d", timer.BucketOf(tenant, "slow"))
					slow = func(k store.Key) bool { return partitions("due#")(k) && k.Partition[len(k.Partition)-3:] == bucket }
				}
				from := time.Now()
				time.Sleep(30 * time.Second)
				h.fault(func(_ context.Context, c faulty.Call) faulty.Fault {
					if c.Touches(slow) {
						return faulty.Fault{Refuse: store.ErrThrottled}
					}
					return faulty.Fault{}
				})
				time.Sleep(3 * time.Minute)
				h.mu.Lock()
				for _, c := range h.calls {
					if late := c.at.Sub(c.nominal); c.job == well && late > time.Second {
						t.Errorf("%s was %s late for a neighbour", c.run, late)
					}
				}
				h.mu.Unlock()
				if n := len(h.called(well)); n < 10 {
					t.Errorf("%d runs of the neighbour", n)
				}
				h.fault(nil)
				time.Sleep(2 * time.Minute)
				a.stop()
				h.once("slow", 20*time.Second, from.Add(time.Millisecond), time.Now().Add(-time.Minute))
			})
		})
	}
}
