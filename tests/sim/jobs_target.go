package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// works is the Target of worlds whose jobs do what their payloads say.
func works(ctx context.Context, a *Actor, call Call) (target.Result, error) {
	w := work{}
	if err := json.Unmarshal(call.Payload, &w); err != nil {
		return target.Result{}, target.Permanent(fmt.Errorf("a payload that is none of ours: %w", err))
	}
	if w.Of != "" && w.Of != call.Tenant {
		a.Violate("P12", "run %s of %s was called with a payload of %s", call.Run, call.Tenant, w.Of)
	}
	if w.Fences && call.Stale {
		return target.Result{}, target.Permanent(errors.New("a call with a higher fence was there before"))
	}
	if err := w.take(ctx, a, call); err != nil {
		return target.Result{}, err
	}
	if w.Log > 0 {
		_, _ = call.Log.Write(bytes.Repeat([]byte("a line of a log\n"), w.Log/16+1))
	}
	fate := a.Rand.Float64()
	if fate -= w.Panic; fate < 0 {
		panic("a handler that panics")
	}
	if fate -= w.Bad; fate < 0 {
		return target.Result{}, target.Permanent(errors.New("failed for good"))
	}
	if chance(a.Rand, w.Fail) {
		err := errors.New("failed this time")
		if w.Wait > 0 {
			err = target.RetryAfter(w.Wait.Std(), err)
		}
		return target.Result{}, err
	}
	if w.Result == 0 {
		return target.Result{}, nil
	}
	result := target.Result{Body: bytes.Repeat([]byte("r"), w.Result), ContentType: "text/plain"}
	if chance(a.Rand, 0.5) {
		result.Body, _ = json.Marshal(map[string]string{"of": call.Run, "pad": string(result.Body[:min(w.Result, 200_000)])})
		result.ContentType = "application/json"
	}
	return result, nil
}

// deafFor is how long an attempt that does not heed its context goes on after it was told to stop.
const deafFor = 3 * time.Minute

// take lets the time of an attempt go by.
func (w work) take(ctx context.Context, a *Actor, call Call) error {
	takes := time.Duration((0.5 + 1.5*a.Rand.Float64()) * float64(w.For))
	if a.Faults != (Faults{}) && chance(a.Rand, w.Kill) {
		if err := a.Sleep(ctx, time.Duration(a.Rand.Float64()*float64(takes))); err != nil {
			return err
		}
		call.Kill()
		return errors.New("its host is gone")
	}
	began := a.Now()
	err := a.Sleep(ctx, takes)
	if err == nil || !w.Deaf {
		return err
	}
	left := min(takes-a.Now().Sub(began), deafFor)
	if a.Sleep(a.ctx, left) != nil {
		return err
	}
	return nil
}
