package protocol_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// A host's clock was stepped ahead, and it learns of that by the answer to its write: the edit that it wrote speaks of an instant to come,
// and it refuses to answer. A host whose clock is right is asked the same, or something else, and answers: from then on no
// older definition runs, though by the first edit all of them would go on until its instant (make sim SEED=918663193176).
func TestP2_P8_Fault09_an_edit_by_a_clock_ahead_is_written_again_as_of_now(t *testing.T) {
	second := definition(every(time.Second), 2)
	third := definition(every(7*time.Second), 3)
	type edit = func(*host) error
	put := func(def job.Definition) edit { return func(h *host) error { return h.put(tenant, "a", def) } }
	pause := func(h *host) error { return h.pause(tenant, "a") }
	remove := func(h *host) error {
		err := h.delete(tenant, "a")
		if refused := (*control.Refusal)(nil); errors.As(err, &refused) && refused.Code == control.CodeJobNotFound {
			return nil // the first one deleted it
		}
		return err
	}
	for name, edits := range map[string][]edit{
		"a put, repeated":         {put(second), put(second)},
		"a put, and another":      {put(second), put(third)},
		"a pause, repeated":       {pause, pause},
		"a pause, and a put":      {pause, put(third)},
		"a delete, repeated":      {remove, remove},
		"a delete, and a put":     {remove, put(third)},
		"a put, and a delete":     {put(second), remove},
		"two puts, and the first": {put(second), put(third), put(second)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocks(oracle.AnyClock))
			w.must(w.host("api").put(tenant, "a", definition(every(10*time.Second), 1)))
			w.advance(33*time.Second, time.Second, "ticks")
			for _, first := range edits[:len(edits)-1] {
				w.byAClockAhead(10*time.Minute, first)
			}
			w.advance(4*time.Second, time.Second, "ticks")
			w.must(edits[len(edits)-1](w.host("api")))
			now, instant, answered := w.job(tenant, "a").Generation, w.now(), len(w.starts)
			w.advance(5*time.Minute, time.Second, "ticks")
			for _, s := range w.starts[answered:] {
				if s.generation < now && s.id.Nominal > instant {
					t.Fatalf("%s runs by generation %d, after the answer to the edit that made %d", show(s.id), s.generation, now)
				}
			}
			w.wants(w.check(w.now()))
		})
	}
}

// What a pause had held is let go by a resume at once, also where the first try was written by a clock ahead and refused before that.
func TestP8_Fault09_a_resume_by_a_clock_ahead_is_repeated(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	w.must(w.host("api").pause(tenant, "a"))
	w.must(w.host("api").trigger(tenant, "a", 0))
	w.advance(30*time.Second, time.Second, "ticks")
	w.byAClockAhead(time.Hour, func(h *host) error { return h.resume(tenant, "a") })
	if n := len(w.starts); n > 0 {
		t.Fatalf("%d runs started during the pause", n)
	}
	w.must(w.host("api").resume(tenant, "a"))
	w.advance(2*time.Second, time.Second, "ticks")
	if n := len(w.starts); n != 1 {
		t.Errorf("2 s after the answer to the resume, %d runs have started, want the one that was held", n)
	}
	w.wants(w.check(w.now()))
}

// byAClockAhead has a host edit by a clock that is ahead. It learns how far by the answer to its first write, and refuses to go on.
func (w *world) byAClockAhead(ahead time.Duration, edit func(*host) error) {
	w.Helper()
	h := w.restart("ahead")
	h.skew = ahead
	wrote := false
	h.before = func(op operation) faulty.Fault {
		if wrote {
			h.store.SetSkew(-ahead)
		}
		wrote = wrote || op.call.Method == faulty.Write
		return faulty.Fault{}
	}
	if err := edit(h); !errors.Is(err, store.ErrUnknown) || !wrote {
		w.Fatalf("an edit by a clock that is %s ahead: wrote %v, and gave %v; want it begun and not finished", ahead, wrote, err)
	}
	delete(w.hosts, "ahead")
}

