package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/internal/room"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/runlog"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// Held is an attempt that has been started and holds its run.
type Held struct {
	desk    *Desk
	started *run.Run // as the start wrote it; never changed
	name    string   // the run's ID
	edition *job.Edition
	payload []byte
	room    *room.Place     // of a large payload; of a worker elsewhere while that is read
	lost    *target.Failure // why there is no payload

	mu   sync.Mutex
	held run.Run // as last written

	messages turn
	delivery *delivery // nil where it is settled, or was lost with an earlier start of this process

	next verdict // of the message, when the run is queued again: at once, unless the call could not begin

	showing *showing

	keeping turn
	kept    kept
	isKept  bool

	resumed bool // by a call from elsewhere: an end that stands was counted when it was written
	counted sync.Once
}

var _ worker.Attempt = (*Held)(nil)

// turn lets one at a time make requests. It is no mutex, which is not to be held over a request: who waits for one does not count as
// waiting, to the runtime and to tests in virtual time.
type turn struct {
	mu    sync.Mutex
	taken bool
	next  []chan struct{} // who waits, in the order of their coming
}

func (t *turn) take() {
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		return
	}
	mine := make(chan struct{})
	t.next = append(t.next, mine)
	t.mu.Unlock()
	<-mine // bounded by the requests of those before
}

// try takes it where nobody has it.
func (t *turn) try() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken = true
	return true
}

func (t *turn) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.next) == 0 {
		t.taken = false
		return
	}
	close(t.next[0])
	t.next = t.next[1:]
}

// Task is what the attempt is to do.
func (h *Held) Task() worker.Task {
	def, r := h.edition.Def, h.started
	timeout := def.Timeout.Std()
	if r.EndBy != 0 { // what it runs into then is the deadline: see run.Run.Fail
		timeout = min(timeout, time.Duration(max(r.EndBy-r.Started, 0)+1)*time.Millisecond)
	}
	most := 0
	if r.ID.IsStep() {
		most = flow.MaxResult
	}
	return worker.Task{MaxResult: most, Tenant: r.Tenant, Run: h.name, Job: r.ID.Job, Attempt: r.Attempt, Fence: r.Fence, Nominal: r.ID.Time(),
		Target: def.Target, Payload: h.payload, Timeout: timeout, AtMostOnce: def.Guarantee == job.AtMostOnce,
		Lease: h.desk.Dispatch.Lease, Failure: h.lost, Trace: r.Trace}
}

func (h *Held) now(ctx context.Context) int64 {
	now, err := h.desk.Dispatch.ClockFor(ctx, *h.started)
	if err != nil { // an attempt under way ends, whatever the clock; the store's time is the better one
		now = h.desk.Dispatch.Now().Add(h.desk.Dispatch.Store.Skew()).UnixMilli()
	}
	return now
}

func (h *Held) standing() run.Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

func (h *Held) learn(r run.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Version > h.held.Version {
		h.held = r
	}
}

// Renew extends lease and visibility.
func (h *Held) Renew(ctx context.Context) (worker.Renewed, error) {
	lease := h.desk.Dispatch.Lease
	_, err := h.write(ctx, run.OutcomeRunning, func(r run.Run, now int64) run.Run { return r.Extend(now, lease) }, nil)
	if errors.Is(err, worker.ErrFenced) {
		if _, ended := h.standing().Closed(h.started.Fence); !ended {
			h.settle(context.WithoutCancel(ctx), drop) // the attempt that holds it has a message of its own
		}
		return worker.Renewed{}, err
	}
	h.messages.take()
	defer h.messages.give()
	if h.delivery != nil {
		if errs, err := h.desk.From.Extend(ctx, lease, h.delivery.message); err != nil || errs[0] != nil {
			h.desk.Log.DebugContext(ctx, "a message was not kept back", "run", h.name, "error", errors.Join(append(errs, err)...))
		}
	}
	return worker.Renewed{Cancel: h.standing().Cancel, Read: h.showing.wanted()}, err
}

// Show shows what the target has written so far to other processes on the store, if any of them has asked for it lately. Who is in the worker's own
// process reads it there.
func (h *Held) Show(ctx context.Context, so runlog.Log) (read bool, err error) {
	return h.showing.show(ctx, so)
}

