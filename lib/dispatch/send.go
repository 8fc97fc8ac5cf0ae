package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// Outgoing is a claimed run on its way to a worker.
type Outgoing struct {
	Run   run.Run
	Queue string
	Due   int64 // Unix ms: the queue holds it back until then

	claim *trace.Span // that it has just been claimed under, nil for none
}

type lane struct {
	queue    string
	priority queue.Priority
}

// Send hands runs to their queues and gives back those that it could not, after some tries: each of them needs a check
// timer, or a caller who tries again. Sending a run twice is harmless, since one start wins.
func (d *Dispatcher) Send(ctx context.Context, runs []Outgoing) (unsent []Outgoing, err error) {
	lanes := map[lane][]Outgoing{}
	var order []lane
	for first := 0; first < len(runs); {
		l := lane{runs[first].Queue, runs[first].Run.Priority}
		next := first + 1
		for next < len(runs) && runs[next].Queue == l.queue && runs[next].Run.Priority == l.priority {
			next++
		}
		if lanes[l] == nil {
			order = append(order, l)
			lanes[l] = runs[first:next:next] // most often there is one lane, and nothing to copy
		} else {
			lanes[l] = append(lanes[l], runs[first:next]...)
		}
		first = next
	}
	for _, l := range order {
		left, err := d.sendLane(ctx, l, lanes[l])
		unsent = append(unsent, left...)
		if err != nil {
			return unsent, err
		}
	}
	return unsent, nil
}

func (d *Dispatcher) sendLane(ctx context.Context, l lane, runs []Outgoing) (unsent []Outgoing, err error) {
	q := d.Queues[l.queue]
	if q == nil {
		d.Log.ErrorContext(ctx, "no workers of that name here", "queue", l.queue, "runs", len(runs))
		return runs, nil
	}
	for try := 0; len(runs) > 0; try++ {
		if try == tries {
			return runs, nil
		}
		if try > 0 {
			if err := d.pause(ctx, try); err != nil {
				return runs, err
			}
		}
		var again []Outgoing
		for start := 0; start < len(runs); start += queue.MaxBatch {
			batch := runs[start:min(start+queue.MaxBatch, len(runs))]
			failed, err := d.sendBatch(ctx, q, l.priority, batch)
			if err != nil {
				return append(append(unsent, again...), runs[start:]...), err
			}
			again = append(again, failed...)
		}
		runs = again
		if _, full := d.Full(l.queue); full {
			return runs, nil // soon is too soon
		}
	}
	return nil, nil
}

// fullFor is how long a queue counts as full after it has refused a message for load.
const fullFor = time.Second

// Full tells whether a queue has just refused work for load, and when to ask again: new work is then refused at the door, so
// that what was accepted can drain.
func (d *Dispatcher) Full(name string) (wait time.Duration, full bool) {
	d.fullMu.Lock()
	defer d.fullMu.Unlock()
	wait = d.fullUntil[name].Sub(d.Now())
	return wait, wait > 0
}

func (d *Dispatcher) sawFull(name string) {
	d.fullMu.Lock()
	defer d.fullMu.Unlock()
	d.fullUntil[name] = d.Now().Add(fullFor)
}

// sendBatch gives back the entries that the queue did not take: only those are sent again.
func (d *Dispatcher) sendBatch(ctx context.Context, q queue.Queue, p queue.Priority, batch []Outgoing) ([]Outgoing, error) {
	now := d.Now().Add(d.Store.Skew()).UnixMilli() // by the store, as what is due is: a host that is behind would have it wait too long
	out := make([]queue.Outgoing, len(batch))
	for i := range batch {
		o := &batch[i]
		body, err := run.Message{Run: o.Run, Sent: now}.Encode()
		if err != nil {
			return nil, fmt.Errorf("send run %s: %w", o.Run.ID, err)
		}
		delay := time.Duration(max(0, o.Due-now)) * time.Millisecond
		out[i] = queue.Outgoing{Body: body, Delay: min(delay, queue.MaxDelay), Group: o.Run.Tenant, Trace: o.Run.Trace, Fence: o.Run.Version + 1}
	}
	sending, span := trace.Child(ctx, trace.Producer, "queue send")
	errs, err := q.Send(sending, p, out...)
	span.SetInt("messaging.batch.message_count", int64(len(batch)))
	if err != nil {
		span.Fail(err.Error())
	}
	span.End()
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, queue.ErrClosed) {
			return nil, err
		}
		d.Log.WarnContext(ctx, "a batch was not sent", "error", err)
		return batch, nil
	}
	var failed []Outgoing
	for i, err := range errs {
		if err != nil {
			failed = append(failed, batch[i])
			if errors.Is(err, queue.ErrFull) {
				d.Metrics.Throttled.Inc("queue")
				d.sawFull(batch[i].Queue)
			}
		}
	}
	return failed, nil
}

// endClaims ends what was recorded of claims, when their runs have been sent or not.
func endClaims(sent []Outgoing) {
	for _, o := range sent {
		o.claim.End()
	}
}
