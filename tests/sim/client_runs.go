package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// order is a request for a run.
type order struct{ wire.Trigger }

// body tells whether two are the same.
func (o order) body() string {
	text, err := json.Marshal(o.Trigger)
	if err != nil {
		panic(fmt.Sprintf("a trigger as JSON: %v", err))
	}
	return string(text)
}

// drawOrder gives a request for a run: now, at a time or after a delay; with a payload or the job's own.
func (u *user) drawOrder(op operation) order {
	var o order
	ahead := time.Duration(u.Rand.Float64() * u.Rand.Float64() * float64(u.Mix.ahead())).Truncate(time.Millisecond)
	switch op {
	case opTriggerAt:
		at := u.Now().Add(ahead - 10*time.Second).Truncate(time.Millisecond) // some of them are over
		o.At = &at
	case opTriggerDelay:
		o.Delay = new(schedule.Duration(max(ahead, time.Millisecond)))
	case opTriggerKey, opTwice, opRunBatch:
		if chance(u.Rand, 0.5) {
			o.Delay = new(schedule.Duration(max(ahead, time.Millisecond)))
		}
	}
	if chance(u.Rand, 0.5) {
		w := u.Mix.drawWork(u.Rand)
		w.Of = u.Tenant
		o.Payload = w.payload(pick(u.Rand, []int{0, 0, 1000, 9000, 50_000}))
	}
	if chance(u.Rand, u.Mix.Jobs.Requested) {
		o.On = &wire.RunCallbacks{}
		for o.On.Succeeded == nil && o.On.Failed == nil {
			if chance(u.Rand, 0.6) {
				o.On.Succeeded = &wire.Callee{Job: u.Mix.drawCallee(u.Rand).Job}
			}
			if chance(u.Rand, 0.6) {
				o.On.Failed = &wire.Callee{Job: u.Mix.drawCallee(u.Rand).Job}
			}
		}
	}
	o.IgnorePause = chance(u.ignoring, u.Mix.Jobs.IgnorePause)
	if chance(u.bringing, u.Mix.Jobs.Own) {
		o.Overlap.Policy = pick(u.bringing, []job.OverlapPolicy{job.OverlapAllow, job.OverlapSkip, job.OverlapQueue, job.OverlapQueueOne, job.OverlapQueueLatest, job.OverlapCancel, job.OverlapReplace, job.OverlapStrict})
	}
	return o
}

// order asks for runs.
func (u *user) order(ctx context.Context, op operation) {
	o := u.drawOrder(op)
	switch op {
	case opTrigger, opTriggerAt, opTriggerDelay:
		u.trigger(ctx, keyed{u.name(), "", o})
	case opTriggerKey:
		u.trigger(ctx, keyed{u.name(), u.key(), o})
	case opRepeat:
		if len(u.keys) > 0 {
			u.trigger(ctx, pick(u.Rand, u.keys))
		}
	case opReuse:
		if len(u.keys) > 0 {
			u.trigger(ctx, keyed{u.name(), pick(u.Rand, u.keys).key, o})
		}
	case opTwice:
		k := keyed{u.name(), u.key(), o}
		u.fork(ctx, "twice", func(ctx context.Context, twin *user) { twin.trigger(ctx, k) })
		u.trigger(ctx, k)
	default:
		u.orderMany(ctx)
	}
}

func (u *user) trigger(ctx context.Context, k keyed) {
	q := u.asked(k)
	sent := k.key
	if sent == "" {
		sent = u.key() // as lib/client does; here, so that a user who persists asks for one run
	} else {
		u.keys = remember(u.keys, k)
	}
	a := u.ask(ctx, q, func(ctx context.Context) oracle.Answer {
		return u.ofRun(http.StatusAccepted, func() (wire.Run, error) { return u.server.Trigger(ctx, k.job, k.order.Trigger, sent) })
	})
	// A workflow is cancelled in the middle, which hardly happens to one that is chosen among many.
	if u.Mix.Jobs.Workflows > 0 && a.Run != nil && u.Weights[opCancel] > 0 && chance(u.Rand, 0.3) &&
		u.Sleep(ctx, around(u.Rand, 3*time.Second)) == nil {
		u.change(ctx, opCancel, a.Run.ID)
	}
}

func (u *user) asked(k keyed) oracle.Request {
	q := oracle.Request{Op: oracle.Trigger, Job: k.job, Key: k.key, Body: k.job + " " + k.order.body(), Given: k.order.Payload, Ignore: k.order.IgnorePause, Own: string(k.order.Overlap.Policy)}
	if on := k.order.On; on != nil {
		if on.Succeeded != nil {
			q.Calls.Succeeded = on.Succeeded.Job
		}
		if on.Failed != nil {
			q.Calls.Failed = on.Failed.Job
		}
	}
	if k.order.At != nil {
		q.Due = *k.order.At
	}
	return q
}

