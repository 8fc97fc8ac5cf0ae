package protocol_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// The ticks are away for longer than the last sweep lags behind: the minutes that the sweeps were to look at are still looked at.
func TestP4_P10_Fault25_Fault45_no_minute_is_left_out_by_the_sweeps(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(7*time.Second)), 1)))
	w.fate = func(queue.Outgoing) (bool, bool) { return true, false } // every message is lost
	w.advance(70*time.Second, 5*time.Second, "ticks")
	w.fate = nil
	w.elapsed += 2 * time.Hour
	w.wants(w.settle())
	if len(w.starts) != 8 {
		t.Errorf("%d runs started, want the 8 whose messages were lost", len(w.starts))
	}
}

// An edit dies behind its write, where its first fire has run by the definition before it, and that run is opened again under the new one.
// What stands there then says nothing of the edit's own timers: the sweep arms the next one all the same.
func TestP2_P4_an_edit_that_died_goes_on_behind_a_run_that_was_opened_again(t *testing.T) {
	w := newWorld(t, lookAhead(20*time.Second))
	w.must(w.host("api").put(tenant, "a", definition(until(10*time.Minute, every(20*time.Second)), 1)))
	w.elapsed += 5 * time.Second
	w.must(w.host("ticks").tick()) // claims 20 s
	w.diesBehind("", func(h *host) error {
		return h.put(tenant, "a", definition(until(10*time.Minute, every(20*time.Second)), 2))
	})
	w.elapsed += 16 * time.Second
	w.work()
	id := run.FireID("a", base.Add(20*time.Second).UnixMilli())
	old, _ := w.run(tenant, id)
	if old.State != run.Succeeded {
		t.Fatalf("the first fire is %s", old.State)
	}
	w.must(w.request(oracle.Request{Op: oracle.Retry, Tenant: tenant, Job: "a", Run: id.String(), Force: true}, func(*oracle.Answer) error {
		opened, err := w.host("api").control.Retry(context.Background(), tenant, id, true, time.Time{})
		if err == nil && opened.Generation == old.Generation {
			t.Errorf("opened again under generation %d, want the edit's", opened.Generation)
		}
		return err
	}))
	w.advance(9*time.Minute, 20*time.Second, "ticks")
	w.wants(w.check(w.now()))
}
