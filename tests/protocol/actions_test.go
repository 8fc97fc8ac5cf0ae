package protocol_test

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
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

// answer notes that an edit was answered.
func (w *world) answer(j job.Job, err error) error {
	if err == nil && j.Generation != 0 {
		w.mu.Lock()
		w.edits = append(w.edits, edit{tenant: j.Tenant, job: j.Name, generation: j.Generation, at: j.Updated})
		w.mu.Unlock()
	}
	return err
}

func (h *host) put(tenant, name string, def job.Definition) error {
	j, _, err := h.control.Put(context.Background(), tenant, name, def, control.Match{})
	return h.answer(j, err)
}

func (h *host) pause(tenant, name string) error {
	j, err := h.control.Pause(context.Background(), tenant, name, "")
	return h.answer(j, err)
}

func (h *host) resume(tenant, name string) error {
	j, err := h.control.Resume(context.Background(), tenant, name)
	return h.answer(j, err)
}

func (h *host) delete(tenant, name string) error {
	err := h.control.Delete(context.Background(), tenant, name, control.Match{})
	if err != nil {
		return err
	}
	return h.answer(h.job(tenant, name), nil)
}

func (h *host) trigger(tenant, name string, delay time.Duration) error {
	_, _, err := h.control.Trigger(context.Background(), tenant, name, control.Request{Delay: delay})
	return err
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
	w.advance(4*time.Minute, 20*time.Second, "calm")
	if wrong = append(w.check(upTo), w.checkListed()...); len(wrong) > 0 {
		w.advance(17*time.Minute, time.Minute, "calm")
		wrong = append(w.check(upTo), w.checkListed()...)
	}
	return wrong
}