// ofRun is the answer to a request that gives a run.
func (u *user) ofRun(status int, send func() (wire.Run, error)) oracle.Answer {
	got, err := send()
	a := oracle.AnswerOf(u.Now(), status, err)
	if err == nil {
		a.Run = &got
		u.runs = remember(u.runs, got.ID)
	}
	return a
}

func (u *user) orderMany(ctx context.Context) {
	var batch []wire.JobTrigger
	var asked []oracle.Request
	for range 2 + u.Rand.IntN(12) {
		k := keyed{u.name(), u.key(), u.drawOrder(opRunBatch)}
		if chance(u.Rand, 0.2) && len(u.keys) > 0 {
			k = pick(u.Rand, u.keys)
		}
		u.keys = remember(u.keys, k)
		batch = append(batch, wire.JobTrigger{Job: k.job, IdempotencyKey: k.key, Trigger: k.order.Trigger})
		asked = append(asked, u.asked(k))
	}
	u.askAll(ctx, asked, true, func(ctx context.Context) ([]oracle.Answer, error) {
		verdicts, err := u.server.TriggerMany(ctx, batch)
		return u.parts(verdicts), err
	})
}

func (u *user) parts(verdicts []wire.RunVerdict) []oracle.Answer {
	var answers []oracle.Answer
	for _, v := range verdicts {
		a := part(u.Now(), v.Status, v.Problem)
		if v.Problem == nil {
			a.Run = &wire.Run{ID: v.ID, State: v.State}
			u.runs = remember(u.runs, v.ID)
		}
		answers = append(answers, a)
	}
	return answers
}

// change cancels a run or opens it again.
func (u *user) change(ctx context.Context, op operation, id string) {
	q := oracle.Request{Op: oracle.Retry, Run: id, Force: op == opForce}
	if op == opCancel {
		q.Op = oracle.Cancel
	}
	u.ask(ctx, q, func(ctx context.Context) oracle.Answer {
		return u.ofRun(http.StatusOK, func() (wire.Run, error) {
			if op == opCancel {
				return u.server.Cancel(ctx, id, "a client's wish")
			}
			return u.server.Retry(ctx, id, wire.RetryRequest{Force: q.Force})
		})
	})
}

func (u *user) changeMany(ctx context.Context, op operation) {
	ids := shuffled(u.Rand, distinct(u.runs), 1+u.Rand.IntN(5))
	if len(ids) == 0 {
		return
	}
	var asked []oracle.Request
	force := chance(u.Rand, 0.3)
	for _, id := range ids {
		q := oracle.Request{Op: oracle.Retry, Run: id, Force: force}
		if op == opCancelMany {
			q.Op, q.Force = oracle.Cancel, false
		}
		asked = append(asked, q)
	}
	u.askAll(ctx, asked, false, func(ctx context.Context) ([]oracle.Answer, error) {
		var done wire.BulkVerdicts
		var err error
		if op == opCancelMany {
			done, err = u.server.CancelMany(ctx, wire.CancelRuns{Runs: ids})
		} else {
			done, err = u.server.RetryMany(ctx, wire.RetryRuns{Runs: ids, Force: force, PerSecond: 100})
		}
		return u.parts(done.Items), err
	})
}

// redrive opens dead letters again: some that a listing gave, or all of a job.
func (u *user) redrive(ctx context.Context, all bool) {
	q := oracle.Request{Op: oracle.Redrive}
	r := wire.Redrive{PerSecond: 50}
	if all {
		q.Job = u.name()
		r.Matching = &wire.DeadFilter{Job: q.Job}
	} else {
		for _, letter := range shuffled(u.Rand, u.deadLetters(ctx).Letters, 3) {
			q.Runs = append(q.Runs, letter.ID)
		}
		if r.Runs = q.Runs; len(r.Runs) == 0 {
			return
		}
	}
	u.ask(ctx, q, func(ctx context.Context) oracle.Answer {
		done, err := u.server.Redrive(ctx, r)
		a := oracle.AnswerOf(u.Now(), http.StatusOK, err)
		for _, v := range done.Items {
			if v.Status < 300 {
				a.Reopened = append(a.Reopened, v.ID)
			}
			a.Unknown = a.Unknown || v.Status >= http.StatusInternalServerError
		}
		return a
	})
}

func distinct(ids []string) []string {
	var some []string
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			some = append(some, id)
		}
	}
	return some
}
