package run_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A run keeps the policy that it was asked for with, whatever becomes of it: claimed, bound anew by an edit, started, tried again, ended and opened again.
func TestARunKeepsItsOwnPolicy(t *testing.T) {
	limits := run.Limits{MaxFailures: 3, MaxCrashes: 3, Retention: time.Hour}
	asked := run.Run{ID: run.RequestID("a", 1_800_000_000_000, 9), Tenant: "acme", State: run.Scheduled, Trigger: run.ByRequest, Overlap: job.OverlapSkip.Own(), Created: 1}
	claimed, _ := run.Run{ID: asked.ID, Tenant: "acme"}.Claim(run.Claim{Generation: 3, Trigger: run.ByRequest, Now: 2, Run: asked}) // of a timer whose run is lost
	claimed.Version = 1
	unbound, _ := claimed.Unbind(4)
	again, _ := unbound.Claim(run.Claim{Generation: 4, Trigger: run.ByRequest, Now: 3, Run: unbound})
	started := again.Join("job:a", 3, 3).LetIn(4).Start("w", 5, time.Second)
	retrying := started.Fail(6, run.Failure{Error: "no", NextAt: 7}, limits)
	dead := retrying.Start("w", 7, time.Second).Fail(8, run.Failure{Permanent: true}, limits)
	opened := dead.Reopen(5, 0, "again").Reopened(9)
	for name, r := range map[string]run.Run{"claimed": claimed, "unbound": unbound, "claimed again": again, "started": started, "retrying": retrying, "ended": dead, "opened again": opened} {
		if r.Overlap.Policy() != job.OverlapSkip {
			t.Errorf("%s: it goes by %q", name, r.Overlap)
		}
	}
	def := job.Definition{Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: 3}}
	if got := opened.OverlapUnder(&def); got.Policy != job.OverlapSkip || got.Limit != 3 {
		t.Errorf("under its job: %+v", got)
	}
}

// Whether a run passes any gate, by what it brings and what its job says.
func TestGated(t *testing.T) {
	bounds, named := job.Definition{Overlap: job.Overlap{Policy: job.OverlapSkip, Limit: 1}}, job.Definition{Gates: []job.GateUse{{Gate: "pool"}}}
	both := bounds
	both.Gates = named.Gates
	for own, want := range map[job.OverlapPolicy][4]bool{"": {false, true, true, true}, "skip": {false, true, true, true}, "allow": {false, false, true, true}} {
		r := run.Run{Overlap: own.Own()}
		if got := [4]bool{r.Gated(&job.Definition{}), r.Gated(&bounds), r.Gated(&named), r.Gated(&both)}; got != want {
			t.Errorf("%q: %v, want %v", own, got, want)
		}
	}
}
