package dispatch

import (
	"strconv"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// tell records the span of a workflow's run, or of a step, by its end. No process has it in hand from its beginning on, so it is recorded as a whole
// by whoever has written the end, and not at all where that one dies first.
func (d *Dispatcher) tell(r run.Run) {
	if !r.State.Ended() || !r.ID.IsStep() && !r.Headed() {
		return
	}
	span := trace.Data{Context: r.Branch(), Above: r.Trace.Span, Name: "workflow " + r.ID.Job, Start: time.UnixMilli(r.Started), End: time.UnixMilli(r.Ended)}
	if r.ID.IsStep() {
		span.Context, span.Above, span.Local = r.Trace, r.Branch().Span, true
		span.Name, span.Start = "step "+r.ID.Job+"/"+r.ID.Step, time.UnixMilli(r.Created)
	}
	span.Attrs = []trace.Attr{{Key: "belfry.tenant", Value: r.Tenant}, {Key: "belfry.job", Value: r.ID.Job}, {Key: "belfry.run", Value: r.ID.String()},
		{Key: "belfry.outcome", Value: r.State.String()}}
	if r.ID.IsStep() {
		span.Attrs = append(span.Attrs, trace.Attr{Key: "belfry.attempts", Value: strconv.Itoa(r.Attempt)})
	}
	if r.State != run.Succeeded && r.State != run.Cancelled {
		span.Error = r.State.String()
		if n := len(r.Attempts); n > 0 && r.Attempts[n-1].Error != "" {
			span.Error = r.Attempts[n-1].Error
		} else if r.Reason != "" {
			span.Error = r.Reason
		}
	}
	d.Tracer.Tell(span)
}
