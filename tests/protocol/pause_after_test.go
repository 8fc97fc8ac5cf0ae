package protocol_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// pausing is a job on demand that is paused after two bad ends, and each of its runs is one.
func pausing(change ...func(*job.Definition)) job.Definition {
	def := definition(nil, 1)
	refuses(&def)
	def.PauseAfter = 2
	for _, c := range change {
		c(&def)
	}
	return def
}

// byNoKey has a job's runs end since the key of their gate cannot be told.
func byNoKey(def *job.Definition) {
	*def = oneAtATime(*def)
	def.Overlap.Key = "${ .labels.customer }"
}

// again is asks, the end of that run, and as many more that are asked for.
func again(def job.Definition, more int) func(w *world) {
	return func(w *world) {
		asks(def)(w)
		w.work()
		for range more {
			w.must(w.host("api").trigger(tenant, "a", 0))
		}
		w.elapsed += 100 * time.Millisecond
	}
}

// badEnds are acts that end a run, for which its job is to be paused, or is not.
func badEnds() []scenario {
	pass := func(h *host) error { return h.worker.Pass(h.life, 0) }
	dies := func(w *world) { // the second in its attempt
		again(pausing(atMostOnce), 1)(w)
		started := false
		if !w.dies(func(op operation) bool {
			ends := started && op.writes()
			started = started || writesRun("a#")(op)
			return ends
		}) {
			w.Fatal("the worker did not come to an end")
		}
	}
	return []scenario{
		{name: "bad_end", prepare: asks(pausing()), act: pass},
		{name: "bad_end_that_pauses", prepare: again(pausing(), 1), act: pass},
		{name: "bad_end_that_pauses_at_a_gate", prepare: again(oneAtATime(pausing()), 1), act: pass},
		{name: "bad_end_by_its_key", prepare: again(pausing(byNoKey), 1), act: pass},
		{name: "bad_end_that_pauses_and_calls", prepare: again(pausing(func(def *job.Definition) { def.On = telling().On }), 1), act: pass},
		{name: "bad_end_beside_another", prepare: again(pausing(), 2), act: pass, then: pass},
		{name: "bad_end_while_it_is_edited", prepare: again(pausing(), 1), act: pass, then: func(h *host) error {
			return h.put(tenant, "a", pausing(func(def *job.Definition) { def.Description = "other" }))
		}},
		{name: "bad_end_while_it_is_paused", prepare: again(pausing(), 1), act: pass, then: func(h *host) error { return h.pause(tenant, "a") }},
		{name: "bad_end_while_it_is_deleted", prepare: again(pausing(), 1), act: pass, then: func(h *host) error { return h.delete(tenant, "a") }},
		{name: "bad_end_by_its_message", prepare: func(w *world) {
			dies(w)
			w.elapsed += 70 * time.Second
		}, act: pass},
		{name: "bad_end_by_its_check", prepare: func(w *world) {
			dies(w)
			w.elapsed += 40 * time.Second
			for _, r := range w.runs() {
				w.must(w.host("calm").dispatch.Arm(context.Background(), timer.NewCheck(tenant, r.ID, w.now())))
			}
		}, act: func(h *host) error { return h.tick() }},
	}
}

// TestP8_Fault01_Fault02_Fault11_EachBadEndIsCountedOnce breaks each operation of each act that ends a run badly, in each way: it is counted once, and the job is
// paused for the second one, and for no other.
func TestP8_Fault01_Fault02_Fault11_EachBadEndIsCountedOnce(t *testing.T) {
	for _, s := range badEnds() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.everyOperation(t)
		})
	}
}

// pausedBy are the reasons of the pause of "a", "" where it is not paused.
func (w *world) pausedBy() string {
	j, err := w.host("calm").control.Job(context.Background(), tenant, "a")
	w.must(err)
	if !j.Def.Paused {
		return ""
	}
	return j.Reason
}

// ends has a run of "a" end.
func (w *world) ends() run.Run {
	r, _, err := w.host("api").order(tenant, "a", control.Request{})
	w.must(err)
	w.work()
	ended, _ := w.run(tenant, r.ID)
	return ended
}

