package protocol_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// asked asks for a run, now or after a delay, and gives its ID.
func (h *host) asked(delay time.Duration, ignorePause bool) run.ID {
	r, _, err := h.order(tenant, "a", control.Request{Delay: new(delay), IgnorePause: ignorePause})
	h.must(err)
	return r.ID
}

// started tells whether a run was started.
func (w *world) started(id run.ID) bool {
	return slices.ContainsFunc(w.starts, func(s start) bool { return s.id == id })
}

// pausedJob is a job that is paused, with a run that the pause holds.
func pausedJob(w *world) {
	api := w.host("api")
	w.must(api.put(tenant, "a", definition(nil, 1)))
	w.must(api.pause(tenant, "a"))
	w.must(api.trigger(tenant, "a", 0))
	w.advance(10*time.Second, 2*time.Second, "before")
}

// heldLine is a paused job whose one place is taken by a run whose worker has died in it, and in whose line another one is held.
func heldLine(w *world) {
	api := w.host("api")
	w.must(api.put(tenant, "a", oneAtATime(definition(nil, 1))))
	w.must(api.trigger(tenant, "a", 0))
	w.elapsed += 100 * time.Millisecond
	begun := false
	if !w.dies(func(op operation) bool {
		ends := begun && op.writes()
		begun = begun || writesRun("a#")(op)
		return ends
	}) {
		w.Fatal("the worker did not come to an end")
	}
	w.must(api.trigger(tenant, "a", 0))
	w.work()
	w.must(api.pause(tenant, "a"))
	w.elapsed += time.Second
}

// byHand are acts around a run that ignores the pause of its job.
func byHand() []scenario {
	pass := func(h *host) error { return h.worker.Pass(h.life, 0) }
	tick := func(h *host) error { return h.tick() }
	pause := func(h *host) error { return h.pause(tenant, "a") }
	ignoring := func(delay time.Duration) func(h *host) error {
		return func(h *host) error { return h.triggerPaused(tenant, "a", delay) }
	}
	after := func(prepare func(*world), delay, wait time.Duration) func(w *world) {
		return func(w *world) {
			prepare(w)
			w.must(w.host("api").triggerPaused(tenant, "a", delay))
			w.elapsed += wait
		}
	}
	active := func(w *world) { w.must(w.host("api").put(tenant, "a", definition(nil, 1))) }
	return []scenario{
		{name: "now", prepare: pausedJob, act: ignoring(0)},
		{name: "soon", prepare: pausedJob, act: ignoring(20 * time.Second)},
		{name: "later", prepare: pausedJob, act: ignoring(100 * time.Second)},
		{name: "twice_under_a_key", prepare: pausedJob, act: func(h *host) error {
			if _, _, err := h.order(tenant, "a", control.Request{Key: "one", IgnorePause: true}); err != nil {
				return err
			}
			_, _, err := h.order(tenant, "a", control.Request{Key: "one", IgnorePause: true})
			return err
		}},
		{name: "while_it_is_paused", prepare: active, act: ignoring(20 * time.Second), then: pause},
		{name: "while_it_is_resumed", prepare: pausedJob, act: ignoring(20 * time.Second), then: func(h *host) error { return h.resume(tenant, "a") }},
		{name: "while_it_is_deleted", prepare: pausedJob, act: ignoring(20 * time.Second), then: func(h *host) error { return h.delete(tenant, "a") }},
		{name: "a_pause_finds_it_claimed_ahead", prepare: after(active, 20*time.Second, time.Second), act: pause},
		{name: "a_pause_finds_it_not_yet_claimed", prepare: after(active, 100*time.Second, time.Second), act: pause},
		{name: "a_tick_claims_it", lookAhead: 15 * time.Second, prepare: after(pausedJob, 100*time.Second, 95*time.Second), act: tick},
		{name: "it_enters_past_the_line", prepare: func(w *world) {
			heldLine(w)
			w.elapsed += 5 * time.Minute
			w.must(w.host("ticks").tick())
			w.work()
			w.must(w.host("api").triggerPaused(tenant, "a", 0))
		}, act: pass},
		{name: "it_waits_before_the_line", prepare: after(heldLine, 0, time.Second), act: pass},
		{name: "it_is_let_in", prepare: func(w *world) {
			after(heldLine, 0, time.Second)(w)
			w.work()
			w.elapsed += 2 * time.Minute
			w.must(w.host("ticks").tick())
		}, act: pass},
	}
}

