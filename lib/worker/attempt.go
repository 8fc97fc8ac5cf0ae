package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
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

// attempt is one call of a target under a lease. The renewal goroutine owns held while the target is called, and the attempt
// itself before and after.
type attempt struct {
	*Worker
	edition *job.Edition
	message queue.Message
	held    run.Run       // as last written
	poke    chan struct{} // renew now
	log     *cappedLog
}

// attempt calls the target of a run that has just been started, keeps its lease, and writes how it ended.
func (w *Worker) attempt(ctx context.Context, started run.Run, edition *job.Edition, m queue.Message) Verdict {
	a := &attempt{Worker: w, edition: edition, message: m, held: started, poke: make(chan struct{}, 1), log: newCappedLog(w.MaxLog)}
	name := started.Tenant + "#" + started.ID.String()
	w.mu.Lock()
	w.running[name] = a
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.running, name)
		w.mu.Unlock()
	}()

	calling, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		a.renew(calling, stop)
	}()
	result, err := a.call(calling)
	cause := context.Cause(calling)
	stop(nil)
	<-renewed
	if errors.Is(cause, errFenced) {
		w.Log.Warn("an attempt was fenced off", "run", started.ID.String(), "attempt", started.Attempt, "fence", started.Fence)
		return drop
	}
	// What the target did is written even while the worker is being stopped, within a bound of its own.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Dispatch.Lease)
	defer cancel()
	return a.finish(writing, result, err, cause)
}

func (a *attempt) call(ctx context.Context) (target.Result, error) {
	def := a.edition.Def
	r := a.held
	payload := []byte(def.Payload)
	switch {
	case r.Payload.Blob != "":
		var err error
		if payload, err = a.Blobs.Get(ctx, r.Tenant, r.Payload.Blob); err != nil {
			permanent := errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt)
			return target.Result{}, &target.Failure{Kind: "payload", Permanent: permanent, Message: "read the payload: " + err.Error()}
		}
	case len(r.Payload.Inline) > 0:
		payload = r.Payload.Inline
	}
	ctx, cancel := context.WithTimeout(ctx, def.Timeout.Std())
	defer cancel()
	return a.Targets.Call(ctx, def.Target, target.Call{
		Tenant: r.Tenant, Run: r.ID.String(), Job: r.ID.Job, Attempt: r.Attempt, Fence: r.Fence, Nominal: r.ID.Time(),
		Payload: payload, AtMostOnce: def.Guarantee == job.AtMostOnce, Log: a.log,
	})
}

// renew extends lease and visibility at every third of the lease until ctx ends, and ends ctx when the run is not ours any
// more or a cancel was asked for. While the store cannot be reached the attempt goes on: should its lease run out, what
// it does is fenced.
func (a *attempt) renew(ctx context.Context, stop context.CancelCauseFunc) {
	every := time.NewTicker(a.Dispatch.Lease / 3)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		case <-a.poke:
		}
		if err := a.extend(ctx); errors.Is(err, errFenced) || errors.Is(err, errCancelled) {
			stop(err)
			return
		} else if err != nil && ctx.Err() == nil {
			a.Log.Warn("a lease was not renewed", "run", a.held.ID.String(), "error", err)
		}
		if errs, err := a.queue.Extend(ctx, a.Dispatch.Lease, a.message); err != nil || errs[0] != nil {
			a.Log.Debug("a message was not kept back", "run", a.held.ID.String(), "error", errors.Join(append(errs, err)...))
		}
	}
}

func (a *attempt) extend(ctx context.Context) error {
	return a.write(ctx, func(r run.Run, now int64) run.Run { return r.Extend(now, a.Dispatch.Lease) }, func(r run.Run) error {
		if r.Cancel {
			return errCancelled
		}
		return nil
	})
}

// write changes the run as long as this attempt holds it: over a cancel's word, or its own earlier write whose answer was
// lost, it decides again; over anything else it is fenced.
func (a *attempt) write(ctx context.Context, change func(run.Run, int64) run.Run, look func(run.Run) error) error {
	for range maxRounds {
		now, err := a.Dispatch.Clock()
		if err != nil {
			now = a.Dispatch.Now().UnixMilli() // an attempt under way ends, whatever the clock
		}
		written, err := a.Dispatch.PutRun(ctx, change(a.held, now), now)
		if err == nil {
			a.held = written
			return look(a.held)
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
			return errFenced
		}
		a.held = standing
		if err := look(standing); err != nil {
			return err
		}
	}
	return fmt.Errorf("overtaken %d times: %w", maxRounds, store.ErrThrottled)
}

