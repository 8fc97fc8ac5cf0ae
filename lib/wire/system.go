package wire

import (
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Cron is a preview of an expression.
type Cron struct {
	Description string          `json:"description" doc:"in plain English"`
	Next        []time.Time     `json:"next" doc:"the next fires; fewer than asked for where there are no more"`
	Fires       []Fire          `json:"fires" doc:"the same fires, as the clock of the zone shows them"`
	Fields      []CronField     `json:"fields" doc:"the fields of the expression, in the order of its text"`
	Elsewhere   []CronElsewhere `json:"elsewhere" doc:"how the same is written in other schedulers, and what they do otherwise"`
}

// CronField is a field of a cron expression, in words.
type CronField struct {
	Field string `json:"field" doc:"second, minute, hour, day-of-month, month or day-of-week; macro for one such as @daily"`
	Text  string `json:"text" doc:"as it stands in the expression"`
	Begin int    `json:"begin" doc:"where it stands, in characters from the beginning"`
	End   int    `json:"end" doc:"the first character behind it"`
	Means string `json:"means" doc:"which values it chooses, in plain English"`
}

// CronElsewhere is what another scheduler makes of a cron expression.
type CronElsewhere struct {
	System      string   `json:"system" doc:"Kubernetes CronJob, Quartz, systemd or EventBridge Scheduler"`
	Expressions []string `json:"expressions" doc:"how the same is written there: several where one cannot say it, none where it cannot be said"`
	Notes       []string `json:"notes" doc:"what it does otherwise, a sentence each"`
}

// Fire is an instant at which a schedule fires.
type Fire struct {
	At    time.Time `json:"at" doc:"in UTC"`
	Local time.Time `json:"local" doc:"the same instant with the offset of the zone; in UTC for schedules without one"`
	Mark  string    `json:"mark,omitempty" enum:"shifted,merged,first_of_two,second_of_two" doc:"what a change of the clock does: shifted and merged are at the end of a gap, for one time or several that the clock skips; the others are times that the clock shows twice"`
	Asked []string  `json:"asked,omitempty" doc:"of shifted and merged: the times of the clock that the fire stands for, as 2026-03-29T02:30:00, at most 10"`
}

// JobFires is when a job fires next.
type JobFires struct {
	Description string `json:"description,omitempty" doc:"the schedule in plain English; none of a job on demand"`
	Timezone    string `json:"timezone,omitempty" doc:"of a cron schedule: the zone of local"`
	Idle        string `json:"idle,omitempty" enum:"paused,on_demand,faulty,over" doc:"why the job makes no runs by itself: it is paused, and fires holds what it would do; it has no schedule; its schedule cannot be used; or its last fire is over"`
	Fires       []Fire `json:"fires" doc:"fewer than asked for where there are no more"`
}

// Queue is a pool of workers and what waits for them.
type Queue struct {
	Name       string           `json:"name"`
	Priorities map[string]Depth `json:"priorities" doc:"by high, normal and low"`
	Remote     bool             `json:"remote,omitempty" doc:"only workers in other processes serve it"`
	Shared     bool             `json:"shared,omitempty" doc:"it is in front of a store that processes share: others may work on it, which this one does not see, and its numbers are those that SQS tells, which are approximate"`
	Workers    int              `json:"workers" doc:"how many serve it; of those elsewhere, that were heard of lately"`
	Lacking    []string         `json:"lacking,omitempty" doc:"what runs wait for that no worker offers, such as handler resize"`
}

// Depth is how many messages a queue holds: exactly in a queue of the server's own, and about, with a minute's delay, where SQS counts them.
type Depth struct {
	Ready   int64 `json:"ready" doc:"runs that really wait: they are due and have not begun, and a worker may start them now"`
	Delayed int64 `json:"delayed" doc:"sent ahead, and not due"`
	Taken   int64 `json:"taken" doc:"with a worker, or between two attempts at most 15 minutes apart"`
}

// QueuePage is a page of queues, by name.
type QueuePage struct {
	Items []Queue `json:"items"`
	Next  string  `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// QueueMessages is a tenant's messages in a queue, the first of each priority and state. It shows nothing of other tenants.
type QueueMessages struct {
	Queue      string           `json:"queue"`
	Priorities map[string]Depth `json:"priorities" doc:"how many messages the tenant has in it, by high, normal and low"`
	SortedOf   int              `json:"sorted_of,omitempty" doc:"delayed messages of each priority, those that were sent first, of which the first by time are shown: one sent later may be ready earlier. Left out where all were looked at"`
	Items      []QueueMessage   `json:"items" doc:"taken ones first, by when they were; then ready ones, in the order in which they will be; then delayed ones, by when they can be. Each of these by priority, the highest first, at most limit of each"`
}

// QueueMessage is a message that a queue holds, by which a worker may start a run.
type QueueMessage struct {
	Run         string    `json:"run,omitempty" doc:"ID of the run; left out where the message cannot be read"`
	Unreadable  bool      `json:"unreadable,omitempty" doc:"the message cannot be read: no worker can start a run by it"`
	Step        string    `json:"step,omitempty" doc:"path of the step, where it is for one of a workflow's run"`
	State       string    `json:"state" enum:"delayed,ready,taken" doc:"delayed: sent ahead of its time; ready: a worker may take it; taken: with a worker, or between two attempts"`
	Priority    string    `json:"priority" enum:"high,normal,low"`
	NominalTime time.Time `json:"nominal_time,omitzero" doc:"of the run: when it is due by its schedule, or was asked for"`
	SentAt      time.Time `json:"sent_at" doc:"when it was sent to the queue"`
	ReadyAt     time.Time `json:"ready_at,omitzero" doc:"of a delayed one: when a worker may take it; of a ready one: since when"`
	TakenAt     time.Time `json:"taken_at,omitzero" doc:"of a taken one: when a worker took it"`
	BackAt      time.Time `json:"back_at,omitzero" doc:"of a taken one: when it is ready again, unless its run has ended or its worker keeps it for longer"`
	Receives    int       `json:"receives" doc:"how often workers have taken it"`
}

// Worker takes runs from a queue.
type Worker struct {
	ID          string    `json:"id"`
	Queue       string    `json:"queue"`
	Running     int       `json:"running" doc:"attempts under way"`
	Concurrency int       `json:"concurrency" doc:"attempts at most"`
	StartedAt   time.Time `json:"started_at,omitzero" doc:"of one elsewhere: when it was first heard of"`

	Remote   bool              `json:"remote,omitempty" doc:"it is another process, and told the rest of itself"`
	SeenAt   time.Time         `json:"seen_at,omitzero" doc:"when it was last heard of"`
	Handlers []string          `json:"handlers,omitempty" doc:"the Go functions that it has"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// WorkerPage is a page of the workers of the process that answers and those elsewhere that take runs from it, by queue and ID.
type WorkerPage struct {
	Items []Worker `json:"items"`
	Next  string   `json:"next,omitempty" doc:"cursor of the next page; none on the last one"`
}

// Health says that the process answers.
type Health struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version,omitempty"`
}

// Readiness says that the process can do its work, and how that was found out.
type Readiness struct {
	Status  string  `json:"status" enum:"ok"`
	Version string  `json:"version,omitempty"`
	Checks  []Check `json:"checks"`
}

// Check is one thing that the process needs.
type Check struct {
	Name   string `json:"name" example:"store"`
	State  string `json:"state" enum:"ok,attention,failing" doc:"attention: it works, and somebody should look"`
	Detail string `json:"detail" doc:"what was found, for people"`
}

// The states of a check.
const (
	CheckOK        = "ok"
	CheckAttention = "attention"
	CheckFailing   = "failing"
)

// Problem is an error, after RFC 9457.
type Problem struct {
	Title  string       `json:"title,omitempty" doc:"the HTTP status in words"`
	Status int          `json:"status" doc:"the HTTP status"`
	Code   string       `json:"code" doc:"stable; docs/api.md lists them"`
	Detail string       `json:"detail,omitempty" doc:"what happened and what would help, for people; of many that are refused by one answer, title and detail of the first 100"`
	Errors []FieldError `json:"errors,omitempty" doc:"each field that is wrong, up to 100 in an answer"`

	// MoreErrors is how many were found beyond those.
	MoreErrors int `json:"more_errors,omitempty" doc:"how many more are wrong than errors names"`

	Checks []Check `json:"checks,omitempty" doc:"of /readyz: all that was checked"`

	// RetryAfter is the header of the same name, for one of many in a batch too.
	RetryAfter schedule.Duration `json:"retry_after,omitempty" doc:"when to try again what was refused for now"`
}

// FieldError is one wrong field of a request.
type FieldError struct {
	Field   string `json:"field" doc:"path in the JSON, such as schedule.cron, or name of the parameter"`
	Message string `json:"message" doc:"what would be right"`
}

// Summary is the detail, and where an answer had no room for it, the code.
func (p *Problem) Summary() string {
	if p.Detail == "" {
		return "refused as " + p.Code
	}
	return p.Detail
}

func (p *Problem) Error() string {
	text := p.Summary()
	for _, e := range p.Errors {
		text += "\n  " + e.Field + ": " + e.Message
	}
	if p.MoreErrors > 0 {
		text += fmt.Sprintf("\n  and %d more", p.MoreErrors)
	}
	return text
}
