package protocol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// A claim of the first generation lies between two edits. The first edit sleeps behind its write, the second is answered, and then
// the first: its answer says that what is due after it runs as it defines, and the second looks no further back than its own instant.
func TestP2_P8_an_edit_that_was_overtaken_fences_up_to_the_newer_one(t *testing.T) {
	for k, more := 1, true; more; k++ {
		more = false
		w := newWorld(t, lookAhead(20*time.Second))
		w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(10*time.Second)), 1)))
		w.elapsed += 2 * time.Second
		w.must(w.host("ticks").tick()) // claims 10 and 20 s
		instant := w.now()
		h := w.host("acting")
		h.before = func(op operation) faulty.Fault {
			if op.n == k {
				more = true
				w.elapsed += 13 * time.Second // no worker has taken the run of 10 s yet
				w.must(w.host("api").put(tenant, "a", definition(until(time.Minute, every(10*time.Second)), 3)))
			}
			return faulty.Fault{}
		}
		w.must(h.put(tenant, "a", definition(until(time.Minute, every(10*time.Second)), 2)))
		h.before = nil
		first := w.generationAt(instant)
		answered := len(w.starts)
		w.work()
		for _, s := range w.starts[answered:] {
			if first != 0 && s.generation < first && s.id.Nominal > instant {
				t.Errorf("stopped at operation %d: %s runs by generation %d, after the answer to an edit of %s", k, show(s.id), s.generation, clock(instant))
			}
		}
		if wrong := w.settle(); len(wrong) > 0 {
			t.Errorf("stopped at operation %d: %v", k, wrong)
		}
	}
}

// generationAt is the generation of the edit of that instant, Unix ms; 0 where there is none.
func (w *world) generationAt(instant int64) int64 {
	j := w.job(tenant, "a")
	for i, past := range j.Past {
		if past.Until == instant && i+1 < len(j.Past) {
			return j.Past[i+1].Generation
		}
	}
	return 0
}

// A delete dies behind a run that it took back, and the name is used again, which cancels the run: of the definition that it waits for, which
// is the deletion's, nothing says how long it is kept. It is kept as long as by default, from when it was due.
func TestP1_what_a_delete_took_back_is_kept_when_it_is_cancelled(t *testing.T) {
	w := newWorld(t)
	w.must(w.host("api").put(tenant, "a", definition(every(time.Hour), 1)))
	asked, _, err := w.host("api").order(tenant, "a", control.Request{Delay: new(30 * time.Second)})
	w.must(err)
	w.diesBehind(asked.ID.Key(tenant).String(), func(h *host) error { return h.delete(tenant, "a") })
	w.diesBehind(job.Key(tenant, "a").String(), func(h *host) error { return h.put(tenant, "a", definition(every(time.Hour), 2)) })
	ended, _ := w.run(tenant, asked.ID)
	if kept := time.UnixMilli(ended.Expires).Sub(asked.ID.Time()); ended.State != run.Cancelled || kept != job.DefaultRetention {
		t.Errorf("the run is %s and is kept for %s, want cancelled and %s", ended.State, kept, job.DefaultRetention)
	}
	w.wants(w.check(w.now()))
}

// Fires are claimed by a clock that is ahead, which is set back then. A delete dies behind its write, and is repeated: it takes back what
// had been claimed, though that lies far beyond where ticks of now can have claimed.
func TestP8_Fault09_a_repeated_delete_takes_back_what_a_clock_ahead_had_claimed(t *testing.T) {
	w := newWorld(t, clocks(oracle.AnyClock))
	w.must(w.host("api").put(tenant, "a", definition(every(10*time.Second), 1)))
	w.elapsed += 5 * time.Second
	w.stepped = 12 * time.Minute
	w.must(w.host("ticks").tick())
	w.stepped = 0
	w.diesBehind("", func(h *host) error { return h.delete(tenant, "a") })
	w.elapsed += 2 * time.Minute
	if err := w.host("api").delete(tenant, "a"); err != nil && !strings.Contains(err.Error(), "no job") {
		t.Fatal(err)
	}
	answered := len(w.starts)
	w.advance(15*time.Minute, 30*time.Second, "ticks")
	if n := len(w.starts) - answered; n > 0 {
		t.Errorf("%d runs started after the answer to the delete, want none", n)
	}
	w.wants(w.check(w.now()))
}

// diesBehind has a host do something that dies behind its first write that names a key, any key for "".
func (w *world) diesBehind(key string, do func(*host) error) {
	w.Helper()
	h, wrote := w.restart("dies"), false
	h.before = func(op operation) faulty.Fault {
		if wrote {
			return faulty.Fault{Refuse: errCrashed}
		}
		wrote = op.writes() && strings.Contains(op.text(), key)
		return faulty.Fault{}
	}
	if err := do(h); err == nil || !wrote {
		w.Fatalf("a host was to die behind a write of %q: it wrote: %v, and gave %v", key, wrote, err)
	}
	delete(w.hosts, "dies")
}