// finish writes the end of the attempt. Where it cannot, the lease runs out and the attempt counts as crashed: its effect
// may have happened, which at least once allows, and at most once calls unknown.
func (a *attempt) finish(ctx context.Context, result target.Result, err error, cause error) Verdict {
	r := a.held
	limits := dispatch.Limits(a.edition.Def)
	log := a.keepLog(ctx)
	var outcome run.Outcome
	var change func(run.Run, int64) run.Run
	var failure *target.Failure
	switch {
	case err == nil:
		ref, note := a.keepResult(ctx, result)
		outcome = run.OutcomeSucceeded
		change = func(r run.Run, now int64) run.Run {
			r = r.Succeed(now, ref, log, limits)
			r.Reason = note
			return r
		}
	case errors.As(err, &failure):
		outcome = run.OutcomeFailed
		draw := a.Dispatch.NewID()
		change = func(r run.Run, now int64) run.Run {
			wait := max(Backoff(a.edition.Def.Retry, r.Failures+1, draw), failure.RetryAfter)
			return r.Fail(now, run.Failure{Error: failure.Error(), Permanent: failure.Permanent, NextAt: now + wait.Milliseconds(), Log: log}, limits)
		}
	case errors.Is(cause, errCancelled):
		outcome = run.OutcomeCancelled
		change = func(r run.Run, now int64) run.Run { return r.Cancelled(now, log, limits) }
	case errors.Is(err, target.ErrNotHere) && !limits.AtMostOnce, errors.Is(cause, errStopped) && !limits.AtMostOnce:
		outcome = run.OutcomeHandedBack
		change = func(r run.Run, now int64) run.Run { return r.HandBack(now, log) }
	default:
		outcome = run.OutcomeCrashed
		change = func(r run.Run, now int64) run.Run {
			r.Log = log
			return r.Crash(now, "stopped in it: "+err.Error(), limits)
		}
	}
	written := a.write(ctx, change, func(run.Run) error { return nil })
	switch {
	case errors.Is(written, errFenced):
		a.Log.Warn("a late result was refused", "run", r.ID.String(), "attempt", r.Attempt, "fence", r.Fence)
		return drop
	case written != nil:
		a.Log.Error("the end of an attempt was not written", "run", r.ID.String(), "attempt", r.Attempt, "error", written)
		return Verdict{Again: a.Dispatch.Lease}
	}
	a.count(a.held, outcome)
	a.Log.Info("attempt ended", "tenant", r.Tenant, "run", r.ID.String(), "attempt", r.Attempt, "outcome", outcome.String(), "state", a.held.State.String())
	now := a.Dispatch.Now().UnixMilli()
	switch {
	case a.held.State == run.Queued:
		return handBack
	case a.held.State == run.Retrying && !dispatch.WaitsInStore(a.held, now):
		return Verdict{Again: time.Duration(max(0, a.held.NextAt-now)) * time.Millisecond}
	}
	return drop
}

// Backoff is the wait before the attempt that follows the n-th failure: initial, growing by factor, capped at max, and drawn
// evenly from zero to that by draw ("full jitter", AWS Architecture Blog, "Exponential Backoff And Jitter").
func Backoff(retry job.Retry, n int, draw uint64) time.Duration {
	longest := float64(retry.Initial) * math.Pow(retry.Factor, float64(n-1))
	longest = min(longest, float64(retry.Max))
	return time.Duration(float64(draw>>11) / (1 << 53) * longest)
}

// keepResult puts a result into the run while it is small, else into a blob, and notes where neither worked: the run has
// succeeded all the same.
func (a *attempt) keepResult(ctx context.Context, result target.Result) (run.Ref, string) {
	ref := run.Ref{Type: result.ContentType, Cut: result.Truncated}
	if len(result.Body) <= run.MaxInline {
		ref.Inline = result.Body
		return ref, ""
	}
	key, err := a.keep(ctx, blob.Result, result.Body)
	if err != nil {
		a.Log.Error("a result was lost", "run", a.held.ID.String(), "error", err)
		return run.Ref{}, "the result could not be kept"
	}
	ref.Blob = key
	return ref, ""
}

func (a *attempt) keepLog(ctx context.Context) string {
	text := a.log.bytes()
	if len(text) == 0 {
		return ""
	}
	key, err := a.keep(ctx, blob.Log, text)
	if err != nil {
		a.Log.Error("a log was lost", "run", a.held.ID.String(), "error", err)
	}
	return key
}

// keep puts a blob of this attempt, named by its fence: a stale attempt's never stands in the way of a newer one's.
func (a *attempt) keep(ctx context.Context, kind blob.Kind, data []byte) (string, error) {
	expires := a.Dispatch.Now().Add(a.edition.Def.Retention.Std() + 24*time.Hour)
	id := fmt.Sprintf("%s~%d", a.held.ID, a.held.Fence)
	return a.Blobs.Put(ctx, blob.Ref{Tenant: a.held.Tenant, Kind: kind, ID: id, Expires: expires}, data)
}

// cappedLog keeps the beginning of what is written, and says where it was cut.
type cappedLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	limit int
	lost  int
}

func newCappedLog(limit int) *cappedLog { return &cappedLog{limit: limit} }

func (l *cappedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := min(len(p), l.limit-l.text.Len())
	l.text.Write(p[:kept])
	l.lost += len(p) - kept
	return len(p), nil
}

func (l *cappedLog) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		fmt.Fprintf(&l.text, "\n[cut here: %d more bytes were logged]\n", l.lost)
		l.lost = 0
	}
	return l.text.Bytes()
}
