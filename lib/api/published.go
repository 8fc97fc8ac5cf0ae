package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// namedAs is the name of a schema that is no Go struct: where it stands the document that is published refers to it.
const namedAs = "x-named-as"

const schemaPrefix = "#/components/schemas/"

// A variant is one of the ways in which an object may be given: with this field, and with those that go with it alone.
type variant struct {
	field, name string
	with        []string
}

// unions are the objects that have exactly one of some fields. Requests are checked against the whole object, which can tell what is wrong with
// it; a generator makes of its variants a union, in which the field says which it is.
var unions = map[string][]variant{
	"Target": {{"http", "HTTPCall", nil}, {"exec", "ExecCall", nil}, {"handler", "HandlerCall", nil}, {"aws", "AWSCall", nil}, {"email", "EmailCall", nil},
		{"workflow", "WorkflowCall", nil}},
	"Schedule": {{"cron", "CronSchedule", []string{"timezone"}}, {"every", "IntervalSchedule", []string{"phase"}},
		{"at", "OneTimeSchedule", nil}},
	"CancelRuns": {{"runs", "CancelListed", nil}, {"matching", "CancelMatching", []string{"cursor", "max"}}},
	"RetryRuns":  {{"runs", "RetryListed", nil}, {"matching", "RetryMatching", []string{"cursor", "max"}}},
	"Discard":    {{"runs", "DiscardListed", nil}, {"matching", "DiscardMatching", []string{"cursor", "max"}}},
	"PauseJobs":  {{"jobs", "PauseListed", nil}, {"matching", "PauseMatching", []string{"cursor", "max"}}},
	"ResumeJobs": {{"jobs", "ResumeListed", nil}, {"matching", "ResumeMatching", []string{"cursor", "max"}}},
	"DeleteJobs": {{"jobs", "DeleteListed", nil}, {"matching", "DeleteMatching", []string{"cursor", "max"}}},
	"LabelJobs":  {{"jobs", "LabelListed", nil}, {"matching", "LabelMatching", []string{"cursor", "max"}}},
	"ExportJobs": {{"jobs", "ExportListed", nil}, {"matching", "ExportMatching", []string{"cursor"}}},
	"Redrive":    {{"runs", "RedriveListed", nil}, {"matching", "RedriveMatching", []string{"cursor", "max"}}},
}

// enums are the words that several schemas take, by the name of the type that generators make of them.
var enums = map[string]string{
	"scheduled,queued,waiting,running,retrying,succeeded,failed,cancelled,skipped,dead,unknown":                           "RunState",
	"pending,scheduled,queued,running,retrying,suspended,succeeded,failed,cancelled,skipped,dead,unknown,upstream_failed": "StepState",
	"task,scope,pass,fail,switch,wait":                              "StepKind",
	"running,succeeded,failed,crashed,cancelled,handed_back":        "AttemptOutcome",
	"schedule,request,callback":                                     "RunTrigger",
	"succeeded,failed,recovered,missed":                             "CallbackEvent",
	"due,oldest,changed":                                            "RunOrder",
	"allow,skip,queue,queue_one,queue_latest,cancel,replace,strict": "OverlapPolicy",
	"priority,fifo,deadline":                                        "GateOrder",
	"*":                                                             "IfNoneMatch",
	"high,normal,low":                                               "Priority",
	"at_least_once,at_most_once":                                    "Guarantee",
	"constant,exponential,lognormal":                                "Distribution",
	"sent,ready,taken,ended":                                        "OrderEventKind",
	"none,message_twice,dies_before,dies_after,answer_lost,write_lost,zombie,zombie_first,clocks_jump": "OnceFault",
	"none,key,fence,both":                            "OnceGuard",
	"scheduler,store,queue,worker_1,worker_2,target": "OncePlace",
	"queued,running,retrying,succeeded,failed,cancelled,dead,unknown,renewed,written_again,message_sent,message_taken,message_hidden,message_deleted,called,effect,repeated,stale,answered,answer_lost,write_lost,refused,worker_died,worker_froze,worker_woke,clock_set,timer_set": "OnceEventKind",
	"delayed,ready,taken": "MessageState",
	"ok":                  "Alive",
}

