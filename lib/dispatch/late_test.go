package dispatch

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Hosts whose clocks are as far apart as they may be take the same fires for late: those that the pass which left the gap has found late. A gap that ends further
// ahead was left by a clock that was ahead, and of what fires since it was set back it says nothing.
func TestP2_Fault09_what_is_late_by_clocks_that_are_apart(t *testing.T) {
	const now, gap = int64(1_800_000_000_000), int64(60_000)
	for name, c := range map[string]struct{ before, now, until int64 }{
		"the clock that found them":        {now - 3000, now, now - 3000},
		"one that is behind it by four":    {now - 3000, now - 4000, now - 3000},
		"one that is ahead of it":          {now - 3000, now + 4000, now - 3000},
		"one that was set back by five":    {now - 3000, now - 5000, now - 8000},
		"one that was set back by an hour": {now + 3_597_000, now, now - 3000},
	} {
		b := Bounds{Now: c.now, Gaps: []timer.Gap{{After: now - gap, Before: c.before}}}
		for fire := now - gap + 1; fire < now+10_000; fire += 333 {
			if late, want := b.late(fire), fire < c.until; late != want {
				t.Errorf("%s: a fire at %d ms from now is late: %v, want %v", name, fire-c.now, late, want)
			}
		}
	}
}
