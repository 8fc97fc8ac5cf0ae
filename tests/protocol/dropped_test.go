package protocol_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
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
					if dead = dead || op.writes() && strings.Contains(op.text(), "run#"); dead {
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
				if throttled && op.writes() && strings.Contains(op.text(), first) {
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
	w.unclaimed(func(op operation) bool { return strings.Contains(op.text(), fire(4*time.Second).Key(tenant).String()) })
	w.elapsed += 15 * time.Minute
	w.advance(time.Minute, 5*time.Second, "ticks")
	if late, _ := w.run(tenant, fire(6*time.Second)); late.State != run.Succeeded || late.Created > base.Add(time.Minute).UnixMilli() {
		t.Errorf("%s is %s, made at %s, want what a tick had claimed to have run", late.ID, late.State, clock(late.Created))
	}
	w.wants(w.check(w.now()))
}

// A job is put between two ticks, and then there is none for minutes. What the edit claimed ahead, up to the horizon of the first tick, runs. A tick at the time of the
// edit would have claimed some more, but nobody did: that was missed.
func TestP2_Fault10_Fault17_what_no_tick_had_reached_is_missed_behind_an_edit(t *testing.T) {
	for _, mode := range []job.CatchUpMode{job.CatchUpNone, job.CatchUpOne, job.CatchUpAll} {
		for name, c := range map[string]struct {
			dies   bool // the edit
			passes int  // that die behind the outage, as soon as they have published a horizon
		}{
			"the edit is answered":             {false, 0},
			"the edit dies among its claims":   {true, 0},
			"a pass dies behind the outage":    {false, 1},
			"passes die, and so does the edit": {true, 2},
		} {
			t.Run(string(mode)+", "+name, func(t *testing.T) {
				w := newWorld(t, byMinute())
				w.must(w.host("ticks").tick())
				reached := w.host("ticks").dispatch.HorizonAt(w.now())
				delete(w.hosts, "ticks") // and with it how far it has come, since it had nothing to write
				w.elapsed += 50 * time.Second
				def := catchUp(mode, definition(every(7*time.Second), 1))
				if h := w.restart("edits"); c.dies {
					writes := 0
					h.before = func(op operation) faulty.Fault {
						if op.writes() && strings.Contains(op.text(), "run#") {
							writes++
						}
						if writes > 1 {
							return faulty.Fault{Refuse: errCrashed}
						}
						return faulty.Fault{}
					}
					if err := h.put(tenant, "often", def); err == nil {
						t.Fatal("the edit went on over its crash")
					}
					delete(w.hosts, "edits")
				} else {
					w.must(h.put(tenant, "often", def))
				}
				edited := w.now()
				w.elapsed += 8 * time.Minute
				for range c.passes {
					w.published("dies")
					w.elapsed += 10 * time.Minute
				}
				back := w.now()
				w.tickThrough()
				w.work()
				w.advance(6*time.Minute, 10*time.Second, "ticks")
				fates := map[int64]run.Run{}
				for _, r := range w.runs() {
					fates[r.ID.Nominal] = r
				}
				dropped, missed := 0, 0
				for fire := (edited/7000 + 1) * 7000; fire <= back-7000; fire += 7000 {
					r := fates[fire]
					if r.State == run.Skipped {
						dropped += r.Count
					}
					ran, late := r.State == run.Succeeded, fire > reached
					if late {
						missed++
					}
					if want := !late || mode == job.CatchUpAll; ran != want {
						t.Errorf("the fire at %s ran: %v, want %v, with a horizon at %s", clock(fire), ran, want, clock(reached))
					}
				}
				if mode == job.CatchUpAll {
					missed = 0
				}
				if dropped != missed {
					t.Errorf("%d fires are recorded as dropped, want %d", dropped, missed)
				}
				w.wants(w.check(w.now() - 10_000))
			})
		}
	}
}

// A pass leaves to a timer what is owed, and dies before it has claimed all of the rest. Seconds later the next pass decides over that, of which some is too old now for
// the window, and reads the timer: what is dropped does not run.
func TestP2_Fault11_Fault17_what_is_dropped_between_two_passes_is_not_owed(t *testing.T) {
	const window = 6 * time.Minute
	for seconds := range 12 {
		t.Run(fmt.Sprint(seconds, " seconds later"), func(t *testing.T) {
			w := newWorld(t)
			def := catchUp(job.CatchUpAll, definition(until(40*time.Second, every(time.Second)), 1))
			def.CatchUp.Window = schedule.Duration(window)
			w.must(w.host("api").put(tenant, "often", def))
			w.must(w.host("ticks").tick())
			w.elapsed += window + 2500*time.Millisecond
			h, armed := w.restart("dies"), false
			h.before = func(op operation) faulty.Fault {
				if armed {
					return faulty.Fault{Refuse: errCrashed}
				}
				for _, put := range op.call.Ops {
					if put.Kind == store.Put && strings.HasPrefix(put.Key.Partition, "due#") {
						one, err := timer.FromItem(store.Item{Key: put.Key, Value: put.Value, Version: 1})
						armed = armed || err == nil && one.Owed != 0
					}
				}
				return faulty.Fault{}
			}
			if err := h.tick(); err == nil || !armed {
				t.Fatalf("the pass left something owed: %v, and gave %v", armed, err)
			}
			delete(w.hosts, "dies")
			w.elapsed += time.Duration(seconds)*time.Second + 500*time.Millisecond
			w.advance(5*time.Minute, time.Second, "ticks") // a check comes upon what the pass had claimed
			fates := map[int64]bool{}                      // whether it ran, of those that have one
			for _, r := range w.runs() {
				if r.State == run.Succeeded {
					fates[r.ID.Nominal] = true
				}
			}
			for _, r := range w.runs() {
				for fire := r.ID.Nominal; r.State == run.Skipped && fire <= r.Through; fire += 1000 {
					if fates[fire] {
						t.Errorf("the fire at %s ran, and was dropped: %s", clock(fire), r.Reason)
					}
					fates[fire] = false
				}
			}
			if len(fates) < 39 {
				t.Errorf("%d of 39 fires ran or were dropped", len(fates))
			}
			w.wants(w.check(w.now()))
		})
	}
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
		claims := op.writes() && strings.Contains(op.text(), "run#")
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
		if op.n > 2 && op.writes() && strings.Contains(op.text(), "shard#") {
			return faulty.Fault{Refuse: errCrashed}
		}
		return faulty.Fault{}
	}
	if err := h.tick(); err == nil {
		w.Fatalf("%s went on over its crash", name)
	}
	delete(w.hosts, name)
}
