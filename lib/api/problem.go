package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The codes of this package; those of package control stand beside them in statusOf.
const (
	codeMalformed        control.Code = "malformed"
	codeInvalid          control.Code = "invalid"
	codeNoSuchPath       control.Code = "no_such_path"
	codeMethodNotAllowed control.Code = "method_not_allowed"
	codeHostNotAllowed   control.Code = "host_not_allowed"
	codeOriginNotAllowed control.Code = "origin_not_allowed"
	codeNotJSON          control.Code = "not_json"
	codeTooLarge         control.Code = "too_large"
	codeNoText           control.Code = "no_text"
	codeThrottled        control.Code = "throttled"
	codeOutcomeUnknown   control.Code = "outcome_unknown"
	codeNotReady         control.Code = "not_ready"
	codeLogExpired       control.Code = "log_expired"
	codeUnauthenticated  control.Code = "unauthenticated"
	codeForbidden        control.Code = "forbidden"
	codeRateLimited      control.Code = "rate_limited"
	codeTokenNotFound    control.Code = "token_not_found"
	codeOwnToken         control.Code = "own_token"
	codeNoSession        control.Code = "no_session"
	codeStoreDamaged     control.Code = "store_damaged"
	codeInternal         control.Code = "internal"
)

// statusOf gives the HTTP status of every code. docs/api.md lists the same, which a test compares.
var statusOf = map[control.Code]int{
	codeMalformed:           http.StatusBadRequest,
	codeInvalid:             http.StatusUnprocessableEntity,
	codeNoSuchPath:          http.StatusNotFound,
	codeMethodNotAllowed:    http.StatusMethodNotAllowed,
	codeHostNotAllowed:      http.StatusForbidden,
	codeOriginNotAllowed:    http.StatusForbidden,
	codeNotJSON:             http.StatusUnsupportedMediaType,
	codeTooLarge:            http.StatusRequestEntityTooLarge,
	codeThrottled:           http.StatusServiceUnavailable,
	codeOutcomeUnknown:      http.StatusServiceUnavailable,
	codeNotReady:            http.StatusServiceUnavailable,
	codeLogExpired:          http.StatusGone,
	codePayloadExpired:      http.StatusGone,
	codeResultExpired:       http.StatusGone,
	codeNoText:              http.StatusNotAcceptable,
	codeNoSuchRange:         http.StatusRequestedRangeNotSatisfiable,
	codeUnauthenticated:     http.StatusUnauthorized,
	codeForbidden:           http.StatusForbidden,
	codeRateLimited:         http.StatusTooManyRequests,
	codeTokenNotFound:       http.StatusNotFound,
	codeOwnToken:            http.StatusConflict,
	codeNoSession:           http.StatusConflict,
	codeSecretNotFound:      http.StatusNotFound,
	codeNoSecretsKey:        http.StatusConflict,
	codeTooManySecrets:      http.StatusConflict,
	codeNoSuchPool:          http.StatusNotFound,
	codeNotListed:           http.StatusConflict,
	codeOfferGone:           http.StatusConflict,
	codeFenced:              http.StatusConflict,
	codeTicket:              http.StatusForbidden,
	codeStopping:            http.StatusServiceUnavailable,
	codeSimulationTooLong:   http.StatusUnprocessableEntity,
	codeStoreDamaged:        http.StatusInternalServerError,
	codeInternal:            http.StatusInternalServerError,
	control.CodeJobNotFound: http.StatusNotFound,
	control.CodeRunNotFound: http.StatusNotFound, control.CodeGateNotFound: http.StatusNotFound,
	control.CodeGateExists:    http.StatusPreconditionFailed,
	control.CodeOwnGate:       http.StatusConflict,
	control.CodeNotWaiting:    http.StatusConflict,
	control.CodeNotBlocking:   http.StatusConflict,
	control.CodeStale:         http.StatusPreconditionFailed,
	control.CodeJobExists:     http.StatusPreconditionFailed,
	control.CodeKeyReused:     http.StatusConflict,
	control.CodeRunEnded:      http.StatusConflict,
	control.CodeRunNotEnded:   http.StatusConflict,
	control.CodeNeedsForce:    http.StatusConflict,
	control.CodeRunSkipped:    http.StatusConflict,
	control.CodeNotDeadLetter: http.StatusConflict,
	control.CodeRunDiscarded:  http.StatusConflict,
	control.CodeJobDeleted:    http.StatusConflict,
	control.CodeBusy:          http.StatusTooManyRequests,
	control.CodeClockSkewed:   http.StatusServiceUnavailable,
	control.CodeStepNotFound:  http.StatusNotFound,
	control.CodeBegun:         http.StatusConflict,
	control.CodeNotReleased:   http.StatusConflict,
	control.CodeExpression:    http.StatusConflict,
}

