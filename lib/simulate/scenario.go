package simulate

import (
	"encoding/json"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// The bounds of a scenario's document. Those of a simulation are in Options.
const (
	MaxDocument    = 8 << 20               // bytes
	MaxJobs        = 1000                  // in jobs
	MaxGates       = 1000                  // in gates
	MaxScript      = 10_000                // lines
	MaxOutcomes    = 10_000                // outcomes in all
	MaxWorkers     = 10_000                // attempts at once
	MaxSpan        = 3660 * 24 * time.Hour // from start to until
	OpenSpan       = 400 * 24 * time.Hour  // how long a scenario without until lasts at most
	DefaultWorkers = 100
)

// Scenario is what is to be simulated. Parse makes one of a document: its names and times are resolved, its definitions checked.
type Scenario struct {
	Start   time.Time
	Until   time.Time // zero: until nothing is left to happen, at most OpenSpan after Start
	Workers int       // attempts at once
	Gates   []Gate    // by name; they are put at Start, before the jobs
	Jobs    []Job     // by name; they are put at Start
	// Outcomes are what the targets do, by the job's name, or that and a step's path: etl/parts/load. A step that is not named has those of its job, and
	// "*" those of all others. What has none succeeds at once.
	Outcomes map[string]Outcomes
	Script   []Line // as they stand in the document, which is not always the order of time
	Events   bool   // the report has those of each run

	Expect *Expectation // nil where the document expects nothing
}

// Job is a job and its definition, as PUT takes it: defaults are not filled in.
type Job struct {
	Name       string
	Definition job.Definition
}

// Gate is a gate that jobs name, as PUT takes it.
type Gate struct {
	Name       string
	Definition gate.Definition
}

// Outcome is what a target does in one attempt. The zero value succeeds at once, with the result null.
type Outcome struct {
	Takes      time.Duration
	Result     json.RawMessage // of a success; nil is null
	Fails      bool
	Error      string        // of a failure
	Code       string        // of a failure, "" for none
	Permanent  bool          // of a failure: it is not tried again
	Crashes    bool          // the worker dies after Takes: nobody hears of the attempt any more
	Never      bool          // it ends by its timeout, or when it is told to stop
	StopsAfter time.Duration // how long it goes on when it is told to stop
}

// Outcomes are the outcomes of the attempts of a job, or of a step. An attempt takes the next one of its branch when it starts; the last one goes on for ever.
type Outcomes struct {
	By   Path                 // what chooses the branch; the zero value chooses none
	Is   map[string][]Outcome // branches by the text of what By finds; at least one outcome each
	Else []Outcome            // the branch of all others; none succeeds at once
}

// Branch gives the outcomes of an attempt, and the name of their branch, of which each job and each step has a count of its own.
func (o Outcomes) Branch(of Called) (name string, outcomes []Outcome) {
	if value, ok := o.By.text(of); ok {
		if found, ok := o.Is[value]; ok {
			return "is " + value, found
		}
	}
	return "else", o.Else
}

// Action is what a line of the script does.
type Action string

// The actions.
const (
	Put     Action = "put"     // Job, Definition, IfMatch
	Delete  Action = "delete"  // Job
	Pause   Action = "pause"   // Job, Reason
	Resume  Action = "resume"  // Job
	Trigger Action = "trigger" // Triggers, Batch
	Cancel  Action = "cancel"  // Run, or all runs of Job that have not ended; Reason
	Retry   Action = "retry"   // Run, Force
	Redrive Action = "redrive" // Job: its dead letters
	Release Action = "release" // Run, which waits at a gate
	SetGate Action = "gate"    // Gate, Limits: nil deletes it
	Close   Action = "close"   // Gate, Reason
	Open    Action = "open"    // Gate; of the own gate of a job Run and Key, as control.Opening has them
	Down    Action = "down"    // For
	Workers Action = "workers" // Workers
	Clock   Action = "clock"   // By
	Look    Action = "look"    // As
)

// Line is a line of the script. Fields that its Action does not name are zero.
type Line struct {
	Number int // its place in the script, counted from 1: Refusal.Line
	At     time.Time
	Do     Action

	Job        string
	Run        RunRef
	As         string // of look: the name of what it puts under looks
	Triggers   []Triggered
	Batch      bool // Triggers are one request of many: TriggerMany
	Definition job.Definition
	Gate       string
	Key        string // of open: the value whose line is to go on, "" for none
	Limits     *gate.Definition
	IfMatch    string // of put: an ETag, "*" for any job that exists, "" for no condition
	Reason     string
	Force      bool
	For        time.Duration // of down: neither ticks nor workers nor API for so long; more than 0
	Workers    int           // of workers: how many attempts at once from now on; 0 for none
	By         time.Duration // of clock: how far the hosts' clocks are set forward, or back where it is negative
}

// Triggered is one run that is asked for.
type Triggered struct {
	As string // the name that later lines have for the run, "" for none
	control.Asked
}

// RunRef is how a line names a run: by the name that a trigger before gave it, or a scheduled run by job and nominal time.
type RunRef struct {
	As      string
	Job     string // where As is ""
	Nominal time.Time
}

// IsZero tells whether no run is named.
func (r RunRef) IsZero() bool { return r == RunRef{} }
