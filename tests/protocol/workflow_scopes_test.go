package protocol_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// scopeJSON is what a scope has beside its steps: what it asks, and what it gives.
func scopeJSON(s reference.Step) (text string) {
	switch s.When {
	case reference.Success:
		text = `, "when": ".input.day == \"monday\""`
	case reference.Skip:
		text = `, "when": ".input.day == \"tuesday\""`
	case reference.Failure:
		text = `, "when": ".input.day"`
	}
	if s.Stops {
		text += `, "on_failure": "stop"`
	}
	if s.Limit != 0 {
		text += `, "timeout": "` + s.Limit.String() + `"`
	}
	if len(s.Reads) > 0 {
		text += `, "output": "${ [` + strings.Join(s.Reads, ", ") + `] }"`
	}
	return text
}

// Random graphs whose scopes ask whether they run, and give what others read: under random faults they come out as the evaluator says, and each step is handed the same
// at each attempt, also what had not ended when it was released. Failures of some are caught.
func TestW1_W2_W3_W4_W5_W9_RandomGraphsWhoseScopesAskAndGive(t *testing.T) {
	randomGraphs(t, 40, func(chance *rand.Rand, steps []reference.Step) []reference.Step {
		if chance.IntN(2) == 0 {
			steps = append(steps, reference.Step{Name: "more", Rule: "all_success", Inside: drawSteps(chance, "more-", 1)}, task("after", good, []string{"all_done", "always", "one_success"}[chance.IntN(3)], "more", steps[0].Name))
		}
		asking(chance, steps)
		readingOthers(chance, steps, nil)
		if chance.IntN(3) == 0 {
			catching(chance, steps)
		}
		scopesAsk(chance, steps)
		return steps
	})
}

// scopesAsk has some scopes ask whether they run, and some have an output; and what others read of scopes is their results, and all that is told of them.
func scopesAsk(chance *rand.Rand, steps []reference.Step) {
	scopes := map[string]bool{}
	for i := range steps {
		s := &steps[i]
		scopes[s.Name] = len(s.Inside) > 0
		if len(s.Inside) == 0 {
			continue
		}
		scopesAsk(chance, s.Inside)
		s.When = []rune{0, 0, reference.Success, reference.Success, reference.Success, reference.Skip, reference.Failure}[chance.IntN(7)]
		s.Code = "expression" // which it fails of by itself
		if chance.IntN(2) == 0 {
			for range 1 + chance.IntN(3) {
				of := s.Inside[chance.IntN(len(s.Inside))].Name
				if chance.IntN(4) == 0 && len(s.Parents) > 0 {
					of = s.Parents[chance.IntN(len(s.Parents))]
				}
				s.Reads = append(s.Reads, fmt.Sprintf(`.steps[\"%s\"]`, of)+[]string{".result", ".state", ""}[chance.IntN(3)])
			}
		}
	}
	var read func(steps []reference.Step)
	read = func(steps []reference.Step) {
		for i := range steps {
			read(steps[i].Inside)
			for k, of := range steps[i].Reads {
				for name, is := range scopes {
					if is && of == fmt.Sprintf(`.steps[\"%s\"].state`, name) {
						steps[i].Reads[k] = fmt.Sprintf(`.steps[\"%s\"]`, name) + []string{".result", ".result", ""}[chance.IntN(3)]
					}
				}
			}
		}
	}
	read(steps)
}

