package tick_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/tick"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// TestP4_EachRequestOfABatchIsComeUpon arms one timer for several requests, whose runs are then not put: whoever asked has died.
func TestP4_EachRequestOfABatchIsComeUpon(t *testing.T) {
	for direct, after := range map[bool]time.Duration{false: 0, true: 6 * time.Minute} { // what is sent by who asks is left to the sweeps
		t.Run(fmt.Sprint("direct ", direct), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				c.jobs(1)
				now := time.Now().UnixMilli()
				runs := make([]*run.Run, timer.Together)
				for i := range runs {
					runs[i] = &run.Run{ID: run.RequestID("job-0", now, uint64(i)), Tenant: "default", State: run.Scheduled, Trigger: run.ByRequest, Created: now}
				}
				d := c.dispatcher()
				if err := d.Arm(t.Context(), timer.NewBatch(runs, now+1, direct, d.NewID())); err != nil {
					t.Fatal(err)
				}
				for begin := time.Now(); ; time.Sleep(time.Minute) {
					if _, err := c.ticker().Turn(t.Context(), tick.Turn{}); err != nil {
						t.Fatal(err)
					}
					if time.Since(begin) >= after {
						break
					}
				}
				if len(c.sent) != len(runs) { // and again by their checks, since nobody starts them
					t.Errorf("%d runs were sent, want %d", len(c.sent), len(runs))
				}
			})
		})
	}
}
