package protocol_test

import (
	"errors"

	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// scenario is an act of one host in a prepared world, to be broken at every operation.
type scenario struct {
	name      string
	lookAhead time.Duration
	rate      int // of catch-up; 0: the default
	callbacks dispatch.DefaultCallbacks
	prepare   func(w *world)
	act       func(h *host) error
	then      func(h *host) error // what another host does while the first is stopped; nil: a tick
}

const tenant, other = "acme", "zeta"

// lasting is when the jobs of most scenarios have their last fire.
const lasting = 90 * time.Second

func scenarios() []scenario {
	jobs := func(w *world) {
		api := w.host("api")
		for _, t := range []string{tenant, other} {
			w.must(api.put(t, "a", definition(until(lasting, every(10*time.Second)), 1)))
			w.must(api.put(t, "b", definition(until(lasting, every(7*time.Second)), 1)))
		}
		w.advance(25*time.Second, 5*time.Second, "before")
	}
	missed := func(mode string) func(w *world) {
		return func(w *world) {
			def := definition(until(13*time.Minute, every(time.Minute)), 1)
			def.CatchUp.Mode = jobMode(mode)
			w.must(w.host("api").put(tenant, "a", def))
			w.must(w.host("api").put(other, "a", def))
			w.advance(90*time.Second, 10*time.Second, "before")
			w.elapsed += 9 * time.Minute
		}
	}
	pacing := func(w *world) {
		missed("all")(w)
		w.advance(2*time.Second, time.Second, "before")
		w.elapsed += time.Second
	}
	herd := func(w *world) {
		for _, name := range []string{"a", "b", "c", "d"} { // in buckets of their own
			w.must(w.host("api").put(tenant, name, definition(until(7*time.Minute, every(time.Minute)), 1)))
		}
		w.elapsed += 13 * time.Minute
	}
	tick := func(h *host) error { return h.tick() }
	return []scenario{
		{name: "tick", lookAhead: 15 * time.Second, prepare: func(w *world) { jobs(w); w.elapsed += 9 * time.Second }, act: tick},
		{name: "tick_catches_up_one", prepare: missed("one"), act: tick},
		{name: "tick_catches_up_all", prepare: missed("all"), act: tick},
		{name: "tick_catches_up_none", prepare: missed("none"), act: tick},
		// A start a second in all: both jobs want the same places, further than the pass's own, and the second waits for the first.
		{name: "tick_catches_up_one_slowly", rate: 1, prepare: missed("one"), act: tick},
		{name: "tick_catches_up_all_slowly", rate: 1, prepare: missed("all"), act: tick},
		{name: "tick_catches_up_a_herd_slowly", rate: 1, prepare: herd, act: tick},
		{name: "tick_goes_on_catching_up", prepare: pacing, act: tick},
		{name: "tick_goes_on_catching_up_in_reach", lookAhead: 15 * time.Second, prepare: pacing, act: tick},
		{name: "edit_while_catching_up", prepare: pacing, act: func(h *host) error {
			return h.put(tenant, "a", definition(until(13*time.Minute, every(20*time.Second)), 2))
		}},
		{name: "pause_while_catching_up", prepare: pacing, act: func(h *host) error { return h.pause(tenant, "a") }},
		{name: "delete_while_catching_up", prepare: pacing, act: func(h *host) error { return h.delete(tenant, "a") }},
		{name: "put_new", lookAhead: 15 * time.Second, prepare: jobs, act: func(h *host) error {
			return h.put(tenant, "c", definition(until(lasting, every(3*time.Second)), 1))
		}},
		{name: "put_edit", lookAhead: 15 * time.Second, prepare: jobs, act: func(h *host) error {
			return h.put(tenant, "a", definition(until(lasting, every(5*time.Second)), 2))
		}},
		{name: "put_edit_twice", lookAhead: 15 * time.Second, prepare: func(w *world) {
			jobs(w)
			w.must(w.host("api").put(tenant, "a", definition(until(lasting, every(4*time.Second)), 2)))
		}, act: func(h *host) error {
			return h.put(tenant, "a", definition(until(lasting, every(5*time.Second)), 3))
		}, then: func(h *host) error { return h.put(tenant, "a", definition(until(lasting, every(2*time.Second)), 4)) }},
		{name: "pause", lookAhead: 15 * time.Second, prepare: jobs, act: func(h *host) error { return h.pause(tenant, "a") }},
		{name: "pause_then_resume", lookAhead: 15 * time.Second, prepare: jobs, act: func(h *host) error {
			return errors.Join(h.pause(tenant, "a"), h.resume(tenant, "a"))
		}},
		{name: "resume_while_pausing", lookAhead: 15 * time.Second, prepare: jobs, act: func(h *host) error { return h.pause(tenant, "a") },
			then: func(h *host) error { return h.resume(tenant, "a") }},
		{name: "delete_then_create", lookAhead: 15 * time.Second, prepare: jobs, act: func(h *host) error {
			return errors.Join(h.delete(tenant, "a"), h.put(tenant, "a", definition(until(lasting, every(10*time.Second)), 3)))
		}},
		{name: "tick_while_editing", lookAhead: 15 * time.Second, prepare: func(w *world) { jobs(w); w.elapsed += 9 * time.Second }, act: tick,
			then: func(h *host) error { return h.put(tenant, "a", definition(until(lasting, every(5*time.Second)), 2)) }},
		{name: "tick_while_pausing", lookAhead: 15 * time.Second, prepare: func(w *world) { jobs(w); w.elapsed += 9 * time.Second }, act: tick,
			then: func(h *host) error { return h.pause(tenant, "a") }},
		{name: "trigger_now", prepare: jobs, act: func(h *host) error { return h.trigger(tenant, "a", 0) }},
		{name: "trigger_soon", prepare: jobs, act: func(h *host) error { return h.trigger(tenant, "a", 20*time.Second) }},
		{name: "trigger_later", prepare: jobs, act: func(h *host) error { return h.trigger(tenant, "a", 100*time.Second) }},
		{name: "trigger_while_pausing", prepare: jobs, act: func(h *host) error { return h.trigger(tenant, "a", 20*time.Second) },
			then: func(h *host) error { return h.pause(tenant, "a") }},
		{name: "trigger_while_editing", prepare: jobs, act: func(h *host) error { return h.trigger(tenant, "a", 20*time.Second) },
			then: func(h *host) error { return h.put(tenant, "a", definition(nil, 2)) }},
		{name: "resume_with_held_runs", prepare: func(w *world) {
			jobs(w)
			api := w.host("api")
			w.must(api.pause(tenant, "a"))
			for _, delay := range []time.Duration{0, 5 * time.Second, 30 * time.Second, 100 * time.Second} {
				w.must(api.trigger(tenant, "a", delay))
			}
			w.advance(2*time.Minute, 10*time.Second, "before")
		}, act: func(h *host) error { return h.resume(tenant, "a") }},
		{name: "delete_with_held_runs", prepare: func(w *world) {
			jobs(w)
			api := w.host("api")
			w.must(api.trigger(tenant, "a", 30*time.Second))
			w.must(api.trigger(tenant, "a", 100*time.Second))
			w.must(api.trigger(other, "a", 100*time.Second))
		}, act: func(h *host) error { return h.delete(tenant, "a") }},
		{name: "sweep_mends", prepare: func(w *world) {
			w.fate = func(m queueMessage) (bool, bool) { return true, false } // the queue loses everything
			jobs(w)
			w.must(w.host("api").trigger(tenant, "b", 5*time.Second))
			// A tick that arms the successor and claims half, and an edit that stops behind its first write.
			w.elapsed += time.Second
			w.stop("broken", 9, func(h *host) error { return h.tick() })
			w.stop("broken", 5, func(h *host) error { return h.put(tenant, "d", definition(until(lasting, every(5*time.Second)), 1)) })
			w.advance(170*time.Second, 10*time.Second, "before")
			w.fate = nil
			w.elapsed += 10 * time.Second
		}, act: tick},
	}
}

// stop lets a new host do something and crash before its n-th operation.
func (w *world) stop(name string, n int, act func(*host) error) {
	h := w.restart(name)
	h.before = func(op operation) faulty.Fault {
		if op.n >= n {
			return faulty.Fault{Refuse: errCrashed}
		}
		return faulty.Fault{}
	}
	if err := act(h); err == nil && h.ops >= n {
		w.Fatalf("%s went on over its crash", name)
	}
	delete(w.hosts, name)
}

// breaks are the ways in which an operation goes wrong.
var breaks = map[string]func(h *host, k int, then func()) func(operation) faulty.Fault{
	// The host is gone: nothing of it happens from here on.
	"crash": func(h *host, k int, _ func()) func(operation) faulty.Fault {
		return func(op operation) faulty.Fault {
			if op.n >= k {
				h.dies()
				return faulty.Fault{Refuse: errCrashed}
			}
			return faulty.Fault{}
		}
	},
	// It happened, and nobody was told.
	"answer_lost": func(_ *host, k int, _ func()) func(operation) faulty.Fault {
		return func(op operation) faulty.Fault {
			if op.n == k {
				return faulty.Fault{Lose: store.ErrUnknown}
			}
			return faulty.Fault{}
		}
	},
	// It did not happen, and nobody knows.
	"lost": func(_ *host, k int, _ func()) func(operation) faulty.Fault {
		return func(op operation) faulty.Fault {
			if op.n == k {
				return faulty.Fault{Refuse: store.ErrUnknown}
			}
			return faulty.Fault{}
		}
	},
	// The host is stopped, others go on, and then it wakes and goes on as if nothing had been.
	"stopped": func(_ *host, k int, then func()) func(operation) faulty.Fault {
		return func(op operation) faulty.Fault {
			if op.n == k {
				then()
			}
			return faulty.Fault{}
		}
	},
}

// TestP2_P3_P4_P6_P8_P12_Fault01_Fault02_Fault11_EveryOperationBroken breaks each operation of each scenario in each way.
func TestP2_P3_P4_P6_P8_P12_Fault01_Fault02_Fault11_EveryOperationBroken(t *testing.T) {
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.everyOperation(t)
		})
	}
}

