package protocol_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// within has the job "tell" told of failures and missed fires once for a window of so long.
func within(window time.Duration, def job.Definition) job.Definition {
	called := job.Callback{Job: "tell", Window: schedule.Duration(window)}
	def.On.Failed, def.On.Missed = &called, &called
	return def
}

// fail puts jobs, of which so many runs each are given up within a window of a minute. One is left, which a worker is to end yet.
func fail(runs int, names ...string) func(w *world) {
	return func(w *world) {
		api := w.host("api")
		w.must(api.put(tenant, "tell", definition(nil, 1)))
		w.elapsed += 10 * time.Second
		for _, name := range names {
			def := definition(nil, 1)
			refuses(&def)
			w.must(api.put(tenant, name, within(time.Minute, def)))
			for range runs {
				w.must(api.trigger(tenant, name, 0))
			}
		}
		w.elapsed += 100 * time.Millisecond
		w.work()
		w.must(api.trigger(tenant, names[0], 0))
	}
}

// wakes is fail, when a tick is to come upon what waits.
func wakes(runs int, names ...string) func(w *world) {
	return func(w *world) {
		fail(runs, names...)(w)
		w.work()
		w.advance(40*time.Second, 10*time.Second, "before")
		for !slices.ContainsFunc(w.waitingTimers(), func(t timer.Timer) bool { return t.Wake <= w.host("before").dispatch.HorizonAt(w.now()) }) {
			w.elapsed += time.Second
		}
	}
}

// waitingTimers are those of callbacks that wait for others.
func (w *world) waitingTimers() (waiting []timer.Timer) {
	for _, item := range w.items("due#") {
		if t, err := timer.FromItem(item); err == nil && t.Waits() {
			waiting = append(waiting, t)
		}
	}
	return waiting
}

// gathers are acts that write callbacks with a window, or have them told together.
func gathers() []scenario {
	pass := func(h *host) error { return h.worker.Pass(h.life, 0) }
	tick := func(h *host) error { return h.tick() }
	missed := func(w *world) {
		api := w.host("api")
		w.must(api.put(tenant, "tell", definition(nil, 1)))
		for _, name := range []string{"a", "b"} {
			def := definition(until(13*time.Minute, every(time.Minute)), 1)
			def.CatchUp.Mode = job.CatchUpNone
			w.must(api.put(tenant, name, within(time.Minute, def)))
		}
		w.advance(90*time.Second, 10*time.Second, "before")
		w.elapsed += 9 * time.Minute
	}
	return []scenario{
		{name: "end_in_a_window", prepare: fail(1, "a"), act: pass},
		{name: "missed_in_a_window", prepare: missed, act: tick},
		{name: "window_of_one", prepare: wakes(0, "a"), act: tick},
		{name: "window_of_several", prepare: wakes(1, "a", "b"), act: tick},
		{name: "window_far_ahead", lookAhead: 150 * time.Second, prepare: wakes(1, "a", "b"), act: tick},
		{name: "window_of_more_than_a_write_takes", prepare: wakes(60, "a", "b"), act: tick},
		{name: "window_while_its_callee_is_paused", prepare: wakes(1, "a", "b"), act: tick, then: func(h *host) error { return h.pause(tenant, "tell") }},
		{name: "window_while_its_callee_is_deleted", prepare: wakes(1, "a", "b"), act: tick, then: func(h *host) error { return h.delete(tenant, "tell") }},
	}
}

// TestC1_C2_Fault01_Fault02_Fault11_EachWindowThatIsBroken breaks each operation of each act around a window, in each way: each end is told of all the same, and once.
func TestC1_C2_Fault01_Fault02_Fault11_EachWindowThatIsBroken(t *testing.T) {
	for _, s := range gathers() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.everyOperation(t)
		})
	}
}

// toldTogether are the payloads of the runs that tell of several.
func (w *world) toldTogether() (all []run.Told) {
	w.Helper()
	for _, r := range w.runs() {
		if r.Callback.IsZero() {
			continue
		}
		var told run.Told
		w.must(json.Unmarshal(r.Payload.Inline, &told))
		if r.State != run.Succeeded || told.Window == nil || told.Count != r.Callback.Count {
			w.Errorf("%s is %s, and told %s", r.ID, r.State, r.Payload.Inline)
		}
		all = append(all, told)
	}
	return all
}

// A storm of ends in one window is one call, which counts all of them, and names the first.
func TestC2_AStormIsToldOfOnce(t *testing.T) {
	w := newWorld(t)
	fail(150, "a", "b")(w)
	w.work()
	if n := len(w.waitingTimers()); n != 301 {
		t.Fatalf("%d callbacks wait", n)
	}
	w.advance(45*time.Second, 5*time.Second, "ticks")
	if all := w.toldTogether(); len(all) != 0 {
		t.Errorf("before the window was over, told %+v", all)
	}
	w.advance(20*time.Second, 5*time.Second, "ticks")
	all := w.toldTogether()
	if len(all) != 1 {
		t.Fatalf("told in %d calls", len(all))
	}
	told := all[0]
	if told.Count != 301 || told.Jobs["a"] != 151 || told.Jobs["b"] != 150 || len(told.Jobs) != 2 || len(told.Runs) != run.MaxTogether || told.Run.ID != told.Runs[0].ID ||
		!told.Window.From.Equal(base) || !told.Window.Until.Equal(base.Add(time.Minute)) || told.Event != job.OnFailed {
		t.Errorf("told %+v", told)
	}
	if n := len(w.waitingTimers()); n != 0 {
		t.Errorf("%d callbacks wait behind that", n)
	}
	w.wants(w.settle())
}

