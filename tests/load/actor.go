package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// actor is the only client of its jobs, one job after another.
type actor struct {
	*Load
	rng    *rand.Rand
	name   string
	kind   Kind
	h      history
	etag   string
	edits  int // numbers of definitions
	exists bool
	paused bool
	fires  *schedule.Schedule // of the newest definition, paused or not
	spec   *schedule.Spec
}

// How long a job lives, in changes: Belfry refuses more than 500 within the time that sweeps take.
const changesPerJob = 120

func (a *actor) run(ctx context.Context) error {
	for number := 0; ; number++ {
		a.h = history{job: fmt.Sprintf("%s-%d", a.name, number), kind: a.kind}
		a.exists, a.paused, a.etag = false, false, ""
		for len(a.h.changes) < changesPerJob && a.pause(ctx, time.Duration(a.rng.IntN(250))*time.Millisecond) {
			if err := a.step(ctx); err != nil {
				return err
			}
		}
		ended := !a.pause(ctx, 0)
		if err := a.settle(ctx, ended); err != nil {
			return err
		}
		a.mu.Lock()
		a.histories = append(a.histories, a.h)
		a.mu.Unlock()
		if ended {
			return ctx.Err()
		}
	}
}

// pause waits, and tells whether to go on.
func (a *actor) pause(ctx context.Context, d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-a.enough:
		return false
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

func (a *actor) step(ctx context.Context) error {
	if !a.exists {
		return a.put(ctx, true)
	}
	switch n := a.rng.IntN(100); {
	case n < 15:
		return a.put(ctx, true)
	case n < 25 && a.paused:
		return a.resume(ctx)
	case n < 25:
		return a.hold(ctx)
	case n < 29:
		return a.remove(ctx)
	case n < 45:
		return a.askOnce(ctx)
	default:
		return a.ask(ctx)
	}
}

// settle takes the job's schedule away, and lets what a pause held run.
func (a *actor) settle(ctx context.Context, last bool) error {
	if a.exists && a.paused {
		if err := a.resume(ctx); err != nil {
			return err
		}
	}
	if a.exists && last {
		// What still fires does so for a while, undisturbed.
		wait := time.NewTimer(2 * time.Second)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if a.exists {
		return a.put(ctx, false)
	}
	return nil
}

// until sends a request until it is answered, over as many kills as it takes, and gives when it was first sent and last answered,
// as Unix ms. What the request is stands in o, of which the answer is taken where it is a success.
func (a *actor) until(ctx context.Context, o Operation, send func(context.Context) (any, error)) (sent, answered int64, err error) {
	o.Client, o.Job = a.name, a.h.job
	for try := 0; ; try++ {
		if err := a.cfg.Gate.wait(ctx); err != nil {
			return 0, 0, err
		}
		one := o
		one.Sent = a.cfg.Now()
		if try == 0 {
			sent = one.Sent.UnixMilli()
		}
		got, err := send(ctx)
		one.Answered, one.Err = a.cfg.Now(), err
		answered = one.Answered.UnixMilli()
		var refused *client.Error
		if errors.As(err, &refused) {
			one.Status = refused.Status
		}
		if err == nil {
			one.Answer = got
		}
		a.cfg.Observe(one)
		switch {
		case err == nil:
			a.count(&a.answered)
			return sent, answered, nil
		case refused != nil && refused.Status < 500 && refused.Status != http.StatusTooManyRequests:
			a.count(&a.answered)
			return sent, answered, err
		case refused != nil && refused.Status == http.StatusInternalServerError:
			a.complain("%s of %s was answered with 500: %v", o.What, a.h.job, err)
		case ctx.Err() != nil:
			return sent, answered, ctx.Err()
		}
		a.count(&a.lost)
		wait := time.NewTimer(20 * time.Millisecond) // the gate may not yet know that the server is gone
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
}

func (a *actor) schedule() *schedule.Spec {
	pace := a.cfg.Pace
	switch a.rng.IntN(5) {
	case 0:
		return &schedule.Spec{Cron: fmt.Sprintf("*/%d * * * * *", pace)}
	case 1:
		return &schedule.Spec{Every: a.paced(time.Second), Phase: a.paced(time.Duration(a.rng.IntN(1000)) * time.Millisecond)}
	case 2:
		return &schedule.Spec{Every: a.paced(2 * time.Second)}
	case 3:
		return &schedule.Spec{Cron: fmt.Sprintf("*/%d * * * * *", 3*pace), Timezone: "Europe/Berlin"}
	default:
		at := a.cfg.Now().Add(a.paced(time.Duration(500+a.rng.IntN(3000)) * time.Millisecond).Std()).Truncate(time.Millisecond)
		return &schedule.Spec{At: &at}
	}
}

func (a *actor) paced(d time.Duration) schedule.Duration {
	return schedule.Duration(time.Duration(a.cfg.Pace) * d)
}

// put creates or edits the job; fires says whether it is to have a schedule. Often it is guarded: by If-Match or If-None-Match,
// which must let a repetition pass.
func (a *actor) put(ctx context.Context, fires bool) error {
	a.edits++
	b := behaviour{edit: a.edits}
	if a.rng.IntN(4) == 0 {
		b.slow = time.Duration(20+a.rng.IntN(500)) * time.Millisecond
	}
	if a.rng.IntN(6) == 0 {
		b.fails = 1 + a.rng.IntN(2)
	}
	var spec *schedule.Spec
	var compiled *schedule.Schedule
	if fires && a.rng.IntN(6) > 0 {
		spec = a.schedule()
		var err error
		if compiled, err = spec.Compile(); err != nil {
			return err
		}
	}
	var only client.Condition
	what := "edit"
	switch {
	case !a.exists:
		what = "create"
		only.Absent = a.rng.IntN(2) == 0
	case a.rng.IntN(2) == 0:
		only.ETag = a.etag
	}
	def := a.definition(b, spec)
	var got client.Stored
	sent, answered, err := a.until(ctx, Operation{What: what, Request: def}, func(ctx context.Context) (_ any, err error) {
		got, err = a.server.PutJob(ctx, a.h.job, def, only)
		return got, err
	})
	var refused *client.Error
	if errors.As(err, &refused) && what == "create" && spec != nil && spec.At != nil && refused.Status == http.StatusUnprocessableEntity {
		return nil // its time passed while there was no server
	}
	if err != nil {
		return a.unexpected(ctx, what, err)
	}
	a.exists, a.paused, a.spec, a.fires = true, false, spec, compiled
	a.changed(what, got, sent, answered)
	return nil
}

func (a *actor) unexpected(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%s of %s: %w", what, a.h.job, err)
}

// changed notes a change as it was answered.
func (a *actor) changed(what string, got client.Stored, sent, answered int64) {
	a.etag = got.ETag
	c := change{what: what, edit: a.edits, generation: got.Status.Generation, at: got.Status.UpdatedAt.UnixMilli(), sent: sent, answered: answered}
	if !a.paused {
		c.fires = a.fires
	}
	if c.at < sent-a.cfg.Behind.Milliseconds() || c.at > answered {
		a.complain("P8: %s of %s sent at %d and answered at %d is in force from %d", what, a.h.job, sent, answered, c.at)
	}
	if n := len(a.h.changes); n > 0 {
		before := a.h.changes[n-1].generation
		if before == 0 && n > 1 {
			before = a.h.changes[n-2].generation
		}
		if c.generation <= before {
			a.complain("P8: %s of %s gave generation %d after %d", what, a.h.job, c.generation, before)
		}
	}
	a.h.changes = append(a.h.changes, c)
}

func (a *actor) hold(ctx context.Context) error {
	var got client.Stored
	sent, answered, err := a.until(ctx, Operation{What: "pause"}, func(ctx context.Context) (_ any, err error) {
		got, err = a.server.PauseJob(ctx, a.h.job, "load")
		return got, err
	})
	if err != nil {
		return a.unexpected(ctx, "pause", err)
	}
	a.paused = true
	a.changed("pause", got, sent, answered)
	return nil
}

func (a *actor) resume(ctx context.Context) error {
	var got client.Stored
	sent, answered, err := a.until(ctx, Operation{What: "resume"}, func(ctx context.Context) (_ any, err error) {
		got, err = a.server.ResumeJob(ctx, a.h.job)
		return got, err
	})
	if err != nil {
		return a.unexpected(ctx, "resume", err)
	}
	a.paused = false
	a.changed("resume", got, sent, answered)
	return nil
}

func (a *actor) remove(ctx context.Context) error {
	tries := 0
	sent, answered, err := a.until(ctx, Operation{What: "delete"}, func(ctx context.Context) (any, error) {
		tries++
		err := a.server.DeleteJob(ctx, a.h.job, client.Condition{})
		var refused *client.Error
		if errors.As(err, &refused) && refused.Status == http.StatusNotFound && tries > 1 {
			return nil, nil // an earlier try has done it
		}
		return nil, err
	})
	if err != nil {
		return a.unexpected(ctx, "delete", err)
	}
	a.exists, a.paused, a.etag = false, false, ""
	a.h.changes = append(a.h.changes, change{what: "delete", sent: sent, answered: answered})
	return nil
}

// patient is how what fails while processes are killed is tried again: soon, and often enough.
var patient = job.Retry{MaxAttempts: 10, Initial: schedule.Duration(50 * time.Millisecond), Max: schedule.Duration(time.Second)}

// definition makes a job of the sink's. All missed fires are caught up with: a server that was away for long owes each.
func (a *actor) definition(b behaviour, spec *schedule.Spec) wire.Job {
	def := job.Definition{Schedule: spec, Queue: a.kind.Queue, Guarantee: job.AtLeastOnce, Timeout: schedule.Duration(20 * time.Second),
		CatchUp: job.CatchUp{Mode: job.CatchUpAll}}
	if a.kind.AtMostOnce {
		def.Guarantee = job.AtMostOnce
	} else {
		def.Retry = patient
	}
	at := b.url(a.cfg.Sink.URL)
	switch {
	case a.kind.AWS:
		_, query, _ := strings.Cut(at, "?")
		def.Target = target.Spec{AWS: &target.AWS{ARN: functionPrefix + intoName.Replace(query)}}
	case a.kind.Exec:
		def.Target = target.Spec{Exec: &target.Exec{Argv: []string{a.cfg.Self}, Env: target.Texts(map[string]string{ReportTo: at})}}
	default:
		def.Target = target.Spec{HTTP: &target.HTTP{URL: at}}
	}
	return wire.Job{Definition: def}
}

const functionPrefix = "arn:aws:lambda:eu-central-1:123456789012:function:"

var (
	intoName   = strings.NewReplacer("=", "-", "&", "_")
	intoValues = strings.NewReplacer("-", "=", "_", "&")
)

// Function gives the query that an http target would be called with, of a function that a job of kind AWS names.
func Function(arn string) string { return intoValues.Replace(strings.TrimPrefix(arn, functionPrefix)) }
