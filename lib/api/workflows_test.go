package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
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
	}, Expressions: []wire.WorkflowExpression{{Field: "steps.choose.switch[0].when", Text: ".input.rows > 0", Reads: []string{".input"}}}}
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
		{`{"steps": {"a": {"wait": {"signal": "go"}}}}`, map[string]string{"workflow.steps.a.wait.signal": "want nothing here: signal is not built yet"}},
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

// A job takes a workflow that runs. What is wrong with one is told by its path in the job, and what is not built yet by its name.
func TestAJobTakesAWorkflow(t *testing.T) {
	s := start(t, 0, nil)
	s.send("PUT", "/v1/jobs/a", `{"target": {"workflow": {"steps": {"x": {"handler": {"name": "echo"}}}}}}`).is(201)
	if def := into[wire.Job](s.send("GET", "/v1/jobs/a", "").is(200)).Definition; def.Timeout != 0 || def.Guarantee != "" || def.Retry.MaxAttempts != 0 {
		t.Errorf("a workflow's job has %+v: its steps have timeout, guarantee and retry, and it none", def)
	}
	for body, want := range map[string]map[string]string{
		`{"target": {"workflow": 5}}`:  {"target.workflow": "got a number, want a workflow as an object with steps"},
		`{"target": {"workflow": {}}}`: {"target.workflow.steps": "want an object with the steps by their names, at least one, which is missing"},
		`{"target": {"workflow": {"steps": {"a": {"pass": {}}}}}, "timeout": "1h", "guarantee": "at_most_once", "retry": {"max_attempts": 2}}`: {
			"timeout": `got "1h", want nothing beside a workflow: its steps have it`, "guarantee": `got "at_most_once", want nothing beside a workflow: its steps have it`,
			"retry": `got "a retry", want nothing beside a workflow: its steps have it`},
		`{"target": {"workflow": {"steps": {"a": {"handler": {"name": "echo"}, "input": "${ .steps.b.result }"}, "b": {"pass": {}}}}}}`: {
			"target.workflow.steps.a.input": `got "b" at character 11, want a step that this one waits for; it waits for none`},
		`{"target": {"workflow": {"steps": {"a": {"handler": {"name": "echo"}, "when": ".x"}}}}}`: {"target.workflow.steps.a.when": `got "x" at character 2, want one of input, run and steps`},
		`{"target": {"workflow": {"steps": {"a": {"handler": {"name": "echo"}, "queue": "nowhere"}}}}}`: {
			"target.workflow.steps.a.queue": `got "nowhere", want a queue that has workers, such as "default"`},
	} {
		if fields := s.send("PUT", "/v1/jobs/b", body).refused(422, "invalid"); !reflect.DeepEqual(fields, want) {
			t.Errorf("%s: %q\nwant %q", body, fields, want)
		}
	}
	fields := s.send("PUT", "/v1/jobs/b", `{"target": {"workflow": {}, "handler": {"name": "echo"}}}`).refused(400, "malformed")
	if want := "want exactly one of http, exec, handler, aws, email or workflow"; fields["target"] != want || len(fields) != 1 {
		t.Errorf("%q, want target: %s", fields, want)
	}
}

