package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Step is a step of a workflow's run: a node of its graph, and what is known of it.
type Step struct {
	Node  *flow.Node
	State flow.State
	Run   run.Run // of Version 0 where it was never released, and of a scope that runs, or has

	Caught  *flow.Caught // of one that has failed and whose failure was caught: who handles it
	Stopped string       // of a scope that was stopped, and has not ended by itself: why, for people
	Code    string       // what it has failed of then; "" before
	Until   int64        // of a scope under way that has a timeout: it is stopped then, Unix ms
}

// Graph is the run of a workflow with its steps, in the order of the workflow's nodes.
type Graph struct {
	Run        run.Run
	Workflow   *flow.Workflow
	Definition json.RawMessage // of the workflow
	Steps      []Step

	rows []run.Run      // as they stand
	plan flow.Decisions // what follows from them, with the states of Steps
}

// Graph reads the run of a workflow and all of its steps.
func (s *Service) Graph(ctx context.Context, tenant string, id run.ID) (Graph, error) {
	r, err := s.Run(ctx, tenant, id)
	if err != nil {
		return Graph{}, err
	}
	g, ok, err := s.GraphOf(ctx, r)
	if err == nil && !ok {
		return Graph{}, refuse(CodeStepNotFound, "run %s is not that of a workflow, so it has no steps", id)
	}
	if dispatch.Unreadable(err) {
		return Graph{}, refuse(CodeStepNotFound, "the steps of run %s are not known here. %s", id, Standing{Run: r, Unread: err}.whyUnreadable().Text)
	}
	return g, err
}

// GraphOf reads the steps of a run; false where it is not that of a workflow.
func (s *Service) GraphOf(ctx context.Context, r run.Run) (Graph, bool, error) {
	edition, err := s.editionOf(ctx, r)
	if errors.Is(err, job.ErrNotFound) || err == nil && edition.Def.Target.Workflow == nil {
		return Graph{}, false, nil
	}
	if err != nil {
		return Graph{}, false, err
	}
	w, err := flow.Of(edition)
	if err != nil {
		return Graph{}, false, err
	}
	released := map[string]run.Run{}
	var rows []run.Run
	if r.Started != 0 {
		if rows, err = s.Dispatch.Steps(ctx, r); err != nil {
			return Graph{}, false, err
		}
		for _, row := range rows {
			released[row.ID.Step] = row
		}
	}
	g := Graph{Run: r, Workflow: w, Definition: edition.Def.Target.Workflow, rows: rows}
	g.Steps, g.plan = StandOf(r, w, released)
	return g, true, nil
}

// StandOf tells where the steps of a run stand, by those that were released, by path: by their rows, or as it follows from others. Nothing follows from a
// cancel of the run: what it leaves undecided is never released either, and is cancelled with it, since no step before it failed. So it is in a scope that was stopped.
//
// It gives what follows from them besides, with the states of the steps.
func StandOf(r run.Run, w *flow.Workflow, released map[string]run.Run) ([]Step, flow.Decisions) {
	steps := make([]Step, len(w.Nodes))
	rows := make([]run.Run, len(w.Nodes))
	for i := range w.Nodes {
		rows[i] = released[w.Nodes[i].Path]
		steps[i] = Step{Node: &w.Nodes[i], Run: rows[i]}
	}
	facts := dispatch.FactsOf(w, r, rows)
	for i := range facts {
		if facts[i].State == flow.Cancelled && w.StoppedBy(facts, i) == flow.None {
			facts[i] = flow.Fact{State: flow.Running, To: flow.None}
		}
	}
	plan := w.Plan(facts)
	states := w.Shown(facts, plan)
	for i := range steps {
		step := &steps[i]
		if c, caught := plan.Caught[i]; caught {
			step.Caught = &c
		}
		if step.Node.Kind == flow.KindScope && step.Run.State == run.Succeeded { // which says that it runs, and not how it ends
			step.Run = run.Run{}
		}
		if by, stopped := plan.Stopped[i]; stopped {
			of := by
			if by == flow.None {
				of = i
			}
			step.Stopped, step.Code = whyStopped(w, i, by), w.CodeOf(facts, plan, of)
		} else if facts[i].Stopped && states[i] == flow.Running {
			step.Stopped = whyStopped(w, i, facts[i].By)
		}
		switch step.State = states[i]; {
		case r.Started == 0 && !r.State.Ended(): // nothing has begun, and what needs no call neither
			step.State = flow.Pending
		case r.Started == 0, step.Run.State == run.Cancelled:
			step.State = flow.Cancelled
		case step.State.Ended():
		case r.State.Ended(): // it was never released, or by somebody who did not know of the end, and died: it never starts
			step.State = flow.Cancelled
		case step.Run.State != 0, step.State == flow.Running:
		default:
			step.State = flow.Pending
		}
		if rows[i].Limited() && step.State == flow.Running {
			step.Until = rows[i].NextAt
		}
		states[i] = step.State
	}
	plan.States = states
	return steps, plan
}