// problem is a wire.Problem as an error that can be sent.
type problem struct {
	wire.Problem
	challenge    string // WWW-Authenticate
	contentRange string // Content-Range
}

func newProblem(code control.Code, detail string) *problem {
	status, known := statusOf[code]
	if !known {
		status = http.StatusInternalServerError
	}
	return &problem{Problem: wire.Problem{Title: http.StatusText(status), Status: status, Code: string(code), Detail: detail}}
}

// Refuse answers with a problem document, for handlers beside the API. A title that is left out is that of the status.
func Refuse(w http.ResponseWriter, p wire.Problem) {
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	(&problem{Problem: p}).write(w)
}

// TooLarge answers that an answer is larger than what stands in front of the handler passes on, which is limit bytes.
func TooLarge(w http.ResponseWriter, limit int64) {
	newProblem(codeTooLarge, "The answer would be larger than "+sizeText(limit)+", which is all that this way to Belfry takes. Ask for less at once, with limit or a narrower filter; of bytes for a part, with the header Range: bytes=0-524287.").write(w)
}

// Bytes is the media type of bytes of any kind.
const Bytes = mediaBytes

// NoText answers that an answer is bytes, and what stands in front of the handler passes those on as they are only to who asks for them.
func NoText(w http.ResponseWriter) {
	newProblem(codeNoText, "The answer is no text in UTF-8, and this way to Belfry passes on such bytes only where they are asked for: send the header Accept: "+Bytes+".").write(w)
}

// invalidProblem names what is wrong; more is how many others are.
func invalidProblem(fields []wire.FieldError, more int) *problem {
	p := newProblem(codeInvalid, "The request cannot be carried out as it is.")
	p.Errors, p.MoreErrors = fields, more
	return p
}

func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Std().Seconds()))))
	}
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if p.contentRange != "" {
		h.Set("Content-Range", p.contentRange)
	}
	w.WriteHeader(p.Status)
	text, _ := encoded(p)
	_, _ = w.Write(text) // the connection may be gone; there is nobody else to tell
}

const (
	retryThrottled = time.Second
	retryUnknown   = time.Second
	retrySkewed    = 10 * time.Second
	repeatSafely   = "whether it was done is not known. Sending the same request again is safe: a PUT or DELETE finds what it did, " +
		"and a POST of a run does under its Idempotency-Key."
)

// problemOf turns any error of the domain into a problem, and notes it where somebody looks.
func (a *api) problemOf(ctx context.Context, err error) *problem {
	p := a.judge(ctx, err)
	if p.Status == http.StatusTooManyRequests {
		a.Counts.Throttled.Inc("api")
	}
	if span := trace.Current(ctx); span != nil {
		span.Set("http.response.status_code", strconv.Itoa(p.Status))
		span.Set("error.type", p.Code)
		if p.Status >= http.StatusInternalServerError {
			span.Fail(p.Code)
		}
	}
	return p
}

