package job

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Guarantee says what Belfry does when it cannot know whether an attempt had its effect.
type Guarantee string

const (
	// AtLeastOnce tries again: the target must be idempotent, or remember the highest fence that it saw for a run.
	AtLeastOnce Guarantee = "at_least_once"
	// AtMostOnce never starts a run twice: a run whose worker died in it ends as unknown.
	AtMostOnce Guarantee = "at_most_once"
)

// CatchUpMode says what becomes of missed fires: see MissedRule.
type CatchUpMode string

// The catch-up modes.
const (
	CatchUpOne  CatchUpMode = "one"  // the job's newest fire runs, the others are recorded as skipped
	CatchUpAll  CatchUpMode = "all"  // every missed fire runs, oldest first, a bounded number a pass
	CatchUpNone CatchUpMode = "none" // all missed fires are recorded as skipped
)

// A fire is late when it is found more than Grace after its time, and missed then, unless it is its job's newest and no older than
// NewestWithin: ticks that come late by some seconds lose nothing, a short restart loses no daily job, and no outage makes a job start
// several runs that it was not to make up for.
const (
	Grace        = 3 * time.Second
	NewestWithin = 5 * time.Minute
)

// MissedRule is Grace, NewestWithin and CatchUp in one sentence, which is the same wherever a user reads of missed fires.
const MissedRule = "A fire that is found more than 3 s after its time is missed, unless it is its job's newest and at most 5 minutes old; what was missed follows catch_up."

// CatchUp is the policy for missed fires. Those older than Window are skipped in every mode.
type CatchUp struct {
	Mode   CatchUpMode       `json:"mode,omitempty" cbor:"1,keyasint,omitempty" enum:"one,all,none" doc:"what runs of missed fires: one, where only the newest fire runs, all of them, or none"`
	Window schedule.Duration `json:"window,omitempty" cbor:"2,keyasint,omitempty" doc:"fires older than this are skipped in every mode"`
}

// Definition is what a user says of a job. Zero fields have the defaults of WithDefaults.
type Definition struct {
	Description string            `json:"description,omitempty" cbor:"1,keyasint,omitempty" maxLength:"1024" doc:"for people"`
	Schedule    *schedule.Spec    `json:"schedule,omitempty" cbor:"2,keyasint,omitempty" doc:"when it fires; without one it runs on demand"`
	Target      target.Spec       `json:"target" cbor:"3,keyasint" doc:"what a run calls"`
	Payload     json.RawMessage   `json:"payload,omitempty" cbor:"4,keyasint,omitempty" doc:"any JSON of up to 8 KB, handed to the target"`
	Queue       string            `json:"queue,omitempty" cbor:"5,keyasint,omitempty" doc:"the pool of workers"`
	Priority    queue.Priority    `json:"priority,omitempty" cbor:"6,keyasint,omitempty" enum:"high,normal,low" doc:"which of the pool's queues"`
	Timeout     schedule.Duration `json:"timeout,omitempty" cbor:"7,keyasint,omitempty" doc:"longest time of one attempt"`
	Guarantee   Guarantee         `json:"guarantee,omitempty" cbor:"8,keyasint,omitempty" enum:"at_least_once,at_most_once" doc:"what happens when the outcome of an attempt cannot be known"`
	CatchUp     CatchUp           `json:"catch_up,omitzero" cbor:"9,keyasint,omitzero" doc:"A fire that is found more than 3 s after its time is missed, unless it is its job's newest and at most 5 minutes old; what was missed follows catch_up."`
	Retry       Retry             `json:"retry,omitzero" cbor:"10,keyasint,omitzero" doc:"how failed attempts are tried again"`
	Retention   schedule.Duration `json:"retention,omitempty" cbor:"11,keyasint,omitempty" doc:"how long ended runs are kept"`
	Labels      map[string]string `json:"labels,omitempty" cbor:"12,keyasint,omitempty" doc:"for finding jobs"`
	Paused      bool              `json:"paused,omitempty" cbor:"13,keyasint,omitempty" doc:"a paused job makes no runs; fires of that time are not made up"`
	Overlap     Overlap           `json:"overlap,omitzero" cbor:"14,keyasint,omitzero" doc:"what becomes of a run that is due while earlier runs of the job are in progress"`

	// ExpiresAfter is how long after its time a run may start; 0 for however late.
	ExpiresAfter schedule.Duration `json:"expires_after,omitempty" cbor:"16,keyasint,omitempty" example:"10m" doc:"a run that has not started so long after its time is skipped; without it, it starts however late that is"`

	// Deadline is how long after its time a run is to have ended, over all its attempts; 0 for none.
	Deadline schedule.Duration `json:"deadline,omitempty" cbor:"20,keyasint,omitempty" example:"1h" doc:"a run that has not ended so long after its time is stopped, over all its attempts, and calls on.failed; without it, only each attempt has its timeout"`

	// Gates are the gates with names of their own that its runs pass besides the job's own, at most MaxGates, each once.
	Gates []GateUse `json:"gates,omitempty" cbor:"17,keyasint,omitempty" maxItems:"8" doc:"gates that each run passes before it starts, beside the limit of overlap: names, or objects with units and a key. Gates are made by PUT /v1/gates/{gate}. Not for a job with a workflow"`

	// MaxRuns is how many fires the schedule has from its definition on, at most MaxMaxRuns; 0 for as many as it says. Schedule.CountedEnd is where that ends it.
	MaxRuns int `json:"max_runs,omitempty" cbor:"18,keyasint,omitempty" minimum:"1" maximum:"10000" example:"5" doc:"the schedule ends after so many fires, whatever became of them, counted from when schedule or max_runs was last changed; without it, it goes on"`

	// PauseAfter is how many runs in a row that end badly pause the job, at most MaxPauseAfter; 0 for none.
	PauseAfter int `json:"pause_after,omitempty" cbor:"19,keyasint,omitempty" minimum:"1" maximum:"1000" example:"5" doc:"so many runs in a row that ended as failed, dead or unknown pause the job; a success begins the count anew, and so does an edit"`

	On Callbacks `json:"on,omitzero" cbor:"15,keyasint,omitzero" doc:"which job is called when a run has ended, or when fires were missed"`
}

