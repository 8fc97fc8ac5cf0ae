package wire

import (
	"encoding/json"
	"time"
)

// Simulation is what became of a scenario. Its lists are in the order of time.
type Simulation struct {
	Runs    []SimulatedRun      `json:"runs" doc:"by nominal time, then by ID; a stretch of missed fires stands in skipped alone"`
	Skipped []SimulationMissed  `json:"skipped" doc:"fires that the catch-up policy dropped"`
	Most    SimulationMost      `json:"most" doc:"how much was in progress at once, at most"`
	Refused []SimulationRefused `json:"refused" doc:"lines of the script that Belfry refused"`
	// Looks is nil in a look.
	Looks   map[string]*Simulation `json:"looks,omitzero" doc:"what lines of look saw, by their names"`
	Open    int                    `json:"open" doc:"runs that had not ended when nothing more could happen"`
	Stopped *SimulationStopped     `json:"stopped,omitempty" doc:"the bound that ended the simulation too early; none where it came to its end"`
}

// SimulatedRun is a run and what became of it.
type SimulatedRun struct {
	ID          string             `json:"id" doc:"names the run"`
	As          *string            `json:"as" doc:"the name that the script gave it"`
	Job         string             `json:"job"`
	Trigger     string             `json:"trigger" enum:"schedule,request,callback" doc:"what asked for it"`
	Overlap     string             `json:"overlap,omitempty" enum:"allow,skip,queue,queue_one,queue_latest,cancel,replace,strict" doc:"the policy that it was asked for with, in place of its job's; left out where it goes by its job"`
	NominalTime time.Time          `json:"nominal_time" doc:"when it was asked for"`
	State       string             `json:"state" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown"`
	Reason      string             `json:"reason" doc:"why it was cancelled, skipped, reopened or given up"`
	StartedAt   *time.Time         `json:"started_at" doc:"start of its first attempt; of a workflow's run, when it began"`
	EndedAt     *time.Time         `json:"ended_at"`
	Waits       []SimulatedWait    `json:"waits,omitempty" doc:"when it waited in line at gates, in their order; left out where it never did"`
	Attempts    []SimulatedAttempt `json:"attempts" doc:"all of them, oldest first"`
	Steps       []SimulatedStep    `json:"steps,omitempty" doc:"of a workflow's run that has begun: each step of its definition, by start, then by path; those without a start last"`
	Events      []SimulatedEvent   `json:"events,omitempty" doc:"what became of its record and its messages, in that order; where the scenario asks for it"`
	Result      json.RawMessage    `json:"result" doc:"what its target answered, or the output of its workflow; null where there is none"`
	Why         *Why               `json:"why,omitempty" doc:"of a run that was skipped at a gate: what was in its way; of one that gave way to a later run, or was asked to: to which"`
}

// SimulatedStep is a step of a workflow's run and what became of it.
type SimulatedStep struct {
	Path       string              `json:"path" doc:"its name, behind those of the scopes around it and slashes"`
	Kind       string              `json:"kind" example:"task"`
	State      string              `json:"state" enum:"pending,scheduled,queued,running,retrying,suspended,succeeded,failed,cancelled,skipped,dead,unknown,upstream_failed"`
	Reason     string              `json:"reason,omitempty" doc:"why it was skipped, cancelled or given up; of a switch, what it chose"`
	ReleasedAt *time.Time          `json:"released_at" doc:"when its rule let it run; of a scope, its first step. Null where nothing was to be done, as of a pass"`
	StartedAt  *time.Time          `json:"started_at" doc:"start of its first attempt; of a scope, of the first in it"`
	EndedAt    *time.Time          `json:"ended_at"`
	Input      json.RawMessage     `json:"input" doc:"what its target was handed; null where that was nothing, or more than 8192 bytes"`
	Result     json.RawMessage     `json:"result" doc:"what its target answered: JSON, or text"`
	Error      *SimulatedStepError `json:"error" doc:"what it failed of"`
	CaughtBy   string              `json:"caught_by,omitempty" doc:"path of the step that handles its failure"`
	Attempts   []SimulatedAttempt  `json:"attempts" doc:"all of them, oldest first"`
	Events     []SimulatedEvent    `json:"events,omitempty" doc:"what became of its record and its messages, in that order; where the scenario asks for it"`
}

