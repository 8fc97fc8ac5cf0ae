package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Why an attempt's context ended before its target did.
var (
	errStopped   = errors.New("the worker is being stopped")
	errCancelled = errors.New("a cancel was asked for")
	errFenced    = errors.New("the run is held by another attempt")
)

// attempt is one call of a target under a lease. The renewal goroutine owns held while it runs, the attempt itself afterwards.
type attempt struct {
	*Worker
	started run.Run // as the start wrote it
	edition *job.Edition
	message queue.Message
	payload []byte
	lost    *target.Failure // why there is no payload
	held    run.Run         // as last written
	poke    chan struct{}   // renew now
	log     *cappedLog
}

// attempt calls the target of a run that has just been started, keeps its lease, and writes how it ended.
func (w *Worker) attempt(ctx context.Context, a *attempt) Verdict {
	a.Worker, a.held, a.poke, a.log = w, a.started, make(chan struct{}, 1), newCappedLog(w.MaxLog)
	defer w.register(a)()

	calling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The lease is kept while a stopped target comes to its end, and while its result is put away.
	renewing, quiet := context.WithCancel(context.WithoutCancel(ctx))
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		a.renew(renewing, stop)
	}()
	result, err := a.call(calling)
	cause := context.Cause(calling)
	var e ending
	if !errors.Is(cause, errFenced) {
		e = a.ending(renewing, result, err, cause)
	}
	quiet()
	<-renewed
	if errors.Is(context.Cause(calling), errFenced) {
		w.Log.Warn("an attempt was fenced off", "run", a.started.ID.String(), "attempt", a.started.Attempt, "fence", a.started.Fence)
		return drop
	}
	return a.finish(ctx, e)
}

func (a *attempt) call(ctx context.Context) (target.Result, error) {
	if a.lost != nil {
		return target.Result{}, a.lost
	}
	def, r := a.edition.Def, a.started
	ctx, cancel := context.WithTimeout(ctx, def.Timeout.Std())
	defer cancel()
	return a.Targets.Call(ctx, def.Target, target.Call{
		Tenant: r.Tenant, Run: r.ID.String(), Job: r.ID.Job, Attempt: r.Attempt, Fence: r.Fence, Nominal: r.ID.Time(),
		Payload: a.payload, AtMostOnce: def.Guarantee == job.AtMostOnce, Log: a.log,
	})
}

// renewAgain is how soon a renewal is tried again that the store did not take: a store that comes back shall find the lease
// renewed before anybody judges it.
const renewAgain = time.Second

// renew extends lease and visibility at every third of the lease until ctx ends, and stops the call when the run is not ours
// any more or a cancel was asked for. While the store cannot be reached the attempt goes on: should its lease be taken away,
// what it does is fenced.
func (a *attempt) renew(ctx context.Context, stop context.CancelCauseFunc) {
	every := a.Dispatch.Lease / 3
	next := time.NewTimer(every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		case <-a.poke:
		}
		wait := every
		switch err := a.extend(ctx, every); {
		case errors.Is(err, errFenced):
			stop(err)
			return
		case errors.Is(err, errCancelled):
			stop(err)
		case err != nil && ctx.Err() == nil:
			wait = min(every, renewAgain)
			a.Log.Warn("a lease was not renewed", "run", a.started.ID.String(), "error", err)
		}
		if errs, err := a.queue.Extend(ctx, a.Dispatch.Lease, a.message); err != nil || errs[0] != nil {
			a.Log.Debug("a message was not kept back", "run", a.started.ID.String(), "error", errors.Join(append(errs, err)...))
		}
		next.Reset(wait)
	}
}

func (a *attempt) extend(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := a.write(ctx, run.OutcomeRunning, func(r run.Run, now int64) run.Run { return r.Extend(now, a.Dispatch.Lease) })
	if err == nil && a.held.Cancel {
		return errCancelled
	}
	return err
}

// write changes the run as long as this attempt holds it: over a cancel's word, or an earlier renewal whose answer was lost, it
// decides again. Where the attempt has ended with the outcome that is to be written, an earlier try of it has succeeded. Over
// anything else it is fenced.
func (a *attempt) write(ctx context.Context, outcome run.Outcome, change func(run.Run, int64) run.Run) error {
	for range maxRounds {
		now, err := a.Dispatch.Clock()
		if err != nil { // an attempt under way ends, whatever the clock; the store's time is the better one
			now = a.Dispatch.Now().Add(a.Dispatch.Store.Skew()).UnixMilli()
		}
		written, err := a.Dispatch.PutRun(ctx, change(a.held, now), now)
		if err == nil {
			a.held = written
			return nil
		}
		conflict := store.AsConflict(err)
		if conflict == nil {
			return err
		}
		standing, _, err := run.FromItem(a.held.Tenant, a.held.ID, conflict.Standing)
		if err != nil {
			return err
		}
		if !standing.Holds(a.held.Fence) {
			if ended, ok := standing.Closed(a.held.Fence); ok && ended == outcome {
				a.held = standing
				return nil
			}
			return errFenced
		}
		a.held = standing
	}
	return fmt.Errorf("overtaken %d times: %w", maxRounds, store.ErrThrottled)
}

