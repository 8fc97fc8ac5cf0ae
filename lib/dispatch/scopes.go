package dispatch

import (
	"context"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// This file has what is told of a scope, which follows from the rows of its steps, and from what stops it. A row of its own has none but one with a condition or a timeout.

// scope is what is known of a scope: it has failed of the first step in it that has, and it goes from when the first was released, or it was asked whether it
// runs, to when the last has ended.
func (r *reading) scope(n *flow.Node) flow.Seen {
	seen := flow.Seen{State: r.plan.States[n.Index]}
	if seen.State == flow.Skipped || seen.State == flow.UpstreamFailed {
		seen.Ended = moment(r.rows[n.Index].Ended)
		return seen
	}
	seen.Started, seen.Ended = r.span(n)
	if seen.State.Failure() {
		seen.Error = r.fault(n)
	}
	return seen
}

// span is when what is in a scope began and ended, by its rows; zero where there are none.
func (r *reading) span(n *flow.Node) (from, to time.Time) {
	var begun, ended int64
	for i := n.Index; i < len(r.w.Nodes); i++ {
		if row, ok := r.rows[i]; ok && (i == n.Index || r.w.Within(i, n.Index)) {
			if begun == 0 || row.Created < begun {
				begun = row.Created
			}
			ended = max(ended, row.Ended)
		}
	}
	return moment(begun), moment(ended)
}

// fault says what a scope has failed of.
func (r *reading) fault(n *flow.Node) string {
	if row, ok := r.rows[n.Index]; ok && row.State == run.Failed {
		return row.Fault()
	}
	if by, stopped := r.plan.Stopped[n.Index]; stopped && by == flow.None {
		return n.Overrun()
	}
	cause := r.w.Cause(n.Index, &r.plan)
	if cause == flow.None {
		return ""
	}
	switch c := &r.w.Nodes[cause]; c.Kind {
	case flow.KindFail:
		return c.Fail.Message
	case flow.KindScope:
		return r.fault(c)
	}
	return r.rows[cause].Fault()
}

// ScopeResult gives what a scope of a run has given, as its steps stand: the result of one of them as it was kept, or what is made of some. steps are all that
// were released, and plan says where all nodes stand. A scope that has not succeeded has given nothing. failed says why there is nothing of one that has: an
// expression fails.
func (d *Dispatcher) ScopeResult(ctx context.Context, whole run.Run, path string, steps []run.Run, plan flow.Decisions) (of run.Ref, failed *target.Failure, err error) {
	edition, err := d.Book.Edition(ctx, whole.Tenant, whole.ID.Job, whole.Generation)
	if err != nil {
		return run.Ref{}, nil, err
	}
	w, err := flow.Of(edition)
	if err != nil {
		return run.Ref{}, nil, err
	}
	n, ok := w.Node(path)
	if !ok || n.Kind != flow.KindScope || plan.States[n.Index] != flow.Succeeded {
		return run.Ref{}, nil, nil
	}
	r := read(d, whole, edition.Def, w, steps, plan)
	r.once = true
	if from := w.Whole(n.Index, r); from != flow.None {
		return r.rows[from].Result, nil, nil
	}
	failed, err = r.evaluate(n, func(texts *flow.Evaluation) (err error) {
		of.Inline, of.Type, err = texts.Give(ctx, n.Data)
		return err
	})
	if failed != nil || err != nil {
		return run.Ref{}, failed, err
	}
	return of, nil, nil
}
