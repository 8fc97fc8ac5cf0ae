package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/calendar"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type jobCalendar struct {
	jobPath
	From     string `query:"from" minLength:"10" maxLength:"10" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" example:"2026-03-01" doc:"first day; 52 weeks before to by default"`
	To       string `query:"to" minLength:"10" maxLength:"10" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" example:"2026-03-31" doc:"last day, which is included; today by default. At most 371 days are shown at once"`
	Timezone string `query:"timezone" minLength:"1" maxLength:"64" example:"Europe/Berlin" doc:"IANA name of the zone whose days these are; that of the job's schedule by default, else UTC"`
}

type jobGenerations struct {
	jobPath
	page
}

type scheduleLoad struct {
	From time.Time         `query:"from" doc:"its seconds are left out; now by default"`
	To   time.Time         `query:"to" doc:"at most 31 days after from; is moved on to the end of a step; 7 days after from by default"`
	Step schedule.Duration `query:"step" example:"1h" doc:"whole minutes up to 1d, so that at most 1,440 lie between from and to; 1m up to 6 hours, else 1h by default"`
}

func (a *api) calendars() {
	register(a, operation{id: "get-job-calendar", method: http.MethodGet, path: "/v1/jobs/{job}/calendar", tag: "jobs", tagged: true, scope: access.Read,
		summary: "Count a job's runs by day and outcome, and its fires to come",
		codes:   []control.Code{control.CodeJobNotFound}}, a.getJobCalendar)
	register(a, operation{id: "list-job-generations", method: http.MethodGet, path: "/v1/jobs/{job}/generations", tag: "jobs", tagged: true, scope: access.Read,
		summary: "List the definitions that a job has had, newest first; of a deleted job too, while they are kept",
		codes:   []control.Code{control.CodeJobNotFound}}, a.listJobGenerations)
	register(a, operation{id: "get-schedule-load", method: http.MethodGet, path: "/v1/schedule/load", tag: "jobs", tagged: true, scope: access.Read,
		summary: "Count when the runs of all jobs are due, with the peak and the jobs that make it"}, a.getScheduleLoad)
}

func (a *api) getJobCalendar(ctx context.Context, p *jobCalendar, in input[noBody]) (*answer[wire.JobCalendar], error) {
	j, err := a.Control.Job(ctx, in.tenant, p.Job)
	if err != nil {
		return nil, err
	}
	name := p.Timezone
	if name == "" && j.Def.Schedule != nil {
		name = j.Def.Schedule.Timezone
	}
	if name == "" {
		name = "UTC"
	}
	zone, err := schedule.LoadZone(name)
	if err != nil {
		return nil, err
	}
	first, last, err := p.days(a.Now().In(zone))
	if err != nil {
		return nil, err
	}
	counted, err := a.Control.Calendar(ctx, j, calendar.Days(first, last, zone))
	if err != nil {
		return nil, err
	}
	shown := wire.JobCalendar{Timezone: name, KeptFrom: counted.Kept.Truncate(time.Second), CountedFrom: counted.Counted, FiresTo: counted.FiresTo,
		Days: make([]wire.CalendarDay, len(counted.Days))}
	for i, d := range counted.Days {
		day := wire.CalendarDay{Date: d.Date, From: d.From, To: d.To, Fires: d.Fires, Partial: d.Partial, Runs: map[string]int{}}
		for state, n := range d.Runs {
			day.Runs[state.String()] = n
		}
		shown.Days[i] = day
	}
	return &answer[wire.JobCalendar]{shown}, nil
}

// days reads the first and the last day, as dates in UTC. now is on the clock of the zone.
func (p *jobCalendar) days(now time.Time) (first, last time.Time, err error) {
	last = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	if last, err = dateOr("to", p.To, last); err != nil {
		return first, last, err
	}
	if first, err = dateOr("from", p.From, last.AddDate(0, 0, -52*7)); err != nil {
		return first, last, err
	}
	if days := int(last.Sub(first)/(24*time.Hour)) + 1; days < 1 || days > control.MaxDays {
		return first, last, invalid.Field("from", first.Format(time.DateOnly), fmt.Sprintf("a day from %s to %s: to, or at most %d days before it",
			last.AddDate(0, 0, 1-control.MaxDays).Format(time.DateOnly), last.Format(time.DateOnly), control.MaxDays-1))
	}
	return first, last, nil
}

