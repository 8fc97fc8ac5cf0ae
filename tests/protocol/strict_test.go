package protocol_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A worker dies at any of its writes while a run of a strict job ends badly, and again while that is retried. Whatever is lost, the next run starts behind the success of the retry, and not before.
func TestG2_G3_Fault01_a_crash_at_each_write_while_a_line_stands_still(t *testing.T) {
	last := false
	for at := 0; !last && at < 100; at++ {
		w := newWorld(t)
		api := w.host("api")
		def := passing(job.Overlap{Policy: job.OverlapStrict})
		def.Retry = job.Retry{MaxAttempts: 1}
		good := def.Target
		def.Target = target.Spec{Handler: &target.Handler{Name: "refuse"}}
		w.must(api.put(tenant, "a", def))
		first := api.asks("a")
		w.elapsed += time.Second
		second := api.asks("a")
		crash := func() bool {
			left := at
			return w.dies(func(op operation) bool {
				if op.writes() {
					left--
				}
				return left < 0
			})
		}
		last = !crash()
		for range 40 * 3 {
			w.advance(20*time.Second, 20*time.Second, "ticks")
		}
		if w.stage(second).Bad() { // the message of the first was away for longer
			first, second = second, first
		}
		if a, b := w.stage(first), w.stage(second); !a.Bad() || b != run.Waiting {
			t.Fatalf("a crash at write %d: the first is %s, and the second %s", at, a, b)
		}
		def.Target = good
		w.must(api.put(tenant, "a", def))
		w.must(api.retry(tenant, first))
		last = !crash() && last
		for second := 0; second < 40*60 && w.open(); second += 20 {
			w.advance(20*time.Second, 20*time.Second, "ticks")
		}
		a, _ := w.run(tenant, first)
		b, _ := w.run(tenant, second)
		if a.State != run.Succeeded || !b.State.Ended() || b.Started < a.Ended { // it ends by whichever definition it has
			t.Errorf("a crash at write %d: the first is %s, ended at %d, and the second %s, started at %d", at, a.State, a.Ended, b.State, b.Started)
		}
		w.wants(w.check(w.now() - 1))
		if t.Failed() {
			return
		}
	}
	if !last {
		t.Error("no world came to its end without a crash")
	}
}
