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

// What becomes of other branches.
const (
	Finish OnFailure = "finish" // they go on: the default
	Stop   OnFailure = "stop"   // nothing of the workflow, or of the scope, starts any more, and what runs is told to stop
)

// Defaults hold for the tasks that say nothing else.
type Defaults struct {
	Timeout  schedule.Duration `json:"timeout,omitempty"`
	Retry    *job.Retry        `json:"retry,omitempty"`
	Queue    string            `json:"queue,omitempty"`
	Priority queue.Priority    `json:"priority,omitempty"`
}

// Step is one node as a user writes it. Exactly one of a target, Steps, Pass, Fail, Switch and Wait says what it does.
type Step struct {
	Needs []string `json:"needs,omitempty"`
	Rule  Rule     `json:"rule,omitempty"`
	When  string   `json:"when,omitempty"`

	target.Spec
	Steps  map[string]Step `json:"steps,omitempty"`
	Pass   *Pass           `json:"pass,omitempty"`
	Fail   *Fail           `json:"fail,omitempty"`
	Switch []Choice        `json:"switch,omitempty"`
	Wait   *Delay          `json:"wait,omitempty"`

	Input     json.RawMessage   `json:"input,omitempty"`
	Timeout   schedule.Duration `json:"timeout,omitempty"` // of an attempt; of a scope from its release
	Retry     *job.Retry        `json:"retry,omitempty"`
	Guarantee job.Guarantee     `json:"guarantee,omitempty"`
	Queue     string            `json:"queue,omitempty"`
	Priority  queue.Priority    `json:"priority,omitempty"`
	OnFailure OnFailure         `json:"on_failure,omitempty"` // of a scope

	AllowFailure bool            `json:"allow_failure,omitempty"`
	Catch        []Catching      `json:"catch,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"` // of a scope
}

// Catching is one clause of a catch as a user writes it: no codes take every failure.
type Catching struct {
	Codes []string `json:"codes,omitempty"`
	To    string   `json:"to"`
}

// Choice is one way of a switch as a user writes it.
type Choice struct {
	When string `json:"when,omitempty"`
	To   string `json:"to"`
}
