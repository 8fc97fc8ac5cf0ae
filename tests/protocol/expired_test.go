package protocol_test

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/store"
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