// judge tells what an error is to the caller. What it cannot tell apart is logged and shown without detail.
func (a *api) judge(ctx context.Context, err error) *problem {
	var ready *problem
	var refusal *control.Refusal
	var stranger *access.Unauthenticated
	var limited *access.Limited
	var ended *access.Ended
	var exceeds *access.Exceeds
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &refusal):
		p := newProblem(refusal.Code, refusal.Message)
		p.RetryAfter = schedule.Duration(refusal.RetryAfter)
		if p.RetryAfter == 0 && (refusal.Code == control.CodeBusy || refusal.Code == control.CodeClockSkewed) {
			p.RetryAfter = schedule.Duration(time.Second)
		}
		return p
	case errors.As(err, &stranger):
		return unauthenticated(stranger.Message, stranger.Given)
	case errors.As(err, &limited):
		p := newProblem(codeRateLimited, limited.Message)
		p.RetryAfter = schedule.Duration(limited.RetryAfter)
		return p
	case errors.As(err, &ended):
		return unauthenticated("The token "+ended.Why+". Ask for a new one.", true)
	case errors.As(err, &exceeds):
		return forbidden(exceeds.Scope, "A session allows no more than its token, which does not have the scope "+string(exceeds.Scope)+".")
	case errors.Is(err, access.ErrNoSession):
		return newProblem(codeNoSession, "A session is made of a token, and the caller brings none, or one that is a session itself.")
	case errors.Is(err, access.ErrNoSuchToken):
		return newProblem(codeTokenNotFound, "There is no such token.")
	case errors.Is(err, store.ErrBadCursor):
		return invalidProblem([]wire.FieldError{{Field: "cursor", Message: "want the next of the page before, with the same filters"}}, 0)
	case errors.Is(err, dispatch.ErrSkewed): // a worker elsewhere asked for runs
		p := newProblem(control.CodeClockSkewed, err.Error())
		p.RetryAfter = schedule.Duration(retrySkewed)
		return p
	case errors.Is(err, store.ErrDamaged), errors.Is(err, blob.ErrCorrupt):
		// Which file it is stands in the log and under /readyz: the error names keys, perhaps of somebody else.
		a.Log.ErrorContext(ctx, "a request met damage in the store", "err", err)
		return newProblem(codeStoreDamaged, "Something that this request needs is stored in a part of the store that is damaged. Asking again does not help. "+
			"Whoever runs the server finds with \"belfry doctor\" what is damaged, and can bring back a backup with \"belfry restore\".")
	case errors.Is(err, store.ErrThrottled):
		p := newProblem(codeThrottled, "The store is over its capacity. Nothing was changed.")
		p.RetryAfter = schedule.Duration(retryThrottled)
		return p
	case errors.Is(err, blob.ErrUnavailable):
		a.Log.ErrorContext(ctx, "the store of blobs is not to be had", "err", err)
		p := newProblem(codeThrottled, "The store of large payloads, results and logs cannot be reached, or takes no more. Nothing was changed.")
		p.RetryAfter = schedule.Duration(retryThrottled)
		return p
	case errors.Is(err, store.ErrUnknown):
		p := newProblem(codeOutcomeUnknown, "The store did not confirm the write: "+repeatSafely)
		p.RetryAfter = schedule.Duration(retryUnknown)
		return p
	case errors.Is(err, dispatch.ErrSlow):
		return newProblem(codeSimulationTooLong, "Its expressions took longer than 5 s, and are likely to again.")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p := newProblem(codeOutcomeUnknown, "The request ran out of time: "+repeatSafely)
		p.RetryAfter = schedule.Duration(retryUnknown)
		return p
	}
	if first, more := invalid.First(err, invalid.Most); len(first) > 0 {
		fields := make([]wire.FieldError, len(first))
		for i, e := range first {
			fields[i] = wire.FieldError{Field: e.Field, Message: messageOf(e)}
		}
		return invalidProblem(fields, more)
	}
	a.Log.ErrorContext(ctx, "request failed", "err", err)
	return newProblem(codeInternal, "Belfry made an error. Its log has the details.")
}

// messageOf says what is wrong with a field that stands beside it.
func messageOf(e *invalid.Error) string {
	if e.Got == "" {
		return "want " + e.Want
	}
	return fmt.Sprintf("got %s, want %s", e.Got, e.Want)
}
