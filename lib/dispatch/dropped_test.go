package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// stands puts runs as they are.
func (l *leased) stands(t *testing.T, runs ...run.Run) {
	t.Helper()
	for _, r := range runs {
		item, err := r.Item(l.NewID())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Store.Write(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
}

// fires is the first edition of a job that fires at an interval.
func fires(t *testing.T, every time.Duration, mode job.CatchUpMode) *job.Edition {
	t.Helper()
	schedule, err := job.Compile(schedule.Spec{Every: schedule.Duration(every)})
	if err != nil {
		t.Fatal(err)
	}
	return &job.Edition{Generation: 1, Def: job.Definition{CatchUp: job.CatchUp{Mode: mode}}.WithDefaults(), Schedule: schedule}
}

// A clock that was ahead has dropped fires, and is set back. The timer among them whose own fire has another fate (an edit's mark, or a run that
// was claimed at the same moment) claims nothing of what was dropped, all that comes after, and ends.
func TestP2_Fault09_a_timer_among_dropped_fires_whose_own_was_not(t *testing.T) {
	const every, dropped, own, horizon = 10_000, 30, 10, 60 // fires up to these
	for name, fate := range map[string]run.Run{
		"a mark":             {State: run.Fenced, Generation: 2},
		"a run that is over": {State: run.Succeeded, Generation: 1, Attempt: 1, Fence: 1, Trigger: run.BySchedule, Priority: queue.Normal},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			endless := errors.New("so many calls are a loop")
			l := newLeased(t, func(context.Context, faulty.Call) faulty.Fault {
				if calls++; calls > 1000 {
					return faulty.Fault{Refuse: endless}
				}
				return faulty.Fault{}
			})
			now := l.now.UnixMilli()
			fire := func(n int64) run.Run { return run.Run{ID: run.FireID("report", now+n*every), Tenant: "default"} }
			decision := fire(1)
			decision.State, decision.Generation, decision.Trigger, decision.Created = run.Skipped, 1, run.BySchedule, now+40*every
			decision.Through, decision.Upto, decision.Count, decision.Priority = now+dropped*every, now+40*every, dropped, queue.Normal
			fate.ID, fate.Tenant, fate.Created = fire(own).ID, "default", now
			l.stands(t, decision, fate)
			edition := fires(t, every*time.Millisecond, job.CatchUpAll)
			b := dispatch.Bounds{Now: now, Horizon: now + horizon*every, Reach: now + horizon*every, Resume: now + horizon*every + 2000}
			tally, err := l.Fires(t.Context(), 1, b, []dispatch.FireTimer{{Timer: timer.NewFire("default", "report", 1, now+own*every, now+own*every),
				Edition: edition, Until: dispatch.Forever}})
			if err != nil {
				t.Fatalf("after %d calls: %v", calls, err)
			}
			if tally.Claimed != horizon-dropped {
				t.Errorf("%d runs were claimed, want the %d fires after those that were dropped", tally.Claimed, horizon-dropped)
			}
			for n := int64(own + 1); n <= horizon; n++ {
				standing, err := l.ReadRuns(t.Context(), []run.Run{fire(n)})
				if err != nil {
					t.Fatal(err)
				}
				if claimed := standing[0].State == run.Queued; claimed != (n > dropped) {
					t.Errorf("fire %d of %d, of which up to %d were dropped, is %q", n, horizon, dropped, standing[0].State)
				}
			}
		})
	}
}

// An edit claims up to the horizon that it read, which was published before, and dies among its claims. Whoever comes upon them after an outage claims the rest of
// these, and nothing of what no horizon had reached in time: that was missed. A tick's horizon is its own, and reaches further.
func TestP2_Fault17_no_fire_beyond_a_gap_is_taken_for_claimed_in_time(t *testing.T) {
	const every, outage = 10_000, 600_000
	for name, c := range map[string]struct {
		horizon int64       // that had been published when the first fire was claimed, from then on
		gaps    []timer.Gap // from then on
	}{
		"an edit's, in the middle of a minute": {60_000, []timer.Gap{{After: 60_000, Before: outage - 3000}}},
		"an edit's, at the end of one":         {119_999, []timer.Gap{{After: 119_999, Before: outage - 3000}}},
		"a tick's":                             {179_999, []timer.Gap{{After: 179_999, Before: outage - 3000}}},
		"an edit's behind another outage":      {60_000, []timer.Gap{{After: -300_000, Before: -240_000}, {After: 60_000, Before: outage - 3000}}},
		"an edit's before a short outage, too": {60_000, []timer.Gap{{After: 60_000, Before: 75_000}, {After: 230_000, Before: outage - 3000}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLeased(t, nil)
			l.LookAhead = 150 * time.Second
			begin := l.now.UnixMilli()
			var claims []run.Run
			for _, n := range []int64{1, 2, 4} {
				claims = append(claims, run.Run{ID: run.FireID("report", begin+n*every), Tenant: "default", State: run.Queued, Generation: 1, Trigger: run.BySchedule,
					Created: begin, Priority: queue.Normal})
			}
			l.stands(t, claims...)
			now := begin + outage
			horizon := l.HorizonAt(now)
			b := dispatch.Bounds{Now: now, Horizon: horizon, Reach: horizon, Resume: horizon + 2000}
			for _, g := range c.gaps {
				b.Gaps = append(b.Gaps, timer.Gap{After: begin + g.After, Before: begin + g.Before})
			}
			first := timer.NewFire("default", "report", 1, begin+every, begin+every)
			if _, err := l.Fires(t.Context(), 1, b, []dispatch.FireTimer{{Timer: first, Edition: fires(t, every*time.Millisecond, job.CatchUpNone), Until: dispatch.Forever}}); err != nil {
				t.Fatal(err)
			}
			dropped, through := 0, int64(0)
			for n := int64(1); n*every < outage; n++ {
				standing, err := l.ReadRuns(t.Context(), []run.Run{{ID: run.FireID("report", begin+n*every), Tenant: "default"}})
				if err != nil {
					t.Fatal(err)
				}
				r := standing[0]
				switch {
				case r.State == run.Skipped:
					dropped, through = dropped+r.Count, max(through, r.Through)
				case (r.State == run.Queued) != (n*every <= c.horizon):
					t.Errorf("fire %d is %q, where a horizon had reached those up to %d in time", n, r.State, c.horizon/every)
				}
			}
			if want := int(outage/every - 1 - c.horizon/every); dropped != want || through != begin+outage-every {
				t.Errorf("%d fires are dropped, up to %d s, want %d", dropped, (through-begin)/1000, want)
			}
		})
	}
}