// TestP4_P8_G3_Fault01_Fault02_Fault11_EachRunByHandThatIsBroken breaks each operation around a run that ignores the pause of its job, in each way: it runs
// all the same, and what the pause holds does not.
func TestP4_P8_G3_Fault01_Fault02_Fault11_EachRunByHandThatIsBroken(t *testing.T) {
	for _, s := range byHand() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.everyOperation(t)
		})
	}
}

// What ignores a pause starts at its time, by a request, a tick, a sweep, a check and a worker that starts anew, and the pause holds the others.
func TestP8_a_run_by_hand_starts_while_its_job_is_paused(t *testing.T) {
	for name, c := range map[string]struct {
		delay time.Duration
		early bool // it was asked for before the pause
		lost  bool // the queue loses what is sent until the first check
	}{
		"now":                    {},
		"soon":                   {delay: 20 * time.Second},
		"later":                  {delay: 5 * time.Minute},
		"claimed ahead":          {delay: 20 * time.Second, early: true},
		"not claimed yet":        {delay: 5 * time.Minute, early: true},
		"its message is lost":    {lost: true},
		"lost, of later":         {delay: 5 * time.Minute, lost: true},
		"lost, of claimed ahead": {delay: 20 * time.Second, early: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			api := w.host("api")
			w.must(api.put(tenant, "a", definition(nil, 1)))
			if c.lost {
				w.fate = func(queueMessage) (bool, bool) { return true, false }
			}
			var byHand run.ID
			if c.early {
				byHand = api.asked(c.delay, true)
			}
			held := api.asked(c.delay+time.Second, false)
			w.must(api.pause(tenant, "a"))
			if !c.early {
				byHand = api.asked(c.delay, true)
			}
			w.advance(c.delay+2*time.Second, time.Second, "ticks")
			w.fate = nil
			if w.advance(20*time.Minute, 20*time.Second, "ticks"); !w.started(byHand) || w.started(held) {
				t.Errorf("started in the pause: %v by hand, %v held", w.started(byHand), w.started(held))
			}
			w.wants(w.check(w.now() - 1))
			w.must(api.resume(tenant, "a"))
			if w.advance(20*time.Minute, 20*time.Second, "ticks"); !w.started(held) || len(w.starts) != 2 {
				t.Errorf("%d runs started after the resume, want both", len(w.starts))
			}
			w.wants(w.check(w.now() - 1))
		})
	}
}

// A run by hand does not stand behind runs that a pause holds in line, whether there is room or not, and when it joined the line. It does wait for those in
// progress.
func TestP4_P8_G1_G3_a_run_by_hand_goes_past_the_line_that_a_pause_holds(t *testing.T) {
	for name, early := range map[string]bool{"asked for in the pause": false, "in line before the pause": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			api := w.host("api")
			w.must(api.put(tenant, "a", oneAtATime(definition(nil, 1))))
			first := api.asked(0, false)
			begun := false
			if !w.dies(func(op operation) bool {
				ends := begun && op.writes()
				begun = begun || writesRun("a#")(op)
				return ends
			}) {
				t.Fatal("the worker did not come to an end")
			}
			held := api.asked(0, false)
			w.work()
			var byHand run.ID
			if early {
				w.elapsed += time.Second
				byHand = api.asked(0, true)
				w.work()
			}
			w.must(api.pause(tenant, "a"))
			w.elapsed += time.Second
			if !early {
				byHand = api.asked(0, true)
				w.work()
			}
			if r, _ := w.run(tenant, byHand); !r.Waits() {
				t.Fatalf("%s while another one is in progress", r.Stage())
			}
			w.advance(40*time.Minute, 20*time.Second, "ticks") // the first one's lease is over, and it is tried again
			if r, _ := w.run(tenant, first); r.State != run.Succeeded {
				t.Fatalf("the first one is %s", r.State)
			}
			if !w.started(byHand) || w.started(held) {
				t.Errorf("started in the pause: %v by hand, %v held", w.started(byHand), w.started(held))
			}
			second := api.asked(0, true)
			if w.work(); !w.started(second) || w.started(held) {
				t.Errorf("where there is room: %v by hand, %v held", w.started(second), w.started(held))
			}
			w.wants(w.check(w.now() - 1))
			w.must(api.resume(tenant, "a"))
			if w.work(); !w.started(held) {
				t.Error("what was held did not start after the resume")
			}
			w.wants(w.check(w.now() - 1))
		})
	}
}

