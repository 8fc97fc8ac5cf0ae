package tick

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/trace"
)

// traced begins the trace of a tick, which the runs that it claims link to: each of them has its own. Of a tick that found nothing to
// do, nothing is recorded. The calls of the store are not part of it: there are some for each bucket, whatever is due.
func (t *Ticker) traced(ctx context.Context) (context.Context, func(Report, error)) {
	span := t.Tracer.Apart(trace.Internal, "tick")
	if span == nil {
		return ctx, func(Report, error) {}
	}
	return trace.With(ctx, trace.Origin{Context: span.Context()}), func(r Report, err error) {
		if err == nil && r.Timers+r.Claimed+r.Repairs.Claimed+r.Repairs.Resent+r.Repairs.Expired == 0 {
			span.Drop()
			return
		}
		span.SetInt("belfry.shards", int64(r.Passes))
		span.SetInt("belfry.timers", int64(r.Timers))
		span.SetInt("belfry.claimed", int64(r.Claimed))
		span.SetInt("belfry.sent", int64(r.Sent))
		span.SetInt("belfry.repaired", int64(r.Repairs.Claimed+r.Repairs.Resent+r.Repairs.Expired))
		if err != nil {
			span.Fail(err.Error())
		}
		span.End()
	}
}
