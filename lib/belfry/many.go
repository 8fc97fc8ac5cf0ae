package belfry

import (
	"context"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/control"
)

// Order is one of the runs that [EnqueueMany] asks for.
type Order[T any] struct {
	Payload T
	Options []EnqueueOption // [At], [Delay], [IgnorePause], [Overlap] and [Key] of this one
}

// Enqueued is what became of an [Order]: its run, or why there is none. A server elsewhere tells of each run its ID, Job, State and Nominal;
// [Belfry.Run] gives the rest.
type Enqueued struct {
	Run Run
	Err error
}

// EnqueueMany asks for many runs of a job, of any number, at a fraction of what as many calls of [Enqueue] cost: what they write is
// synced together. It gives one verdict each, in the order of the orders.
//
// When it returns nil, every run is durable, as after Enqueue. Else the error is that of the first order that was not taken: the others
// may have been, as their verdicts say. So after an error ask again for those that have one, and give orders a [Key] where a
// run twice would do harm.
//
// A payload that has no JSON form, or another type than the handler's, refuses all, and there are no verdicts.
func EnqueueMany[T any](ctx context.Context, b *Belfry, job string, orders ...Order[T]) ([]Enqueued, error) {
	requests := make([]control.Request, len(orders))
	for i, o := range orders {
		if err := b.fits(job, o.Payload); err != nil {
			return nil, err
		}
		text, err := encode(o.Payload)
		if err != nil {
			return nil, err
		}
		requests[i].Payload = text
		for _, option := range o.Options {
			option.apply(&requests[i])
		}
	}
	if err := b.defineAll(ctx, job, requests...); err != nil {
		return nil, err
	}
	return b.enqueueMany(ctx, job, requests)
}

// How many requests go to the engine at once, and how many bytes of payloads: what one call of the API takes, with room for what
// stands around them.
const (
	mostOrders = 1000
	mostBytes  = 8 << 20
)

func (b *Belfry) enqueueMany(ctx context.Context, job string, requests []control.Request) (verdicts []Enqueued, err error) {
	verdicts = make([]Enqueued, 0, len(requests))
	for len(requests) > 0 {
		n, bytes := 0, 0
		for n < len(requests) && n < mostOrders && (n == 0 || bytes+len(requests[n].Payload) <= mostBytes) {
			bytes += len(requests[n].Payload)
			n++
		}
		failed := ctx.Err()
		if failed == nil {
			var some []Enqueued
			some, failed = b.engine.triggerMany(ctx, job, requests[:n])
			verdicts = append(verdicts, some...)
		}
		if failed != nil { // what befell this call would befall those behind it
			failed = refused(failed)
			for range requests {
				verdicts = append(verdicts, Enqueued{Err: failed})
			}
			break
		}
		requests = requests[n:]
	}
	for i := range verdicts {
		verdicts[i].Err = refused(verdicts[i].Err)
		if verdicts[i].Err != nil && err == nil {
			err = fmt.Errorf("order %d of %d: %w", i+1, len(verdicts), verdicts[i].Err)
		}
	}
	return verdicts, err
}
