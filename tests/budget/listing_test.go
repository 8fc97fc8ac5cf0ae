package budget_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/calendar"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// till is a store that counts what reading costs, every query at least one unit.
type till struct {
	meter
}

func (c *till) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := c.Store.Query(ctx, r)
	bytes := 0
	for _, i := range page.Items {
		bytes += len(i.Partition) + len(i.Sort) + len(i.Value) + 42
	}
	c.add(0, float64(max(1, (bytes+4095)/4096)))
	return page, err
}

// TestWhatAListingCosts counts the read units of a page of 50, on a scheduler that has made some 20 runs a minute for six hours.
func TestWhatAListingCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &till{meter{Store: memory.New(memory.Config{})}}
		n := open(t, c, func(_ context.Context, call target.Call) (target.Result, error) {
			if call.Job == "failing" {
				return target.Result{}, fmt.Errorf("no")
			}
			return target.Result{}, nil
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		time.Sleep(2 * time.Second)
		put := func(name, cron string) {
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Retry: job.Retry{MaxAttempts: 1},
				Labels: map[string]string{"team": name[:1]}}
			if cron != "" {
				def.Schedule = &schedule.Spec{Cron: cron}
			}
			if _, _, err := n.Control.Put(ctx, "default", name, def, control.Match{}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 20 {
			put(fmt.Sprintf("minutely-%02d", i), "* * * * *")
		}
		put("failing", "0 * * * *")
		put("asked", "")
		for range 3 {
			put("edited", "0 0 1 1 *")
			put("edited", "")
		}
		for range 30 {
			if _, _, err := n.Control.Trigger(ctx, "default", "asked", control.Request{Delay: new(72 * time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(6*time.Hour + 30*time.Second)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		for _, l := range []struct {
			name  string
			f     control.RunFilter
			page  int     // runs that it shows
			units float64 // at most
		}{
			{"of a job", control.RunFilter{Job: "minutely-00"}, 50, 30},
			{"of all jobs", control.RunFilter{}, 50, 500},
			{"of all jobs, of a time before", control.RunFilter{To: now.Add(-4 * time.Hour)}, 50, 80},
			{"of all jobs, the oldest first", control.RunFilter{Oldest: true}, 50, 80},
			{"of all jobs, unended", control.RunFilter{States: []run.State{run.Scheduled, run.Queued, run.Running, run.Retrying}}, 30, 1700},
			{"of all jobs, open or in line", control.RunFilter{States: []run.State{run.Queued, run.Waiting, run.Running, run.Retrying}}, 0, 1700},
			{"the oldest in progress", control.RunFilter{States: []run.State{run.Running}, Oldest: true}, 0, 1700},
			{"of all jobs, dead", control.RunFilter{States: []run.State{run.Dead}}, 6, 60},
			{"of all jobs, by a rare label", control.RunFilter{Labels: map[string]string{"team": "f"}}, 5, 5700},
		} {
			c.reads = 0
			runs, _, err := n.Control.Runs(t.Context(), "default", l.f, "", 50)
			if err != nil || len(runs) != l.page {
				t.Errorf("%s: %d runs, %v; want %d", l.name, len(runs), err, l.page)
			}
			t.Logf("%-30s %5.0f read units for %d runs", l.name, c.reads, len(runs))
			if c.reads > l.units {
				t.Errorf("%s: %.0f read units, want at most %.0f", l.name, c.reads, l.units)
			}
		}
		for _, l := range []struct {
			name         string
			window, step time.Duration
			points       int
			units        float64 // at most
		}{
			{"counts of an hour", time.Hour, time.Minute, 58, 4}, // two minutes are not swept, and as much is read of where the ticks have come to
			{"counts of 6 hours by minutes", 6 * time.Hour, time.Minute, 357, 20},
			{"counts of a day by hours", 24 * time.Hour, time.Hour, 6, 10}, // of which the newest are by minutes
		} {
			c.reads = 0
			end := now.Truncate(l.step)
			found, err := n.Control.Stats(t.Context(), "default", end.Add(-l.window), end, l.step)
			if err != nil || len(found.Points) != l.points {
				t.Errorf("%s: %d points, %v; want %d", l.name, len(found.Points), err, l.points)
			}
			t.Logf("%-30s %5.0f read units for %d points", l.name, c.reads, len(found.Points))
			if c.reads > l.units {
				t.Errorf("%s: %.0f read units, want at most %.0f", l.name, c.reads, l.units)
			}
		}
		for _, l := range []struct {
			name  string
			units float64
			read  func() (int, error) // gives how much was found
			found int
		}{
			{"the calendar of a job", 45, func() (int, error) {
				j, err := n.Control.Job(t.Context(), "default", "minutely-00")
				if err != nil {
					return 0, err
				}
				counted, err := n.Control.Calendar(t.Context(), j, calendar.Days(now.AddDate(0, 0, -364), now, time.UTC))
				sum := 0
				for _, d := range counted.Days {
					sum += d.Runs[run.Succeeded]
				}
				return sum, err
			}, 360},
			{"the definitions of a job", 3, func() (int, error) {
				all, _, err := n.Control.Generations(t.Context(), "default", "edited", "", 50)
				return len(all), err
			}, 6},
			{"the load of the schedule", 70, func() (int, error) {
				load, err := n.Control.ScheduleLoad(t.Context(), "default", calendar.Window{From: now.Truncate(time.Hour), Step: time.Hour, Bins: 24})
				return load.Total, err
			}, 20*24*60 + 24},
		} {
			c.reads = 0
			found, err := l.read()
			if err != nil || found != l.found {
				t.Errorf("%s: found %d, %v; want %d", l.name, found, err, l.found)
			}
			t.Logf("%-30s %5.0f read units", l.name, c.reads)
			if c.reads > l.units {
				t.Errorf("%s: %.0f read units, want at most %.0f", l.name, c.reads, l.units)
			}
		}
	})
}
