package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// Each clause takes the failures of its codes, and the first that does counts.
func TestWhoHandlesAFailure(t *testing.T) {
	w := workflow(t, `{"steps": {
		"call": {"http": {"url": "https://example.org"}, "guarantee": "at_most_once", "catch": [{"codes": ["http_status:503", "timeout"], "to": "a"}, {"codes": ["http_status:5xx", "unknown"], "to": "b"}, {"codes": ["http_status"], "to": "c"}]},
		"hand": {"handler": {"name": "x"}, "catch": [{"codes": ["handler:stock"], "to": "a"}, {"codes": ["handler"], "to": "b"}, {"to": "c"}]},
		"scope": {"steps": {"x": {"exec": {"argv": ["x"]}}, "y": {"needs": ["x"], "fail": {"code": "work:undone"}}}, "catch": [{"codes": ["work"], "to": "a"}, {"codes": ["exit:3"], "to": "b"}]},
		"a": {"pass": {}}, "b": {"pass": {}}, "c": {"pass": {}}}}`)
	for _, row := range []struct {
		path  string
		state flow.State
		code  string
		want  string // "" for nobody
	}{
		{"call", flow.Failed, "http_status:503", "a"},
		{"call", flow.Failed, "http_status:504", "b"},
		{"call", flow.Failed, "http_status:404", "c"},
		{"call", flow.Failed, "http_status", "c"},
		{"call", flow.Unknown, "timeout", "a"},
		{"call", flow.Unknown, "crash", "b"},
		{"call", flow.Failed, "crash", ""},
		{"call", flow.Dead, "redirect", ""},
		{"call", flow.Failed, "http_status:5030", "c"},
		{"call", flow.Succeeded, "http_status:503", ""},
		{"call", flow.Skipped, "http_status:503", ""},
		{"hand", flow.Failed, "handler:stock", "a"},
		{"hand", flow.Failed, "handler:stocks", "b"},
		{"hand", flow.Dead, "panic", "c"},
		{"hand", flow.Cancelled, "cancelled", "c"},
		{"hand", flow.Failed, "", "c"},
		{"scope/x", flow.Failed, "exit:3", "b"},
		{"scope/x", flow.Failed, "exit:33", ""},
		{"scope/x", flow.Succeeded, "", "a"}, // then y fails
	} {
		n, _ := w.Node(row.path)
		facts := make([]flow.Fact, len(w.Nodes))
		facts[n.Index] = flow.Fact{State: row.state, To: flow.None, Code: row.code}
		whole := n.Index
		if n.Scope != flow.None {
			whole = n.Scope
		}
		got, d := "", w.Plan(facts)
		if c, caught := d.Caught[whole]; caught {
			got = w.Nodes[c.To].Name
		}
		if got != row.want {
			t.Errorf("%s is %s of %q: %q handles it, want %q", row.path, row.state, row.code, got, row.want)
		}
	}
}

const caught = `{"steps": {
	"load": {"handler": {"name": "x"}, "catch": [{"codes": ["handler:stock"], "to": "order"}, {"codes": ["timeout"], "to": "undo"}]},
	"parts": {"steps": {"one": {"handler": {"name": "x"}}, "two": {"exec": {"argv": ["x"]}}, "three": {"needs": ["two"], "rule": "all_done", "handler": {"name": "x"}}}, "catch": [{"to": "undo"}]},
	"ship": {"needs": ["load"], "handler": {"name": "x"}},
	"order": {"handler": {"name": "x"}, "when": ".caught[0].step == \"load\"", "input": {"why": "${ .caught[0].code }"}},
	"undo": {"steps": {"it": {"handler": {"name": "x"}, "input": "${ .caught }"}}},
	"end": {"needs": ["ship", "order", "undo"], "rule": "none_failed_min_one_success", "handler": {"name": "x"}, "input": "${ .steps.load.state }"}}}`

