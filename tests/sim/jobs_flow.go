package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// drawWorkflows draws how many jobs are workflows, from a stream of its own: a world in which none is stays as it was before there were any.
func (m *Mix) drawWorkflows(r *rand.Rand) {
	if chance(r, 0.35) {
		m.Jobs.Workflows = pick(r, []float64{0.2, 0.5, 0.9})
		m.Jobs.Hurried = pick(r, []float64{0, 0.2, 0.6})
	}
}

// drawCaught draws how many of their steps have failures that others handle, and how many stop for one, from a stream of its own too.
func (m *Mix) drawCaught(r *rand.Rand) {
	if m.Jobs.Workflows > 0 && chance(r, 0.4) {
		m.Jobs.Caught = pick(r, []float64{0.2, 0.5, 0.9})
		m.Jobs.Stopping = pick(r, []float64{0, 0.2, 0.6})
	}
}

// drawWaits draws how many steps of workflows wait, from a stream of its own too.
func (m *Mix) drawWaits(r *rand.Rand) {
	if m.Jobs.Workflows > 0 && chance(r, 0.5) {
		m.Jobs.Waits = pick(r, []float64{0.05, 0.2, 0.4})
	}
}

// branches makes a workflow of a job, which keeps what it has beside its attempts.
func (m *Mix) branches(r *rand.Rand, def job.Definition) job.Definition {
	def.Timeout, def.Retry, def.Guarantee = 0, job.Retry{}, ""
	var w flow.Definition
	if chance(r, m.Jobs.Hurried) { // most of its runs are in time
		w.Timeout = schedule.Duration(rate(r, 1, 2*time.Second, 4*m.Pace.longest()))
	}
	if m.Jobs.Stopping > 0 && chance(r, m.Jobs.Stopping) {
		w.OnFailure = flow.Stop
	}
	for range 10_000 { // until each step can run
		w.Steps = m.drawSteps(r, "s", 1)
		if m.Jobs.Scoped > 0 {
			m.scoped(r, w.Steps)
		}
		if m.Jobs.Stops > 0 {
			m.stops(r, w.Steps)
		}
		text, err := json.Marshal(w)
		if err != nil {
			panic(fmt.Sprintf("a workflow as JSON: %v", err))
		}
		if _, err := flow.CheckTarget(text, def.Queue, flow.AnyQueue); err == nil {
			def.Target = target.Spec{Workflow: text}
			return def
		}
	}
	panic("no workflow that is drawn is taken")
}

// drawSteps draws one graph. Names that are visible are used once.
func (m *Mix) drawSteps(r *rand.Rand, prefix string, depth int) map[string]flow.Step {
	steps := map[string]flow.Step{}
	for i := range 1 + r.IntN(5) {
		s := flow.Step{}
		for p := range i {
			if len(s.Needs) < 4 && chance(r, 0.45) {
				s.Needs = append(s.Needs, fmt.Sprintf("%s%d", prefix, p))
			}
		}
		if len(s.Needs) > 0 && chance(r, 0.6) {
			s.Rule = pick(r, flow.Rules)
		}
		name := fmt.Sprintf("%s%d", prefix, i)
		switch {
		case depth < 3 && chance(r, 0.2):
			s.Steps = m.drawSteps(r, name+"-", depth+1)
			s.AllowFailure = chance(r, 0.2)
		case chance(r, 0.1):
			s.Pass = &flow.Pass{}
		case chance(r, 0.05):
			s.Fail = &flow.Fail{Message: "as it was drawn"}
		case m.Jobs.Waits > 0 && chance(r, m.Jobs.Waits):
			s.Wait = m.drawDelay(r)
		default:
			m.drawTask(r, &s)
		}
		steps[name] = s
	}
	if m.Jobs.Caught > 0 {
		m.drawCatches(r, prefix, steps)
	}
	return steps
}

// drawCatches has steps behind others handle their failures.
func (m *Mix) drawCatches(r *rand.Rand, prefix string, steps map[string]flow.Step) {
	for i := range len(steps) {
		name := fmt.Sprintf("%s%d", prefix, i)
		s := steps[name]
		if s.Handler == nil && s.Steps == nil || !chance(r, m.Jobs.Caught) {
			continue
		}
		for _, codes := range [][]string{{target.KindHandler, target.KindTimeout}, {target.KindPanic, target.CodeCrash}, nil} {
			k := i + 1 + r.IntN(3)
			if k >= len(steps) || chance(r, 0.5) {
				continue
			}
			to := fmt.Sprintf("%s%d", prefix, k)
			handler := steps[to]
			handler.Needs = slices.DeleteFunc(slices.Clone(handler.Needs), func(needed string) bool { return needed == name })
			steps[to] = handler
			s.Catch = append(s.Catch, flow.Catching{Codes: codes, To: to})
			s.AllowFailure = s.AllowFailure && codes != nil
		}
		steps[name] = s
	}
}

// drawDelay draws what a step waits for: some time, or one that is past.
func (m *Mix) drawDelay(r *rand.Rand) *flow.Delay {
	if chance(r, 0.15) {
		return &flow.Delay{Until: "${ .run.nominal_time }"}
	}
	return &flow.Delay{For: schedule.Duration(rate(r, 1, time.Second, 3*m.Pace.longest()))}
}

// waits is how long steps of a workflow may wait, all together, and how late its scopes may be stopped.
func waits(def job.Definition) time.Duration {
	all := time.Duration(0)
	if def.Target.Workflow == nil {
		return all
	}
	w, err := flow.Read(def.Target.Workflow)
	if err != nil {
		panic(fmt.Sprintf("a workflow that was taken: %v", err))
	}
	for _, n := range w.Nodes {
		if n.Kind == flow.KindWait {
			all += n.Wait.For.Std() + timer.MaxCheckGap
		}
		if n.Stops || n.Kind == flow.KindScope && n.Timeout != 0 {
			all += timer.MaxCheckGap
		}
	}
	return all
}

func (m *Mix) drawTask(r *rand.Rand, s *flow.Step) {
	s.Handler = &target.Handler{Name: pick(r, Handlers)}
	s.AllowFailure = chance(r, 0.15)
	w := m.drawWork(r)
	s.Timeout = w.timeout(r)
	if chance(r, 0.5) { // else it does what its run brings
		s.Input = w.payload(pick(r, []int{0, 0, 200}))
	}
	if chance(r, m.Jobs.AtMostOnce) {
		s.Guarantee = job.AtMostOnce
	} else {
		retry := m.drawRetry(r)
		s.Retry = &retry
	}
	if chance(r, 0.2) {
		s.Queue = pick(r, m.Pools)
	}
	if chance(r, 0.2) {
		s.Priority = pick(r, queue.Priorities)
	}
}

// tasks are the definitions of all that a job's runs call: of a workflow its tasks, else the job itself.
func tasks(def job.Definition) []job.Definition {
	if def.Target.Workflow == nil {
		return []job.Definition{def}
	}
	w, err := flow.Read(def.Target.Workflow)
	if err != nil {
		panic(fmt.Sprintf("a workflow that was taken: %v", err))
	}
	var all []job.Definition
	for _, n := range w.Nodes {
		if n.Kind == flow.KindTask {
			all = append(all, job.Definition{Timeout: n.Task.Timeout, Retry: n.Task.Retry, Guarantee: n.Task.Guarantee})
		}
	}
	return all
}
