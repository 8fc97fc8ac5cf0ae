package protocol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// A decision that drops fires holds for whoever claims by way of another timer: for one that takes up what a stopped tick may have
// claimed, and after a clock that was ahead has been set back, so that the fires are in time again.
func TestP2_P4_Fault08_Fault09_Fault17_what_was_dropped_stays_dropped(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"an outage": 0, "a step back": 12 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocks(oracle.AnyClock))
			w.must(w.host("api").put(tenant, "often", definition(until(4*time.Minute, every(time.Second)), 1)))
			w.advance(10*time.Second, time.Second, "ticks")
			w.elapsed += time.Second
			w.unfinished("early")
			if ahead == 0 {
				w.elapsed += 12 * time.Minute
			} else {
				w.stepped = ahead
				w.unfinished("ahead")
				w.work()
				w.stepped = 0
			}
			w.advance(5*time.Second, time.Second, "ticks")
			dropped, through := 0, int64(0)
			for _, r := range w.runs() {
				if r.State == run.Skipped {
					dropped += r.Count
					through = max(through, r.Through)
				} else if r.ID.Nominal <= through && r.State != run.Fenced {
					t.Fatalf("run %s is %s, though a decision drops all fires up to %s", show(r.ID), r.State, clock(through))
				}
			}
			if dropped < 200 {
				t.Errorf("%d fires were dropped, want nearly all of four minutes", dropped)
			}
			w.wants(w.check(w.now()))
		})
	}
}

// unfinished has a host tick that dies before its cursors move.
func (w *world) unfinished(name string) {
	h := w.restart(name)
	h.before = func(op operation) faulty.Fault {
		if op.n > 2 && op.writes() && strings.Contains(op.text, "shard#") {
			return faulty.Fault{Refuse: errCrashed}
		}
		return faulty.Fault{}
	}
	if err := h.tick(); err == nil {
		w.Fatalf("%s went on over its crash", name)
	}
	delete(w.hosts, name)
}
