package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// LongWait is what a target asks for whose run is to wait in the store, and not in the queue, for its next attempt.
const LongWait = 1000 * time.Second

// reopen is the life of a client whose runs end otherwise than by themselves: it redrives those that died, until they succeed, cancels
// some, and has some wait for long, where time is quick enough for that.
func (a *actor) reopen(ctx context.Context) error {
	for number := 0; a.pause(ctx, time.Duration(a.rng.IntN(150))*time.Millisecond); number++ {
		a.h = history{job: fmt.Sprintf("%s-%d", a.name, number), cancels: map[string]bool{}, redrives: map[string]bool{}}
		a.exists, a.paused, a.etag = false, false, ""
		var err error
		switch n := a.rng.IntN(8); {
		case n == 0 && a.cfg.Pace > 1:
			err = a.waitLong(ctx)
		case n < 4:
			err = a.cancel(ctx)
		default:
			err = a.redrive(ctx)
		}
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.histories = append(a.histories, a.h)
		a.mu.Unlock()
	}
	return ctx.Err()
}

// create makes a job without a schedule whose target behaves so.
func (a *actor) create(ctx context.Context, b behaviour, retry job.Retry) error {
	a.edits++
	b.edit = a.edits
	def := a.definition(b, nil)
	def.Retry = retry
	var got client.Stored
	sent, answered, err := a.until(ctx, Operation{What: "create", Request: def}, func(ctx context.Context) (_ any, err error) {
		got, err = a.server.PutJob(ctx, a.h.job, def, client.Condition{})
		return got, err
	})
	if err != nil {
		return a.unexpected(ctx, "create", err)
	}
	a.fires = nil
	a.changed("create", got, sent, answered)
	return nil
}

// request asks for a run under a key, until it is answered.
func (a *actor) request(ctx context.Context, delay schedule.Duration) (string, error) {
	one := ask{number: a.number()}
	one.key = fmt.Sprintf("%s-%d", a.h.job, one.number)
	t := trigger(one.number)
	t.Delay = &delay
	var r run
	_, _, err := a.until(ctx, Operation{What: "trigger", Key: one.key, Request: t}, func(ctx context.Context) (_ any, err error) {
		r, err = a.server.Trigger(ctx, a.h.job, t, one.key)
		return r, err
	})
	if err != nil {
		return "", a.unexpected(ctx, "trigger", err)
	}
	one.ids = []string{r.ID}
	a.h.asks = append(a.h.asks, one)
	return r.ID, nil
}

func (a *actor) waitLong(ctx context.Context) error {
	if err := a.create(ctx, behaviour{fails: 1, later: LongWait}, patient); err != nil {
		return err
	}
	id, err := a.request(ctx, 0)
	a.accept(id)
	return err
}

// cancel takes back a run that waits or runs. Whether it came in time, the run tells.
func (a *actor) cancel(ctx context.Context) error {
	slow := time.Duration(a.rng.IntN(300)) * time.Millisecond
	if err := a.create(ctx, behaviour{slow: slow}, patient); err != nil {
		return err
	}
	delay := schedule.Duration(0)
	if a.rng.IntN(2) == 0 {
		delay = a.paced(time.Duration(1+a.rng.IntN(9)) * time.Second)
	}
	id, err := a.request(ctx, delay)
	if err != nil {
		return err
	}
	a.accept(id)
	a.h.cancels[id] = true
	a.pause(ctx, slow/2)
	_, _, err = a.until(ctx, Operation{What: "cancel", Run: id}, func(ctx context.Context) (any, error) {
		return a.server.Cancel(ctx, id, "load")
	})
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return nil // it has ended
	}
	return a.unexpectedIf(ctx, "cancel", err)
}

// redrive has a run fail until it is dead, and opens it again, until it has succeeded.
func (a *actor) redrive(ctx context.Context) error {
	retry := job.Retry{MaxAttempts: 2, Initial: schedule.Duration(20 * time.Millisecond), Max: schedule.Duration(50 * time.Millisecond)}
	if err := a.create(ctx, behaviour{fails: 3}, retry); err != nil {
		return err
	}
	id, err := a.request(ctx, 0)
	if err != nil {
		return err
	}
	a.h.redrives[id] = true
	for {
		var r run
		_, _, err := a.until(ctx, Operation{What: "read", Run: id}, func(ctx context.Context) (_ any, err error) {
			r, err = a.server.Run(ctx, id)
			return r, err
		})
		switch {
		case err != nil:
			return a.unexpected(ctx, "read", err)
		case r.State == "succeeded":
			return nil
		case r.State == "dead":
			_, _, err = a.until(ctx, Operation{What: "redrive", Run: id}, func(ctx context.Context) (any, error) {
				return a.server.Redrive(ctx, wire.Redrive{Runs: []string{id}})
			})
			if err != nil {
				return a.unexpected(ctx, "redrive", err)
			}
		case !r.EndedAt.IsZero():
			return nil // the judge sees it
		}
		if !a.pause(ctx, 100*time.Millisecond) {
			a.h.redrives[id] = false // it may need longer than anybody wants to wait here
			return ctx.Err()
		}
	}
}

func (a *actor) unexpectedIf(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	return a.unexpected(ctx, what, err)
}
