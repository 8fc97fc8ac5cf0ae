package flow

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// NamePattern is what the names of steps look like.
const NamePattern = `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`

const (
	codePattern     = `^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`
	durationPattern = `^(0|[0-9]+d([0-9]+(\.[0-9]+)?(ms|s|m|h))*|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`

	wantName = "1 to 64 letters, digits, underscores or hyphens, beginning with a letter or digit"
	wantWide = "1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit"
)

// The bounds of texts and lists.
const (
	MaxCondition = 1024 // characters of a switch's condition
	MaxMessage   = 1024 // characters of what a fail node says
	MaxWays      = 100  // of a switch
	MaxClauses   = 20   // of a catch
	MaxCodes     = 50   // of a clause
)

var (
	nameShape     = text{pattern: regexp.MustCompile(NamePattern), phrase: wantName}
	wideName      = text{pattern: regexp.MustCompile(job.NamePattern), phrase: wantWide}
	secretName    = text{pattern: regexp.MustCompile(target.SecretNamePattern), phrase: wantWide}
	durationShape = text{pattern: regexp.MustCompile(durationPattern), longest: 64, duration: true, phrase: `a duration such as "90s", "1h30m" or "30d"`}
	plain         = text{}
	open          = text{computed: true, empty: true}
)

// What a step may do, by the field that says so.
var (
	targetFields = []string{"http", "exec", "handler", "aws", "email"}
	kindFields   = append(slices.Clone(targetFields), "steps", "pass", "fail", "switch", "wait")
)

// stepFieldsToCome are fields of steps that a later version has.
var stepFieldsToCome = []string{"foreach", "repeat", "poll", "run", "compensate", "callback", "gates",
	"branch", "parallel", "chain"}

var elsewhere = map[string]string{
	"payload":      "input, which is its name here",
	"depends_on":   "needs, which is its name here",
	"trigger_rule": "rule, which is its name here",
	"schedule":     "it in the job, beside target",
	"overlap":      "it in the job, beside target",
	"on":           "it in the job, beside target",
	"deadline":     "it in the job, beside target; a step has a timeout",
	"retention":    "it in the job, beside target",
	"labels":       "it in the job, beside target",
	"name":         "none: a step has its name before the colon",
	"type":         "the kind as a field of its own, such as http or pass",
	"workflow":     "steps, which is its name here",
}

// ref is one of the shapes that hold one another.
type ref string

func (s ref) read(r *report, v *manifest.Value, at string) *manifest.Value {
	return definitions[s].read(r, v, at)
}
func (s ref) want() string           { return definitions[s].want() }
func (s ref) schema() map[string]any { return map[string]any{"$ref": "#/$defs/" + string(s)} }

// definitions are the shapes that refs name.
var definitions map[ref]shape

func init() { // they name one another
	definitions = map[ref]shape{"workflow": workflowShape, "step": stepShape, "steps": stepsShape, "retry": retryShape}
}

var stepsShape = names{of: ref("step"), pattern: regexp.MustCompile(NamePattern), wantName: "a name of " + wantName, least: 1,
	phrase: "an object with the steps by their names, at least one"}

var workflowShape = object{
	phrase: "a workflow as an object with steps",
	later:  []string{"when", "foreach", "catch", "compensate"},
	hints: map[string]string{
		"retry": "it in the steps, or in defaults", "queue": "it in the steps, or in defaults", "priority": "it in the steps, or in defaults", "guarantee": "it in the steps",
		"gates": "none: gates of steps are not built yet, and a workflow has none", "schedule": elsewhere["schedule"], "overlap": elsewhere["overlap"], "on": elsewhere["on"],
		"deadline": "it in the job, beside target", "retention": elsewhere["retention"], "labels": elsewhere["labels"],
		"name": "it in the job, beside target", "description": "it in the job, beside target", "paused": "it in the job, beside target", "catch_up": "it in the job, beside target",
		"workflow": "its fields here, without workflow around them", "target": "what the job has in target.workflow, by itself",
		"nodes": "steps, which is its name here", "tasks": "steps, which is its name here", "payload": "it in the job, beside target",
	},
	fields: []field{
		{name: "steps", shape: ref("steps"), required: true, doc: "the steps by their names"},
		{name: "timeout", shape: durationShape, doc: "longest time of the whole run, from its start; 7d by default"},
		{name: "on_failure", shape: choice{of: texts(Finish, Stop)}, doc: "what becomes of the other branches when a step fails and nothing handles that: finish, the default, lets them go on; stop ends the run"},
		{name: "defaults", shape: defaultsShape, doc: "for tasks that say nothing else"},
		{name: "output", shape: data{}, doc: "any JSON, with expressions in its texts: the result of the run"},
	},
}

