package belfry

import (
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Code names why something was refused. Codes are stable, and the same as in the HTTP API; test for them with [HasCode].
type Code string

// The codes that programs decide on. A remote Belfry may give others, which its API documents.
const (
	CodeInvalid     Code = "invalid"                // what was asked for means nothing: the message names each field
	CodeJobNotFound Code = "job_not_found"          // no program has handled or scheduled a job of that name
	CodeRunNotFound Code = "run_not_found"          // or it was cleaned up after its retention
	CodeKeyReused   Code = "idempotency_key_reused" // for another request: see Key
	CodeRunEnded    Code = "run_ended"              // there is nothing to cancel
	CodeRunNotEnded Code = "run_not_ended"          // there is nothing to retry
	CodeNotBlocking Code = "run_not_blocking"       // the line does not stand still behind that run, or that end of it, or behind any run: see Belfry.OpenLine
	CodeBusy        Code = "busy"                   // nothing was done: try again after Error.RetryAfter
	CodeInUse       Code = "in_use"                 // another process has the folder
	CodeClosed      Code = "closed"                 // after Stop
	CodeNoToken     Code = "unauthenticated"        // the remote Belfry wants a Token, or another one
	CodeForbidden   Code = "forbidden"              // the Token has not the scope that this asks for
	CodeUnreachable Code = "unreachable"            // the remote Belfry gave no answer: whether it was done is not known
	CodeDamaged     Code = "store_damaged"          // what is needed lies where the disk has damaged it: no retry helps, see Ready
	CodeUnknown     Code = "outcome_unknown"        // whether it was done is not known; under a Key it is safe to ask again
)

// Error is what Belfry refused, or could not do.
type Error struct {
	Code       Code
	Message    string        // for people: what is wrong, and what would be right
	RetryAfter time.Duration // when to try again; 0 where nothing tells

	cause error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the error behind it, where there is one.
func (e *Error) Unwrap() error { return e.cause }

// HasCode tells whether err is, or wraps, an *Error with this code.
func HasCode(err error, code Code) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == code
}

// Permanent marks a handler's error as one that no retry will mend: the run ends as [Failed] at once. Permanent(nil) is nil.
func Permanent(err error) error { return target.Permanent(err) }

// RetryAfter marks a handler's error as one that is not worth another try before wait is over, at most 24h. RetryAfter(wait, nil)
// is nil.
func RetryAfter(wait time.Duration, err error) error { return target.RetryAfter(wait, err) }

// WithCode gives a handler's error a code, by which a catch in a workflow tells it from others as handler:CODE: 1 to 28 letters, digits, dots, underscores or
// hyphens, beginning with a letter or digit. Any other is left out. WithCode(code, nil) is nil.
func WithCode(code string, err error) error { return target.WithCode(code, err) }

// refused turns the errors of what is below into an *Error, where they have a code; all others pass.
func refused(err error) error {
	if err == nil {
		return nil
	}
	var ours *Error
	var refusal *control.Refusal
	var remote *client.Error
	var away *client.Unreachable
	switch {
	case errors.As(err, &ours):
		return err
	case errors.As(err, &refusal):
		return &Error{Code: Code(refusal.Code), Message: err.Error(), RetryAfter: refusal.RetryAfter, cause: err}
	case errors.As(err, &remote):
		return &Error{Code: Code(remote.Code), Message: err.Error(), RetryAfter: remote.RetryAfter, cause: err}
	case errors.As(err, &away):
		return &Error{Code: CodeUnreachable, Message: err.Error(), cause: err}
	case errors.Is(err, embed.ErrInUse):
		return &Error{Code: CodeInUse, Message: err.Error(), cause: err}
	case errors.Is(err, store.ErrClosed), errors.Is(err, queue.ErrClosed):
		return &Error{Code: CodeClosed, Message: "this Belfry was stopped", cause: err}
	case errors.Is(err, store.ErrDamaged), errors.Is(err, blob.ErrCorrupt):
		return &Error{Code: CodeDamaged, Message: err.Error(), cause: err}
	case errors.Is(err, store.ErrUnknown):
		return &Error{Code: CodeUnknown, Message: err.Error(), cause: err}
	}
	if len(invalid.All(err)) > 0 {
		return &Error{Code: CodeInvalid, Message: err.Error(), cause: err}
	}
	return err
}
