package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// placed is what a place is called in a sentence.
func placed(place string) string {
	switch place {
	case laneScheduler, laneStore, laneQueue, laneTarget:
		return "the " + place
	}
	return strings.ReplaceAll(place, "_", " ")
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// wrote tells of a record of the run that the store has taken. It is called in the middle of the write.
func (o *once) wrote(r run.Run) {
	before := o.last
	o.last = r
	e := wire.OnceEvent{Event: r.State.String(), From: o.doer, To: laneStore, Attempt: r.Attempt, Fence: r.Fence}
	switch {
	case r.State != before.State || r.Attempt != before.Attempt:
		e.Text = o.stated(before, r)
	case o.lost && r.State.Ended():
		e.Event, e.Text = "written_again", fmt.Sprintf("%s writes the same again. The store knows it for the write that it has done, and nothing changes.", upper(placed(o.doer)))
	case r.State == run.Running && r.Lease > before.Lease:
		e.Event, e.Text = "renewed", fmt.Sprintf("%s renews the lease of attempt %d.", upper(placed(o.doer)), r.Attempt)
	default:
		return
	}
	o.tell(e)
	if o.losing {
		o.losing = false
		o.tell(wire.OnceEvent{Event: "write_lost", From: laneStore, To: o.doer, Attempt: r.Attempt, Fence: r.Fence,
			Text: fmt.Sprintf("The write is done, and the store's answer is lost: %s cannot tell.", placed(o.doer))})
	}
}

// stated says what a new state of the record means.
func (o *once) stated(before, r run.Run) string {
	who := upper(placed(o.doer))
	switch {
	case r.State == run.Queued && before.Version == 0 && before.State == 0:
		return "The run is asked for, and its record is written before anybody hears of it."
	case r.State == run.Queued:
		return fmt.Sprintf("%s finds that the lease of attempt %d is over: whoever had it is taken for dead, and the run is queued again.", who, r.Attempt)
	case r.State == run.Running:
		return fmt.Sprintf("Attempt %d begins. %s holds the run with fence %d, by a lease of %s.", r.Attempt, who, r.Fence, schedule.Duration(o.dispatch.Lease))
	case r.State == run.Retrying:
		return fmt.Sprintf("%s writes that attempt %d failed: nobody knows what became of its call. The next attempt is due in %s.", who, r.Attempt,
			schedule.Duration(time.UnixMilli(r.NextAt).Sub(o.clock.Now())))
	case r.State == run.Unknown && before.State == run.Running && o.doer != o.holder(before):
		return fmt.Sprintf("%s finds that the lease of attempt %d is over. Whether it had its effect nobody can tell, so the run is unknown, and is not started again.", who, r.Attempt)
	case r.State == run.Unknown:
		return fmt.Sprintf("%s writes that attempt %d had no answer. Whether it had its effect nobody can tell, so the run is unknown, and is not started again.", who, r.Attempt)
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
func (o *once) message(_ run.ID, event string, hidden time.Duration) {
	e := wire.OnceEvent{Event: event, From: o.doer, To: laneQueue, Attempt: o.last.Attempt}
	switch event {
	case eventSent:
		o.sent++
		o.live++
		e.Text = fmt.Sprintf("%s sends a message that names the run.", upper(placed(o.doer)))
		if o.doubling || o.question.Fault == faultTwice && o.sent == 2 {
			e.From, e.To, e.Text = laneQueue, "", "The queue has the message twice: it keeps a copy, as queues may."
		}
	case eventTaken:
		o.plan.Outcome.Deliveries++
		e.From, e.To, e.Delivery = laneQueue, o.doer, o.plan.Outcome.Deliveries
		e.Text = fmt.Sprintf("%s takes the message: delivery %d.", upper(placed(o.doer)), e.Delivery)
	case eventHidden:
		if o.renewing || o.last.State == run.Running && o.doer == o.holder(o.last) {
			return // it goes with the lease
		}
		e.Text = fmt.Sprintf("The message stays in the queue, and nobody can take it for %s", schedule.Duration(hidden))
		switch {
		case o.last.State == run.Running:
			e.Text += ": the lease of whoever holds the run is not over."
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
			e.Text = fmt.Sprintf("The run has ended, so %s starts nothing. The message is deleted.", placed(o.doer))
		}
		o.settled = o.last.State.Ended()
	}
	o.tell(e)
}

// did says how often something was done.
func did(what string, n int) string {
	switch n {
	case 0:
		return "never " + what
	case 1:
		return what + " once"
	case 2:
		return what + " twice"
	}
	return fmt.Sprintf("%s %d times", what, n)
}

// says is what happened and why, in words.
func says(p wire.OncePlan) string {
	o, q := p.Outcome, p.Question
	said := []string{fmt.Sprintf("The target was %s, and %s.", did("called", o.Calls), did("paid", o.Effects))}
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
		say("The second call had the key of the first, so the target did nothing for it.")
	}
	if count("stale") > 0 {
		say("The late call had an older fence than one that the target had seen, so it was refused.")
	}
	switch {
	case o.RefusedWrites > 0 && q.Fault == faultTwice:
		say("Both workers had the message, and the store let one of them start.")
	case o.RefusedWrites > 0 && q.Fault == faultZombie:
		say("What the worker that woke up wrote was refused: another fence holds the run, or none.")
	}
	switch {
	case o.Effects > 1 && q.Guard == guardFence && q.Fault != faultZombie:
		say("A fence alone does not tell a repeated call: that of the second attempt is the newer one. An Idempotency-Key does.")
	case o.Effects > 1:
		say("At least once means that an attempt whose end nobody knows is made again. A target that heeds the Idempotency-Key pays once.")
	case o.State == run.Unknown.String() && o.Effects == 0:
		say("At most once means that nothing is tried again where nobody knows: here the payment is missing, and somebody has to look.")
	case o.State == run.Unknown.String():
		say("At most once means that nothing is tried again where nobody knows: the payment was made, and somebody has to look.")
	case q.Fault == faultWrite:
		say("The write was repeated until it had an answer, under the same number, so it counts once.")
	case q.Fault == faultClock:
		say("A jump of the clock ends no lease: none is judged until every worker has had the time to renew its own.")
	case q.Fault == faultBefore && q.Guarantee == string(job.AtLeastOnce):
		say("The lease of the dead worker ran out, and another one made the call.")
	}
	if q.Guarantee == string(job.AtMostOnce) && (q.Guard == guardKey || q.Guard == guardBoth) {
		say("A run at most once brings no Idempotency-Key, since nothing may be sent twice.")
	}
	return strings.Join(said, " ")
}
