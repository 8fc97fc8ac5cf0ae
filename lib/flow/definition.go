package flow

import (
	"encoding/json"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Workflow is a definition that has been checked. It is never changed, and may be shared.
type Workflow struct {
	// Nodes holds every node, each once. A scope stands before its steps, which follow it at once. Beside that a node stands after the
	// nodes that it needs, and otherwise by its name, whatever the order in which they were written: the same definition always has the
	// same order. So a node's Index names it, within one version of a definition.
	Nodes []Node
	// Top holds the nodes outside of every scope, by index, ascending.
	Top []int

	Timeout schedule.Duration // of the whole run, from its start

	Output *Data // the result of the whole run; nil: none

	Stops bool // a failure that nothing handles stops the whole: nothing is released behind it

	source Definition
}

// None stands for no node where the index of a node is wanted.
const None = -1

// Kind says what a node does.
type Kind uint8

// The kinds of nodes.
const (
	KindTask   Kind = iota + 1 // calls a target
	KindScope                  // holds a graph of its own
	KindPass                   // succeeds at once
	KindFail                   // fails at once
	KindSwitch                 // chooses which of the nodes behind it goes on
	KindWait                   // succeeds when a time has come
)

var kindNames = [...]string{KindTask: "task", KindScope: "scope", KindPass: "pass", KindFail: "fail", KindSwitch: "switch", KindWait: "wait"}

// String gives the name of a kind, such as "task".
func (k Kind) String() string {
	if int(k) < len(kindNames) && k > 0 {
		return kindNames[k]
	}
	return "unknown kind"
}

// Rule says which states of the nodes that a node needs let it run. The names are those of Airflow.
type Rule string

// The rules. A node that needs none runs under each of them.
const (
	AllSuccess              Rule = "all_success" // the default
	AllFailed               Rule = "all_failed"
	AllDone                 Rule = "all_done"
	AllDoneMinOneSuccess    Rule = "all_done_min_one_success"
	AllSkipped              Rule = "all_skipped"
	OneSuccess              Rule = "one_success"
	OneFailed               Rule = "one_failed"
	OneDone                 Rule = "one_done"
	NoneFailed              Rule = "none_failed"
	NoneFailedMinOneSuccess Rule = "none_failed_min_one_success"
	NoneSkipped             Rule = "none_skipped"
	Always                  Rule = "always"
)

// Rules lists all rules, the default first.
var Rules = []Rule{AllSuccess, AllFailed, AllDone, AllDoneMinOneSuccess, AllSkipped, OneSuccess, OneFailed, OneDone, NoneFailed,
	NoneFailedMinOneSuccess, NoneSkipped, Always}

// Node is one step of a graph: a place at which exactly one thing is done, or none.
type Node struct {
	Index int    // in Workflow.Nodes
	Path  string // names of the scopes around it and its own, with slashes between: "parts/load"
	Name  string
	Kind  Kind
	Depth int // 1 outside of every scope
	Scope int // the scope around it, or None

	// Needs holds the nodes whose states Rule judges, and Catches: siblings, by index, ascending. The switch that leads here is one of them.
	Needs []int
	Next  []int // the nodes that need this one, by index, ascending
	Rule  Rule
	// AllowFailure has a failure of the node count as a success, for those that need it and for the whole around it. Its own state tells it.
	AllowFailure bool

	// When is the text of what is asked once the rule lets a task, pass, wait or scope run: false skips it. "": it runs.
	When      string
	Condition *Condition // made of When
	// Data is what a task is handed, or a pass gives, where expressions say it; nil: what Task.Input or Pass.Input is. Of a scope it is what that gives, never nil.
	Data *Data

	// Timeout is how long a scope may take, from its release; 0: as long as the whole. Once that is over the scope is stopped. Stops says that a failure in it which
	// nothing in it handles stops it, too.
	Timeout schedule.Duration
	Stops   bool

	// Catch has the clauses by which failures of the node are handled: the first that takes one. What none takes is not caught.
	Catch []Clause
	// Catches holds the nodes whose failures this one handles, by index, ascending. They are among Needs, and Rule does not judge them: the node waits for
	// all of them, and runs only if one was caught into it.
	Catches []int

	// Switch is the switch that leads here, or None. The node runs only if Rule says so and that switch has chosen it. If Rule says so
	// and the switch has chosen another, the node is skipped.
	Switch int

	// What the node's kind brings. The others are nil.
	Task *Task
	Body *Scope
	Pass *Pass
	Fail *Fail
	Ways []Way
	Wait *Delay
}

// Task calls a target, as an ordinary run does. The defaults of the workflow, and those of a job, are filled in.
type Task struct {
	Target    target.Spec
	Input     json.RawMessage // nil: the payload of the run
	Timeout   schedule.Duration
	Retry     job.Retry
	Guarantee job.Guarantee
	Queue     string         // "": that of the job
	Priority  queue.Priority // "": that of the run
}

// Scope is what a scope holds.
type Scope struct {
	Steps []int // the nodes directly in it, by index, ascending; at least one
}

// Pass does nothing, or gives a result of its own.
type Pass struct {
	Input json.RawMessage `json:"input,omitempty"` // its result; nil: none
}

// Fail ends as failed.
type Fail struct {
	Code    string `json:"code,omitempty"` // "" is DefaultCode
	Message string `json:"message,omitempty"`
}

// Way is one of the ways that a switch may choose: the first whose condition holds.
type Way struct {
	When string // the text of its condition; "" holds always, and stands last
	To   int    // the node that runs, a sibling; several ways may lead to one node

	Condition *Condition // made of When
}

// Asks tells whether something has to be written down before the node runs, as a fact: what came of an expression, or until when a scope or wait may take.
func (n *Node) Asks() bool {
	return n.Kind == KindSwitch || n.Kind == KindWait || n.When != "" || n.Kind == KindScope && n.Timeout != 0
}

// Gives tells whether the result of the node is made of those of others, by Data, and kept nowhere: that of a pass, and of a scope.
func (n *Node) Gives() bool { return n.Data != nil && (n.Kind == KindPass || n.Kind == KindScope) }

// Node finds a node by its path.
func (w *Workflow) Node(path string) (*Node, bool) {
	for i := range w.Nodes {
		if w.Nodes[i].Path == path {
			return &w.Nodes[i], true
		}
	}
	return nil, false
}

// Siblings returns the nodes directly in a scope, or outside of every scope for None.
func (w *Workflow) Siblings(scope int) []int {
	if scope == None {
		return w.Top
	}
	return w.Nodes[scope].Body.Steps
}
