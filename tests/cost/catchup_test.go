package cost

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A run that makes up for a missed fire takes what a run takes, and the check that a sweep arms for it: the minutes of an outage are swept as
// soon as they are read, when it has not ended yet. Its place costs nothing as long as the herd is no larger than the rate has room for within the
// look-ahead. What waits for longer is checked at its place, and once more. In full, the missed fires of a job share the timers of what is owed.
func TestWhatIsMadeUpForCostsAsItWaits(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	for name, c := range map[string]struct {
		mode  job.CatchUpMode
		every time.Duration
		jobs  int
		rate  int // of catch-up; 0: the default
		runs  float64
		most  float64 // write units a run
	}{
		"one, in reach":     {job.CatchUpOne, time.Hour, 640, 0, 640, 5},
		"one, out of reach": {job.CatchUpOne, time.Hour, 640, 1, 640, 7},
		"all":               {job.CatchUpAll, time.Minute, 16, 0, 16 * (80 + 30), 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, full, ok())
				if c.rate != 0 {
					r.Dispatch.CatchUpRate = c.rate
				}
				time.Sleep(17 * time.Second)
				def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, CatchUp: job.CatchUp{Mode: c.mode},
					Schedule: &schedule.Spec{Every: schedule.Duration(c.every)}}
				for n := range c.jobs {
					if _, _, err := r.Control.Put(r.ctx, "default", fmt.Sprintf("nightly-report-%04d", n), def, control.Match{}); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.minutes(1, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(80 * time.Minute)
				before := r.meter.read()
				if err := r.minutes(30, nil); err != nil {
					t.Fatal(err)
				}
				u := r.meter.read()
				writes := (u.Writes - before.Writes - u.Shared + before.Shared) / c.runs
				t.Logf("%.2f write units and %.2f read units a run", writes, (u.Reads-before.Reads)/c.runs)
				if writes > c.most || writes < 3 {
					t.Errorf("%.2f write units a run, want at most %.2f", writes, c.most)
				}
			})
		})
	}
}
