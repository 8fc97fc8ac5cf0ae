package sim

import (
	"context"
	"fmt"
	"runtime"
	"strconv"

	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// call is what a host does when it calls a target: the call arrives, the target works, its answer arrives. What the target does goes on
// while the host stands still; where it dies, nobody hears the answer.
func (h *host) call(ctx context.Context, handler string, call target.Call) (target.Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // a dead host hangs up
		select {
		case <-h.dead:
			stop()
		case <-ctx.Done():
		}
	}()
	w := h.World
	c := Call{Call: call, Handler: handler, Kill: h.crash}
	attempt := strconv.Itoa(call.Attempt)
	err := w.sched.ask(ctx, &pending{}, h.op("call", call.Tenant+"#"+call.Run, attempt, byNet, func() string {
		c.Stale = w.Judge.Called(oracle.Call{At: w.Now(), Tenant: call.Tenant, Job: call.Job, Run: call.Run, Attempt: call.Attempt, Fence: call.Fence,
			Nominal: call.Nominal, Payload: call.Payload})
		w.calls++
		if c.Stale {
			return "stale"
		}
		return ""
	}))
	if err != nil {
		return target.Result{}, err
	}
	name := fmt.Sprintf("target %s#%s/%d", call.Tenant, call.Run, call.Fence)
	a := &Actor{World: w, Name: name, Rand: w.Rand(name)}
	result, err := h.target(ctx, a, c)
	if err := a.Point(ctx, "end"); err != nil { // its caller has hung up
		return target.Result{}, err
	}
	w.Judge.Returned(oracle.Return{At: w.Now(), Tenant: call.Tenant, Run: call.Run, Fence: call.Fence, OK: err == nil, Result: result.Body})
	if err := w.sched.ask(ctx, &pending{}, h.op("return", call.Tenant+"#"+call.Run, attempt, byNet, nil)); err != nil {
		return target.Result{}, err
	}
	return result, err
}

// target calls the Target. One that panics ends its goroutine instead: Belfry takes both for the same, and the text of a panic, which
// goes to the run's log, is never twice the same.
func (h *host) target(ctx context.Context, a *Actor, c Call) (target.Result, error) {
	defer func() {
		if recover() != nil {
			runtime.Goexit()
		}
	}()
	return h.World.Target(ctx, a, c)
}
