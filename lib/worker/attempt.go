package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Why an attempt's context ended before its target did, beside ErrFenced.
var (
	errStopped   = errors.New("the worker is being stopped")
	errCancelled = errors.New("a cancel was asked for")
)

// attempt is one call of a target under a lease.
type attempt struct {
	*shift
	lease    Attempt
	task     Task
	renewing renewal
	log      *runlog.Keeper
	shown    atomic.Bool // while the log is shown to readers elsewhere
	span     *trace.Span
	ended    func()
}

// attempt calls the target of a run that has just been started, keeps its lease, and reports how it ended. It may return before that is
// written; nothing of it is under way any more when ended is called.
func (s *shift) attempt(started Attempt, ended func()) {
	a := &attempt{shift: s, lease: started, task: started.Task(), log: runlog.NewKeeper(s.Targets.Now, s.MaxLog), ended: ended}
	ctx := a.begin(s.attempts)
	calling, stop := context.WithCancelCause(ctx)
	// The lease is kept while a stopped target comes to its end, and while its end is written.
	a.renewing.renew = func(quiet context.Context) time.Duration { return a.renew(calling, quiet, stop) }
	s.leases.keep(&a.renewing, a.task.Lease/3)
	s.register(a)
	result, err := a.call(calling)
	cause := context.Cause(calling)
	stop(nil)
	if errors.Is(cause, ErrFenced) {
		a.span.Fail(ErrFenced.Error())
		s.Log.WarnContext(ctx, "an attempt was fenced off", "run", a.task.Run, "attempt", a.task.Attempt, "fence", a.task.Fence)
		a.close()
		return
	}
	e := a.end(result, err, cause)
	a.span.Set("belfry.outcome", e.Outcome.String())
	if e.Failure != nil {
		a.span.Fail(e.Failure.Error())
	}
	a.finish(ctx, e, a.Elapsed(), firstTry)
}

// close lets go of what an attempt has held.
func (a *attempt) close() {
	a.forget(a)
	a.leases.end(&a.renewing)
	a.span.End()
	a.lease.Close()
	a.ended()
	a.busy.Done()
}

// begin has what follows say which attempt it is about, and begins its span below the one that the run began with.
func (a *attempt) begin(ctx context.Context) context.Context {
	t := a.task
	ctx = trace.Tell(ctx, slog.String("tenant", t.Tenant), slog.String("job", t.Job), slog.String("run", t.Run), slog.Int("attempt", t.Attempt))
	ctx = trace.With(ctx, trace.Origin{Context: t.Trace})
	ctx, a.span = a.Tracer.Begin(ctx, trace.Consumer, "attempt")
	if a.span != nil {
		a.span.Set("belfry.tenant", t.Tenant)
		a.span.Set("belfry.job", t.Job)
		a.span.Set("belfry.run", t.Run)
		a.span.SetInt("belfry.attempt", int64(t.Attempt))
		a.span.Set("belfry.fence", strconv.FormatUint(t.Fence, 10))
	}
	return ctx
}

// call calls the target, as soon as the host has what that begins with: until then nothing has happened.
func (a *attempt) call(ctx context.Context) (target.Result, error) {
	if failure := a.task.Failure; failure != nil {
		return target.Result{}, failure
	}
	began, most := a.Elapsed(), shortFor
	if a.left > 0 {
		most = min(most, a.left-patience-a.task.Timeout)
	}
	for told := false; ; told = true {
		result, err := a.try(ctx)
		if !errors.Is(err, target.ErrShort) {
			return result, err
		}
		if !told {
			_, _ = fmt.Fprintf(a.log, "belfry: nothing has begun yet: %v\n", err)
		}
		if !a.short.wait(ctx, a.shift, err) || a.Elapsed()-began > most {
			return target.Result{}, err
		}
	}
}

