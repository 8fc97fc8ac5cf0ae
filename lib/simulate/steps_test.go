package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// flowed is a scenario of one run of a job whose target is a workflow with these steps, asked for at the start.
func flowed(workflow, outcomes string, script ...string) string {
	text := "jobs:\n  w: {target: {workflow: {" + workflow + "}}}\n"
	if outcomes != "" {
		text += "outcomes: {" + outcomes + "}\n"
	}
	return text + "script:\n  - " + strings.Join(append([]string{"{at: 0s, do: trigger, job: w, as: a, payload: {customer: acme, n: 3}}"}, script...), "\n  - ") + "\n"
}

// told is a report in short: a line for each run, each step and each refusal, with times as offsets from the beginning.
func told(r simulate.Report) string {
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	span := func(from, to *time.Time) string {
		text := ""
		if from != nil {
			text += " " + from.Sub(start).String()
		}
		if to != nil {
			text += ".." + to.Sub(start).String()
		}
		return text
	}
	var lines []string
	for _, one := range r.Runs {
		line := one.Job + " " + one.State + span(one.StartedAt, one.EndedAt)
		if one.Reason != "" {
			line += ", " + one.Reason
		}
		if one.Result != nil {
			line += " = " + string(one.Result)
		}
		lines = append(lines, line)
		for _, s := range one.Steps {
			line := "  " + s.Path + " " + s.State + span(s.StartedAt, s.EndedAt)
			if n := len(s.Attempts); n > 1 {
				line += fmt.Sprintf(" (%d attempts)", n)
			}
			if s.Reason != "" {
				line += ", " + s.Reason
			}
			if s.Error != nil {
				line += ", " + s.Error.Code + ": " + s.Error.Message
			}
			if s.CaughtBy != "" {
				line += ", caught by " + s.CaughtBy
			}
			if s.Result != nil {
				line += " = " + string(s.Result)
			}
			lines = append(lines, line)
		}
	}
	for _, f := range r.Refused {
		lines = append(lines, fmt.Sprintf("line %d: %s", f.Line, f.Code))
	}
	if r.Open > 0 {
		lines = append(lines, fmt.Sprint(r.Open, " open"))
	}
	return strings.Join(lines, "\n")
}

const (
	h    = "handler: {name: h}"
	none = "retry: {max_attempts: 1}"
)

