package sim

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

func (u *user) put(ctx context.Context, name string, def job.Definition, only client.Condition) {
	def.Payload = owned(def.Payload, u.Tenant)
	q := oracle.Request{Op: oracle.PutJob, Job: name, Def: &def, Match: only.ETag, Absent: only.Absent}
	u.ask(ctx, q, func(ctx context.Context) oracle.Answer {
		return u.ofJob(name, func() (client.Stored, error) { return u.server.PutJob(ctx, name, wire.Job{Definition: def}, only) })
	})
}

// ofJob is the answer to a request that gives a job.
func (u *user) ofJob(name string, send func() (client.Stored, error)) oracle.Answer {
	got, err := send()
	status := http.StatusOK
	if got.Created {
		status = http.StatusCreated
	}
	a := oracle.AnswerOf(u.Now(), status, err)
	if err == nil {
		a.Job = &got.Job
		u.etags = remember(u.etags, tagged{name, got.ETag})
	}
	return a
}

// edit reads a job, changes a part of it and writes it back.
func (u *user) edit(ctx context.Context, name string, guarded bool) {
	a := u.getJob(ctx, name)
	if a.Job == nil {
		return
	}
	def := u.changed(a.Job.Definition)
	only := client.Condition{}
	if guarded {
		only = client.Unchanged(*a.Job)
	}
	if u.Sleep(ctx, time.Duration(u.Rand.ExpFloat64()*float64(time.Second))) == nil { // others may come in between
		u.put(ctx, name, def, only)
	}
}

// changed gives a definition of which one thing or two are others.
func (u *user) changed(def job.Definition) job.Definition {
	fresh := u.Mix.drawJob(u.Rand, u.Now())
	for range 1 + u.Rand.IntN(2) {
		switch u.Rand.IntN(9) {
		case 0, 1:
			def.Schedule = fresh.Schedule
		case 2:
			def.Target = target.Spec{Handler: &target.Handler{Name: pick(u.Rand, Handlers)}}
		case 3:
			def.Guarantee, def.Retry = fresh.Guarantee, fresh.Retry
		case 4:
			def.Priority = pick(u.Rand, queue.Priorities)
		case 5:
			def.Paused = !def.Paused
		case 6:
			def.Queue = fresh.Queue
		case 7:
			def.CatchUp, def.Labels = fresh.CatchUp, fresh.Labels
		default:
			def.Payload, def.Timeout = fresh.Payload, fresh.Timeout
		}
	}
	if fresh.Target.Workflow != nil && chance(u.Rand, 0.3) {
		def.Target = fresh.Target
	}
	if def.Target.Workflow != nil { // which has no attempts of its own
		def.Timeout, def.Retry, def.Guarantee = 0, job.Retry{}, ""
	}
	if chance(u.Rand, u.Mix.Jobs.Overlap/2) {
		def.Overlap = fresh.Overlap
	}
	if chance(u.Rand, u.Mix.Jobs.Named/2) {
		def.Gates = fresh.Gates
	}
	if def.Target.Workflow != nil {
		def.Gates = nil
	}
	if chance(u.Rand, u.Mix.Jobs.Callbacks/2) {
		missed := def.On.Missed
		def.On = fresh.On
		def.On.Missed = missed
	}
	if chance(u.Rand, u.Mix.Jobs.Missed/2) {
		def.On.Missed = fresh.On.Missed
	}
	if chance(u.Rand, u.Mix.Jobs.Counted/2) {
		def.MaxRuns = fresh.MaxRuns
	}
	if def.Schedule == nil {
		def.MaxRuns = 0
	}
	if chance(u.Rand, u.Mix.Jobs.Pausing/2) {
		def.PauseAfter = fresh.PauseAfter
	}
	if def.Schedule != nil && def.Schedule.At != nil && def.Schedule.At.Before(u.Now()) {
		at := u.Now().Add(u.Mix.Pace.unit() + 2*time.Second).Truncate(time.Millisecond) // what is over cannot be put again
		def.Schedule = &schedule.Spec{At: &at}
	}
	return def
}

