package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type stepList struct {
	runPath
	widePage
	Path   string   `query:"path" minLength:"1" maxLength:"649" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"only the step of this path, with its result"`
	States []string `query:"state" enum:"pending,scheduled,queued,running,retrying,suspended,succeeded,failed,cancelled,skipped,dead,unknown,upstream_failed" minItems:"1" maxItems:"13" doc:"any of these, more than once or with commas; instead of path"`
	Under  string   `query:"under" minLength:"1" maxLength:"649" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"only steps in the scope of this path, and in scopes in it; instead of path"`
}

// among gives the steps that are listed.
func (p *stepList) among(g control.Graph) ([]control.Step, error) {
	within := flow.None
	if p.Under != "" {
		n, ok := g.Workflow.Node(p.Under)
		if !ok {
			return nil, noSuchStep(g.Run.ID, p.Under)
		}
		if n.Kind != flow.KindScope {
			return nil, invalid.Field("under", p.Under, "the path of a scope; that step is a "+n.Kind.String())
		}
		within = n.Index
	}
	return slices.DeleteFunc(slices.Clone(g.Steps), func(s control.Step) bool {
		return within != flow.None && !g.Workflow.Within(s.Node.Index, within) || len(p.States) > 0 && !slices.Contains(p.States, string(s.State))
	}), nil
}

func (a *api) steps() {
	register(a, operation{id: "list-run-steps", method: http.MethodGet, path: "/v1/runs/{run}/steps", tag: "runs", tagged: true, scope: access.Read,
		summary: "List the steps of a workflow's run, by state and scope, or show one with its result, or why it does not go on",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeStepNotFound}}, a.listRunSteps)
	register(a, operation{id: "get-run-graph", method: http.MethodGet, path: "/v1/runs/{run}/graph", tag: "runs", tagged: true, scope: access.Read,
		summary: "Show the workflow of a run as the run has kept it, and where each step of it stands",
		codes:   []control.Code{control.CodeRunNotFound, control.CodeStepNotFound}}, a.getRunGraph)
}

func (a *api) graphOf(ctx context.Context, tenant string, p runPath) (control.Graph, error) {
	id, err := p.id()
	if err != nil {
		return control.Graph{}, err
	}
	return a.Control.Graph(ctx, tenant, id)
}

func (a *api) listRunSteps(ctx context.Context, p *stepList, in input[noBody]) (*answer[wire.StepPage], error) {
	g, err := a.graphOf(ctx, in.tenant, p.runPath)
	if err != nil {
		return nil, err
	}
	if p.Path != "" {
		for name, given := range map[string]bool{"state": len(p.States) > 0, "under": p.Under != ""} {
			if given {
				return nil, invalid.Field(name, "a path, too", "path, or "+name)
			}
		}
		n, ok := g.Workflow.Node(p.Path)
		if !ok {
			return nil, noSuchStep(g.Run.ID, p.Path)
		}
		one := g.Steps[n.Index]
		shown := stepForm(g, one)
		given, gone, err := a.Control.Given(ctx, g, one)
		if err != nil {
			return nil, err
		}
		result, err := a.resultForm(ctx, given)
		if err != nil {
			return nil, err
		}
		shown.Result, shown.ResultType, shown.ResultSize = result.shown, result.as, result.size
		shown.Reason = withReason(withReason(shown.Reason, gone), result.gone)
		shown.Waiting = a.stepWaiting(ctx, g, one)
		return &answer[wire.StepPage]{wire.StepPage{Items: []wire.Step{shown}}}, nil
	}
	steps, err := p.among(g)
	if err != nil {
		return nil, err
	}
	shown := make([]wire.Step, len(steps))
	place := map[string]string{}
	for i, one := range steps {
		shown[i] = stepForm(g, one)
		place[one.Node.Path] = fmt.Sprintf("%04d", one.Node.Index)
	}
	items, next, err := part(a, p.widePage, shown, func(s wire.Step) []string { return []string{place[s.Path]} })
	if err != nil {
		return nil, err
	}
	return &answer[wire.StepPage]{wire.StepPage{Items: items, Next: next}}, nil
}

// stepNamed takes RUN/PATH apart, as targets, logs and traces name a step.
func stepNamed(text string) (of, path string, ok bool) {
	of, path, ok = strings.Cut(text, "/")
	return of, path, ok && compiled(runIDPattern).MatchString(of) && compiled(stepPathPattern).MatchString(path)
}

// stepRequests says how a step is asked for.
func stepRequests(of, path string) string {
	run := "GET /v1/runs/" + of
	query := invalid.Cut(url.QueryEscape(path))
	return "A step of it is asked for with " + run + "/steps?path=" + query + ", and its log with " + run + "/logs?step=" + query + "."
}

func noSuchStep(id run.ID, path string) error {
	return &control.Refusal{Code: control.CodeStepNotFound, Message: "Run " + id.String() + " has no step " + shown(path) + "."}
}

