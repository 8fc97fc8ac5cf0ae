package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// missing is a job whose missed fires the job "tell" is told of.
func missing(spec *schedule.Spec, mode job.CatchUpMode, window time.Duration) job.Definition {
	def := definition(spec, 1)
	def.CatchUp = job.CatchUp{Mode: mode, Window: schedule.Duration(window)}
	def.On.Missed = &job.Callback{Job: "tell"}
	return def
}

// misses puts the jobs, and has nobody there for nine minutes.
func misses(mode job.CatchUpMode, window time.Duration, change ...func(*job.Definition)) func(w *world) {
	return func(w *world) {
		api := w.host("api")
		def := missing(until(13*time.Minute, every(time.Minute)), mode, window)
		for _, c := range change {
			c(&def)
		}
		w.must(api.put(tenant, "tell", definition(nil, 1)))
		w.must(api.put(tenant, "a", def))
		w.advance(90*time.Second, 10*time.Second, "before")
		w.elapsed += 9 * time.Minute
	}
}

// drops are acts that record missed fires, of which another job is told.
func drops() []scenario {
	tick := func(h *host) error { return h.tick() }
	one := misses(job.CatchUpOne, 0)
	return []scenario{
		{name: "missed_one", prepare: one, act: tick},
		{name: "missed_one_far_ahead", lookAhead: 150 * time.Second, prepare: one, act: tick},
		{name: "missed_all_in_a_window", prepare: misses(job.CatchUpAll, 6*time.Minute), act: tick},
		{name: "missed_none", prepare: misses(job.CatchUpNone, 0), act: tick},
		{name: "missed_by_an_edit", prepare: one, act: func(h *host) error {
			return h.put(tenant, "a", missing(until(13*time.Minute, every(20*time.Second)), job.CatchUpNone, 0))
		}, then: tick},
		{name: "missed_while_it_is_edited", prepare: one, act: tick, then: func(h *host) error {
			return h.put(tenant, "a", definition(until(13*time.Minute, every(20*time.Second)), 2))
		}},
		{name: "missed_while_it_is_deleted", prepare: one, act: tick, then: func(h *host) error { return h.delete(tenant, "a") }},
		{name: "missed_while_its_callee_is_paused", prepare: one, act: tick, then: func(h *host) error { return h.pause(tenant, "tell") }},
		{name: "missed_while_its_callee_is_deleted", prepare: one, act: tick, then: func(h *host) error { return h.delete(tenant, "tell") }},
	}
}

// TestC1_C2_Fault01_Fault02_Fault11_EachDropThatIsBroken breaks each operation of each act that records missed fires, in each way: what tells of them runs all the
// same, and once.
func TestC1_C2_Fault01_Fault02_Fault11_EachDropThatIsBroken(t *testing.T) {
	for _, s := range drops() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.everyOperation(t)
		})
	}
}

// toldOfMissed are the payloads of the runs that tell of missed fires, in the order of these.
func (w *world) toldOfMissed() (all []run.Told) {
	w.Helper()
	for _, r := range w.runs() {
		if r.Callback.Event != string(job.OnMissed) {
			continue
		}
		var told run.Told
		w.must(json.Unmarshal(r.Payload.Inline, &told))
		if r.State != run.Succeeded || told.Missed == nil {
			w.Errorf("%s is %s, and told %s", r.ID, r.State, r.Payload.Inline)
			continue
		}
		all = append(all, told)
	}
	slices.SortFunc(all, func(a, b run.Told) int { return a.Missed.First.Compare(b.Missed.First) })
	return all
}

// A whole stretch is told of at once, with how many fires it had, and soon.
func TestC2_Fault17_AStretchOfMissedFiresIsToldOfOnce(t *testing.T) {
	w := newWorld(t)
	misses(job.CatchUpOne, 0)(w)
	w.advance(6*time.Second, 2*time.Second, "ticks")
	w.work()
	all := w.toldOfMissed()
	if len(all) != 1 {
		t.Fatalf("told of %+v", all)
	}
	if m := all[0].Missed; m.Count != 8 || !m.First.Equal(base.Add(2*time.Minute)) || !m.Last.Equal(base.Add(9*time.Minute)) || all[0].Run.State != "skipped" || all[0].Run.Job != "a" ||
		all[0].Run.Reason != "missed: only the newest fire runs" {
		t.Errorf("told of %+v, of %+v", *m, all[0])
	}
	w.elapsed += 20 * time.Minute
	w.advance(time.Minute, 10*time.Second, "ticks")
	if all := w.toldOfMissed(); len(all) != 2 {
		t.Errorf("after another outage told of %+v", all)
	}
	w.wants(w.settle())
}

