package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// WorkerConfig says what a worker takes from the server and how it works on it. Fields without a default are required.
type WorkerConfig struct {
	Queue string // the pool that it serves: one that the server has for workers in other processes

	// Name is the worker's in leases and listings: 1 to 64 letters, digits, dots, underscores or hyphens, unique over all starts
	// of all workers. A worker that is started again under the name of one that still runs could speak for it.
	Name string

	// Targets calls what runs ask for. Give its Config worker.Secrets: secrets come from the server, with each run.
	Targets *target.Set

	HandlersOnly bool                 // takes only runs that call Go handlers
	Labels       map[string]string    // for people, in listings
	Elapsed      func() time.Duration // since some start, by a clock that is never stepped
	Log          *slog.Logger         // default: discards
	Tracer       *trace.Tracer        // default: traces nothing

	Concurrency int             // attempts at once. Default 50
	Grace       time.Duration   // how long attempts may go on after the worker was told to stop. Default 20s
	Hurry       <-chan struct{} // when it is closed, the grace ends. Default: never
}

var workerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Worker makes a worker of this process for runs of the server. It does nothing before its Run, which goes on through restarts of
// the server: attempts are renewed and finished when it is back.
func (c *Client) Worker(cfg WorkerConfig) (*worker.Worker, error) {
	if cfg.Queue == "" || cfg.Targets == nil {
		return nil, errors.New("client: Queue and Targets of a worker are required")
	}
	if !workerName.MatchString(cfg.Name) {
		return nil, fmt.Errorf("client: a worker named %q: want 1 to 64 letters, digits, dots, underscores or hyphens, beginning with a letter or digit", cfg.Name)
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 50
	}
	s := &source{client: c, cfg: cfg}
	w, err := worker.New(worker.Config{Source: s, Targets: cfg.Targets, Elapsed: cfg.Elapsed, Log: cfg.Log, Tracer: cfg.Tracer,
		Concurrency: cfg.Concurrency, Grace: cfg.Grace, Hurry: cfg.Hurry})
	if err != nil {
		return nil, err
	}
	s.running = w.Running
	return w, nil
}

// source is the worker.Source of a server elsewhere.
type source struct {
	client  *Client
	cfg     WorkerConfig
	running func() int
	starts  atomic.Uint64
}

// How long a worker waits for one answer, beside what it waits for work.
const (
	workTimeout = 15 * time.Second
	endTimeout  = 30 * time.Second // results and logs are stored before the end is
)

// ask sends one call, once.
func (s *source) ask(ctx context.Context, timeout time.Duration, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, _, err := s.client.do(ctx, call{method: http.MethodPost, path: "/v1/work/" + path, body: body}, into)
	return err
}

// passing tells whether the same call may succeed later: nobody answered, or somebody who was unwell.
func passing(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status >= 500 || refused.Status == http.StatusTooManyRequests
	}
	return true
}

// judged makes of the server's answers what a worker decides on.
func judged(err error) error {
	switch {
	case err == nil:
		return nil
	case HasCode(err, "fenced"), HasCode(err, "run_not_found"):
		return worker.ErrFenced
	case HasCode(err, "offer_gone"):
		return worker.ErrGone
	case !passing(err):
		return fmt.Errorf("%w: %w", worker.ErrRefused, err)
	}
	return err
}

func (s *source) Take(ctx context.Context, most int, wait time.Duration) ([]worker.Offer, error) {
	can := s.cfg.Targets.Able()
	only := s.cfg.HandlersOnly
	var list wire.OfferList
	err := s.ask(ctx, wait+workTimeout, "take", wire.WorkRequest{Queue: s.cfg.Queue, Worker: s.cfg.Name, Max: most, Wait: schedule.Duration(wait),
		Handlers: can.Handlers, HTTP: !only, Exec: can.Exec && !only, AWS: can.AWS && !only, Email: can.Email && !only, Labels: s.cfg.Labels,
		Concurrency: s.cfg.Concurrency, Running: s.running()}, &list)
	if err != nil {
		return nil, judged(err)
	}
	offers := make([]worker.Offer, len(list.Items))
	for i, o := range list.Items {
		offers[i] = &offer{source: s, Offer: o}
	}
	return offers, nil
}

// offer is a run that the server holds back for this worker for some seconds.
type offer struct {
	*source
	wire.Offer
}

// About gives of the target what the server tells before the start.
func (o *offer) About() worker.About {
	about := worker.About{Run: o.Run, Suspect: o.Suspect, First: o.First}
	switch o.Kind {
	case "http":
		about.Target.HTTP = &target.HTTP{}
	case "exec":
		about.Target.Exec = &target.Exec{}
	case "handler":
		about.Target.Handler = &target.Handler{Name: o.Handler}
	case "aws":
		about.Target.AWS = &target.AWS{}
	case "email":
		about.Target.Email = &target.Email{}
	}
	return about
}

// Start starts each by itself, all at once.
func (s *source) Start(taking, attempts context.Context, offers []worker.Offer, begun func(int, worker.Attempt, error)) {
	var starts sync.WaitGroup
	for i, o := range offers {
		starts.Go(func() {
			started, err := o.(*offer).start(taking, attempts)
			begun(i, started, err)
		})
	}
	starts.Wait()
}