const scopedETL = `{"steps": {
	"extract": {"handler": {"name": "give"}},
	"parts": {"needs": ["extract"], "when": ".steps.extract.result.rows > 0", "output": {"n": "${ .steps.rows.result }", "left": "${ .steps.left.result }", "day": "${ .input.day }"}, "steps": {
		"rows": {"pass": {"input": "${ .steps.extract.result.rows }"}},
		"left": {"needs": ["rows"], "handler": {"name": "give"}, "input": {"n": "${ .steps.rows.result }"}},
		"right": {"handler": {"name": "give"}, "input": "${ .steps.extract.result.id }"}}},
	"whole": {"needs": ["extract"], "steps": {"in": {"steps": {"deep": {"handler": {"name": "give"}, "input": "${ .steps.extract.result }"}}}}},
	"idle": {"needs": ["extract"], "when": ".steps.extract.result.rows > 1000", "steps": {"x": {"handler": {"name": "give"}}, "p": {"pass": {}}}},
	"report": {"needs": ["parts", "whole"], "handler": {"name": "give"}, "input": "${ {n: .steps.parts.result.n, left: .steps.parts.result.left.n, whole: .steps.whole.result.id, error: .steps.parts.error} }"},
	"relay": {"needs": ["whole"], "handler": {"name": "give"}, "input": "${ .steps.whole.result }"},
	"times": {"needs": ["parts"], "handler": {"name": "give"}, "input": "${ [.steps.parts.started_at, .steps.parts.ended_at] }"}},
	"output": {"parts": "${ .steps.parts.result }", "idle": "${ [.steps.idle.state, .steps.idle.result] }"}}`

// The worker dies before each of its operations in turn, and messages are lost every other time: a scope is asked once, and whoever reads what it gives is handed the
// same at each attempt.
func TestW1_W9_WhatAScopeGivesIsTheSameAtEachAttempt(t *testing.T) {
	for n := 1; ; n++ {
		d := newDataWorld(newWorld(t), scopedETL, `{"day": "monday"}`, `{"id": 5.50, "rows": 7}`)
		d.fails["report"], d.fails["relay"], d.fails["parts/right"] = 2, 1, 1
		met, at := d.crashing(n)
		if n%2 == 0 {
			d.lose()
		}
		d.calm()
		wrong := d.same()
		if head := d.head(); head.State != run.Succeeded {
			wrong = append(wrong, fmt.Sprintf("the run is %s: %s", head.State, head.Reason))
		} else if got, want := d.result(), `{"idle":["skipped",null],"parts":{"day":"monday","left":{"n":7},"n":7}}`; got != want {
			wrong = append(wrong, fmt.Sprintf("the run gives %s, want %s", got, want))
		}
		for path, want := range map[string]string{"report": `{"error":null,"left":7,"n":7,"whole":5.50}`, "relay": `{"id": 5.50, "rows": 7}`, "idle/x": "nothing"} {
			if got := d.handed(path); got != want {
				wrong = append(wrong, fmt.Sprintf("%s was handed %s, want %s", path, got, want))
			}
		}
		rows := d.rows()
		parts, idle := rows["parts"], rows["idle"]
		if parts.State != run.Succeeded || idle.State != run.Skipped || idle.Missed() || len(rows) != 9 {
			wrong = append(wrong, fmt.Sprintf("parts is %s, idle %s, of %d rows", parts.State, idle.State, len(rows)))
		}
		from, to := parts.Created, max(rows["parts/left"].Ended, rows["parts/right"].Ended)
		if got, want := d.handed("times"), fmt.Sprintf(`["%s","%s"]`, shownTime(from), shownTime(to)); got != want {
			wrong = append(wrong, fmt.Sprintf("parts went from and to %s, want %s", got, want))
		}
		for _, problem := range wrong {
			t.Errorf("a worker that dies before its operation %d (%s): %s", n, at, problem)
		}
		if !met {
			break
		}
		if n > 600 {
			t.Fatal("a run of seven tasks takes more than 600 operations")
		}
	}
}

