package flow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// stood is what expressions of a run read, by the path of the node.
type stood struct {
	t       *testing.T
	w       *flow.Workflow
	states  map[string]flow.State // Succeeded where nothing is said
	results map[string]string
}

func (s stood) Payload(context.Context) ([]byte, error) { return []byte(`{"day": "monday"}`), nil }
func (s stood) Run() map[string]any                     { return flow.RunFacts("r", "j", "", "request") }
func (s stood) Caught(int) []flow.Handled               { return nil }

func (s stood) Seen(index int) flow.Seen {
	if state, told := s.states[s.w.Nodes[index].Path]; told {
		return flow.Seen{State: state}
	}
	return flow.Seen{State: flow.Succeeded}
}

func (s stood) Result(_ context.Context, index int) (data []byte, mediaType string, err error) {
	n := &s.w.Nodes[index]
	result, told := s.results[n.Path]
	if n.Kind != flow.KindTask || s.Seen(index).State != flow.Succeeded || !told {
		s.t.Errorf("the result of %s is read, a %s that is %s", n.Path, n.Kind, s.Seen(index).State)
	}
	if strings.HasPrefix(result, "{") || strings.HasPrefix(result, "[") {
		return []byte(result), "application/json", nil
	}
	return []byte(result), "application/octet-stream", nil
}