func TestWorkflowsArePlayed(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"steps start when those before them have ended, and all are told", flowed("steps: {a: {"+h+"}, b: {needs: [a], "+h+"}, c: {needs: [a], "+h+"}, d: {needs: [b, c], pass: {}}, e: {needs: [d], rule: one_failed, "+h+"}}",
			"w/a: [{takes: 10s, result: 7}], w/b: [{takes: 20s}], w/c: [{takes: 25s}]"),
			"w succeeded 0s..35s\n  a succeeded 0s..10s = 7\n  b succeeded 10s..30s\n  c succeeded 10s..35s\n  d succeeded\n  e skipped"},
		{"outcomes of the job are those of each of its steps that is not named, each by itself", "jobs:\n  w: {target: {workflow: {defaults: {retry: {max_attempts: 1}}, steps: {a: {" + h + "}, b: {needs: [a], " + h + "}, s: {steps: {c: {" + h + "}}}}}}}\n  v: {target: {workflow: {steps: {a: {" + h + "}}}}}\n" +
			"outcomes: {w: [{takes: 1s}, {takes: 2s}], w/s/c: [{takes: 5s}], \"*\": [{takes: 9s}]}\nscript: [{at: 0s, do: trigger, job: w}, {at: 1m, do: trigger, job: w}, {at: 2m, do: trigger, job: v}]\n",
			"w succeeded 0s..5s\n  a succeeded 0s..1s\n  s succeeded 0s..5s\n  s/c succeeded 0s..5s\n  b succeeded 1s..2s\n" +
				"w succeeded 1m0s..1m5s\n  a succeeded 1m0s..1m2s\n  s succeeded 1m0s..1m5s\n  s/c succeeded 1m0s..1m5s\n  b succeeded 1m2s..1m4s\n" +
				"v succeeded 2m0s..2m9s\n  a succeeded 2m0s..2m9s"},
		{"what a step is handed chooses, and what its run brings", flowed("steps: {a: {"+h+", input: '${ {id: .input.n} }'}, b: {needs: [a], "+h+", input: {id: x}}, c: {needs: [b], "+h+", retry: {max_attempts: 2, initial: 1s}}}",
			"w/a: {by: .input.id, is: {\"3\": [{takes: 3s}]}}, w/b: {by: .payload.customer, is: {acme: [{takes: 4s}]}}, w/c: {by: .attempt, is: {\"1\": [{fails: no}], \"2\": [{takes: 5s}]}}"),
			"w succeeded 0s..14s\n  a succeeded 0s..3s\n  b succeeded 3s..7s\n  c succeeded 7s..14s (2 attempts)"},
		{"later steps read results, the run has its output, and what a program writes is text",
			flowed("steps: {a: {http: {url: \"https://example.org\"}}, b: {needs: [a], exec: {argv: [b]}, when: '.steps.a.result.rows > 5'}, c: {needs: [b], "+h+", when: '.steps.b.result.x == 1'}, d: {needs: [b], "+h+", when: '(.steps.b.result | fromjson).x == 2'}}, output: '${ {rows: .steps.a.result.rows} }'",
				"w/a: [{result: {rows: 7}}], w/b: [{result: {x: 1}}]"),
			"w failed 0s..0s, step c is failed: expression: steps.c.when: expected an object but got: string (\"{\\\"x\\\":1}\")\n  a succeeded 0s..0s = {\"rows\":7}\n  b succeeded 0s..0s = \"{\\\"x\\\":1}\"\n" +
				"  c failed..0s, expression: steps.c.when: expected an object but got: string (\"{\\\"x\\\":1}\")\n  d skipped..0s, its condition does not hold"},
		{"a failure has its code, and what follows of it", flowed("steps: {a: {"+h+", "+none+"}, b: {needs: [a], "+h+"}, c: {needs: [a], rule: one_failed, "+h+"}, f: {fail: {code: enough, message: no more}, needs: [c]}}", "w/a: [{takes: 1s, fails: boom, code: broken}]"),
			"w failed 0s..1s, step a is dead: broken: boom\n  a dead 0s..1s, attempts spent, broken: boom\n  c succeeded 1s..1s\n  b upstream_failed\n  f failed, enough: no more"},
		{"a failure that is allowed", flowed("steps: {a: {"+h+", allow_failure: true}, b: {needs: [a], "+h+"}}", "w/a: [{fails: boom, permanent: true}]"),
			"w succeeded 0s..0s\n  a failed 0s..0s, permanent failure, handler: boom\n  b succeeded 0s..0s"},
		{"a failure that is caught by its code", flowed("steps: {a: {"+h+", "+none+", catch: [{codes: [timeout], to: late}, {to: sorry}]}, b: {needs: [a], "+h+"}, late: {"+h+"}, sorry: {"+h+", input: '${ .caught[0].code }'}}", "w/a: [{fails: boom, code: broken}]"),
			"w succeeded 0s..0s\n  a dead 0s..0s, attempts spent, broken: boom, caught by sorry\n  sorry succeeded 0s..0s\n  b skipped\n  late skipped"},
		{"a failure stops the others", flowed("on_failure: stop, steps: {a: {"+h+", "+none+"}, b: {"+h+", timeout: 1h}, c: {needs: [b], "+h+"}}", "w/a: [{takes: 1s, fails: boom}], w/b: [{takes: 10m, stops_after: 2s}]"),
			"w failed 0s..3s, step a is dead: handler: boom\n  a dead 0s..1s, attempts spent, handler: boom\n  b cancelled 0s..3s, step a is dead: handler: boom\n  c cancelled"},
		{"a failure stops its scope, and is handled", flowed("steps: {s: {on_failure: stop, catch: [{to: r}], steps: {a: {"+h+", "+none+"}, b: {"+h+", timeout: 1h}, c: {needs: [a], rule: all_done, "+h+"}}}, r: {"+h+"}}", "w/s/a: [{takes: 1s, fails: boom}], w/s/b: [{takes: 10m, stops_after: 2s}]"),
			"w succeeded 0s..3s\n  s failed 0s..3s, handler: step s/a has failed, which stopped it, caught by r\n  s/a dead 0s..1s, attempts spent, handler: boom\n  s/b cancelled 0s..3s, step s/a has failed, which stops scope s\n  r succeeded 3s..3s\n  s/c cancelled..1s, step s/a has failed, which stops scope s"},
		{"the time of a scope is over", flowed("steps: {s: {timeout: 1m, catch: [{codes: [timeout], to: r}], steps: {a: {"+h+", timeout: 1h}, b: {needs: [a], "+h+"}}}, r: {"+h+"}}", "w/s/a: [{takes: 10m}]"),
			"w succeeded 0s..1m0.001s\n  s failed 0s..1m0.001s, timeout: the scope was not over after 1m, caught by r\n  s/a cancelled 0s..1m0.001s, timeout: scope s was not over after 1m\n  r succeeded 1m0.001s..1m0.001s\n  s/b cancelled"},
		{"a step runs into its timeout", flowed("steps: {a: {"+h+", timeout: 5s, "+none+"}}", "w/a: [{never: true}]"),
			"w failed 0s..5s, step a is dead: timeout: the attempt ran into its timeout\n  a dead 0s..5s, attempts spent, timeout: the attempt ran into its timeout"},
		{"the run does, and what runs is told so at once", flowed("timeout: 1m, steps: {a: {"+h+", timeout: 1h}, b: {"+h+", timeout: 1h}, c: {needs: [a, b], "+h+"}}", "w/a: [{takes: 10m}], w/b: [{takes: 10m, stops_after: 5s}]"),
			"w failed 0s..1m5.001s, timeout: the run was not over after 1m\n  a cancelled 0s..1m0.001s, timeout: the run was not over after 1m\n  b cancelled 0s..1m5.001s, timeout: the run was not over after 1m\n  c cancelled"},
		{"a cancel", flowed("steps: {a: {"+h+", timeout: 1h}, b: {"+h+"}, c: {needs: [b], "+h+"}, d: {needs: [a], "+h+"}}", "w/a: [{takes: 10m, stops_after: 2s}], w/c: [{fails: no}]", "{at: 1s, do: cancel, run: a, reason: enough}", "{at: 1m, do: cancel, run: a}", "{at: 1m, do: retry, run: a}"),
			"w cancelled 0s..3s, enough\n  a cancelled 0s..3s, enough\n  b succeeded 0s..0s\n  c cancelled 0s..1s, enough\n  d cancelled\nline 3: run_ended\nline 4: workflow_begun"},
		{"an edit, a pause and a delete change nothing of what has begun", flowed("steps: {a: {"+h+"}, b: {needs: [a], "+h+"}}", "w/a: [{takes: 10s}], w/b: [{takes: 20s}]",
			"{at: 1s, do: put, job: w, definition: {target: {workflow: {steps: {z: {"+h+"}}}}}}", "{at: 2s, do: trigger, job: w}", "{at: 3s, do: pause, job: w}", "{at: 4s, do: trigger, job: w}", "{at: 5s, do: delete, job: w}"),
			"w succeeded 0s..30s\n  a succeeded 0s..10s\n  b succeeded 10s..30s\nw succeeded 2s..2s\n  z succeeded 2s..2s\nw cancelled..5s, the job was deleted"},
		{"a server that is away", flowed("steps: {a: {"+h+"}, b: {needs: [a], "+h+"}}", "w: [{takes: 20s}]", "{at: 10s, do: down, for: 1h}"),
			"w succeeded 0s..1h0m30s\n  a succeeded 0s..1h0m10s\n  b succeeded 1h0m10s..1h0m30s"},
		{"a worker that dies", flowed("steps: {a: {"+h+", timeout: 5m}, b: {needs: [a], "+h+", guarantee: at_most_once}, c: {needs: [b], rule: one_failed, "+h+"}}", "w/a: [{takes: 1m, crashes: true}, {takes: 1s}], w/b: [{crashes: true}]"),
			"w failed 0s..1m51s, step b is unknown: its lease ran out\n  a succeeded 0s..1m21s (2 attempts)\n  b unknown 1m21s..1m51s, its lease ran out, : its lease ran out\n  c succeeded 1m51s..1m51s"},
		{"workers are scarce", "workers: 1\n" + flowed("steps: {a: {"+h+"}, b: {"+h+"}, c: {"+h+"}}", "w: [{takes: 10s}]"),
			"w succeeded 0s..30s\n  a succeeded 0s..10s\n  b succeeded 10s..20s\n  c succeeded 20s..30s"},
		{"nobody works, until the run's time is over", "workers: 1\n" + flowed("timeout: 1h, steps: {a: {"+h+"}, b: {needs: [a], "+h+"}}", "w: [{takes: 10s}]", "{at: 1s, do: workers, n: 0}"),
			"w failed 0s..1h0m0.001s, timeout: the run was not over after 1h\n  a succeeded 0s..10s\n  b cancelled..1h0m0.001s, timeout: the run was not over after 1h"},
		{"nothing to call", flowed("steps: {a: {pass: {}}, s: {needs: [a], switch: [{when: .input.n == 3, to: b}, {to: c}]}, b: {pass: {input: '${ .input.n }'}}, c: {pass: {}}}, output: '${ .steps.b.result }'", ""),
			"w succeeded 0s..0s = 3\n  s succeeded 0s..0s, it chose b\n  a succeeded\n  b succeeded\n  c skipped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := told(play(t, c.text, simulate.Options{})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// nightly is a workflow with every kind of step.
const nightly = `until: 1h
jobs:
  etl:
    schedule: {every: 30m}
    payload: {customer: acme}
    target:
      workflow:
        defaults: {timeout: 5m, retry: {initial: 10s, factor: 1}}
        steps:
          extract: {http: {url: "https://example.org"}}
          size: {needs: [extract], switch: [{when: .steps.extract.result.rows > 10, to: parts}, {to: load}]}
          parts:
            steps:
              split: {handler: {name: split}, input: {n: "${ .steps.extract.result.rows }"}, queue: big}
              index: {needs: [split], handler: {name: index}}
          load: {handler: {name: load}}
          join: {needs: [parts, load], rule: none_failed_min_one_success, pass: {}}
          refund: {needs: [join], rule: one_failed, handler: {name: refund}}
        output: "${ .steps.extract.result }"
outcomes:
  etl/extract: [{takes: 1m, fails: busy, code: full}, {takes: 2m, result: {rows: 20}}, {takes: 1m, result: {rows: 5}}]
  etl/parts/split: [{takes: 90s, result: [1, 2]}]
script:
  - {at: 32m, do: look, as: between}
`

// An expectation names steps by their paths, or by their places in the list.
func TestStepsAreExpectedByTheirPaths(t *testing.T) {
	const right = `expect:
  runs:
  - state: succeeded
    started_at: 2026-01-05T00:30:00Z
    result: {rows: 20}
    steps:
      extract:
        {kind: task, started_at: 2026-01-05T00:30:00Z, released_at: 2026-01-05T00:30:00Z, ended_at: 2026-01-05T00:33:20Z, input: {customer: acme}, error: null,
         attempts: [{outcome: failed, code: full}, {attempt: 2, outcome: succeeded}, null]}
      size: {kind: switch, state: succeeded, reason: it chose parts, started_at: 2026-01-05T00:33:20Z}
      parts: {kind: scope, started_at: 2026-01-05T00:33:20Z, ended_at: 2026-01-05T00:34:50Z, attempts: []}
      parts/split: {input: {n: 20}, result: [1, 2]}
      load: {state: skipped, started_at: null}
      join: {kind: pass, state: succeeded}
      refund: {}
  - steps: [{path: extract}, {path: load}, {path: size}, {path: join}, {path: parts}, {path: parts/index}, {path: parts/split}, {path: refund, state: skipped}, null]
  - null
  looks: {between: {open: 1, runs: [{state: running, result: null, ended_at: null, steps: {extract: {state: running, attempts: [{outcome: failed}, {outcome: running}]}, size: {state: pending}, parts/split: {state: pending}, join: {state: pending}}}]}}
  most: {jobs: {etl: 1}, workers: 1}
`
	for text, want := range map[string]string{
		right: "",
		"expect: {runs: [{steps: {parts/split: {state: dead}, refund: null}}]}\n": "runs[0].steps.parts/split.state: want \"dead\", got \"succeeded\"\n" +
			"runs[0].steps.refund: want nothing, got {\"path\":\"refund\",\"kind\":\"task\",\"state\":\"skipped\",\"released_at\":null,\"started_at\":null,\"ended_at\":null,\"input\":null,\"resu…",
		"expect: {runs: [{result: {}, steps: []}]}\n":                              "runs[0].steps: want an empty list, got 8 entries",
		"expect: {looks: {between: {runs: [{steps: {size: {state: queued}}}]}}}\n": "looks.between.runs[0].steps.size.state: want \"queued\", got \"pending\"",
	} {
		s := parse(t, nightly+text)
		report, err := simulate.Play(t.Context(), s, simulate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		differences, _, err := s.Expect.Compare(report)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range differences {
			got = append(got, d.String())
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", text, strings.Join(got, "\n"), want)
		}
	}
	_, err := simulate.Parse("a.yaml", []byte(begin+nightly+"expect: {runs: [{steps: {extrct: null, part: {state: dead}, load: {stat: x}}}]}\n"))
	const want = "line 26: expect.runs[0].steps.extrct: no workflow of this scenario has such a step; did you mean \"extract\"?\n" +
		"line 26: expect.runs[0].steps.part: no workflow of this scenario has such a step; did you mean \"parts\"?\n" +
		"line 26: expect.runs[0].steps.load.stat: unknown field; did you mean \"state\"?"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// What is wrong with a workflow, or names no step of one, is told with its line.
func TestWorkflowsAreCheckedAsPutDoes(t *testing.T) {
	const jobs = "jobs:\n  w:\n    target:\n      workflow:\n        steps:\n          a: {handler: {name: h}}\n          s: {needs: [a], steps: {b: {exec: {argv: [b]}}}}\n  p: {target: {handler: {name: h}}}\n"
	for name, c := range map[string]struct{ text, want string }{
		"a step that is not there":     {"jobs:\n  w:\n    target:\n      workflow:\n        steps:\n          a: {needs: [b], handler: {name: h}}\n", "line 7: jobs.w.target.workflow.steps.a.needs[0]: got \"b\", want the name of a step in the same scope"},
		"an expression":                {"jobs:\n  w: {target: {workflow: {steps: {a: {handler: {name: h}, when: .steps.b.state}}}}}\n", "line 3: jobs.w.target.workflow.steps.a.when: "},
		"a queue without a name":       {"jobs:\n  w: {target: {workflow: {steps: {a: {handler: {name: h}, queue: \"a b\"}}}}}\n", "line 3: jobs.w.target.workflow.steps.a.queue: "},
		"what is not built yet":        {"jobs:\n  w: {target: {workflow: {steps: {a: {handler: {name: h}, poll: {}}}}}}\n", "line 3: jobs.w.target.workflow.steps.a.poll: "},
		"a timeout beside it":          {"jobs:\n  w: {timeout: 1h, target: {workflow: {steps: {a: {handler: {name: h}}}}}}\n", "line 3: jobs.w.timeout: "},
		"in a script":                  {"script:\n  - {at: 0s, do: put, job: w, definition: {target: {workflow: {steps: {a: {needs: [b], handler: {name: h}}}}}}}\n", "line 3: script[0].definition.target.workflow.steps.a.needs[0]: "},
		"outcomes of no step":          {jobs + "outcomes: {w/s/c: [{}]}\n", "line 10: outcomes.w/s/c: got \"w/s/c\", want a step of w that calls a target; did you mean \"w/s/b\"?"},
		"outcomes of a scope":          {jobs + "outcomes: {w/s: [{}]}\n", "line 10: outcomes.w/s: got \"w/s\", want a step of w that calls a target"},
		"outcomes of no job":           {jobs + "outcomes: {x/a: [{}]}\n", "line 10: outcomes.x/a: got \"x/a\", want a step of a job of this scenario"},
		"outcomes of a job's steps":    {jobs + "outcomes: {p/a: [{}]}\n", "line 10: outcomes.p/a: got \"p/a\", want the name of a job alone: p has no steps that call a target"},
		"outcomes of what undoes":      {jobs + "outcomes: {w/a!undo: [{}]}\n", "line 10: outcomes.w/a!undo: got \"w/a!undo\", want a step; what undoes one is not built yet"},
		"outcomes by what is repeated": {jobs + "outcomes: {w/a: {by: .index, is: {}}}\n", "line 10: outcomes.w/a.by: got \".index\", want .attempt or a path in .payload or .input; steps that are repeated are not built yet"},
		"a line that is to come":       {jobs + "script: [{at: 0s, do: signal}]\n", "line 10: script[0].do: signal is not built yet"},
		"where a retry begins":         {jobs + "script: [{at: 0s, do: trigger, job: w, as: a}, {at: 1s, do: retry, run: a, from: s/b}]\n", "line 10: script[1].from: not built yet"},
	} {
		_, err := simulate.Parse("a.yaml", []byte(begin+c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	// Of a job whose workflow is wrong nobody knows the steps; an edit of the script may bring some.
	if _, err := simulate.Parse("a.yaml", []byte(begin+"jobs: {w: {target: {workflow: {steps: {a: {needs: [b], pass: {}}}}}}}\noutcomes: {w/c: [{}]}\n")); err == nil || strings.Contains(err.Error(), "outcomes") {
		t.Errorf("got %v", err)
	}
	parse(t, strings.TrimPrefix(jobs, begin)+"outcomes: {w/z: [{}]}\nscript: [{at: 0s, do: put, job: w, definition: {target: {workflow: {steps: {z: {handler: {name: z}}}}}}}]\n")
}

// Steps and what they hold count for the bounds.
func TestBoundsOfWorkflows(t *testing.T) {
	const grows = "until: 10m\njobs: {w: {schedule: {every: 1s}, target: {workflow: {steps: {a: {handler: {name: h}, input: {x: \"${ .input }\"}}, b: {pass: {}}}, output: \"${ .steps.a.result }\"}}}}\n"
	for _, c := range []struct {
		o    simulate.Options
		more string
		want simulate.Stopped
	}{
		{simulate.Options{Runs: 30}, "", simulate.Stopped{Bound: "runs", Limit: "30"}},
		{simulate.Options{Data: 5000}, "outcomes: {w/a: [{result: \"" + strings.Repeat("x", 100) + "\"}]}\n", simulate.Stopped{Bound: "data", Limit: "5000"}},
		{simulate.Options{Data: 100_000}, "outcomes: {w/a: [{result: \"" + strings.Repeat("x", 10_000) + "\"}]}\n", simulate.Stopped{Bound: "data", Limit: "100000"}},
		{simulate.Options{Attempts: 20}, "", simulate.Stopped{Bound: "attempts", Limit: "20"}},
	} {
		r := play(t, grows+c.more, c.o)
		if r.Stopped == nil || r.Stopped.Bound != c.want.Bound || r.Stopped.Limit != c.want.Limit || r.Stopped.At.Sub(parse(t, grows).Start) > time.Minute || r.Stopped.At.Sub(parse(t, grows).Start) < 4*time.Second {
			t.Errorf("%+v: stopped by %+v", c.o, r.Stopped)
		}
	}
}

// Runs that the store has cleaned up, and definitions that it keeps no longer, are told all the same.
func TestStepsOutliveTheirRows(t *testing.T) {
	t.Parallel()
	r := play(t, "until: 900d\njobs: {w: {retention: 1d, schedule: {at: 2026-01-05T01:00:00Z}, target: {workflow: {steps: {a: {handler: {name: h}}, b: {needs: [a], pass: {}}, c: {needs: [a], rule: one_failed, "+h+"}}}}}, v: {schedule: {cron: \"0 0 1 * *\"}, "+handler+"}}\n"+
		"script: [{at: 1d, do: delete, job: w}]\n", simulate.Options{})
	if got, want := told(simulate.Report{Runs: r.Runs[:1]}), "w succeeded 1h0m0s..1h0m0s\n  a succeeded 1h0m0s..1h0m0s\n  b succeeded\n  c skipped"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
