package lease_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

func one(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapSkip, Limit: 1} }

func two(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapSkip, Limit: 2} }

// another makes another run of the same job that is due, and sends it.
func (o *office) another(r run.Run, change func(run.Run) run.Run) run.Run {
	o.t.Helper()
	next := run.Run{ID: run.RequestID(r.ID.Job, time.Now().UnixMilli(), rand.Uint64()), Tenant: r.Tenant, State: run.Queued, Trigger: run.ByRequest,
		Priority: queue.Normal, Generation: r.Generation, Created: time.Now().UnixMilli()}
	if change != nil {
		next = change(next)
	}
	op, err := next.Item(rand.Uint64())
	next.Version = o.write(op, err)
	o.send(next)
	return next
}

// opened is a run that was cancelled, and retried on request.
func opened(r run.Run) run.Run {
	r, _ = r.AskCancel(time.Now().UnixMilli(), "no longer needed", time.Hour)
	return r.Reopen(r.Generation, 0, "retried on request").Reopened(time.Now().UnixMilli())
}

func (o *office) gate(r run.Run) gate.Gate {
	o.t.Helper()
	items, err := o.store.Get(context.Background(), gate.Key(r.Tenant, r.ID.Job))
	if err != nil {
		o.t.Fatal(err)
	}
	g, err := gate.FromItem(r.Tenant, gate.Name(r.ID.Job), items[0])
	if err != nil {
		o.t.Fatal(err)
	}
	return g
}

func (o *office) begin(r run.Run, offer lease.Offered, h lease.Holder) lease.Claim {
	o.t.Helper()
	task, ticket, err := o.Start(o.t.Context(), tenant, r.ID, offer.Ticket, h)
	if err != nil {
		o.t.Fatal(err)
	}
	return lease.Claim{Run: r.ID, Fence: task.Fence, Holder: h, Ticket: ticket}
}

// gone starts what a worker elsewhere was offered, and wants to hear that it has gone another way.
func (o *office) gone(r run.Run, offer lease.Offered, h lease.Holder) {
	o.t.Helper()
	if _, _, err := o.Start(o.t.Context(), tenant, r.ID, offer.Ticket, h); !errors.Is(err, worker.ErrGone) {
		o.t.Errorf("the start of %s gives %v, want it gone", r.ID, err)
	}
}

func (o *office) messages() int64 {
	o.t.Helper()
	depth, err := o.queue.Depth(context.Background())
	if err != nil {
		o.t.Fatal(err)
	}
	d := depth[queue.Normal]
	return d.Ready + d.Delayed + d.Taken
}

// A worker elsewhere enters with its start, and not with its reservation: who is offered a run while another is in progress may find room when it
// starts it.
func TestG1_AWorkerElsewhereEntersWithItsStart(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		first := o.queued(tenant, one)
		offered := o.take(able("w-1", "f"))
		second := o.another(first, nil)
		other := o.take(able("w-2", "f"))
		if g := o.gate(first); len(g.Entries) != 0 {
			t.Errorf("reservations hold %+v", g.Entries)
		}
		claim := o.begin(first, offered, me)
		if again := o.begin(first, offered, me); again.Fence != claim.Fence { // its answer was lost
			t.Errorf("the same start gives fence %d, and then %d", claim.Fence, again.Fence)
		}
		third := o.another(first, nil)
		late := o.take(able("w-3", "f"))
		o.gone(third, late, lease.Holder{Worker: "w-3", Start: "1"})
		if s := o.read(third); s.State != run.Skipped || len(s.Why.InTheWay) != 1 || s.Why.InTheWay[0] != first.ID.String() {
			t.Errorf("the third stands as %s, for %v", s.State, s.Why)
		}
		if state, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil || state != run.Succeeded {
			t.Fatal(state, err)
		}
		o.begin(second, other, lease.Holder{Worker: "w-2", Start: "1"})
		if s := o.read(second); s.State != run.Running {
			t.Errorf("the second stands as %s", s.State)
		}
		if n := o.messages(); n != 1 {
			t.Errorf("%d messages are left, want that of the run in progress", n)
		}
	})
}

func queue1(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapQueue, Limit: 1} }

