package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/lease"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// definition is a job that fires by a schedule, nil for one on demand. No two edits of one number are the same.
func definition(spec *schedule.Spec, number int) job.Definition {
	return job.Definition{Schedule: spec, Target: target.Spec{Handler: &target.Handler{Name: "note"}}, Payload: fmt.Appendf(nil, `{"edit":%d}`, number)}
}

func jobMode(mode string) job.CatchUpMode { return job.CatchUpMode(mode) }

func every(d time.Duration) *schedule.Spec { return &schedule.Spec{Every: schedule.Duration(d)} }

// until ends a schedule, so that a calm costs little.
func until(d time.Duration, spec *schedule.Spec) *schedule.Spec {
	end := base.Add(d)
	spec.End = &end
	return spec
}

// request does what a client asks for, and tells the judge of it and of its answer.
func (w *world) request(q oracle.Request, do func(*oracle.Answer) error) error {
	q.At = w.clock()
	var n int
	w.told(func(j *oracle.Judge) { n = j.Asked(q) })
	a := oracle.Answer{Status: http.StatusOK}
	err := do(&a)
	var refused *control.Refusal
	switch {
	case errors.As(err, &refused):
		a = oracle.Answer{Status: http.StatusConflict, Code: string(refused.Code), RetryAfter: refused.RetryAfter}
	case err != nil:
		a = oracle.Answer{Unknown: true}
	}
	a.At = w.clock()
	w.told(func(j *oracle.Judge) { j.Answered(n, a) })
	return err
}

// ofJob is an answer that shows a job.
func ofJob(a *oracle.Answer, j job.Job, err error) error {
	a.Job = &wire.Job{Name: j.Name, Definition: j.Def, Status: &wire.JobStatus{Generation: j.Generation}}
	return err
}

func (h *host) put(tenant, name string, def job.Definition) error {
	return h.world.request(oracle.Request{Op: oracle.PutJob, Tenant: tenant, Job: name, Def: &def}, func(a *oracle.Answer) error {
		j, _, err := h.control.Put(context.Background(), tenant, name, def, control.Match{})
		return ofJob(a, j, err)
	})
}

func (h *host) pause(tenant, name string) error {
	return h.world.request(oracle.Request{Op: oracle.PauseJob, Tenant: tenant, Job: name}, func(a *oracle.Answer) error {
		j, err := h.control.Pause(context.Background(), tenant, name, "", control.Match{})
		return ofJob(a, j, err)
	})
}

func (h *host) resume(tenant, name string) error {
	return h.world.request(oracle.Request{Op: oracle.ResumeJob, Tenant: tenant, Job: name}, func(a *oracle.Answer) error {
		j, err := h.control.Resume(context.Background(), tenant, name, control.Match{})
		return ofJob(a, j, err)
	})
}

func (h *host) delete(tenant, name string) error {
	return h.world.request(oracle.Request{Op: oracle.DeleteJob, Tenant: tenant, Job: name}, func(*oracle.Answer) error {
		return h.control.Delete(context.Background(), tenant, name, control.Match{})
	})
}

func (h *host) retry(tenant string, id run.ID) error {
	return h.world.request(oracle.Request{Op: oracle.Retry, Tenant: tenant, Job: id.Job, Run: id.String()}, func(a *oracle.Answer) error {
		r, err := h.control.Retry(context.Background(), tenant, id, false, time.Time{})
		a.Run = ofRun(r)
		return err
	})
}

func (h *host) cancel(tenant string, id run.ID) error {
	return h.world.request(oracle.Request{Op: oracle.Cancel, Tenant: tenant, Job: id.Job, Run: id.String()}, func(a *oracle.Answer) error {
		r, err := h.control.Cancel(context.Background(), tenant, id, "no longer needed")
		a.Run = ofRun(r)
		return err
	})
}

// renew writes the run as its attempt's heartbeat does.
func (h *host) renew(tenant string, id run.ID) error {
	r, err := h.control.Run(context.Background(), tenant, id)
	if err != nil {
		return err
	}
	now, err := h.dispatch.Clock()
	if err != nil {
		return err
	}
	_, err = h.dispatch.PutRun(context.Background(), r.Extend(now, h.dispatch.Lease), job.Callbacks{}, now)
	return err
}

// readLog reads the log of a run that is under way in another process, as far as it has come. How the run stands is left as it is.
func (h *host) readLog(tenant string, id run.ID) error {
	r, err := h.control.Run(context.Background(), tenant, id)
	if err == nil {
		lease.NewLogReader(h.dispatch, h.blobs, slog.New(slog.DiscardHandler)).LiveLog(context.Background(), r)
	}
	return err
}

// ofRun is an answer that shows a run.
func ofRun(r run.Run) *wire.Run {
	shown := &wire.Run{ID: r.ID.String(), Job: r.ID.Job, State: r.State.String(), Generation: r.Generation, Attempt: r.Attempt, Fence: r.Fence}
	if r.Ended != 0 {
		shown.EndedAt = time.UnixMilli(r.Ended)
	}
	return shown
}

func (h *host) trigger(tenant, name string, delay time.Duration) error {
	_, _, err := h.order(tenant, name, control.Request{Delay: new(delay)})
	return err
}

// triggerPaused asks for a run that starts although its job is paused.
func (h *host) triggerPaused(tenant, name string, delay time.Duration) error {
	_, _, err := h.order(tenant, name, control.Request{Delay: new(delay), IgnorePause: true})
	return err
}

func (h *host) order(tenant, name string, req control.Request) (r run.Run, repeated bool, err error) {
	var delay time.Duration
	if req.Delay != nil {
		delay = *req.Delay
	}
	q := oracle.Request{Op: oracle.Trigger, Tenant: tenant, Job: name, Key: req.Key, Body: fmt.Sprint(name, delay, string(req.Payload), req.IgnorePause, req.Overlap.Policy, req.Callees), Ignore: req.IgnorePause, Own: string(req.Overlap.Policy), Calls: req.Callees}
	err = h.world.request(q, func(a *oracle.Answer) error {
		r, repeated, err = h.control.Trigger(context.Background(), tenant, name, req)
		a.Run = ofRun(r)
		return err
	})
	return r, repeated, err
}

func (h *host) tick() error {
	_, err := h.ticker.Tick(context.Background())
	return err
}

// advance moves the true time on, a step at a time; at each, a host ticks and the worker works.
func (w *world) advance(d, step time.Duration, host string) {
	for end := w.elapsed + d; w.elapsed < end; {
		w.elapsed += min(step, end-w.elapsed)
		w.must(w.host(host).tick())
		w.work()
	}
}

// settle lets everything come to its end, within the bounded time after which every promise must be kept, and gives what is
// wrong by then. The first sweep looks at a minute two minutes after its end; regular checks are at most 16 minutes apart.
func (w *world) settle() (wrong []string) {
	w.elapsed = w.elapsed.Truncate(time.Second)
	upTo := w.now()
	w.advance(6*time.Second, 2*time.Second, "calm")
	w.paced()
	w.advance(4*time.Minute, 20*time.Second, "calm")
	w.paced()
	if wrong = append(w.check(upTo), w.checkListed()...); len(wrong) > 0 {
		w.advance(17*time.Minute, time.Minute, "calm")
		w.paced()
		wrong = append(w.check(upTo), w.checkListed()...)
	}
	return wrong
}

// paced lets what makes up for missed fires have its places: they lapse where ticks are further apart than they look ahead.
func (w *world) paced() {
	for waited := 0; w.waiting() && waited < 120; waited++ {
		w.advance(time.Second, time.Second, "calm")
	}
}