func shownTime(at int64) string { return time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z") }

// Where what a scope asks fails, nothing in it runs, and it has failed; where an output fails, who reads it does, with both places in the message.
func TestW9_Scenario25_AScopeWhoseExpressionsFail(t *testing.T) {
	for name, row := range map[string]struct{ scope, reason, states string }{
		"when": {`"when": ".steps.extract.result.rows"`, "step s is failed: expression: steps.s.when: it gives 7; a condition is to give true or false",
			"extract=succeeded s=failed s/p=upstream_failed s/in=upstream_failed last=upstream_failed after=succeeded"},
		"output": {`"output": {"a": ["${ .steps.extract.result.rows.none }"]}`, "step last is failed: expression: steps.last.input: steps.s.output.a[0]: expected an object but got: number (7)",
			"extract=succeeded s=succeeded s/p=succeeded s/in=succeeded after=skipped last=failed"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDataWorld(newWorld(t), `{"steps": {"extract": {"handler": {"name": "give"}}, "s": {"needs": ["extract"], `+row.scope+`, "steps": {"in": {"needs": ["p"], "handler": {"name": "give"}}, "p": {"pass": {}}}},
				"last": {"needs": ["s"], "handler": {"name": "give"}, "input": "${ .steps.s.result }"}, "after": {"needs": ["s"], "rule": "one_failed", "handler": {"name": "give"}, "input": "${ .steps.s.error }"}}}`, `null`, `{"rows": 7}`)
			d.calm()
			head := d.head()
			if head.State != run.Failed || head.Reason != row.reason && !strings.HasSuffix(head.Reason, "…") {
				t.Errorf("the run is %s:\n got %s\nwant %s", head.State, head.Reason, row.reason)
			}
			g, err := d.host("api").control.Graph(context.Background(), tenant, d.id)
			d.must(err)
			for _, s := range g.Steps {
				if !strings.Contains(" "+row.states+" ", " "+s.Node.Path+"="+string(s.State)+" ") {
					t.Errorf("step %s is %s, want %s", s.Node.Path, s.State, row.states)
				}
			}
			if name == "when" && !strings.Contains(d.handed("after"), "steps.s.when: it gives 7") {
				t.Errorf("after was handed %s, want what the scope failed of", d.handed("after"))
			}
		})
	}
}

// A scope that is open when a step is released stays open for that, and what a scope reads while it is open, too, also where all has ended at a later attempt.
func TestW9_WhatWasOpenStaysOpenThroughAScope(t *testing.T) {
	for name, row := range map[string]struct{ steps, want string }{
		"what it reads":   {`"s": {"needs": ["extract", "slow"], "rule": "one_success", "output": ["${ .steps.extract.result }", "${ .steps.slow.state }", "${ .steps.in.state }"], "steps": {"in": {"handler": {"name": "give"}}}}, "first": {"needs": ["s"], `, `[{"id":1},"open","succeeded"]`},
		"one that asks":   {`"s": {"needs": ["extract", "slow"], "rule": "one_success", "when": "true", "output": ["${ .steps.extract.result }", "${ .steps.slow.state }"], "steps": {"p": {"pass": {}}}}, "first": {"needs": ["s"], `, `[{"id":1},"open"]`},
		"itself":          {`"s": {"needs": ["extract"], "steps": {"p": {"pass": {}}, "slower": {"handler": {"name": "give"}, "retry": {"max_attempts": 5, "initial": "5m"}}}}, "first": {"needs": ["extract", "s"], "rule": "one_success", `, `null`},
		"through another": {`"s": {"needs": ["extract", "slow"], "rule": "one_success", "output": "${ .steps.t.result }", "steps": {"t": {"output": ["${ .steps.slow.state }"], "steps": {"p": {"pass": {}}}}}}, "q": {"needs": ["s"], "pass": {"input": ["${ .steps.s.result }"]}}, "first": {"needs": ["q"], `, `[["open"]]`},
	} {
		t.Run(name, func(t *testing.T) {
			read := "s"
			if strings.Contains(row.steps, `"q"`) {
				read = "q"
			}
			d := newDataWorld(newWorld(t), `{"steps": {
				"extract": {"handler": {"name": "give"}},
				"slow": {"handler": {"name": "give"}, "retry": {"max_attempts": 5, "initial": "5m"}},
				`+row.steps+`"handler": {"name": "give"}, "retry": {"initial": "10m"}, "input": "${ .steps.`+read+`.result }"}}}`, `null`, `{"id": 1}`)
			d.fails["slow"], d.fails["s/slower"], d.fails["first"] = 2, 2, 3
			d.advance(90*time.Minute, 10*time.Second, "worker")
			if wrong := d.same(); len(wrong) > 0 {
				t.Error(wrong)
			}
			if got := d.handed("first"); got != row.want || len(d.inputs["first"]) != 4 {
				t.Errorf("it was handed %s at %d attempts, want %s", got, len(d.inputs["first"]), row.want)
			}
			if head := d.head(); head.State != run.Succeeded {
				t.Errorf("the run is %s: %s", head.State, head.Reason)
			}
		})
	}
}

