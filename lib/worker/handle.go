package worker

import (
	"context"
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Verdict is what becomes of a message.
type Verdict struct {
	Delete bool          // nothing more to do for it
	Again  time.Duration // else: handed out again after this time
}

var (
	drop      = Verdict{Delete: true}
	handBack  = Verdict{}                        // to another worker, at once
	elsewhere = Verdict{Again: 15 * time.Second} // to another worker, since this one cannot
	shortly   = Verdict{Again: 2 * time.Second}  // the store or the clock is unwell
)

// MessageLife is how old a message may be that starts a run. Runs are kept at least twice as long, so that no message outlives
// its run; what is refused here is sent again by the run's check timer.
const MessageLife = 12 * time.Hour

// patience is how long a worker holds a run that is not due yet; what has longer goes back to the queue.
const patience = time.Second

// offered is how often a message goes to another worker because this one cannot run it.
const offered = 12

// maxRounds bounds how often a run may be overtaken while it is being started.
const maxRounds = 8

// Handle takes one delivery and gives its verdict. A message is a hint that a run may be started; the run as it stands
// decides. Messages that are doubled, late or stale find it started or ended, and are dropped. Nothing starts once taking has
// ended; what has started goes on until attempts ends.
func (w *Worker) Handle(taking, attempts context.Context, m queue.Message) Verdict {
	message, err := run.DecodeMessage(m.Body)
	switch {
	case errors.Is(err, record.ErrNewer):
		w.Log.Warn("a message for a newer worker", "error", err)
		return elsewhere
	case err != nil:
		// It names no run that could be told; the run it was meant for has its check timer.
		w.Log.Error("a message is unreadable and dropped", "error", err, "bytes", len(m.Body))
		w.Metrics.DeadLetters.Inc("message")
		return drop
	}
	now, err := w.Dispatch.Clock()
	if err != nil {
		w.Log.Error("nothing is started", "error", err)
		return shortly
	}
	if time.Duration(now-message.Sent)*time.Millisecond > MessageLife {
		return drop
	}
	r := message.Run
	if m.Receives > 1 {
		// Something happened under an earlier delivery: look first, instead of losing a write to find out.
		standing, err := w.Dispatch.ReadRuns(taking, []run.Run{r})
		if err != nil {
			return w.unwell(r, "read", err)
		}
		r = standing[0]
	}
	for range maxRounds {
		step := w.next(taking, attempts, r, m)
		if step.again == nil {
			return step.verdict
		}
		r = *step.again
	}
	return shortly
}

// step is a verdict, or the run as it stands now, to be looked at again.
type step struct {
	verdict Verdict
	again   *run.Run
}

func end(v Verdict) step   { return step{verdict: v} }
func again(r run.Run) step { return step{again: &r} }
func (w *Worker) unwell(r run.Run, doing string, err error) Verdict {
	w.Log.Warn("the store is unwell", "doing", doing, "run", r.ID.String(), "error", err)
	return shortly
}

// next does what a run as believed to stand asks for.
func (w *Worker) next(taking, attempts context.Context, r run.Run, m queue.Message) step {
	now, err := w.Dispatch.Clock()
	if err != nil {
		return end(shortly)
	}
	if r.Version != 0 && r.State == 0 {
		return end(elsewhere) // a record that this worker cannot read: a newer one may
	}
	if r.Version == 0 || r.State != run.Queued && r.State != run.Retrying && r.State != run.Running {
		return end(drop) // ended, fenced off, held, or gone
	}
	edition, err := w.Dispatch.Book.Edition(taking, r.Tenant, r.ID.Job, r.Generation)
	if errors.Is(err, job.ErrNotFound) {
		w.Log.Error("a run's definition is gone", "tenant", r.Tenant, "run", r.ID.String())
		return end(elsewhere)
	}
	if err != nil {
		return end(w.unwell(r, "read the job", err))
	}
	if r.State == run.Running {
		return w.takeOver(taking, r, edition, now)
	}
	due := r.NextAt
	if r.ID.OnDemand() {
		due = max(due, r.ID.Nominal)
	} else {
		due = max(due, edition.Due(r.Tenant, r.ID.Job, r.ID.Nominal))
	}
	if wait := time.Duration(due-now) * time.Millisecond; wait > patience {
		return end(Verdict{Again: wait})
	} else if wait > 0 {
		w.sleep(taking, wait)
		return again(r)
	}
	if taking.Err() != nil {
		return end(handBack)
	}
	if err := w.Targets.Can(edition.Def.Target); err != nil {
		if m.Receives == 1 {
			w.Log.Warn("this worker cannot run it", "run", r.ID.String(), "error", err)
		}
		if m.Receives >= offered {
			return end(drop) // its check timer sends another, so they do not add up
		}
		return end(elsewhere)
	}
	if r.Crashes >= dispatch.MaxCrashes-1 {
		leave, ok := w.alone(taking)
		if !ok {
			return end(elsewhere)
		}
		defer leave()
	}
	var lost *target.Failure
	payload, err := w.payload(taking, r, edition.Def)
	if err != nil && !errors.As(err, &lost) {
		return end(w.unwell(r, "read the payload", err)) // before the start: it costs the run nothing
	}
	// Durable with this write: the attempt, under its lease and fence, before its effect. A crash here leaves a running run
	// without a worker, which its lease ends; where the answer is lost, the same write again is a success.
	// It is not given up halfway when the worker is told to stop: at most once would then be unknown for nothing.
	writing, cancel := context.WithTimeout(context.WithoutCancel(taking), w.Dispatch.Lease/3)
	defer cancel()
	started, err := w.Dispatch.PutRun(writing, r.Start(w.Name, now, w.Dispatch.Lease), now)
	if conflict := store.AsConflict(err); conflict != nil {
		standing, _, err := run.FromItem(r.Tenant, r.ID, conflict.Standing)
		if err != nil {
			return end(w.unwell(r, "read", err))
		}
		return again(standing)
	}
	if err != nil {
		w.notBegun(r) // it may have happened all the same
		return end(w.unwell(r, "start", err))
	}
	if started.Attempt == 1 {
		w.Metrics.Lateness.Observe(time.Duration(now-r.ID.Nominal) * time.Millisecond)
	}
	return end(w.attempt(attempts, &attempt{started: started, edition: edition, message: m, payload: payload, lost: lost}))
}

// alone lets runs whose next crash is their last go one at a time: any of them may be what kills its workers, and the culprit must
// not be mistaken for its neighbours. Whoever waits longer than a moment goes elsewhere, false.
func (w *Worker) alone(taking context.Context) (leave func(), ok bool) {
	moment := time.NewTimer(patience)
	defer moment.Stop()
	select {
	case w.suspects <- struct{}{}:
		return func() { <-w.suspects }, true
	case <-moment.C:
	case <-taking.Done():
	}
	return nil, false
}

// takeOver looks at a run that another attempt holds.
func (w *Worker) takeOver(ctx context.Context, r run.Run, edition *job.Edition, now int64) step {
	limits := dispatch.Limits(edition.Def)
	outcome := run.OutcomeCrashed
	change := func(r run.Run) run.Run { return r.Crash(now, "its lease ran out", limits) }
	switch w.own(r) {
	case under:
		return end(Verdict{Again: w.Dispatch.Lease}) // whatever its lease says: it is alive, and renews as soon as it can
	case never:
		if !limits.AtMostOnce {
			// The answer of its start was lost, and nothing was called. No worker died of it, so none is counted.
			outcome = run.OutcomeHandedBack
			change = func(r run.Run) run.Run { return r.HandBack(now, "") }
			break
		}
		fallthrough
	default:
		if !w.Dispatch.LeaseOver(r.Lease, now) {
			return end(Verdict{Again: time.Duration(max(r.Lease-now, 0))*time.Millisecond + time.Second})
		}
	}
	next, err := w.Dispatch.PutRun(ctx, change(r), now)
	if conflict := store.AsConflict(err); conflict != nil {
		standing, _, err := run.FromItem(r.Tenant, r.ID, conflict.Standing)
		if err != nil {
			return end(w.unwell(r, "read", err))
		}
		return again(standing)
	}
	if err != nil {
		return end(w.unwell(r, "end a lease", err))
	}
	w.count(next, outcome)
	return again(next)
}

// count adds the end of an attempt, and of a run, to the metrics.
func (w *Worker) count(r run.Run, outcome run.Outcome) {
	w.Metrics.Attempts.Inc(outcome.String())
	switch {
	case r.State == run.Retrying:
		w.Metrics.Retries.Inc()
	case r.State.Ended():
		w.Metrics.Runs.Inc(r.State.String())
		if r.State.DeadLetter() {
			w.Metrics.DeadLetters.Inc(r.State.String())
		}
	}
}
