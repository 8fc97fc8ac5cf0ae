package dispatch

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// TestAHeldRunIsListedAnewOnceAWeek, by the regular checks that look after it.
func TestAHeldRunIsListedAnewOnceAWeek(t *testing.T) {
	r := run.Run{ID: run.RequestID("a", 1_767_571_234_567, 1), Tenant: "acme", State: run.Scheduled}
	const weeks = 9
	anew := 0
	for at := r.ID.Nominal; at < r.ID.Nominal+weeks*listedAnew.Milliseconds(); {
		at = timer.NextCheck(r.Tenant, r.ID, at).Wake
		if ListedAnew(r, at) {
			anew++
		}
	}
	if anew != weeks-1 && anew != weeks {
		t.Errorf("%d times in %d weeks", anew, weeks)
	}
	if r.State = run.Succeeded; ListedAnew(r, r.ID.Nominal+listedAnew.Milliseconds()) {
		t.Error("a run that has ended is listed anew")
	}
}
