package protocol_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// All hosts are away for longer than runs are kept, when the sweeps have not yet looked at the last minutes. What ran in them is gone
// when they look: they make nothing of it, neither a run nor a record that says it was missed.
func TestP2_Fault10_Fault45_a_sweep_makes_nothing_of_what_ran_and_expired(t *testing.T) {
	for _, mode := range []job.CatchUpMode{job.CatchUpNone, job.CatchUpOne, job.CatchUpAll} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t)
			def := definition(until(time.Minute, every(7*time.Second)), 1)
			def.CatchUp.Mode = mode
			w.must(w.host("api").put(tenant, "a", def))
			_, _, err := w.host("api").order(tenant, "a", control.Request{Delay: new(20 * time.Second)})
			w.must(err)
			w.advance(70*time.Second, 5*time.Second, "ticks")
			ran := w.runs()
			if len(ran) != 9 || len(w.starts) != 9 {
				t.Fatalf("%d runs started, and there are %d, want 8 fires and one that was asked for", len(w.starts), len(ran))
			}
			w.elapsed += 26 * time.Hour
			for _, r := range ran { // their retention is over
				_, err := w.store.Write(context.Background(), store.Op{Kind: store.Delete, Key: r.ID.Key(r.Tenant)})
				w.must(err)
			}
			w.advance(80*time.Minute, time.Minute, "ticks")
			for _, r := range w.runs() {
				t.Errorf("%s, which had run, is made again: %s %s", r.ID, r.State, r.Reason)
			}
			if n := len(w.starts) - 9; n > 0 {
				t.Errorf("%d runs started again", n)
			}
		})
	}
}

// The clock of a worker's host was stepped, and nothing was asked of the store since that could tell how far it is off. A message comes: the run is too
// late where it is so by the store's time, and by no other, both to start and to end. Where the store tells no time, the host's clock is the time.
func TestG4_Fault09_a_clock_that_was_just_stepped_makes_no_run_too_late(t *testing.T) {
	for name, c := range map[string]struct {
		ahead, idle, waits time.Duration // how far, for how long nothing was asked of the store, and how long the run waits for its worker
		untold             bool
		want               run.State
	}{
		"stepped just now":             {30 * time.Minute, 0, 10 * time.Second, false, run.Succeeded},
		"stepped a while ago":          {30 * time.Minute, 45 * time.Second, 10 * time.Second, false, run.Succeeded},
		"little more than it may last": {70 * time.Second, 0, 10 * time.Second, false, run.Succeeded},
		"and the run is too late":      {30 * time.Minute, 0, 90 * time.Second, false, run.Skipped},
		"and the store tells no time":  {30 * time.Minute, 0, 10 * time.Second, true, run.Skipped},
	} {
		for what, late := range map[string]run.State{"to start": run.Skipped, "to end": run.Cancelled} {
			t.Run(name+" "+what, func(t *testing.T) {
				w := newWorld(t)
				if c.untold {
					w = newWorld(t, clocks(oracle.AnyClock))
				}
				def := definition(nil, 1)
				if late == run.Skipped {
					def.ExpiresAfter = schedule.Duration(time.Minute)
				} else {
					def.Deadline = schedule.Duration(time.Minute)
				}
				w.must(w.host("api").put(tenant, "a", def))
				w.must(w.host("api").trigger(tenant, "a", 0))
				w.advance(10*time.Second, time.Second, "ticks") // the worker has seen its clock, and knows the job
				asked, _, err := w.host("api").order(tenant, "a", control.Request{Delay: new(c.idle + time.Second)})
				w.must(err)
				h := w.host("worker")
				h.skew = c.ahead
				if c.idle > 0 {
					_, _ = h.dispatch.Clock() // as by a message that is not due
				}
				h.before = func(operation) faulty.Fault {
					if !c.untold {
						h.store.SetSkew(-c.ahead)
					}
					return faulty.Fault{}
				}
				w.elapsed += c.idle + time.Second + c.waits
				for range 3 {
					_ = h.worker.Pass(context.Background(), 0)
				}
				h.skew, h.before = 0, nil // NTP has set it right
				h.store.SetSkew(0)
				if !c.untold {
					w.advance(40*time.Second, time.Second, "ticks")
				}
				want := c.want
				if want == run.Skipped {
					want = late
				}
				if r, _ := w.run(tenant, asked.ID); r.State != want {
					t.Errorf("it is %s: %s", r.State, r.Reason)
				}
				w.wants(w.check(w.now() - 1))
			})
		}
	}
}

// The clock of a worker's host is stepped beyond the deadline of a run that is under way, and its attempt fails: it is tried again, since there is time by the store.
func TestG4_Fault09_a_clock_that_is_stepped_in_an_attempt_brings_no_deadline(t *testing.T) {
	const ahead = 30 * time.Minute
	w := newWorld(t)
	h := w.host("worker")
	fails := func(_ context.Context, call target.Call) (target.Result, error) {
		if err := w.noted(call, false); err != nil {
			return target.Result{}, err
		}
		h.skew = ahead
		h.before = func(operation) faulty.Fault { h.store.SetSkew(-ahead); return faulty.Fault{} }
		return target.Result{}, errors.New("refused")
	}
	w.must(w.handlers.Register("fails", fails))
	def := definition(nil, 1)
	def.Target = target.Spec{Handler: &target.Handler{Name: "fails"}}
	def.Deadline = schedule.Duration(10 * time.Minute)
	w.must(w.host("api").put(tenant, "a", def))
	asked, _, err := w.host("api").order(tenant, "a", control.Request{})
	w.must(err)
	_, _ = h.dispatch.Clock() // it has seen its clock
	_ = h.worker.Pass(context.Background(), 0)
	if r, _ := w.run(tenant, asked.ID); r.State != run.Retrying || r.Attempt != 1 {
		t.Errorf("it is %s after %d attempts: %s", r.State, r.Attempt, r.Reason)
	}
}
