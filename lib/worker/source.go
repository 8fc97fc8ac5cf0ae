package worker

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Source is where a worker gets its runs and to whom it reports: it decides and writes, the worker calls targets. Package lease
// has the one beside the store, package client the one that reaches a server from elsewhere. Its methods may be called
// concurrently.
type Source interface {
	// Take waits up to wait for runs that may be started, and gives at most max of them, or none. Each is reserved for a while,
	// and it comes again, here or elsewhere, when it is neither started nor left by then. An error that wraps ErrRefused says
	// that asking again will not help.
	Take(ctx context.Context, max int, wait time.Duration) ([]Offer, error)

	// Start waits out the moment until each of some offers of one Take is due, and begins an attempt of it. It tells begun of each
	// once, by its place, from whatever goroutine: of those that are due at once together, and of the others when they have begun.
	// An attempt is durable by then: its number, lease and fence. Start waits no longer than taking goes on; a start under way is not
	// given up halfway before attempts ends. With ErrGone the run has gone another way. After any error nothing is to be called, and the
	// source cares for what becomes of the run. Start returns when it has told of all.
	Start(taking, attempts context.Context, offers []Offer, begun func(i int, started Attempt, err error))
}

// Offer is a run that may be started. It goes to the Start of its source, or Leave is called, once.
type Offer interface {
	About() About

	// Leave gives the run back without having started it.
	Leave(ctx context.Context, why Leaving)
}

// About is what a worker decides by whether it starts a run.
type About struct {
	Run     string
	Target  target.Spec   // what it calls; from afar only the kind, and the name of a handler
	Timeout time.Duration // of an attempt; 0 where it is not known before the start
	Suspect bool          // it has killed workers, and its next crash would be its last: it goes alone
	First   bool          // it was not offered before
}

// Leaving is why a worker does not start what it was offered.
type Leaving uint8

// The reasons.
const (
	Stopping  Leaving = iota // the worker takes nothing more
	Busy                     // another suspect is under way
	Incapable                // it cannot call the target; another may
)

// Attempt is one that has been started. Renew may be called while Finish is under way; Close comes last, always.
type Attempt interface {
	Task() Task

	// Renew keeps the lease for another length of it. ErrFenced says that the run is held by another attempt or has ended: nothing of this
	// one is accepted any more.
	Renew(ctx context.Context) (Renewed, error)

	// Show gives what the target has written so far to those who read it at the source, and tells whether anybody does. Nothing
	// depends on it.
	Show(ctx context.Context, so runlog.Log) (read bool, err error)

	// Finish has the end written, and tells of the state that it led to, or of the error, from whatever goroutine; it may do so before it
	// returns. It may be repeated after an error, and finds what an earlier try has written. ErrFenced is as above; an error that wraps
	// ErrRefused says that repeating it will not help.
	Finish(ctx context.Context, e End, told func(run.State, error))

	// Close lets go of the attempt. One that was not finished is ended by its lease.
	Close()
}

// Renewed is what a worker hears when its lease is renewed.
type Renewed struct {
	Cancel bool // a cancel was asked for
	Read   bool // somebody reads the attempt's log at the source, which has it not: see Show
}

// Task is what an attempt is to do.
type Task struct {
	Tenant     string
	Run        string
	Job        string
	Attempt    int
	Fence      uint64
	Nominal    time.Time
	Target     target.Spec
	Payload    []byte
	Secrets    map[string]string // what the target's secrets hold, from a source that is elsewhere: see Secrets
	Withheld   map[string]string // of the others, by name, why the source has them not
	Timeout    time.Duration
	AtMostOnce bool
	MaxResult  int             // bytes that are kept of a result; 0: target.MaxResultBytes
	Lease      time.Duration   // how long it is held without renewing
	Failure    *target.Failure // why there is nothing to call, nil in general: the attempt ends with it
	Trace      trace.Context   // the span that the run began with, zero where nobody looks
}

// End is how an attempt ended, as its worker saw it.
type End struct {
	Outcome run.Outcome
	Result  target.Result   // of OutcomeSucceeded
	Failure *target.Failure // of OutcomeFailed
	Cause   string          // of OutcomeCrashed, and of OutcomeHandedBack where the worker is not being stopped, for people
	Log     runlog.Log      // what the target wrote
}

// What a worker decides on.
var (
	// ErrGone says that what was offered is there no more: somebody else has it, it ended, or the reservation did.
	ErrGone = errors.New("the run has gone another way")
	// ErrFenced says that another attempt holds the run, or that it has ended.
	ErrFenced = errors.New("the run is held by another attempt")
	// ErrRefused says that the same will be refused again.
	ErrRefused = errors.New("refused for good")
)
