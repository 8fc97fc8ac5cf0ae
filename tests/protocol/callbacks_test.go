package protocol_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// telling is a job on demand, whose ends the job "tell" is told of.
func telling(change ...func(*job.Definition)) job.Definition {
	def := definition(nil, 1)
	def.On = job.Callbacks{Succeeded: &job.Callback{Job: "tell"}, Failed: &job.Callback{Job: "tell"}, Recovered: &job.Callback{Job: "tell"}}
	for _, c := range change {
		c(&def)
	}
	return def
}

func refuses(def *job.Definition) {
	def.Target = target.Spec{Handler: &target.Handler{Name: "refuse"}}
	def.Retry.MaxAttempts = 1
}

func atMostOnce(def *job.Definition) { def.Guarantee = job.AtMostOnce }

// asks puts the jobs, and asks for a run of "a".
func asks(def job.Definition) func(w *world) {
	return func(w *world) {
		api := w.host("api")
		w.must(api.put(tenant, "tell", definition(nil, 1)))
		w.must(api.put(tenant, "a", def))
		w.must(api.trigger(tenant, "a", 0))
		w.elapsed += 100 * time.Millisecond
	}
}

// calls asks for a run of "a" whose end is to call "other".
func calls(after time.Duration) func(h *host) error {
	return func(h *host) error {
		_, _, err := h.order(tenant, "a", control.Request{Delay: &after, Key: "once", Callees: run.Callees{Succeeded: "other", Failed: "other"}})
		return err
	}
}

// callee puts the job "other" beside.
func callee(prepare func(*world)) func(w *world) {
	return func(w *world) {
		w.must(w.host("api").put(tenant, "other", definition(nil, 1)))
		prepare(w)
	}
}

// asksToCall puts the jobs, and asks for such a run.
func asksToCall(def job.Definition) func(w *world) {
	return func(w *world) {
		callee(asks(def))(w)
		w.work()
		w.must(calls(0)(w.host("api")))
		w.elapsed += 100 * time.Millisecond
	}
}

// hangs is asks, and a worker that dies in its attempt, before it can write the end.
func hangs(def job.Definition) func(w *world) {
	return func(w *world) {
		asks(def)(w)
		started := false
		if !w.dies(func(op operation) bool {
			ends := started && op.writes()
			started = started || writesRun("a#")(op)
			return ends
		}) {
			w.Fatal("the worker did not come to an end")
		}
	}
}

// recovers is a job whose last run was given up, and of which two are to run.
func recovers(w *world) {
	asks(telling(refuses))(w)
	w.work()
	api := w.host("api")
	w.must(api.put(tenant, "a", telling()))
	w.must(api.trigger(tenant, "a", 0))
	w.must(api.trigger(tenant, "a", 0))
	w.elapsed += 100 * time.Millisecond
}

// ends are acts that end a run, of which another job is told.
func ends() []scenario {
	pass := func(h *host) error { return h.worker.Pass(h.life, 0) }
	tick := func(h *host) error { return h.tick() }
	return []scenario{
		{name: "end_succeeded", prepare: asks(telling()), act: pass},
		{name: "end_dead", prepare: asks(telling(refuses)), act: pass},
		{name: "end_at_a_gate", prepare: asks(oneAtATime(telling(refuses))), act: pass},
		{name: "end_unknown_by_its_message", prepare: func(w *world) {
			hangs(telling(atMostOnce))(w)
			w.elapsed += 70 * time.Second
		}, act: pass},
		{name: "end_unknown_by_its_check", prepare: func(w *world) {
			hangs(telling(atMostOnce))(w)
			w.elapsed += 40 * time.Second
			for _, r := range w.runs() {
				w.must(w.host("calm").dispatch.Arm(context.Background(), timer.NewCheck(tenant, r.ID, w.now())))
			}
		}, act: tick},
		{name: "end_recovered", prepare: recovers, act: pass},
		{name: "end_recovered_beside_another", prepare: recovers, act: pass, then: func(h *host) error { return h.worker.Pass(h.life, 0) }},
		{name: "end_recovered_while_another_fails", prepare: func(w *world) {
			recovers(w)
			w.must(w.host("api").put(tenant, "a", telling(refuses)))
		}, act: pass, then: func(h *host) error { return h.worker.Pass(h.life, 0) }},
		{name: "end_of_a_request_that_calls", prepare: asksToCall(definition(nil, 1)), act: pass},
		{name: "end_of_a_request_that_calls_another", prepare: asksToCall(telling(refuses)), act: pass},
		{name: "request_that_calls", prepare: callee(asks(definition(nil, 1))), act: calls(0)},
		{name: "request_that_calls_later", prepare: callee(asks(definition(nil, 1))), act: calls(100 * time.Second), then: func(h *host) error { return h.put(tenant, "a", definition(nil, 2)) }},
		{name: "end_while_its_callee_is_paused", prepare: asks(telling()), act: pass, then: func(h *host) error { return h.pause(tenant, "tell") }},
		{name: "end_while_its_callee_is_deleted", prepare: asks(telling()), act: pass, then: func(h *host) error { return h.delete(tenant, "tell") }},
	}
}