// inProgress has a worker of its own start a run, which stands still in its attempt until it is thawed: give it back to that by ends.
func (w *world) inProgress(name string) (ends func()) {
	h := w.restart(name)
	wake := make(chan struct{})
	begun, still := false, make(chan struct{})
	h.before = func(op operation) faulty.Fault {
		if begun && op.writes() {
			h.before = nil
			close(still)
			<-wake
		}
		begun = begun || writesRun("a#")(op)
		return faulty.Fault{}
	}
	done := make(chan error, 1)
	go func() { done <- h.worker.Pass(h.life, 0) }()
	select {
	case <-still:
	case err := <-done:
		w.Fatalf("%s did not come to an end: %v", name, err)
	}
	return func() {
		close(wake)
		w.must(<-done)
	}
}

// Whoever ends lets in a run by hand at once, and nobody that the pause holds, whatever room there is.
func TestP8_G3_an_end_lets_in_the_run_by_hand_alone(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.put(tenant, "a", oneAtATime(definition(nil, 1))))
	api.asked(0, false)
	ends := w.inProgress("w1")
	held := api.asked(0, false)
	w.work()
	raised := oneAtATime(definition(nil, 1))
	raised.Paused, raised.Overlap.Limit = true, 3
	w.must(api.pause(tenant, "a"))
	byHand := []run.ID{api.asked(0, true), api.asked(0, true)}
	w.work()
	for _, id := range byHand {
		if r, _ := w.run(tenant, id); !r.Waits() {
			t.Fatalf("%s is %s while another one is in progress", id, r.Stage())
		}
	}
	w.must(api.put(tenant, "a", raised))
	ends()
	w.work()
	for _, id := range byHand {
		if !w.started(id) {
			t.Errorf("%s was not let in by the end of the other one", id)
		}
	}
	if w.started(held) {
		t.Error("what the pause holds was let in, too")
	}
	w.wants(w.check(w.now() - 1))
}

// Where as many wait as may, a run by hand is skipped for those in progress, and not for those alone that a pause holds.
func TestG4_a_run_by_hand_is_not_skipped_for_those_that_a_pause_holds(t *testing.T) {
	w := newWorld(t)
	heldLine(w) // by a definition that lets any number wait
	api := w.host("api")
	def := oneAtATime(definition(nil, 1))
	def.Overlap.MaxWaiting, def.Paused = new(1), true
	w.must(api.put(tenant, "a", def))
	over := api.asked(0, true)
	w.work()
	if r, _ := w.run(tenant, over); r.State != run.Skipped {
		t.Errorf("beside one in progress and one in line: %s", r.Stage())
	}
	w.advance(5*time.Minute, 20*time.Second, "ticks")
	free := api.asked(0, true)
	w.work()
	if r, _ := w.run(tenant, free); r.State != run.Succeeded {
		t.Errorf("beside one that is held: %s (%s)", r.Stage(), r.Reason)
	}
	w.wants(w.check(w.now() - 1))
}

// A run by hand that was cancelled ahead of its time and is opened again starts at its time, in the pause.
func TestP4_P8_a_run_by_hand_is_opened_again(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.put(tenant, "a", definition(nil, 1)))
	w.must(api.pause(tenant, "a"))
	byHand := api.asked(5*time.Minute, true)
	w.must(api.cancel(tenant, byHand))
	w.must(api.retry(tenant, byHand))
	if w.advance(20*time.Minute, 20*time.Second, "ticks"); !w.started(byHand) {
		r, _ := w.run(tenant, byHand)
		t.Errorf("it is %s", r.State)
	}
	w.wants(w.check(w.now() - 1))
}

// The same key with and without the word is two requests.
func TestP9_a_key_is_not_for_a_run_with_and_without_the_word(t *testing.T) {
	w := newWorld(t)
	pausedJob(w)
	api := w.host("api")
	_, _, err := api.order(tenant, "a", control.Request{Key: "k"})
	w.must(err)
	_, _, err = api.order(tenant, "a", control.Request{Key: "k", IgnorePause: true})
	if err == nil || !strings.Contains(err.Error(), "another request") {
		t.Errorf("got %v", err)
	}
}
