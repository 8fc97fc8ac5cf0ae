package protocol_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// The host's clock was ahead, as when a machine takes its hardware clock's local time for UTC, and is set right; or it was set back. On the
// embedded engine that clock is also the store's. What it decided in between is of its own generation only, holds for all of that, and keeps
// nobody waiting.

// punctual holds that each fire of a generation in (from, to) of an interval ran, once, within 2 s.
func (w *world) punctual(name string, generation, from, to int64, every time.Duration) {
	w.Helper()
	started := map[int64]int{}
	for _, s := range w.starts {
		if s.id.Job != name || s.generation != generation {
			continue
		}
		started[s.id.Nominal]++
		if late := time.Duration(s.at-s.id.Nominal) * time.Millisecond; late > 2*time.Second || late < -time.Second {
			w.Errorf("%s starts %s after its time", show(s.id), late)
		}
	}
	fires, lost := 0, 0
	for f := (from/every.Milliseconds() + 1) * every.Milliseconds(); f < to; f += every.Milliseconds() {
		fires++
		switch started[f] {
		case 0:
			lost++
		case 1:
		default:
			w.Errorf("the fire at %s ran %d times", clock(f), started[f])
		}
	}
	if lost > 0 || fires == 0 {
		w.Errorf("%d of %d fires of generation %d did not run", lost, fires, generation)
	}
}

// An edit's fires are its own, whatever a clock ahead has decided over those of the generation before.
func TestP2_P8_Fault09_a_decision_by_a_clock_ahead_holds_for_no_newer_definition(t *testing.T) {
	for name, at := range map[string]time.Duration{
		"an edit before the first fire that was dropped": 5 * time.Second,
		"an edit among them":                             3 * time.Minute,
	} {
		for _, mode := range []job.CatchUpMode{job.CatchUpOne, job.CatchUpNone} {
			t.Run(name+", catch-up "+string(mode), func(t *testing.T) {
				w := newWorld(t, clocks(oracle.AnyClock))
				first := definition(every(10*time.Second), 1)
				first.CatchUp.Mode = mode
				w.must(w.host("api").put(tenant, "often", first))
				w.stepped = 20 * time.Minute
				w.must(w.host("ticks").tick())
				w.work()
				w.stepped = 0
				w.advance(at, time.Second, "ticks")
				second := definition(until(10*time.Minute, every(10*time.Second)), 2)
				second.CatchUp.Mode = mode
				w.must(w.host("api").put(tenant, "often", second))
				edited := w.now()
				w.advance(15*time.Minute, time.Second, "ticks")
				w.punctual("often", w.job(tenant, "often").Generation, edited, base.Add(10*time.Minute).UnixMilli(), 10*time.Second)
				w.wants(w.check(w.now()))
			})
		}
	}
}

// An edit that dies before it has fenced anything leaves to the ticks what a clock ahead has dropped of it: its fires run, of the generation
// that is in force.
func TestP2_P8_Fault09_Fault11_a_dropped_fire_is_claimed_over_for_an_edit_that_died(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "often", definition(every(10*time.Second), 1)))
	w.stepped = 20 * time.Minute
	w.must(w.host("ticks").tick())
	w.work()
	w.stepped = 0
	w.advance(5*time.Second, time.Second, "ticks")
	h, wrote := w.restart("dies"), false
	h.before = func(op operation) faulty.Fault {
		if wrote {
			return faulty.Fault{Refuse: errCrashed}
		}
		wrote = op.call.Method == faulty.Write
		return faulty.Fault{}
	}
	if err := h.put(tenant, "often", definition(until(10*time.Minute, every(10*time.Second)), 2)); err == nil || !wrote {
		t.Fatalf("the edit wrote %v, and gave %v; want it begun and not finished", wrote, err)
	}
	delete(w.hosts, "dies")
	edited := w.now()
	w.advance(15*time.Minute, time.Second, "ticks")
	w.punctual("often", w.job(tenant, "often").Generation, edited, base.Add(10*time.Minute).UnixMilli(), 10*time.Second)
	w.wants(w.check(w.now()))
}

// What is recorded as dropped does not run, whichever timer stands for it.
func TestP2_Fault09_what_a_clock_far_ahead_has_dropped_stays_dropped(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "often", definition(until(35*time.Minute, every(time.Second)), 1)))
	w.advance(10*time.Second, time.Second, "ticks")
	w.elapsed += time.Second
	w.unfinished("early")
	w.stepped = 40 * time.Minute
	w.unfinished("ahead")
	w.work()
	w.stepped = 0
	w.advance(40*time.Minute, time.Second, "ticks")
	dropped, ran, through := 0, 0, int64(0)
	for _, r := range w.runs() {
		switch {
		case r.State == run.Skipped:
			dropped += r.Count
			through = max(through, r.Through)
		case r.ID.Nominal <= through && r.State != run.Fenced:
			ran++
		}
	}
	if dropped < 1000 {
		t.Errorf("%d fires were dropped, want nearly all of 35 minutes", dropped)
	}
	if ran > 0 {
		t.Errorf("%d fires run, though a decision drops all up to %s", ran, clock(through))
	}
	w.wants(w.check(w.now()))
}

