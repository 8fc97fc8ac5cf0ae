package run_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A run has its time to end from when it is due, over all its attempts, and one that was opened again from then on.
func TestEndBy(t *testing.T) {
	const due, deadline = 1_700_000_000_000, 60_000
	const late = due + deadline
	times := job.Times{End: deadline}
	blank := run.Run{ID: run.FireID("report", due), Tenant: "default"}
	r, verdict := blank.Claim(run.Claim{Generation: 1, Trigger: run.BySchedule, Now: due + 5000, Times: times})
	if verdict != run.Claimed || r.EndBy != late || r.StartBy != 0 {
		t.Fatalf("claimed to end by %d", r.EndBy-due)
	}
	r.Version = 1
	limits := run.Limits{MaxFailures: 9, MaxCrashes: 3, Retention: time.Hour}
	started := r.Start("w", due+1000, time.Minute)
	tried := started.Fail(due+2000, run.Failure{Error: "broken", NextAt: due + 3000}, limits)
	for name, r := range map[string]run.Run{"queued": r, "running": started, "retrying": tried, "crashed": started.Crash(due+2000, "died", limits)} {
		if r.EndBy != late || r.PastDeadline(late-1) || !r.PastDeadline(late) {
			t.Errorf("%s: to end by %d, past that %v", name, r.EndBy-due, r.PastDeadline(late))
		}
		if waits := r.State != run.Running; r.TooLate(late) != waits || r.TooLate(late-1) {
			t.Errorf("%s: too late %v, want %v", name, r.TooLate(late), waits)
		}
		if r.State == run.Running {
			continue
		}
		if ended := r.Expire(late, time.Hour); ended.State != run.Cancelled || ended.Why.Code != run.WhyDeadline || ended.EndBy != 0 || ended.Reason != "deadline: it had not ended by 2023-11-14T22:14:20Z" {
			t.Errorf("%s: ended as %+v", name, ended)
		}
	}
	// An attempt under way is asked to stop, and how it ends then is its deadline's; one that succeeds all the same has succeeded.
	asked := started.StopAtDeadline(late, time.Hour)
	if asked.State != run.Running || !asked.Cancel || asked.PastDeadline(late+1) {
		t.Errorf("asked to stop: %+v", asked)
	}
	for name, ended := range map[string]run.Run{
		"asked, and cancelled": asked.Cancelled(late+5, "", limits),
		"asked, and failed":    asked.Fail(late+5, run.Failure{Error: "broken"}, limits),
		"asked, and died":      asked.Crash(late+5, "died", limits),
		"ran into it":          started.Fail(late, run.Failure{Error: "timed out", Unsure: true}, limits),
	} {
		e, told := ended.Ends()
		if ended.State != run.Cancelled || ended.Why.Code != run.WhyDeadline || !told || e != job.OnFailed {
			t.Errorf("%s: ended as %+v, tells of %q", name, ended, e)
		}
	}
	// At most once it may have had its effect: nobody has said that it is to be given up.
	once := run.Limits{AtMostOnce: true, Retention: time.Hour}
	unsure := run.Failure{Error: "timed out", Unsure: true}
	for name, ended := range map[string]run.Run{"stopped": asked.Cancelled(late+5, "", once), "asked, and failed": asked.Fail(late+5, unsure, once), "ran into it": started.Fail(late, unsure, once), "died": asked.Crash(late+5, "died", once)} {
		if ended.State != run.Unknown || ended.Why.Code != run.WhyDeadline {
			t.Errorf("at most once, %s: ended as %+v", name, ended)
		}
	}
	if said := started.Fail(late, run.Failure{Error: "refused"}, once); said.State != run.Cancelled {
		t.Errorf("at most once, and it says that it failed: %+v", said)
	}
	// A cancel of somebody behind its word changes nothing of that: it is past its deadline.
	if both, _ := asked.AskCancel(late+1, "no longer needed", time.Hour); both.Why.Code != run.WhyDeadline || both.Reason != asked.Reason {
		t.Errorf("cancelled behind its deadline: %+v", both)
	}
	if byHand, _ := started.AskCancel(due+2000, "no longer needed", time.Hour); byHand.PastDeadline(late) || byHand.Cancelled(late+1, "", limits).Why.Code != "" {
		t.Errorf("cancelled ahead of its deadline: %+v", byHand)
	}
	// While a pause holds it, it has no deadline: its next claim gives it one.
	if asked, _ := (run.Run{ID: run.RequestID("report", due, 1), Tenant: "default", Version: 1, State: run.Queued, Generation: 1, EndBy: late}).Hold(2); asked.State != run.Scheduled || asked.EndBy != 0 {
		t.Errorf("held: %+v", asked)
	}
	if done := asked.Succeed(late+5, run.Ref{}, "", limits); done.State != run.Succeeded || !done.Why.IsZero() {
		t.Errorf("succeeded in the end: %+v", done)
	}
	if failed := started.Fail(late-1, run.Failure{Error: "broken", NextAt: late + 1000}, limits); failed.State != run.Retrying {
		t.Errorf("failed ahead of its deadline: %+v", failed)
	}
	again := tried.Expire(late, time.Hour).Reopen(2, 0, "retried on request").Lasting(due+200_000, times)
	if again.EndBy != due+200_000+deadline || !again.Why.IsZero() {
		t.Errorf("opened again to end by %d: %+v", again.EndBy-due, again.Why)
	}
	if edited, _ := r.Claim(run.Claim{Generation: 3, Trigger: run.BySchedule, Now: due + 6000}); edited.EndBy != 0 {
		t.Errorf("after an edit it is to end by %d", edited.EndBy-due)
	}
	if byHand, _ := again.Claim(run.Claim{Generation: 3, Trigger: run.BySchedule, Now: due + 6000}); byHand.EndBy != again.EndBy {
		t.Errorf("opened by hand, and after an edit it is to end by %d", byHand.EndBy-due)
	}
	// Whichever time is over first says why.
	for _, c := range []struct {
		times job.Times
		want  run.State
	}{{job.Times{Start: 1000, End: 2000}, run.Skipped}, {job.Times{Start: 2000, End: 1000}, run.Cancelled}, {job.Times{Start: 1000, End: 1000}, run.Cancelled}, {job.Times{Start: 1000}, run.Skipped}} {
		both, _ := blank.Claim(run.Claim{Generation: 1, Trigger: run.BySchedule, Now: due, Times: c.times})
		if ended := both.Expire(due+3000, time.Hour); ended.State != c.want {
			t.Errorf("%+v: ended as %s, want %s", c.times, ended.State, c.want)
		}
	}
}
