package flow

import (
	"encoding/json"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// The bounds of a definition.
const (
	MaxBytes = 32 << 10 // of a definition as JSON without blanks
	MaxNodes = 300
	MaxDepth = 10 // of scopes in scopes: a step outside of every scope has depth 1

	DefaultTimeout = 7 * 24 * time.Hour // of a workflow's run
	MaxTimeout     = job.MaxUnderWay

	DefaultCode = "failed" // of a fail node
)

// Definition is a workflow as a user writes it. Check makes a Workflow of it.
type Definition struct {
	Timeout   schedule.Duration `json:"timeout,omitempty"`
	OnFailure OnFailure         `json:"on_failure,omitempty"`
	Defaults  *Defaults         `json:"defaults,omitempty"`
	Steps     map[string]Step   `json:"steps"`
	Output    json.RawMessage   `json:"output,omitempty"`
}

// OnFailure says what becomes of the other branches of a graph in which a step failed.
type OnFailure string

// Finish lets them go on. It is the default, and all that is built.
const Finish OnFailure = "finish"

// Defaults hold for the tasks that say nothing else.
type Defaults struct {
	Timeout  schedule.Duration `json:"timeout,omitempty"`
	Retry    *job.Retry        `json:"retry,omitempty"`
	Queue    string            `json:"queue,omitempty"`
	Priority queue.Priority    `json:"priority,omitempty"`
}

// Step is one node as a user writes it. Exactly one of a target, Steps, Pass, Fail and Switch says what it does.
type Step struct {
	Needs []string `json:"needs,omitempty"`
	Rule  Rule     `json:"rule,omitempty"`
	When  string   `json:"when,omitempty"`

	target.Spec
	Steps  map[string]Step `json:"steps,omitempty"`
	Pass   *Pass           `json:"pass,omitempty"`
	Fail   *Fail           `json:"fail,omitempty"`
	Switch []Choice        `json:"switch,omitempty"`

	Input     json.RawMessage   `json:"input,omitempty"`
	Timeout   schedule.Duration `json:"timeout,omitempty"`
	Retry     *job.Retry        `json:"retry,omitempty"`
	Guarantee job.Guarantee     `json:"guarantee,omitempty"`
	Queue     string            `json:"queue,omitempty"`
	Priority  queue.Priority    `json:"priority,omitempty"`
	OnFailure OnFailure         `json:"on_failure,omitempty"`

	AllowFailure bool `json:"allow_failure,omitempty"`
}

// Choice is one way of a switch as a user writes it.
type Choice struct {
	When string `json:"when,omitempty"`
	To   string `json:"to"`
}