// stepForm leaves the result out, but for whether it was cut.
func stepForm(g control.Graph, s control.Step) wire.Step {
	r := s.Run
	form := wire.Step{Path: s.Node.Path, Kind: s.Node.Kind.String(), State: string(s.State), Attempts: []wire.Attempt{}}
	if s.Node.Task != nil {
		form.Target = s.Node.Task.Target.String()
	}
	form.CaughtBy = caughtBy(g, s)
	switch {
	case s.Caught != nil:
		form.Code = s.Caught.Code
	case s.Node.Fail != nil && s.State == flow.Failed:
		form.Code = s.Node.Fail.Code
	case s.Stopped != "":
		form.Code = s.Code
	default:
		form.Code = r.Code()
	}
	form.TimesOutAt = instant(s.Until)
	if r.State == 0 {
		form.Reason = s.Stopped
		return form
	}
	form.Priority, form.Attempt, form.Fence, form.Worker, form.Reason, form.ResultCut = string(r.Priority), r.Attempt, r.Fence, r.Worker, r.Reason, r.Result.Cut
	form.ReleasedAt, form.StartedAt, form.EndedAt = instant(r.Created), instant(r.Started), instant(r.Ended)
	if r.State == run.Retrying {
		form.NextAttemptAt = instant(r.NextAt)
	}
	if r.Suspended() {
		form.WaitsUntil = instant(r.NextAt)
	}
	form.Attempts = attemptForms(r)
	return form
}

// caughtBy is the path of the step that handles the failure of another, "" where none does.
func caughtBy(g control.Graph, s control.Step) string {
	if s.Caught == nil {
		return ""
	}
	return g.Workflow.Nodes[s.Caught.To].Path
}

func (a *api) getRunGraph(ctx context.Context, p *runPath, in input[noBody]) (*answer[wire.RunGraph], error) {
	g, err := a.graphOf(ctx, in.tenant, *p)
	if err != nil {
		return nil, err
	}
	shape := GraphForm(g.Workflow)
	graph := wire.RunGraph{ID: g.Run.ID.String(), State: a.Control.Shown(ctx, g.Run).String(), Timeout: shape.Timeout, Workflow: g.Definition, Steps: make([]wire.GraphStep, len(g.Steps))}
	for i, one := range g.Steps {
		graph.Steps[i] = wire.GraphStep{WorkflowStep: shape.Steps[i], CaughtBy: caughtBy(g, one), State: string(one.State), Attempt: one.Run.Attempt,
			StartedAt: instant(one.Run.Started), EndedAt: instant(one.Run.Ended)}
	}
	return &answer[wire.RunGraph]{graph}, nil
}

// stepStates are where the steps of a workflow's run stand; none for another run, or one that is not bound to a definition yet: to ask for that costs a
// read. What cannot be read is left out, since the run itself was read.
func (a *api) stepStates(ctx context.Context, r run.Run) []wire.StepSummary {
	if r.Generation == 0 || r.State == run.Scheduled {
		return nil
	}
	g, ok, err := a.Control.GraphOf(ctx, r)
	if err != nil {
		a.Log.WarnContext(ctx, "a run is shown without its steps", "run", r.ID.String(), "error", err)
	}
	if !ok || err != nil {
		return nil
	}
	states := make([]wire.StepSummary, len(g.Steps))
	for i, one := range g.Steps {
		states[i] = wire.StepSummary{Path: one.Node.Path, State: string(one.State)}
	}
	return states
}

// taskRun finds a run, or a step of it that has what is asked for, where one is named.
func (a *api) taskRun(ctx context.Context, tenant string, p runPath, step, what string) (run.Run, error) {
	r, err := a.findRun(ctx, tenant, p)
	if err != nil || step == "" {
		return r, err
	}
	if what == "result" {
		return a.stepWithResult(ctx, r, step)
	}
	one, err := a.Control.Step(ctx, tenant, r.ID, step)
	switch {
	case err != nil:
		return run.Run{}, err
	case one.Node.Kind != flow.KindTask:
		return run.Run{}, &control.Refusal{Code: control.CodeStepNotFound,
			Message: "Step " + step + " of run " + r.ID.String() + " is a " + one.Node.Kind.String() + ", which has no " + what + ". Ask for that of a task."}
	case one.Run.State == 0:
		return run.Run{ID: r.ID.At(step), Tenant: tenant}, nil // it has not run
	}
	return one.Run, nil
}

// stepWithResult finds a task of a run, or a scope, with its result.
func (a *api) stepWithResult(ctx context.Context, r run.Run, path string) (run.Run, error) {
	g, err := a.Control.Graph(ctx, r.Tenant, r.ID)
	if err != nil {
		return run.Run{}, err
	}
	n, ok := g.Workflow.Node(path)
	switch {
	case !ok:
		return run.Run{}, noSuchStep(r.ID, path)
	case n.Kind != flow.KindTask && n.Kind != flow.KindScope:
		return run.Run{}, &control.Refusal{Code: control.CodeStepNotFound,
			Message: "Step " + path + " of run " + r.ID.String() + " is a " + n.Kind.String() + ", which has no result. Ask for that of a task, or of a scope."}
	}
	given, gone, err := a.Control.Given(ctx, g, g.Steps[n.Index])
	switch {
	case err != nil:
		return run.Run{}, err
	case gone != "":
		return run.Run{}, &control.Refusal{Code: control.CodeExpression, Message: "Step " + path + " of run " + r.ID.String() + " gives nothing: " + gone}
	case given.State == 0 && given.Result.IsZero():
		return run.Run{ID: r.ID.At(path), Tenant: r.Tenant}, nil // it has not run
	}
	return given, nil
}
