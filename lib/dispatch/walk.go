package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// followEnd is Follow for whoever has ended a step, which it has in hand: as a rule it reads the run and no other step, or a few, however many there are.
// What it cannot tell by these, it does as Follow does.
//
// Durable afterwards: every step that follows from this end. A crash before leaves it to the step's message, which comes again, or to the check of
// the run; both read all steps.
func (d *Dispatcher) followEnd(ctx context.Context, ended run.Run) error {
	return d.follow(ctx, ended.Tenant, ended.ID, func(f *following) error { return f.walk(ctx, ended) })
}

// A query reads some two dozen steps for what one costs that is read by itself. So in a small workflow no step is read by itself, and in a large one as many as may
// well come upon one that is open.
const (
	maxLooks = 3
	perLook  = 100 // steps of the workflow
)

// walk does what follows from the end of one step. A *store.Conflict says that the run stands otherwise by now.
func (f *following) walk(ctx context.Context, ended run.Run) error {
	n, found := f.workflow.Node(ended.ID.Step)
	if !found || !ended.State.Ended() || f.head.Cancel || f.now >= over(f.head, f.workflow) {
		return f.step(ctx, false)
	}
	known := make([]flow.Known, len(f.workflow.Nodes))
	known[n.Index] = flow.Known{Read: true, Fact: flow.Fact{State: FlowState(ended.State), To: flow.None}}
	for looks := min(maxLooks, len(known)/perLook); ; looks-- {
		next := f.workflow.Walk(n.Index, known, looks)
		switch {
		case next.All:
			return f.step(ctx, false)
		case next.Read != flow.None:
			read, err := f.ReadRuns(ctx, []run.Run{{ID: f.head.ID.At(f.workflow.Nodes[next.Read].Path), Tenant: f.head.Tenant}})
			if err != nil {
				return fmt.Errorf("read a step: %w", err)
			}
			known[next.Read].Read = true
			if s := read[0]; s.Version != 0 {
				known[next.Read].Fact = flow.Fact{State: FlowState(s.State), To: flow.None}
			}
		default:
			released, err := f.release(ctx, next.Release)
			if err = errors.Join(err, f.send(ctx, released)); err != nil || len(released) == len(next.Release) {
				return err
			}
			return f.step(ctx, false) // somebody who knew more has put one of them
		}
	}
}