// Whoever has recorded missed fires dies behind that, and nobody is there for longer than a request would be asked about.
func TestC1_Fault01_Fault17_WhatTellsOfMissedFiresOutlivesALongOutage(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "tell", definition(nil, 1)))
	w.must(w.host("api").put(tenant, "a", missing(until(4*time.Minute, every(time.Minute)), job.CatchUpNone, 0)))
	w.advance(90*time.Second, 10*time.Second, "before")
	w.elapsed += 9 * time.Minute
	w.diesBehind(run.FireID("a", base.Add(2*time.Minute).UnixMilli()).Key(tenant).String(), func(h *host) error { return h.tick() })
	w.elapsed += 30 * time.Hour
	w.wants(w.settle())
	if all := w.toldOfMissed(); len(all) != 1 || all[0].Missed.Count != 2 {
		t.Errorf("told of %+v", all)
	}
}

// A clock that was ahead has dropped fires, and is set back. What it recorded is told of, whoever has the say over these fires now: the generation that dropped them,
// whose decision holds, or another one, for which they run.
func TestC1_C2_Fault08_Fault09_WhatAClockAheadHasDroppedIsToldOf(t *testing.T) {
	for name, edits := range map[string]bool{"and holds": false, "and runs by an edit": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocks(oracle.AnyClock))
			w.must(w.host("api").put(tenant, "tell", definition(nil, 1)))
			w.must(w.host("api").put(tenant, "often", missing(until(16*time.Minute, every(10*time.Second)), job.CatchUpOne, 0)))
			w.advance(30*time.Second, time.Second, "ticks")
			w.elapsed += time.Second
			w.stepped = 20 * time.Minute
			w.unfinished("ahead")
			w.stepped = 0
			if edits {
				w.must(w.host("api").put(tenant, "often", missing(until(16*time.Minute, every(10*time.Second)), job.CatchUpNone, 0)))
			}
			w.advance(40*time.Minute, 5*time.Second, "ticks")
			w.work()
			all := w.toldOfMissed()
			if len(all) != 1 || all[0].Missed.Count < 90 {
				t.Errorf("told of %+v", all)
			}
			if ran := len(w.runs()); edits && ran < 90 {
				t.Errorf("%d runs, want the fires of the edit too", ran)
			}
			w.wants(w.check(w.now() - time.Hour.Milliseconds()/2))
		})
	}
}

// So many others end meanwhile that an end that is to have its job recover is overtaken again and again. What stands in its way is the record of that, and no run: the
// end comes through, and its run is not tried again.
func TestC1_P7_AnEndThatIsOvertakenByOthersComesThrough(t *testing.T) {
	w := newWorld(t)
	recovers(w)
	h, overtaken := w.host("acting"), 0
	h.before = func(op operation) faulty.Fault {
		if op.writes() && strings.Contains(op.text(), "down#") && overtaken < 12 {
			overtaken++
			key := run.DownKey(tenant, "a")
			items, err := w.kept.Get(context.Background(), key)
			w.must(err)
			_, err = w.kept.Write(context.Background(), store.Op{Kind: store.Put, Key: key, If: store.Any, Value: items[0].Value, Attempt: w.newID()})
			w.must(err)
		}
		return faulty.Fault{}
	}
	if err := h.worker.Pass(h.life, 0); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.work()
	recovered := 0
	for _, r := range w.runs() {
		if r.ID.Job == "a" && r.State == run.Succeeded && r.Attempt != 1 {
			t.Errorf("%s took %d attempts", r.ID, r.Attempt)
		}
		if r.Callback.Event == string(job.OnRecovered) {
			recovered++
		}
	}
	if overtaken != 12 || recovered != 1 {
		t.Errorf("overtaken %d times, and %d runs tell that the job has recovered", overtaken, recovered)
	}
}
