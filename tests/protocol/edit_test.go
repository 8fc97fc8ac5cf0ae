package protocol_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// wants fails the test with what is wrong.
func (w *world) wants(wrong []string) {
	w.Helper()
	if len(wrong) > 0 {
		w.Errorf("%s", strings.Join(wrong, "\n"))
	}
}

// While no tick runs, an edit has no published horizon above it: it may claim nothing that the next edit would not look for.
// Here it is stopped at each of its operations, a newer edit is answered meanwhile, and it wakes.
func TestP8_edits_without_ticks_claim_nothing_beyond_the_horizon(t *testing.T) {
	for k, more := 1, true; more; k++ {
		more = false
		w := newWorld(t)
		w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(10*time.Second)), 1)))
		w.elapsed += 15 * time.Second
		w.must(w.host("ticks").tick()) // the last for a while
		h := w.host("acting")
		h.before = func(op operation) faulty.Fault {
			if op.n == k {
				more = true
				w.elapsed += 4 * time.Second
				w.must(w.host("api").pause(tenant, "a"))
				w.elapsed += 8 * time.Second
			}
			return faulty.Fault{}
		}
		err := h.put(tenant, "a", definition(until(time.Minute, every(time.Second)), 2))
		h.before = nil
		w.work()
		if wrong := w.settle(); len(wrong) > 0 {
			t.Errorf("stopped at operation %d (%v): %s", k, err, strings.Join(wrong, "\n"))
		}
	}
}

// stuckAt is a schedule whose fires stop advancing at an instant.
type stuckAt struct {
	job.Fires
	at time.Time
}

func (s stuckAt) Next(after time.Time) (time.Time, bool) {
	if !after.Before(s.at) {
		return s.at, true
	}
	return s.Fires.Next(after)
}

// stuck makes every schedule of 13 seconds stop advancing at a minute.
func stuck(w *world) {
	w.compile = func(spec schedule.Spec) (job.Fires, error) {
		fires, err := job.Compile(spec)
		if err == nil && spec.Every == schedule.Duration(13*time.Second) {
			return stuckAt{fires, base.Add(65 * time.Second)}, nil
		}
		return fires, err
	}
}

func TestFault16_Fault29_a_next_fire_that_does_not_advance_parks_its_job_alone(t *testing.T) {
	w := newWorld(t, stuck)
	api := w.host("api")
	w.must(api.put(tenant, "stuck", definition(every(13*time.Second), 1)))
	w.must(api.put(tenant, "sound", definition(every(10*time.Second), 1)))
	w.advance(6*time.Minute, 2*time.Second, "ticks") // past its first sweep
	if j := w.job(tenant, "stuck"); !strings.Contains(j.Fault, "does not advance") {
		t.Errorf("the job's fault is %q, want one that says that its next fire does not advance", j.Fault)
	}
	if swept := w.shard().Swept[0]; swept < w.now()-4*60_000 {
		t.Errorf("the first sweep has come to %s at %s, want it to go on", clock(swept), clock(w.now()))
	}
	ran := 0
	for _, s := range w.starts {
		if s.id.Job == "sound" {
			ran++
		}
	}
	if ran != 36 {
		t.Errorf("the other job ran %d times in six minutes, want 36", ran)
	}
	before := len(w.starts)
	if err := api.put(tenant, "stuck", definition(every(10*time.Second), 2)); err != nil {
		t.Fatalf("a sound definition for the parked job: %v", err)
	}
	w.advance(time.Minute, time.Second, "ticks")
	revived := 0
	for _, s := range w.starts[before:] {
		if s.id.Job == "stuck" {
			revived++
		}
	}
	if j := w.job(tenant, "stuck"); revived != 6 || j.Fault != "" {
		t.Errorf("with its new definition it ran %d times in a minute, fault %q, want 6 and none", revived, j.Fault)
	}
	if _, err := w.host("fresh").ticker.Recover(t.Context(), w.now(), nil); err != nil {
		t.Errorf("the recovery after a start: %v", err)
	}
}

// A request stops for minutes before its first write, which then lands behind the first sweep, and dies with its run put. The second sweep
// comes upon a minute that has changed: the run goes on, and is listed with what the first one had seen there.
func TestP4_P11_Fault24_what_only_a_later_sweep_finds_is_listed(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "j", definition(nil, 1)))
	w.must(w.host("api").trigger(tenant, "j", 0))
	h := w.host("slow")
	slept, dead := false, false
	h.before = func(op operation) faulty.Fault {
		if !slept && op.writes() && strings.Contains(op.text(), "due#") {
			slept = true
			w.advance(6*time.Minute, 10*time.Second, "ticks")
		}
		if dead {
			return faulty.Fault{Refuse: errCrashed}
		}
		dead = op.writes() && strings.Contains(op.text(), "run#")
		return faulty.Fault{}
	}
	if err := h.trigger(tenant, "j", 0); err == nil || !slept || !dead {
		t.Fatalf("the request ended with %v; slept %t, died %t", err, slept, dead)
	}
	w.advance(20*time.Minute, 10*time.Second, "ticks")
	if n := len(w.starts); n != 2 {
		t.Errorf("%d runs started, want both", n)
	}
	w.wants(w.checkListed())
}

