package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// What workers elsewhere are told. The HTTP statuses stand in statusOf.
const (
	codeNotListed  control.Code = "messages_not_listed" // the queues of this server are in SQS, which cannot list messages
	codeNoSuchPool control.Code = "no_such_queue"       // that the tenant may look into, or for workers elsewhere of this tenant
	codeOfferGone  control.Code = "offer_gone"
	codeFenced     control.Code = "fenced"
	codeTicket     control.Code = "wrong_ticket"
	codeStopping   control.Code = "stopping"
)

// The patterns of what workers name themselves and their starts, and of bytes; a test compares them with the tags.
const (
	workerPattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`
	startPattern  = `^[0-9a-z]{1,20}$`
	kindPattern   = `^[a-z][a-z_]{0,39}$`
	codePattern   = target.CodePattern
	base64Pattern = `^[A-Za-z0-9+/]*={0,2}$`
)

func (a *api) work() {
	accept(a, operation{id: "take-work", method: http.MethodPost, path: "/v1/work/take", tag: "work", scope: access.Work, waits: true,
		summary: "Wait for runs to work on, as a worker in another process",
		example: map[string]any{"queue": "gpu", "worker": "gpu-1-7f3a", "max": 1, "wait": "20s", "http": true},
		codes:   []control.Code{codeNoSuchPool, codeStopping}}, announced, a.takeWork)
	acceptUnread(a, operation{id: "start-work", method: http.MethodPost, path: "/v1/work/start", tag: "work", scope: access.Work,
		summary: "Begin an attempt of a run that was offered; repeating it gives the same attempt",
		codes:   []control.Code{control.CodeRunNotFound, codeOfferGone, codeTicket}}, formAlone, a.startWork)
	acceptUnread(a, operation{id: "leave-work", method: http.MethodPost, path: "/v1/work/leave", tag: "work", scope: access.Work, status: http.StatusNoContent,
		summary: "Give back a run that was offered",
		codes:   []control.Code{control.CodeRunNotFound, codeFenced, codeTicket}}, formAlone, a.leaveWork)
	acceptUnread(a, operation{id: "renew-work", method: http.MethodPost, path: "/v1/work/renew", tag: "work", scope: access.Work,
		summary: "Keep the lease of an attempt, and hear of a cancel",
		codes:   []control.Code{control.CodeRunNotFound, codeFenced, codeTicket}}, formAlone, a.renewWork)
	accept(a, operation{id: "show-work", method: http.MethodPost, path: "/v1/work/show", tag: "work", scope: access.Work,
		summary: "Show what an attempt has written so far to those who read it; what is kept is the log that its end gives",
		codes:   []control.Code{control.CodeRunNotFound, codeTicket}}, shownOf, a.showWork)
	accept(a, operation{id: "finish-work", method: http.MethodPost, path: "/v1/work/finish", tag: "work", scope: access.Work,
		summary: "Say how an attempt ended; repeating it finds it said",
		codes:   []control.Code{control.CodeRunNotFound, codeFenced, codeTicket}}, finishedOf, a.finishWork)
}

// ofWork tells what a worker decides on; every other error is as anywhere.
func ofWork(err error) error {
	switch {
	case errors.Is(err, lease.ErrNoPool):
		return newProblem(codeNoSuchPool, "There is no queue of this name for workers in other processes. belfry serve --remote-queue NAME makes one, "+
			"and NAME=TENANT one for another tenant than default.")
	case errors.Is(err, lease.ErrClosing):
		p := newProblem(codeStopping, "The server is being stopped. Ask again when it is back.")
		p.RetryAfter = schedule.Duration(time.Second)
		return p
	case errors.Is(err, lease.ErrTicket):
		return newProblem(codeTicket, "This ticket is not of this run and attempt. Give back the one that came with the offer, and after the start the one that the start gave.")
	case errors.Is(err, worker.ErrGone):
		return newProblem(codeOfferGone, "The run is not to be started any more: it has ended, somebody else has it, or it was reserved for too long.")
	case errors.Is(err, worker.ErrFenced):
		return newProblem(codeFenced, "The run is held by another attempt, or has ended: nothing of this attempt is accepted any more.")
	}
	return err
}

func runOf(id string) (run.ID, error) {
	parsed, err := run.ParseID(id)
	if err != nil {
		return run.ID{}, noSuchRun(id)
	}
	return parsed, nil
}

func (a *api) takeWork(ctx context.Context, _ *struct{}, in input[wire.WorkRequest], who lease.Announced) (*answer[wire.OfferList], error) {
	offers, err := a.Remote.Take(ctx, in.tenant, who, in.body.Max, in.body.Wait.Std())
	if err != nil {
		return nil, ofWork(err)
	}
	list := wire.OfferList{Items: make([]wire.Offer, len(offers))}
	for i, o := range offers {
		shown := wire.Offer{Run: o.Run, Suspect: o.Suspect, First: o.First, Ticket: o.Ticket, Lease: schedule.Duration(o.Lease)}
		switch {
		case o.Target.HTTP != nil:
			shown.Kind = "http"
		case o.Target.Exec != nil:
			shown.Kind = "exec"
		case o.Target.Handler != nil:
			shown.Kind, shown.Handler = "handler", o.Target.Handler.Name
		case o.Target.AWS != nil:
			shown.Kind = "aws"
		case o.Target.Email != nil:
			shown.Kind = "email"
		}
		list.Items[i] = shown
	}
	return &answer[wire.OfferList]{list}, nil
}

// announced gives who asks, and refuses what a worker cannot be, or ask for.
func announced(in input[wire.WorkRequest]) (lease.Announced, error) {
	b := in.body
	var wait error
	if b.Wait < 0 || b.Wait.Std() > queue.MaxWait {
		wait = invalid.Field("wait", b.Wait.String(), "0s to 20s")
	}
	return lease.Announced{Worker: b.Worker, Queue: b.Queue, Handlers: b.Handlers, HTTP: b.HTTP, Exec: b.Exec, AWS: b.AWS, Email: b.Email,
		Labels: b.Labels, Concurrency: b.Concurrency, Running: b.Running}, errors.Join(wait, validLabels(b.Labels))
}

// mostLabels is how many labels a worker may have.
const mostLabels = 16

// validLabels holds labels of workers to the bounds of those of jobs: they are remembered for every worker.
func validLabels(labels map[string]string) error {
	if len(labels) > mostLabels {
		return invalid.Field("labels", strconv.Itoa(len(labels))+" labels", "at most "+strconv.Itoa(mostLabels))
	}
	var wrong []error
	for key, value := range labels {
		switch {
		case job.ValidName(key) != nil:
			wrong = append(wrong, invalid.Field("labels", shown(key), "names of letters, digits, dots, underscores or hyphens"))
		case len(value) > job.MaxLabel:
			wrong = append(wrong, invalid.Field("labels."+key, strconv.Itoa(len(value))+" bytes", fmt.Sprintf("at most %d", job.MaxLabel)))
		}
	}
	return errors.Join(wrong...)
}

func (a *api) startWork(ctx context.Context, _ *struct{}, in input[wire.WorkStart]) (*answer[wire.WorkTask], error) {
	id, err := runOf(in.body.Run)
	if err != nil {
		return nil, err
	}
	t, ticket, err := a.Remote.Start(ctx, in.tenant, id, in.body.Ticket, lease.Holder(in.body.Holder))
	if err != nil {
		return nil, ofWork(err)
	}
	shown := wire.WorkTask{Run: t.Run, Tenant: t.Tenant, Job: t.Job, Attempt: t.Attempt, Fence: t.Fence, NominalTime: t.Nominal,
		Target: t.Target, Secrets: t.Secrets, Withheld: t.Withheld, Payload: base64.StdEncoding.EncodeToString(t.Payload), Timeout: schedule.Duration(t.Timeout),
		AtMostOnce: t.AtMostOnce, Lease: schedule.Duration(t.Lease), Traceparent: t.Trace.Traceparent(), Ticket: ticket}
	if f := t.Failure; f != nil {
		shown.Failure = &wire.WorkFailure{Kind: f.Kind, Message: f.Message, Permanent: f.Permanent}
	}
	return &answer[wire.WorkTask]{shown}, nil
}

func (a *api) leaveWork(ctx context.Context, _ *struct{}, in input[wire.WorkLeave]) (*struct{}, error) {
	id, err := runOf(in.body.Run)
	if err != nil {
		return nil, err
	}
	why := map[string]worker.Leaving{"stopping": worker.Stopping, "busy": worker.Busy, "incapable": worker.Incapable}[in.body.Reason]
	holder := lease.Holder{Worker: in.body.Worker, Start: in.body.Start}
	return nil, ofWork(a.Remote.Leave(ctx, in.tenant, id, in.body.Ticket, holder, why))
}

func claimOf(c wire.WorkClaim) (lease.Claim, error) {
	id, err := runOf(c.Run)
	return lease.Claim{Run: id, Fence: c.Fence, Holder: lease.Holder(c.Holder), Ticket: c.Ticket}, err
}

// claimed is what somebody says of a run that they hold.
type claimed[T any] struct {
	claim lease.Claim
	what  T
}

// claimedOf refuses a run that cannot be, and what is wrong with what is said of it.
func claimedOf[T any](c wire.WorkClaim, what T, wrong error) (claimed[T], error) {
	claim, err := claimOf(c)
	return claimed[T]{claim, what}, errors.Join(err, wrong)
}

func shownOf(in input[wire.WorkLog]) (claimed[runlog.Log], error) {
	log, wrong := logOf(in.body)
	return claimedOf(in.body.WorkClaim, log, wrong)
}

func finishedOf(in input[wire.WorkEnd]) (claimed[worker.End], error) {
	end, wrong := endOf(in.body)
	return claimedOf(in.body.WorkClaim, end, wrong)
}

func (a *api) renewWork(ctx context.Context, _ *struct{}, in input[wire.WorkClaim]) (*answer[wire.WorkLease], error) {
	claim, err := claimOf(in.body)
	if err != nil {
		return nil, err
	}
	renewed, err := a.Remote.Renew(ctx, in.tenant, claim)
	if err != nil {
		return nil, ofWork(err)
	}
	return &answer[wire.WorkLease]{wire.WorkLease(renewed)}, nil
}

func (a *api) showWork(ctx context.Context, _ *struct{}, in input[wire.WorkLog], asked claimed[runlog.Log]) (*answer[wire.WorkShown], error) {
	read, err := a.Remote.Show(ctx, in.tenant, asked.claim, asked.what)
	if err != nil {
		return nil, ofWork(err)
	}
	return &answer[wire.WorkShown]{wire.WorkShown{Read: read}}, nil
}

func logOf(b wire.WorkLog) (runlog.Log, error) {
	data, err := base64.StdEncoding.DecodeString(b.Log)
	if err != nil {
		return runlog.Log{}, invalid.Field("log", "other text", "base64")
	}
	return runlog.Decode(data), nil
}

func (a *api) finishWork(ctx context.Context, _ *struct{}, in input[wire.WorkEnd], asked claimed[worker.End]) (*answer[wire.WorkEnded], error) {
	state, err := a.Remote.Finish(ctx, in.tenant, asked.claim, asked.what)
	if err != nil {
		return nil, ofWork(err)
	}
	return &answer[wire.WorkEnded]{wire.WorkEnded{State: state.String()}}, nil
}

func endOf(b wire.WorkEnd) (e worker.End, err error) {
	for _, outcome := range []run.Outcome{run.OutcomeSucceeded, run.OutcomeFailed, run.OutcomeCrashed, run.OutcomeCancelled, run.OutcomeHandedBack} {
		if outcome.String() == b.Outcome {
			e.Outcome = outcome
		}
	}
	e.Cause = b.Cause
	var wrong []error
	decode := func(field, text string) []byte {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			wrong = append(wrong, invalid.Field(field, "other text", "base64"))
		}
		return data
	}
	e.Log = runlog.Decode(decode("log", b.Log))
	e.Result = target.Result{ContentType: b.ContentType, Truncated: b.Truncated, Body: decode("result", b.Result)}
	switch {
	case e.Outcome == run.OutcomeFailed && b.Failure == nil:
		wrong = append(wrong, invalid.Field("failure", "none", "why it failed, with outcome failed"))
	case b.Failure != nil:
		e.Failure = target.Reported(b.Failure.Kind, b.Failure.Message, b.Failure.Permanent, b.Failure.RetryAfter.Std())
		e.Failure.Code = b.Failure.Code
	}
	return e, errors.Join(wrong...)
}
