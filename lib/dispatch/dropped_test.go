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
	"github.com/belfry-scheduler/belfry/lib/store"
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

// What a timer owes was decided to run, and a decision by way of another timer has dropped some of it since, when it was too old. That holds, wherever it lies among
// what is owed, and however soon the timer is read. A run that was claimed before it runs: where its place has lapsed, it is given another one.
func TestP2_P11_Fault17_what_another_timer_has_dropped_is_not_owed(t *testing.T) {
	const every, first, most = 10_000, 10, 50 // fires that are owed
	for name, c := range map[string]struct {
		from, through int64 // fires that are dropped
		stands        int64 // a fire that was claimed
		room          int64 // places; -1 where a single fire is owed
		claimed       int   // from the first one on that is not dropped
		left          int64 // the fire from which on the rest is owed, 0 for none
	}{
		"a single fire":                    {5, 30, 0, -1, 0, 0},
		"a single fire that was claimed":   {5, 30, 10, -1, 0, 0},
		"none of it":                       {51, 60, 0, 100, 41, 0},
		"its first fires":                  {5, 30, 0, 100, 20, 0},
		"all of it":                        {5, 50, 0, 100, 0, 0},
		"more than all of it":              {5, 60, 0, 100, 0, 0},
		"fires in the middle":              {20, 30, 0, 100, 30, 0},
		"its last fires":                   {40, 60, 0, 100, 30, 0},
		"one beyond those that have room":  {30, 30, 0, 3, 3, 13},
		"those from among them on":         {11, 30, 0, 3, 1, 31},
		"those from among them on, to end": {11, 50, 0, 3, 1, 0},
		"its first fires but one":          {5, 30, 10, 100, 20, 0},
		"its first fires but two":          {5, 30, 10, 2, 1, 32},
	} {
		for when, ago := range map[string]int64{"in time": 0, "late": 10_000} {
			t.Run(name+", read "+when, func(t *testing.T) {
				calls := 0
				endless := errors.New("so many calls are a loop")
				l := newLeased(t, func(context.Context, faulty.Call) faulty.Fault {
					if calls++; calls > 1000 {
						return faulty.Fault{Refuse: endless}
					}
					return faulty.Fault{}
				})
				begin := l.now.UnixMilli()
				now := begin + 70*every
				fire := func(n int64) run.Run { return run.Run{ID: run.FireID("report", begin+n*every), Tenant: "default"} }
				decision, claimed := fire(c.from), fire(c.stands)
				decision.State, decision.Generation, decision.Trigger, decision.Created, decision.Priority = run.Skipped, 1, run.BySchedule, now-2000, queue.Normal
				decision.Through, decision.Upto, decision.Count = begin+c.through*every, now, int(c.through-c.from+1)
				l.stands(t, decision)
				if c.stands != 0 {
					claimed.State, claimed.Generation, claimed.Trigger, claimed.Created, claimed.Priority = run.Queued, 1, run.BySchedule, now-9000, queue.Normal
					claimed.NextAt, claimed.Reason = now-8000, run.CaughtUp
					l.stands(t, claimed)
				}
				last, room := int64(most), c.room
				if room < 0 {
					last, room = first, 100
				}
				own := now + room*1000
				l.LookAhead = time.Duration(room) * time.Second
				b := dispatch.Bounds{Now: now, Horizon: own, Reach: own, Resume: own + 2000, Next: own + 1, Back: now - 1000,
					Pace: l.NewPace(0, own, func() int64 { return now }, nil, func(context.Context) error { return nil })}
				owes := timer.Timer{Tenant: "default", Job: "report", Generation: 1}.Owing(begin+first*every, begin+last*every, now-ago)
				tally, err := l.Fires(t.Context(), 1, b, []dispatch.FireTimer{{Timer: owes, Edition: fires(t, every*time.Millisecond, job.CatchUpAll), Until: dispatch.Forever}})
				if err != nil {
					t.Fatalf("after %d calls: %v", calls, err)
				}
				if tally.Claimed != c.claimed {
					t.Errorf("%d runs were claimed, want %d", tally.Claimed, c.claimed)
				}
				for n := int64(first); n <= last; n++ {
					standing, err := l.ReadRuns(t.Context(), []run.Run{fire(n)})
					if err != nil {
						t.Fatal(err)
					}
					switch r := standing[0]; {
					case n == c.stands:
						if r.NextAt < now {
							t.Errorf("fire %d has a place %d ms ago, want another one", n, now-r.NextAt)
						}
					case c.from <= n && n <= c.through && r.State == run.Queued:
						t.Errorf("fire %d was claimed, and those from %d up to %d were dropped", n, c.from, c.through)
					}
				}
				left := int64(0)
				for minute := timer.Minute(now); minute <= timer.Minute(own)+1; minute++ {
					armed, err := l.Store.Query(t.Context(), store.Range{Partition: timer.Partition(minute, owes.Bucket())})
					if err != nil {
						t.Fatal(err)
					}
					for _, item := range armed.Items {
						if one, err := timer.FromItem(item); err != nil || one.Key() != owes.Key() && one.Owed == begin+last*every {
							left = (one.Nominal - begin) / every
						}
					}
				}
				if left != c.left {
					t.Errorf("a timer owes the fires from %d on, want those from %d", left, c.left)
				}
				// A sweep that looks at the fires which the timer stands for finds a run at each, or a record before it.
				through := int64(0)
				for n := int64(first); n <= last && (c.left == 0 || n < c.left); n++ {
					standing, err := l.ReadRuns(t.Context(), []run.Run{fire(n)})
					if err != nil {
						t.Fatal(err)
					}
					if through = max(through, standing[0].Through); standing[0].Version == 0 && through < fire(n).ID.Nominal {
						t.Errorf("nothing tells what became of fire %d", n)
					}
				}
			})
		}
	}
}