// The horizon that a clock ahead has published stands far beyond the time for as long; the fires of an edit do not wait for it.
func TestP2_P4_Fault09_no_fire_of_an_edit_waits_for_a_stale_horizon(t *testing.T) {
	for _, mode := range []job.CatchUpMode{job.CatchUpAll, job.CatchUpOne, job.CatchUpNone} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, clocks(oracle.AnyClock))
			w.elapsed = time.Hour
			w.must(w.host("ticks").tick())
			w.stepped = -45 * time.Minute
			def := definition(until(55*time.Minute, every(2*time.Second)), 1) // more fires than one pass claims, and time goes by twos
			def.CatchUp.Mode = mode
			w.must(w.host("api").put(tenant, "often", def))
			edited := w.now()
			w.advance(45*time.Minute, 2*time.Second, "ticks")
			w.punctual("often", w.job(tenant, "often").Generation, edited, base.Add(55*time.Minute).UnixMilli(), 2*time.Second)
			w.wants(w.check(w.now()))
		})
	}
}

// A request by a clock ahead was refused when its run had been put, due soon by that clock. It is repeated: from the answer on the run is listed,
// though its time is yet to come.
func TestP1_P9_Fault09_a_run_that_a_clock_ahead_has_put_is_listed_once_it_is_accepted(t *testing.T) {
	const ahead = 16 * time.Minute
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	w.must(w.host("ticks").tick())
	h := w.restart("ahead")
	h.skew = ahead
	put := false
	h.before = func(op operation) faulty.Fault {
		if op.writes() && strings.Contains(op.text(), "run#") {
			put = true
			h.store.SetSkew(-ahead) // it learns of its clock by the answer
		}
		return faulty.Fault{}
	}
	if _, _, err := h.order(tenant, "a", control.Request{Key: "k"}); err == nil || !put {
		t.Fatalf("the request put its run: %v, and gave %v; want it put, and refused", put, err)
	}
	delete(w.hosts, "ahead")
	accepted, repeated, err := w.host("api").order(tenant, "a", control.Request{Key: "k"})
	if err != nil || !repeated || accepted.ID.Nominal < w.now()+10*60_000 {
		t.Fatalf("repeated %v as %+v: %v; want the run of the first try", repeated, accepted, err)
	}
	w.wants(w.checkListed())
	w.advance(20*time.Minute, 10*time.Second, "ticks")
	w.wants(append(w.check(w.now()), w.checkListed()...))
}

// A clock that is ahead takes a request that is due soon, by it, and is set back: the run is due in a while, and is listed all that time.
func TestP1_Fault09_what_a_clock_ahead_took_as_due_soon_is_listed(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	w.elapsed, w.stepped = 30*time.Second, 20*time.Minute
	w.must(w.host("ticks").tick())
	w.must(w.host("api").trigger(tenant, "a", 50*time.Second)) // in the minute behind the horizon's
	w.stepped = 0
	for range 22 {
		w.elapsed += time.Minute
		w.must(w.host("ticks").tick())
		w.wants(append(w.checkListed(), w.checkListed(run.Scheduled, run.Queued)...))
	}
	w.work()
	if len(w.starts) != 1 {
		t.Errorf("it ran %d times", len(w.starts))
	}
}

// published has a host begin a tick that dies as soon as it has published its horizon.
func (w *world) published(name string) {
	w.Helper()
	h := w.restart(name)
	h.before = func(op operation) faulty.Fault {
		if op.n > 2 {
			return faulty.Fault{Refuse: errCrashed}
		}
		return faulty.Fault{}
	}
	if err := h.tick(); err == nil {
		w.Fatalf("%s went on over its crash", name)
	}
	delete(w.hosts, name)
}

// Ticks of a clock that goes ahead by leaps find what fires before them late, and die before they decide anything. When the clock is set back,
// that is late still, however young it is now, and however long ago the first of these leaps was by the clock of the last.
func TestP2_Fault09_Fault11_what_clocks_ahead_found_late_is_late_when_they_are_set_back(t *testing.T) {
	for _, mode := range []job.CatchUpMode{job.CatchUpNone, job.CatchUpOne, job.CatchUpAll} {
		for what, leaps := range map[string][]time.Duration{
			"one leap":                        {25 * time.Minute},
			"another over 5 minutes further":  {25 * time.Minute, 41 * time.Minute},
			"one far beyond":                  {25 * time.Minute, 30 * time.Hour},
			"the first of them set back once": {25 * time.Minute, 41 * time.Minute, 18 * time.Minute},
		} {
			t.Run(string(mode)+", "+what, func(t *testing.T) {
				w := newWorld(t, clocks(oracle.AnyClock))
				def := definition(until(20*time.Minute, every(time.Minute)), 1)
				def.CatchUp.Mode = mode
				w.must(w.host("api").put(tenant, "often", def))
				w.advance(30*time.Second, time.Second, "ticks")
				for _, leap := range leaps {
					w.stepped = leap
					w.elapsed += time.Second
					w.published("dies")
				}
				w.stepped = 4 * time.Minute // the clock was behind before, and shows nearly 5 minutes
				w.elapsed += time.Second
				back := w.now()
				w.advance(20*time.Second, time.Second, "ticks")
				ran := map[int64]bool{}
				for _, s := range w.starts {
					ran[s.id.Nominal] = true
				}
				for fire := base.Add(time.Minute).UnixMilli(); fire <= back; fire += time.Minute.Milliseconds() {
					newest := fire+time.Minute.Milliseconds() > back
					if want := newest || mode == job.CatchUpAll; ran[fire] != want {
						t.Errorf("the fire at %s ran: %v, want %v, found by a clock at %s", clock(fire), ran[fire], want, clock(back))
					}
				}
				w.advance(20*time.Minute, 2*time.Second, "ticks")
				w.wants(w.check(w.now()))
			})
		}
	}
}