// A start sends what an earlier process had in its queue, and not what has been asked of itself.
func TestP4_Fault24_a_start_sends_what_was_queued_before_it(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("before").put(tenant, "j", definition(nil, 1)))
	w.must(w.host("before").trigger(tenant, "j", 0))
	w.elapsed += time.Second
	since := w.now()
	w.must(w.host("after").trigger(tenant, "j", 0))
	repairs, err := w.host("after").ticker.Recover(t.Context(), since, nil)
	if err != nil || repairs.Resent != 1 {
		t.Errorf("%d runs were sent again (%v), want the one that was asked for before the start", repairs.Resent, err)
	}
	w.work()
	w.wants(nil)
}

// A clock that was ahead and is set right: the cursors are then ahead of it, and all that is asked for now must still be found.
func TestP2_P4_Fault08_Fault09_what_is_asked_for_after_a_step_back_is_found(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	api := w.host("api")
	w.must(api.put(tenant, "old", definition(until(3*time.Hour, every(10*time.Minute)), 1)))
	w.advance(30*time.Second, time.Second, "ticks")
	w.stepped = 3 * time.Hour
	for range 200 { // until the sweeps have caught up with the wrong time
		w.elapsed += time.Second
		w.must(w.host("ticks").tick())
		w.work()
	}
	w.stepped = 0
	starts := len(w.starts)
	w.advance(10*time.Second, time.Second, "ticks")
	if again := len(w.starts) - starts; again > 0 {
		t.Errorf("%d runs started again after the step back", again)
	}
	from := w.now()
	w.must(api.put(tenant, "new", definition(until(20*time.Minute, every(time.Minute)), 1)))
	w.must(api.trigger(tenant, "new", 3*time.Minute))
	// An edit that stops behind its first write.
	w.stop("broken", 5, func(h *host) error {
		err := h.put(tenant, "half", definition(until(20*time.Minute, every(time.Minute)), 1))
		if !errors.Is(err, errCrashed) {
			t.Fatalf("the edit ended with %v", err)
		}
		return err
	})
	w.advance(15*time.Minute, 5*time.Second, "ticks")
	count := map[string]int{}
	for _, s := range w.starts {
		if s.id.Nominal > from {
			count[s.id.Job]++
		}
	}
	if count["new"] != 16 || count["half"] < 10 {
		t.Errorf("in 15 minutes after the step back: %v runs, want 15 and the one asked for of new, most of half", count)
	}
	w.wants(w.check(from))
}

// A run that was opened again in a paused job waits for a worker, is held by a check, cancelled, and opened once more: it is held as before,
// and its mark, which no claim of the paused job passes, does not go back (make sim SEED=161334521950).
func TestP6_P8_a_run_that_a_pause_holds_is_opened_again(t *testing.T) {
	w := newWorld(t)
	api := w.host("api")
	w.must(api.put(tenant, "a", definition(nil, 1)))
	asked, _, err := api.order(tenant, "a", control.Request{})
	w.must(err)
	w.must(api.pause(tenant, "a"))
	act := func(op oracle.Op, do func() error) {
		t.Helper()
		w.must(w.request(oracle.Request{Op: op, Tenant: tenant, Job: "a", Run: asked.ID.String()}, func(*oracle.Answer) error { return do() }))
	}
	cancel := func() error { _, err := api.control.Cancel(t.Context(), tenant, asked.ID, ""); return err }
	retry := func() error {
		_, err := api.control.Retry(t.Context(), tenant, asked.ID, false, time.Time{})
		return err
	}
	act(oracle.Cancel, cancel)
	act(oracle.Retry, retry)
	for range 40 { // minutes without a worker
		w.elapsed += time.Minute
		w.must(w.host("ticks").tick())
	}
	held, _ := w.run(tenant, asked.ID)
	act(oracle.Cancel, cancel)
	act(oracle.Retry, retry)
	again, _ := w.run(tenant, asked.ID)
	if held.State != run.Scheduled || again.State != run.Scheduled || again.Generation < held.Generation {
		t.Fatalf("held as %s under %d, and then %s under %d", held.State, held.Generation, again.State, again.Generation)
	}
	w.must(api.resume(tenant, "a"))
	w.advance(16*time.Minute, 20*time.Second, "ticks")
	if n := len(w.starts); n != 1 {
		t.Errorf("%d runs started after the resume, want the one", n)
	}
	w.wants(w.check(w.now()))
}
