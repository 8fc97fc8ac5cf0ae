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
			for _, r := range []run.Run{decision, fate} {
				item, err := r.Item(l.NewID())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := l.Store.Write(t.Context(), item); err != nil {
					t.Fatal(err)
				}
			}
			fires, err := job.Compile(schedule.Spec{Every: schedule.Duration(every * time.Millisecond)})
			if err != nil {
				t.Fatal(err)
			}
			edition := &job.Edition{Generation: 1, Def: job.Definition{}.WithDefaults(), Schedule: fires}
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
