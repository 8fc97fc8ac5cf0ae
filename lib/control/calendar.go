package control

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/calendar"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Bounds of what is counted for a calendar.
const (
	MaxDays       = 371 // 53 weeks
	maxDayRecords = 20_000
	maxDayFires   = 1_000_000

	MaxLoadBins  = 1440
	MaxLoadTime  = 31 * 24 * time.Hour
	maxLoadJobs  = 10_000
	maxLoadFires = 2_000_000
)

// Calendar is what became of a job's runs and what is to come, by the days that were asked for.
type Calendar struct {
	Days []CalendarDay

	// Counted is from when on runs were counted: what is before it, a whole day at least, was not looked at. Zero: all that is kept.
	Counted time.Time

	// Kept is from when on ended runs are kept, by what the job says now.
	Kept time.Time

	// FiresTo is up to when fires were counted, zero for all that were asked for.
	FiresTo time.Time
}

// CalendarDay is a day of it.
type CalendarDay struct {
	calendar.Day
	Runs    map[run.State]int // of a nominal time in the day, by state; none of a fire to come
	Fires   int               // to come
	Partial bool              // Runs has not all of them
}

// Calendar counts a job's runs and fires by the given days, which follow each other; newest runs first, up to a bound.
func (s *Service) Calendar(ctx context.Context, j job.Job, days []calendar.Day) (Calendar, error) {
	shown := Calendar{Days: make([]CalendarDay, len(days)), Kept: s.Now().Add(-j.Def.Kept()).UTC()}
	for i, day := range days {
		shown.Days[i] = CalendarDay{Day: day, Runs: map[run.State]int{}}
	}
	if len(days) == 0 {
		return shown, nil
	}
	if err := s.countRuns(ctx, j, days, &shown); err != nil {
		return Calendar{}, fmt.Errorf("count the runs of %s: %w", j.Name, err)
	}
	s.countFires(j, &shown)
	return shown, nil
}

func (s *Service) countRuns(ctx context.Context, j job.Job, days []calendar.Day, into *Calendar) error {
	from, to := RunFilter{From: days[0].From, To: days[len(days)-1].To}.bounds()
	ranges := make([]store.Range, run.Partitions)
	for n := range ranges {
		ranges[n] = store.Range{Partition: run.Partition(j.Tenant, j.Name, n), From: from, To: to, Backward: true, Limit: MaxLimit}
	}
	now := s.Now()
	seen := 0
	return s.merge(ctx, ranges, func(_ int, item store.Item) (bool, error) {
		r, ok := s.recorded(j.Tenant, j.Name, item)
		day, within := calendar.Find(days, r.ID.Time())
		if !within {
			return true, nil // a record without an ID
		}
		if seen++; seen > maxDayRecords {
			into.cut(day)
			return false, nil
		}
		if ok && r.State != run.Fenced && (r.ID.OnDemand() || !r.ID.Time().After(now)) {
			into.Days[day].Runs[s.Shown(ctx, r)]++
		}
		return true, nil
	})
}

// cut ends the count in a day of which not all was looked at: it is left out, unless nothing else was counted.
func (c *Calendar) cut(day int) {
	c.Days[day].Partial = true
	for _, later := range c.Days[day+1:] {
		if len(later.Runs) > 0 {
			c.Counted = c.Days[day].To
			c.Days[day].Runs, c.Days[day].Partial = map[run.State]int{}, false
			return
		}
	}
	c.Counted = c.Days[day].From
}

func (s *Service) countFires(j job.Job, into *Calendar) {
	if !j.Active() {
		return
	}
	fires, err := s.Dispatch.Book.Draft(j.Def) // not remembered, as in NextRuns
	if err != nil {
		return // Fault says why
	}
	left, now := maxDayFires, s.Now()
	for i, day := range into.Days {
		from := day.From
		if !from.After(now) {
			from = now.Add(time.Millisecond)
		}
		n, more := fires.Count(from, day.To.Add(-time.Millisecond), left)
		if more {
			into.FiresTo = day.From
			return
		}
		into.Days[i].Fires = n
		left -= n
	}
}

// ScheduleLoad is how many runs of all jobs of a tenant are due when.
type ScheduleLoad struct {
	calendar.Load
	Paused   int  // jobs with a schedule that were left out, since they are paused
	MoreJobs bool // there are jobs that were not looked at: those with the highest names
}

// ScheduleLoad counts the fires of all jobs of a tenant that are not paused.
func (s *Service) ScheduleLoad(ctx context.Context, tenant string, w calendar.Window) (ScheduleLoad, error) {
	var load ScheduleLoad
	var sources []calendar.Source
	seen, cursor := 0, ""
	for {
		jobs, next, err := s.Jobs(ctx, tenant, JobFilter{}, cursor, MaxLimit)
		if err != nil {
			return ScheduleLoad{}, err
		}
		for _, j := range jobs {
			if j.Def.Paused && j.Def.Schedule != nil {
				load.Paused++
			}
			if !j.Active() {
				continue
			}
			if fires, err := s.Dispatch.Book.Draft(j.Def); err == nil {
				sources = append(sources, calendar.Source{Tenant: tenant, Name: j.Name, Edition: &job.Edition{Generation: j.Generation, Def: j.Def, Schedule: fires}})
			}
		}
		if seen += len(jobs); next == "" || seen >= maxLoadJobs {
			load.MoreJobs = next != ""
			break
		}
		cursor = next
	}
	load.Load = w.Count(sources, maxLoadFires)
	return load, nil
}