// A scope gives its output, or else the result of its only last step, or of several an object with theirs; null where it has not succeeded.
func TestWhatAScopeGives(t *testing.T) {
	const body = `"steps": {"in": {"handler": {"name": "x"}}, "u-1": {"needs": ["in"], "handler": {"name": "x"}}, "7up": {"needs": ["in"], "handler": {"name": "x"}}}`
	const one = `"steps": {"in": {"handler": {"name": "x"}}, "u-1": {"needs": ["in"], "handler": {"name": "x"}}}`
	results := map[string]string{"a": `{"id": 1}`, "s/in": `{"rows":  9007199254740993}`, "s/u-1": "\xff\x00 as it is", "s/7up": `[1]`, "s/t/u-1": "deep \xfe", "s/t/in": `{}`}
	for name, row := range map[string]struct {
		scope, reads string
		states       map[string]flow.State
		want         string
	}{
		"its output":                        {`"output": {"rows": "${ .steps.in.result.rows }", "a": "${ .steps.a.result.id }", "day": "on ${ .input.day }"}, ` + body, `${ .steps.s.result }`, nil, `{"a":1,"day":"on monday","rows":9007199254740993}`},
		"a part of its output":              {`"output": {"rows": "${ .steps.in.result.rows }"}, ` + body, `${ .steps.s.result.rows + 1 }`, nil, `9007199254740994`},
		"a constant":                        {`"output": ["$${", null], ` + body, `${ .steps.s.result }`, nil, `["${",null]`},
		"nothing":                           {`"output": null, ` + body, `${ [.steps.s.result] }`, nil, `[null]`},
		"its last step, to the byte":        {one, `${ .steps.s.result }`, nil, "\xff\x00 as it is"},
		"its last step, in a text":          {one, `a ${ .steps.s.result }`, nil, `! steps.last.input: the result of scope s: the result of step s/u-1 is neither JSON nor text: only as a whole it can be handed on`},
		"through two, to the byte":          {`"steps": {"t": {` + one + `}}`, `${ .steps.s.result }`, nil, "deep \xfe"},
		"an output that is whole":           {`"output": "${ .steps.t.result }", "steps": {"t": {` + one + `}, "p": {"pass": {}}}`, `${ .steps.s.result }`, nil, "deep \xfe"},
		"its last steps":                    {`"steps": {"7up": {"handler": {"name": "x"}}, "q": {"pass": {"input": 7}}}`, `${ .steps.s.result }`, nil, `{"7up":[1],"q":7}`},
		"one whose failure another handles": {`"steps": {"7up": {"handler": {"name": "x"}, "catch": [{"to": "q"}]}, "q": {"pass": {"input": 7}}}`, `${ .steps.s.result }`, map[string]flow.State{"s/q": flow.Skipped}, `{"7up":[1],"q":null}`},
		"one of which was skipped":          {`"steps": {"7up": {"handler": {"name": "x"}}, "q": {"pass": {"input": 7}}}`, `${ .steps.s.result }`, map[string]flow.State{"s/7up": flow.Skipped}, `{"7up":null,"q":7}`},
		"of one that was skipped":           {one, `${ .steps.s.result }`, map[string]flow.State{"s/u-1": flow.Skipped}, `null`},
		"of a scope that failed":            {one, `${ .steps.s.result }`, map[string]flow.State{"s": flow.Failed}, `null`},
		"of one that is open":               {`"output": "${ .steps.in.result.rows.x }", ` + body, `${ [.steps.s.state, .steps.s.result] }`, map[string]flow.State{"s": flow.Open}, `["open",null]`},
		"an output that fails":              {`"output": {"x": "${ .steps.in.result.rows.x }"}, ` + body, `${ .steps.s.result.x }`, nil, `! steps.last.input: steps.s.output.x: expected an object but got: number (9007199254740993)`},
		"an output that fails, as whole":    {`"output": {"x": "${ .steps.in.result.rows.x }"}, ` + body, `${ .steps.s.result }`, nil, `! steps.last.input: steps.s.output.x: expected an object but got: number (9007199254740993)`},
		"the state alone":                   {`"output": {"x": "${ .steps.in.result.rows.x }"}, ` + body, `${ .steps.s.state }`, nil, `"succeeded"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := workflow(t, `{"steps": {"a": {"handler": {"name": "x"}}, "s": {"needs": ["a"], `+row.scope+`}, "last": {"needs": ["s"], "handler": {"name": "x"}, "input": "`+row.reads+`"}}}`)
			last, _ := w.Node("last")
			facts := stood{t, w, row.states, results}
			data, _, err := w.Evaluate(facts, nil).Give(t.Context(), last.Data)
			got := string(data)
			if err != nil {
				got = "! " + err.Error()
			}
			if got != row.want {
				t.Errorf("got %s\nwant %s", got, row.want)
			}
		})
	}
}

// What the expressions of a scope read counts for the text that reads its result.
func TestWhatAScopeReadsCountsForWhoReadsIt(t *testing.T) {
	w := workflow(t, `{"steps": {"s": {"output": ["${ .steps.a.result }", "${ .steps.b.result | length }"], "steps": {"a": {"handler": {"name": "x"}}, "b": {"handler": {"name": "x"}}}},
		"last": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.result[1] }"}}}`)
	last, _ := w.Node("last")
	half := `["` + strings.Repeat("x", flow.MaxRead/2) + `"]`
	facts := stood{t, w, nil, map[string]string{"s/a": half, "s/b": half}}
	_, _, err := w.Evaluate(facts, nil).Give(t.Context(), last.Data)
	if want := "steps.last.input: steps.s.output: the result of step s/b is too large to compute with: all that is read may have 8 MiB"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	large := strings.Repeat("y", flow.MaxResult)
	w = workflow(t, `{"steps": {"s": {"steps": {"t": {"steps": {"a": {"handler": {"name": "x"}}}}}}, "p": {"needs": ["s"], "pass": {"input": "${ .steps.s.result }"}},
		"last": {"needs": ["p"], "handler": {"name": "x"}, "input": "${ .steps.p.result }"}}}`)
	last, _ = w.Node("last")
	data, mediaType, err := w.Evaluate(stood{t, w, nil, map[string]string{"s/t/a": large}}, nil).Give(t.Context(), last.Data)
	if err != nil || string(data) != large || mediaType != "application/octet-stream" {
		t.Errorf("got %d bytes of %s, %v, want %d as they are", len(data), mediaType, err, len(large))
	}
	if from := w.Whole(0, stood{t, w, nil, nil}); from == flow.None || w.Nodes[from].Path != "s/t/a" {
		t.Errorf("it is the result of node %d, want that of s/t/a", from)
	}
}

// Which rows say what a step reads follows from the rules: a scope that it waits for by all_success has succeeded, and what its output does not read is not read.
func TestOnlyRowsThatAreNamedAreRead(t *testing.T) {
	const s = `"a": {"handler": {"name": "x"}}, "s": {"needs": ["a"], %s "steps": {"in": {"handler": {"name": "x"}}, "p": {"needs": ["in"], "pass": {"input": "${ .steps.in.result }"}}, "beside": {"handler": {"name": "x"}}, "sw": {"switch": [{"when": ".input.a", "to": "q"}]}, "q": {"pass": {}}}}, `
	const output = `"output": "${ [.steps.p.result, .steps.a.state] }",`
	for name, row := range map[string]struct {
		s, reader string
		rows      []string
		sure      []string
		all       bool
	}{
		"a task":                     {output, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.a.result }"}`, []string{"a"}, []string{"s"}, false},
		"a scope's result":           {output, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"a", "s/in"}, []string{"s"}, false},
		"its state alone":            {output, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.state }"}`, nil, []string{"s"}, false},
		"its error":                  {output, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.error }"}`, nil, []string{"s"}, true},
		"all of it":                  {output, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s }"}`, []string{"a", "s/in"}, []string{"s"}, true},
		"without an output":          {``, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"s/beside", "s/in"}, []string{"s"}, false},
		"by another rule":            {output, `"n": {"needs": ["s"], "rule": "all_done", "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"a", "s/in"}, nil, false},
		"one that may fail":          {`"allow_failure": true, ` + output, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"a", "s/in"}, nil, false},
		"with a condition":           {`"when": ".input.a", ` + output, `"n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"a", "s/in"}, []string{"s"}, false},
		"through a pass, in a scope": {output, `"r": {"needs": ["s"], "pass": {"input": "${ .steps.s.result }"}}, "n": {"needs": ["r"], "steps": {"x": {"handler": {"name": "x"}, "input": "${ .steps.r.result }"}}}`, []string{"a", "s/in"}, []string{"r", "s"}, false},
		"behind who handles it":      {`"catch": [{"to": "h"}], ` + output, `"h": {"handler": {"name": "x"}}, "n": {"needs": ["h"], "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"a", "s/in"}, nil, false},
		"and beside it":              {`"catch": [{"to": "h"}], ` + output, `"h": {"handler": {"name": "x"}}, "n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"a", "s/in"}, []string{"s"}, false},
		"what was caught":            {output, `"f": {"handler": {"name": "x"}, "catch": [{"to": "n"}]}, "n": {"handler": {"name": "x"}, "input": "${ .caught }"}`, []string{"f"}, nil, true},
		"a pass that asks":           {output, `"r": {"needs": ["s"], "when": ".input.a", "pass": {"input": "${ .steps.s.result }"}}, "n": {"needs": ["r"], "handler": {"name": "x"}, "input": "${ .steps.r.result }"}`, []string{"a", "r", "s/in"}, []string{"s"}, false},
	} {
		w := workflow(t, `{"steps": {`+fmt.Sprintf(s, row.s)+row.reader+`}}`)
		n, ok := w.Node("n/x")
		if !ok {
			n, _ = w.Node("n")
		}
		read, facts, all := w.Rows(n.Index)
		var rows, sure []string
		for _, i := range read {
			rows = append(rows, w.Nodes[i].Path)
		}
		for i, fact := range facts {
			if fact.State == flow.Succeeded {
				sure = append(sure, w.Nodes[i].Path)
			}
		}
		slices.Sort(rows)
		slices.Sort(sure)
		if !slices.Equal(rows, row.rows) || !slices.Equal(sure, row.sure) || all != row.all {
			t.Errorf("%s: the rows of %v, sure of %v, all: %v; want %v, %v and %v", name, rows, sure, all, row.rows, row.sure, row.all)
		}
	}
}

// What may be open is noted through scopes as through passes.
func TestWhatMayBeOpenThroughAScope(t *testing.T) {
	const steps = `"g": {"handler": {"name": "x"}}, "q": {"handler": {"name": "x"}},
		"s": {"needs": ["g", "q"], %s "output": "${ [.steps.g.state, .steps.in.state, .steps.t.result] }", "steps": {"in": {"handler": {"name": "x"}}, "t": {"needs": ["in"], "rule": "always", "steps": {"z": {"handler": {"name": "x"}}}}}},`
	for name, row := range map[string]struct {
		s, n string
		want []string
	}{
		"behind all_success":       {``, `"needs": ["s"]`, nil},
		"behind an early rule":     {`"rule": "one_success",`, `"needs": ["s"]`, []string{"g"}},
		"that is open":             {``, `"needs": ["s", "q"], "rule": "one_done"`, []string{"s"}},
		"that is open, both early": {`"rule": "one_success",`, `"needs": ["s", "q"], "rule": "always"`, []string{"g", "s"}},
	} {
		w := workflow(t, `{"steps": {`+fmt.Sprintf(steps, row.s)+`"n": {`+row.n+`, "handler": {"name": "x"}, "input": "${ .steps.s.result }"}}}`)
		n, _ := w.Node("n")
		var got []string
		for _, i := range w.Unsure(n.Index) {
			got = append(got, w.Nodes[i].Path)
		}
		slices.Sort(got)
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v may be open, want %v", name, got, row.want)
		}
	}
}

// A scope is asked once its rule lets it run. Where it does not hold, all in it is skipped; where it fails, nothing in it runs; and where it holds, its end follows
// from its steps.
func TestPlanOfScopesThatAsk(t *testing.T) {
	w := workflow(t, `{"steps": {"a": {"handler": {"name": "x"}},
		"s": {"needs": ["a"], "when": ".steps.a.result", "steps": {"b": {"handler": {"name": "x"}}, "p": {"pass": {}}, "t": {"steps": {"c": {"handler": {"name": "x"}}}}}},
		"e": {"needs": ["s"], "handler": {"name": "x"}}, "f": {"needs": ["s"], "rule": "one_failed", "handler": {"name": "x"}}}}`)
	for name, c := range map[string]struct {
		facts        map[string]flow.State
		release, ask string
		states       map[string]flow.State
	}{
		"before its rule holds":  {nil, "[a]", "[]", map[string]flow.State{"s": flow.Pending, "s/p": flow.Pending}},
		"it is to be asked":      {map[string]flow.State{"a": flow.Succeeded}, "[]", "[s]", map[string]flow.State{"s": flow.Queued, "s/p": flow.Pending, "s/t": flow.Pending, "e": flow.Pending}},
		"it may have been asked": {map[string]flow.State{"s": flow.Queued}, "[a]", "[]", map[string]flow.State{"s": flow.Queued, "s/p": flow.Pending, "e": flow.Pending}},
		"it runs":                {map[string]flow.State{"a": flow.Succeeded, "s": flow.Running}, "[s/b s/t/c]", "[]", map[string]flow.State{"s": flow.Running, "s/p": flow.Succeeded, "e": flow.Pending}},
		"its steps have ended":   {map[string]flow.State{"a": flow.Succeeded, "s": flow.Running, "s/b": flow.Succeeded, "s/t/c": flow.Skipped}, "[e]", "[]", map[string]flow.State{"s": flow.Succeeded, "s/t": flow.Succeeded, "f": flow.Skipped}},
		"one of them failed":     {map[string]flow.State{"a": flow.Succeeded, "s": flow.Running, "s/b": flow.Dead, "s/t/c": flow.Skipped}, "[f]", "[]", map[string]flow.State{"s": flow.Failed, "e": flow.UpstreamFailed}},
		"it does not run":        {map[string]flow.State{"a": flow.Succeeded, "s": flow.Skipped}, "[]", "[]", map[string]flow.State{"s/b": flow.Skipped, "s/p": flow.Skipped, "s/t/c": flow.Skipped, "e": flow.Skipped}},
		"what it asks failed":    {map[string]flow.State{"a": flow.Succeeded, "s": flow.Failed}, "[f]", "[]", map[string]flow.State{"s/b": flow.UpstreamFailed, "s/p": flow.UpstreamFailed, "s/t": flow.UpstreamFailed, "s/t/c": flow.UpstreamFailed, "e": flow.UpstreamFailed}},
	} {
		states, release, d := planned(t, w, c.facts)
		var ask []string
		for _, i := range d.Ask {
			ask = append(ask, w.Nodes[i].Path)
		}
		if fmt.Sprint(release) != c.release || fmt.Sprint(ask) != c.ask {
			t.Errorf("%s: releases %v and asks %v, want %s and %s", name, release, ask, c.release, c.ask)
		}
		for path, want := range c.states {
			if states[path] != want {
				t.Errorf("%s: %s is %s, want %s", name, path, states[path], want)
			}
		}
		if cause := w.Cause(flow.None, &d); name == "what it asks failed" && (cause == flow.None || w.Nodes[cause].Path != "s") {
			t.Errorf("%s: the run fails of node %d, want of s", name, cause)
		}
	}
}

// A simulation asks scopes, and says what they give.
func TestASimulationOfScopes(t *testing.T) {
	w := workflow(t, `{"steps": {"a": {"handler": {"name": "x"}},
		"s": {"needs": ["a"], "when": ".steps.a.result.go", "output": {"sum": "${ .steps.in.result.n + 1 }"}, "steps": {"in": {"handler": {"name": "x"}}}},
		"e": {"needs": ["s"], "rule": "all_done", "handler": {"name": "x"}, "input": "${ [.steps.s.result, .steps.s.error] }"}}, "output": "${ .steps.s.result.sum }"}`)
	for name, row := range map[string]struct{ outcomes, want string }{
		"what it asks is not known": {`{}`, "succeeded a=succeeded s/in=succeeded s=succeeded e=succeeded"},
		"it runs":                   {`{"a": {"result": {"go": true}}, "s/in": {"result": {"n": 6}}}`, `succeeded a=succeeded s/in=succeeded s=succeeded gives {"sum":7} e=succeeded handed [{"sum":7},null] 7`},
		"it does not":               {`{"a": {"result": {"go": false}}}`, `succeeded a=succeeded s/in=skipped s=skipped e=succeeded handed [null,null] null`},
		"what it asks fails":        {`{"a": {"result": {}}}`, `failed s failed: steps.s.when: it gives null; a condition is to give true or false a=succeeded s/in=upstream_failed s=failed steps.s.when: it gives null; a condition is to give true or false e=succeeded handed [null,"steps.s.when: it gives null; a condition is to give true or false"]`},
		"its output fails":          {`{"a": {"result": {"go": true}}, "s/in": {"result": {"n": "x"}}}`, `failed e failed: steps.e.input: steps.s.output.sum: cannot add: string ("x") and number (1) a=succeeded s/in=succeeded s=succeeded steps.s.output.sum: cannot add: string ("x") and number (1) e=failed steps.e.input: steps.s.output.sum: cannot add: string ("x") and number (1)`},
	} {
		outcomes, err := w.ReadOutcomes([]byte(row.outcomes))
		if err != nil {
			t.Fatal(err)
		}
		p := playedAs(t, w, outcomes, nil)
		got := strings.TrimSpace(string(p.State) + " " + p.Reason)
		for _, s := range p.Steps {
			got += " " + s.Path + "=" + string(s.State)
			for word, what := range map[string]string{"gives ": string(s.Result), "handed ": string(s.Input), "": s.Error} {
				if what != "" {
					got += " " + word + what
				}
			}
		}
		if p.Output != nil {
			got += " " + string(p.Output)
		}
		if got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
	}
}

// Each text that somebody has written is listed with what it reads, that of a scope too, and no other.
func TestTheExpressionsOfScopesAreListed(t *testing.T) {
	w := workflow(t, `{"steps": {"a": {"handler": {"name": "x"}}, "s": {"needs": ["a"], "when": ".steps.a.result.go", "output": {"x": ["${ .steps.in.result }"]}, "steps": {"in": {"handler": {"name": "x"}}}},
		"t": {"needs": ["s"], "steps": {"in": {"pass": {"input": "${ .steps.s.result }"}}}}}}`)
	var got []string
	for _, said := range w.Expressions() {
		got = append(got, said.Field+" reads "+strings.Join(said.Reads, ", "))
	}
	if want := []string{"steps.s.when reads .steps.a.result", "steps.s.output.x[0] reads .steps.in.result", "steps.t.steps.in.pass.input reads .steps.s.result"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	text, err := json.Marshal(w)
	if err != nil || !strings.Contains(string(text), `"output":{"x":["${ .steps.in.result }"]}`) {
		t.Errorf("the workflow is written as %s, %v, want with the output of s", text, err)
	}
}

// A failure in a scope that was asked whether it runs may be handled as in any other: it stops nothing where something takes the scope's failure.
func TestAFailureInAScopeThatWasAskedMayBeHandled(t *testing.T) {
	for name, scope := range map[string]string{"caught": `"catch": [{"to": "h"}], `, "allowed": `"allow_failure": true, `, "not at all": ``} {
		w := workflow(t, `{"on_failure": "stop", "steps": {"s": {"when": ".input.a", `+scope+`"steps": {"a": {"handler": {"name": "x"}}, "b": {"handler": {"name": "x"}}}}, "h": {"handler": {"name": "x"}}}}`)
		_, _, d := planned(t, w, map[string]flow.State{"s": flow.Running, "s/a": flow.Failed, "s/b": flow.Queued})
		if stops := d.Stop != flow.None; stops != (scope == "") {
			t.Errorf("%s: the failure in the scope stops the run: %t", name, stops)
		}
	}
}