// A host that learns by an answer to its reads that its clock was stepped writes nothing as of the wrong time.
func TestP8_Fault08_Fault09_an_edit_whose_clock_turns_out_to_be_wrong_is_not_written(t *testing.T) {
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		w := newWorld(t, clocks(oracle.AnyClock))
		w.must(w.host("api").put(tenant, "a", definition(every(10*time.Second), 1)))
		before := w.job(tenant, "a")
		for what, edit := range map[string]func(*host) error{
			"a PUT": func(h *host) error { return h.put(tenant, "a", definition(every(time.Second), 2)) },
			"a batch": func(h *host) error {
				return h.control.PutMany(t.Context(), tenant, []control.Wanted{{Name: "b", Def: definition(every(time.Second), 2)}})[0].Err
			},
		} {
			h := w.restart("off")
			h.skew = off
			h.before = func(operation) faulty.Fault {
				h.store.SetSkew(-off)
				return faulty.Fault{}
			}
			err := edit(h)
			if refused := (*control.Refusal)(nil); !errors.As(err, &refused) || refused.Code != control.CodeClockSkewed {
				t.Errorf("%s by a clock that is off by %s gave %v, want a refusal", what, off, err)
			}
		}
		if now := w.job(tenant, "a"); now.Version != before.Version || w.job(tenant, "b").Version != 0 {
			t.Errorf("by a clock that is off by %s, a became %+v, and b %+v", off, now, w.job(tenant, "b"))
		}
	}
}

// So does one that is asked for a run, or to change one: the run would be due, or be kept, by the wrong time.
func TestP3_P9_Fault08_Fault09_a_request_whose_clock_turns_out_to_be_wrong_is_not_begun(t *testing.T) {
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		w := newWorld(t)
		w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
		ended, _, err := w.host("api").order(tenant, "a", control.Request{})
		w.must(err)
		w.work()
		waits, _, err := w.host("api").order(tenant, "a", control.Request{Delay: new(time.Hour)})
		w.must(err)
		before := w.items("")
		soon := w.clock().Add(30 * time.Second)
		for what, ask := range map[string]func(*host) error{
			"a request": func(h *host) error {
				_, _, err := h.control.Trigger(t.Context(), tenant, "a", control.Request{At: &soon, Key: "k"})
				return err
			},
			"a batch": func(h *host) error {
				asked := control.Asked{Job: "a", Request: control.Request{At: &soon}}
				return h.control.TriggerMany(t.Context(), tenant, []control.Asked{asked, asked})[1].Err
			},
			"a retry": func(h *host) error {
				_, err := h.control.Retry(t.Context(), tenant, ended.ID, true, time.Time{})
				return err
			},
			"a cancel": func(h *host) error {
				_, err := h.control.Cancel(t.Context(), tenant, waits.ID, "")
				return err
			},
		} {
			h := w.restart("off")
			h.skew = off
			h.before = func(operation) faulty.Fault {
				h.store.SetSkew(-off)
				return faulty.Fault{}
			}
			err := ask(h)
			if refused := (*control.Refusal)(nil); !errors.As(err, &refused) || refused.Code != control.CodeClockSkewed {
				t.Errorf("%s by a clock that is off by %s gave %v, want a refusal", what, off, err)
			}
		}
		if !reflect.DeepEqual(w.items(""), before) {
			t.Errorf("by a clock that is off by %s, something was written", off)
		}
	}
}

// What a clock ahead left to an older generation is remembered until it is over: the generation's own record still tells of it.
func TestP8_Fault09_what_an_edit_has_cut_stays_cut(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(every(2*time.Hour), 1)))
	w.advance(5*time.Second, time.Second, "ticks")
	w.byAClockAhead(3*time.Hour, func(h *host) error { return h.pause(tenant, "a") })
	w.must(w.host("api").pause(tenant, "a"))
	w.advance(100*time.Minute, 20*time.Second, "ticks") // until the last sweep has passed the pause
	_, err := w.host("api").control.Pause(t.Context(), tenant, "a", "for another reason", control.Match{})
	w.must(err)
	w.advance(25*time.Minute, 20*time.Second, "ticks")
	if n := len(w.starts); n > 0 {
		t.Errorf("%d runs started during the pause", n)
	}
}

// A pause by a clock ahead is refused before it takes back what was claimed. The resume behind it does.
func TestP8_Fault09_a_resume_behind_a_pause_by_a_clock_ahead(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	w.must(w.host("api").trigger(tenant, "a", 40*time.Second))
	held := definition(nil, 2)
	held.Paused = true
	w.byAClockAhead(time.Hour, func(h *host) error { return h.put(tenant, "a", held) })
	w.elapsed += 5 * time.Second
	w.must(w.host("api").resume(tenant, "a"))
	w.advance(time.Minute, time.Second, "ticks")
	if n := len(w.starts); n != 1 || w.starts[0].generation != w.job(tenant, "a").Generation {
		t.Errorf("%d runs started, want the one, as the job stands since the resume", n)
	}
	w.wants(w.check(w.now()))
}

