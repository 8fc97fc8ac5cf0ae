package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

const etl = `{"steps": {
	"extract": {"http": {"url": "https://user.example.org/extract?token=x"}},
	"choose": {"needs": ["extract"], "switch": [{"when": ".input.rows > 0", "to": "parts"}, {"to": "none"}]},
	"parts": {"steps": {"load": {"handler": {"name": "nobody has this"}}}},
	"none": {"pass": {}},
	"end": {"needs": ["parts", "none"], "rule": "none_failed_min_one_success", "handler": {"name": "report"}, "queue": "far"}}}`

var rightETL = strings.Replace(etl, "nobody has this", "load", 1)

func TestARightWorkflowIsAnsweredWithItsGraph(t *testing.T) {
	s := start(t, 0, nil)
	got := into[wire.WorkflowGraph](s.send("POST", "/v1/workflows/validate", `{"workflow": `+rightETL+`}`).is(200))
	want := wire.WorkflowGraph{Timeout: got.Timeout, Steps: []wire.WorkflowStep{
		{Path: "extract", Kind: "task", Target: "http POST https://user.example.org/extract", Needs: []string{}, Rule: "all_success"},
		{Path: "choose", Kind: "switch", Needs: []string{"extract"}, Rule: "all_success", Ways: []wire.WorkflowWay{{When: ".input.rows > 0", To: "parts"}, {To: "none"}}},
		{Path: "none", Kind: "pass", Needs: []string{"choose"}, Rule: "all_success", Switch: "choose"},
		{Path: "parts", Kind: "scope", Needs: []string{"choose"}, Rule: "all_success", Switch: "choose"},
		{Path: "parts/load", Kind: "task", Target: "handler load", Needs: []string{}, Rule: "all_success"},
		{Path: "end", Kind: "task", Target: "handler report", Needs: []string{"none", "parts"}, Rule: "none_failed_min_one_success"},
	}}
	if !reflect.DeepEqual(got, want) || got.Timeout.Std() != flow.DefaultTimeout {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestAWrongWorkflowIsAnsweredWithAllThatIsWrong(t *testing.T) {
	s := start(t, 0, nil)
	for _, c := range []struct {
		workflow string
		fields   map[string]string
	}{
		{etl, map[string]string{"workflow.steps.parts.steps.load.handler.name": `got "nobody has this", want 1 to 128 letters, digits, dots, underscores or hyphens, beginning with a letter or digit`}},
		{`{"steps": {"a": {"needs": ["b"], "pass": {}}, "b": {"needs": ["a"], "pass": {}}, "c": {"needs": ["aa"], "handler": {"name": "x"}, "queue": "nowhere"}}}`, map[string]string{
			"workflow.steps.a.needs[0]": "got the cycle a → b → a, want steps that do not wait for themselves: in the cycle each needs the next",
			"workflow.steps.c.needs[0]": `got "aa", want the name of a step in the same scope, which are a, b, c`,
			"workflow.steps.c.queue":    `got "nowhere", want a queue that has workers, such as "default"`}},
		{`{"steps": {"a": {"wait": {"for": "1h"}}}}`, map[string]string{"workflow.steps.a.wait": "want nothing here: wait is not built yet"}},
		{`[]`, map[string]string{"workflow": "got an array, want a workflow as an object with steps"}},
		{`null`, map[string]string{"workflow": "got null, want a workflow as an object with steps"}},
		{`{"steps": {"a": {"pass": {}}, "a": {"pass": {}}}}`, map[string]string{"workflow": "want JSON with each name once: line 1: a: given twice; first in line 1"}},
		{`{"steps": {"a": {"handler": {"name": "x"}, "input": "` + strings.Repeat("x", 40_000) + `"}}}`, map[string]string{"workflow": "want at most 32768 bytes as JSON without blanks; it has 40051"}},
	} {
		for _, path := range []string{"/v1/workflows/validate", "/v1/workflows/simulate"} {
			fields := s.send("POST", path, `{"workflow": `+c.workflow+`}`).refused(422, "invalid")
			if strings.HasSuffix(path, "simulate") { // which asks for no queue
				if c.fields["workflow.steps.c.queue"] != "" {
					fields["workflow.steps.c.queue"] = c.fields["workflow.steps.c.queue"]
				}
			}
			if !reflect.DeepEqual(fields, c.fields) {
				t.Errorf("%s %.100s: %q\nwant %q", path, c.workflow, fields, c.fields)
			}
		}
	}
	for body, field := range map[string]string{`{}`: "workflow", `{"workflow": {"steps": {"a": {"pass": {}}}}, "more": 1}`: "more"} {
		if fields := s.send("POST", "/v1/workflows/validate", body).refused(400, "malformed"); len(fields) != 1 || fields[field] == "" {
			t.Errorf("%s: %q", body, fields)
		}
	}
}

// However many fields are wrong, a hundred are named and the rest is counted.
func TestAWorkflowNamesAHundredWrongFields(t *testing.T) {
	s := start(t, 0, nil)
	var steps []string
	for i := range 250 {
		steps = append(steps, fmt.Sprintf(`"s%d": {"needs": ["t%d"], "pass": {}}`, i, i))
	}
	var p wire.Problem
	if r := s.send("POST", "/v1/workflows/validate", `{"workflow": {"steps": {`+strings.Join(steps, ",")+`}}}`); r.status != 422 || json.Unmarshal(r.body, &p) != nil || len(p.Errors) != 100 || p.MoreErrors != 150 {
		t.Errorf("%d: %d errors, %d more", r.status, len(p.Errors), p.MoreErrors)
	}
}

func TestAWorkflowIsSimulated(t *testing.T) {
	s := start(t, 0, nil)
	states := func(body string) (state string, steps map[string]string, order []string) {
		t.Helper()
		played := into[flow.Played](s.send("POST", "/v1/workflows/simulate", body).is(200))
		steps = map[string]string{}
		for _, step := range played.Steps {
			steps[step.Path] = string(step.State)
			order = append(order, step.Path)
		}
		return string(played.State), steps, order
	}
	state, steps, order := states(`{"workflow": ` + rightETL + `, "input": {"rows": 3}, "outcomes": {"choose": {"to": "parts"}, "parts/load": "failed"}}`)
	want := map[string]string{"extract": "succeeded", "choose": "succeeded", "parts": "failed", "parts/load": "failed", "none": "skipped", "end": "upstream_failed"}
	if state != "failed" || !reflect.DeepEqual(steps, want) || order[0] != "extract" {
		t.Errorf("%s %v %v", state, steps, order)
	}
	state, steps, _ = states(`{"workflow": ` + rightETL + `}`)
	if state != "succeeded" || steps["none"] != "succeeded" || steps["parts"] != "skipped" || steps["end"] != "succeeded" {
		t.Errorf("%s %v", state, steps)
	}
	for outcomes, field := range map[string]string{`{"extrct": "failed"}`: "outcomes.extrct", `{"parts": "failed"}`: "outcomes.parts", `{"choose": {"to": "end"}}`: "outcomes.choose.to"} {
		if fields := s.send("POST", "/v1/workflows/simulate", `{"workflow": `+rightETL+`, "outcomes": `+outcomes+`}`).refused(422, "invalid"); len(fields) != 1 || fields[field] == "" {
			t.Errorf("%s: %q", outcomes, fields)
		}
	}
	var many []string
	for i := range flow.MaxNodes + 1 {
		many = append(many, fmt.Sprintf(`"s%d": "failed"`, i))
	}
	if fields := s.send("POST", "/v1/workflows/simulate", `{"workflow": `+rightETL+`, "outcomes": {`+strings.Join(many, ",")+`}}`).refused(400, "malformed"); fields["outcomes"] == "" {
		t.Errorf("%q", fields)
	}
}

func TestTheSchemaOfWorkflowsIsServed(t *testing.T) {
	s := start(t, 0, nil)
	r := s.send("GET", "/v1/schemas/workflow.json", "").is(200)
	want, err := json.Marshal(flow.Schema())
	if err != nil || string(r.body) != string(want) || r.header.Get("Content-Type") != "application/schema+json" {
		t.Errorf("%s %.100s, %v", r.header.Get("Content-Type"), r.body, err)
	}
}

// Whoever may read may check: nothing is stored, and nothing is told of a tenant but which queues it has.
func TestWhoMayReadMayCheckWorkflows(t *testing.T) {
	s := start(t, 0, nil)
	reader := bearing(s.token(access.DefaultTenant, access.Read))
	for _, path := range []string{"/v1/workflows/validate", "/v1/workflows/simulate"} {
		s.send("POST", path, `{"workflow": {"steps": {"a": {"pass": {}}}}}`, reader...).is(200)
	}
	s.send("GET", "/v1/schemas/workflow.json", "", reader...).is(200)
}

// No job can have a workflow yet. Who tries is told what can be done.
func TestAJobWithAWorkflowIsRefusedByName(t *testing.T) {
	s := start(t, 0, nil)
	const told = "not built yet: a workflow can be checked and simulated, but no job can have one; try POST /v1/workflows/validate, or belfry workflow validate FILE"
	for body, want := range map[string]map[string]string{
		`{"target": {"workflow": ` + rightETL + `}}`:                                      {"target.workflow": told},
		`{"target": {"workflow": 5}}`:                                                     {"target.workflow": told},
		`{"target": {"workflow": {}, "handler": {"name": "echo"}}}`:                       {"target.workflow": told},
		`{"target": {"workflow": {}}, "timeout": "90h"}`:                                  {"target.workflow": told, "timeout": `got "90h", want a duration from 1s to 1d`},
		`{"target": {"workflow": {}, "http": {"url": "x"}, "handler": {"name": "echo"}}}`: {"target.workflow": told, "target": "want exactly one of http, exec, handler, aws or email", "target.http.url": "want"},
		`{"target": {"workfow": {}}}`:                                                     {"target.workfow": "unknown field; want aws, email, exec, handler or http", "target": "want exactly one of http, exec, handler, aws or email"},
	} {
		fields := s.send("PUT", "/v1/jobs/a", body).refused(400, "malformed")
		if _, vague := want["target.http.url"]; vague && fields["target.http.url"] != "" {
			fields["target.http.url"] = "want"
		}
		if !reflect.DeepEqual(fields, want) {
			t.Errorf("%s: %q\nwant %q", body, fields, want)
		}
	}
	if fields := s.send("POST", "/v1/jobs/batch", `{"jobs": [{"name": "a", "target": {"workflow": {}}}]}`).refused(400, "malformed"); fields["jobs[0].target.workflow"] != told || len(fields) != 1 {
		t.Errorf("%q", fields)
	}
}
