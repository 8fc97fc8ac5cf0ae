package run_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// The timer of a run that was asked for far ahead comes at its time, whatever became of the run: it must find that, and not make the run anew.
func TestACancelIsKeptUntilItsRunWasDue(t *testing.T) {
	const now, retention = int64(1_000_000), 24 * time.Hour
	for name, due := range map[string]int64{"due before": now - 1000, "due now": now, "due long after": now + 100*retention.Milliseconds()} {
		waits := run.Run{ID: run.RequestID("j", due, 7), Tenant: "t", State: run.Scheduled, Generation: 1}
		cancelled, ok := waits.AskCancel(now, "no longer needed", retention)
		if want := max(now, due) + retention.Milliseconds(); !ok || cancelled.Ended != now || cancelled.Expires != want {
			t.Errorf("%s: it ended at %d and expires at %d, want %d and %d", name, cancelled.Ended, cancelled.Expires, now, want)
		}
	}
}