// What has failed says of what, and who handles it, wherever steps are shown.
func TestStepsWhoseFailureWasCaught(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		const caught = `{"steps": {
			"a": {"handler": {"name": "fail"}, "retry": {"max_attempts": 1}, "catch": [{"codes": ["timeout"], "to": "c"}, {"codes": ["handler"], "to": "b"}]},
			"s": {"needs": ["b"], "steps": {"x": {"fail": {"code": "work:undone"}}}, "catch": [{"to": "c"}]},
			"b": {"handler": {"name": "echo"}, "input": {"why": "${ .caught[0].code }"}}, "c": {"pass": {}}}}`
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": `+caught+`}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{}`).is(202)).ID
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)); r.State != "succeeded" {
			t.Errorf("the run is %s (%s)", r.State, r.Reason)
		}
		want := []string{"a failed handler by b", "b succeeded", "s failed work:undone by c", "s/x failed work:undone", "c succeeded"}
		var steps, graph []string
		for _, one := range into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps", "").is(200)).Items {
			line := strings.TrimSpace(one.Path + " " + one.State + " " + one.Code)
			if one.CaughtBy != "" {
				line += " by " + one.CaughtBy
			}
			steps = append(steps, line)
		}
		if !slices.Equal(steps, want) {
			t.Errorf("%q, want %q", steps, want)
		}
		for _, one := range into[wire.RunGraph](s.send("GET", "/v1/runs/"+id+"/graph", "").is(200)).Steps {
			graph = append(graph, fmt.Sprint(one.Path, one.Needs, one.Catch, one.Catches, one.CaughtBy))
		}
		if want := []string{"a[] [{[timeout] c} {[handler] b}] []b", "b[a] [] [a]", "s[b] [{[] c}] []c", "s/x[] [] []", "c[a s] [] [a s]"}; !slices.Equal(graph, want) {
			t.Errorf("%q, want %q", graph, want)
		}
		if one := into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps?path=a", "").is(200)).Items[0]; one.CaughtBy != "b" || one.Code != "handler" {
			t.Errorf("%+v", one)
		}
		if got := s.send("GET", "/v1/runs/"+id+"/payload?step=b", "").is(200); !strings.Contains(string(got.body), `handler`) {
			t.Errorf("b was handed %s", got.body)
		}
		played := into[flow.Played](s.send("POST", "/v1/workflows/simulate", `{"workflow": `+caught+`, "outcomes": {"a": {"code": "timeout"}}}`).is(200))
		if one := played.Steps[0]; one.Path != "a" || one.CaughtBy != "c" || one.Code != "timeout" {
			t.Errorf("%+v", played.Steps)
		}
	})
}