// start asks until it is answered: a start whose answer was lost may stand, and the same start again gives the same attempt.
// After the length of a lease it is given up, with a word that nothing was called.
func (o *offer) start(taking, attempts context.Context) (worker.Attempt, error) {
	if taking.Err() != nil {
		o.Leave(attempts, worker.Stopping)
		return nil, worker.ErrGone
	}
	ctx, cancel := context.WithTimeout(attempts, max(o.Lease.Std(), workTimeout))
	defer cancel()
	holder := wire.Holder{Worker: o.cfg.Name, Start: strconv.FormatUint(o.starts.Add(1), 36)}
	for wait := firstWait; ; wait = min(2*wait, 2*time.Second) {
		var t wire.WorkTask
		err := o.ask(ctx, workTimeout, "start", wire.WorkStart{Holder: holder, Run: o.Run, Ticket: o.Ticket}, &t)
		switch {
		case err == nil:
			return begun(o.source, holder, t)
		case !passing(err):
			return nil, judged(err)
		}
		again := time.NewTimer(wait)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			o.leave(attempts, wire.WorkLeave{Worker: holder.Worker, Start: holder.Start, Run: o.Run, Ticket: o.Ticket, Reason: "stopping"})
			return nil, err
		}
	}
}

func (o *offer) Leave(ctx context.Context, why worker.Leaving) {
	reason := map[worker.Leaving]string{worker.Stopping: "stopping", worker.Busy: "busy", worker.Incapable: "incapable"}[why]
	o.leave(ctx, wire.WorkLeave{Worker: o.cfg.Name, Run: o.Run, Ticket: o.Ticket, Reason: reason})
}

// leave is told once. Where it does not arrive, the reservation ends by itself, and a start by its lease.
func (s *source) leave(ctx context.Context, l wire.WorkLeave) {
	if err := s.ask(context.WithoutCancel(ctx), workTimeout, "leave", l, nil); err != nil && s.cfg.Log != nil {
		s.cfg.Log.Debug("a run was not given back", "run", l.Run, "error", err)
	}
}

// attempt is one that the server has started for this worker.
type attempt struct {
	*source
	task  worker.Task
	claim wire.WorkClaim
}

func begun(s *source, holder wire.Holder, t wire.WorkTask) (*attempt, error) {
	payload, err := base64.StdEncoding.DecodeString(t.Payload)
	if err != nil {
		return nil, fmt.Errorf("the payload of run %s: %w", t.Run, err)
	}
	a := &attempt{source: s, claim: wire.WorkClaim{Holder: holder, Run: t.Run, Fence: t.Fence, Ticket: t.Ticket},
		task: worker.Task{Tenant: t.Tenant, Run: t.Run, Job: t.Job, Attempt: t.Attempt, Fence: t.Fence, Nominal: t.NominalTime, Target: t.Target,
			Secrets: t.Secrets, Withheld: t.Withheld, Payload: payload, Timeout: t.Timeout.Std(), AtMostOnce: t.AtMostOnce, Lease: t.Lease.Std()}}
	if from, ok := trace.Parse(t.Traceparent); ok {
		a.task.Trace = from.Context
	}
	if f := t.Failure; f != nil {
		a.task.Failure = &target.Failure{Kind: f.Kind, Message: f.Message, Permanent: f.Permanent}
	}
	return a, nil
}

func (a *attempt) Task() worker.Task { return a.task }

func (a *attempt) Renew(ctx context.Context) (worker.Renewed, error) {
	var renewed wire.WorkLease
	err := a.ask(ctx, workTimeout, "renew", a.claim, &renewed)
	return worker.Renewed(renewed), judged(err)
}

func (a *attempt) Show(ctx context.Context, so runlog.Log) (read bool, err error) {
	text, err := so.Encode()
	if err != nil {
		return false, err
	}
	var shown wire.WorkShown
	err = a.ask(ctx, workTimeout, "show", wire.WorkLog{WorkClaim: a.claim, Log: base64.StdEncoding.EncodeToString(text)}, &shown)
	return shown.Read, judged(err)
}

func (a *attempt) Finish(ctx context.Context, e worker.End, told func(run.State, error)) {
	told(a.finish(ctx, e))
}

func (a *attempt) finish(ctx context.Context, e worker.End) (run.State, error) {
	end := wire.WorkEnd{WorkClaim: a.claim, Outcome: e.Outcome.String(), Cause: short(e.Cause, 2000)}
	switch e.Outcome {
	case run.OutcomeSucceeded:
		end.Result, end.Truncated = base64.StdEncoding.EncodeToString(e.Result.Body), e.Result.Truncated
		if len(e.Result.ContentType) <= 255 && utf8.ValidString(e.Result.ContentType) {
			end.ContentType = e.Result.ContentType
		}
	case run.OutcomeFailed:
		end.Failure = &wire.WorkFailure{Kind: e.Failure.Kind, Code: e.Failure.Code, Message: short(e.Failure.Message, 2000), Permanent: e.Failure.Permanent,
			RetryAfter: schedule.Duration(e.Failure.RetryAfter)}
	}
	if !e.Log.IsEmpty() {
		text, err := e.Log.Encode()
		if err != nil {
			return 0, fmt.Errorf("%w: %w", worker.ErrRefused, err)
		}
		end.Log = base64.StdEncoding.EncodeToString(text)
	}
	var ended wire.WorkEnded
	if err := a.ask(ctx, endTimeout, "finish", end, &ended); err != nil {
		return 0, judged(err)
	}
	state, _ := run.ParseState(ended.State) // a name that is not known is a newer server's, and the end is written
	return state, nil
}

// Close has nothing to let go of: the server keeps nothing of an attempt.
func (a *attempt) Close() {}

// short keeps the beginning of a text, up to so many bytes, whole letters only.
func short(text string, size int) string {
	text = strings.ToValidUTF8(text, "?") // or it could not be sent
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}
