//go:build emulators

package adapters

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	queuefaulty "github.com/belfry-scheduler/belfry/lib/queue/faulty"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/tick"
)

// TestHowMuchOneTickDoes tells how many fires a tick claims and sends in a second, and holds that all are. On an emulator, which shares
// the processor with it: an order of magnitude, and no more.
func TestHowMuchOneTickDoes(t *testing.T) {
	var sent atomic.Int64
	r := newRig(t, faults{queue: queuefaulty.Hooks{Send: func(queue.Priority, queue.Outgoing) queuefaulty.Fate {
		sent.Add(1)
		return queuefaulty.Fate{}
	}}}, false, false)
	const fires = 200
	at := r.now().Add(3 * time.Minute).Truncate(time.Second)
	var putting sync.WaitGroup
	for part := range 10 {
		putting.Go(func() {
			for i := range fires / 10 {
				def := job.Definition{Schedule: &schedule.Spec{At: &at}, Target: target.Spec{Handler: &target.Handler{Name: "note"}}}
				if _, _, err := r.Control.Put(r.Context(), tenant, fmt.Sprintf("job-%d-%d", part, i), def, control.Match{}); err != nil {
					r.Error(err)
				}
			}
		})
	}
	putting.Wait()
	r.ahead.Store(int64(time.Until(at) - 2*time.Second))
	began := time.Now()
	var total tick.Report
	for behind := true; behind; {
		report, err := r.Ticker.Turn(context.WithoutCancel(t.Context()), tick.Turn{})
		if err != nil {
			t.Fatal(err)
		}
		total.Claimed += report.Claimed
		behind = report.Behind
	}
	took := time.Since(began)
	if total.Claimed != fires || sent.Load() != fires {
		t.Errorf("%d claimed and %d sent, want %d", total.Claimed, sent.Load(), fires)
	}
	t.Logf("%d fires in %s: %.0f a second", fires, took.Round(time.Millisecond), fires/took.Seconds())
}
