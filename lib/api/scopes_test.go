package api_test

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// What a scope gives is shown as the result of a step, whole or by its size, and given by itself, in parts too; and of one whose output fails why there is none.
func TestTheResultOfAScope(t *testing.T) {
	running(t, func(t *testing.T, s *server) {
		s.send("PUT", "/v1/jobs/flow", `{"target": {"workflow": {"steps": {
			"made": {"when": ".input.go", "output": {"n": "${ .steps.x.result.n + 1 }"}, "steps": {"x": {"handler": {"name": "echo"}}}},
			"whole": {"steps": {"in": {"steps": {"x": {"handler": {"name": "echo"}, "input": "${ .input }"}}}}},
			"wrong": {"output": "${ .steps.x.result.n.m }", "steps": {"x": {"handler": {"name": "echo"}}}},
			"idle": {"when": ".input.go | not", "steps": {"x": {"handler": {"name": "echo"}}}},
			"bad": {"allow_failure": true, "steps": {"x": {"handler": {"name": "fail"}, "retry": {"max_attempts": 1}}}},
			"p": {"pass": {}}}}}}`).is(201)
		large := `{"go":true,"n":7,"x":"` + strings.Repeat("y", 300<<10) + `"}`
		id := into[wire.Run](s.send("POST", "/v1/jobs/flow/runs", `{"payload": `+large+`}`).is(202)).ID
		settle()
		if r := into[wire.Run](s.send("GET", "/v1/runs/"+id, "").is(200)); r.State != "succeeded" {
			t.Fatalf("the run is %s: %s", r.State, r.Reason)
		}
		for path, want := range map[string]wire.Step{
			"made":  {State: "succeeded", Result: []byte(`{"n":8}`)},
			"whole": {State: "succeeded", ResultSize: int64(len(large)), ResultType: "application/json"},
			"wrong": {State: "succeeded", Reason: "expression: steps.wrong.output: expected an object but got: number (7)"},
			"idle":  {State: "skipped", Reason: "its condition does not hold"},
			"bad":   {State: "failed"},
		} {
			one := into[wire.StepPage](s.send("GET", "/v1/runs/"+id+"/steps?path="+path, "").is(200)).Items[0]
			if one.State != want.State || strings.Join(strings.Fields(string(one.Result)), "") != string(want.Result) || one.ResultSize != want.ResultSize || want.ResultType != "" && one.ResultType != want.ResultType || one.Reason != want.Reason {
				t.Errorf("%s is %s (%s) with %s, %d bytes of %q; want %+v", path, one.State, one.Reason, one.Result, one.ResultSize, one.ResultType, want)
			}
			if path == "made" && (!one.EndedAt.IsZero() || one.Attempt != 0) {
				t.Errorf("the answer of a scope is shown as its end: %+v", one)
			}
		}
		made := s.send("GET", "/v1/runs/"+id+"/result?step=made", "").is(200)
		if string(made.body) != `{"n":8}` || made.header.Get("Content-Type") != "application/json" || made.header.Get("Content-Disposition") != `attachment; filename="`+id+`.made.result"` {
			t.Errorf("%s with %v", made.body, made.header)
		}
		if got := s.send("GET", "/v1/runs/"+id+"/result?step=whole", "").is(200); string(got.body) != large {
			t.Errorf("got %d bytes, want %d", len(got.body), len(large))
		}
		if got := s.send("GET", "/v1/runs/"+id+"/result?step=made", "", "Range", "bytes=2-4").is(206); string(got.body) != `n":` {
			t.Errorf("got %s of the result", got.body)
		}
		for _, path := range []string{"idle", "bad"} {
			s.send("GET", "/v1/runs/"+id+"/result?step="+path, "").is(204)
		}
		if got := s.send("GET", "/v1/runs/"+id+"/result?step=wrong", ""); !strings.Contains(string(got.body), "Step wrong of run "+id+" gives nothing: expression: steps.wrong.output: expected an object") {
			t.Errorf("%s", got.body)
		} else {
			got.refused(409, "expression_failed")
		}
		s.send("GET", "/v1/runs/"+id+"/result?step=p", "").refused(404, "step_not_found")
		s.send("GET", "/v1/runs/"+id+"/result?step=made", "", s.of("acme")...).refused(404, "run_not_found")
	})
}