// A result of up to 16 MiB goes through scopes in scopes, and passes, to the byte: nobody has to read it.
func TestW9_ALargeResultArrivesWholeThroughScopes(t *testing.T) {
	workflow := `{"steps": {
		"s": {"output": "${ .steps.p.result }", "steps": {"extract": {"steps": {"deep": {"handler": {"name": "give"}, "input": "${ .input }"}}}, "p": {"needs": ["extract"], "pass": {"input": "${ .steps.extract.result }"}}, "beside": {"pass": {}}}},
		"x": {"needs": ["s"], "handler": {"name": "give"}, "input": "${ .steps.s.result }"}}, "output": "${ .steps.s.result }"}`
	for _, payload := range []string{`{"n": 1.50}`, `[1.50, "` + strings.Repeat("x", 200<<10) + `"]`} {
		d := newDataWorld(newWorld(t), strings.ReplaceAll(workflow, `, "input": "${ .input }"`, ``), payload, ``)
		d.calm()
		if head := d.head(); head.State != run.Succeeded || d.handed("x") != payload || d.result() != payload {
			t.Errorf("of %d bytes: the run is %s: %s; %d bytes were handed on, and %d given", len(payload), head.State, head.Reason, len(d.handed("x")), len(d.result()))
		}
	}
	relayed := `{"steps": {"extract": {"handler": {"name": "give"}}, "s": {"needs": ["extract"], "steps": {"mid": {"pass": {"input": "${ .steps.extract.result }"}}, "in": {"needs": ["mid"], "steps": {"p": {"pass": {"input": "${ .steps.mid.result }"}}}}}},
		"x": {"needs": ["s"], "handler": {"name": "give"}, "input": "${ .steps.s.result }"}}, "output": "${ .steps.s.result }"}`
	for _, size := range []int{run.MaxResult + 1, flow.MaxResult} {
		result := `[1.50, "` + strings.Repeat("x", size-len(`[1.50, ""]`)) + `"]`
		d := newDataWorld(newWorld(t), relayed, `null`, result)
		d.calm()
		if head := d.head(); head.State != run.Succeeded || d.handed("x") != result || d.result() != result {
			t.Errorf("of %d bytes: the run is %s: %s; %d bytes were handed on, and %d given", len(result), head.State, head.Reason, len(d.handed("x")), len(d.result()))
		}
	}
}

// A run that is cancelled while a scope with a condition goes on is shown as any other: what had not ended is cancelled, the scope too, though its row says that it runs.
func TestW5_AScopeThatAsksIsCancelledWithItsRun(t *testing.T) {
	d := newDataWorld(newWorld(t), `{"steps": {"extract": {"handler": {"name": "give"}}, "s": {"needs": ["extract"], "when": ".steps.extract.result.go", "steps": {"slow": {"handler": {"name": "give"}, "retry": {"initial": "10m"}}, "p": {"pass": {}}}},
		"last": {"needs": ["s"], "handler": {"name": "give"}}}}`, `null`, `{"go": true}`)
	d.fails["s/slow"] = 5
	d.advance(2*time.Minute, 10*time.Second, "worker")
	states := func() string {
		g, err := d.host("api").control.Graph(context.Background(), tenant, d.id)
		d.must(err)
		var all []string
		for _, s := range g.Steps {
			all = append(all, s.Node.Path+"="+string(s.State))
			if s.Node.Path == "s" && s.Run.State != 0 {
				t.Errorf("the answer of s, %s, is shown as its end", s.Run.State)
			}
		}
		slices.Sort(all)
		return strings.Join(all, " ")
	}
	if got, want := states(), "extract=succeeded last=pending s/p=succeeded s/slow=retrying s=running"; got != want {
		t.Errorf("while it runs: %s, want %s", got, want)
	}
	_, err := d.host("api").control.Cancel(context.Background(), tenant, d.id, "no longer needed")
	d.must(err)
	if got, want := states(), "extract=succeeded last=cancelled s/p=succeeded s/slow=cancelled s=cancelled"; got != want {
		t.Errorf("cancelled: %s, want %s", got, want)
	}
}