// SimulatedStepError is what a step failed of.
type SimulatedStepError struct {
	Code    string `json:"code,omitempty" doc:"of a fail step, or of the newest attempt"`
	Message string `json:"message"`
}

// SimulatedWait is a run's wait in the line of a gate.
type SimulatedWait struct {
	Gate string     `json:"gate" example:"job:daily-report" doc:"in whose line it waited: a gate that jobs name, or job:NAME, which is the job's own limit"`
	Key  string     `json:"key,omitempty" example:"acme" doc:"where the run passes the gate by a key: the value"`
	From time.Time  `json:"from"`
	To   *time.Time `json:"to" doc:"when it was let in, or left the line; null where it waits still"`

	InTheWay []string `json:"in_the_way,omitempty" maxItems:"10" doc:"runs that were in progress at the gate when it began to wait, those that were let in first; at most 10"`
}

// SimulatedAttempt is one try of a run.
type SimulatedAttempt struct {
	Attempt   int        `json:"attempt" doc:"counted from 1"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Outcome   string     `json:"outcome" enum:"running,succeeded,failed,crashed,cancelled,handed_back"`
	Error     string     `json:"error,omitempty"`
	Code      string     `json:"code,omitempty" doc:"of a failure: that which its outcome in the scenario has; of a step, else what kind of failure it is"`
}

// SimulatedEvent is one change of a run or a step: of its record, of the message by which workers hear of it, or of its worker.
type SimulatedEvent struct {
	At      time.Time  `json:"at"`
	Event   string     `json:"event" enum:"scheduled,queued,waiting,running,retrying,suspended,succeeded,failed,cancelled,skipped,dead,unknown,message_sent,message_taken,message_hidden,message_deleted,worker_died" doc:"the state that its record is in from then on; what was done with its message; or that the worker of its attempt died, which nobody is told"`
	Attempt int        `json:"attempt,omitempty" doc:"the newest attempt that its record has; left out before the first"`
	Until   *time.Time `json:"until,omitempty" doc:"of scheduled, suspended and retrying: when it goes on; of message_sent and message_hidden: when the message can be taken, left out where that is at once"`
}

// SimulationMissed is missed fires of a job that its catch-up policy dropped.
type SimulationMissed struct {
	Job     string    `json:"job"`
	From    time.Time `json:"from" doc:"the first of them"`
	Through time.Time `json:"through" doc:"the last of them"`
	Count   int       `json:"count" doc:"how many"`
	Reason  string    `json:"reason"`
}

// SimulationMost is how much was in progress at once, at most.
type SimulationMost struct {
	Jobs    map[string]int `json:"jobs" doc:"runs that had started and not ended, by job"`
	Gates   map[string]int `json:"gates,omitempty" doc:"units of runs that were let in and had not ended, by the gate that jobs name; where they pass it by a key, those of all values together; left out where there was none"`
	Workers int            `json:"workers" doc:"attempts"`
}

// SimulationRefused is a line of the script that Belfry refused.
type SimulationRefused struct {
	At     time.Time `json:"at"`
	Line   int       `json:"line" doc:"its place in the script, counted from 1"`
	Code   string    `json:"code" doc:"as the API's problems have it"`
	Detail string    `json:"detail" doc:"for people"`
}

// SimulationStopped says which bound was hit, and when.
type SimulationStopped struct {
	Bound string    `json:"bound" enum:"runs,attempts,span,data,events" doc:"what there was too much of"`
	Limit string    `json:"limit" doc:"how much may be: a number, or a duration"`
	At    time.Time `json:"at" doc:"the simulation's time then: what is later did not happen"`
}
