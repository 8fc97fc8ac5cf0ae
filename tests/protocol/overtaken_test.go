package protocol_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store/faulty"
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