// What begins the count anew, and what does neither.
func TestP8_WhatPausesAJob(t *testing.T) {
	well := func(def *job.Definition) { def.Target = definition(nil, 1).Target }
	w := newWorld(t)
	edits := 0
	edit := func(change ...func(*job.Definition)) {
		edits++
		w.must(w.host("api").put(tenant, "a", pausing(append(change, func(def *job.Definition) { def.Description = strings.Repeat("x", edits) })...)))
	}
	edit()
	if r := w.ends(); r.State != run.Dead || w.pausedBy() != "" {
		t.Fatalf("one bad end (%s) has paused it: %q", r.State, w.pausedBy())
	}
	last := w.ends()
	if by := w.pausedBy(); by != "pause_after: 2 runs in a row ended badly, the last of them "+last.ID.String()+", which is dead" {
		t.Errorf("paused by %q", by)
	}
	w.must(w.host("api").resume(tenant, "a"))
	if w.ends(); w.pausedBy() != "" {
		t.Errorf("a resume does not begin anew: %q", w.pausedBy())
	}
	edit(well)
	w.ends()
	edit()
	if w.ends(); w.pausedBy() != "" {
		t.Errorf("an edit does not begin anew: %q", w.pausedBy())
	}
	if w.ends(); w.pausedBy() == "" {
		t.Error("two after it do not pause it")
	}
	w.wants(w.settle())
	if n := slices.IndexFunc(w.runs(), func(r run.Run) bool { return r.Pauses }); n < 0 {
		t.Error("no run says that it has paused its job")
	}
}

// A run that ends before its attempt, since its key cannot be told, pauses its job as soon as one whose attempt fails.
func TestP8_ARunThatItsKeyEndsPausesItsJob(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "a", pausing(byNoKey)))
	if r := w.ends(); r.Attempt != 0 || w.pausedBy() != "" {
		t.Fatalf("one bad end, after %d attempts, has paused it: %q", r.Attempt, w.pausedBy())
	}
	if r := w.ends(); !r.Pauses || w.pausedBy() == "" {
		t.Errorf("two have not paused it; the run is to: %v", r.Pauses)
	}
	w.wants(w.settle())
}

// A process that dies behind the end that is one bad one too many, and whose messages are lost with it, leaves the job to its next start, or to the first sweep.
func TestP8_Fault01_APauseSurvivesItsProcess(t *testing.T) {
	at := base.Add(10 * time.Second)
	for name, prepare := range map[string]func(w *world, def job.Definition){
		"of a fire": func(w *world, def job.Definition) {
			def.Schedule = &schedule.Spec{At: &at}
			w.must(w.host("api").put(tenant, "a", def))
			w.elapsed += 9 * time.Second
			w.must(w.host("ticks").tick())
			w.elapsed += time.Second
		},
		"of a request": func(w *world, def job.Definition) { asks(def)(w) },
	} {
		for by, mend := range map[string]func(w *world){
			"a start": func(w *world) {
				_, err := w.host("anew").ticker.Recover(t.Context(), w.now(), nil)
				w.must(err)
			},
			"a sweep": func(w *world) { w.advance(10*time.Minute, 10*time.Second, "anew") },
		} {
			t.Run(name+" by "+by, func(t *testing.T) {
				w := newWorld(t)
				prepare(w, pausing(func(def *job.Definition) { def.PauseAfter = 1 }))
				ends := writesRun("a#")
				ended := 0
				if !w.dies(func(op operation) bool {
					was := ended
					if ends(op) {
						ended++
					}
					return was == 2 // behind its start and its end
				}) {
					t.Fatal("the worker did not come to pause the job")
				}
				if r := w.runs(); len(r) != 1 || !r[0].Pauses || w.pausedBy() != "" {
					t.Fatalf("%+v is to have its job paused, which is not yet: %q", r, w.pausedBy())
				}
				w.queue = local.New(local.Config{Now: func() time.Time { return base.Add(w.elapsed) }})
				w.hosts = map[string]*host{}
				mend(w)
				if w.pausedBy() == "" {
					t.Error("the job goes on")
				}
				w.wants(w.settle())
			})
		}
	}
}
