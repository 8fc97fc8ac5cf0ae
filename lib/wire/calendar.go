package wire

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
)

// JobCalendar is what became of a job's runs, and what is to come, by day.
type JobCalendar struct {
	Timezone    string        `json:"timezone" doc:"the zone whose days these are"`
	KeptFrom    time.Time     `json:"kept_from" doc:"runs that ended before this are not kept, by the retention that the job has now"`
	CountedFrom time.Time     `json:"counted_from,omitzero" doc:"20,000 runs were counted, newest first, and those of the days before this were not looked at: ask again with to as the day before; left out where all are counted"`
	FiresTo     time.Time     `json:"fires_to,omitzero" doc:"1,000,000 fires were counted, and those of the days from this on were not; left out where all are counted"`
	Days        []CalendarDay `json:"days" doc:"all days from from to to, oldest first"`
}

// CalendarDay is a day of a zone's clock.
type CalendarDay struct {
	Date    string         `json:"date" example:"2026-03-29"`
	From    time.Time      `json:"from" doc:"when the clock of the zone begins to show the date"`
	To      time.Time      `json:"to" doc:"when the next day begins: 23 or 25 hours later where the clock changes"`
	Runs    map[string]int `json:"runs,omitempty" doc:"how many runs have their nominal time in the day, by state; left out where there are none"`
	Fires   int            `json:"fires,omitempty" doc:"how many fires are to come in the day; none of a job that is paused"`
	Partial bool           `json:"partial,omitempty" doc:"the day has more runs than are counted"`
}

// GenerationPage is a page of the definitions that a job has had, newest first.
type GenerationPage struct {
	Items []Generation `json:"items"`
	Next  string       `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// Generation is a definition of a job, and how long it stood.
type Generation struct {
	Generation int64           `json:"generation" doc:"its number; it only grows"`
	ETag       string          `json:"etag" doc:"what the job's was"`
	From       time.Time       `json:"from" doc:"when it was made"`
	To         time.Time       `json:"to,omitzero" doc:"when it was replaced; left out of the newest one"`
	Deleted    bool            `json:"deleted,omitempty" doc:"the job was deleted, and this is the time without it"`
	Definition *job.Definition `json:"definition,omitempty" doc:"as it stood; left out where deleted is true"`
}

// ScheduleLoad is how many runs of all jobs of a tenant are due when.
type ScheduleLoad struct {
	From      time.Time `json:"from" doc:"from, without its seconds"`
	To        time.Time `json:"to" doc:"the end of the last step"`
	CountedTo time.Time `json:"counted_to" doc:"up to when all fires are counted: to, or sooner where 2,000,000 would be exceeded. From there on ask again with from as this"`
	Step      int       `json:"step_seconds"`
	Fires     []int     `json:"fires" doc:"how many runs are due in each step, from from on, up to counted_to; jitter is counted in"`
	Total     int       `json:"total" doc:"all of fires together"`
	Jobs      int       `json:"jobs" doc:"how many jobs have any of these"`
	Paused    int       `json:"paused" doc:"how many jobs have a schedule and were left out, since they are paused"`
	MoreJobs  bool      `json:"more_jobs,omitempty" doc:"there are more than 10,000 jobs, and only the first of them by name were looked at"`
	Peak      *Peak     `json:"peak,omitempty" doc:"the first step with the most fires; left out where there are none"`
	Minutes   []int     `json:"minutes" minItems:"60" maxItems:"60" doc:"the same fires by the minute of the hour, in UTC, 0 to 59"`
}

// Peak is the busiest step of a schedule load.
type Peak struct {
	At       time.Time  `json:"at" doc:"when the step begins"`
	Fires    int        `json:"fires"`
	Jobs     []JobShare `json:"jobs" doc:"the jobs with the most of these fires, at most 5"`
	MoreJobs int        `json:"more_jobs" doc:"how many other jobs have some of them"`
}

// JobShare is how many of the fires of a step are of one job.
type JobShare struct {
	Job   string `json:"job"`
	Fires int    `json:"fires"`
}
