package lease_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/internal/room"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// chained is a job of two steps, of which the second waits for the first.
func chained(d *job.Definition) {
	*d = job.Definition{Queue: d.Queue, Payload: []byte(`{"of":"job"}`), Target: d.Target}
	d.Target.Handler = nil
	d.Target.Workflow = []byte(`{"steps": {"a": {"handler": {"name": "f"}, "guarantee": "at_most_once"}, "b": {"needs": ["a"], "handler": {"name": "f"}, "input": [1]}}}`)
	*d = d.WithDefaults()
}

// A worker elsewhere is offered the steps of a workflow as it is offered runs, and nothing of the run that they are of.
func TestW1_W3_AWorkerElsewhereRunsSteps(t *testing.T) {
	for name, between := range map[string]func(*office){"AtTheSameServer": func(*office) {}, "AfterItsRestart": (*office).restart} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				r := o.queued(tenant, chained)
				offer := o.take(able("w-1", "f"))
				a := run.Run{ID: r.ID.At("a"), Tenant: tenant}
				if offer.Run != a.ID.String() {
					t.Fatalf("%s is offered, want %s", offer.Run, a.ID)
				}
				first, _, err := o.Start(t.Context(), tenant, a.ID, offer.Ticket, me)
				if err != nil || string(first.Payload) != `{"of":"job"}` || first.Run != a.ID.String() || !first.AtMostOnce {
					t.Fatalf("%+v, %v", first, err)
				}
				between(o)
				again, ticket, err := o.Start(t.Context(), tenant, a.ID, offer.Ticket, me)
				if err != nil || again.Fence != first.Fence || string(again.Payload) != string(first.Payload) {
					t.Fatalf("again: %+v, %v; want fence %d", again, err, first.Fence)
				}
				if renewed, err := o.Renew(t.Context(), tenant, lease.Claim{Run: a.ID, Fence: again.Fence, Holder: me, Ticket: ticket}); renewed != (worker.Renewed{}) || err != nil {
					t.Errorf("renew: %+v, %v", renewed, err)
				}
				if state, err := o.Finish(t.Context(), tenant, lease.Claim{Run: a.ID, Fence: again.Fence, Holder: me, Ticket: ticket}, worker.End{Outcome: run.OutcomeSucceeded}); err != nil || state != run.Succeeded {
					t.Fatalf("%s, %v", state, err)
				}
				offer = o.take(able("w-1", "f"))
				b := run.Run{ID: r.ID.At("b"), Tenant: tenant}
				task, ticket, err := o.Start(t.Context(), tenant, b.ID, offer.Ticket, me)
				if err != nil || string(task.Payload) != `[1]` {
					t.Fatalf("%+v, %v", task, err)
				}
				if _, err := o.Finish(t.Context(), tenant, lease.Claim{Run: b.ID, Fence: task.Fence, Holder: me, Ticket: ticket}, worker.End{Outcome: run.OutcomeSucceeded}); err != nil {
					t.Fatal(err)
				}
				if now := o.read(r); now.State != run.Succeeded || now.Attempt != 0 {
					t.Errorf("the run is %s after %d attempts, want it succeeded without any", now.State, now.Attempt)
				}
			})
		})
	}
}

