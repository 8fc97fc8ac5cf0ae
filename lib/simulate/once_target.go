package simulate

import (
	"fmt"
	"strconv"

	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// service is the target of a demonstration, a payment service. A call that it accepts is a payment, which is its effect. It pays at the call, and keeps the
// key and the fence in the same step; only its answer takes time.
type service struct {
	guard                             string
	keys                              map[string]bool   // under which it has paid
	highest                           map[string]uint64 // fence that it has seen, by run
	calls, effects, repeated, refused int               // each call has its effect, repeats one that had it, or is refused
}

// reply is what the service says to a call.
type reply struct {
	event string // eventEffect, eventRepeated or eventStale
	says  string // to the worker
	text  string
}

// pay takes a call. A key under which it has paid is a success without a payment; a fence older than the highest of the run is refused.
func (s *service) pay(of, key string, fence uint64) reply {
	s.calls++
	highest := s.highest[of]
	switch {
	case (s.guard == guardFence || s.guard == guardBoth) && fence < highest:
		s.refused++
		return reply{event: eventStale, says: fmt.Sprintf("refused, fence %d is older than %d", fence, highest),
			text: fmt.Sprintf("The target has seen fence %d for this run: it refuses the older one, and pays nothing.", highest)}
	case (s.guard == guardKey || s.guard == guardBoth) && key != "" && s.keys[key]:
		s.repeated++
		return reply{event: eventRepeated, says: "already paid", text: "The target has paid under this key: it pays nothing."}
	}
	s.keys[key], s.highest[of] = true, max(highest, fence)
	s.effects++
	made := reply{event: eventEffect, says: "paid", text: "The target makes a payment: this is the effect."}
	if s.effects > 1 {
		made.text = fmt.Sprintf("The target makes payment %d of an invoice that is to be paid once.", s.effects)
	}
	return made
}

// asks has a worker call the target, which is told what the product tells targets.
func (o *once) asks(w *hand, facts []target.Fact) reply {
	var of, key string
	var fence uint64
	for _, f := range facts {
		switch f.Header {
		case "Belfry-Run":
			of = f.Value
		case "Idempotency-Key":
			key = f.Value
		case "Belfry-Fence":
			fence, _ = strconv.ParseUint(f.Value, 10, 64) // 0 for none that can be read
		}
	}
	with := "with the run's ID as Idempotency-Key"
	if key == "" {
		with = "without an Idempotency-Key"
	}
	o.tell(wire.OnceEvent{Event: eventCalled, From: w.place, To: laneTarget, Attempt: w.task.Attempt, Fence: fence, Key: key,
		Text: fmt.Sprintf("%s calls the target with fence %d, %s.", upper(w.name()), fence, with)})
	answer := o.service.pay(of, key, fence)
	o.tell(wire.OnceEvent{Event: answer.event, From: laneTarget, Attempt: w.task.Attempt, Fence: fence, Key: key, Text: answer.text})
	return answer
}