var (
	priorityShape  = choice{of: texts(queue.Priorities...)}
	ruleShape      = choice{of: texts(Rules...)}
	guaranteeShape = choice{of: texts(job.AtLeastOnce, job.AtMostOnce)}
	invokeShape    = choice{of: []string{target.InvokeSync, target.InvokeAsync}}
)

func texts[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

var retryShape = object{
	phrase: `an object such as {"max_attempts": 3, "initial": "5s"}`,
	later:  []string{"codes"},
	fields: []field{
		{name: "max_attempts", shape: number{1, job.MaxAttempts, true}, doc: "tries in all, the first included; 15 by default, 1 at most once"},
		{name: "initial", shape: durationShape, doc: "shortest wait between attempts; the wait before the second attempt is one to two times as long; 1s by default"},
		{name: "factor", shape: number{1, 10, false}, doc: "how many times longer each further wait is; 2 by default"},
		{name: "max", shape: durationShape, doc: "longest wait between attempts; 1h by default"},
	},
}

var defaultsShape = object{
	phrase: `an object such as {"timeout": "10m", "retry": {"max_attempts": 3}}`,
	later:  []string{"gates"},
	hints:  map[string]string{"guarantee": "it in each step: it says what the step's target can bear"},
	fields: []field{
		{name: "timeout", shape: durationShape, doc: "longest time of one attempt"},
		{name: "retry", shape: ref("retry"), doc: "how failed attempts are tried again"},
		{name: "queue", shape: wideName, doc: "the pool of workers; the job's by default"},
		{name: "priority", shape: priorityShape, doc: "which of the pool's queues; the run's by default"},
	},
}

var stepShape = object{
	phrase: "a step as an object",
	one:    kindFields,
	later:  stepFieldsToCome,
	hints:  elsewhere,
	fields: slices.Concat([]field{
		{name: "needs", shape: list{of: nameShape, most: MaxNodes, distinct: true, phrase: "the names of the steps that it waits for, as an array"},
			doc: "names of steps in the same scope that it waits for"},
		{name: "rule", shape: ruleShape, doc: "which ends of the steps that it needs let it run; all_success by default"},
		{name: "when", shape: condition{text{longest: MaxCondition}}, beside: slices.Concat(targetFields, []string{"pass", "wait", "steps"}),
			doc: "an expression without ${ }, asked once its rule lets the step run: true or false; false skips it"},
	}, targetForms, []field{
		{name: "steps", shape: ref("steps"), doc: "a scope: a graph of its own, which is one step from outside"},
		{name: "pass", shape: object{phrase: "an object, {} or with input", fields: []field{
			{name: "input", shape: data{}, doc: "its result: any JSON, with expressions in its texts"}}}, doc: "succeeds at once: joins branches"},
		{name: "fail", shape: object{phrase: "an object such as {\"code\": \"rejected\", \"message\": \"…\"}, or {}", fields: []field{
			{name: "code", shape: text{pattern: regexp.MustCompile(codePattern), phrase: "1 to 64 letters, digits, dots, colons, underscores or hyphens, beginning with a letter or digit"}, doc: "of the failure; failed by default"},
			{name: "message", shape: text{longest: MaxMessage, computed: true}, doc: "for people"}}}, doc: "fails at once"},
		{name: "switch", shape: list{of: wayShape, least: 1, most: MaxWays,
			phrase: fmt.Sprintf(`1 to %d ways as an array, such as [{"when": ".input.rows > 0", "to": "load"}, {"to": "report"}]`, MaxWays)},
			doc: "chooses the first way whose condition holds"},
		{name: "wait", shape: waitShape, doc: "succeeds when a time has come; nothing runs meanwhile"},

		{name: "input", shape: data{}, beside: targetFields, doc: "any JSON, with expressions in its texts, handed to the target; the payload of the run by default"},
		{name: "timeout", shape: durationShape, beside: slices.Concat(targetFields, []string{"steps"}), doc: "longest time of one attempt; of a scope, of all of it, from its release"},
		{name: "retry", shape: ref("retry"), beside: targetFields, doc: "how failed attempts are tried again"},
		{name: "guarantee", shape: guaranteeShape, beside: targetFields, doc: "what happens when the outcome of an attempt cannot be known; at_least_once by default"},
		{name: "queue", shape: wideName, beside: targetFields, doc: "the pool of workers"},
		{name: "priority", shape: priorityShape, beside: targetFields, doc: "which of the pool's queues"},
		{name: "allow_failure", shape: yesOrNo{}, beside: slices.Concat(targetFields, []string{"steps", "wait"}), doc: "has its failure count as a success, for the steps that need it and for the run"},
		{name: "on_failure", shape: choice{of: texts(Finish, Stop)}, beside: []string{"steps"}, doc: "what becomes of the other branches of a scope when a step of it fails and nothing in it handles that: finish, the default, lets them go on; stop ends the scope"},
		{name: "catch", shape: list{of: catchShape, least: 1, most: MaxClauses,
			phrase: fmt.Sprintf(`1 to %d clauses as an array, such as [{"codes": ["timeout"], "to": "remind"}, {"to": "undo"}]`, MaxClauses)},
			beside: slices.Concat(targetFields, []string{"steps", "wait"}), doc: "steps that handle its failure: that of the first clause that takes it"},
		{name: "output", shape: data{}, beside: []string{"steps"}, doc: "the result of a scope: any JSON, with expressions in its texts; that of its only last step by default, and of several an object with theirs"},
	}),
}

var wayShape = object{
	phrase: `a way such as {"when": ".input.rows > 0", "to": "load"}`,
	fields: []field{
		{name: "when", shape: condition{text{longest: MaxCondition}}, doc: "the condition, without ${ }; without one the way is always taken, and stands last"},
		{name: "to", shape: nameShape, required: true, doc: "the step that goes on, in the same scope"},
	},
}

var catchShape = object{
	phrase: `a clause such as {"codes": ["timeout", "http_status:5xx"], "to": "remind"}`,
	fields: []field{
		{name: "codes", shape: list{of: text{longest: maxCode}, least: 1, most: MaxCodes, distinct: true,
			phrase: fmt.Sprintf(`1 to %d codes as an array, such as ["timeout", "http_status:5xx"]`, MaxCodes)}, doc: "of the failures that it takes; all by default"},
		{name: "to", shape: nameShape, required: true, doc: "the step that handles them, in the same scope"},
	},
}

var statuses = list{of: number{300, 599, true}, most: target.MaxStatuses, phrase: fmt.Sprintf("at most %d numbers from 300 to 599, as an array", target.MaxStatuses)}

// targetForms are the forms of target.Spec. A test compares the names with its fields.
var targetForms = []field{
	{name: "http", doc: "calls an address", shape: object{phrase: `an object with url`, fields: []field{
		{name: "url", shape: text{computed: true, phrase: `an absolute http or https URL such as "https://example.org/hook"`}, required: true, doc: "absolute, http or https"},
		{name: "method", shape: plain, doc: "POST by default"},
		{name: "headers", shape: namesOf(value{}, target.MaxHeaders, "headers"), doc: "sent beside Belfry's own"},
		{name: "permanent_status", shape: statuses, doc: "statuses that are never retried"},
		{name: "retry_status", shape: statuses, doc: "statuses that are retried"},
		{name: "sign", shape: object{phrase: `an object with secret`, fields: []field{
			{name: "secret", shape: secretName, required: true, doc: "name of the secret that holds the key"},
			{name: "previous", shape: secretName, doc: "name of the secret with the key before"}}}, doc: "signs the call after Standard Webhooks"},
	}}},
	{name: "exec", doc: "starts a process on the worker's host", shape: object{phrase: `an object with argv`, later: []string{"output"}, fields: []field{
		{name: "argv", shape: list{of: open, least: 1, most: target.MaxArgv, phrase: fmt.Sprintf(`the program and its arguments, 1 to %d texts as an array`, target.MaxArgv)}, required: true, doc: "the program and its arguments; no shell"},
		{name: "env", shape: namesOf(value{}, target.MaxEnv, "variables"), doc: "added to what the worker lets its processes inherit"},
		{name: "dir", shape: plain, doc: "absolute; the worker's own folder by default"},
		{name: "permanent_exit_codes", shape: list{of: number{1, 255, true}, most: target.MaxStatuses, phrase: fmt.Sprintf("at most %d numbers from 1 to 255, as an array", target.MaxStatuses)}, doc: "codes that are never retried"},
	}}},
	{name: "handler", doc: "calls a Go function that the worker's program registered", shape: object{phrase: `an object with name`, fields: []field{
		{name: "name", shape: wideName, required: true, doc: "of the function"},
	}}},
	{name: "aws", doc: "calls a resource of AWS: a function, queue, topic, event bus or state machine", shape: object{phrase: `an object with arn`, fields: []field{
		{name: "arn", shape: plain, required: true, doc: "of a Lambda function, an SQS queue, an SNS topic, an EventBridge bus or a Step Functions state machine"},
		{name: "role_arn", shape: plain, doc: "the role to do it as"},
		{name: "invoke", shape: invokeShape, doc: "of a function: whether its end is waited for, which is the default"},
		{name: "message_group", shape: plain, doc: "of a queue or topic: which messages stay in order"},
		{name: "source", shape: plain, doc: "of an event on a bus"},
		{name: "detail_type", shape: plain, doc: "of an event on a bus"},
	}}},
	{name: "email", doc: "sends a mail", shape: object{phrase: `an object with to`, fields: []field{
		{name: "to", shape: list{of: plain, least: 1, most: target.MaxRecipients, phrase: fmt.Sprintf(`1 to %d addresses as an array, such as ["ops@example.org"]`, target.MaxRecipients)}, required: true, doc: "who gets it"},
		{name: "subject", shape: plain, doc: "names the job by default"},
		{name: "from", shape: plain, doc: "an address of the domain that the worker sends from"},
	}}},
}

func namesOf(of shape, most int, what string) names {
	return names{of: of, most: most, phrase: fmt.Sprintf("an object of at most %d %s", most, what)}
}

// Schema is the form of definitions as a JSON Schema of version 2020-12, for editors. It takes a workflow alone, or a job whose target is
// one. What it takes may still be refused by Check: it cannot say that a graph has no cycle.
func Schema() map[string]any {
	defs := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		defs[string(name)] = definitions[name].schema()
	}
	whole := ref("workflow").schema()
	return map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "Workflow of Belfry",
		"description": "A workflow, or a job whose target is one.",
		"type":        "object",
		"if":          map[string]any{"required": []string{"target"}},
		"then": map[string]any{"properties": map[string]any{"target": map[string]any{
			"type": "object", "properties": map[string]any{"workflow": whole}, "required": []string{"workflow"}, "additionalProperties": false}}},
		"else":  whole,
		"$defs": defs,
	}
}
