package simulate

import (
	"fmt"
	"strings"
	"time"

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
	e := wire.OnceEvent{Event: eventTimer, From: o.doer, To: laneStore, Attempt: o.last.Attempt}
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
		e.Event, e.Text = eventAgain, fmt.Sprintf("%s writes the same again. The store knows it for the write that it has done, and nothing changes.", upper(placeName(o.doer)))
	case r.State == run.Running && r.Lease > before.Lease:
		e.Event, e.Text = eventRenewed, fmt.Sprintf("%s renews the lease of attempt %d.", upper(placeName(o.doer)), r.Attempt)
	default:
		return
	}
	o.tell(e)
	if o.losing {
		o.losing = false
		o.tell(wire.OnceEvent{Event: eventWriteLost, From: laneStore, To: o.doer, Attempt: r.Attempt, Fence: r.Fence,
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
		return fmt.Sprintf("%s writes that attempt %d failed: %s. The next attempt is due in %s.", who, r.Attempt, r.LastError(),
			schedule.Duration(time.UnixMilli(r.NextAt).Sub(o.clock.Now())))
	case r.State == run.Unknown && before.State == run.Running && o.doer != before.HeldBy():
		return fmt.Sprintf("%s finds that the lease of attempt %d is over. Whether it had its effect nobody can tell, so the run is unknown. Belfry does not start it again by itself.", who, r.Attempt)
	case r.State == run.Unknown:
		return fmt.Sprintf("%s writes that attempt %d had no answer. Whether it had its effect nobody can tell, so the run is unknown. Belfry does not start it again by itself.", who, r.Attempt)
	case r.State == run.Succeeded:
		return fmt.Sprintf("%s writes the end of attempt %d: the run has succeeded.", who, r.Attempt)
	}
	return fmt.Sprintf("%s writes that the run is %s: %s.", who, r.State, r.Reason)
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
		if o.renewing || o.last.State == run.Running && o.doer == o.last.HeldBy() {
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
