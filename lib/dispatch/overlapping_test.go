package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// A run that was skipped since others were in progress was claimed, and that was its fate. Whoever comes to missed fires around it does what it
// would do had the run succeeded: it is no decision over missed fires.
func TestP2_a_run_skipped_for_overlap_is_no_decision_over_missed_fires(t *testing.T) {
	const every, missed = 1_000, 60 // ms; fires
	outcome := func(t *testing.T, mode job.CatchUpMode, timers []int64, at int64, fate func(run.Run, int64) run.Run) string {
		calls := 0
		l := newLeased(t, func(context.Context, faulty.Call) faulty.Fault {
			if calls++; calls > 1000 {
				return faulty.Fault{Refuse: errors.New("so many calls are a loop")}
			}
			return faulty.Fault{}
		})
		begin := l.now.UnixMilli()
		now := begin + missed*every + 1000
		l.now = time.UnixMilli(now)
		fire := func(n int64) run.Run { return run.Run{ID: run.FireID("report", begin+n*every), Tenant: "default"} }
		claimed, _ := fire(at).Claim(run.Claim{Generation: 1, Trigger: run.BySchedule, Now: begin + at*every - 1000, Run: run.Run{Priority: queue.Normal}})
		item, err := fate(claimed, begin+at*every+5).Item(l.NewID())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Store.Write(t.Context(), item); err != nil {
			t.Fatal(err)
		}
		fires, err := job.Compile(schedule.Spec{Every: schedule.Duration(every * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		edition := &job.Edition{Generation: 1, Def: job.Definition{CatchUp: job.CatchUp{Mode: mode}}.WithDefaults(), Schedule: fires}
		b := dispatch.Bounds{Now: now, Horizon: now + 2000, Reach: now + 2000, Resume: now + 4000, Gaps: []timer.Gap{{After: begin, Before: now}}}
		for _, n := range timers {
			one := []dispatch.FireTimer{{Timer: timer.NewFire("default", "report", 1, begin+n*every, begin+n*every), Edition: edition, Until: dispatch.Forever}}
			if _, err := l.Fires(t.Context(), 1, b, one); err != nil {
				t.Fatal(err)
			}
		}
		page, err := l.Store.Query(t.Context(), store.Range{Partition: run.Partition("default", "report", 0), Limit: 200})
		if err != nil || page.Cursor != "" {
			t.Fatal(err, page.Cursor)
		}
		var told []string
		for _, item := range page.Items {
			id, err := run.IDFromSort("report", item.Sort)
			if err != nil {
				t.Fatal(err)
			}
			r, _, err := run.FromItem("default", id, item)
			if err != nil {
				t.Fatal(err)
			}
			if id != fire(at).ID {
				told = append(told, fmt.Sprintf("%d %s through %d counts %d", (id.Nominal-begin)/every, r.State, max(0, r.Through-begin)/every, r.Count))
			}
		}
		return strings.Join(told, "\n")
	}
	succeeded := func(r run.Run, now int64) run.Run {
		return r.Start("w", now, time.Second).Succeed(now, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour})
	}
	overlapped := func(r run.Run, now int64) run.Run {
		return r.Overlapping(run.Why{Code: run.WhyOverlap, Gate: gate.Name("report"), Policy: "skip", InTheWay: []string{"report~0000000001"}}, false, now, 24*time.Hour)
	}
	for _, mode := range []job.CatchUpMode{job.CatchUpOne, job.CatchUpAll, job.CatchUpNone} {
		for name, c := range map[string]struct {
			timers []int64 // the fires that timers stand for, in the order in which they are come to
			at     int64   // where the run stands
		}{
			"at the head":                 {[]int64{1}, 1},
			"among them":                  {[]int64{1}, 12},
			"the newest":                  {[]int64{1}, missed},
			"before the head":             {[]int64{2}, 1},
			"at the head of the later":    {[]int64{1, 8}, 8},
			"between the two":             {[]int64{1, 8}, 5},
			"the same timer twice":        {[]int64{1, 1}, 1},
			"the later timer comes first": {[]int64{8, 1}, 8},
		} {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				want := outcome(t, mode, c.timers, c.at, succeeded)
				if got := outcome(t, mode, c.timers, c.at, overlapped); got != want {
					t.Errorf("beside a run that was skipped for overlap:\n%s\nbeside one that succeeded:\n%s", got, want)
				}
			})
		}
	}
}