// An edit that a slow read holds up finds another that was answered meanwhile, and does not take it for one by a clock ahead.
func TestP2_Fault07_a_slow_edit_is_behind_the_one_that_overtook_it(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(time.Second)), 1)))
	w.advance(3*time.Second, time.Second, "ticks")
	var answered job.Job
	slow := w.host("slow")
	slow.before = func(op operation) faulty.Fault {
		if op.n == 1 {
			w.elapsed += 5 * time.Second
			w.must(w.host("api").pause(tenant, "a"))
			answered = w.job(tenant, "a")
		}
		return faulty.Fault{}
	}
	w.must(slow.pause(tenant, "a"))
	if now := w.job(tenant, "a"); now.Generation != answered.Generation || answered.Generation == 0 {
		t.Errorf("the slow pause left generation %d, and the one before it was answered with %d", now.Generation, answered.Generation)
	}
	w.wants(w.settle())
}

// An edit is overtaken by one of a clock ahead, and answers for both: what was claimed before it is bound again.
func TestP8_Fault09_an_edit_that_a_clock_ahead_overtakes_binds_runs_again(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	w.must(w.host("api").trigger(tenant, "a", 30*time.Second))
	first := w.job(tenant, "a").Generation
	h, wrote := w.host("overtaken"), false
	h.before = func(op operation) faulty.Fault {
		if wrote {
			h.before = nil
			w.byAClockAhead(time.Hour, func(h *host) error { return h.put(tenant, "a", definition(nil, 3)) })
		}
		wrote = op.call.Method == faulty.Write
		return faulty.Fault{}
	}
	w.must(h.put(tenant, "a", definition(nil, 2)))
	w.advance(40*time.Second, time.Second, "ticks")
	if len(w.starts) != 1 || w.starts[0].generation == first {
		t.Errorf("started: %+v, want the run, and not as it was defined before the edit that was answered", w.starts)
	}
}

// Of two hosts whose clocks differ as much as they may, the one behind edits after the other: what was due before the first edit still runs.
func TestP2_Fault07_an_edit_by_a_clock_behind_takes_nothing_from_the_one_before(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "a", definition(every(10*time.Second), 1)))
	w.elapsed += 9 * time.Second
	w.must(w.host("ticks").tick())
	w.elapsed += 1500 * time.Millisecond // the run of 10 s waits for a worker
	w.must(w.host("api").pause(tenant, "a"))
	behind := w.host("behind")
	behind.skew = -time.Second
	w.must(behind.put(tenant, "a", definition(nil, 2)))
	w.work()
	if len(w.starts) != 1 {
		t.Errorf("%d runs started, want the one that was due before the pause", len(w.starts))
	}
	w.wants(w.settle())
}

// The first try of a request for later stops behind its timer, and the second comes when the run is due soon: it puts the run as claimed, and sends it.
// A tick that comes upon the timer of the first believes that the run stands as that would have put it, unclaimed, and claims it once more: the run is the
// same, and runs once.
func TestP6_P9_a_request_repeated_when_it_is_due_soon_runs_once(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "a", definition(nil, 1)))
	delay := 10 * time.Minute
	asked := control.Request{Key: "k", Delay: &delay}
	h := w.restart("stopped")
	h.before = func(op operation) faulty.Fault {
		if op.writes() && strings.Contains(op.text(), "run#") {
			return faulty.Fault{Refuse: errCrashed}
		}
		return faulty.Fault{}
	}
	if _, _, err := h.order(tenant, "a", asked); err == nil {
		t.Fatal("the first try has put its run")
	}
	delete(w.hosts, "stopped")
	w.advance(delay-5*time.Second, time.Second, "ticks")
	accepted, repeated, err := w.host("api").order(tenant, "a", asked)
	if err != nil || !repeated || accepted.State != run.Queued || accepted.Version != 1 {
		t.Fatalf("repeated %v, as %+v: %v; want it put as claimed", repeated, accepted, err)
	}
	w.advance(4*time.Second, time.Second, "ticks")
	anew, _ := w.run(tenant, accepted.ID)
	if accepted.Version, accepted.Epoch = 2, anew.Epoch; anew.Epoch == 0 || !reflect.DeepEqual(anew, accepted) {
		t.Errorf("claimed as %+v, want %+v", anew, accepted)
	}
	w.advance(5*time.Minute, time.Second, "ticks")
	w.work()
	if r, _ := w.run(tenant, accepted.ID); r.State != run.Succeeded || len(w.starts) != 1 {
		t.Errorf("it is %s, and started %d times", r.State, len(w.starts))
	}
	w.wants(w.check(w.now() - 1))
}
