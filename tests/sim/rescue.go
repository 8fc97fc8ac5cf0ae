package sim

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/queue"
)

// giveUp takes out of what was received those messages that were handed out too often, as SQS does before it hands one out again: they
// go to the queue's dead letters.
func (l *line) giveUp(taken []queue.Message) []queue.Message {
	if l.dead == nil {
		return taken
	}
	return slices.DeleteFunc(taken, func(m queue.Message) bool {
		if m.Receives <= l.world.Mix.Shape.MaxReceives {
			return false
		}
		l.world.luck.counts[GivenUp]++
		_, _ = l.local.Delete(l.world.ctx, m)
		_, _ = l.dead.local.Send(l.world.ctx, m.Priority, queue.Outgoing{Body: m.Body})
		l.dead.expect(0)
		return true
	})
}

// apart is how long one message goes back after another, as in lib/lambda.
const apart = 5 * time.Second

// rescues sees to the dead letters of all queues, as the function does that they call.
func (h *host) rescues(ctx context.Context) {
	rescue, err := lease.NewRescue(lease.RescueConfig{Dispatch: h.node.Dispatch, Blobs: h.blobs, Metrics: metrics.New()})
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(h.lines)) {
		if dead := h.lines[name].dead; dead != nil {
			all.Go(func() { h.rescue(ctx, rescue, pool{dead, h}) })
		}
	}
	all.Wait()
}

func (h *host) rescue(ctx context.Context, rescue *lease.Rescue, from pool) {
	for ctx.Err() == nil {
		given, err := from.Receive(ctx, queue.MaxBatch, queue.MaxWait, 6*function)
		if err != nil {
			pause(ctx, time.Minute)
			continue
		}
		for i, m := range given {
			if rescue.See(ctx, m, time.Duration(i)*apart) == nil {
				_, _ = from.Delete(ctx, m) // else it comes again
			}
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}