// whyStopped says why a scope was stopped.
func whyStopped(w *flow.Workflow, scope, by int) string {
	if by == flow.None {
		return w.Nodes[scope].Overrun()
	}
	return "step " + w.Nodes[by].Path + " has failed, which stopped it"
}

// editionOf is the definition that a run has, or is to have.
func (s *Service) editionOf(ctx context.Context, r run.Run) (*job.Edition, error) {
	if r.Generation != 0 && r.State != run.Scheduled {
		return s.Dispatch.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	}
	j, err := s.Dispatch.Book.Job(ctx, r.Tenant, r.ID.Job)
	if err != nil {
		return nil, err
	}
	if existing(&j) != nil {
		return nil, fmt.Errorf("job %s: %w", r.ID.Job, job.ErrNotFound)
	}
	return s.Dispatch.Book.Newest(j)
}

// Step reads one step of a workflow's run, by its path.
func (s *Service) Step(ctx context.Context, tenant string, id run.ID, path string) (Step, error) {
	g, err := s.Graph(ctx, tenant, id)
	if err != nil {
		return Step{}, err
	}
	if n, ok := g.Workflow.Node(path); ok {
		return g.Steps[n.Index], nil
	}
	return Step{}, refuse(CodeStepNotFound, "run %s has no step %q", id, path)
}

// Given reads the result of a step, which lies in its run, or of a scope is made of those in it. The run is that of the step, with the result. gone says why there
// is none of a scope that has succeeded.
func (s *Service) Given(ctx context.Context, g Graph, step Step) (of run.Run, gone string, err error) {
	of = step.Run
	if step.Node.Kind != flow.KindScope || step.State != flow.Succeeded {
		return of, "", nil
	}
	result, failed, err := s.Dispatch.ScopeResult(ctx, g.Run, step.Node.Path, g.rows, g.plan)
	if err != nil {
		return of, "", fmt.Errorf("make the result of step %s: %w", step.Node.Path, err)
	}
	if failed != nil {
		return of, failed.Error(), nil
	}
	of.ID, of.Tenant, of.Result = g.Run.ID.At(step.Node.Path), g.Run.Tenant, result
	return of, "", nil
}

// stop ends what has not started of a workflow's run that has just been cancelled, and asks what runs to stop. Durable before: that the run is
// cancelled, so nothing that it does not come upon is started either. A crash here leaves it to the run's check; nobody was answered.
func (s *Service) stop(ctx context.Context, head run.Run) (run.Run, error) {
	err := s.Dispatch.Follow(ctx, head.Tenant, head.ID, false)
	if dispatch.Unreadable(err) { // whoever can read it sees to the rest, by its check
		s.Dispatch.TellUnreadable(ctx, head, err)
		return s.Run(ctx, head.Tenant, head.ID)
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("stop the steps of run %s: %w", head.ID, err)
	}
	return s.Run(ctx, head.Tenant, head.ID)
}

// Task gives what is refused of a step of a workflow, as the job that would do the same: joined *invalid.Error.
func (s *Service) Task(tenant string, task job.Definition) error {
	task = task.WithDefaults()
	if _, err := task.Validate(func(queue string) bool { return s.Dispatch.KnowsQueue(tenant, queue) }); err != nil {
		return err
	}
	return s.able(task)
}

// able tells whether the workers of a definition's queue can run it.
func (s *Service) able(def job.Definition) error {
	if longest, over := s.Dispatch.Overlong(def.Queue, def.Timeout.Std()); over {
		return invalid.Field("timeout", def.Timeout.String(),
			fmt.Sprintf("at most %s: the workers of queue %s run nothing longer; another queue may", schedule.Duration(longest), def.Queue))
	}
	if err := s.Can(def.Queue, def.Target); err != nil {
		return &invalid.Error{Field: "target", Got: def.Target.String(), Want: "a target that the workers here can run: " + err.Error()}
	}
	return nil
}
