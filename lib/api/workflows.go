package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

type schemaText struct {
	ContentType string `header:"Content-Type" doc:"application/schema+json"`
	Body        []byte
}

func (a *api) workflows() {
	example := map[string]any{"steps": map[string]any{
		"extract": map[string]any{"http": map[string]any{"url": "https://example.org/extract"}},
		"load":    map[string]any{"needs": []string{"extract"}, "handler": map[string]any{"name": "load"}},
	}}
	accept(a, operation{id: "validate-workflow", method: http.MethodPost, path: "/v1/workflows/validate", tag: "workflows", scope: access.Read,
		summary: "Check a workflow, and show its graph; nothing is stored",
		example: map[string]any{"workflow": example}}, a.validated, validateWorkflow)
	accept(a, operation{id: "simulate-workflow", method: http.MethodPost, path: "/v1/workflows/simulate", tag: "workflows", scope: access.Read,
		summary: "Show how a workflow goes if its steps come out as told; nothing runs",
		example: map[string]any{"workflow": example, "outcomes": map[string]any{"extract": "failed"}},
		codes:   []control.Code{control.CodeBusy, codeSimulationTooLong}}, playOf, a.simulateWorkflow)
	register(a, operation{id: "get-workflow-schema", method: http.MethodGet, path: "/v1/schemas/workflow.json", tag: "workflows", scope: access.Read,
		media:   "application/schema+json",
		summary: "Show the JSON Schema of workflows, for editors"}, getWorkflowSchema)
}

// workflow reads the definition in a request.
func workflow(text json.RawMessage, judge flow.Judge) (*flow.Workflow, error) {
	v, err := flow.Parse(text)
	if err != nil {
		return nil, invalid.Under("workflow", err)
	}
	w, err := flow.Check(v, judge)
	return w, invalid.Under("workflow", err)
}

// validated is the workflow in a request, if a tenant could have it: its queues are there. Whether a worker can run each target now is not asked.
func (a *api) validated(in input[wire.CheckWorkflow]) (*flow.Workflow, error) {
	return workflow(in.body.Workflow, func(def job.Definition) error {
		_, err := def.WithDefaults().Validate(func(queue string) bool { return a.Control.Dispatch.KnowsQueue(in.tenant, queue) })
		return err
	})
}

func validateWorkflow(_ context.Context, _ *struct{}, _ input[wire.CheckWorkflow], w *flow.Workflow) (*answer[wire.WorkflowGraph], error) {
	return &answer[wire.WorkflowGraph]{GraphForm(w)}, nil
}

// GraphForm shows a workflow.
func GraphForm(w *flow.Workflow) wire.WorkflowGraph {
	graph := wire.WorkflowGraph{Timeout: w.Timeout, Steps: make([]wire.WorkflowStep, len(w.Nodes))}
	for i, n := range w.Nodes {
		shown := wire.WorkflowStep{Path: n.Path, Kind: n.Kind.String(), Needs: []string{}, Rule: string(n.Rule), AllowFailure: n.AllowFailure, When: n.When}
		for _, needed := range n.Needs {
			shown.Needs = append(shown.Needs, w.Nodes[needed].Path)
		}
		if n.Task != nil {
			shown.Target = n.Task.Target.String()
		}
		if n.Wait != nil {
			shown.Wait = n.Wait.String()
		}
		if n.Body != nil {
			shown.Timeout = n.Timeout
		}
		if n.Stops {
			shown.OnFailure = string(flow.Stop)
		}
		if n.Switch != flow.None {
			shown.Switch = w.Nodes[n.Switch].Path
		}
		for _, way := range n.Ways {
			shown.Ways = append(shown.Ways, wire.WorkflowWay{When: way.When, To: w.Nodes[way.To].Path})
		}
		for _, c := range n.Catch {
			shown.Catch = append(shown.Catch, wire.WorkflowCatch{Codes: c.Codes, To: w.Nodes[c.To].Path})
		}
		for _, of := range n.Catches {
			shown.Catches = append(shown.Catches, w.Nodes[of].Path)
		}
		graph.Steps[i] = shown
	}
	for _, e := range w.Expressions() {
		graph.Expressions = append(graph.Expressions, wire.WorkflowExpression{Field: e.Field, Text: e.Text, Reads: e.Reads})
	}
	return graph
}

// play is a simulation that is asked for.
type play struct {
	workflow *flow.Workflow
	outcomes flow.Outcomes
}

// playOf reads what a simulation needs. Outcomes can be judged only of a workflow that is right.
func playOf(in input[wire.PlayWorkflow]) (play, error) {
	w, err := workflow(in.body.Workflow, flow.AnyQueue)
	if err != nil {
		return play{}, err
	}
	text, err := json.Marshal(in.body.Outcomes)
	if err != nil {
		return play{}, fmt.Errorf("outcomes: %w", err)
	}
	outcomes, err := w.ReadOutcomes(text)
	return play{w, outcomes}, invalid.Under("outcomes", err)
}

// simulateWorkflow takes the turn of simulations, whatever it evaluates: anybody who may read can ask for it, and no run is to wait for that.
func (a *api) simulateWorkflow(ctx context.Context, _ *struct{}, in input[wire.PlayWorkflow], asked play) (*answer[flow.Played], error) {
	var played flow.Played
	err := a.Control.Dispatch.Simulating(ctx, in.tenant, func(ctx context.Context) (err error) {
		played, err = asked.workflow.Simulate(ctx, asked.outcomes, in.body.Input)
		return err
	})
	switch {
	case errors.Is(err, dispatch.ErrSlow):
		return nil, newProblem(codeSimulationTooLong, "The expressions of the simulation took longer than 5 s, and are likely to again. Let them read or compute less.")
	case errors.Is(err, dispatch.ErrNoRoom):
		return nil, &control.Refusal{Code: control.CodeBusy, Message: "Other simulations of workflows took all of the time that this request had. Nothing was done."}
	case err != nil:
		return nil, err
	}
	return &answer[flow.Played]{played}, nil
}

// workflowSchema is written when it is first asked for.
var workflowSchema = sync.OnceValues(func() ([]byte, error) { return json.Marshal(flow.Schema()) })

func getWorkflowSchema(context.Context, *struct{}, input[noBody]) (*schemaText, error) {
	text, err := workflowSchema()
	if err != nil {
		return nil, fmt.Errorf("schema of workflows: %w", err)
	}
	return &schemaText{ContentType: "application/schema+json", Body: text}, nil
}
