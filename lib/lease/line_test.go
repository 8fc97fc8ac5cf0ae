package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// turn is a run that a worker elsewhere has begun, among others of its job that wait in line.
type turn struct {
	*office
	run   run.Run
	claim lease.Claim
	line  []run.Run // from the front on
}

// atWork has a worker begin a run, and three others of its job wait in line, each of which was asked for a second after the one before.
func (o *office) atWork(def func(*job.Definition)) *turn {
	o.t.Helper()
	first := o.queued(tenant, def)
	w := &turn{office: o, run: first, claim: o.begin(first, o.take(able("w-1", "f")), me)}
	for range 3 {
		time.Sleep(time.Second)
		next := o.another(first, nil)
		o.gone(next, o.take(able("w-2", "f")), other)
		if s := o.read(next); !s.Waits() {
			o.t.Fatalf("%s stands as %s, and was to wait", next.ID, s.State)
		}
		w.line = append(w.line, next)
	}
	return w
}

var other = lease.Holder{Worker: "w-2", Start: "1"}

// end ends the attempt as its worker says.
func (w *turn) end(e worker.End, wants run.State) {
	w.t.Helper()
	if state, err := w.Finish(w.t.Context(), tenant, w.claim, e); err != nil || state != wants {
		w.t.Fatalf("the attempt ended as %s, %v; want %s", state, err, wants)
	}
}

// still wants nothing to be offered to another worker for so long.
func (w *turn) still(d time.Duration) {
	w.t.Helper()
	for until := time.Now().Add(d); time.Now().Before(until); {
		offers, err := w.Take(w.t.Context(), tenant, able("w-2", "f"), 10, min(10*time.Second, time.Until(until)))
		if err != nil || len(offers) > 0 {
			w.t.Fatalf("%d runs were offered (%v) while %s is in progress", len(offers), err, w.run.ID)
		}
	}
}

// next has another worker take and begin what is to be the only run that is offered.
func (w *turn) next(wants run.Run) lease.Claim {
	w.t.Helper()
	offer := w.take(able("w-2", "f"))
	if offer.Run != wants.ID.String() {
		w.t.Fatalf("offered is %s, want %s", offer.Run, wants.ID)
	}
	return w.begin(wants, offer, other)
}

// However the attempt of a worker elsewhere ends, the line goes on when its run has, in order and one at a time; and no sooner: who is to be tried
// again holds its place, and so does who is not heard of, until its lease is over.
func TestG1_G2_G3_HoweverAWorkerElsewhereLeavesALine(t *testing.T) {
	tries := func(n int) func(*job.Definition) {
		return func(d *job.Definition) {
			queue1(d)
			d.Retry = job.Retry{MaxAttempts: n, Initial: schedule.Duration(10 * time.Second), Factor: 1, Max: schedule.Duration(10 * time.Second)}
		}
	}
	atMostOnce := func(d *job.Definition) {
		queue1(d)
		once(d)
	}
	for name, row := range map[string]struct {
		def   func(*job.Definition)
		leave func(w *turn) // has the run begin again, or end
		again bool          // it begins again, and comes before the line
		ended run.State
	}{
		"it succeeds": {tries(1), func(w *turn) { w.end(worker.End{Outcome: run.OutcomeSucceeded}, run.Succeeded) }, false, run.Succeeded},
		"it fails for good": {tries(1), func(w *turn) {
			w.end(worker.End{Outcome: run.OutcomeFailed, Failure: target.Reported(target.KindTimeout, "slow", false, 0)}, run.Dead)
		}, false, run.Dead},
		"it fails, and is tried again": {tries(2), func(w *turn) {
			w.end(worker.End{Outcome: run.OutcomeFailed, Failure: target.Reported(target.KindTimeout, "slow", false, 0)}, run.Retrying)
		}, true, run.Succeeded},
		"it is handed back": {tries(2), func(w *turn) {
			w.end(worker.End{Outcome: run.OutcomeHandedBack}, run.Queued)
		}, true, run.Succeeded},
		"it is cancelled": {tries(2), func(w *turn) {
			asked, _ := w.read(w.run).AskCancel(time.Now().UnixMilli(), "no longer needed", time.Hour)
			w.write(asked.Item(77))
			if renewed, err := w.Renew(w.t.Context(), tenant, w.claim); err != nil || !renewed.Cancel {
				w.t.Fatalf("renewed: %+v, %v", renewed, err)
			}
			w.still(5 * time.Second)
			w.end(worker.End{Outcome: run.OutcomeCancelled}, run.Cancelled)
		}, false, run.Cancelled},
		"its worker vanishes":               {tries(2), func(w *turn) { w.still(w.d.Lease - 4*time.Second) }, true, run.Succeeded},
		"its worker vanishes, at most once": {atMostOnce, func(w *turn) { w.still(w.d.Lease - 4*time.Second) }, false, run.Unknown},
		"its worker vanishes after it has renewed": {atMostOnce, func(w *turn) {
			w.still(w.d.Lease / 2)
			if _, err := w.Renew(w.t.Context(), tenant, w.claim); err != nil {
				w.t.Fatal(err)
			}
			w.still(w.d.Lease - time.Second)
		}, false, run.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				w := o.atWork(row.def)
				row.leave(w)
				left := time.Now()
				all := w.line
				if row.again {
					all = append([]run.Run{w.run}, all...)
				}
				for i, r := range all {
					claim := w.next(r)
					if waited := time.Since(left); i == 0 && waited > 15*time.Second {
						t.Errorf("the line went on %s after there was room", waited)
					}
					w.still(time.Second)
					if state, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil || state != run.Succeeded {
						t.Fatal(state, err)
					}
				}
				if s := o.read(w.run); s.State != row.ended {
					t.Errorf("the first ended as %s, want %s", s.State, row.ended)
				}
				if g := o.gate(w.run); g.Waiting != 0 {
					t.Errorf("%d wait in line", g.Waiting)
				}
				if n := o.messages(); n != 0 {
					t.Errorf("%d messages are left", n)
				}
			})
		})
	}
}

