package wire

import (
	"encoding/json"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// CheckWorkflow asks whether a workflow is right.
type CheckWorkflow struct {
	Workflow json.RawMessage `json:"workflow" doc:"the definition, as /v1/schemas/workflow.json describes it"`
}

// PlayWorkflow asks how a workflow goes if its steps come out as told.
type PlayWorkflow struct {
	Workflow json.RawMessage            `json:"workflow" doc:"the definition, as /v1/schemas/workflow.json describes it"`
	Input    json.RawMessage            `json:"input,omitempty" doc:"the payload of the run; nothing of a definition reads it yet"`
	Outcomes map[string]json.RawMessage `json:"outcomes,omitempty" doc:"how tasks and switches come out, by path: a state such as \"failed\", an object of state, takes and fails, or {\"to\": \"NAME\"} for a switch; what is not named succeeds"`
}

// WorkflowGraph is a workflow that was found right.
type WorkflowGraph struct {
	Timeout schedule.Duration `json:"timeout" doc:"longest time of the whole run"`
	Steps   []WorkflowStep    `json:"steps" doc:"each behind those that it needs, and those of a scope behind it"`
}

// WorkflowStep is one step of a graph.
type WorkflowStep struct {
	Path   string        `json:"path" doc:"its name, behind those of the scopes around it and slashes"`
	Kind   string        `json:"kind" enum:"task,scope,pass,fail,switch"`
	Target string        `json:"target,omitempty" doc:"of a task: what it calls, for people"`
	Needs  []string      `json:"needs" doc:"paths of the steps that it waits for, the switch that leads to it among them"`
	Rule   string        `json:"rule" doc:"which ends of these let it run"`
	Switch string        `json:"switch,omitempty" doc:"path of the switch that leads to it"`
	Ways   []WorkflowWay `json:"ways,omitempty" doc:"of a switch, in the order in which they are tried"`
}

// WorkflowWay is one way of a switch.
type WorkflowWay struct {
	When string `json:"when,omitempty" doc:"its condition; none of one that is always taken"`
	To   string `json:"to" doc:"path of the step that it leads to"`
}
