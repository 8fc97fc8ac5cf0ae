package target

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// AWS hands a run to a resource of AWS. A function gives its answer as the result, or is only handed the event (Invoke); a message
// that a queue, topic or bus has taken, and an execution that has begun, are success, whatever becomes of them.
type AWS struct {
	ARN          string `json:"arn" cbor:"1,keyasint"`                               // what is called; see ParseARN
	RoleARN      string `json:"role_arn,omitempty" cbor:"2,keyasint,omitempty"`      // "": the worker's own role
	Invoke       string `json:"invoke,omitempty" cbor:"3,keyasint,omitempty"`        // of a function: "" is InvokeSync
	MessageGroup string `json:"message_group,omitempty" cbor:"4,keyasint,omitempty"` // of a queue or topic; "" is the job's name where it is FIFO
	Source       string `json:"source,omitempty" cbor:"5,keyasint,omitempty"`        // of an event on a bus; "" is DefaultSource
	DetailType   string `json:"detail_type,omitempty" cbor:"6,keyasint,omitempty"`   // of an event on a bus; "" is the job's name
}

// The ways to invoke a function.
const (
	InvokeSync  = "sync"  // waits for its end: what it returns is the result, what it throws the failure
	InvokeAsync = "async" // hands it the event: Lambda queues it, and retries by itself
)

// DefaultSource is where events on a bus come from, unless the job says otherwise.
const DefaultSource = "belfry"

// CallAWS makes the one request of an attempt. Its error is a *Failure where it is known whether the request was carried out, one of Short
// where nothing was sent for want of something, one that wraps ErrUnsent where ctx ended before anything was sent, and anything else where that is unknown; it never asks twice.
type CallAWS func(ctx context.Context, to AWS, call Call) (Result, error)

var messageGroup = regexp.MustCompile(`^[!-~]{1,128}$`)

func (a *AWS) validate() error {
	to, err := ParseARN(a.ARN)
	errs := []error{err}
	if a.RoleARN != "" {
		errs = append(errs, validRole(a.RoleARN, to))
	}
	if err != nil {
		return errors.Join(errs...) // what else fits depends on the service
	}
	only := func(field, got, of string, services ...string) bool {
		if got != "" && !slices.Contains(services, to.Service) {
			errs = append(errs, invalid.Field(field, got, "nothing: it is of "+of+", and the ARN is of "+to.Service))
		}
		return got != "" && slices.Contains(services, to.Service)
	}
	if only("invoke", a.Invoke, "functions", ServiceLambda) && a.Invoke != InvokeSync && a.Invoke != InvokeAsync {
		errs = append(errs, invalid.Field("invoke", a.Invoke, `"sync", to wait for the function's end, or "async"`))
	}
	if only("message_group", a.MessageGroup, "queues and topics", ServiceSQS, ServiceSNS) && !messageGroup.MatchString(a.MessageGroup) {
		errs = append(errs, invalid.Field("message_group", a.MessageGroup, "1 to 128 letters, digits and punctuation"))
	}
	if only("source", a.Source, "event buses", ServiceEvents) && (len(a.Source) > 256 || strings.HasPrefix(a.Source, "aws.")) {
		errs = append(errs, invalid.Field("source", a.Source, `at most 256 bytes, not beginning with "aws.", which is AWS's own`))
	}
	if only("detail_type", a.DetailType, "event buses", ServiceEvents) && len(a.DetailType) > 128 {
		errs = append(errs, invalid.Field("detail_type", a.DetailType, "at most 128 bytes"))
	}
	return errors.Join(errs...)
}

func (s *Set) canAWS() error {
	if s.cfg.AWS == nil || len(s.cfg.ARNs) == 0 {
		return fmt.Errorf("%w: it was not started with --aws-target", ErrNotHere)
	}
	return nil
}

// callAWS holds the operator's bound over target and role alike: who may write a job must not thereby act as every role that trusts
// this worker.
func (s *Set) callAWS(ctx context.Context, to AWS, call Call) (Result, error) {
	for _, arn := range []string{to.ARN, to.RoleARN} {
		if arn != "" && !slices.ContainsFunc(s.cfg.ARNs, func(p ARNPattern) bool { return p.Allows(arn, call.Tenant) }) {
			return Result{}, failed(KindRefused, nil, "%s: this worker's operator does not let jobs of the tenant %s name it (--aws-target)", arn, call.Tenant).permanent()
		}
	}
	got, err := s.cfg.AWS(ctx, to, call)
	if err != nil {
		return Result{}, handedOver(ctx, err)
	}
	if most := call.most(); len(got.Body) > most {
		// Cloned: the rest of a large answer must not stay in memory behind its beginning.
		got.Body, got.Truncated = append([]byte(nil), WholeText(got.Body[:most])...), true
	}
	return got, nil
}

// handedOver is what an error of CallAWS or SendEmail means.
func handedOver(ctx context.Context, err error) error {
	var told *Failure
	switch {
	case errors.As(err, &told):
		return told
	case errors.Is(err, ErrShort):
		return err
	case ctx.Err() != nil && errors.Is(err, ErrUnsent):
		return unsent(ctx)
	case ctx.Err() != nil:
		return ended(ctx)
	}
	return failed(KindLost, err, "%v", err)
}

// envelopeMember is the member of a payload that tells of the attempt, where a service has no other place for it.
const envelopeMember = "belfry"

// envelope is what a target is told of the attempt inside its payload: the facts, as JSON has them.
type envelope struct {
	Run            string    `json:"run"`
	Job            string    `json:"job"`
	Attempt        int       `json:"attempt"`
	Fence          uint64    `json:"fence"`
	Nominal        time.Time `json:"nominal_time"`
	IdempotencyKey string    `json:"idempotency_key,omitempty"`
}

// Envelope gives the payload with a member "belfry" in it that tells of the attempt, for targets that are told by nothing else. What
// is no JSON object stands under "payload". A payload that has such a member of its own is refused: one of the two would be lost.
func (c Call) Envelope() ([]byte, error) {
	about := envelope{Run: c.Run, Job: c.Job, Attempt: c.Attempt, Fence: c.Fence, Nominal: c.Nominal.UTC()}
	if !c.AtMostOnce {
		about.IdempotencyKey = c.Run
	}
	told, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	payload := c.PayloadOrEmpty()
	if !json.Valid(payload) {
		return nil, failed(KindPayload, nil, "the payload is not JSON").permanent()
	}
	head := `{"` + envelopeMember + `":` + string(told)
	if payload[0] != '{' {
		return []byte(head + `,"payload":` + string(payload) + `}`), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(payload, &members); err != nil {
		return nil, failed(KindPayload, err, "read the payload: %v", err).permanent()
	}
	if _, taken := members[envelopeMember]; taken {
		return nil, failed(KindPayload, nil, "the payload has a member %q, where Belfry tells of the attempt: give it another name", envelopeMember).permanent()
	}
	if len(members) > 0 {
		head += ","
	}
	return append([]byte(head), bytes.TrimLeft(payload[1:], " \t\r\n")...), nil // its own text: numbers keep all their digits
}

// PayloadOrEmpty is the payload, or {} for services that want something.
func (c Call) PayloadOrEmpty() []byte {
	if payload := bytes.TrimSpace(c.Payload); len(payload) > 0 {
		return payload
	}
	return []byte("{}")
}
