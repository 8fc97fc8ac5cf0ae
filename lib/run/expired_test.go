package run_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A run has its time from when it is due, and one that was opened again from then on. Who has had an attempt keeps no time.
func TestStartBy(t *testing.T) {
	const due, lasts = 1_700_000_000_000, 60_000
	blank := run.Run{ID: run.FireID("report", due), Tenant: "default"}
	claim := run.Claim{Generation: 1, Trigger: run.BySchedule, Now: due + 5000, Times: job.Times{Start: lasts}}
	r, verdict := blank.Claim(claim)
	if verdict != run.Claimed || r.StartBy != due+lasts {
		t.Fatalf("claimed to start by %d", r.StartBy-due)
	}
	r.Version = 1
	for at, want := range map[int64]bool{due: false, due + lasts: false, due + lasts + 1: true} {
		if r.Expired(at) != want {
			t.Errorf("%d ms on: expired %v", at-due, !want)
		}
	}
	if started := r.Start("w", due+1000, time.Minute); started.StartBy != 0 || started.HandBack(due+2000, "", "", run.Limits{}).Expired(due+lasts+1) {
		t.Errorf("an attempt leaves its time, %+v", started)
	}
	ended := r.Expire(due+lasts+1, time.Hour)
	if ended.State != run.Skipped || ended.Missed() || ended.Why.Code != run.WhyExpired || ended.StartBy != 0 || ended.Reason != "it had not started by 2023-11-14T22:14:20Z" {
		t.Errorf("ended as %+v", ended)
	}
	again := ended.Reopen(2, 0, "retried on request").Lasting(due+200_000, job.Times{Start: lasts})
	if again.StartBy != due+200_000+lasts || again.Expired(due+200_000) {
		t.Errorf("opened again to start by %d", again.StartBy-due)
	}
	if ahead := ended.Reopen(2, 0, "retried on request").Lasting(due-200_000, job.Times{Start: lasts}); ahead.StartBy != due+lasts {
		t.Errorf("opened ahead of its time to start by %d", ahead.StartBy-due)
	}
	if forever := ended.Reopen(2, 0, "retried on request").Lasting(due+200_000, job.Times{}); forever.StartBy != 0 {
		t.Errorf("opened without such a time to start by %d", forever.StartBy)
	}
	// An edit claims it anew, with its own word; not so what was opened by hand.
	if edited, _ := r.Claim(run.Claim{Generation: 3, Trigger: run.BySchedule, Now: due + 6000}); edited.StartBy != 0 {
		t.Errorf("after an edit it is to start by %d", edited.StartBy-due)
	}
	if byHand, _ := again.Claim(run.Claim{Generation: 3, Trigger: run.BySchedule, Now: due + 6000}); byHand.StartBy != again.StartBy {
		t.Errorf("opened by hand, and after an edit it is to start by %d", byHand.StartBy-due)
	}
	dropped, _ := blank.Skip(run.Stretch{Generation: 1, Through: due, Upto: due, Count: 1, Reason: "missed"}, due+90_000, time.Hour)
	dropped.Version = 1
	if anew, verdict := dropped.Claim(run.Claim{Generation: 2, Trigger: run.BySchedule, Now: due, Times: job.Times{Start: lasts, End: 2 * lasts}}); verdict != run.Claimed || anew.StartBy != due+lasts || anew.EndBy != due+2*lasts {
		t.Errorf("a newer generation claims a fire that was dropped as missed, to start by %d and to end by %d", anew.StartBy-due, anew.EndBy-due)
	}
	if caught, _ := blank.Claim(run.Claim{Generation: 1, Trigger: run.BySchedule, Now: due + 90_000, Times: job.Times{Start: lasts}, NotBefore: due + 91_000, Reason: run.CaughtUp}); !caught.Expired(due + 90_000) {
		t.Error("what makes up for a missed fire has more time than others")
	}
}