// write changes the run as long as this attempt holds it: over a cancel's word, a reader's touch, or an earlier renewal whose answer was lost,
// it decides again. Where the attempt has ended with the outcome that is to be written, an earlier try of it has succeeded, unless
// its run was ended for a later one. Over anything else it is fenced. tried is a put of the change that was tried already, nil for none. wrote is false where there was
// nothing to write any more.
func (h *Held) write(ctx context.Context, outcome run.Outcome, change func(run.Run, int64) run.Run, tried *dispatch.Put) (wrote bool, err error) {
	for range maxRounds {
		put := tried
		tried = nil
		if put == nil {
			standing := h.standing()
			if !standing.Holds(h.started.Fence) {
				if ended, ok := standing.Closed(h.started.Fence); ok && ended == outcome && !standing.GaveWay() {
					return false, nil
				}
				return false, worker.ErrFenced
			}
			now := h.now(ctx)
			if put, err = h.desk.Dispatch.Prepare(ctx, change(standing, now), h.edition.Def.On, now); err != nil {
				return false, err
			}
		}
		written, err := h.desk.Dispatch.Do(ctx, put)
		if err == nil {
			h.learn(written)
			return true, nil
		}
		conflict := store.AsConflict(err)
		if conflict == nil {
			return false, err
		}
		standing, found, err := run.FromItem(h.started.Tenant, h.started.ID, conflict.Standing)
		if err != nil {
			return false, err
		}
		if !found {
			return false, worker.ErrFenced // cleaned up long ago
		}
		if standing.Touched(h.standing()) {
			h.showing.touched()
		}
		h.learn(standing)
	}
	return false, fmt.Errorf("overtaken %d times: %w", maxRounds, store.ErrThrottled)
}

// Finish puts result and log away, and has the end written together with those of other attempts that end now. told gets the state that
// it led to when it is durable and the message is settled, or the error.
func (h *Held) Finish(ctx context.Context, e worker.End, told func(run.State, error)) {
	outcome, change := h.ending(ctx, e)
	h.desk.ends.add(h.desk, &ending{held: h, ctx: ctx, outcome: outcome, change: change, told: told})
}

// finish is Finish for an end that is written by itself.
func (h *Held) finish(ctx context.Context, e worker.End) (run.State, error) {
	outcome, change := h.ending(ctx, e)
	return h.conclude(ctx, outcome, change, nil)
}

// callOff ends an attempt whose target is not called: as cancelled since its job was deleted, or, where that cannot be told, as handed back, to
// be started again in a while.
func (h *Held) callOff(ctx context.Context, blind error) {
	limits := dispatch.Limits(h.edition.Def)
	outcome, change := run.OutcomeCancelled, func(r run.Run, now int64) run.Run {
		r.Reason = dispatch.Deleted
		return r.Cancelled(now, "", limits)
	}
	if blind != nil {
		h.desk.unwell(ctx, *h.started, "look at the job", blind)
		h.next = verdict{again: blindFor << min(h.started.Attempt, 5)}
		outcome, change = run.OutcomeHandedBack, func(r run.Run, now int64) run.Run { return r.HandBack(now, "its job could not be read", "", limits) }
	}
	ctx = context.WithoutCancel(ctx) // conclude has a bound of its own
	if _, err := h.conclude(ctx, outcome, change, nil); err != nil {
		// Its lease ends it, and whoever starts it then looks again.
		h.desk.unwell(ctx, *h.started, "end an attempt that calls nothing", err)
		h.settle(ctx, verdict{again: h.desk.Dispatch.Lease})
	}
}

// blindFor is for how long at first an attempt is not tried again whose job could not be read. The wait doubles, up to 32 times as long.
const blindFor = time.Second

// conclude writes the end, of which a put may have been tried, and settles the message by it.
func (h *Held) conclude(ctx context.Context, outcome run.Outcome, change func(run.Run, int64) run.Run, tried *dispatch.Put) (run.State, error) {
	// Durable with this write: how the attempt ended, and what follows from it. A crash before it leaves the attempt to its
	// lease; one after it leaves a message that comes again, finds the end, and is dropped, or a check timer.
	writing, cancel := context.WithTimeout(ctx, h.desk.Dispatch.Lease)
	defer cancel()
	wrote, err := h.write(writing, outcome, change, tried)
	if errors.Is(err, worker.ErrFenced) {
		v := drop
		if r := h.standing(); r.GaveWay() && left(writing, h.desk.Dispatch, r) != nil { // whoever ended it may have died before it let anybody in
			v = shortly
		}
		h.settle(writing, v)
		return 0, err
	}
	if err != nil {
		for _, final := range []error{store.ErrTooLarge, store.ErrClosed, record.ErrNewer, record.ErrBroken} {
			if errors.Is(err, final) {
				err = fmt.Errorf("%w: %w", worker.ErrRefused, err)
			}
		}
		return 0, err
	}
	r := h.standing()
	if wrote || !h.resumed {
		h.count(r, outcome, wrote)
	}
	if left(writing, h.desk.Dispatch, r) != nil && h.settle(writing, shortly) {
		return r.State, nil // its message finds the end, and lets them in
	}
	h.follow(writing, r)
	return r.State, nil
}