// A run that finds no room waits without a message, under queue, and under every policy where somebody has opened it by hand. The end of whoever is in its way sends it.
func TestG2_WhoFindsNoRoomWaitsUntilItIsSent(t *testing.T) {
	for name, row := range map[string]struct {
		def    func(*job.Definition)
		change func(run.Run) run.Run
	}{"queue": {queue1, nil}, "opened by hand, under skip": {one, opened}} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				first := o.queued(tenant, row.def)
				claim := o.begin(first, o.take(able("w-1", "f")), me)
				next := o.another(first, row.change)
				h := lease.Holder{Worker: "w-2", Start: "1"}
				o.gone(next, o.take(able("w-2", "f")), h)
				s := o.read(next)
				if !s.Waits() || s.Stage() != run.Waiting || s.Wait.Since != time.Now().UnixMilli() {
					t.Fatalf("it stands as %s: %+v", s.State, s.Wait)
				}
				if n := o.messages(); n != 1 {
					t.Errorf("%d messages, want that of the run in progress", n)
				}
				time.Sleep(10 * time.Second)
				if _, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil {
					t.Fatal(err)
				}
				last := o.begin(next, o.take(able("w-2", "f")), h)
				if g := o.gate(first); len(g.Entries) != 1 || g.Entries[0].Random != next.ID.Random || g.Waiting != 0 {
					t.Errorf("the gate holds %+v", g)
				}
				if s := o.read(next); s.State != run.Running || !s.Wait.IsZero() {
					t.Errorf("it started as %+v", s)
				}
				// Its wait is none of the lateness that Belfry is to blame for.
				o.metrics.Each(time.Now(), func(f metrics.Family, samples []metrics.Sample) {
					if f.Name == "belfry_lateness_seconds" && samples[0].Histogram.Sum > 2*time.Second {
						t.Errorf("started %s late, after a wait of 10s", samples[0].Histogram.Sum)
					}
				})
				if _, err := o.Finish(t.Context(), tenant, last, worker.End{Outcome: run.OutcomeSucceeded}); err != nil {
					t.Fatal(err)
				}
				if n := o.messages(); n != 0 {
					t.Errorf("%d messages are left", n)
				}
			})
		})
	}
}

// Whoever wrote an end has died before the next was let in: the message of the run that has ended comes again, and does it.
func TestG2_TheMessageOfAnEndedRunLetsInTheNext(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		first := o.queued(tenant, queue1)
		o.begin(first, o.take(able("w-1", "f")), me)
		next := o.another(first, nil)
		o.gone(next, o.take(able("w-2", "f")), lease.Holder{Worker: "w-2", Start: "1"})
		ended := o.read(first).Succeed(time.Now().UnixMilli(), run.Ref{}, "", run.Limits{Retention: 24 * time.Hour})
		op, err := ended.Item(77)
		o.write(op, err)
		time.Sleep(time.Minute)
		offer := o.take(able("w-2", "f")) // of the message that comes again, nothing is offered
		if offer.Run != next.ID.String() {
			t.Errorf("offered is %s", offer.Run)
		}
		if s := o.read(next); s.Waits() {
			t.Errorf("it waits still: %+v", s.Wait)
		}
	})
}

// How late a run is, is told of when it was due. Who was opened by hand was asked for at another time.
func TestWhoWasOpenedByHandIsNotLate(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		first := o.queued(tenant, two)
		o.begin(first, o.take(able("w-1", "f")), me)
		again := o.another(first, opened)
		o.begin(again, o.take(able("w-1", "f")), me)
		o.metrics.Each(time.Now(), func(f metrics.Family, samples []metrics.Sample) {
			if f.Name == "belfry_lateness_seconds" && samples[0].Histogram.Count != 1 {
				t.Errorf("%d starts are counted by how late they are, want that of the run that was not opened again", samples[0].Histogram.Count)
			}
		})
	})
}

// A delete ends who waits for room, at the latest when a worker comes to it; and who is in progress keeps its place until its end.
func TestP8_G1_WhoWaitsForRoomOfADeletedJobIsCancelled(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		first := o.queued(tenant, one)
		o.begin(first, o.take(able("w-1", "f")), me)
		again := o.another(first, opened)
		j, err := o.d.Book.Job(t.Context(), tenant, first.ID.Job)
		if err != nil {
			t.Fatal(err)
		}
		j.Deleted, j.Def, j.Generation = true, job.Definition{}, j.Generation+1
		op, err := j.Put(7)
		o.write(op, err)
		o.gone(again, o.take(able("w-2", "f")), lease.Holder{Worker: "w-2", Start: "1"})
		if s := o.read(again); s.State != run.Cancelled || s.Reason != "the job was deleted" {
			t.Errorf("it stands as %s: %s", s.State, s.Reason)
		}
		if n := o.messages(); n != 1 {
			t.Errorf("%d messages are left, want that of the run in progress", n)
		}
	})
}

// A run that enters behind a delete ends as cancelled when it looks at its job, and holds no place after that.
func TestP8_G1_WhoEntersBehindADeleteLeavesItsPlace(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		late := func(r run.Run) run.Run { // so late that it looks at its job
			r.ID.Nominal -= time.Minute.Milliseconds()
			return r
		}
		first := o.queued(tenant, one)
		j, err := o.d.Book.Job(t.Context(), tenant, first.ID.Job)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.d.Book.Edition(t.Context(), tenant, first.ID.Job, first.Generation); err != nil { // its record is gone after the delete
			t.Fatal(err)
		}
		deleted := j
		deleted.Deleted, deleted.Def, deleted.Generation = true, job.Definition{}, j.Generation+1
		op, err := deleted.Put(7)
		deleted.Version = o.write(op, err)
		second := o.another(first, late)
		for range 2 {
			offer := o.take1(able("w-1", "f"))
			id, err := run.ParseID(offer.Run)
			if err != nil {
				t.Fatal(err)
			}
			if id == second.ID {
				o.gone(second, offer, me)
				continue
			}
			claim := o.begin(first, offer, me) // prompt: it is the delete itself that would have ended it
			if _, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil {
				t.Fatal(err)
			}
		}
		if s := o.read(second); s.State != run.Cancelled {
			t.Errorf("it stands as %s", s.State)
		}
		third := o.another(first, nil)
		claim := o.begin(third, o.take(able("w-1", "f")), me)
		if _, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeSucceeded}); err != nil {
			t.Fatal(err)
		}
	})
}