// What tells another job, of another event, in another window or of another tenant is told apart, though it is over at the same time.
func TestC2_WindowsAreToldApart(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	for _, name := range []string{"tell", "other"} {
		w.must(api.put(tenant, name, definition(nil, 1)))
		w.must(api.put(other, name, definition(nil, 1)))
	}
	refusing := definition(nil, 1)
	refuses(&refusing)
	for i, of := range []struct {
		tenant, callee string
		window         time.Duration
	}{{tenant, "tell", time.Minute}, {tenant, "tell", time.Minute}, {tenant, "tell", 2 * time.Minute}, {tenant, "other", time.Minute}, {other, "tell", time.Minute}} {
		def := refusing
		def.On.Failed = &job.Callback{Job: of.callee, Window: schedule.Duration(of.window)}
		name := fmt.Sprint("a", i)
		w.must(api.put(of.tenant, name, def))
		w.elapsed = max(w.elapsed, 61*time.Second) // the longer one ends with the others
		w.must(api.trigger(of.tenant, name, 0))
	}
	w.elapsed += 100 * time.Millisecond
	w.work()
	w.advance(80*time.Second, 5*time.Second, "ticks")
	var counts []int
	for _, told := range w.toldTogether() {
		counts = append(counts, told.Count)
	}
	if slices.Sort(counts); !slices.Equal(counts, []int{1, 1, 1, 2}) {
		t.Errorf("told of %v", counts)
	}
	w.wants(w.settle())
}

// After an outage one call tells of all jobs that missed fires.
func TestC2_Fault17_MissedFiresOfSeveralJobsAreToldOfOnce(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.put(tenant, "tell", definition(nil, 1)))
	for i := range 30 {
		def := definition(until(13*time.Minute, every(time.Minute)), 1)
		def.CatchUp.Mode = job.CatchUpNone
		w.must(api.put(tenant, fmt.Sprint("a", i), within(time.Minute, def)))
	}
	w.advance(90*time.Second, 10*time.Second, "before")
	w.elapsed += 9 * time.Minute
	w.advance(90*time.Second, 5*time.Second, "ticks")
	all := w.toldTogether()
	if len(all) != 1 {
		t.Fatalf("told in %d calls", len(all))
	}
	if told := all[0]; told.Count != 30 || len(told.Jobs) != run.MaxTogether || told.Missed == nil || told.Runs[19].Missed == nil || told.Runs[19].Missed.Count != told.Missed.Count {
		t.Errorf("told %+v", told)
	}
	w.wants(w.settle())
}

// Nobody is there for longer than a request would be asked about: what waited is told.
func TestC1_Fault01_Fault17_AWindowOutlivesALongOutage(t *testing.T) {
	w := newWorld(t)
	wakes(2, "a", "b")(w)
	w.elapsed += 30 * time.Hour
	w.wants(w.settle())
	if all := w.toldTogether(); len(all) != 1 || all[0].Count != 5 {
		t.Errorf("told %+v", all)
	}
}

// ending asks for a run that is to be given up, and has a worker write its end at one instant (since base) that it decided on at another.
func (w *world) ending(decided, written time.Duration) {
	w.Helper()
	w.elapsed = decided
	w.must(w.host("api").trigger(tenant, "a", 0))
	w.elapsed += 10 * time.Millisecond
	h, slept := w.host("slow"), false
	h.before = func(op operation) faulty.Fault {
		if op.writes() && writesRun("a#")(op) && strings.Contains(op.text(), "due#") && !slept {
			slept = true
			for w.elapsed < written {
				w.elapsed = min(w.elapsed+time.Second, written)
				w.must(w.host("ticks").tick())
			}
		}
		return faulty.Fault{}
	}
	w.must(h.worker.Pass(h.life, 0))
	h.before = nil
	if !slept {
		w.Fatal("the end was not written")
	}
}

// What ends in a window's last moment is told of with the others, and its timer lies where no tick has been, however far these look ahead.
func TestC1_WhatEndsInAWindowsLastMomentIsToldWithIt(t *testing.T) {
	for _, ahead := range []time.Duration{2 * time.Second, 150 * time.Second} {
		w := newWorld(t, lookAhead(ahead))
		fail(1, "a")(w)
		w.work()
		w.must(w.host("ticks").tick())
		w.ending(59*time.Second+900*time.Millisecond, 61*time.Second)
		w.advance(10*time.Second+ahead, time.Second, "ticks")
		if all := w.toldTogether(); len(all) != 1 || all[0].Count != 3 {
			t.Errorf("with a look-ahead of %s, told %+v", ahead, all)
		}
		w.wants(w.settle())
	}
}

// Ends whose writes come when the ticks are past their window are told of when a sweep comes by, or where none may come any more, a moment later.
func TestC1_C2_Fault12_WhatIsWrittenBehindItsWindowIsToldAllTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		written, told time.Duration
	}{
		"a sweep comes by": {75 * time.Second, 3 * time.Minute},
		"none may":         {99 * time.Second, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			fail(1, "a")(w)
			w.work()
			w.ending(58*time.Second, c.written)
			w.work()
			if all := w.toldTogether(); len(all) != 1 || all[0].Count != 2 {
				t.Errorf("told %+v before", all)
			}
			w.advance(c.told, time.Second, "ticks")
			if all := w.toldTogether(); len(all) != 2 || all[0].Count+all[1].Count != 3 {
				t.Errorf("told %+v", all)
			}
			w.wants(w.settle())
		})
	}
}
