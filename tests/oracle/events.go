package oracle

import (
	"errors"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Call is one call of a target, as the target sees it.
type Call struct {
	At      time.Time
	Tenant  string
	Job     string
	Run     string // its ID
	Attempt int
	Fence   uint64
	Nominal time.Time
	Payload []byte
}

// Return is how a target answered a call: by its tenant, run and fence.
type Return struct {
	At     time.Time
	Tenant string
	Run    string
	Fence  uint64
	OK     bool   // it told of success
	Result []byte // with it
}

// Op is what a client asks for.
type Op uint8

// The operations. Batches are asked for and answered as their parts.
const (
	GetJob    Op = iota + 1
	PutJob       // Request.Def, Match, Absent
	DeleteJob    // Request.Match
	PauseJob
	ResumeJob
	ListJobs // Answer.Jobs: all pages
	Trigger  // Request.Key, Body
	GetRun
	Cancel
	Retry       // Request.Force
	ListRuns    // Request.Job, States, From, To; Answer.Runs: all pages
	DeadLetters // Answer.Letters: all pages
	Redrive     // Request.Runs, or with none all of Request.Job, or with neither all
	Discard     // the same
)

// Request is what a client asks for, whatever tries it takes: from the first one being sent to the last one being answered.
type Request struct {
	At     time.Time
	Tenant string
	Op     Op
	Job    string
	Run    string
	Runs   []string
	Key    string          // of Trigger: the Idempotency-Key; "" for none
	Body   string          // of Trigger: what tells whether two requests are the same one
	Given  []byte          // of Trigger: the payload; nil for the job's
	Calls  run.Callees     // of Trigger: whom it names
	Due    time.Time       // of Trigger: when, zero for now or a delay
	Ignore bool            // of Trigger: the pause of the job
	Own    string          // of Trigger: the policy of overlap that it brings, "" for none
	Def    *job.Definition // of PutJob
	Match  string          // If-Match
	Absent bool            // If-None-Match: *
	Force  bool
	States []string
	From   time.Time
	To     time.Time
}

// Answer is what came back. Of a success the parts that the operation gives are set.
type Answer struct {
	At         time.Time
	Unknown    bool // none came, or one that leaves open whether it was done
	Status     int  // of the last try
	Code       string
	RetryAfter time.Duration

	Job      *wire.Job
	Jobs     []wire.Job
	Run      *wire.Run
	Runs     []wire.Run
	Letters  []wire.DeadLetter
	Reopened []string // of Redrive: the runs that were queued again

	Discarded []string // of Discard: the runs that were, now or before
}

// AnswerOf gives the answer that an error of lib/client stands for: with nil, one of the status given.
func AnswerOf(at time.Time, status int, err error) Answer {
	if err == nil {
		return Answer{At: at, Status: status}
	}
	var refused *client.Error
	if !errors.As(err, &refused) {
		return Answer{At: at, Unknown: true}
	}
	return Answer{At: at, Status: refused.Status, Code: refused.Code, RetryAfter: refused.RetryAfter,
		Unknown: refused.Status >= http.StatusInternalServerError}
}

var opNames = [...]string{"", "GET job", "PUT job", "DELETE job", "pause", "resume", "list of jobs", "trigger", "GET run", "cancel", "retry",
	"list of runs", "list of dead letters", "redrive", "discard"}

func (o Op) String() string { return opNames[o] }
