package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// ends are the ends of steps that this process has written and nobody has followed yet: by run, as long as somebody follows one of it.
type ends struct {
	mu sync.Mutex
	of map[store.Key][]*end
}

type end struct {
	step run.Run
	done chan struct{} // closed when what follows stands
	err  error
}

// followEnd is Follow for whoever has ended a step, which it has in hand: as a rule it reads the run and no other step, or a few, however many there are.
// What it cannot tell by these, it does as Follow does. Of steps of one run that end at about the same time the first is followed by itself, and those
// that end meanwhile together: each end is durable before all are read.
//
// Durable afterwards: every step that follows from this end. A crash before leaves it to the step's message, which comes again, or to the check of
// the run; both read all steps.
func (d *Dispatcher) followEnd(ctx context.Context, ended run.Run) error {
	key := ended.ID.Whole().Key(ended.Tenant)
	d.ends.mu.Lock()
	waiting, followed := d.ends.of[key]
	if !followed || d.Still {
		d.ends.of[key] = waiting
		d.ends.mu.Unlock()
		err := d.follow(ctx, ended.Tenant, ended.ID, func(f *following) error { return f.walk(ctx, ended) })
		if more := d.ends.take(key); len(more) > 0 {
			go d.followEnds(key, more) // bounded by the time-outs of its requests
		}
		return err
	}
	e := &end{step: ended, done: make(chan struct{})}
	d.ends.of[key] = append(waiting, e)
	d.ends.mu.Unlock()
	<-e.done // bounded too
	if e.err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return e.err
}

// followEnds follows ends of one run until there are no more.
func (d *Dispatcher) followEnds(key store.Key, some []*end) {
	ctx := context.Background()
	for ; len(some) > 0; some = d.ends.take(key) {
		first := some[0].step
		err := d.follow(ctx, first.Tenant, first.ID, func(f *following) error {
			if len(some) == 1 {
				return f.walk(ctx, first)
			}
			return f.step(ctx, false)
		})
		for _, e := range some {
			e.err = err
			close(e.done)
		}
	}
}

// take takes the ends that wait. Where there are none, nobody follows the run any more.
func (e *ends) take(key store.Key) []*end {
	e.mu.Lock()
	defer e.mu.Unlock()
	some := e.of[key]
	if len(some) == 0 {
		delete(e.of, key)
	} else {
		e.of[key] = nil
	}
	return some
}

// A query reads some two dozen steps with small results for what one costs that is read by itself. So a small workflow has none read by itself, and a
// large one as many as cost no more than the query that they may save.
const (
	maxLooks = 8
	perLook  = 24 // steps of the workflow
)

// walk does what follows from the end of one step. A *store.Conflict says that the run stands otherwise by now.
func (f *following) walk(ctx context.Context, ended run.Run) error {
	n, found := f.workflow.Node(ended.ID.Step)
	if !found || !ended.State.Ended() || ended.State == run.Cancelled || f.head.Cancel || len(f.head.Stopped) > 0 || f.now >= lasts(f.head, f.workflow) {
		return f.step(ctx, false)
	}
	known := make([]flow.Known, len(f.workflow.Nodes))
	known[n.Index] = flow.Known{Read: true, Fact: FactOf(f.workflow, ended)}
	steps := []run.Run{ended} // those that were read
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
			if s := read[0]; s.State == run.Cancelled {
				return f.step(ctx, false) // for a stop that was written since
			} else if s.Version != 0 {
				known[next.Read].Fact = FactOf(f.workflow, s)
				steps = append(steps, s)
			}
		case slices.ContainsFunc(next.Release, func(i int) bool { return len(f.workflow.Unsure(i)) > 0 }):
			return f.step(ctx, false) // what they name has to be looked at
		default:
			released, err := f.release(ctx, next.Release, steps, nil)
			if err = errors.Join(err, f.send(ctx, released)); err != nil || len(released) == len(next.Release) {
				return err
			}
			return f.step(ctx, false) // somebody who knew more has put one of them
		}
	}
}