// What a simulation says of failures that are caught: a line for each step that is not what it is without one.
func TestFailuresThatAreCaughtInASimulation(t *testing.T) {
	for outcomes, want := range map[string][]string{
		`{"load": {"code": "handler:stock"}}`: {"succeeded", "load failed by order of handler:stock", "ship skipped", `order succeeded {"why":"handler:stock"}`, `end succeeded "failed"`, "undo skipped"},
		`{"load": {"takes": "1h"}, "parts/two": {"code": "exit:3"}}`: {"succeeded", "load dead by undo of timeout", "parts failed by undo of exit:3", "parts/two failed", "parts/three succeeded", "ship skipped",
			`undo/it succeeded [{"code":"timeout","error":null,"step":"load"},{"code":"exit:3","error":null,"step":"parts"}]`, "undo succeeded", `end succeeded "dead"`},
		`{"load": "failed"}`: {"failed: load failed", "load failed", "ship upstream_failed", "end upstream_failed"},
		`{"load": {"code": "handler:stock"}, "order": "dead"}`: {"failed: order is dead", "load failed by order of handler:stock", "ship skipped", `order dead {"why":"handler:stock"}`, "end upstream_failed"},
	} {
		w := workflow(t, caught)
		o, err := w.ReadOutcomes([]byte(outcomes))
		if err != nil {
			t.Fatal(err)
		}
		p := playedAs(t, w, o, nil)
		lines := []string{strings.TrimSuffix(string(p.State)+": "+p.Reason, ": ")}
		for _, s := range p.Steps {
			line := fmt.Sprintf("%s %s", s.Path, s.State)
			if s.CaughtBy != "" {
				line += " by " + s.CaughtBy + " of " + s.Code
			}
			if s.Input != nil {
				line += " " + string(s.Input)
			}
			lines = append(lines, line)
		}
		for _, one := range want {
			if !slices.Contains(lines, one) {
				t.Errorf("%s: %q is not in\n%s", outcomes, one, strings.Join(lines, "\n"))
			}
		}
	}
}

// A workflow that stops for a failure ends at once: what was open is cancelled, and what had followed before stays.
func TestAFailureThatStopsASimulation(t *testing.T) {
	const steps = `"a": {"handler": {"name": "x"}}, "b": {"handler": {"name": "x"}}, "c": {"needs": ["b"], "handler": {"name": "x"}}, "d": {"needs": ["a"], "rule": "all_done", "handler": {"name": "x"}},
		"s": {"steps": {"x": {"handler": {"name": "x"}}, "y": {"handler": {"name": "x"}}}%s}, "h": {"needs": ["b"], "rule": "all_done", "pass": {}}`
	for name, row := range map[string]struct{ more, outcomes, want string }{
		"stops":       {"", `{"a": "failed", "b": {"takes": "9s"}, "s/y": {"takes": "2s"}, "s/x": {"takes": "500ms"}}`, "failed: a failed; a failed at 1s, d cancelled at 1s, s/x succeeded at 500ms, b cancelled at 1s, c cancelled at 1s, h cancelled at 1s, s/y cancelled at 1s, s cancelled at 1s"},
		"in a scope":  {"", `{"b": {"takes": "9s"}, "s/x": {"code": "panic"}, "s/y": {"takes": "5s"}}`, "failed: s/x failed; a succeeded at 1s, s/x failed at 1s, b cancelled at 1s, c cancelled at 1s, d cancelled at 1s, h cancelled at 1s, s/y cancelled at 1s, s cancelled at 1s"},
		"scope waits": {`, "allow_failure": true`, `{"s/x": "failed", "s/y": {"takes": "5s"}}`, "succeeded"},
		"nothing":     {"", `{}`, "succeeded"},
	} {
		w := workflow(t, `{"on_failure": "stop", "steps": {`+fmt.Sprintf(steps, row.more)+`}}`)
		o, err := w.ReadOutcomes([]byte(row.outcomes))
		if err != nil {
			t.Fatal(err)
		}
		p := playedAs(t, w, o, nil)
		var ends []string
		for _, s := range p.Steps {
			ends = append(ends, fmt.Sprintf("%s %s at %s", s.Path, s.State, s.EndedAfter))
		}
		got := strings.TrimSuffix(string(p.State)+": "+p.Reason, ": ") + "; " + strings.Join(ends, ", ")
		state, all, found := strings.Cut(row.want, "; ")
		for _, one := range strings.Split(all, ", ") {
			if !strings.HasPrefix(got, state) || found && !slices.Contains(ends, one) {
				t.Errorf("%s: got %s\nwant %s, %s", name, got, state, one)
			}
		}
	}
}