// A clock that was far ahead has found late what fires up to its time. When it is set back, what fires from then on is late by the clock of then: neither
// passes that are a few seconds apart nor an edit that takes two drop anything of it.
func TestP2_P8_Fault09_what_fires_after_a_clock_was_set_back_is_late_by_that_clock_alone(t *testing.T) {
	const length = 2 * time.Minute
	for _, mode := range []job.CatchUpMode{job.CatchUpNone, job.CatchUpOne, job.CatchUpAll} {
		for apart, takes := range map[time.Duration]time.Duration{time.Second: time.Second, 4 * time.Second: 2500 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s, passes %s apart, an edit takes %s", mode, apart, takes), func(t *testing.T) {
				w := newWorld(t, clocks(oracle.AnyClock))
				def := catchUp(mode, definition(until(length, every(time.Second)), 1))
				w.must(w.host("api").put(tenant, "before", def))
				w.advance(10*time.Second, time.Second, "ticks")
				w.stepped = length + time.Minute
				w.published("ahead")
				w.stepped = 0
				w.advance(10*time.Second, time.Second, "ticks")
				h, wrote := w.restart("edits"), false
				h.before = func(op operation) faulty.Fault {
					if wrote {
						w.elapsed += takes // what follows its write
						h.before = nil
					}
					wrote = op.call.Method == faulty.Write
					return faulty.Fault{}
				}
				edited := w.now()
				w.must(h.put(tenant, "edited", def))
				w.work()
				w.advance(length, apart, "ticks")
				for _, r := range w.runs() {
					if r.State == run.Skipped {
						t.Errorf("%s of %s drops %d fires up to %s: %s", clock(r.ID.Nominal), r.ID.Job, r.Count, clock(r.Through), r.Reason)
					}
				}
				ran := map[string]int{}
				for _, s := range w.starts {
					ran[s.id.Job]++
				}
				left := int(base.Add(length).UnixMilli()-edited) / 1000
				if ran["before"] < int(length/time.Second)-1 || ran["edited"] < left-1 {
					t.Errorf("%d and %d fires ran, want all of %d and %d", ran["before"], ran["edited"], length/time.Second, left)
				}
				w.wants(w.check(w.now()))
			})
		}
	}
}

// A clock far ahead finds that no pass was in time, so that it lets living workers renew their leases before it judges any. When it is set back,
// that is given once more, and is no reason to wait until its time has come: who is dead is found as ever, and who lives is let be.
func TestP4_Fault08_Fault09_no_lease_waits_for_the_time_of_a_clock_that_was_ahead(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	w.must(w.host("ticks").tick())
	for range 2 {
		w.must(w.host("api").trigger(tenant, "a", 0))
	}
	runs := w.runs()
	w.stepped = 3 * time.Hour
	w.published("ahead")
	living, dead := w.hold(runs[0], "living"), w.hold(runs[1], "dead") // whose leases are of that time
	w.stepped = 0
	w.restart("ticks")
	for second := time.Duration(0); second < 4*time.Hour/time.Second; second += 10 {
		w.elapsed += 10 * time.Second
		w.must(w.host("ticks").tick())
		living = w.hold(living, "living")
		if second == 20 {
			for _, r := range []run.Run{living, dead} {
				if now, _ := w.run(tenant, r.ID); now.State != run.Running {
					t.Errorf("right after the clock was set back %s of the worker %s is %s, want running", r.ID, r.Worker, now.State)
				}
			}
		}
		if now, _ := w.run(tenant, dead.ID); now.State != run.Running {
			break
		}
	}
	if now, _ := w.run(tenant, dead.ID); now.Crashes != 1 || w.elapsed > 40*time.Minute {
		t.Errorf("%s of the dead worker is %s after %d crashes, %s after the clock was set back", dead.ID, now.State, now.Crashes, w.elapsed)
	}
	if now, _ := w.run(tenant, living.ID); now.State != run.Running || now.Crashes != 0 {
		t.Errorf("%s of the living worker is %s after %d crashes, want running", living.ID, now.State, now.Crashes)
	}
}