// ending is how an attempt ended, and what that makes of its run.
type ending struct {
	outcome run.Outcome
	change  func(run.Run, int64) run.Run
}

// ending tells what the end of a call means. It puts result and log away, so it may take a while.
func (a *attempt) ending(ctx context.Context, result target.Result, err error, cause error) ending {
	limits := dispatch.Limits(a.edition.Def)
	log := a.keepLog(ctx)
	var failure *target.Failure
	switch {
	case err == nil:
		ref, note := a.keepResult(ctx, result)
		return ending{run.OutcomeSucceeded, func(r run.Run, now int64) run.Run {
			r = r.Succeed(now, ref, log, limits)
			r.Reason = note
			return r
		}}
	case errors.As(err, &failure):
		draw := a.Dispatch.NewID()
		unsure := failure.Kind == target.KindTimeout || failure.Kind == target.KindLost
		return ending{run.OutcomeFailed, func(r run.Run, now int64) run.Run {
			wait := max(Backoff(a.edition.Def.Retry, r.Failures+1, draw), failure.RetryAfter)
			return r.Fail(now, run.Failure{Error: failure.Error(), Permanent: failure.Permanent, Unsure: unsure, NextAt: now + wait.Milliseconds(), Log: log}, limits)
		}}
	case errors.Is(cause, errCancelled):
		return ending{run.OutcomeCancelled, func(r run.Run, now int64) run.Run { return r.Cancelled(now, log, limits) }}
	case errors.Is(err, target.ErrNotHere), errors.Is(cause, errStopped) && !limits.AtMostOnce:
		return ending{run.OutcomeHandedBack, func(r run.Run, now int64) run.Run { return r.HandBack(now, log) }}
	default:
		return ending{run.OutcomeCrashed, func(r run.Run, now int64) run.Run {
			r.Log = log
			return r.Crash(now, "stopped in it: "+err.Error(), limits)
		}}
	}
}

// finish writes the end of the attempt. Where it cannot, the lease runs out and the attempt counts as crashed: its effect
// may have happened, which at least once allows, and at most once calls unknown.
func (a *attempt) finish(ctx context.Context, e ending) Verdict {
	r := a.started
	switch err := a.insist(ctx, e); {
	case errors.Is(err, errFenced):
		a.Log.Warn("a late result was refused", "run", r.ID.String(), "attempt", r.Attempt, "fence", r.Fence)
		return drop
	case err != nil:
		a.Log.Error("the end of an attempt was not written", "run", r.ID.String(), "attempt", r.Attempt, "error", err)
		return Verdict{Again: a.Dispatch.Lease}
	}
	a.count(a.held, e.outcome)
	a.Log.Info("attempt ended", "tenant", r.Tenant, "run", r.ID.String(), "attempt", r.Attempt, "outcome", e.outcome.String(), "state", a.held.State.String())
	now := a.Dispatch.Now().UnixMilli()
	switch {
	case a.held.State == run.Queued:
		return handBack
	case a.held.State == run.Retrying && !dispatch.WaitsInStore(a.held, now):
		return Verdict{Again: time.Duration(max(0, a.held.NextAt-now)) * time.Millisecond}
	}
	return drop
}

// insist writes the end, and goes on trying while the store is away: what has been done need not be done again for it, and at
// most once gets its true end. It gives up when the worker is being stopped, or is so late that nobody waits any more.
func (a *attempt) insist(ctx context.Context, e ending) error {
	const first, longest = 100 * time.Millisecond, 2 * time.Second
	began := a.Dispatch.Elapsed()
	for wait := first; ; wait = min(2*wait, longest) {
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.Dispatch.Lease)
		err := a.write(writing, e.outcome, e.change)
		cancel()
		if err == nil || ctx.Err() != nil || a.Dispatch.Elapsed()-began > MessageLife {
			return err
		}
		for _, final := range []error{errFenced, store.ErrTooLarge, store.ErrClosed, record.ErrNewer, record.ErrBroken} {
			if errors.Is(err, final) {
				return err
			}
		}
		if wait == first {
			a.Log.Warn("the end of an attempt waits for the store", "run", a.started.ID.String(), "error", err)
		}
		a.sleep(ctx, wait)
	}
}

// Backoff is the wait before the attempt that follows the n-th failure: initial, growing by factor, capped at max, and drawn
// evenly from zero to that by draw ("full jitter", AWS Architecture Blog, "Exponential Backoff And Jitter").
func Backoff(retry job.Retry, n int, draw uint64) time.Duration {
	longest := float64(retry.Initial) * math.Pow(retry.Factor, float64(n-1))
	longest = min(longest, float64(retry.Max))
	return time.Duration(float64(draw>>11) / (1 << 53) * longest)
}
