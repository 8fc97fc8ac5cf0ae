package simulate

import (
	"fmt"
	"strconv"

	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// payee is the target of a demonstration: each call that it takes is a payment, which is its effect.
type payee struct {
	guard   string
	keys    map[string]bool // it has seen
	highest uint64          // fence that it has seen
	calls   int
	effects int
}

// answered is what the payee says to a call.
type answered struct {
	event   string
	says    string
	refused bool // it is no success
}

// pay takes a call. A key that it knows has the answer of the first call, as an endpoint does that heeds Idempotency-Key; an older fence is refused.
func (p *payee) pay(key string, fence uint64) answered {
	p.calls++
	knows, stale := key != "" && p.keys[key], fence < p.highest
	switch {
	case (p.guard == guardFence || p.guard == guardBoth) && stale:
		return answered{event: "stale", says: fmt.Sprintf("refused, fence %d is older than %d", fence, p.highest), refused: true}
	case (p.guard == guardKey || p.guard == guardBoth) && knows:
		return answered{event: "repeated", says: "paid before"}
	}
	p.keys[key], p.highest = true, max(p.highest, fence)
	p.effects++
	return answered{event: "effect", says: "paid"}
}

// called has the target take a call, which is told what the product tells targets.
func (o *once) called(w *hand, facts []target.Fact) answered {
	var key string
	var fence uint64
	for _, f := range facts {
		switch f.Header {
		case "Idempotency-Key":
			key = f.Value
		case "Belfry-Fence":
			fence, _ = strconv.ParseUint(f.Value, 10, 64) // 0 for none that can be read
		}
	}
	with := fmt.Sprintf("with fence %d", fence)
	if key != "" {
		with += " and the run's ID as Idempotency-Key"
	} else {
		with += ", and without an Idempotency-Key"
	}
	o.tell(wire.OnceEvent{Event: "called", From: w.place, To: laneTarget, Attempt: w.task.Attempt, Fence: fence, Key: key, Text: fmt.Sprintf("%s calls the target, %s.", upper(w.name()), with)})
	answer := o.payee.pay(key, fence)
	o.tell(wire.OnceEvent{Event: answer.event, From: laneTarget, Attempt: w.task.Attempt, Fence: fence, Key: key, Text: o.payee.told(answer)})
	return answer
}

func (p *payee) told(a answered) string {
	switch a.event {
	case "stale":
		return fmt.Sprintf("The target has seen fence %d: it refuses the older one, and pays nothing.", p.highest)
	case "repeated":
		return "The target knows the key: it pays nothing, and answers as it did before."
	}
	if p.effects > 1 {
		return fmt.Sprintf("The target pays. That is payment %d of a run that asks for one.", p.effects)
	}
	return "The target pays: this is the effect."
}
