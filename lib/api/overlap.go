package api

import (
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// policyOrOverlap stands for job.Overlap in schemas: it is the name of a policy in JSON, or an object with it.
type policyOrOverlap struct{}

// Schema gives it to the framework.
func (policyOrOverlap) Schema(registry huma.Registry) *huma.Schema {
	object := registry.Schema(reflect.TypeFor[job.OverlapForm](), true, "")
	full := registry.SchemaFromRef(object.Ref)
	return &huma.Schema{
		Extensions: map[string]any{namedAs: "PolicyOrOverlap"},
		Title:      `the name of a policy, such as "skip" or "queue_latest", or an object such as {"policy": "queue", "limit": 3, "max_waiting": 100}`,
		OneOf:      []*huma.Schema{{Type: huma.TypeString, Enum: full.Properties["policy"].Enum}, object},
	}
}

// policyOrOwn stands for job.OwnOverlap in schemas: it is the name of a policy in JSON, or an object with it.
type policyOrOwn struct{}

// Schema gives it to the framework.
func (policyOrOwn) Schema(registry huma.Registry) *huma.Schema {
	object := registry.Schema(reflect.TypeFor[job.OwnOverlapForm](), true, "")
	full := registry.SchemaFromRef(object.Ref)
	return &huma.Schema{
		Extensions: map[string]any{namedAs: "PolicyOrOwnOverlap"},
		Title:      `the name of a policy, such as "skip" or "allow", or an object such as {"policy": "skip"}`,
		OneOf:      []*huma.Schema{{Type: huma.TypeString, Enum: full.Properties["policy"].Enum}, object},
	}
}

// nameOrGateUse stands for job.GateUse in schemas: it is the name of a gate in JSON, or an object with it.
type nameOrGateUse struct{}

// Schema gives it to the framework.
func (nameOrGateUse) Schema(registry huma.Registry) *huma.Schema {
	object := registry.Schema(reflect.TypeFor[job.GateUseForm](), true, "")
	name := *registry.SchemaFromRef(object.Ref).Properties["gate"]
	name.Description = ""
	return &huma.Schema{
		Extensions: map[string]any{namedAs: "NameOrGateUse"},
		Title:      `the name of a gate, such as "stripe", or an object such as {"gate": "stripe", "units": 2}`,
		OneOf:      []*huma.Schema{&name, object},
	}
}

// later has the fields and the texts that a later version takes, by the schema that is without them: who gives one is told so, and does not
// look for a typing error.
type later map[*huma.Schema][]string

func (l later) has(schema *huma.Schema, name string) bool { return slices.Contains(l[schema], name) }

// says tells what to do about a field of a later version.
func (l later) says(schema *huma.Schema, name string) string {
	if slices.Contains(calledKinds, name) {
		return "not taken here; name a job that has such a target, as in {job: tell-ops}"
	}
	if name == "window" {
		return "not taken here: a request's callback tells of its run alone; that of a job may have a window"
	}
	if l.has(schema, "limit") { // which is a field of what a request brings, and of nothing else that has fields to come
		return "not taken of a request, which brings a policy alone: it stays as the job says"
	}
	return "not available yet; leave it out"
}

// ignored has the fields that answers give, or gave in a version before, by the schema of requests that is without them: what was given is taken back, and
// means nothing.
type ignored map[*huma.Schema][]string

func (i ignored) has(schema *huma.Schema, name string) bool { return slices.Contains(i[schema], name) }

// ignoredOf lists such fields. The name of a job stood under its status, and files that were written then have it there. What GET gives of a gate, PUT takes: these say how it stood, and nobody could want them otherwise.
func ignoredOf(schemas map[string]*huma.Schema) ignored {
	return ignored{
		schemas["JobStatus"]:      {"name"},
		schemas["GateDefinition"]: {"in_progress", "units", "waiting", "generation", "etag", "opened", "blocked_by", "created_at", "updated_at"},
	}
}

// calledKinds are what somebody may write in a callback in place of a job that has such a target.
var calledKinds = []string{"http", "exec", "handler", "aws", "sns", "email", "workflow"}

// laterOf lists what is to come of the schemas of the document.
func laterOf(schemas map[string]*huma.Schema) later {
	l := later{
		schemas["Schedule"]:       {"exclude", "only"},
		schemas["Callback"]:       calledKinds,
		schemas["Callee"]:         append([]string{"window"}, calledKinds...),
		schemas["GateDefinition"]: {"rate", "fair_by", "weights", "while_retrying", "open", "breaker", "pool", "key"},
		schemas["OwnOverlap"]:     job.NotOwn,
	}
	for _, order := range gate.OrdersToCome {
		of := schemas["GateDefinition"].Properties["order"]
		l[of] = append(l[of], string(order))
	}
	for _, name := range []string{"Job", "NamedJob"} {
		l[schemas[name]] = []string{"deadline", "unique", "order_by"}
	}
	l.scenariosToCome(schemas)
	return l
}
