package simulate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// hand is a worker of a demonstration: it takes one run at a time, calls its target, and renews its lease, as worker.Worker does.
type hand struct {
	place  string
	offer  *lease.Offered // taken, and to be started
	busy   bool
	frozen bool
	dead   bool
	task   worker.Task
	claim  lease.Claim
	turn   int // counts its attempts: what was to be done for one before is not done any more
}

func (w *hand) idle() bool { return !w.busy && !w.dead && w.offer == nil }

func (w *hand) name() string { return placed(w.place) }

// take has idle workers take what there is, all of them before any starts: so two that have the same run meet at its start.
func (o *once) take(ctx context.Context) (took bool, err error) {
	for _, w := range o.workers {
		if at, ok := o.mail[0].Next(); !w.idle() || !ok || at.After(o.clock.Passed()) {
			continue
		}
		took = true
		o.doer = w.place
		as := o.announced[0]
		as.Worker = w.place
		offers, err := o.remote.Take(ctx, tenant, as, 1, 0)
		if err != nil {
			return false, fmt.Errorf("take a run: %w", err)
		}
		if len(offers) > 0 {
			w.offer = &offers[0]
		}
	}
	for _, w := range o.workers {
		if w.offer != nil {
			if err := o.begin(ctx, w); err != nil {
				return false, err
			}
		}
	}
	return took, nil
}

// begin starts an attempt of what a worker was offered.
func (o *once) begin(ctx context.Context, w *hand) error {
	offer := w.offer
	w.offer = nil
	id, err := run.ParseID(offer.Run)
	if err != nil {
		return err
	}
	o.doer = w.place
	o.starts++
	holder := lease.Holder{Worker: w.place, Start: strconv.Itoa(o.starts)}
	before := len(o.plan.Events)
	task, ticket, err := o.remote.Start(ctx, tenant, id, offer.Ticket, holder)
	if errors.Is(err, worker.ErrGone) {
		o.fenced(before, w, 0, fmt.Sprintf("The store refuses %s: another worker has started this run since it was taken. %s calls nothing.", w.name(), upper(w.name())))
		return nil
	}
	if err != nil {
		return fmt.Errorf("start the run: %w", err)
	}
	w.task, w.claim, w.busy = task, lease.Claim{Run: id, Fence: task.Fence, Holder: holder, Ticket: ticket}, true
	w.turn++
	o.plan.Outcome.Attempts++
	o.then(w, onceCalls, func(context.Context) error {
		o.reach(w)
		return nil
	})
	o.renewals(w)
	return nil
}

// then has a worker do something later in its attempt, unless that is over by then.
func (o *once) then(w *hand, wait time.Duration, do func(context.Context) error) {
	turn := w.turn
	o.after(wait, func(ctx context.Context) error {
		if w.turn != turn || w.dead || !w.busy {
			return nil
		}
		o.doer = w.place
		return do(ctx)
	})
}

// renewals has a worker renew its lease after each third of it. The clock of one that stands still does, too.
func (o *once) renewals(w *hand) {
	o.then(w, w.task.Lease/3, func(ctx context.Context) error {
		if w.frozen {
			return nil
		}
		o.renewing = true
		_, err := o.remote.Renew(ctx, tenant, w.claim)
		o.renewing = false
		if errors.Is(err, worker.ErrFenced) {
			o.fenced(len(o.plan.Events), w, w.claim.Fence, fmt.Sprintf("The store refuses to renew the lease of %s: its fence %d is not the run's any more.", w.name(), w.claim.Fence))
			w.busy = false
			return nil
		}
		if err != nil {
			return fmt.Errorf("renew a lease: %w", err)
		}
		o.renewals(w)
		return nil
	})
}

// hit tells whether a fault is that of the question, and hits this attempt: faults hit the first one alone.
func (o *once) hit(w *hand, fault string) bool {
	return o.question.Fault == fault && w.task.Attempt == 1
}

// reach is when an attempt is about to call its target.
func (o *once) reach(w *hand) {
	switch {
	case o.hit(w, faultBefore):
		o.dies(w, "before it has called the target")
	case o.hit(w, faultZombie):
		w.frozen = true
		o.tell(wire.OnceEvent{Event: "worker_froze", From: w.place, Attempt: w.task.Attempt, Fence: w.task.Fence,
			Text: fmt.Sprintf("%s stands still right before its call, as a process does whose host is suspended. It renews no lease.", upper(w.name()))})
		o.then(w, onceSleeps, func(context.Context) error {
			w.frozen = false
			o.tell(wire.OnceEvent{Event: "worker_woke", From: w.place, Attempt: w.task.Attempt, Fence: w.task.Fence,
				Text: fmt.Sprintf("%s wakes up. Its own clock stood still, too: it knows of nothing, and goes on with its call.", upper(w.name()))})
			o.renewals(w)
			o.call(w)
			return nil
		})
	default:
		o.call(w)
	}
}