func (u *user) pause(ctx context.Context, name string) {
	u.ask(ctx, oracle.Request{Op: oracle.PauseJob, Job: name}, func(ctx context.Context) oracle.Answer {
		return u.ofJob(name, func() (client.Stored, error) { return u.server.PauseJob(ctx, name, "for a while") })
	})
}

func (u *user) resume(ctx context.Context, name string) {
	u.ask(ctx, oracle.Request{Op: oracle.ResumeJob, Job: name}, func(ctx context.Context) oracle.Answer {
		return u.ofJob(name, func() (client.Stored, error) { return u.server.ResumeJob(ctx, name) })
	})
}

func (u *user) getJob(ctx context.Context, name string) oracle.Answer {
	return u.ask(ctx, oracle.Request{Op: oracle.GetJob, Job: name}, func(ctx context.Context) oracle.Answer {
		return u.ofJob(name, func() (client.Stored, error) { return u.server.Job(ctx, name) })
	})
}

func (u *user) remove(ctx context.Context, name string) {
	only := client.Condition{}
	if old := u.etagOf(name); old != "" && chance(u.Rand, 0.3) {
		only.ETag = old
	}
	u.ask(ctx, oracle.Request{Op: oracle.DeleteJob, Job: name, Match: only.ETag}, func(ctx context.Context) oracle.Answer {
		return oracle.AnswerOf(u.Now(), http.StatusNoContent, u.server.DeleteJob(ctx, name, only))
	})
}

// etagOf is what was read last of a job.
func (u *user) etagOf(name string) string {
	for i := len(u.etags) - 1; i >= 0; i-- {
		if u.etags[i].job == name {
			return u.etags[i].etag
		}
	}
	return ""
}

// putBatch puts several jobs with one request. Each is asked for and answered by itself.
func (u *user) putBatch(ctx context.Context) {
	var jobs []wire.NamedJob
	var asked []oracle.Request
	for _, name := range shuffled(u.Rand, u.names, 2+u.Rand.IntN(4)) {
		def := u.Mix.drawJob(u.Rand, u.Now())
		def.Payload = owned(def.Payload, u.Tenant)
		jobs = append(jobs, wire.NamedJob{Name: name, Definition: def})
		asked = append(asked, oracle.Request{Op: oracle.PutJob, Job: name, Def: &def})
	}
	u.askAll(ctx, asked, true, func(ctx context.Context) ([]oracle.Answer, error) {
		verdicts, err := u.server.PutJobs(ctx, jobs)
		var answers []oracle.Answer
		for _, v := range verdicts {
			answers = append(answers, part(u.Now(), v.Status, v.Problem))
		}
		return answers, err
	})
}

// askAll is ask for the parts of a batch.
func (u *user) askAll(ctx context.Context, asked []oracle.Request, again bool, send func(ctx context.Context) ([]oracle.Answer, error)) {
	numbers := make([]int, len(asked))
	for i, q := range asked {
		q.At, q.Tenant = u.Now(), u.Tenant
		numbers[i] = u.Judge.Asked(q)
	}
	var parts []oracle.Answer
	whole := u.persist(ctx, again, func(ctx context.Context) oracle.Answer {
		answers, err := send(ctx)
		parts = answers
		return oracle.AnswerOf(u.Now(), http.StatusOK, err)
	})
	for i, n := range numbers {
		a := whole
		if whole.Status == http.StatusOK && !whole.Unknown {
			a = oracle.Answer{At: u.Now(), Unknown: true} // one that the time was too short for
			if i < len(parts) {
				a = parts[i]
			}
		}
		a.At = u.Now()
		u.Judge.Answered(n, a)
	}
}

// part is the answer to a part of a batch.
func part(at time.Time, status int, problem *wire.Problem) oracle.Answer {
	a := oracle.Answer{At: at, Status: status, Unknown: status >= http.StatusInternalServerError}
	if problem != nil {
		a.Code, a.RetryAfter = problem.Code, problem.RetryAfter.Std()
	}
	return a
}

// owned writes the tenant into a payload, so that a target sees whose it was given.
func owned(payload json.RawMessage, tenant string) json.RawMessage {
	var w work
	if err := json.Unmarshal(payload, &w); err != nil || w.Of == tenant {
		return payload // a payload that came back from Belfry, or none of ours
	}
	w.Of = tenant
	return w.payload(0)
}