// count adds the end to the metrics, once. One that was found standing is of an earlier try, whose answer was lost.
func (h *Held) count(r run.Run, outcome run.Outcome, wrote bool) {
	h.counted.Do(func() {
		count(h.desk.Metrics, r, outcome)
		if h.edition.Def.Watched() && !r.ID.IsStep() {
			h.desk.Metrics.JobEnded(r.ID.Job, r.State == run.Succeeded, time.UnixMilli(r.Ended))
		}
		if !wrote {
			h.desk.Dispatch.CountEnd(r)
		}
	})
}

// follow brings an ended attempt's run on its way: the message comes again when the run may be started again. Where the message
// was lost with an earlier start of this process, another is sent.
func (h *Held) follow(ctx context.Context, r run.Run) {
	now := h.desk.Dispatch.Now().UnixMilli()
	v := drop
	switch {
	case r.State == run.Queued:
		v = h.next
	case r.State == run.Retrying && !dispatch.WaitsInStore(r, now):
		v = verdict{again: time.Duration(max(0, r.NextAt-now)) * time.Millisecond}
	}
	h.freshen(r, now)
	if h.settle(ctx, v) || v.done {
		return
	}
	if unsent, err := h.desk.Dispatch.Send(ctx, []dispatch.Outgoing{{Run: r, Queue: h.edition.Def.Queue, Due: r.NextAt}}); err != nil || len(unsent) > 0 {
		h.desk.Log.WarnContext(ctx, "a run waits for its check", "run", r.ID.String(), "error", err) // which sends it
	}
}

// freshen has the message say how the run stands now: should another be sent in its place, whoever gets that need not look.
func (h *Held) freshen(r run.Run, now int64) {
	h.messages.take()
	defer h.messages.give()
	if h.delivery == nil || !h.delivery.worn() {
		return
	}
	if body, err := (run.Message{Run: r, Sent: now}).Encode(); err == nil { // else it says how the run stood
		h.delivery.message.Body = body
	}
}

// settle settles the message, if there is one still.
func (h *Held) settle(ctx context.Context, v verdict) bool {
	h.messages.take()
	defer h.messages.give()
	if h.delivery == nil {
		return false
	}
	h.delivery.settle(ctx, v)
	h.delivery = nil
	return true
}

// Close lets go. The message of an attempt that was not finished comes again when its lease has run out.
func (h *Held) Close() {
	h.desk.forget(h)
	h.room.Give()
	h.settle(context.Background(), verdict{again: h.desk.Dispatch.Lease})
}

// ending gives how the attempt has ended, and the change that this makes of the run. It puts result and log away, so it may take a while.
func (h *Held) ending(ctx context.Context, e worker.End) (run.Outcome, func(run.Run, int64) run.Run) {
	e, k := h.keep(ctx, e)
	return e.Outcome, h.change(e, k)
}

func (h *Held) change(e worker.End, k kept) func(run.Run, int64) run.Run {
	limits := dispatch.Limits(h.edition.Def)
	switch e.Outcome {
	case run.OutcomeSucceeded:
		return func(r run.Run, now int64) run.Run {
			r = r.Succeed(now, k.result, k.log, limits)
			r.Reason = k.note
			return r
		}
	case run.OutcomeFailed:
		unsure := e.Failure.Kind == target.KindTimeout || e.Failure.Kind == target.KindLost
		return func(r run.Run, now int64) run.Run {
			wait := max(Backoff(h.edition.Def.Retry, r.Failures+1, k.draw), e.Failure.RetryAfter)
			return r.Fail(now, run.Failure{Error: e.Failure.Error(), Permanent: e.Failure.Permanent, Unsure: unsure, NextAt: now + wait.Milliseconds(), Log: k.log}, limits)
		}
	case run.OutcomeCancelled:
		return func(r run.Run, now int64) run.Run { return r.Cancelled(now, k.log, limits) }
	case run.OutcomeHandedBack:
		if e.Cause != "" {
			h.next = later
		}
		return func(r run.Run, now int64) run.Run { return r.HandBack(now, e.Cause, k.log, limits) }
	default:
		return func(r run.Run, now int64) run.Run {
			return r.Logged(k.log).Crash(now, e.Cause, limits)
		}
	}
}

// Backoff draws the wait between the n-th failure and the attempt that follows it, in whole milliseconds, as the times of runs are.
func Backoff(retry job.Retry, n int, draw uint64) time.Duration {
	least, most := retry.Wait(n)
	return (least + time.Duration(float64(draw>>11)/(1<<53)*float64(most-least))).Truncate(time.Millisecond)
}
