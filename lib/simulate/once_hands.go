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

// hand is a worker of a demonstration. It follows a script: it takes one run at a time, calls its target, and renews its lease at the times at which a
// worker.Worker does, which does not run here. A server writes for it, as for any worker elsewhere.
type hand struct {
	place  string
	letter uint64         // the fence that the message which it took last would start an attempt under
	late   bool           // another attempt held the run by then
	offer  *lease.Offered // taken, and to be started
	busy   bool
	frozen bool
	dead   bool
	task   worker.Task
	claim  lease.Claim
	turn   int // counts its attempts: what was to be done for one before is not done any more
}

func (w *hand) idle() bool { return !w.busy && !w.dead && w.offer == nil }

func (w *hand) name() string { return placeName(w.place) }

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
		switch {
		case len(offers) > 0:
			w.offer = &offers[0]
		case w.late && o.last.State == run.Running:
			o.refuse(w, w.letter, 0, o.unstarted(w))
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
	task, ticket, err := o.remote.Start(ctx, tenant, id, offer.Ticket, holder)
	if errors.Is(err, worker.ErrGone) {
		o.refuse(w, w.letter, 0, o.unstarted(w))
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

// renewals has a worker renew its lease after each third of it. One that stands still does not; it begins anew when it wakes up.
func (o *once) renewals(w *hand) {
	o.then(w, w.task.Lease/3, func(ctx context.Context) error {
		if w.frozen {
			return nil
		}
		o.renewing = true
		_, err := o.remote.Renew(ctx, tenant, w.claim)
		o.renewing = false
		if errors.Is(err, worker.ErrFenced) {
			o.refuse(w, w.claim.Fence, w.task.Attempt, fmt.Sprintf("Belfry refuses to renew the lease of %s, which has fence %d: %s.", w.name(), w.claim.Fence, o.standing()))
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
		o.stands(w, onceSleeps)
	case o.hit(w, faultFirst):
		o.stands(w, onceFirst)
	default:
		o.call(w)
	}
}

// stands has a worker stand still before its call, and then make it.
func (o *once) stands(w *hand, sleeps time.Duration) {
	w.frozen = true
	o.tell(wire.OnceEvent{Event: eventFroze, From: w.place, Attempt: w.task.Attempt, Fence: w.task.Fence,
		Text: fmt.Sprintf("%s stands still right before its call, as a process does whose host is suspended. It renews no lease.", upper(w.name()))})
	o.then(w, sleeps, func(context.Context) error {
		w.frozen = false
		o.tell(wire.OnceEvent{Event: eventWoke, From: w.place, Attempt: w.task.Attempt, Fence: w.task.Fence,
			Text: fmt.Sprintf("%s wakes up. It has not noticed that it stood still, and goes on with its call.", upper(w.name()))})
		o.renewals(w)
		o.call(w)
		return nil
	})
}

// call calls the target, with what the product tells targets beside the payload.
func (o *once) call(w *hand) {
	t := w.task
	facts := target.Call{Tenant: t.Tenant, Run: t.Run, Job: t.Job, Attempt: t.Attempt, Fence: t.Fence, Nominal: t.Nominal, AtMostOnce: t.AtMostOnce}.Facts()
	answer, takes := o.asks(w, facts), onceAnswers
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
			o.tell(wire.OnceEvent{Event: eventAnswerLost, From: laneTarget, To: w.place, Attempt: t.Attempt, Fence: t.Fence,
				Text: fmt.Sprintf("The target's answer is lost on its way. %s waits for it until the timeout.", upper(w.name()))})
			return nil
		})
		o.then(w, t.Timeout, func(ctx context.Context) error {
			return o.finish(ctx, w, worker.End{Outcome: run.OutcomeFailed, Failure: target.Reported(target.KindTimeout, "no answer", false, 0)})
		})
		return
	case o.hit(w, faultClocks):
		takes = onceWorks
		o.after(onceJumpsIn, func(ctx context.Context) error {
			o.after(onceAgain, o.letter)
			o.jumped = true
			o.tell(wire.OnceEvent{Event: eventClockSet, From: laneScheduler,
				Text: fmt.Sprintf("The clocks of all hosts jump ahead by %s. By these clocks the lease of attempt 1 is over.", schedule.Duration(onceJumps))})
			return o.line(ctx, Line{Do: Clock, By: onceJumps})
		})
	}
	o.then(w, takes, func(ctx context.Context) error {
		o.tell(wire.OnceEvent{Event: eventAnswered, From: laneTarget, To: w.place, Attempt: t.Attempt, Fence: t.Fence, Text: fmt.Sprintf("The target answers %s: %s.", w.name(), answer.says)})
		if answer.event == eventStale {
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
	_, err := o.remote.Finish(ctx, tenant, w.claim, e)
	if errors.Is(err, worker.ErrFenced) {
		o.refuse(w, w.claim.Fence, w.task.Attempt, fmt.Sprintf("Belfry refuses what %s reports of attempt %d, which has fence %d: %s.", w.name(), w.task.Attempt, w.claim.Fence, o.standing()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("finish the run: %w", err)
	}
	return nil
}

func (o *once) dies(w *hand, when string) {
	w.dead, w.busy = true, false
	o.tell(wire.OnceEvent{Event: eventDied, From: w.place, Attempt: w.task.Attempt, Fence: w.task.Fence,
		Text: fmt.Sprintf("%s dies %s. Nobody is told: its lease goes on, and its message stays hidden.", upper(w.name()), when)})
}

// refuse tells that a worker was refused: the run is not its own.
func (o *once) refuse(w *hand, fence uint64, attempt int, text string) {
	o.plan.Outcome.RefusedWorkers++
	o.tell(wire.OnceEvent{Event: eventRefused, From: laneScheduler, To: w.place, Attempt: attempt, Fence: fence, Text: text})
}

// unstarted says why a worker that took a message is not given the run.
func (o *once) unstarted(w *hand) string {
	switch {
	case !w.late:
		return fmt.Sprintf("Belfry refuses %s: its message would start fence %d, and another worker has started that since the message was taken.", w.name(), w.letter)
	case o.unjudged():
		return fmt.Sprintf("Belfry refuses %s: fence %d holds the run. The clocks were stepped, so no lease is judged for %s.", w.name(), o.last.Fence, schedule.Duration(o.dispatch.Lease))
	}
	return fmt.Sprintf("Belfry refuses %s: fence %d holds the run, and its lease is not over.", w.name(), o.last.Fence)
}

// unjudged tells whether the lease of the attempt that holds the run is over by the clocks, which were stepped.
func (o *once) unjudged() bool {
	return o.jumped && o.last.State == run.Running && o.last.Lease <= o.clock.Now().UnixMilli()
}

// standing says who holds the run, as its record stands.
func (o *once) standing() string {
	switch {
	case o.last.State.Ended():
		return fmt.Sprintf("the run has ended as %s", o.last.State)
	case o.last.State == run.Running:
		return fmt.Sprintf("fence %d holds the run", o.last.Fence)
	}
	return fmt.Sprintf("no attempt holds the run, which is %s", o.last.State)
}
