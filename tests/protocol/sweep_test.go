package protocol_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
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
