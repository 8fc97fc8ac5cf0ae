package flow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/flow"
)

// Only what the rules leave open is noted at a release: behind an early rule anything may be, and behind all_success nothing.
func TestWhatMayBeOpenFollowsFromTheRules(t *testing.T) {
	const steps = `"g": {"handler": {"name": "x"}}, "p": {"needs": ["g"], %s "handler": {"name": "x"}}, "q": {"needs": ["g"], "handler": {"name": "x"}}`
	const reads = `"handler": {"name": "x"}, "input": "${ [.steps.g.state, .steps.p.state, .steps.q.state] }"`
	for name, row := range map[string]struct {
		p, n string
		want []string
	}{
		"all_success":                {``, `"n": {"needs": ["p", "q"], ` + reads + `}`, nil},
		"all_done: who ran?":         {``, `"n": {"needs": ["p", "q"], "rule": "all_done", ` + reads + `}`, []string{"g"}},
		"none_failed: who ran?":      {``, `"n": {"needs": ["p", "q"], "rule": "none_failed", ` + reads + `}`, []string{"g"}},
		"one_success":                {``, `"n": {"needs": ["p", "q"], "rule": "one_success", ` + reads + `}`, []string{"g", "p", "q"}},
		"one_failed":                 {``, `"n": {"needs": ["p", "q"], "rule": "one_failed", ` + reads + `}`, []string{"g", "p", "q"}},
		"one_done":                   {``, `"n": {"needs": ["p", "q"], "rule": "one_done", ` + reads + `}`, []string{"g", "p", "q"}},
		"always":                     {``, `"n": {"needs": ["p", "q"], "rule": "always", ` + reads + `}`, []string{"g", "p", "q"}},
		"behind an early one":        {`"rule": "one_done",`, `"n": {"needs": ["p"], "handler": {"name": "x"}, "input": "${ [.steps.g.state, .steps.p.state] }"}`, []string{"g"}},
		"in a scope":                 {``, `"n": {"needs": ["p", "q"], "steps": {"in": {` + reads + `}}}`, nil},
		"in a scope behind all_done": {``, `"n": {"needs": ["p", "q"], "rule": "all_done", "steps": {"in": {` + reads + `}}}`, []string{"g"}},
		"early, chosen by a switch":  {``, `"s": {"needs": ["p", "q"], "switch": [{"to": "n"}]}, "n": {"needs": ["q"], "rule": "one_done", ` + reads + `}`, nil},
		"through a pass":             {``, `"r": {"needs": ["p", "q"], "rule": "one_done", "pass": {"input": "${ .steps.q.state }"}}, "n": {"needs": ["r"], "handler": {"name": "x"}, "input": "${ .steps.r.result }"}`, []string{"q"}},
		"through two":                {``, `"r": {"needs": ["p", "q"], "rule": "one_done", "pass": {"input": "${ .steps.q.state }"}}, "s": {"needs": ["r"], "pass": {"input": "${ [.steps.r.result, .steps.p.state] }"}}, "n": {"needs": ["s"], "handler": {"name": "x"}, "input": "${ .steps.s.result }"}`, []string{"p", "q"}},
		"a pass's state alone":       {``, `"r": {"needs": ["p", "q"], "rule": "one_done", "pass": {"input": "${ .steps.q.state }"}}, "n": {"needs": ["r"], "handler": {"name": "x"}, "input": "${ .steps.r.state }"}`, nil},
		"a pass that waits for all":  {``, `"r": {"needs": ["p", "q"], "pass": {"input": "${ .steps.g.state }"}}, "n": {"needs": ["r"], "rule": "all_done", "handler": {"name": "x"}, "input": "${ .steps.r.result }"}`, nil},
		"a pass that is open":        {``, `"r": {"needs": ["q"], "pass": {"input": "${ .steps.q.state }"}}, "n": {"needs": ["r", "p"], "rule": "one_done", "handler": {"name": "x"}, "input": "${ .steps.r.result }"}`, []string{"r"}},
		"names nothing":              {``, `"n": {"needs": ["p", "q"], "rule": "always", "handler": {"name": "x"}, "input": "${ .input }"}`, nil},
	} {
		w := workflow(t, `{"steps": {`+fmt.Sprintf(steps, row.p)+`, `+row.n+`}}`)
		n, ok := w.Node("n/in")
		if !ok {
			n, _ = w.Node("n")
		}
		var got []string
		for _, i := range w.Unsure(n.Index) {
			got = append(got, w.Nodes[i].Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v may be open, want %v", name, got, row.want)
		}
	}
}

// A simulation evaluates what it knows enough for, and says what steps are handed.
func TestASimulationEvaluatesExpressions(t *testing.T) {
	w := workflow(t, `{"steps": {
		"extract": {"handler": {"name": "x"}},
		"rows": {"needs": ["extract"], "pass": {"input": "${ .steps.extract.result.rows }"}},
		"size": {"needs": ["rows"], "switch": [{"when": ".steps.rows.result > .input.most", "to": "large"}, {"to": "small"}]},
		"large": {"handler": {"name": "x"}, "input": "${ .steps.extract.result }"},
		"small": {"handler": {"name": "x"}, "when": ".steps.extract.result.go", "input": {"of": "${ .run.job }", "state": "is ${ .steps.extract.state }"}},
		"end": {"needs": ["large", "small"], "rule": "all_done", "pass": {}}},
		"output": "${ {large: .steps.large.state, small: .steps.small.state} }"}`)
	for name, row := range map[string]struct{ outcomes, input, want string }{
		"nothing is known":       {`{}`, ``, `extract=succeeded rows=succeeded size=succeeded large=skipped small=succeeded end=succeeded out={"large":"skipped","small":"succeeded"}`},
		"large":                  {`{"extract": {"result": {"rows": 7}}}`, `{"most": 5}`, `large={"rows": 7} extract=succeeded rows=succeeded size=succeeded small=skipped large=succeeded end=succeeded out={"large":"succeeded","small":"skipped"}`},
		"small":                  {`{"extract": {"result": {"rows": 7, "go": true}}}`, `{"most": 9}`, `small={"of":"simulated","state":"is succeeded"} extract=succeeded rows=succeeded size=succeeded large=skipped small=succeeded end=succeeded out={"large":"skipped","small":"succeeded"}`},
		"small, and not":         {`{"extract": {"result": {"rows": 7, "go": false}}}`, `{"most": 9}`, `extract=succeeded rows=succeeded size=succeeded large=skipped small=skipped end=succeeded out={"large":"skipped","small":"skipped"}`},
		"a condition fails":      {`{"extract": {"result": {"rows": 7}}}`, `{"most": 9}`, `small! extract=succeeded rows=succeeded size=succeeded large=skipped small=failed end=succeeded failed: small failed: steps.small.when: it gives null; a condition is to give true or false`},
		"told, whatever it says": {`{"extract": {"result": {"rows": 7, "go": true}}, "size": {"to": "large"}}`, `{"most": 9}`, `large={"rows": 7, "go": true} extract=succeeded rows=succeeded size=succeeded small=skipped large=succeeded end=succeeded out={"large":"succeeded","small":"skipped"}`},
	} {
		outcomes, err := w.ReadOutcomes([]byte(row.outcomes))
		if err != nil {
			t.Fatal(err)
		}
		var input json.RawMessage
		if row.input != "" {
			input = json.RawMessage(row.input)
		}
		p := playedAs(t, w, outcomes, input)
		var said, ends []string
		for _, s := range p.Steps {
			ends = append(ends, s.Path+"="+string(s.State))
			if s.Input != nil && s.Path != "small" || s.Input != nil && input != nil {
				said = append(said, s.Path+"="+string(s.Input))
			}
			if s.Error != "" {
				said = append(said, s.Path+"!")
			}
		}
		got := strings.Join(append(said, ends...), " ")
		if p.Output != nil {
			got += " out=" + string(p.Output)
		}
		if p.State != flow.Succeeded {
			got += " " + string(p.State) + ": " + p.Reason
		}
		if got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, row.want)
		}
	}
}

// Names of fields stand for themselves, with and without an expression beside them.
func TestNamesOfDataAreNoExpressions(t *testing.T) {
	w := workflow(t, `{"steps": {
		"constant": {"pass": {"input": {"$${a": "$${"}}},
		"filled": {"pass": {"input": {"$${a": "$${${ .run.job }"}}}},
		"output": "${ [.steps.constant.result, .steps.filled.result] }"}`)
	outcomes, err := w.ReadOutcomes([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(playedAs(t, w, outcomes, nil).Output), `[{"${a":"${"},{"${a":"${simulated"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The page names each function that an expression may use, and no other.
func TestThePageNamesTheFunctions(t *testing.T) {
	page, err := os.ReadFile("../../docs/workflow-data.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- functions -->")
	table, _, _ = strings.Cut(table, "<!-- /functions -->")
	var named []string
	for _, m := range regexp.MustCompile("`([@a-z_0-9]+)`").FindAllStringSubmatch(table, -1) {
		named = append(named, m[1])
	}
	functions, want := expression.Functions()
	for _, f := range functions {
		name, _, _ := strings.Cut(f, "/")
		want = append(want, name)
	}
	slices.Sort(named)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(named, want) {
		t.Errorf("the page names %v\nwant %v", named, want)
	}
}