// everyOperation plays the scenario with each of its operations broken, in each way.
func (s scenario) everyOperation(t *testing.T) {
	for k := 1; ; k++ {
		met, writes := s.broken(t, "stopped", k)
		if !met {
			break
		}
		if !writes {
			continue // nobody sees a read: what ends before it has ended before the next write
		}
		for _, how := range []string{"crash", "answer_lost", "lost"} {
			s.broken(t, how, k)
		}
	}
}

// broken plays the scenario with its k-th operation broken, and tells whether there was one, and whether it wrote.
func (s scenario) broken(t *testing.T, how string, k int) (met, writes bool) {
	options := []option{callsForAll(s.callbacks)}
	if s.lookAhead != 0 {
		options = append(options, lookAhead(s.lookAhead))
	}
	if s.rate != 0 {
		options = append(options, catchUpRate(s.rate))
	}
	w := newWorld(t, options...)
	s.prepare(w)
	h := w.host("acting")
	var last string
	stop := breaks[how](h, k, func() {
		then := s.then
		if then == nil {
			then = func(h *host) error { return h.tick() }
		}
		w.must(then(w.host("other")))
		w.advance(8*time.Second, 2*time.Second, "other")
	})
	h.before = func(op operation) faulty.Fault {
		if op.n == k {
			last, met, writes = op.text(), true, op.writes()
		}
		return stop(op)
	}
	err := s.act(h)
	if how == "crash" {
		delete(w.hosts, "acting")
	} else {
		h.before = nil
	}
	if s.then != nil && how != "stopped" {
		w.must(s.then(w.host("other")))
	}
	wrong := w.check(w.now() - 1<<40) // nothing is owed yet, but all else holds
	wrong = append(wrong, w.settle()...)
	if len(wrong) > 0 {
		t.Errorf("%s, %s at operation %d (%s, answer %v):\n%s", s.name, how, k, last, err, strings.Join(wrong, "\n"))
	}
	return met, writes
}