// try calls the target once.
func (a *attempt) try(ctx context.Context) (target.Result, error) {
	t := a.task
	ctx, span := trace.Child(ctx, trace.Client, "target")
	defer span.End()
	if t.Secrets != nil || t.Withheld != nil {
		ctx = context.WithValue(ctx, taskKey{}, t)
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	result, err := a.Targets.Call(ctx, t.Target, target.Call{
		Tenant: t.Tenant, Run: t.Run, Job: t.Job, Attempt: t.Attempt, Fence: t.Fence, Nominal: t.Nominal,
		Payload: t.Payload, AtMostOnce: t.AtMostOnce, MaxResult: t.MaxResult, Log: a.log, Trace: trace.From(ctx),
	})
	if span != nil {
		what := t.Target.String()
		kind, _, _ := strings.Cut(what, " ")
		span.Rename("target " + kind)
		span.Set("belfry.target", what)
		if err != nil {
			span.Fail(err.Error())
		}
	}
	return result, err
}

type taskKey struct{}

// Secrets is the target.Secrets of a worker whose source is elsewhere: a secret comes with the task that needs it, and is known
// while that is called.
func Secrets(ctx context.Context, _, name string) (string, error) {
	t, _ := ctx.Value(taskKey{}).(Task)
	if text, ok := t.Secrets[name]; ok {
		return text, nil
	}
	if why := t.Withheld[name]; why != "" {
		return "", errors.New(why)
	}
	return "", errors.New("it did not come with the run")
}

// renewAgain is how soon a renewal is tried again that failed: a store that comes back shall find the lease renewed before
// anybody judges it.
const renewAgain = time.Second

// renew keeps the lease for another length of it, and stops the call when the run is not ours any more or a cancel was asked for. It
// tells how soon to renew again: after a third of the lease. While nobody can be reached the attempt goes on: should its lease be taken
// away, what it does is fenced.
func (a *attempt) renew(ctx, quiet context.Context, stop context.CancelCauseFunc) time.Duration {
	every := a.task.Lease / 3
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), every)
	defer cancel()
	defer context.AfterFunc(quiet, cancel)()
	renewed, err := a.lease.Renew(asking)
	switch {
	case errors.Is(err, ErrFenced):
		stop(ErrFenced)
		return -1
	case err != nil && quiet.Err() == nil:
		a.Log.WarnContext(ctx, "a lease was not renewed", "run", a.task.Run, "error", err)
		return min(every, renewAgain)
	case renewed.Cancel:
		stop(errCancelled)
	}
	if renewed.Read {
		a.show(ctx)
	}
	return every
}

// showEvery is how often readers elsewhere are shown what an attempt has written.
const showEvery = 2 * time.Second

// show shows the log to readers elsewhere until nobody reads it any more, or the call has ended: then all of the log comes with the end.
func (a *attempt) show(calling context.Context) {
	if calling.Err() != nil || !a.shown.CompareAndSwap(false, true) {
		return
	}
	a.do(func() {
		defer a.shown.Store(false)
		for read := true; read && calling.Err() == nil; a.sleep(calling, showEvery) {
			so := a.log.Log(false)
			so.Attempt = a.task.Attempt
			var err error
			if read, err = a.lease.Show(calling, so); err != nil {
				return // the next renewal tells whether it is still wanted
			}
		}
	})
}

// end tells what the end of a call means.
func (a *attempt) end(result target.Result, err error, cause error) End {
	log := a.log.Log(true)
	var failure *target.Failure
	switch {
	case err == nil:
		return End{Outcome: run.OutcomeSucceeded, Result: result, Log: log}
	case errors.As(err, &failure):
		return End{Outcome: run.OutcomeFailed, Failure: failure, Log: log}
	case errors.Is(cause, errCancelled):
		return End{Outcome: run.OutcomeCancelled, Log: log}
	case errors.Is(err, target.ErrNotHere), errors.Is(err, target.ErrShort):
		return End{Outcome: run.OutcomeHandedBack, Cause: err.Error(), Log: log}
	case errors.Is(cause, errStopped) && (!a.task.AtMostOnce || errors.Is(err, target.ErrUnsent)):
		return End{Outcome: run.OutcomeHandedBack, Log: log}
	default:
		return End{Outcome: run.OutcomeCrashed, Cause: "stopped in it: " + err.Error(), Log: log}
	}
}

// reportFor is how long the end of an attempt is tried to be written: after it nobody waits any more. The tries are firstTry apart, and
// twice as far each time, up to longestTry.
const (
	reportFor  = 12 * time.Hour
	firstTry   = 100 * time.Millisecond
	longestTry = 2 * time.Second
)

// finish reports the end, and goes on trying while nobody can be reached: what has been done need not be done again for it, and
// at most once gets its true end. It gives up when the worker is being stopped, or is far too late. Then the lease runs out and
// the attempt counts as crashed: its effect may have happened, which at least once allows, and at most once calls unknown.
func (a *attempt) finish(ctx context.Context, e End, began, wait time.Duration) {
	t := a.task
	a.lease.Finish(context.WithoutCancel(ctx), e, func(state run.State, err error) {
		switch {
		case err == nil:
			a.Log.LogAttrs(ctx, slog.LevelInfo, "attempt ended", slog.String("tenant", t.Tenant), slog.String("run", t.Run), slog.Int("attempt", t.Attempt),
				slog.String("outcome", e.Outcome.String()), slog.String("state", state.String()))
		case errors.Is(err, ErrFenced):
			a.Log.WarnContext(ctx, "a late result was refused", "run", t.Run, "attempt", t.Attempt, "fence", t.Fence)
		case errors.Is(err, ErrRefused), ctx.Err() != nil, a.Elapsed()-began > reportFor:
			a.Log.ErrorContext(ctx, "the end of an attempt was not written", "run", t.Run, "attempt", t.Attempt, "error", err)
		default:
			if wait == firstTry {
				a.Log.WarnContext(ctx, "the end of an attempt waits to be written", "run", t.Run, "error", err)
			}
			a.do(func() {
				a.sleep(ctx, wait)
				a.finish(ctx, e, began, min(2*wait, longestTry))
			})
			return
		}
		e.Result.Release()
		a.close()
	})
}
