package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// placeName is what a place is called in a sentence.
func placeName(place string) string {
	switch place {
	case laneScheduler, laneStore, laneQueue, laneTarget:
		return "the " + place
	}
	return strings.ReplaceAll(place, "_", " ")
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// wrote tells of an item that the store has taken, where it is a timer or the record of the run. It is called in the middle of the write.
func (o *once) wrote(op *store.Op) {
	if r, ok := recordOf(op); ok {
		o.recorded(r)
		return
	}
	if op.Kind != store.Put {
		return
	}
	kind, _, _, _, ok := timer.FromSort(op.Key.Sort)
	e := wire.OnceEvent{Event: "timer_set", From: o.doer, To: laneStore, Attempt: o.last.Attempt}
	switch {
	case !ok:
		return
	case kind == timer.Request:
		e.Text = fmt.Sprintf("%s writes a timer for the run first: a tick finds the run by it if this server dies now.", upper(placeName(o.doer)))
	case kind == timer.Check:
		wait := time.Duration(timer.FromSortTime(op.Key.Sort)-o.clock.Now().UnixMilli()) * time.Millisecond
		e.Text = fmt.Sprintf("%s writes a timer, by which a tick looks at the run again in %s.", upper(placeName(o.doer)), schedule.Duration(wait))
	default:
		return
	}
	o.tell(e)
}

// recorded tells of a record of the run that was written.
func (o *once) recorded(r run.Run) {
	before := o.last
	o.last = r
	e := wire.OnceEvent{Event: r.State.String(), From: o.doer, To: laneStore, Attempt: r.Attempt, Fence: r.Fence}
	switch {
	case r.State != before.State || r.Attempt != before.Attempt:
		e.Text = o.stateText(before, r)
	case o.lost && r.State.Ended():
		e.Event, e.Text = "written_again", fmt.Sprintf("%s writes the same again. The store knows it for the write that it has done, and nothing changes.", upper(placeName(o.doer)))
	case r.State == run.Running && r.Lease > before.Lease:
		e.Event, e.Text = "renewed", fmt.Sprintf("%s renews the lease of attempt %d.", upper(placeName(o.doer)), r.Attempt)
	default:
		return
	}
	o.tell(e)
	if o.losing {
		o.losing = false
		o.tell(wire.OnceEvent{Event: "write_lost", From: laneStore, To: o.doer, Attempt: r.Attempt, Fence: r.Fence,
			Text: fmt.Sprintf("The write is done, and the store's answer is lost: %s cannot tell.", placeName(o.doer))})
	}
}

// stateText says what a new state of the record means.
func (o *once) stateText(before, r run.Run) string {
	who := upper(placeName(o.doer))
	switch {
	case r.State == run.Queued && before.Version == 0 && before.State == 0:
		return "The scheduler writes the record of the run. Its message is sent after that."
	case r.State == run.Queued:
		return fmt.Sprintf("%s finds that the lease of attempt %d is over: whoever had it is taken for dead, and the run is queued again.", who, r.Attempt)
	case r.State == run.Running:
		return fmt.Sprintf("Attempt %d begins. %s holds the run with fence %d, by a lease of %s.", r.Attempt, who, r.Fence, schedule.Duration(o.dispatch.Lease))
	case r.State == run.Retrying:
		return fmt.Sprintf("%s writes that attempt %d failed: %s. The next attempt is due in %s.", who, r.Attempt, lastError(r),
			schedule.Duration(time.UnixMilli(r.NextAt).Sub(o.clock.Now())))
	case r.State == run.Unknown && before.State == run.Running && o.doer != o.holder(before):
		return fmt.Sprintf("%s finds that the lease of attempt %d is over. Whether it had its effect nobody can tell, so the run is unknown. Belfry does not start it again by itself.", who, r.Attempt)
	case r.State == run.Unknown:
		return fmt.Sprintf("%s writes that attempt %d had no answer. Whether it had its effect nobody can tell, so the run is unknown. Belfry does not start it again by itself.", who, r.Attempt)
	case r.State == run.Succeeded:
		return fmt.Sprintf("%s writes the end of attempt %d: the run has succeeded.", who, r.Attempt)
	}
	return fmt.Sprintf("%s writes that the run is %s: %s.", who, r.State, r.Reason)
}

// holder is the place of the worker that holds a run.
func (o *once) holder(r run.Run) string {
	name, _, _ := strings.Cut(r.Worker, "/")
	return name
}

// message tells what was done with a message of the run.
func (o *once) message(_ run.ID, fence uint64, event string, hidden time.Duration) {
	e := wire.OnceEvent{Event: event, From: o.doer, To: laneQueue, Attempt: o.last.Attempt}
	switch event {
	case eventSent:
		o.sent++
		o.live++
		e.Fence = fence
		e.Text = fmt.Sprintf("%s sends a message that names the run, to start under fence %d.", upper(placeName(o.doer)), fence)
		switch {
		case o.doubling:
			e.From, e.To, e.Text = laneQueue, "", "The queue has the first message again, as queues may."
		case o.question.Fault == faultTwice && o.sent == 2:
			e.From, e.To, e.Text = laneQueue, "", "The queue has the message twice: it keeps a copy, as queues may."
		}
	case eventTaken:
		o.plan.Outcome.Deliveries++
		e.From, e.To, e.Delivery, e.Fence = laneQueue, o.doer, o.plan.Outcome.Deliveries, fence
		e.Text = fmt.Sprintf("%s takes the message: delivery %d.", upper(placeName(o.doer)), e.Delivery)
		if fence <= o.last.Fence && !o.last.State.Ended() {
			e.Text += fmt.Sprintf(" It says fence %d, which is taken, so Belfry goes by the record.", fence)
		}
		for _, w := range o.workers {
			if w.place == o.doer {
				w.letter, w.late = fence, o.last.State == run.Running
			}
		}
	case eventHidden:
		if o.renewing || o.last.State == run.Running && o.doer == o.holder(o.last) {
			return // it goes with the lease
		}
		e.Text = fmt.Sprintf("The message stays in the queue, and nobody can take it for %s", schedule.Duration(hidden))
		switch {
		case o.unjudged():
			e.Text += fmt.Sprintf(": the clocks were stepped, so Belfry judges no lease for %s.", schedule.Duration(o.dispatch.Lease))
		case o.last.State == run.Running:
			e.Text += fmt.Sprintf(": the lease of attempt %d is not over.", o.last.Attempt)
		case o.last.State == run.Retrying:
			e.Text += ": until the next attempt is due."
		default:
			e.Text += "."
		}
	case eventDeleted:
		if o.live == 0 {
			return // by whoever had it before it came again
		}
		o.live--
		e.Text = "The message is deleted."
		if o.settled {
			e.Text = fmt.Sprintf("The run has ended, so %s starts nothing. The message is deleted.", placeName(o.doer))
		}
		o.settled = o.last.State.Ended()
	}
	o.tell(e)
}

// lastError is why the newest attempt of a run failed.
func lastError(r run.Run) string {
	if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Error != "" {
		return r.Attempts[n-1].Error
	}
	return "for no reason that is known"
}

// callTimes says how often a target was called.
func callTimes(n int) string {
	switch n {
	case 0:
		return "never called"
	case 1:
		return "called once"
	case 2:
		return "called twice"
	}
	return fmt.Sprintf("called %d times", n)
}

// payments says how many a target made.
func payments(n int) string {
	switch n {
	case 0:
		return "no payment"
	case 1:
		return "1 payment"
	}
	return fmt.Sprintf("%d payments", n)
}

// says is what happened and why, in words.
func says(p wire.OncePlan) string {
	o, q := p.Outcome, p.Question
	said := []string{fmt.Sprintf("The target was %s and made %s.", callTimes(o.Calls), payments(o.Effects))}
	say := func(text string) { said = append(said, text) }
	if o.State == run.Succeeded.String() {
		say("The run has succeeded.")
	} else {
		say(fmt.Sprintf("The run is %s.", o.State))
	}
	count := func(event string) (n int) {
		for _, e := range p.Events {
			if e.Event == event {
				n++
			}
		}
		return n
	}
	if count("repeated") > 0 {
		say("It had paid under the key of the second call already, so it paid nothing for that.")
	}
	if count("stale") > 0 {
		say("The late call had a fence older than the highest that the target had seen for the run, so the target refused it.")
	}
	switch {
	case o.RefusedWorkers > 0 && q.Fault == faultTwice:
		say("Both workers had the message, and Belfry let one of them start.")
	case o.RefusedWorkers > 0 && (q.Fault == faultZombie || q.Fault == faultFirst) && o.State == run.Unknown.String():
		say("Belfry refused what the worker that woke up reported: the run had ended as unknown.")
	case o.RefusedWorkers > 0 && (q.Fault == faultZombie || q.Fault == faultFirst):
		say("Belfry refused what the worker that woke up reported: its successor held the run.")
	}
	switch after := paidAfter(p); {
	case after > 0:
		say(fmt.Sprintf("The payment was made %s after the run became unknown. If somebody retries the run before that, two payments are made, unless the target heeds the fence.", schedule.Duration(after)))
	case o.Effects > 1 && q.Guard == guardFence && q.Fault == faultFirst:
		say("A fence alone does not stop a late worker that is the first to call: the call of its successor is the newer one. An Idempotency-Key does.")
	case o.Effects > 1 && q.Guard == guardFence:
		say("A fence alone does not tell a repeated call: that of the second attempt is the newer one. An Idempotency-Key does.")
	case o.Effects > 1:
		say("At least once means that an attempt whose end nobody knows is made again. A target that heeds the Idempotency-Key pays once.")
	case o.State == run.Unknown.String() && o.Effects == 0:
		say("At most once means that Belfry tries nothing again by itself where nobody knows. Here the payment is missing: look, and use belfry run retry RUN --force.")
	case o.State == run.Unknown.String():
		say("At most once means that Belfry tries nothing again by itself where nobody knows. Here the payment was made: look before you use belfry run retry RUN --force.")
	case q.Fault == faultWrite:
		say("The write was repeated until it had an answer, under the same number, so it counts once.")
	case q.Fault == faultClocks:
		say("A server that notices that its clock has jumped judges no lease for 30s. By then every living worker has renewed its own.")
	case q.Fault == faultBefore && q.Guarantee == string(job.AtLeastOnce):
		say("The lease of the dead worker ran out, and another one made the call.")
	}
	if q.Guarantee == string(job.AtMostOnce) && (q.Guard == guardKey || q.Guard == guardBoth) {
		say("A run at most once sends no Idempotency-Key: HTTP libraries repeat a call that has one by themselves.")
	}
	return strings.Join(said, " ")
}

// paidAfter is how long after the run became unknown its payment was made; 0 where it was not.
func paidAfter(p wire.OncePlan) time.Duration {
	unknown := -1.0
	for _, e := range p.Events {
		switch {
		case e.Event == run.Unknown.String():
			unknown = e.At
		case e.Event == "effect" && unknown >= 0:
			return time.Duration((e.At - unknown) * float64(time.Second))
		}
	}
	return 0
}