// A run keeps its place through its retries, and asks nobody for it.
func TestG1_ARunThatIsTriedAgainKeepsItsPlace(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		first := o.queued(tenant, one)
		claim := o.begin(first, o.take(able("w-1", "f")), me)
		if state, err := o.Finish(t.Context(), tenant, claim, worker.End{Outcome: run.OutcomeHandedBack}); err != nil || state != run.Queued {
			t.Fatal(state, err)
		}
		second := o.another(first, nil)
		for range 2 {
			offer := o.take1(able("w-1", "f"))
			if offer.Run == second.ID.String() {
				o.gone(second, offer, me)
				continue
			}
			before := o.gate(first)
			o.begin(first, offer, lease.Holder{Worker: "w-1", Start: "2"})
			if after := o.gate(first); after.Version != before.Version {
				t.Errorf("a further attempt has written the gate")
			}
		}
		if s := o.read(second); s.State != run.Skipped {
			t.Errorf("the second stands as %s", s.State)
		}
	})
}

// A worker beside the store starts what it took together: what is bounded enters, and what is not goes on as ever.
func TestG1_WhatIsStartedTogether(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		desk, err := lease.New(lease.Config{Dispatch: o.d, Queue: pool, Blobs: blob.New(memblob.OpenBucket(nil)), Metrics: o.metrics, Name: "here"})
		if err != nil {
			t.Fatal(err)
		}
		bounded := o.queued(tenant, two)
		runs := []run.Run{bounded, o.queued(tenant, anyJob)}
		for range 4 {
			runs = append(runs, o.another(bounded, nil), o.another(runs[1], nil))
		}
		offers, err := desk.Take(t.Context(), 10, time.Second)
		if err != nil || len(offers) != len(runs) {
			t.Fatalf("%d offers, %v", len(offers), err)
		}
		var started, gone atomic.Int64
		desk.Start(t.Context(), t.Context(), offers, func(_ int, a worker.Attempt, err error) {
			switch {
			case err == nil:
				started.Add(1)
			case errors.Is(err, worker.ErrGone):
				gone.Add(1)
			default:
				t.Error(err)
			}
		})
		if started.Load() != 5+2 || gone.Load() != 3 {
			t.Errorf("%d were started, and %d are gone", started.Load(), gone.Load())
		}
		states := map[string]map[run.State]int{}
		for _, r := range runs {
			if states[r.ID.Job] == nil {
				states[r.ID.Job] = map[run.State]int{}
			}
			states[r.ID.Job][o.read(r).State]++
		}
		if !maps.Equal(states[runs[0].ID.Job], map[run.State]int{run.Running: 2, run.Skipped: 3}) || !maps.Equal(states[runs[1].ID.Job], map[run.State]int{run.Running: 5}) {
			t.Errorf("they stand as %v", states)
		}
		if g := o.gate(bounded); g.Version > 2 {
			t.Errorf("the gate was written %d times", g.Version)
		}
	})
}

// Of several messages of one run that were taken together the first begins it, and the others find it begun, also where it has to enter a gate: who is faster decides
// nothing.
func TestG1_OfSeveralMessagesOfARunTheFirstBeginsIt(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		o.d.Queues[pool] = faulty.Wrap(o.queue, faulty.Hooks{Receive: func(queue.Message) faulty.Fate { return faulty.Fate{Double: true} }})
		desk, err := lease.New(lease.Config{Dispatch: o.d, Queue: pool, Blobs: blob.New(memblob.OpenBucket(nil)), Metrics: o.metrics, Name: "here"})
		if err != nil {
			t.Fatal(err)
		}
		o.queued(tenant, two)
		offers, err := desk.Take(t.Context(), 10, time.Second)
		if err != nil || len(offers) != 2 {
			t.Fatalf("%d offers, %v", len(offers), err)
		}
		came := make([]error, len(offers))
		desk.Start(t.Context(), t.Context(), offers, func(i int, _ worker.Attempt, err error) { came[i] = err })
		for i, err := range came {
			if i == 0 && err != nil || i > 0 && !errors.Is(err, worker.ErrGone) {
				t.Errorf("message %d came to: %v; want the first to begin the run, and the others gone", i, err)
			}
		}
	})
}