// A worker dies behind the end, and nobody is there for longer than a request would be asked about.
func TestC1_Fault01_Fault17_ACallbackOutlivesALongOutage(t *testing.T) {
	w := newWorld(t)
	asks(telling())(w)
	ended := false
	if !w.dies(func(op operation) bool {
		before := ended
		ended = ended || op.writes() && strings.Contains(op.text(), "due#") && writesRun("a#")(op)
		return before
	}) {
		t.Fatal("the worker did not come behind the end")
	}
	w.elapsed += 30 * time.Hour
	if wrong := w.settle(); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
	told := slices.DeleteFunc(w.runs(), func(r run.Run) bool { return r.Callback.IsZero() })
	if len(told) != 1 || told[0].State != run.Succeeded || told[0].ID.Job != "tell" {
		t.Errorf("told by %+v", told)
	}
}

// Nobody is there for longer than runs are kept, when a callback has run and its minute is not swept yet. Whether it ran nothing shows any more: one of a
// job that promises never twice is left alone, any other runs once more. While the job is paused it is the same.
func TestC1_P5_Fault17_ACallbackThatRunsAtMostOnceNeverRunsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		guarantee job.Guarantee
		paused    bool
		unhandled bool // no tick came by before the outage either
		want      int
	}{
		"at least once":                        {guarantee: job.AtLeastOnce, want: 1},
		"at most once":                         {guarantee: job.AtMostOnce},
		"at most once, paused":                 {guarantee: job.AtMostOnce, paused: true},
		"at least once, no tick had come by":   {guarantee: job.AtLeastOnce, unhandled: true, want: 1},
		"at most once, no tick had come by":    {guarantee: job.AtMostOnce, unhandled: true},
		"at most once, paused, no tick before": {guarantee: job.AtMostOnce, paused: true, unhandled: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asks(telling())(w)
			tell := definition(nil, 1)
			tell.Guarantee = c.guarantee
			w.must(w.host("api").put(tenant, "tell", tell))
			w.work()
			if !c.unhandled {
				w.advance(10*time.Second, time.Second, "ticks")
			}
			if c.paused {
				w.must(w.host("api").pause(tenant, "tell"))
			}
			w.elapsed += 30 * time.Hour
			for _, r := range w.runs() { // their retention is over
				_, err := w.store.Write(context.Background(), store.Op{Kind: store.Delete, Key: r.ID.Key(r.Tenant)})
				w.must(err)
			}
			w.advance(80*time.Minute, time.Minute, "calm")
			again := w.runs()
			if len(again) != c.want {
				t.Errorf("made again: %+v, want %d", again, c.want)
			}
		})
	}
}

// TestC1_C2_Fault01_Fault02_Fault11_EachEndThatIsBroken breaks each operation of each act that ends a run, in each way: its callback runs all the same, and once.
func TestC1_C2_Fault01_Fault02_Fault11_EachEndThatIsBroken(t *testing.T) {
	for _, s := range ends() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.everyOperation(t)
		})
	}
}