// lastDay has an end that JSON has no form for.
var lastDay = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func dateOr(field, text string, other time.Time) (time.Time, error) {
	if text == "" {
		return other, nil
	}
	date, err := time.Parse(time.DateOnly, text)
	if err != nil || date.Year() < 1970 || !date.Before(lastDay) {
		return date, invalid.Field(field, text, "a day of the calendar from 1970-01-01 to 9999-12-30")
	}
	return date, nil
}

func (a *api) listJobGenerations(ctx context.Context, p *jobGenerations, in input[noBody]) (*answer[wire.GenerationPage], error) {
	kept, next, err := a.Control.Generations(ctx, in.tenant, p.Job, p.Cursor, p.limit())
	if err != nil {
		return nil, err
	}
	items, next := fill(a, kept, next, generationForm, control.AfterGeneration)
	return &answer[wire.GenerationPage]{wire.GenerationPage{Items: items, Next: next}}, nil
}

func generationForm(k job.Kept) wire.Generation {
	shown := wire.Generation{Generation: k.Generation, ETag: k.ETag(), From: k.Since(), To: instant(k.Until), Deleted: k.Deleted}
	if !k.Deleted {
		shown.Definition = &k.Def
	}
	return shown
}

func (a *api) getScheduleLoad(ctx context.Context, p *scheduleLoad, in input[noBody]) (*answer[wire.ScheduleLoad], error) {
	w, err := p.window(a.Now())
	if err != nil {
		return nil, err
	}
	load, err := a.Control.ScheduleLoad(ctx, in.tenant, calendar.Window{From: w.from, Step: w.step, Bins: w.steps})
	if err != nil {
		return nil, err
	}
	shown := wire.ScheduleLoad{From: w.from, To: w.to(), CountedTo: w.at(len(load.Fires)), Step: int(w.step / time.Second),
		Fires: load.Fires, Total: load.Total, Jobs: load.Jobs, Paused: load.Paused, MoreJobs: load.MoreJobs, Minutes: load.Minutes[:]}
	if load.Peak >= 0 {
		shown.Peak = &wire.Peak{At: w.at(load.Peak), Fires: load.Fires[load.Peak], Jobs: make([]wire.JobShare, len(load.At)), MoreJobs: load.More}
		for i, s := range load.At {
			shown.Peak.Jobs[i] = wire.JobShare{Job: s.Job, Fires: s.Fires}
		}
	}
	return &answer[wire.ScheduleLoad]{shown}, nil
}

// window reads what is to be counted.
func (p *scheduleLoad) window(now time.Time) (window, error) {
	from, to, step := p.From, p.To, p.Step.Std()
	if from.IsZero() {
		from = now
	}
	from = from.UTC().Truncate(time.Minute)
	if to.IsZero() {
		to = from.Add(7 * 24 * time.Hour)
	}
	if to.AddDate(0, 0, 2).Year() > 9999 {
		return window{}, invalid.Field("to", to.Format(time.RFC3339), "a time before the year 10000")
	}
	if long := to.Sub(from); long <= 0 || long > control.MaxLoadTime {
		return window{}, invalid.Field("to", to.Format(time.RFC3339), fmt.Sprintf("a time after from, %s, and at most 31 days after it", from.Format(time.RFC3339)))
	}
	if step == 0 || step >= time.Minute && step <= 24*time.Hour && step%time.Minute == 0 {
		if w := windowOf(from, to, step, time.Minute); w.steps <= control.MaxLoadBins {
			return w, nil
		}
	}
	return window{}, invalid.Field("step", p.Step.String(), fmt.Sprintf("whole minutes up to 1d, of which at most %d lie between from and to", control.MaxLoadBins))
}