// A reservation holds no place: who is offered a run and never starts it is in nobody's way, and its run joins the line when it is offered again.
func TestG1_G2_AReservationOfAWorkerThatVanishesHoldsNoPlace(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		first := o.queued(tenant, queue1)
		o.take(able("w-1", "f")) // and is not heard of any more
		time.Sleep(time.Second)
		second := o.another(first, nil)
		claim := o.begin(second, o.take(able("w-2", "f")), other)
		o.gone(first, o.take(able("w-2", "f")), other)
		if s := o.read(first); !s.Waits() {
			t.Fatalf("the first stands as %s", s.State)
		}
		if _, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil {
			t.Fatal(err)
		}
		if offer := o.take(able("w-2", "f")); offer.Run != first.ID.String() {
			t.Errorf("offered is %s, want %s", offer.Run, first.ID)
		}
	})
}

// Whose run was ended for a later one is fenced, also where its attempt has stopped by itself: its end is no earlier try of that of the worker, and is counted by whoever wrote it.
func TestP5_WhoStopsBehindAReplaceIsFenced(t *testing.T) {
	for _, asked := range []bool{false, true} {
		inOffice(t, func(t *testing.T, o *office) {
			first := o.queued(tenant, func(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapReplace, Limit: 1} })
			claim := o.begin(first, o.take(able("w-1", "f")), me)
			stands, now := o.read(first), time.Now().UnixMilli()
			if asked { // by somebody, and it stops
				stands, _ = stands.AskCancel(now, "no longer needed", time.Hour)
				stands.Version = o.write(stands.Item(o.d.NewID()))
			}
			o.write(stands.Replaced(run.Why{Code: run.WhyOverlap, Gate: "job:" + first.ID.Job, Policy: string(job.OverlapReplace)}, now, run.Limits{Retention: time.Hour}).Item(o.d.NewID()))
			if state, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeCancelled}); !errors.Is(err, worker.ErrFenced) {
				t.Errorf("asked %v: it is told %s, %v", asked, state, err)
			}
		})
	}
}

// Whoever ends a run for a later one may die before it has told those that wait for a place of it: the worker of the run does, when it comes with an end that does not count.
func TestG2_WhoWaitsForARunThatWasReplacedIsLetInByItsWorker(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		w := o.atWork(queue1)
		now := time.Now().UnixMilli()
		o.write(o.read(w.run).Replaced(run.Why{Code: run.WhyOverlap, Gate: "job:" + w.run.ID.Job, Policy: string(job.OverlapReplace)}, now, run.Limits{Retention: time.Hour}).Item(o.d.NewID()))
		if state, err := o.Finish(t.Context(), tenant, w.claim, worker.End{Outcome: run.OutcomeSucceeded}); !errors.Is(err, worker.ErrFenced) {
			t.Fatalf("it is told %s, %v", state, err)
		}
		ended := time.Now()
		w.next(w.line[0])
		if waited := time.Since(ended); waited > 15*time.Second {
			t.Errorf("the line went on %s after there was room", waited)
		}
	})
}