// However many workers elsewhere want a large result as a whole, a server reads a few at once. What was read keeps no place, whether it was handed on, lost, or too much.
func TestLargeInputsOfWorkersElsewhereAreReadAFewAtOnce_P11(t *testing.T) {
	for size, want := range map[int]string{300 << 10: "", 4<<20 + 1: "payload: the input has 4194305 bytes, and a worker elsewhere is handed at most 4194304"} {
		inOffice(t, func(t *testing.T, o *office) {
			steps := `"a": {"handler": {"name": "f"}}`
			for i := range 6 {
				steps += fmt.Sprintf(`, "b%d": {"needs": ["a"], "handler": {"name": "f"}, "retry": {"max_attempts": 1}, "input": "${ .steps.a.result }"}`, i)
			}
			r := o.queued(tenant, func(d *job.Definition) {
				chained(d)
				d.Target.Workflow = []byte(`{"steps": {` + steps + `}}`)
			})
			o.take(able("w-1", "f"))
			key, err := o.blobs.Put(t.Context(), blob.Ref{Tenant: tenant, Kind: blob.Result, ID: "a", Expires: time.Now().AddDate(1, 0, 0)}, make([]byte, size))
			if err != nil {
				t.Fatal(err)
			}
			a := o.read(run.Run{ID: r.ID.At("a"), Tenant: tenant})
			op, err := a.Start("w", time.Now().UnixMilli(), time.Minute).Succeed(time.Now().UnixMilli(), run.Ref{Blob: key}, "", run.Limits{MaxFailures: 1, MaxCrashes: 1, Retention: time.Hour}).Item(7)
			o.write(op, err)
			if err := o.d.Follow(t.Context(), tenant, r.ID, false); err != nil {
				t.Fatal(err)
			}
			start := func(who string) (worker.Task, lease.Offered, error) {
				t.Helper()
				w := able(who, "f")
				offers, err := o.Take(t.Context(), tenant, w, 1, 20*time.Second)
				if err != nil || len(offers) != 1 {
					t.Fatalf("%d offers, %v; want one", len(offers), err)
				}
				id, err := run.ParseID(offers[0].Run)
				if err != nil {
					t.Fatal(err)
				}
				task, _, err := o.Start(t.Context(), tenant, id, offers[0].Ticket, lease.Holder{Worker: who, Start: "1"})
				return task, offers[0], err
			}
			handed := func(who string) lease.Offered {
				t.Helper()
				task, offer, err := start(who)
				switch {
				case err != nil:
					t.Fatalf("%s: %v", who, err)
				case want == "" && (task.Failure != nil || len(task.Payload) != size), want != "" && (task.Failure == nil || task.Failure.Error() != want):
					t.Errorf("%s is handed %d bytes, %v, want %q", who, len(task.Payload), task.Failure, want)
				}
				return offer
			}
			var others []*room.Place
			for range 4 {
				others = append(others, o.d.InputRoom("another"))
				if !others[len(others)-1].Try() {
					t.Fatal("a start that has not been has a place")
				}
			}
			began := time.Now()
			if _, _, err := start("w-2"); !errors.Is(err, worker.ErrGone) || time.Since(began) != o.d.Lease/3 {
				t.Errorf("where others have all places a start ends after %s with %v", time.Since(began), err)
			}
			others[0].Give()
			first := handed("w-3")
			for i := range 4 {
				handed(fmt.Sprint("w-", 4+i))
			}
			id, err := run.ParseID(first.Run)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // its answer was lost
				if _, _, err := o.Start(t.Context(), tenant, id, first.Ticket, lease.Holder{Worker: "w-3", Start: "1"}); err != nil {
					t.Error(err)
				}
			}
			if !o.d.InputRoom("another").Try() {
				t.Error("what was handed on keeps its place")
			}
		})
	}
}

// A step that was offered before its run was cancelled is not started after.
func TestW5_AStepThatWasOfferedIsNotStartedAfterACancel(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		r := o.queued(tenant, chained)
		offer := o.take(able("w-1", "f"))
		a := run.Run{ID: r.ID.At("a"), Tenant: tenant}
		// As a cancel leaves it that died behind its first write: nobody was answered, and nothing may start all the same.
		head := o.read(r)
		cancelled, _ := head.AskCancel(time.Now().UnixMilli(), "enough", time.Hour)
		op, err := cancelled.Item(7)
		o.write(op, err)
		o.gone(a, offer, me)
		if step, head := o.read(a), o.read(r); step.State != run.Cancelled || head.State != run.Cancelled || head.Reason != "enough" {
			t.Errorf("the step is %s and the run %s (%s), want both cancelled", step.State, head.State, head.Reason)
		}
	})
}

