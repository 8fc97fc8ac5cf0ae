package api

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A simulation takes one of the server's cores for simulationTime at most. retrySimulation is after how long another client may ask again.
const (
	simulationTime  = 20 * time.Second
	retrySimulation = 5 * time.Second
)

const codeSimulationTooLong control.Code = "simulation_too_long"

// Simulator plays scenarios, within bounds of its own.
type Simulator interface {
	// Check gives what Play refuses of a scenario whose form is right: joined *invalid.Errors.
	Check(wire.Scenario) error
	Play(context.Context, wire.Scenario) (wire.Simulation, error)
}

func (a *api) simulations() {
	var one sync.Mutex
	values := func(in input[wire.Scenario]) error { return a.Simulator.Check(in.body) }
	acceptUnread(a, operation{id: "simulate", method: http.MethodPost, path: "/v1/simulate", tag: "system", scope: access.Read,
		summary: "Play a scenario in virtual time: which runs would start and when; one at a time, and nothing is stored",
		codes:   []control.Code{control.CodeBusy, codeSimulationTooLong}, limit: maxScenario, example: exampleScenario}, values,
		func(ctx context.Context, _ *struct{}, in input[wire.Scenario]) (*answer[wire.Simulation], error) {
			if !one.TryLock() {
				busy := newProblem(control.CodeBusy, "Another simulation is being played. Try again when it is done, or use belfry simulate, which needs no server.")
				busy.RetryAfter = schedule.Duration(retrySimulation)
				return nil, busy
			}
			defer one.Unlock()
			bounded, cancel := context.WithTimeout(ctx, simulationTime)
			defer cancel()
			report, err := a.Simulator.Play(bounded, in.body)
			switch {
			case err != nil && bounded.Err() != nil && ctx.Err() == nil:
				return nil, newProblem(codeSimulationTooLong, "The simulation did not end within "+schedule.Duration(simulationTime).String()+
					" of real time. Let it end sooner, with until, or use belfry simulate, which takes as long as it needs.")
			case err != nil:
				return nil, err
			}
			return &answer[wire.Simulation]{report}, nil
		})
}

var exampleScenario = map[string]any{
	"start": "2026-01-05T00:00:00Z", "until": "3h",
	"jobs": map[string]any{"report": map[string]any{
		"schedule": map[string]any{"cron": "*/10 * * * *"}, "overlap": "skip", "timeout": "1h", "target": map[string]any{"handler": map[string]any{"name": "report"}}}},
	"outcomes": map[string]any{"report": []any{map[string]any{"takes": "25m"}, map[string]any{"takes": "1s"}}},
	"script":   []any{map[string]any{"at": "80m", "do": "down", "for": "20m"}},
}

// listOrChoice stands for wire.ScenarioOutcomes in schemas: it is a list in JSON, or an object that chooses one.
type listOrChoice struct{}

// Schema gives it to the framework.
func (listOrChoice) Schema(registry huma.Registry) *huma.Schema {
	most := mostOutcomes
	return &huma.Schema{
		Extensions:  map[string]any{namedAs: "ScenarioOutcomes"},
		Description: `a list of outcomes, or an object such as {"by": ".payload.customer", "is": {"acme": [{"takes": "1s"}]}}`,
		OneOf: []*huma.Schema{
			{Type: huma.TypeArray, MaxItems: &most, Items: registry.Schema(reflect.TypeFor[wire.ScenarioOutcome](), true, "")},
			registry.Schema(reflect.TypeFor[wire.ScenarioChoice](), true, ""),
		},
	}
}

// jobOrGate stands for wire.ScenarioDefinition in schemas.
type jobOrGate struct{}

// Schema gives it to the framework.
func (jobOrGate) Schema(registry huma.Registry) *huma.Schema {
	return &huma.Schema{
		Extensions: map[string]any{namedAs: "ScenarioDefinition"},
		Title:      `a job, or a gate such as {"limit": 10}, or null to delete a gate`,
		OneOf: []*huma.Schema{
			registry.Schema(reflect.TypeFor[wire.Job](), true, ""),
			registry.Schema(reflect.TypeFor[wire.GateDefinition](), true, ""),
			{Type: "null"},
		},
	}
}

// What a request may hold of a scenario; a file for belfry simulate may hold more.
const (
	maxScenario  = 256 << 10 // bytes: in Go a scenario takes many times its size
	mostOutcomes = 1000      // in a list
	mostBranches = 100
	mostLines    = 1000
	mostNames    = 1000 // jobs, gates, and outcomes
)

// boundScenarios gives the lists of scenarios their bounds.
func boundScenarios(schemas map[string]*huma.Schema, most func(schema, field string, count int)) {
	most("Scenario", "jobs", mostNames)
	most("Scenario", "gates", mostNames)
	most("Scenario", "outcomes", mostNames)
	most("Scenario", "script", mostLines)
	most("ScenarioChoice", "is", mostBranches)
	most("ScenarioChoice", "else", mostOutcomes)
	if choice := schemas["ScenarioChoice"]; choice != nil {
		count := mostOutcomes
		choice.Properties["is"].AdditionalProperties.(*huma.Schema).MaxItems = &count
	}
}

// scenariosToCome adds what scenarios will have to what is told of as not available yet.
func (l later) scenariosToCome(schemas map[string]*huma.Schema) {
	if schemas["Scenario"] == nil { // of an operation that this server does not have
		return
	}
	for schema, fields := range wire.ScenarioFieldsToCome {
		l[schemas[schema]] = fields
	}
	l[schemas["ScenarioLine"].Properties["do"]] = wire.ScenarioActionsToCome
}
