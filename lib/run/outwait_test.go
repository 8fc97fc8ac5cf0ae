package run_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// A run may wait in line for as long as the gate says, unless it was opened by hand, has had an attempt, or somebody has released it.
func TestG4_Outwaited(t *testing.T) {
	const due, until = 1_700_000_000_000, 1_700_000_060_000
	r := run.Run{ID: run.FireID("report", due), Tenant: "default", Version: 2, State: run.Queued, Generation: 1}
	waits := r.JoinNamed("stripe", "", due, 0, 1, false, due+1000).WaitingUntil(until)
	for at, want := range map[int64]bool{due: false, until: false, until + 1: true} {
		if waits.Outwaited(at) != want || waits.TooLate(at) != want || waits.Expired(at) {
			t.Errorf("%d ms on: %v, %v", at-due, !want, waits.TooLate(at))
		}
	}
	later := int64(until + 3_600_000)
	for name, other := range map[string]run.Run{
		"let in":        waits.LetIn(until - 1),
		"released":      waits.ToFront(5, until-1, "", ""),
		"entering anew": waits.Unjoin(),
		"without":       r.JoinNamed("stripe", "", due, 0, 1, false, due),
	} {
		if other.Wait.Until != 0 || other.Outwaited(later) || other.TooLate(later) {
			t.Errorf("%s it is too late: %+v", name, other.Wait)
		}
	}
	tried := r.Start("w", due, time.Minute).HandBack(due+1, "", "", run.Limits{})
	byHand := r.Expire(due, time.Hour).Reopen(2, 0, "retried on request").Reopened(due + 5)
	for name, spared := range map[string]run.Run{"with an attempt": tried, "opened by hand": byHand} {
		if joined := spared.JoinNamed("stripe", "", due, 0, 1, false, due+1000).WaitingUntil(until); joined.Wait.Until != 0 {
			t.Errorf("%s it may wait until %d", name, joined.Wait.Until)
		}
	}
	why := run.Why{Code: run.WhyMaxWait, Gate: "stripe", InTheWay: []string{"other~0mi4lf3k0"}}
	ended := waits.Outwait(why, false, false, later, time.Hour)
	if ended.State != run.Skipped || ended.Missed() || ended.Why.Since != due+1000 || ended.Why.Code != run.WhyMaxWait || !ended.Wait.IsZero() ||
		ended.Reason != "it had waited in line since 2023-11-14T22:13:21Z, for longer than 59s" {
		t.Errorf("ended as %+v", ended)
	}
	for says, row := range map[string]struct{ closed, paused bool }{
		", and the gate was closed":                 {true, false},
		", and its job was paused":                  {false, true},
		", the gate was closed, and its job paused": {true, true},
	} {
		if got := waits.Outwait(why, row.closed, row.paused, later, time.Hour); got.Reason != ended.Reason+says {
			t.Errorf("%+v: %s", row, got.Reason)
		}
	}
	for _, stored := range []run.Run{waits, ended} {
		if back := readBack(t, stored); back.Wait != stored.Wait || back.Why.Since != stored.Why.Since {
			t.Errorf("read back as %+v, %+v", back.Wait, back.Why)
		}
	}
}

// Of several times that are over, a run ends for the first.
func TestG4_OutwaitedOrExpired(t *testing.T) {
	const due = 1_700_000_000_000
	for name, row := range map[string]struct {
		until, startBy, endBy int64
		outwaited, expired    bool
	}{
		"alone":               {10, 0, 0, true, false},
		"before the start":    {10, 20, 0, true, false},
		"behind the start":    {20, 10, 0, false, true},
		"before the deadline": {10, 0, 20, true, false},
		"behind the deadline": {20, 0, 10, false, false},
		"between":             {20, 30, 10, false, false},
		"with the start":      {10, 10, 0, false, true},
	} {
		r := run.Run{ID: run.FireID("report", due), Tenant: "default", Version: 2, State: run.Queued, Generation: 1}
		r = r.JoinNamed("stripe", "", due, 0, 1, false, due).WaitingUntil(due + row.until)
		if r.StartBy = row.startBy; r.StartBy != 0 {
			r.StartBy += due
		}
		if r.EndBy = row.endBy; r.EndBy != 0 {
			r.EndBy += due
		}
		if got := r.Outwaited(due + 100); got != row.outwaited {
			t.Errorf("%s: outwaited %v", name, got)
		}
		if got := r.Expired(due + 100); got != row.expired || !r.TooLate(due+100) {
			t.Errorf("%s: expired %v, too late %v", name, got, r.TooLate(due+100))
		}
	}
}

func readBack(t *testing.T, r run.Run) run.Run {
	t.Helper()
	op, err := r.Item(1)
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := run.FromItem(r.Tenant, r.ID, item(op))
	if err != nil {
		t.Fatal(err)
	}
	return back
}
