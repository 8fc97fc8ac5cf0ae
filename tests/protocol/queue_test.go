package protocol_test

import (
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/faulty"
)

type queuedFate struct {
	err          error
	drop, double bool
}

// wrap lets a hook decide what becomes of each message that is sent.
func wrap(q queue.Queue, send func(queue.Priority, queue.Outgoing) queuedFate) queue.Queue {
	return faulty.Wrap(q, faulty.Hooks{Send: func(p queue.Priority, m queue.Outgoing) faulty.Fate {
		fate := send(p, m)
		return faulty.Fate{Err: fate.err, Drop: fate.drop, Double: fate.double}
	}})
}

type queueMessage = queue.Outgoing
