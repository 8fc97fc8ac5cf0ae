package protocol_test

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/faulty"
)

type queuedFate struct {
	err          error
	drop, double bool
}

// wrap lets a hook decide what becomes of each message that is sent.
func wrap(q queue.Queue, send func(queue.Priority, queue.Outgoing) queuedFate) queue.Queue {
	return faulty.Wrap(later{q}, faulty.Hooks{Send: func(p queue.Priority, m queue.Outgoing) faulty.Fate {
		fate := send(p, m)
		return faulty.Fate{Err: fate.err, Drop: fate.drop, Double: fate.double}
	}})
}

// later hands nothing back within the same instant: it would come again at once, and time stands still.
type later struct{ queue.Queue }

func (l later) Extend(ctx context.Context, visibility time.Duration, batch ...queue.Message) ([]error, error) {
	return l.Queue.Extend(ctx, max(time.Millisecond, visibility), batch...)
}

type queueMessage = queue.Outgoing
