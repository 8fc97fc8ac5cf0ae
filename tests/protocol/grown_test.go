package protocol_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// A tick claims ahead, lets a timer stand for two fires, and dies before it claims the second; that write of the timer lands when the
// first sweep has passed its minute. The sweeps behind it look at whatever has changed since, also where no timer has come or gone.
func TestP2_Fault02_Fault11_a_sweep_sees_a_timer_that_has_grown(t *testing.T) {
	w := newWorld(t, byMinute())
	def := definition(until(50*time.Second, every(20*time.Second)), 1)
	def.CatchUp.Mode = jobMode("all")
	w.must(w.host("api").put(tenant, "a", def))
	w.must(w.host("ticks").tick())
	second := run.FireID("a", base.Add(40*time.Second).UnixMilli())
	timers := w.timers()
	i := slices.IndexFunc(timers, func(t timer.Timer) bool { return t.Kind == timer.Fire && t.To == second.Nominal })
	if i < 0 {
		t.Fatalf("no timer stands for the fire at %s: %+v", second, timers)
	}
	put := func(to int64) {
		grown := timers[i]
		grown.To, grown.Version = to, w.get(grown.Key()).Version
		op, err := grown.Put(w.newID())
		w.must(err)
		_, err = w.store.Write(context.Background(), op)
		w.must(err)
	}
	put(timers[i].Nominal) // as it was before
	_, err := w.store.Write(context.Background(), store.Op{Kind: store.Delete, Key: second.Key(tenant)})
	w.must(err)
	for first := base.Add(time.Minute).UnixMilli(); w.shard().Swept[0] < first; {
		w.advance(time.Minute, time.Minute, "ticks")
	}
	if _, ok := w.run(tenant, second); ok {
		t.Fatalf("%s stands before its timer has grown", second)
	}
	put(second.Nominal)
	w.advance(15*time.Minute, time.Minute, "ticks")
	if r, ok := w.run(tenant, second); !ok || r.State != run.Succeeded {
		t.Errorf("behind the second sweep %s is %q, want it succeeded", second, r.State)
	}
}