// The defaults of a definition.
const (
	DefaultQueue     = "default"
	DefaultTimeout   = 30 * time.Second
	DefaultRetention = 30 * 24 * time.Hour
	DefaultWindow    = 365 * 24 * time.Hour
)

// WithDefaults fills in what was left out, so that what is stored and shown says everything.
func (d Definition) WithDefaults() Definition {
	d.Labels = maps.Clone(d.Labels)
	if d.Schedule != nil && d.Schedule.Cron != "" && d.Schedule.Timezone == "" {
		spec := *d.Schedule
		spec.Timezone = "UTC"
		d.Schedule = &spec
	}
	def(&d.Queue, DefaultQueue)
	def(&d.Priority, queue.Normal)
	def(&d.CatchUp.Mode, CatchUpOne)
	def(&d.CatchUp.Window, schedule.Duration(DefaultWindow))
	if d.Target.Workflow == nil {
		d = d.withAttempts()
	} else {
		d.Target.Workflow = compact(d.Target.Workflow)
	}
	def(&d.Retention, schedule.Duration(DefaultRetention))
	d.Overlap = d.Overlap.withDefaults()
	d.Gates = d.gatesWithDefaults()
	return d
}

// Times is how long after its time, in ms, a run may start, and is to have ended; 0 for however late.
type Times struct{ Start, End int64 }

// Times gives what the definition says of them.
func (d Definition) Times() Times {
	return Times{Start: d.ExpiresAfter.Std().Milliseconds(), End: d.Deadline.Std().Milliseconds()}
}

// Later is the same of a run whose time is so much later, in ms.
func (t Times) Later(ms int64) Times {
	for _, one := range []*int64{&t.Start, &t.End} {
		if *one != 0 {
			*one += ms
		}
	}
	return t
}

// Least is after how long the first of them is over, in ms: a fire that was missed longer ago is not made up for. 0 for never.
func (t Times) Least() int64 {
	if t.Start == 0 || t.End == 0 {
		return max(t.Start, t.End)
	}
	return min(t.Start, t.End)
}