// call calls the target, with what the product tells targets beside the payload.
func (o *once) call(w *hand) {
	t := w.task
	facts := target.Call{Tenant: t.Tenant, Run: t.Run, Job: t.Job, Attempt: t.Attempt, Fence: t.Fence, Nominal: t.Nominal, AtMostOnce: t.AtMostOnce}.Facts()
	answer, takes := o.called(w, facts), onceAnswers
	if o.question.Fault == faultZombie && t.Attempt > 1 {
		takes = onceWorks
	}
	switch {
	case o.hit(w, faultAfter):
		o.then(w, onceBreaks, func(context.Context) error {
			o.dies(w, "before the answer has come")
			return nil
		})
		return
	case o.hit(w, faultAnswer):
		o.then(w, onceAnswers, func(context.Context) error {
			o.tell(wire.OnceEvent{Event: "answer_lost", From: laneTarget, To: w.place, Attempt: t.Attempt, Fence: t.Fence,
				Text: fmt.Sprintf("The target's answer is lost on its way. %s waits for it until the timeout.", upper(w.name()))})
			return nil
		})
		o.then(w, t.Timeout, func(ctx context.Context) error {
			return o.finish(ctx, w, worker.End{Outcome: run.OutcomeFailed, Failure: target.Reported(target.KindTimeout, "no answer", false, 0)})
		})
		return
	case o.hit(w, faultClock):
		takes = onceWorks
		o.after(onceJumpsIn, func(ctx context.Context) error {
			o.after(onceAgain, o.letter)
			o.tell(wire.OnceEvent{Event: "clock_set", From: laneScheduler,
				Text: fmt.Sprintf("The clocks of all hosts jump ahead by %s. By them the lease is long over.", schedule.Duration(onceJumps))})
			return o.line(ctx, Line{Do: Clock, By: onceJumps})
		})
	}
	o.then(w, takes, func(ctx context.Context) error {
		o.tell(wire.OnceEvent{Event: "answered", From: laneTarget, To: w.place, Attempt: t.Attempt, Fence: t.Fence, Text: fmt.Sprintf("The target answers %s: %s.", w.name(), answer.says)})
		if answer.refused {
			return o.finish(ctx, w, worker.End{Outcome: run.OutcomeFailed, Failure: target.Reported(target.KindHandler, answer.says, false, 0)})
		}
		return o.finish(ctx, w, worker.End{Outcome: run.OutcomeSucceeded})
	})
}

// finish reports how an attempt ended.
func (o *once) finish(ctx context.Context, w *hand, e worker.End) error {
	w.busy = false
	if e.Failure != nil {
		wait, err := o.longestWait(ctx, w.claim.Run)
		if err != nil {
			return err
		}
		e.Failure.RetryAfter = wait
	}
	before := len(o.plan.Events)
	_, err := o.remote.Finish(ctx, tenant, w.claim, e)
	if errors.Is(err, worker.ErrFenced) {
		o.fenced(before, w, w.claim.Fence, fmt.Sprintf("The store refuses what %s says of attempt %d: its fence %d does not hold the run any more.", w.name(), w.task.Attempt, w.claim.Fence))
		return nil
	}
	if err != nil {
		return fmt.Errorf("finish the run: %w", err)
	}
	return nil
}

func (o *once) dies(w *hand, when string) {
	w.dead, w.busy = true, false
	o.tell(wire.OnceEvent{Event: "worker_died", From: w.place, Attempt: w.task.Attempt, Fence: w.task.Fence,
		Text: fmt.Sprintf("%s dies %s. Nobody is told: its lease goes on, and its message stays hidden.", upper(w.name()), when)})
}

// fenced tells that a worker was refused, before what followed from that.
func (o *once) fenced(before int, w *hand, fence uint64, text string) {
	o.plan.Outcome.RefusedWrites++
	o.tell(wire.OnceEvent{Event: "refused", From: laneStore, To: w.place, Attempt: w.task.Attempt, Fence: fence, Text: text})
	last := len(o.plan.Events) - 1
	refused := o.plan.Events[last]
	copy(o.plan.Events[before+1:], o.plan.Events[before:last])
	o.plan.Events[before] = refused
}