func TestOutcomesWithCodes(t *testing.T) {
	w := workflow(t, caught)
	for outcomes, want := range map[string]string{
		`{"load": {"code": "exit:3"}}`:                      `load.code: got "exit:3", want a code that the step can fail with: crash, expression, handler, handler:CODE, panic, payload, result_too_large, timeout, too_slow`,
		`{"load": {"code": "panic", "state": "succeeded"}}`: `load.code: got "panic", want nothing beside the state succeeded`,
		`{"load": {"code": 3}}`:                             `load.code: got 3, want a code that the step can fail with, such as "timeout"`,
		`{"parts/two": {"code": "unknown"}}`:                `parts/two.code: got "unknown", want a code`,
	} {
		if _, err := w.ReadOutcomes([]byte(outcomes)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", outcomes, err, want)
		}
	}
	if _, err := workflow(t, `{"steps": {"a": {"http": {"url": "https://example.org"}}}}`).ReadOutcomes([]byte(`{"a": {"code": "http_status:5xx"}}`)); err == nil {
		t.Error("an outcome may be any status of a hundred")
	}
}

// .caught is of steps that a catch leads to alone.
func TestWhoReadsWhatWasCaught(t *testing.T) {
	_, err := flow.Read([]byte(`{"steps": {"a": {"handler": {"name": "x"}, "catch": [{"to": "b"}]}, "b": {"pass": {"input": "${ .caught }"}}, "c": {"needs": ["b"], "handler": {"name": "x"}, "input": "${ .steps.b.result[0].code }"},
		"d": {"needs": ["b"], "handler": {"name": "x"}, "input": "x ${ .caught[0].code }"}}, "output": "${ .caught }"}`))
	const want = "steps.d.input: got \"caught\" at character 7, want what this step can read: .caught is of steps that a catch leads to"
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "output: got \"caught\"") || strings.Contains(err.Error(), "steps.c") {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// What a step waits for that handles failures: all that lead to it.
func TestAHandlerAwaitsWhatLeadsToIt(t *testing.T) {
	w := workflow(t, `{"steps": {"a": {"handler": {"name": "x"}, "catch": [{"to": "h"}]}, "b": {"handler": {"name": "x"}, "catch": [{"to": "h"}]}, "c": {"handler": {"name": "x"}}, "h": {"needs": ["c"], "pass": {}}, "i": {"needs": ["a"], "rule": "all_skipped", "handler": {"name": "x"}}}}`)
	facts := make([]flow.Fact, len(w.Nodes))
	look := func(states map[string]flow.State) []string {
		for path, s := range states {
			n, _ := w.Node(path)
			facts[n.Index] = flow.Fact{State: s, To: flow.None, Code: "handler"}
		}
		h, _ := w.Node("h")
		d := w.Plan(facts)
		_, open := w.Awaits(h.Index, d.Counted())
		var names []string
		for _, i := range open {
			names = append(names, w.Nodes[i].Name)
		}
		for _, i := range d.Release {
			names = append(names, "release "+w.Nodes[i].Name)
		}
		return append(names, string(d.States[h.Index]))
	}
	for _, row := range []struct {
		states map[string]flow.State
		want   string
	}{
		{map[string]flow.State{"a": flow.Running, "b": flow.Running, "c": flow.Running}, "[c pending]"},
		{map[string]flow.State{"c": flow.Succeeded}, "[a b pending]"},
		{map[string]flow.State{"a": flow.Failed}, "[b release i pending]"},
		{map[string]flow.State{"b": flow.Succeeded, "i": flow.Succeeded}, "[succeeded]"},
		{map[string]flow.State{"a": flow.Succeeded}, "[skipped]"},
	} {
		if got := fmt.Sprint(look(row.states)); got != row.want {
			t.Errorf("%v: got %s, want %s", row.states, got, row.want)
		}
	}
}
