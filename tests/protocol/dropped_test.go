package protocol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
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

// Ticks that die between successors and claims leave several timers for the same fires. What is dropped of these after a long outage is
// counted once, whichever of the timers is decided first.
func TestP2_Fault17_what_is_dropped_is_recorded_once(t *testing.T) {
	for name, throttled := range map[string]bool{"in their order": false, "the first one last": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.must(w.host("api").put(tenant, "often", definition(every(10*time.Second), 1)))
			first := run.FireID("often", base.Add(10*time.Second).UnixMilli()).Key(tenant).String()
			for range 3 {
				w.elapsed += 9 * time.Second
				h, dead := w.restart("dies"), false
				h.before = func(op operation) faulty.Fault {
					if dead = dead || op.writes() && strings.Contains(op.text, "run#"); dead {
						return faulty.Fault{Refuse: errCrashed}
					}
					return faulty.Fault{}
				}
				if err := h.tick(); dead != (err != nil) {
					t.Fatalf("dead: %v, and the tick gave %v", dead, err)
				}
				delete(w.hosts, "dies")
			}
			w.elapsed += 15 * time.Minute
			hits := 0
			w.host("ticks").before = func(op operation) faulty.Fault {
				if throttled && op.writes() && strings.Contains(op.text, first) {
					hits++
					return faulty.Fault{Refuse: store.ErrThrottled}
				}
				return faulty.Fault{}
			}
			w.must(w.host("ticks").tick())
			if throttled != (hits > 0) {
				t.Fatalf("the decision of the first timer was throttled %d times", hits)
			}
			throttled = false
			w.advance(time.Minute, 5*time.Second, "ticks")
			counted, records, last := 0, 0, int64(0)
			for _, r := range w.runs() {
				if r.State == run.Skipped {
					counted, records, last = counted+r.Count, records+1, max(last, r.Through)
				}
			}
			if want := int(time.UnixMilli(last).Sub(base) / (10 * time.Second)); counted != want || want < 60 || records < 2 {
				t.Errorf("%d records count %d dropped fires, want %d in at least two", records, counted, want)
			}
			w.wants(w.check(w.now()))
		})
	}
}

// A tick that claims the fires of a timer which it finds again, and of the next timer with them, dies among them. After a long outage the
// next timer's decision leaves what had been claimed to run.
func TestP2_Fault17_what_was_claimed_is_not_dropped(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "often", definition(every(2*time.Second), 1)))
	fire := func(at time.Duration) run.ID { return run.FireID("often", base.Add(at).UnixMilli()) }
	w.elapsed += time.Second
	w.unclaimed(func(op operation) bool { return true })
	w.elapsed += 3 * time.Second
	w.unclaimed(func(op operation) bool { return strings.Contains(op.text, fire(4*time.Second).Key(tenant).String()) })
	w.elapsed += 15 * time.Minute
	w.advance(time.Minute, 5*time.Second, "ticks")
	if late, _ := w.run(tenant, fire(6*time.Second)); late.State != run.Succeeded || late.Created > base.Add(time.Minute).UnixMilli() {
		t.Errorf("%s is %s, made at %s, want what a tick had claimed to have run", late.ID, late.State, clock(late.Created))
	}
	w.wants(w.check(w.now()))
}

// What stands among missed fires cannot be read for one job: the others are decided all the same, and that one a little later.
func TestP2_P11_Fault48_one_history_that_is_throttled_makes_no_other_late(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b"} {
		w.must(w.host("api").put(tenant, name, definition(every(10*time.Second), 1)))
	}
	w.elapsed += 15 * time.Minute
	reads := 0
	w.host("ticks").before = func(op operation) faulty.Fault {
		if op.call.Method == faulty.Query && op.call.Range.Partition == run.Partition(tenant, "a", 0) {
			reads++
			return faulty.Fault{Refuse: store.ErrThrottled}
		}
		return faulty.Fault{}
	}
	w.must(w.host("ticks").tick())
	first := func(name string) run.Run {
		r, _ := w.run(tenant, run.FireID(name, base.Add(10*time.Second).UnixMilli()))
		return r
	}
	if first("b").State != run.Skipped || first("a").Version != 0 || reads == 0 {
		t.Fatalf("b is %s, a %s, after %d throttled reads", first("b").State, first("a").State, reads)
	}
	w.host("ticks").before = nil
	w.advance(10*time.Second, 5*time.Second, "ticks")
	if first("a").State != run.Skipped {
		t.Errorf("a is %s, want what it missed decided by its timer of its own", first("a").State)
	}
	w.wants(w.check(w.now()))
}

// unclaimed has a host tick that is refused some of its claims, and dies then.
func (w *world) unclaimed(refused func(operation) bool) {
	w.Helper()
	h, dead := w.restart("dies"), false
	h.before = func(op operation) faulty.Fault {
		claims := op.writes() && strings.Contains(op.text, "run#")
		if dead = dead || claims && refused(op); dead && !(claims && !refused(op)) {
			return faulty.Fault{Refuse: errCrashed}
		}
		return faulty.Fault{}
	}
	_ = h.tick()
	delete(w.hosts, "dies")
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