// A message that a queue gave up finds a workflow's run as it stands: one that is under way is brought on, and is no attempt that died.
func TestW3_Fault28_MessagesOfAWorkflowThatWereGivenUp(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		s := o.rescue()
		r := o.queued(tenant, chained)
		given := s.givenUp(time.Second)
		// As whoever opened the run leaves it, and died before the first step was released.
		op, err := r.Open(time.Now().UnixMilli()).Item(7)
		o.write(op, err)
		s.see(given)
		a := run.Run{ID: r.ID.At("a"), Tenant: tenant}
		if head, step := o.read(r), o.read(a); head.State != run.Running || step.State != run.Queued || s.waiting() != 1 {
			t.Fatalf("the run is %s, its first step %s, and %d messages wait; want it running, and the step sent", head.State, step.State, s.waiting())
		}
		s.see(s.givenUp(time.Second))
		s.see(s.givenUp(time.Second))
		if head, step := o.read(r), o.read(a); step.State != run.Dead || head.State != run.Failed {
			t.Errorf("the step that no worker can start is %s, and the run %s; want dead and failed", step.State, head.State)
		}
		letters, err := o.store.Get(t.Context(), o.read(r).DeadKey(), o.read(a).DeadKey())
		if err != nil || !letters[0].Exists() || letters[1].Exists() {
			t.Errorf("the run is a dead letter: %t, its step: %t, %v; want the run alone", letters[0].Exists(), letters[1].Exists(), err)
		}
	})
}

// A step is late from the end that it follows from, or from the opening of its run, also where what ended the one before died before it released
// the next. Neither is the lateness of a run.
func TestStepsAreLateFromTheEndThatTheyFollowFrom(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		late := func(name string) (h metrics.Histo) {
			o.metrics.Each(time.Now(), func(f metrics.Family, samples []metrics.Sample) {
				if f.Name == name && len(samples) > 0 {
					h = samples[0].Histogram
				}
			})
			return h
		}
		want := func(n uint64, sum time.Duration) {
			t.Helper()
			if got := late("belfry_step_lateness_seconds"); got.Count != n || got.Sum != sum {
				t.Fatalf("%d steps were late by %s, want %d by %s", got.Count, got.Sum, n, sum)
			}
		}
		r := o.queued(tenant, chained)
		a, b := run.Run{ID: r.ID.At("a"), Tenant: tenant}, run.Run{ID: r.ID.At("b"), Tenant: tenant}
		offer := o.take(able("w-1", "f"))
		time.Sleep(3 * time.Second)
		task, ticket, err := o.Start(t.Context(), tenant, a.ID, offer.Ticket, me)
		if err != nil {
			t.Fatal(err)
		}
		want(1, 3*time.Second)
		time.Sleep(time.Second)
		if state, err := o.Finish(t.Context(), tenant, lease.Claim{Run: a.ID, Fence: task.Fence, Holder: me, Ticket: ticket}, worker.End{Outcome: run.OutcomeHandedBack}); err != nil || state != run.Queued {
			t.Fatalf("%s, %v", state, err)
		}
		offer = o.take(able("w-1", "f"))
		if _, _, err = o.Start(t.Context(), tenant, a.ID, offer.Ticket, me); err != nil {
			t.Fatal(err)
		}
		want(1, 3*time.Second) // it was late once
		time.Sleep(10 * time.Second)
		// As an end leaves it whose writer died behind it.
		op, err := o.read(a).Succeed(time.Now().UnixMilli(), run.Ref{}, "", run.Limits{MaxFailures: 1, MaxCrashes: 1, Retention: time.Hour}).Item(7)
		o.write(op, err)
		time.Sleep(20 * time.Second)
		if err := o.d.Follow(t.Context(), tenant, r.ID, false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		offer = o.take(able("w-1", "f"))
		if _, _, err := o.Start(t.Context(), tenant, b.ID, offer.Ticket, me); err != nil {
			t.Fatal(err)
		}
		want(2, 27*time.Second)
		if got := late("belfry_lateness_seconds"); got.Count != 1 || got.Sum != 0 {
			t.Errorf("%d runs were late by %s, want one that was opened at once", got.Count, got.Sum)
		}
	})
}
