package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Config is what a Service stands on. Fields without a default are required.
type Config struct {
	Store    store.Store
	Blobs    *blob.Bucket
	Dispatch *dispatch.Dispatcher // sends what an edit or a request claims
	Now      func() time.Time
	NewID    func() uint64 // random, never 0: run IDs and attempt IDs

	// Can tells whether a pool may have workers that call such targets: nil, or why not. A definition that nobody could run is
	// refused.
	Can func(queue string, spec target.Spec) error

	Log *slog.Logger // default: discards

	// LiveLog, where given, is what the attempt of a run under way has written so far, false where that is not known here.
	LiveLog func(ctx context.Context, r run.Run) (runlog.Log, bool)
}

// Service is the control plane: what users and operators ask for, over one store. Its methods may be called concurrently,
// by any number of processes. A nil error says that what was asked for is durable.
type Service struct {
	Config
}

// New checks the configuration.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Blobs == nil || cfg.Dispatch == nil || cfg.Now == nil || cfg.NewID == nil || cfg.Can == nil {
		return nil, errors.New("control: Store, Blobs, Dispatch, Now, NewID and Can are required")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg}
	s.Dispatch.PauseJob = s.pauseAfter
	return s, nil
}

// Code names why a request was refused; stable, documented, and the same in the HTTP API.
type Code string

// The codes. Invalid input is an *invalid.Error instead, and has the code "invalid".
const (
	CodeJobNotFound Code = "job_not_found"
	CodeRunNotFound Code = "run_not_found"

	// CodeGateNotFound says that there is no gate of that name.
	CodeGateNotFound  Code = "gate_not_found"
	CodeGateExists    Code = "gate_exists"
	CodeOwnGate       Code = "own_gate"            // the limit of a job is part of the job
	CodeNotWaiting    Code = "run_not_waiting"     // nothing to release
	CodeNotBlocking   Code = "run_not_blocking"    // no line stands still behind it
	CodeStale         Code = "precondition_failed" // If-Match or If-None-Match did not hold
	CodeJobExists     Code = "job_exists"
	CodeKeyReused     Code = "idempotency_key_reused" // with another body
	CodeRunEnded      Code = "run_ended"              // nothing to cancel
	CodeRunNotEnded   Code = "run_not_ended"          // nothing to retry
	CodeNeedsForce    Code = "needs_force"            // an unknown run is retried only when told so
	CodeRunSkipped    Code = "run_skipped"            // it stands for missed fires, which never ran
	CodeNotDeadLetter Code = "not_dead_letter"        // nothing to discard
	CodeRunDiscarded  Code = "run_discarded"          // since a filter has chosen it
	CodeJobDeleted    Code = "job_deleted"            // its runs cannot be retried
	CodeBusy          Code = "busy"                   // too many edits of one job, or a queue that is full: try again later
	CodeClockSkewed   Code = "clock_skewed"           // this host's clock is too far from the store's
	CodeStepNotFound  Code = "step_not_found"         // a workflow's run has no such step, or the run is of no workflow, or of one that cannot be read here
	CodeBegun         Code = "workflow_begun"         // a workflow's run cannot be opened again
	CodeNotReleased   Code = "step_not_released"      // what a step is handed is made of what ends before it
	CodeExpression    Code = "expression_failed"      // of what a step is handed, or a scope gives
)

// Refusal is a request that was understood and not done. Nothing was changed.
type Refusal struct {
	Code       Code
	Message    string        // a sentence for people, which says what would help
	RetryAfter time.Duration // of CodeBusy
}

func (r *Refusal) Error() string { return r.Message }

func refuse(code Code, format string, args ...any) error {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Match guards an edit against a concurrent one. The zero value lets every edit pass.
type Match struct {
	ETag   string // of job.Job.ETag, "*" for any job that exists; "" for no condition
	Absent bool   // only create (If-None-Match: *)
}

// Change is what a Put did, or a request over many jobs.
type Change uint8

// The changes.
const (
	Created Change = iota + 1
	Updated
	Unchanged // the same definition stands already: a repeated request
	Deleted
)

func (c Change) String() string {
	return [...]string{"", "created", "updated", "unchanged", "deleted"}[c]
}

// JobFilter chooses jobs. Zero fields choose all.
type JobFilter struct {
	Prefix string
	Labels map[string]string // all of them
	Paused *bool

	Contains string // a part of the name, in any letter case

	Bounded bool // those that bound how many of their runs are in progress
}

// Request asks for a run of a job.
type Request struct {
	At      *time.Time     // when; without Delay
	Delay   *time.Duration // from now; without both, now
	Payload []byte         // JSON; nil for the job's own
	Key     string         // Idempotency-Key, "" for none
	Callees run.Callees    // what is called when the run ends; none: what the job says

	IgnorePause bool // the run starts although its job is paused

	Overlap job.OwnOverlap // what becomes of the run where others are in progress; none: what the job says
}

// RunFilter chooses runs. Zero fields choose all.
type RunFilter struct {
	Job    string            // "" for all jobs of the tenant
	States []run.State       // any of them
	Labels map[string]string // all of them, by the definition that the run has
	Error  string            // part of the last error, in any letter case
	From   time.Time         // nominal time, inclusive
	To     time.Time         // nominal time, exclusive
	Due    bool              // none whose time has not come
	Oldest bool              // in the order of nominal times, the oldest first; else the newest

	spare bool      // leaves out dead letters that were discarded
	ended time.Time // leaves out runs that have ended at this time or later; zero: none
}

// DeadFilter chooses dead letters. Zero fields choose all.
type DeadFilter struct {
	Job     string
	Error   string    // part of the last error, in any letter case
	Pattern string    // what run.Pattern makes of the last error
	From    time.Time // ended, inclusive
	To      time.Time // ended, exclusive
}

// DeadLetter is a run that is listed as dead.
type DeadLetter struct {
	Run   run.ID
	State run.State
	Ended time.Time
	Error string
}

// Bulk says how to act on many runs.
type Bulk struct {
	Runs      []run.ID // those named; nil: those that a filter chooses
	Cursor    string   // with a filter: Outcome.Next of the call before
	Max       int      // with a filter: at most so many; 0: MaxLimit
	PerSecond float64  // 0: as fast as it goes
	DryRun    bool     // change nothing

	EndedBefore time.Time // of a retry or redrive: none that has ended at this time or later, as again after the same request; zero: any
}

// Outcome is what became of many runs, in the order in which they were come to.
type Outcome struct {
	Verdicts  []Verdict
	Count     int      // how many were done; of a dry run, how many would be
	Next      string   // more may match: Bulk.Cursor of the next call
	Remaining []run.ID // of Bulk.Runs, those that the time was too short for
}

// Verdict is what became of one run.
type Verdict struct {
	ID  run.ID
	Run run.Run // as it stands now, where Err is nil
	Err error   // why it was left as it is
}

// Page limits of all listings.
const (
	DefaultLimit = 50
	MaxLimit     = 1000
)
