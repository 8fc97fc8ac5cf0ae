package wire

import (
	"encoding/json"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// CheckWorkflow asks whether a workflow is right.
type CheckWorkflow struct {
	Workflow json.RawMessage `json:"workflow" doc:"the definition, as /v1/schemas/workflow.json describes it"`
}

// PlayWorkflow asks how a workflow goes if its steps come out as told.
type PlayWorkflow struct {
	Workflow json.RawMessage            `json:"workflow" doc:"the definition, as /v1/schemas/workflow.json describes it"`
	Input    json.RawMessage            `json:"input,omitempty" doc:"the payload of the run, for expressions that read it"`
	Outcomes map[string]json.RawMessage `json:"outcomes,omitempty" doc:"how tasks and switches come out, by path: a state such as \"failed\", an object of state, takes, fails, code and result, or {\"to\": \"NAME\"} for a switch; what is not named succeeds"`
}

// WorkflowGraph is a workflow that was found right.
type WorkflowGraph struct {
	Timeout schedule.Duration `json:"timeout" doc:"longest time of the whole run"`
	Steps   []WorkflowStep    `json:"steps" doc:"each behind those that it needs, and those of a scope behind it"`

	Expressions []WorkflowExpression `json:"expressions,omitempty" doc:"in the order of the steps, and those of the output last"`
}

// WorkflowExpression is an expression of a workflow, and what it reads.
type WorkflowExpression struct {
	Field string   `json:"field" doc:"where it stands, such as steps.load.input.id"`
	Text  string   `json:"text"`
	Reads []string `json:"reads" doc:"what it reads, such as .input or .steps.extract.result"`
}

// WorkflowStep is one step of a graph.
type WorkflowStep struct {
	Path   string   `json:"path" doc:"its name, behind those of the scopes around it and slashes"`
	Kind   string   `json:"kind" enum:"task,scope,pass,fail,switch,wait"`
	Target string   `json:"target,omitempty" doc:"of a task: what it calls, for people"`
	Needs  []string `json:"needs" doc:"paths of the steps that it waits for, the switch that leads to it and those whose failures it handles among them"`
	Rule   string   `json:"rule" doc:"which ends of these let it run"`

	AllowFailure bool `json:"allow_failure,omitempty" doc:"its failure counts as a success, for the steps that need it and for the run"`

	Catch   []WorkflowCatch `json:"catch,omitempty" doc:"who handles its failures, in the order in which the clauses are tried"`
	Catches []string        `json:"catches,omitempty" doc:"paths of the steps whose failures it handles: it waits for all of them, and its rule does not judge them"`

	When   string        `json:"when,omitempty" doc:"the expression that is asked once its rule lets it run; false skips it"`
	Switch string        `json:"switch,omitempty" doc:"path of the switch that leads to it"`
	Ways   []WorkflowWay `json:"ways,omitempty" doc:"of a switch, in the order in which they are tried"`
	Wait   string        `json:"wait,omitempty" doc:"of a wait: for how long, or until when, such as for 2h"`

	Timeout   schedule.Duration `json:"timeout,omitempty" doc:"of a scope that has one: how long it may take, from its release"`
	OnFailure string            `json:"on_failure,omitempty" doc:"stop, of a scope that a failure stops which nothing in it handles"`
}

// WorkflowCatch is one clause of a catch.
type WorkflowCatch struct {
	Codes []string `json:"codes,omitempty" doc:"of the failures that it takes; none of one that takes all"`
	To    string   `json:"to" doc:"path of the step that handles them"`
}

// WorkflowWay is one way of a switch.
type WorkflowWay struct {
	When string `json:"when,omitempty" doc:"its condition; none of one that is always taken"`
	To   string `json:"to" doc:"path of the step that it leads to"`
}

// StepSummary is where a step of a workflow's run stands.
type StepSummary struct {
	Path  string `json:"path" doc:"its name, behind those of the scopes around it and slashes"`
	State string `json:"state" enum:"pending,scheduled,queued,running,retrying,suspended,succeeded,failed,cancelled,skipped,dead,unknown,upstream_failed"`
}

// Step is a step of a workflow's run. What was never released has a path, a kind and a state alone.
type Step struct {
	Path          string          `json:"path" doc:"its name, behind those of the scopes around it and slashes"`
	Kind          string          `json:"kind" enum:"task,scope,pass,fail,switch,wait"`
	State         string          `json:"state" enum:"pending,scheduled,queued,running,retrying,suspended,succeeded,failed,cancelled,skipped,dead,unknown,upstream_failed"`
	Target        string          `json:"target,omitempty" doc:"of a task: what it calls, for people"`
	Priority      string          `json:"priority,omitempty"`
	Attempt       int             `json:"attempt" doc:"attempts started so far"`
	Fence         uint64          `json:"fence" doc:"version that the newest attempt started under; it only grows"`
	ReleasedAt    time.Time       `json:"released_at,omitzero" doc:"when its rule let it run"`
	StartedAt     time.Time       `json:"started_at,omitzero" doc:"start of the newest attempt"`
	EndedAt       time.Time       `json:"ended_at,omitzero"`
	NextAttemptAt time.Time       `json:"next_attempt_at,omitzero" doc:"of a retrying step: not before"`
	WaitsUntil    time.Time       `json:"waits_until,omitzero" doc:"of a suspended step: it ends then"`
	TimesOutAt    time.Time       `json:"times_out_at,omitzero" doc:"of a scope under way that has a timeout: it is stopped then"`
	Worker        string          `json:"worker,omitempty" doc:"who runs it"`
	Code          string          `json:"code,omitempty" doc:"of a step that has failed: what of, as catch names it"`
	CaughtBy      string          `json:"caught_by,omitempty" doc:"of a step whose failure was caught: path of the step that handles it"`
	Reason        string          `json:"reason,omitempty" doc:"why it was cancelled or given up, or has no result"`
	Result        json.RawMessage `json:"result,omitempty" doc:"of a step that was asked for by its path: what the target answered, its JSON, or else text"`
	ResultType    string          `json:"result_type,omitempty" doc:"as that of a run"`
	ResultCut     bool            `json:"result_cut,omitempty" doc:"only the beginning of the result was kept"`
	ResultSize    int64           `json:"result_size,omitempty" doc:"as that of a run; GET /v1/runs/{run}/result?step= gives the bytes"`
	Waiting       []Waiting       `json:"waiting,omitempty" doc:"of a step that was asked for by its path, and has not ended: why it does not go on, what has to end first standing first; a few at most"`
	Attempts      []Attempt       `json:"attempts" doc:"the newest few, oldest first"`
}

// StepPage is a page of steps, in the order of the workflow.
type StepPage struct {
	Items []Step `json:"items"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; none behind the last"`
}

// RunGraph is the workflow of a run, and where each step of it stands.
type RunGraph struct {
	ID       string            `json:"id" doc:"names the run"`
	State    string            `json:"state" enum:"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown"`
	Timeout  schedule.Duration `json:"timeout" doc:"longest time of the whole run"`
	Workflow json.RawMessage   `json:"workflow" doc:"its definition, which edits of the job do not change any more"`
	Steps    []GraphStep       `json:"steps" doc:"each behind those that it needs, and those of a scope behind it"`
}

// GraphStep is one step of the graph of a run.
type GraphStep struct {
	WorkflowStep
	CaughtBy  string    `json:"caught_by,omitempty" doc:"of a step whose failure was caught: path of the step that handles it"`
	State     string    `json:"state" enum:"pending,scheduled,queued,running,retrying,suspended,succeeded,failed,cancelled,skipped,dead,unknown,upstream_failed"`
	Attempt   int       `json:"attempt,omitempty" doc:"attempts started so far"`
	StartedAt time.Time `json:"started_at,omitzero" doc:"start of the newest attempt"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}