// withAttempts fills in what a job says of the attempts of a run. A workflow has none: its steps have.
func (d Definition) withAttempts() Definition {
	def(&d.Timeout, schedule.Duration(DefaultTimeout))
	def(&d.Guarantee, AtLeastOnce)
	d.Retry = d.Retry.withDefaults(d.Guarantee)
	return d
}

// compact is JSON without blanks, so that one text stands for one definition. What is no JSON stays as it is.
func compact(text json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Job is a definition as it stands in the store.
type Job struct {
	Tenant     string     `cbor:"-"`
	Name       string     `cbor:"-"`
	Version    uint64     `cbor:"-"` // of its item
	Broken     error      `cbor:"-"` // set where several were read and this one could not be
	Generation int64      `cbor:"1,keyasint"`
	Def        Definition `cbor:"2,keyasint,omitzero"`
	// Past lists the generations that were replaced and may still have timers or claims, oldest first. A fire of a past
	// generation is in force up to its Until and no further.
	Past        []Past `cbor:"3,keyasint,omitempty"`
	Deleted     bool   `cbor:"4,keyasint,omitempty"`  // a tombstone: generations go on from it when the name is used again
	Created     int64  `cbor:"5,keyasint,omitempty"`  // Unix ms
	Updated     int64  `cbor:"6,keyasint,omitempty"`  // Unix ms: of this generation
	Horizon     int64  `cbor:"11,keyasint,omitempty"` // Unix ms: up to where claims stood at the edit, where a clock that was set back since had gone further
	Reason      string `cbor:"7,keyasint,omitempty"`  // of the pause
	PausedSince int64  `cbor:"9,keyasint,omitempty"`  // Unix ms, while it is paused
	HeldSince   int64  `cbor:"10,keyasint,omitempty"` // Unix ms: when the pause began that this generation ended
	Fault       string `cbor:"8,keyasint,omitempty"`  // why the schedule was parked: its next fire cannot be computed
	// Born is the generation with which a name was used again after a delete: those below it are of the job that was deleted.
	Born int64 `cbor:"12,keyasint,omitempty"`
	// Keyed says that a definition of it, this one or one before, has a key in its overlap: runs may wait in lines of values.
	Keyed bool `cbor:"13,keyasint,omitempty"`
	// GatesBefore are the gates, as gates are named, that definitions before this one had its runs pass, and this one does not: the last MaxGatesBefore, those that
	// were given up first before the others. Runs may wait there still.
	GatesBefore []string `cbor:"14,keyasint,omitempty"`
}

// MaxGatesBefore is how many gates a job is known to have passed before. Who waits at others is let in by whoever ends there, and by checks.
const MaxGatesBefore = 16

// Past is a generation that was replaced.
type Past struct {
	Generation int64 `cbor:"1,keyasint"`
	Until      int64 `cbor:"2,keyasint"` // Unix ms
	// Cut is the end that its own record still tells of (Unix ms), where an edit has brought that forward: until every sweep has passed it, the
	// job lists the generation.
	Cut int64 `cbor:"3,keyasint,omitempty"`
}

// Kept is how long ended runs of the definition are kept: for the default where it says nothing, as the one of a deletion does.
func (d Definition) Kept() time.Duration {
	if d.Retention == 0 {
		return DefaultRetention
	}
	return d.Retention.Std()
}

// Active tells whether the job makes scheduled runs.
func (j Job) Active() bool {
	return !j.Deleted && !j.Def.Paused && j.Def.Schedule != nil && j.Fault == ""
}

// Gone tells whether the job of this name that had a generation has been deleted, though another may have the name by now.
func (j Job) Gone(generation int64) bool {
	return j.Deleted || generation < j.Born
}

// Until is when a past generation ended, in Unix ms.
func (j Job) Until(generation int64) (int64, bool) {
	for _, p := range j.Past {
		if p.Generation == generation {
			return p.Until, true
		}
	}
	return 0, false
}

// ETag identifies the state of a definition for If-Match.
func (j Job) ETag() string { return `"` + generationText(j.Generation) + `"` }
