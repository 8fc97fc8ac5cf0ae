package flow_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

var update = flag.Bool("update", false, "write testdata instead of comparing with it")

// etl is a workflow with all kinds of nodes.
func etl(t testing.TB) *flow.Workflow {
	t.Helper()
	text, err := os.ReadFile("picture/testdata/etl.json")
	if err != nil {
		t.Fatal(err)
	}
	return workflow(t, string(text))
}

func workflow(t testing.TB, definition string) *flow.Workflow {
	t.Helper()
	w, err := flow.Read([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// played is how a workflow comes out, a line for each step.
func played(t testing.TB, w *flow.Workflow, outcomes string) string {
	t.Helper()
	o, err := w.ReadOutcomes([]byte(outcomes))
	if err != nil {
		t.Fatal(err)
	}
	p := playedAs(t, w, o, nil)
	if again := playedAs(t, w, o, nil); !reflect.DeepEqual(p, again) {
		t.Errorf("played twice, got %v and %v", p, again)
	}
	lines := []string{fmt.Sprintf("%s in %s", p.State, p.Takes)}
	if p.Reason != "" {
		lines[0] += ": " + p.Reason
	}
	for _, s := range p.Steps {
		line := fmt.Sprintf("%s %s at %s", s.Path, s.State, s.EndedAfter)
		if s.StartedAfter != nil {
			line += ", from " + s.StartedAfter.String()
		}
		if s.Attempts > 0 {
			line += fmt.Sprintf(", attempts %d", s.Attempts)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func playedAs(t testing.TB, w *flow.Workflow, o flow.Outcomes, input json.RawMessage) flow.Played {
	t.Helper()
	p, err := w.Simulate(t.Context(), o, input)
	if err != nil {
		t.Error(err)
	}
	return p
}

func TestSimulate(t *testing.T) {
	const chain = `{"defaults": {"timeout": "10s", "retry": {"max_attempts": 3, "initial": "2s", "factor": 3, "max": "5s"}},
		"steps": {"b": {"handler": {"name": "x"}}, "a": {"needs": ["b"], "handler": {"name": "x"}}, "clean": {"needs": ["a"], "rule": "all_done", "handler": {"name": "x"}}}}`
	for name, c := range map[string]struct{ definition, outcomes, want string }{
		"all goes well, in one second each": {chain, "", "succeeded in 3s\nb succeeded at 1s, from 0s, attempts 1\na succeeded at 2s, from 1s, attempts 1\nclean succeeded at 3s, from 2s, attempts 1"},
		"null is no outcome":                {chain, "null", "succeeded in 3s\nb succeeded at 1s, from 0s, attempts 1\na succeeded at 2s, from 1s, attempts 1\nclean succeeded at 3s, from 2s, attempts 1"},
		// Two waits: 4 s, and 12 s cut to 5 s.
		"attempts that fail first": {chain, `{"b": {"fails": 2, "takes": "4s"}}`, "succeeded in 23s\nb succeeded at 21s, from 0s, attempts 3\na succeeded at 22s, from 21s, attempts 1\nclean succeeded at 23s, from 22s, attempts 1"},
		"all attempts fail":        {chain, `{"a": {"fails": 3}}`, "failed in 14s: a is dead\nb succeeded at 1s, from 0s, attempts 1\na dead at 13s, from 1s, attempts 3\nclean succeeded at 14s, from 13s, attempts 1"},
		"dead says the same":       {chain, `{"a": "dead"}`, "failed in 14s: a is dead\nb succeeded at 1s, from 0s, attempts 1\na dead at 13s, from 1s, attempts 3\nclean succeeded at 14s, from 13s, attempts 1"},
		"failed for good":          {chain, `{"b": {"state": "failed", "fails": 1, "takes": "0s"}}`, "failed in 5s: b failed\nb failed at 4s, from 0s, attempts 2\na upstream_failed at 4s\nclean succeeded at 5s, from 4s, attempts 1"},
		"longer than its timeout":  {chain, `{"b": {"takes": "11s"}}`, "failed in 40s: b is dead\nb dead at 39s, from 0s, attempts 3\na upstream_failed at 39s\nclean succeeded at 40s, from 39s, attempts 1"},
		"skipped by hand":          {chain, `{"b": "skipped"}`, "succeeded in 1s\nb skipped at 0s\na skipped at 0s\nclean succeeded at 1s, from 0s, attempts 1"},
		"cancelled by hand":        {chain, `{"a": "cancelled"}`, "failed in 3s: a is cancelled\nb succeeded at 1s, from 0s, attempts 1\na cancelled at 2s, from 1s, attempts 1\nclean succeeded at 3s, from 2s, attempts 1"},
		"an end that nobody knows": {chain, `{"clean": {"state": "unknown", "takes": "20s"}}`, "failed in 12s: clean is unknown\nb succeeded at 1s, from 0s, attempts 1\na succeeded at 2s, from 1s, attempts 1\nclean unknown at 12s, from 2s, attempts 1"},
		"over the time of the workflow": {strings.Replace(chain, "{", `{"timeout": "2500ms",`, 1), `{}`,
			"failed in 2.5s: not over within its timeout of 2.5s\nb succeeded at 1s, from 0s, attempts 1\na succeeded at 2s, from 1s, attempts 1\nclean cancelled at 2.5s, from 2s, attempts 1"},
		"steps that never began are cancelled, too": {strings.Replace(chain, "{", `{"timeout": "1500ms",`, 1), `{}`,
			"failed in 1.5s: not over within its timeout of 1.5s\nb succeeded at 1s, from 0s, attempts 1\na cancelled at 1.5s, from 1s, attempts 1\nclean cancelled at 1.5s"},
		"attempts that never began are not counted": {strings.Replace(chain, "{", `{"timeout": "5500ms",`, 1), `{"b": "dead"}`,
			"failed in 5.5s: not over within its timeout of 5.5s\nb cancelled at 5.5s, from 0s, attempts 2\na cancelled at 5.5s\nclean cancelled at 5.5s"},
		"an end at exactly its time is in time": {strings.Replace(chain, "{", `{"timeout": "3s",`, 1), `{}`,
			"succeeded in 3s\nb succeeded at 1s, from 0s, attempts 1\na succeeded at 2s, from 1s, attempts 1\nclean succeeded at 3s, from 2s, attempts 1"},
		"an early rule does not wait": {`{"steps": {"slow": {"handler": {"name": "x"}}, "fast": {"handler": {"name": "x"}}, "first": {"needs": ["slow", "fast"], "rule": "one_success", "handler": {"name": "x"}}}}`,
			`{"slow": {"takes": "10s"}}`, "succeeded in 10s\nfast succeeded at 1s, from 0s, attempts 1\nfirst succeeded at 2s, from 1s, attempts 1\nslow succeeded at 10s, from 0s, attempts 1"},
		"an early rule waits for the switch": {`{"steps": {"fast": {"handler": {"name": "x"}}, "slow": {"handler": {"name": "x"}}, "s": {"needs": ["slow"], "switch": [{"when": ".input.a", "to": "x"}, {"to": "y"}]}, "x": {"needs": ["fast"], "rule": "one_success", "pass": {}}, "y": {"needs": ["fast"], "rule": "always", "pass": {}}}}`,
			`{"slow": {"takes": "5s"}, "s": {"to": "x"}}`, "succeeded in 5s\nfast succeeded at 1s, from 0s, attempts 1\nslow succeeded at 5s, from 0s, attempts 1\ns succeeded at 5s, from 5s\nx succeeded at 5s, from 5s\ny skipped at 5s"},
		"what is sure to be skipped is so at once, else when it is sure": {`{"steps": {"slow": {"handler": {"name": "x"}}, "gone": {"handler": {"name": "x"}}, "all": {"needs": ["slow", "gone"], "handler": {"name": "x"}}, "none": {"needs": ["slow", "gone"], "rule": "none_skipped", "handler": {"name": "x"}}}}`,
			`{"slow": {"takes": "5s"}, "gone": "skipped"}`, "succeeded in 5s\ngone skipped at 0s\nnone skipped at 0s\nslow succeeded at 5s, from 0s, attempts 1\nall skipped at 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := played(t, workflow(t, c.definition), c.outcomes); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Switches, scopes, joins and a failure that no clean-up hides, in one history each.
func TestSimulateAWorkflowOfAllKinds(t *testing.T) {
	var got strings.Builder
	for _, outcomes := range []string{
		`{}`,
		`{"route": {"to": "parts"}, "parts/warm": {"takes": "7s"}}`,
		`{"route": {"to": "parts"}, "parts/inner/b": "failed"}`,
		`{"route": {"to": "nothing"}, "publish": {"fails": 2}}`,
		`{"route": {"to": null}}`,
		`{"route": "failed"}`,
		`{"quality": "skipped"}`,
		`{"extract": {"state": "failed", "takes": "20s"}}`,
	} {
		fmt.Fprintf(&got, "%s\n%s\n\n", outcomes, played(t, etl(t), outcomes))
	}
	const file = "testdata/simulations.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s: got\n%s\nIf that is meant: go test ./lib/flow -update", file, got.String())
	}
}

// W14: what is empty, or skipped as a whole, comes to its end.
func TestW14_WhatRunsNothingEnds(t *testing.T) {
	for name, c := range map[string]struct{ definition, outcomes, want string }{
		"a switch that chooses nothing": {`{"steps": {"s": {"switch": [{"when": ".input.a", "to": "x"}]}, "x": {"steps": {"y": {"steps": {"z": {"handler": {"name": "x"}}}}}}, "after": {"needs": ["x"], "handler": {"name": "x"}}}}`,
			"", "succeeded in 0s\ns succeeded at 0s, from 0s\nx/y/z skipped at 0s\nx/y skipped at 0s\nx skipped at 0s\nafter skipped at 0s"},
		"a scope in which all is skipped": {`{"steps": {"x": {"steps": {"y": {"handler": {"name": "x"}}}}, "after": {"needs": ["x"], "handler": {"name": "x"}}}}`,
			`{"x/y": "skipped"}`, "succeeded in 1s\nx/y skipped at 0s\nx succeeded at 0s, from 0s\nafter succeeded at 1s, from 0s, attempts 1"},
		"nothing that takes time": {`{"steps": {"a": {"pass": {}}, "b": {"needs": ["a"], "pass": {"input": null}}}}`, "", "succeeded in 0s\na succeeded at 0s, from 0s\nb succeeded at 0s, from 0s"},
		"a scope behind a failure": {`{"steps": {"a": {"handler": {"name": "x"}}, "b": {"needs": ["a"], "steps": {"c": {"pass": {}}}}}}`,
			`{"a": {"state": "failed", "takes": "0s"}}`, "failed in 0s: a failed\na failed at 0s, from 0s, attempts 1\nb/c upstream_failed at 0s\nb upstream_failed at 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := played(t, workflow(t, c.definition), c.outcomes); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Cascades of any length are decided at one look.
func TestW14_ACascadeOfSkipsEnds(t *testing.T) {
	var steps strings.Builder
	for i := range 298 {
		fmt.Fprintf(&steps, `, "s%d": {"needs": ["s%d"], "pass": {}}`, i+1, i)
	}
	w := workflow(t, `{"steps": {"choose": {"switch": [{"when": ".input.a", "to": "s0"}]}, "s0": {"pass": {}}`+steps.String()+`}}`)
	p := playedAs(t, w, nil, nil)
	skipped := 0
	for _, s := range p.Steps {
		if s.State == flow.Skipped {
			skipped++
		}
	}
	if p.State != flow.Succeeded || skipped != 299 {
		t.Errorf("%s, %d skipped; want succeeded, 299", p.State, skipped)
	}
}

// Whatever is said of outcomes is refused, or plays to an end that has every step in it.
func FuzzSimulate(f *testing.F) {
	for _, outcomes := range []string{``, `{}`, `{"route": {"to": "parts"}, "parts/warm": {"takes": "7s", "fails": 2}}`, `{"extract": "dead", "quality": {"takes": "106751d"}}`,
		`{"route": {"to": null}}`, `{"route": "failed"}`, `{"extract": {"state": "unknown", "takes": "0s"}}`, `{"a": [[{}]]}`, `{"extract": {"fails": 1e99}}`} {
		f.Add(outcomes)
	}
	w := etl(f)
	f.Fuzz(func(t *testing.T, outcomes string) {
		o, err := w.ReadOutcomes([]byte(outcomes))
		if err != nil {
			if len(invalid.All(err)) == 0 {
				t.Errorf("%v names no field", err)
			}
			return
		}
		p := playedAs(t, w, o, nil)
		if !p.State.Ended() || len(p.Steps) != len(w.Nodes) {
			t.Errorf("%s with %d of %d steps", p.State, len(p.Steps), len(w.Nodes))
		}
		for _, s := range p.Steps {
			if !s.State.Ended() || s.EndedAfter > p.Takes || s.EndedAfter < 0 {
				t.Errorf("%+v of %s", s, p.Takes)
			}
		}
	})
}

func TestReadOutcomesNamesWhatIsWrong(t *testing.T) {
	for outcomes, want := range map[string]string{
		`{"extrakt": "failed"}`:                         `extrakt: got "extrakt", want the path of a step of the workflow; did you mean "extract"?`,
		`{"load": "failed"}`:                            `load: got "load", want the path of a step of the workflow`,
		`{"extract": "done"}`:                           `extract: got "done", want one of succeeded, failed, dead, unknown, cancelled, skipped`,
		`{"extract": ""}`:                               `extract: got "", want one of succeeded, failed, dead, unknown, cancelled, skipped`,
		`{"extract": "upstream_failed"}`:                `extract: got "upstream_failed", want one of succeeded, failed, dead, unknown, cancelled, skipped`,
		`{"extract": 3}`:                                `extract: got 3, want a state such as "failed", or an object of state, takes, fails, code and result`,
		`{"extract": null}`:                             `extract: got null, want a state such as "failed", or an object of state, takes, fails, code and result`,
		`{"extract": {"State": "failed"}}`:              `extract.State: got "State", want one of state, takes, fails, code, to and result`,
		`{"extract": {"takes": "-1s"}}`:                 `extract.takes: got "-1s", want a duration such as "90s", "5m", "1h30m" or "30d", not a negative one`,
		`{"extract": {"takes": 5}}`:                     `extract.takes: got "5", want a duration such as "90s", "5m", "1h30m" or "30d", in quotes`,
		`{"extract": {"fails": 1.5}}`:                   `extract.fails: got 1.5, want a whole number`,
		`{"extract": {"fails": null}}`:                  `extract.fails: got null, want a whole number`,
		`{"extract": {"fails": -1}}`:                    `extract.fails: got "-1", want a number from 0 to 15, which is the step's retry.max_attempts`,
		`{"extract": {"fails": 16}}`:                    `extract.fails: got "16", want a number from 0 to 15, which is the step's retry.max_attempts`,
		`{"extract": {"state": "failed", "fails": 15}}`: `extract.fails: got "15", want at most 14 beside a state: the last of the step's 15 attempts ends in it`,
		`{"extract": {"state": "dead", "fails": 1}}`:    `extract.fails: got "1", want nothing beside the state dead`,
		`{"extract": {"to": "parts"}}`:                  `extract.to: got "parts", want nothing: only a switch chooses`,
		`{"route": {"to": "publish"}}`:                  `route.to: got "publish", want one of the steps that the switch names: nothing, parts, small`,
		`{"route": {"to": 1}}`:                          `route.to: got 1, want the name of the step that the switch chooses, or null for none`,
		`{"route": "succeeded"}`:                        `route: got "succeeded", want failed, where a condition of the switch fails; else {"to": "NAME"} with what it chooses`,
		`{"route": "parts"}`:                            `route: got "parts", want failed, where a condition of the switch fails; else {"to": "parts"} with what it chooses`,
		`{"route": null}`:                               `route: got null, want {"to": "NAME"} with the step that the switch chooses, {"to": null} for none, or "failed" where a condition fails`,
		`{"route": {"state": null}}`:                    `route.state: got null, want one of succeeded`,
		`{"parts": "done"}`:                             `parts: got "scope", want no outcome: `,
		`{"extract": {"takes": null}}`:                  `extract.takes: got null, want a duration such as "5s", or the field left out`,
		` "x" `:                                         `got "x", want an object such as {"load": "failed"`,
		`{"route": {"takes": "1s"}}`:                    `route.takes: got "1s", want nothing: a switch takes no time`,
		`{"route": {"fails": 1}}`:                       `route.fails: got "1", want nothing: a switch has no attempts`,
		`{"route": {"state": "failed", "to": null}}`:    `route.to: got null, want nothing beside the state failed`,
		`{"parts": "failed"}`:                           `parts: got "scope", want no outcome: only of tasks, switches and waits it can be said how they come out`,
		`{"nothing": "failed"}`:                         `nothing: got "pass", want no outcome: only of tasks, switches and waits it can be said how they come out`,
		`[]`:                                            `got [], want an object such as {"load": "failed", "parts/index": {"takes": "5s"}}`,
		`{"extract": "failed", "extract": "dead"}`:      `JSON with each name once`,
		`{`: `JSON with each name once`,
	} {
		_, err := etl(t).ReadOutcomes([]byte(outcomes))
		if err == nil || !strings.HasPrefix(err.Error(), want) && !strings.Contains(err.Error(), "JSON with each name once") {
			t.Errorf("%s: got %v\nwant %s", outcomes, err, want)
		}
		var wrong *invalid.Error
		if !errors.As(err, &wrong) {
			t.Errorf("%s: %v names no field", outcomes, err)
		}
	}
	all, err := etl(t).ReadOutcomes([]byte(`{"a": "failed", "b": "failed", "extract": {"fails": 19}}`))
	if n := len(invalid.All(err)); n != 3 || all != nil {
		t.Errorf("%d errors and outcomes %v, want 3 and none: %v", n, all, err)
	}
}

// A random graph that is played comes out as the evaluator says, and every step ends after those that it waited for.
func TestW2_SimulationsComeOutAsTheEvaluatorSays(t *testing.T) {
	for seed := range uint64(500) {
		g, chance := drawWith(seed, nil)
		want := reference.Evaluate(g.steps)
		outcomes := flow.Outcomes{}
		for i := range g.flow.Nodes {
			n := &g.flow.Nodes[i]
			f := g.fact(i, chance)
			switch n.Kind {
			case flow.KindTask:
				takes := schedule.Duration(chance.IntN(5))
				n.Task = &flow.Task{}
				outcomes[n.Path] = flow.Outcome{State: f.State, Takes: &takes, Code: f.Code}
			case flow.KindSwitch:
				to := json.RawMessage("null")
				if f.State != flow.Succeeded {
					outcomes[n.Path] = flow.Outcome{State: flow.Failed}
					continue
				}
				if f.To != flow.None {
					n.Ways = []flow.Way{{To: f.To}}
					to = json.RawMessage(`"` + g.flow.Nodes[f.To].Name + `"`)
				}
				outcomes[n.Path] = flow.Outcome{To: to}
			}
		}
		p := playedAs(t, g.flow, outcomes, nil)
		decided := flow.Decisions{States: make([]flow.State, len(g.flow.Nodes)), End: p.State, Caught: map[int]flow.Caught{}}
		at := map[string]flow.PlayedStep{}
		for _, s := range p.Steps {
			n, _ := g.flow.Node(s.Path)
			decided.States[n.Index] = s.State
			at[s.Path] = s
			if s.CaughtBy != "" {
				to, _ := g.flow.Node(s.CaughtBy)
				decided.Caught[n.Index] = flow.Caught{To: to.Index, Code: s.Code}
			}
			if (s.StartedAfter != nil) != (want.Ran[s.Path] && s.State != flow.Skipped) {
				t.Errorf("%s started after %v, want that it ran: %v", s.Path, s.StartedAfter, want.Ran[s.Path])
			}
		}
		g.agree(t, decided, want)
		for _, n := range g.flow.Nodes {
			s, ok := at[n.Path]
			if !ok {
				t.Errorf("%s is missing", n.Path)
			}
			for _, need := range n.Needs {
				waits := n.Rule == flow.AllSuccess || n.Rule == flow.AllDone
				if s.StartedAfter != nil && waits && *s.StartedAfter < at[g.flow.Nodes[need].Path].EndedAfter {
					t.Errorf("%s started before %s had ended", n.Path, g.flow.Nodes[need].Path)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