// published is the document as generators of clients understand it. It says the same as the one that requests are checked against.
func published(doc *huma.OpenAPI) *huma.OpenAPI {
	p := publication{huma.NewMapRegistry(schemaPrefix, huma.DefaultSchemaNamer)}
	for name, schema := range doc.Components.Schemas.Map() {
		p.publish(name, schema)
	}
	shown := *doc
	components := *doc.Components
	components.Schemas = p.registry
	shown.Components = &components
	shown.Paths = map[string]*huma.PathItem{}
	for path, item := range doc.Paths {
		with := *item
		for _, op := range []**huma.Operation{&with.Get, &with.Put, &with.Post, &with.Patch, &with.Delete} {
			if *op != nil {
				*op = p.operation(*op)
			}
		}
		shown.Paths[path] = &with
	}
	return &shown
}

type publication struct{ registry huma.Registry }

func (p publication) operation(op *huma.Operation) *huma.Operation {
	with := *op
	with.Parameters = make([]*huma.Param, len(op.Parameters))
	for i, param := range op.Parameters {
		shown := *param
		shown.Schema = p.schema(param.Schema)
		with.Parameters[i] = &shown
	}
	return &with
}

// publish adds a schema under a name, or the variants of which it is one and their union.
func (p publication) publish(name string, schema *huma.Schema) {
	all := p.registry.Map()
	shown := p.copied(schema)
	if unions[name] == nil {
		all[name] = shown
		return
	}
	union := &huma.Schema{Description: shown.Description}
	for _, v := range unions[name] {
		one := *shown
		one.Description, one.OneOf, one.DependentRequired = "", nil, nil
		one.Properties = maps.Clone(shown.Properties)
		for _, other := range unions[name] {
			if other.field != v.field {
				maps.DeleteFunc(one.Properties, func(field string, _ *huma.Schema) bool {
					return field == other.field || slices.Contains(other.with, field)
				})
			}
		}
		one.Required = append(slices.Clone(schema.Required), v.field)
		all[v.name] = &one
		union.OneOf = append(union.OneOf, &huma.Schema{Ref: schemaPrefix + v.name})
	}
	all[name] = union
}

// schema is a schema where it stands in another one: a reference, where it has a name.
func (p publication) schema(schema *huma.Schema) *huma.Schema {
	if schema == nil {
		return nil
	}
	shown := p.copied(schema)
	words := make([]string, len(schema.Enum))
	for i, word := range schema.Enum {
		words[i] = fmt.Sprint(word)
	}
	list := strings.Join(words, ",")
	if name, ok := schema.Extensions[namedAs].(string); ok {
		reference := &huma.Schema{Ref: schemaPrefix + name}
		if shown.Title != "" { // which says what it is, wherever it stands
			reference.Description, shown.Description, shown.Title = shown.Description, shown.Title, ""
		}
		p.registry.Map()[name] = shown
		return reference
	}
	if list == "true,false" {
		shown.Type, shown.Enum = huma.TypeBoolean, nil
	}
	if name := enums[list]; name != "" && schema.Type == huma.TypeString && !schema.Nullable {
		p.registry.Map()[name] = &huma.Schema{Type: huma.TypeString, Enum: schema.Enum}
		return &huma.Schema{Ref: schemaPrefix + name, Description: schema.Description}
	}
	return shown
}

func (p publication) copied(schema *huma.Schema) *huma.Schema {
	shown := *schema
	shown.Items = p.schema(schema.Items)
	if schema.Properties != nil {
		shown.Properties = map[string]*huma.Schema{}
		for name, property := range schema.Properties {
			shown.Properties[name] = p.schema(property)
		}
	}
	if values, ok := schema.AdditionalProperties.(*huma.Schema); ok {
		shown.AdditionalProperties = p.schema(values)
	}
	shown.OneOf = nil
	for _, one := range schema.OneOf {
		shown.OneOf = append(shown.OneOf, p.schema(one))
	}
	shown.Extensions = maps.Clone(schema.Extensions)
	delete(shown.Extensions, namedAs)
	return &shown
}
