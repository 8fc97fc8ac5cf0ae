package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kinds of Failure. They are stored with the attempt, and people filter by them: they never change their meaning.
const (
	KindHTTPStatus = "http_status"      // the target answered, not with 2xx or 3xx
	KindRedirect   = "redirect"         // the target answered 3xx; Belfry follows none
	KindConnect    = "connect"          // no connection came about: not a byte of the request was sent
	KindLost       = "lost"             // the connection broke after the request may have been sent: the effect is unknown
	KindRefused    = "refused"          // the address, ARN or recipient is one that the operator does not allow: not a byte was sent
	KindPayload    = "payload"          // the payload cannot be read, or not be given to this target: nothing was sent
	KindExpression = "expression"       // of a step of a workflow: an expression of its definition fails: nothing was sent
	KindTooSlow    = "too_slow"         // of a step of a workflow: its expressions took too long, each time they were tried: nothing was sent
	KindSecret     = "secret"           // a secret that the target needs could not be had: nothing was sent, nothing ran
	KindTimeout    = "timeout"          // the attempt's time was over: the effect is unknown
	KindResult     = "result"           // the target did its work, and its result is larger than what is kept of one
	KindTooLarge   = "result_too_large" // of a step of a workflow: it did its work, and its result is larger than what is kept of one, or could not be kept
	KindStart      = "start"            // the process could not be started: nothing ran
	KindExit       = "exit"             // the process ended with an exit code other than 0
	KindSignal     = "signal"           // the process was killed by a signal that Belfry did not send
	KindPanic      = "panic"            // the handler panicked
	KindHandler    = "handler"          // the handler returned an error
	KindAWS        = "aws"              // AWS answered that it did not do it
	KindFunction   = "function"         // the Lambda function ran, and failed
	KindSMTP       = "smtp"             // the mail server answered that it does not take the mail, or not for everybody
)

// Failure is the error of a call that reached its end and did not succeed. Every other error of Set.Call is no verdict on
// the job: a cancellation, ErrUnsent where nothing was sent, or ErrNotHere.
type Failure struct {
	Permanent  bool          // another attempt would fail the same way
	RetryAfter time.Duration // the target asked to be left alone this long; 0 when it did not, at most MaxRetryAfter
	Kind       string        // one of the Kind constants
	Code       string        // of KindHandler: what the handler tells its failures apart by, "" for nothing; it matches CodePattern
	Message    string        // for people, one line, at most maxMessage bytes; without secrets of Belfry's own

	cause error
}

// MaxRetryAfter bounds what a target may ask for, so that no answer can put a run to sleep for good.
const MaxRetryAfter = 24 * time.Hour

const maxMessage = 1000

func (f *Failure) Error() string {
	if f.Code != "" {
		return f.Kind + ":" + f.Code + ": " + f.Message
	}
	return f.Kind + ": " + f.Message
}

// KindOf gives the kind that the text of a Failure begins with, "" where it begins with none.
func KindOf(text string) string {
	kind, _, found := strings.Cut(text, ": ")
	kind, _, _ = strings.Cut(kind, ":")
	if !found || !slices.Contains(kinds, kind) {
		return ""
	}
	return kind
}

var kinds = []string{KindHTTPStatus, KindRedirect, KindConnect, KindLost, KindRefused, KindPayload, KindExpression, KindTooSlow, KindSecret, KindTimeout, KindResult, KindTooLarge, KindStart,
	KindExit, KindSignal, KindPanic, KindHandler, KindAWS, KindFunction, KindSMTP}

// Unwrap gives the error that a handler returned or that the network gave, where there was one.
func (f *Failure) Unwrap() error { return f.cause }

// Permanent marks a handler's error as one that no retry will mend. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &verdict{error: err, permanent: true}
}

// RetryAfter marks a handler's error as one that is not worth another try before wait is over. RetryAfter(wait, nil) is nil.
func RetryAfter(wait time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &verdict{error: err, wait: boundedWait(wait)}
}

// verdict is what a handler says about its own error; of several, wrapped in each other, the outermost counts.
type verdict struct {
	error
	permanent bool
	wait      time.Duration
}

func (v *verdict) Unwrap() error { return v.error }

// ErrNotHere says that this worker cannot run the target though another may: the run must be handed back, not failed.
var ErrNotHere = errors.New("this worker cannot run the target")

// ErrUnsent says that a call was called off before anything was sent or ran: nothing has happened.
var ErrUnsent = errors.New("nothing was sent")

// unsent is the error of a call whose context is over before anything was sent or ran. A timeout remains a verdict on the job, and leaves
// no doubt.
func unsent(ctx context.Context) error {
	err := ended(ctx)
	var f *Failure
	if errors.As(err, &f) {
		f.Kind = KindConnect
		f.Message += " before anything was sent"
		return f
	}
	return fmt.Errorf("%w: %w", ErrUnsent, err)
}

func failed(kind string, cause error, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Message: oneLine(fmt.Sprintf(format, args...), maxMessage), cause: cause}
}

// Reported is a failure as somebody else tells of it: a worker in another process, or who calls AWS. Its words are foreign, like
// those of a target.
func Reported(kind, message string, permanent bool, retryAfter time.Duration) *Failure {
	f := failed(kind, nil, "%s", message)
	f.Permanent, f.RetryAfter = permanent, boundedWait(retryAfter)
	return f
}

// tooLarge says that a result which others are to read whole is not kept: its beginning would pass for all of it, and is no JSON any more. The
// work is done, and another attempt would do it again.
func tooLarge(what string, call Call) *Failure {
	return failed(KindResult, nil, "%s is larger than the %d KiB that are kept of a result; what it was to do is done", what, call.most()>>10).permanent()
}

func (f *Failure) permanent() *Failure {
	f.Permanent = true
	return f
}

// ended is the error of a call whose context is over: a timeout when that is why, else the cancellation itself, which
// satisfies errors.Is for both ctx.Err() and the cause that was given.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		return failed(KindTimeout, cause, "the attempt ran into its timeout")
	case errors.Is(cause, err):
		return cause
	default:
		return fmt.Errorf("%w: %w", err, cause)
	}
}

// endedSaying is ended with what the target itself said at its end: where it was, or why it gave up.
func endedSaying(ctx context.Context, said string) error {
	err := ended(ctx)
	var f *Failure
	if errors.As(err, &f) && said != "" {
		f.Message = oneLine(f.Message+": "+said, maxMessage)
	}
	return err
}

func boundedWait(wait time.Duration) time.Duration {
	return min(max(wait, 0), MaxRetryAfter)
}

// oneLine makes foreign text fit for a message: valid UTF-8, no control characters, one line, at most limit bytes.
func oneLine(text string, limit int) string {
	cut := len(text) > limit
	if cut {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit-- // not through a letter
		}
		text = text[:limit]
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if cut {
		text += "…"
	}
	return text
}
