package sim

import (
	"context"
	"math/rand/v2"
	"time"
)

// Actor is a goroutine of the bubble that acts for the test: a client, a target under call, a source of faults. Whatever it does to the
// world happens after a Point, when it runs alone.
type Actor struct {
	*World
	Name string     // unique in the world; part of its key in the trace
	Rand *rand.Rand // of its own

	Requests int // sent by its clients so far, each try of lib/client counted: who was asked once was answered about that once
}

// Go starts an actor. It should end when ctx does, which is with the world; the World waits for it.
func (w *World) Go(name string, f func(ctx context.Context, a *Actor)) {
	a := &Actor{World: w, Name: name, Rand: w.Rand("actor " + name)}
	w.sched.actors.Go(func() {
		if a.Point(w.ctx, "begin") == nil {
			f(w.ctx, a)
		}
	})
}

// Point asks the scheduler for a grant. Until the actor waits again for anything, nobody else runs. what is part of the trace. The error
// is ctx's.
func (a *Actor) Point(ctx context.Context, what string) error {
	return a.sched.point(ctx, a.Name, what)
}

// Sleep lets virtual time go by, and ends with a Point. The error is ctx's.
func (a *Actor) Sleep(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return a.Point(ctx, "wake")
	case <-ctx.Done():
		return ctx.Err()
	}
}
