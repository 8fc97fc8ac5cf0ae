package control_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/calendar"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// A calendar counts what a listing shows of each day, by the instants at which the zone's clock begins it: of a day with 23 or 25 hours too.
func TestACalendarCountsWhatAListingOfTheDayShows(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		zone, err := schedule.LoadZone("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		j := g.put("acme", "a", func(d *job.Definition) {
			d.Schedule = &schedule.Spec{Cron: "30 0,2,23 * * *", Timezone: "Europe/Berlin"}
		})
		g.put("other", "a")
		g.trigger("other", "a", control.Request{})
		now := time.Now()
		today := time.Date(now.In(zone).Year(), now.In(zone).Month(), now.In(zone).Day(), 0, 0, 0, 0, time.UTC)
		first := today.AddDate(0, 0, -300)
		states := []run.State{run.Succeeded, run.Dead, run.Skipped, run.Cancelled}
		for i := range 300 * 8 { // a run every three hours
			at := now.Add(-time.Duration(i) * 3 * time.Hour)
			g.place(run.Run{ID: run.RequestID("a", at.UnixMilli(), uint64(i+1)), Tenant: "acme", State: states[i%len(states)], Generation: 1})
		}
		g.place(run.Run{ID: run.FireID("a", now.Add(-time.Hour).UnixMilli()), Tenant: "acme", State: run.Fenced, Generation: 1})
		// A fire that was claimed ahead is to come, and counts once.
		g.place(run.Run{ID: run.FireID("a", now.Add(time.Minute).UnixMilli()), Tenant: "acme", State: run.Queued, Generation: 1})
		in := 30 * time.Hour
		g.trigger("acme", "a", control.Request{Delay: &in})

		days := calendar.Days(first, today.AddDate(0, 0, 60), zone)
		got, err := g.Calendar(t.Context(), j, days)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Counted.IsZero() || !got.FiresTo.IsZero() {
			t.Errorf("counted from %s, fires to %s; want all", got.Counted, got.FiresTo)
		}
		long := map[time.Duration]int{}
		for _, d := range got.Days {
			want := map[run.State]int{}
			for _, r := range g.all("acme", control.RunFilter{Job: "a", From: d.From, To: d.To}) {
				if r.ID.OnDemand() {
					want[g.Shown(t.Context(), r)]++
				}
			}
			for _, state := range append(states, run.Scheduled, run.Queued, run.Fenced) {
				if d.Runs[state] != want[state] {
					t.Errorf("%s: %d are %s, the listing has %d", d.Date, d.Runs[state], state, want[state])
				}
			}
			long[d.To.Sub(d.From)]++
			if d.From.After(now) {
				fires := 0
				for _, at := range g.NextRuns(j, 1000) {
					if !at.Before(d.From) && at.Before(d.To) {
						fires++
					}
				}
				if d.Fires != fires {
					t.Errorf("%s has %d fires, want %d", d.Date, d.Fires, fires)
				}
			} else if !d.To.After(now) && d.Fires != 0 {
				t.Errorf("%s is past and has %d fires", d.Date, d.Fires)
			}
		}
		if long[23*time.Hour] != 1 || long[25*time.Hour] != 1 {
			t.Errorf("the days are %v long; want one of 23 hours and one of 25 among them", long)
		}
	})
}

func TestACalendarSaysWhereItStoppedCounting(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		j := g.put("acme", "a", func(d *job.Definition) { d.Schedule = &schedule.Spec{Every: schedule.Duration(time.Second)} })
		now := time.Now().UTC()
		today := now.Truncate(24 * time.Hour)
		const day = 24 * time.Hour
		// 8,000 on each of three days: the third does not fit.
		for back := 1; back <= 3; back++ {
			for i := range 8000 {
				g.place(run.Run{ID: run.FireID("a", today.Add(-time.Duration(back)*day).UnixMilli()+int64(i)*10_000), Tenant: "acme", State: run.Succeeded, Generation: 1})
			}
		}
		got, err := g.Calendar(t.Context(), j, calendar.Days(today.Add(-9*day), today.Add(20*day), time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		at := func(date time.Time) control.CalendarDay {
			for _, d := range got.Days {
				if d.From.Equal(date) {
					return d
				}
			}
			t.Fatalf("no day %s", date)
			return control.CalendarDay{}
		}
		if n := at(today.Add(-2 * day)).Runs[run.Succeeded]; n != 8000 || !got.Counted.Equal(today.Add(-2*day)) || len(at(today.Add(-3*day)).Runs) != 0 {
			t.Errorf("%d in the second day, counted from %s, %v in the third; want 8,000, the second day, and nothing", n, got.Counted, at(today.Add(-3*day)).Runs)
		}
		// 86,400 fires a day: the twelfth day does not fit into a million.
		if ends := today.Add(11 * day); at(ends.Add(-day)).Fires != 86_400 || !got.FiresTo.Equal(ends) || at(ends).Fires != 0 {
			t.Errorf("fires are counted to %s, want %s", got.FiresTo, ends)
		}
		before, err := g.Calendar(t.Context(), j, calendar.Days(today.Add(-9*day), got.Counted.Add(-day), time.UTC))
		if err != nil || !before.Counted.IsZero() || before.Days[len(before.Days)-1].Runs[run.Succeeded] != 8000 {
			t.Errorf("the days before: counted from %s, %v", before.Counted, err)
		}
		// A day that is too much by itself shows what was counted of it, and says so.
		for i := range 20_100 {
			g.place(run.Run{ID: run.RequestID("b", today.UnixMilli(), uint64(i+1)), Tenant: "acme", State: run.Succeeded, Generation: 1})
		}
		b := g.put("acme", "b")
		full, err := g.Calendar(t.Context(), b, calendar.Days(today.Add(-day), today, time.UTC))
		if last := full.Days[1]; err != nil || !last.Partial || last.Runs[run.Succeeded] != 20_000 || !full.Counted.Equal(today) {
			t.Errorf("a full day: %+v, counted from %s, %v", last.Runs, full.Counted, err)
		}
	})
}

func TestAGenerationThatCannotBeReadHidesNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var made []int64
		for i := range 4 {
			made = append(made, g.put("acme", "a", func(d *job.Definition) { d.Description = string(rune('a' + i)) }).Generation)
			time.Sleep(time.Second)
		}
		g.unreadable(job.PastKey("acme", "a", made[1]))
		all, next, err := g.Generations(t.Context(), "acme", "a", "", 0)
		if err != nil || next != "" || len(all) != 3 || all[2].Generation != made[0] || all[1].Generation != made[2] {
			t.Errorf("got %+v, %q, %v", all, next, err)
		}
		var walked []int64
		cursor := ""
		for pages := 0; pages == 0 || cursor != ""; pages++ {
			var some []job.Kept
			if some, cursor, err = g.Generations(t.Context(), "acme", "a", cursor, 1); err != nil || pages > 5 {
				t.Fatal(err, pages)
			}
			for _, k := range some {
				walked = append(walked, k.Generation)
			}
		}
		if len(walked) != 3 || walked[0] != made[3] || walked[2] != made[0] {
			t.Errorf("page by page: %v of %v", walked, made)
		}
	})
}

func TestALoadThatCannotReadItsJobsSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a", func(d *job.Definition) { d.Schedule = everyHour() })
		broken := errors.New("no answer")
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method == faulty.Query {
				return faulty.Fault{Refuse: broken}
			}
			return faulty.Fault{}
		}
		if _, err := g.ScheduleLoad(t.Context(), "acme", calendar.Window{From: time.Now(), Step: time.Hour, Bins: 24}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}
