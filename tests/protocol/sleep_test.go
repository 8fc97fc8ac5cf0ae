package protocol_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// An edit sleeps for longer than runs are kept, behind its write and before its claims. The ticks have long made its runs, and these are
// gone: it must not make them again. Only a claim that is itself under way may land: a write that is late, which Belfry takes to be minutes.
func TestP2_Fault12_Fault45_an_edit_that_slept_for_a_day_claims_nothing(t *testing.T) {
	for _, mode := range []string{"one", "all"} {
		for k := 1; ; k++ {
			w := newWorld(t, lookAhead(20*time.Second))
			w.must(w.host("ticks").tick())
			def := definition(until(time.Minute, every(10*time.Second)), 1)
			def.CatchUp.Mode, def.CatchUp.Window = jobMode(mode), schedule.Duration(48*time.Hour)
			slept, late, before := false, false, 0
			h := w.host("api")
			h.before = func(op operation) faulty.Fault {
				if op.n != k {
					return faulty.Fault{}
				}
				slept, late = true, op.writes() && strings.Contains(op.text(), "run#")
				w.advance(5*time.Minute, 5*time.Second, "ticks")
				before = len(w.starts)
				w.elapsed += 26 * time.Hour
				for _, r := range w.runs() { // their retention is over
					_, err := w.store.Write(context.Background(), store.Op{Kind: store.Delete, Key: r.ID.Key(r.Tenant)})
					w.must(err)
				}
				w.must(w.host("ticks").tick())
				return faulty.Fault{}
			}
			err := h.put(tenant, "a", def)
			h.before = nil
			if !slept { // it had ended
				break
			}
			w.work()
			if before > 0 && !late && len(w.starts) > before {
				t.Errorf("%s, asleep at operation %d, which ended with %v: %d runs started again, %s the first of them", mode, k, err, len(w.starts)-before, show(w.starts[before].id))
			}
		}
	}
}
