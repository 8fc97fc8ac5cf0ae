package api

import (
	"cmp"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// durationPattern is what schedule.ParseDuration reads of the units that a person uses.
const durationPattern = `^(0|[0-9]+d([0-9]+(\.[0-9]+)?(ms|s|m|h))*|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`

// The other patterns, as the tags of parameters have them; a test compares.
const (
	workIDPattern   = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$`
	stepPathPattern = `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$`
	runIDPattern    = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}~[0-9a-z]{9}(~[0-9a-z]{13})?$`
	urlPattern      = `^[Hh][Tt][Tt][Pp][Ss]?://[^ #]+$`
	arnPattern      = `^arn:[!-~]+$`
	keyPattern      = `^[!-~]+$`
	tokenPattern    = `^[0-9a-f]{16}$`
	labelPattern    = `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}=`
	dayPattern      = `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	containsPattern = `^[A-Za-z0-9._-]+$` // as job names, which it is a part of
)

// durationText stands for schedule.Duration in schemas: it is a number in Go and text in JSON.
type durationText string

// Schema gives it to the framework.
func (durationText) Schema(huma.Registry) *huma.Schema {
	most := 64
	return &huma.Schema{Type: huma.TypeString, Pattern: durationPattern, MaxLength: &most, Examples: []any{"90s"}}
}

// schemaNames are the types whose own names say too little outside of their packages.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[schedule.Spec]():   "Schedule",
	reflect.TypeFor[target.Spec]():     "Target",
	reflect.TypeFor[target.HTTP]():     "HTTPTarget",
	reflect.TypeFor[target.Exec]():     "ExecTarget",
	reflect.TypeFor[target.Handler]():  "HandlerTarget",
	reflect.TypeFor[target.AWS]():      "AWSTarget",
	reflect.TypeFor[target.Email]():    "EmailTarget",
	reflect.TypeFor[target.Sign]():     "Signing",
	reflect.TypeFor[job.CatchUp]():     "CatchUp",
	reflect.TypeFor[job.OverlapForm](): "Overlap",

	reflect.TypeFor[job.OwnOverlapForm](): "OwnOverlap",
	reflect.TypeFor[job.GateUseForm]():    "GateUse",
	reflect.TypeFor[job.Callback]():       "Callback",
	reflect.TypeFor[wire.Callee]():        "Callee",
	reflect.TypeFor[job.Callbacks]():      "Callbacks",
	reflect.TypeFor[queue.Priority]():     "Priority",
	reflect.TypeFor[flow.Played]():        "PlayedWorkflow",
	reflect.TypeFor[flow.PlayedStep]():    "PlayedStep",
}

// newDocument begins the OpenAPI document.
func newDocument(version string) *huma.OpenAPI {
	registry := huma.NewMapRegistry("#/components/schemas/", func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if name, ok := schemaNames[t]; ok {
			return name
		}
		return huma.DefaultSchemaNamer(t, hint)
	})
	registry.RegisterTypeAlias(reflect.TypeFor[schedule.Duration](), reflect.TypeFor[durationText]())
	registry.RegisterTypeAlias(reflect.TypeFor[target.Value](), reflect.TypeFor[textOrSecret]())
	registry.RegisterTypeAlias(reflect.TypeFor[job.Overlap](), reflect.TypeFor[policyOrOverlap]())
	registry.RegisterTypeAlias(reflect.TypeFor[job.OwnOverlap](), reflect.TypeFor[policyOrOwn]())
	registry.RegisterTypeAlias(reflect.TypeFor[job.GateUse](), reflect.TypeFor[nameOrGateUse]())
	registry.RegisterTypeAlias(reflect.TypeFor[wire.ScenarioOutcomes](), reflect.TypeFor[listOrChoice]())
	registry.RegisterTypeAlias(reflect.TypeFor[wire.ScenarioDefinition](), reflect.TypeFor[jobOrGate]())
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Belfry",
			Version:     version,
			Description: "Durable job scheduling. Errors are problem documents (RFC 9457) with a stable code.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{tokenScheme: {Type: "http", Scheme: "bearer", BearerFormat: "bel_ID_SECRET",
				Description: "A token of belfry token create. Each operation names the scope that it asks for; docs/access.md says what each allows."}},
		},
	}
}

// tokenScheme is the name of the one way to say who calls.
const tokenScheme = "token"

// The media types of answers that are not JSON of the API's own.
const (
	mediaText = "text/plain"
	mediaJSON = "application/json"

	mediaBytes = "application/octet-stream"
)

// mediaMerge is the media type of a merge patch, RFC 7396.
const mediaMerge = "application/merge-patch+json"

// operation describes one row of the API.
type operation struct {
	id, method, path string
	summary          string
	tag              string
	scope            access.Scope          // asked of the caller
	host             bool                  // concerns the server as a whole, not one tenant
	waits            bool                  // does nothing for most of its time, until there is work
	batch            bool                  // takes a large body
	limit            int64                 // of the body, in bytes; 0: as these say, or maxBody
	takes            string                // media type of the body; "": JSON
	status           int                   // of success; 0: 200
	created          bool                  // 201 stands beside 200
	media            string                // of the answer, where it is no JSON of the API's own
	tagged           bool                  // the answer has an ETag, and 304 stands beside 200
	empty            bool                  // 204 stands beside 200, for nothing
	ranged           bool                  // a part of the bytes may be asked for, and 206 stands beside 200
	codes            []control.Code        // refusals beyond those that any operation may have
	links            map[string]*huma.Link // from an answer to other operations
	example          any                   // of the body
}

// success is the status of an answer.
func (op operation) success() int {
	if op.status == 0 {
		return http.StatusOK
	}
	return op.status
}

// bodyMedia is the media type of its body.
func (op operation) bodyMedia() string { return cmp.Or(op.takes, mediaJSON) }

func (op operation) bodyLimit() int64 {
	switch {
	case op.limit > 0:
		return op.limit
	case op.batch:
		return maxBatchBody
	case op.waits:
		return maxWaitingBody
	}
	return maxBody
}

// headersOf are the headers of refusals.
var headersOf = map[int]map[string]*huma.Param{
	http.StatusUnauthorized:                 {"WWW-Authenticate": {Description: "says that a bearer token is wanted", Schema: &huma.Schema{Type: huma.TypeString}}},
	http.StatusRequestedRangeNotSatisfiable: {"Content-Range": {Description: "of how many bytes a part may be asked for: bytes */N", Schema: &huma.Schema{Type: huma.TypeString}}},
	http.StatusTooManyRequests:              {"Retry-After": {Description: "seconds after which to try again", Schema: &huma.Schema{Type: huma.TypeInteger}}},
}

// describe says of an operation what requests and answers of it look like.
func (op operation) describe(registry huma.Registry, h handling) described {
	d := &huma.Operation{OperationID: op.id, Method: op.method, Path: op.path, Summary: op.summary, Tags: []string{op.tag},
		Responses: map[string]*huma.Response{}}
	var body *huma.Schema
	if h.body != reflect.TypeFor[noBody]() {
		body = registry.Schema(h.body, true, "")
	}
	parameters, fields := declared(registry, h.params)
	d.Parameters = parameters
	codes := append([]control.Code{codeMalformed, codeHostNotAllowed, codeInvalid, codeInternal, codeStoreDamaged, codeOutcomeUnknown}, op.codes...)
	if op.scope != access.Open {
		d.Security = []map[string][]string{{tokenScheme: {string(op.scope)}}}
		codes = append(codes, codeUnauthenticated, codeForbidden, codeRateLimited)
	}
	if body != nil {
		codes = append(codes, codeNotJSON, codeTooLarge)
	}
	refusal := registry.Schema(reflect.TypeFor[wire.Problem](), true, "")
	for _, code := range codes {
		status := statusOf[code]
		d.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: refusal}},
			Headers:     headersOf[status],
		}
	}
	switch op.media {
	case "":
	case mediaText:
		d.Responses["200"] = &huma.Response{Content: map[string]*huma.MediaType{mediaText: {Schema: &huma.Schema{Type: huma.TypeString}}}}
	default:
		d.Responses["200"] = &huma.Response{Content: map[string]*huma.MediaType{op.media: {Schema: &huma.Schema{}}}}
	}
	if body != nil {
		d.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{op.bodyMedia(): {Schema: body, Example: op.example}}}
	}
	op.answers(d, registry, h.answer)
	success := d.Responses[strconv.Itoa(op.success())]
	success.Links = op.links
	if op.tagged {
		longest := 4096
		d.Parameters = append(d.Parameters, &huma.Param{Name: noneMatch, In: "header", Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &longest},
			Description: "the ETag of the answer that the client has: 304 where nothing has changed"})
		success.Headers["ETag"] = &huma.Param{Description: "of the answer, for If-None-Match", Schema: &huma.Schema{Type: huma.TypeString}}
		d.Responses["304"] = &huma.Response{Description: "the answer is the one that If-None-Match names"}
	}
	if op.empty {
		d.Responses["204"] = &huma.Response{Description: "there is none"}
	}
	if op.ranged {
		part := *success
		part.Description = http.StatusText(http.StatusPartialContent)
		d.Responses["206"] = &part
	}
	if op.created {
		created := *success
		created.Description = http.StatusText(http.StatusCreated)
		d.Responses["201"] = &created
	}
	return described{d, body, fields}
}

// finish corrects what the schemas assume of Go types, and describes them.
func (d *description) finish() {
	schemas := d.doc.Components.Schemas.Map()
	for _, schema := range schemas {
		tighten(schema)
	}
	for _, path := range d.doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Patch, path.Post, path.Delete} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				tighten(p.Schema)
			}
		}
	}
	describe(schemas)
	d.later, d.ignored = laterOf(schemas), ignoredOf(schemas)
}

// tighten takes back that any list may be null.
func tighten(schema *huma.Schema) {
	if schema == nil {
		return
	}
	if schema.Type == huma.TypeArray {
		schema.Nullable = false
		tighten(schema.Items)
	}
	if values, ok := schema.AdditionalProperties.(*huma.Schema); ok {
		tighten(values)
	}
	for _, property := range schema.Properties {
		tighten(property)
	}
}

// zeroAllowed marks the durations and numbers whose zero is a value like any other. In Go the zero of most fields is what they hold when they
// were left out: given in a request it would pass for the default, or for no bound. So it is refused elsewhere, unless the schema's minimum
// takes it in.
const zeroAllowed = "x-zero-allowed"

// besideZero marks numbers that are at least 1, with what somebody is to do who wants 0.
const besideZero = "x-beside-zero"

// describe says in the document what the domain's types say in their comments, and what it asks of them as far as a schema
// can; form.go checks that too.
func describe(schemas map[string]*huma.Schema) {
	say := func(schema, field, text string) { schemas[schema].Properties[field].Description = text }
	choose := func(schema string, fields ...string) {
		for _, field := range fields {
			schemas[schema].OneOf = append(schemas[schema].OneOf, &huma.Schema{Required: []string{field}})
		}
	}
	choose("Target", "http", "exec", "handler", "aws", "email", "workflow")
	choose("Schedule", "cron", "every", "at")
	schemas["Schedule"].DependentRequired = map[string][]string{"phase": {"every"}}
	for _, name := range []string{"Redrive", "Discard", "CancelRuns", "RetryRuns"} {
		choose(name, "runs", "matching")
	}
	for _, name := range []string{"PauseJobs", "ResumeJobs", "DeleteJobs", "LabelJobs", "ExportJobs"} {
		choose(name, "jobs", "matching")
	}
	shape := func(schema, field, pattern string) { schemas[schema].Properties[field].Pattern = pattern }
	shape("HTTPTarget", "url", urlPattern)
	shape("HandlerTarget", "name", job.NamePattern)
	for _, name := range []string{"Job", "NamedJob"} {
		shape(name, "queue", job.NamePattern)
	}
	schemas["NamedJob"].Required = append(schemas["NamedJob"].Required, "name")
	schemas["NamedJob"].Properties["name"].Description = "the job's name"
	one := 1
	schemas["ExecTarget"].Properties["argv"].MinItems = &one
	shape("AWSTarget", "arn", arnPattern)
	shape("AWSTarget", "role_arn", arnPattern)
	schemas["AWSTarget"].Properties["invoke"].Enum = []any{target.InvokeSync, target.InvokeAsync}
	schemas["EmailTarget"].Properties["to"].MinItems = &one
	schemas["EmailTarget"].Properties["to"].Items.MinLength = &one
	for _, field := range []string{"permanent_status", "retry_status"} {
		bound(schemas["HTTPTarget"].Properties[field].Items, 300, 599)
	}
	bound(schemas["ExecTarget"].Properties["permanent_exit_codes"].Items, 1, 255)

	most := func(schema, field string, count int) {
		if schemas[schema] == nil { // of an operation that this server does not have
			return
		}
		if property := schemas[schema].Properties[field]; property.Type == huma.TypeArray {
			property.MaxItems = &count
		} else {
			property.MaxProperties = &count
		}
	}
	most("HTTPTarget", "headers", target.MaxHeaders)
	most("HTTPTarget", "permanent_status", target.MaxStatuses)
	most("HTTPTarget", "retry_status", target.MaxStatuses)
	most("EmailTarget", "to", target.MaxRecipients)
	most("ExecTarget", "argv", target.MaxArgv)
	most("ExecTarget", "env", target.MaxEnv)
	most("ExecTarget", "permanent_exit_codes", target.MaxStatuses)
	for _, name := range []string{"Job", "NamedJob", "RunFilter", "JobFilter"} {
		most(name, "labels", job.MaxLabels)
	}
	most("LabelJobs", "set", job.MaxLabels)
	most("PlayWorkflow", "outcomes", flow.MaxNodes)
	most("JobStatus", "next_runs", shownFires)
	most("WorkRequest", "labels", mostLabels)
	boundScenarios(schemas, most)

	for schema, fields := range map[string][]string{"Schedule": {"phase", "jitter"}, "Trigger": {"delay"}, "JobTrigger": {"delay"},
		"WorkRequest": {"wait"}, "WorkFailure": {"retry_after"}, "ScenarioOutcome": {"takes", "stops_after"}, "ScenarioTrigger": {"delay"}, "ScenarioLine": {"delay"}} {
		for _, field := range fields {
			if schemas[schema] != nil {
				schemas[schema].Properties[field].Extensions = map[string]any{zeroAllowed: true}
			}
		}
	}

	schemas["GateDefinition"].Properties["limit"].Extensions = map[string]any{besideZero: "to let nobody in, close the gate"}

	for schema, fields := range map[string][]string{"Schedule": {"cron", "timezone"}, "HTTPTarget": {"method"}, "ExecTarget": {"dir"},
		"AWSTarget": {"message_group", "source", "detail_type"}, "EmailTarget": {"subject", "from"}} {
		for _, field := range fields {
			schemas[schema].Properties[field].MinLength = &one
		}
	}

	say("Schedule", "cron", "five fields, or six with leading seconds, or a macro such as @daily; docs/schedule.md has the dialect")
	say("Schedule", "every", "fires at the Unix epoch + phase + k × every; at least 1s")
	say("Schedule", "phase", "shifts the fires of every, and is below it; refused without every")
	say("Schedule", "at", "the one instant of a schedule that fires once")
	say("Schedule", "timezone", "IANA name of the zone whose wall clock cron reads; UTC by default")
	say("Schedule", "start", "no fire before")
	say("Schedule", "end", "no fire at or after")
	say("Schedule", "jitter", "how much later than its fire a run may start, up to 10m")
	say("Target", "http", "calls an address")
	say("Target", "exec", "starts a process on the worker's host")
	say("Target", "handler", "calls a Go function that the worker's program registered")
	say("HTTPTarget", "url", "absolute, http or https")
	say("HTTPTarget", "method", "POST by default")
	shape("Signing", "secret", target.SecretNamePattern)
	shape("Signing", "previous", target.SecretNamePattern)
	say("HTTPTarget", "headers", "sent beside Belfry's own; a secret is looked up at each attempt")
	say("HTTPTarget", "sign", "signs the call after Standard Webhooks, with webhook-id, webhook-timestamp and webhook-signature")
	say("Signing", "secret", "name of the secret that holds the key, whsec_ and base64")
	say("Signing", "previous", "name of the secret with the key before, which signs too while receivers change over")
	say("HTTPTarget", "permanent_status", "statuses from 300 to 599 that are never retried")
	say("HTTPTarget", "retry_status", "statuses from 300 to 599 that are retried")
	say("ExecTarget", "argv", "the program and its arguments; no shell")
	say("ExecTarget", "env", "added to what the worker lets its processes inherit; a secret is looked up at each attempt")
	say("ExecTarget", "dir", "absolute; the worker's own folder by default")
	say("ExecTarget", "permanent_exit_codes", "codes from 1 to 255 that are never retried")
	say("HandlerTarget", "name", "of the function")
	say("Target", "workflow", "a graph of steps, each of which calls a target, as /v1/schemas/workflow.json describes it")
	say("Target", "aws", "calls a resource of AWS: a function, queue, topic, event bus or state machine")
	say("AWSTarget", "arn", "of a Lambda function, an SQS queue, an SNS topic, an EventBridge bus or a Step Functions state machine")
	say("AWSTarget", "role_arn", "the role to do it as, which trusts the worker; the worker's own by default")
	say("AWSTarget", "invoke", "of a function: whether its end is waited for, which is the default")
	say("AWSTarget", "message_group", "of a queue or topic: which messages stay in order; the job's name by default where it is FIFO")
	say("AWSTarget", "source", "of an event on a bus; belfry by default")
	say("AWSTarget", "detail_type", "of an event on a bus; the job's name by default")
	say("Target", "email", "sends a mail, by the mail server that the worker's operator names")
	say("EmailTarget", "to", "addresses such as ops@example.org, all in one mail")
	say("EmailTarget", "subject", "one line; by default what a callback tells, such as report failed, and else the job's name")
	say("EmailTarget", "from", "an address of the domain that the worker sends from; the worker's own by default")
}

func bound(schema *huma.Schema, least, most float64) {
	schema.Minimum, schema.Maximum = &least, &most
}
