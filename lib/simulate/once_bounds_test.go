package simulate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// hasty is a queue that hands each message out again at once, however long it is to be hidden.
type hasty struct{ queue.Queue }

func (h hasty) Extend(ctx context.Context, _ time.Duration, batch ...queue.Message) ([]error, error) {
	return h.Queue.Extend(ctx, 0, batch...)
}

// TestAnEndlessDemonstrationIsEnded: what goes round and round at one instant has an end without its context, whether it tells of it or not.
func TestAnEndlessDemonstrationIsEnded(t *testing.T) {
	o := stageOnce(wire.OnceQuestion{Guarantee: OnceGuarantees[0], Fault: faultTwice, Guard: guardNone})
	between := o.between()
	between.queue = func(q queue.Queue) queue.Queue { return hasty{o.faultyQueue(q)} }
	if err := o.run(t.Context(), between); !errors.Is(err, errEndless) || !strings.Contains(err.Error(), "events") {
		t.Errorf("a message that comes again and again: %v", err)
	}
	if n := len(o.plan.Events); n > onceEvents+10 {
		t.Errorf("it has %d events", n)
	}
	o = stageOnce(wire.OnceQuestion{Guarantee: OnceGuarantees[0], Fault: faultNone, Guard: guardNone})
	var again func(context.Context) error
	again = func(context.Context) error {
		o.after(0, again)
		return nil
	}
	o.after(0, again)
	if err := o.run(t.Context(), o.between()); !errors.Is(err, errEndless) || !strings.Contains(err.Error(), "rounds") {
		t.Errorf("what is done again and again: %v", err)
	}
}