// The run of a workflow shows its steps: with the run, as a page, one by its path, and as a graph. A step's log is asked for with the run's.
func TestUntilWhenAScopeMayTake(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"steps": {
			"s": {"timeout": "30m", "steps": {"w": {"wait": {"for": "2h"}}}}, "free": {"steps": {"x": {"wait": {"for": "1h"}}}}}}}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{}`).is(202)).ID
		settle()
		step := func(path string) wire.Step {
			return into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps?path="+path, "").is(200)).Items[0]
		}
		released := step("s/w").ReleasedAt
		scope, at := step("s"), released.Add(30*time.Minute)
		if scope.State != "running" || !scope.TimesOutAt.Equal(at) {
			t.Errorf("it is %s, and times out at %v, want running and %v", scope.State, scope.TimesOutAt, at)
		}
		if want := "Its timeout stops it at " + at.UTC().Format(time.RFC3339) + "."; len(scope.Waiting) == 0 || !strings.Contains(scope.Waiting[0].Text, want) {
			t.Errorf("it waits for %+v, want it to say %q", scope.Waiting, want)
		}
		if free := step("free"); free.State != "running" || !free.TimesOutAt.IsZero() {
			t.Errorf("a scope without timeout is %s, and times out at %v", free.State, free.TimesOutAt)
		}
		time.Sleep(31 * time.Minute)
		if scope = step("s"); scope.State != "failed" || scope.Code != "timeout" || scope.Reason != "timeout: the scope was not over after 30m" || !scope.TimesOutAt.IsZero() {
			t.Errorf("later it is %+v", scope)
		}
		if w := step("s/w"); w.State != "cancelled" || w.Reason != "timeout: scope s was not over after 30m" || !w.WaitsUntil.IsZero() {
			t.Errorf("what it waited for is %+v", w)
		}
	})
}

func TestTheStepsOfARun(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"steps": {
			"a": {"handler": {"name": "echo"}, "input": {"n": 1}},
			"s": {"needs": ["a"], "steps": {"x": {"handler": {"name": "echo"}}, "y": {"needs": ["x"], "handler": {"name": "fail"}, "retry": {"max_attempts": 1}}}},
			"b": {"needs": ["s"], "handler": {"name": "echo"}},
			"c": {"needs": ["s"], "rule": "one_failed", "pass": {}}}}}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{"payload": {"day": "monday"}}`).is(202)).ID
		settle()
		r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
		var states []string
		for _, one := range r.Steps {
			states = append(states, one.Path+" "+one.State)
		}
		want := []string{"a succeeded", "s failed", "s/x succeeded", "s/y failed", "b upstream_failed", "c succeeded"}
		if r.State != "failed" || !strings.HasPrefix(r.Reason, "step s/y is failed: ") || !slices.Equal(states, want) {
			t.Errorf("the run is %s (%s) with %q, want %q", r.State, r.Reason, states, want)
		}
		// RUN/PATH, as targets and logs name a step, is answered with what to ask for instead.
		const right = "with GET /v1/runs/%s/steps?path=s%%2Fx, and its log with GET /v1/runs/%[1]s/logs?step=s%%2Fx."
		for _, below := range []string{"", "/logs", "/steps", "/payload", "/graph"} {
			if got := s.send("GET", "/v1/runs/"+id+"%2Fs%2Fx"+below, "").refused(400, "malformed")["run"]; !strings.Contains(got, "want the run's ID alone, \""+id+"\". ") || !strings.Contains(got, fmt.Sprintf(right, id)) {
				t.Errorf("asked for the step in one name%s: %s", below, got)
			}
		}
		if got := s.send("POST", "/v1/runs/"+id+"%2Fs%2Fx/cancel", "{}").refused(400, "malformed")["run"]; !strings.Contains(got, "want the run's ID alone") {
			t.Errorf("told to cancel the step: %s", got)
		}
		if got := s.send("GET", "/v1/runs/"+id+"%2F"+strings.Repeat("long%2F", 20)+"end", "").refused(400, "malformed")["run"]; !strings.Contains(got, "want the run's ID alone") {
			t.Errorf("asked for a step of a long path: %s", got)
		}
		missing := s.send("GET", "/v1/runs/"+id+"/s/x", "")
		missing.refused(404, "no_such_path")
		if !strings.Contains(string(missing.body), fmt.Sprintf(right, id)) {
			t.Errorf("asked for the step by slashes: %s", missing.body)
		}
		page := into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps", "").is(200))
		if len(page.Items) != 6 || page.Items[3].Attempt != 1 || page.Items[3].Attempts[0].Error == "" || page.Items[0].Result != nil || page.Items[4].Attempt != 0 {
			t.Errorf("%+v", page.Items)
		}
		for path, want := range map[string]string{"a": `{"n":1}`, "s/x": `{"day":"monday"}`} {
			one := into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps?path="+path, "").is(200)).Items[0]
			if one.Path != path || strings.ReplaceAll(string(one.Result), " ", "") != want {
				t.Errorf("step %s: %s, want %s", one.Path, one.Result, want)
			}
		}
		graph := into[wire.RunGraph](s.send("GET", "/v1/runs/"+id+"/graph", "").is(200))
		if graph.State != "failed" || len(graph.Steps) != 6 || graph.Steps[4].Needs[0] != "s" || graph.Steps[4].State != "upstream_failed" {
			t.Errorf("%+v", graph)
		}
		s.send("GET", "/v1/runs/"+id+"/logs?step=s/y", "").is(200)
		for _, path := range []string{"/steps?path=z", "/logs?step=z", "/logs?step=s"} {
			s.send("GET", "/v1/runs/"+id+path, "").refused(404, "step_not_found")
		}
		for query, want := range map[string]string{
			"": "a s s/x s/y b c", "state=succeeded": "a s/x c", "state=failed,upstream_failed": "s s/y b", "state=failed&state=upstream_failed": "s s/y b", "state=pending": "",
			"under=s": "s/x s/y", "under=s&state=failed": "s/y",
		} {
			var got []string
			for cursor := ""; ; { // page by page, each of one
				page := into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps?limit=1&"+query+cursor, "").is(200))
				for _, one := range page.Items {
					got = append(got, one.Path)
				}
				if len(page.Items) > 1 {
					t.Errorf("%s: a page of %d", query, len(page.Items))
				}
				if page.Next == "" {
					break
				}
				cursor = "&cursor=" + page.Next
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		s.send("GET", "/v1/runs/"+id+"/steps?under=z", "").refused(404, "step_not_found")
		if fields := s.send("GET", "/v1/runs/"+id+"/steps?under=s/x", "").refused(422, "invalid"); fields["under"] != `got "s/x", want the path of a scope; that step is a task` {
			t.Errorf("%q", fields)
		}
		for _, other := range []string{"state=failed", "under=s"} {
			if fields := s.send("GET", "/v1/runs/"+id+"/steps?path=a&"+other, "").refused(422, "invalid"); len(fields) != 1 {
				t.Errorf("%q", fields)
			}
		}
		s.send("GET", "/v1/runs/"+id+"/steps?state=lost", "").refused(400, "malformed")
		for step, want := range map[string]string{"": `run {"day":"monday"}`, "a": `step {"n":1}`, "s/y": `run {"day":"monday"}`, "b": `run {"day":"monday"}`} {
			query := ""
			if step != "" {
				query = "?step=" + step
			}
			r := s.send("GET", "/v1/runs/"+id+"/payload"+query, "").is(200)
			if got := r.header.Get("Belfry-Payload") + " " + strings.ReplaceAll(string(r.body), " ", ""); got != want {
				t.Errorf("the payload of step %q: %s, want %s", step, got, want)
			}
		}
		for _, step := range []string{"s", "c", "z"} { // a scope, a pass, none
			s.send("GET", "/v1/runs/"+id+"/payload?step="+step, "").refused(404, "step_not_found")
		}
		// The run keeps its workflow when the job has another.
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"steps": {"other": {"pass": {}}}}}}`).is(200)
		if again := into[wire.RunGraph](s.send("GET", "/v1/runs/"+id+"/graph", "").is(200)); string(again.Workflow) != string(graph.Workflow) || !strings.Contains(string(again.Workflow), "one_failed") {
			t.Errorf("%s, before %s", again.Workflow, graph.Workflow)
		}
		s.send("POST", "/v1/runs/"+id+"/retry", `{}`).refused(409, "workflow_begun")
		dead := into[wire.DeadLetterPage](s.send("GET", "/v1/dead-letters", "").is(200))
		if len(dead.Items) != 1 || dead.Items[0].ID != id {
			t.Errorf("dead letters: %+v, want the run alone", dead.Items)
		}
		if runs := into[wire.RunPage](s.send("GET", "/v1/runs", "").is(200)); len(runs.Items) != 1 {
			t.Errorf("%d runs are listed, want that of the workflow alone", len(runs.Items))
		}
		s.send("PUT", "/v1/jobs/plain", echo).is(201)
		plain := into[wire.Run](s.send("POST", "/v1/jobs/plain/runs", `{}`).is(202)).ID
		for _, path := range []string{"/graph", "/steps", "/steps?state=failed", "/payload?step=a", "/logs?step=a"} {
			s.send("GET", "/v1/runs/"+plain+path, "").refused(404, "step_not_found")
		}
	})
}

// A cancel of a workflow's run is heard by its steps that run in the same process at once, and nothing of it starts after.
func TestCancellingAWorkflow(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"defaults": {"timeout": "1h"}, "steps": {"a": {"handler": {"name": "wait"}}, "b": {"handler": {"name": "wait"}},
			"c": {"needs": ["a", "b"], "rule": "all_done", "handler": {"name": "echo"}}}}}}`).is(201)
		id := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{}`).is(202)).ID
		settle()
		r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
		if r.State != "running" || len(r.Waiting) != 1 || r.Waiting[0].Code != "steps" || r.Steps[2].State != "pending" {
			t.Errorf("%+v", r)
		}
		s.send("POST", "/v1/runs/"+id+"/cancel", `{"reason": "enough"}`).is(200)
		settle()
		r = into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200))
		if r.State != "cancelled" || r.Reason != "enough" || r.Steps[0].State != "cancelled" || r.Steps[1].State != "cancelled" || r.Steps[2].State != "cancelled" {
			t.Errorf("%+v", r)
		}
		s.send("POST", "/v1/runs/"+id+"/cancel", `{}`).refused(409, "run_ended")
	})
}

// simulateIn asks for a simulation, under a context of the test's.
func (s *server) simulateIn(ctx context.Context, body string) (int, wire.Problem) {
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/workflows/simulate", strings.NewReader(body))
	r.Host = "127.0.0.1:7340"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	var refused wire.Problem
	_ = json.Unmarshal(w.Body.Bytes(), &refused)
	return w.Code, refused
}

// A simulation whose expressions take too long is refused for good: whoever sends it again is told the same, and is not to try. The time that it has is over here from the
// beginning, since an expression that takes so long is not easily found.
func TestASimulationThatTakesTooLongIsRefused(t *testing.T) {
	s := start(t, 0, nil)
	long := `{"workflow": {"steps": {"a": {"handler": {"name": "x"}}, "b": {"needs": ["a"], "when": ".input | map(. + 1) | add == 0", "handler": {"name": "x"}}}},
		"input": [` + strings.Repeat("0,", 5000) + `0]}`
	over, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(-time.Second), dispatch.ErrSlow)
	defer cancel()
	if status, refused := s.simulateIn(over, long); status != http.StatusUnprocessableEntity || refused.Code != "simulation_too_long" || !strings.Contains(refused.Detail, "longer than 5 s") {
		t.Errorf("it was answered with %d %+v", status, refused)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if status, refused := s.simulateIn(gone, long); refused.Code != "outcome_unknown" {
		t.Errorf("one whose request has ended was answered with %d %+v", status, refused)
	}
	if status, _ := s.simulateIn(t.Context(), long); status != http.StatusOK {
		t.Errorf("in time it is answered with %d", status)
	}
}

// Simulations take turns with each other, and no run waits for one: whoever may read can ask for as many as he likes. Who has waited for too long is told so.
func TestSimulationsTakeTurnsOfTheirOwn(t *testing.T) {
	s := start(t, 0, nil)
	simulate := func(ctx context.Context) (int, string) {
		status, refused := s.simulateIn(ctx, `{"workflow": `+rightETL+`}`)
		return status, refused.Code
	}
	nothing := func(context.Context) error { return nil }
	err := s.node.Dispatch.Simulating(t.Context(), "default", func(context.Context) error {
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if status, code := simulate(short); status != http.StatusTooManyRequests || code != "busy" {
			t.Errorf("it was answered with %d %s, though another simulation has the turn", status, code)
		}
		return s.node.Dispatch.Evaluating(t.Context(), "default", run.ID{}, nothing)
	})
	var status int
	nested := s.node.Dispatch.Evaluating(t.Context(), "default", run.ID{}, func(ctx context.Context) error {
		return s.node.Dispatch.Evaluating(ctx, "default", run.ID{}, func(context.Context) error { // all the room that runs have
			status, _ = simulate(t.Context())
			return nil
		})
	})
	if err != nil || nested != nil || status != http.StatusOK {
		t.Errorf("it is answered with %d while runs evaluate: %v, %v", status, err, nested)
	}
}
