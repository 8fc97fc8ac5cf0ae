package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// written puts a file into a folder of the test's, and gives its name.
func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestWorkflowValidate(t *testing.T) {
	right := written(t, "etl.yaml", exampleWorkflow)
	if got := belfry(t, "", "workflow", "validate", right); got.code != 0 || got.out != right+": valid, 6 steps: 4 tasks, 1 scope, 1 switch\n  steps.choose.switch[0].when reads .input\n" || got.errors != "" {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, exampleWorkflow, "workflow", "validate", "-"); got.code != 0 || !strings.HasPrefix(got.out, "standard input: valid, 6 steps") {
		t.Errorf("%+v", got)
	}
	two := written(t, "two.yaml", exampleWorkflow+"---\nsteps: {a: {pass: {}}}\n")
	if got := belfry(t, "", "workflow", "validate", two); got.code != 0 || !strings.Contains(got.out, two+":1: valid, 6 steps") || !strings.Contains(got.out, two+":10: valid, 1 step: 1 pass\n") {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "", "workflow", "validate", two, "-o", "json"); got.code != 0 || len(decode[[]checked](t, got.out)) != 2 || decode[[]checked](t, got.out)[1].Graph.Steps[0].Path != "a" {
		t.Errorf("%+v", got)
	}
}

// Each error has its place: file, line and path; all are told at once, and in the order of the lines.
func TestWorkflowValidateNamesThePlace(t *testing.T) {
	job := "name: etl\nretry: {max_attempts: 2}\ntarget:\n  workflow:\n    steps:\n      load:\n        handler: {name: load}\n        needs:\n          - extract\n          - chek\n      extract: {pass: {}}\n      check: {pass: {}}\n      \"e\\e[31mvil\\nname\": {pass: {}}\n"
	file := written(t, "job.yaml", job)
	want := []string{
		":2: retry: want nothing here: each step has a retry of its own, and target.workflow.defaults one for all",
		`:10: target.workflow.steps.load.needs[1]: got "chek", want the name of a step in the same scope; did you mean "check"?`,
		`:13: target.workflow.steps.e�[31mvil name: got "e\x1b[31mvil\nname", want a name of 1 to 64 letters, digits, underscores or hyphens, beginning with a letter or digit`,
	}
	got := belfry(t, "", "workflow", "validate", file)
	if lines := strings.Split(strings.TrimSuffix(got.errors, "\n"), "\n"); got.code != 1 || got.out != "" || len(lines) != len(want) {
		t.Fatalf("%d %s\n%s", got.code, got.out, got.errors)
	} else {
		for i, line := range lines {
			if line != file+want[i] {
				t.Errorf("%s\nwant %s%s", line, file, want[i])
			}
		}
	}
	got = belfry(t, "", "workflow", "validate", file, "-o", "json")
	if all := decode[[]checked](t, got.out); got.code != 1 || got.errors != "" || len(all) != 1 || all[0].Valid || len(all[0].Errors) != 3 || all[0].Errors[1].Line != 10 || all[0].Errors[1].Field != "target.workflow.steps.load.needs[1]" {
		t.Errorf("%+v", got)
	}
	for name, c := range map[string]struct{ text, want string }{
		"broken.yaml": {"steps:\n  a: [", ":2: want YAML: "},
		"twice.yaml":  {"steps:\n  a: {pass: {}}\n  a: {pass: {}}\n", ":3: a: given twice; first in line 2"},
		"broken.json": {"{\n\"steps\": \n", ":2: want JSON: it ends too early"},
		"list.yaml":   {"- a\n", ":1: got an array, want a workflow as an object with steps"},
		"other.yaml":  {"target: {http: {url: x}}\n", ":1: target.workflow: want a workflow, which is missing: this job has another target"},
	} {
		file := written(t, name, c.text)
		if got := belfry(t, "", "workflow", "validate", file); got.code != 1 || !strings.HasPrefix(got.errors, file+c.want) || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, text := range []string{"", "# nothing\n"} {
		if got := belfry(t, "", "workflow", "validate", written(t, "empty.yaml", text)); got.code != 1 || !strings.Contains(got.errors, "there is no workflow in ") {
			t.Errorf("%+v", got)
		}
	}
}

// A file that is not there keeps nobody from hearing what is wrong with the others.
func TestWorkflowValidateTellsOfEveryFile(t *testing.T) {
	bad, right := written(t, "bad.yaml", "steps: {a: {}}"), written(t, "right.yaml", "steps: {a: {pass: {}}}")
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	got := belfry(t, "", "workflow", "validate", bad, missing, right, written(t, "empty.yaml", ""))
	if got.code != 1 || got.out != right+": valid, 1 step: 1 pass\n" {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{bad + ":1: steps.a: got none", "belfry: open " + missing, "belfry: there is no workflow in "} {
		if !strings.Contains("\n"+got.errors, "\n"+want) {
			t.Errorf("no %q in\n%s", want, got.errors)
		}
	}
	got = belfry(t, "", "workflow", "validate", missing, right, "-o", "json")
	if all := decode[[]checked](t, got.out); got.code != 1 || len(all) != 2 || all[0].Valid || !strings.Contains(all[0].Errors[0].Message, "open "+missing) || !all[1].Valid {
		t.Errorf("%+v", got)
	}
}

func TestWorkflowValidateCountsWhatItDoesNotName(t *testing.T) {
	text := "steps:\n"
	for i := range 250 {
		text += fmt.Sprintf("  a%d: {needs: [b%d], pass: {}}\n", i, i)
	}
	got := belfry(t, "", "workflow", "validate", written(t, "many.yaml", text))
	if n := strings.Count(got.errors, "\n"); got.code != 1 || n != 101 || !strings.HasSuffix(got.errors, "many.yaml: and 150 more\n") {
		t.Errorf("%d lines of errors: %s", n, got.errors)
	}
}

func TestWorkflowGraph(t *testing.T) {
	file := written(t, "etl.yaml", exampleWorkflow)
	for form, want := range map[string]string{"text": "extract", "mermaid": "flowchart", "svg": "<svg"} {
		got := belfry(t, "", "workflow", "graph", file, "--format", form)
		if got.code != 0 || !strings.Contains(got.out, want) || !strings.HasSuffix(got.out, "\n") || strings.HasSuffix(got.out, "\n\n") {
			t.Errorf("%s: %+v", form, got)
		}
	}
	if got := belfry(t, "", "workflow", "graph", file, "-o", "json"); got.code != 0 || len(decode[wire.WorkflowGraph](t, got.out).Steps) != 6 {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "", "workflow", "graph", file, "--format", "svg", "-o", "json"); got.code != 2 || !strings.Contains(got.errors, "--format svg: want it without -o json") {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "", "workflow", "graph", file, "--format", "png"); got.code != 2 || !strings.Contains(got.errors, "--format png: want text, mermaid or svg") {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "", "workflow", "graph", written(t, "two.yaml", exampleWorkflow+"---\n"+exampleWorkflow)); got.code != 1 || !strings.Contains(got.errors, "has 2 documents; want one workflow") {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "", "workflow", "graph", written(t, "bad.yaml", "steps: {a: {}}")); got.code != 1 || !strings.Contains(got.errors, "bad.yaml:1: steps.a: got none of them") {
		t.Errorf("%+v", got)
	}
}

func TestWorkflowSimulate(t *testing.T) {
	file := written(t, "etl.yaml", exampleWorkflow)
	outcomes := written(t, "outcomes.yaml", "load: dead\nextract: {fails: 2, takes: 3s}\n")
	got := belfry(t, "", "workflow", "simulate", file, "--outcomes", outcomes, "-o", "json")
	played := decode[flow.Played](t, got.out)
	states := map[string]flow.State{}
	for _, s := range played.Steps {
		states[s.Path] = s.State
	}
	if got.code != 0 || played.State != flow.Failed || states["load"] != flow.Dead || states["parts/index"] != flow.Skipped || states["report"] != flow.UpstreamFailed || len(states) != 6 {
		t.Errorf("%+v", got)
	}
	table := belfry(t, "", "workflow", "simulate", file).out
	for _, want := range []string{"STEP ", "report ", "succeeded", "\nThe workflow ends succeeded after "} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if got := belfry(t, "choose: {to: parts}", "workflow", "simulate", file, "--outcomes", "-", "-o", "json"); !strings.Contains(got.out, `"parts/index"`) || decode[flow.Played](t, got.out).State != flow.Succeeded {
		t.Errorf("%+v", got)
	}
	wrong := written(t, "wrong.yaml", "load: failed\n\nparts/indx: failed\n")
	if got := belfry(t, "", "workflow", "simulate", file, "--outcomes", wrong); got.code != 1 || !strings.HasPrefix(got.errors, wrong+":3: parts/indx: ") {
		t.Errorf("%+v", got)
	}
	twice := written(t, "twice.yaml", "load: failed\nload: dead\n")
	if got := belfry(t, "", "workflow", "simulate", file, "--outcomes", twice); got.code != 1 || got.errors != twice+":2: load: given twice; first in line 1\n" {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, exampleWorkflow, "workflow", "simulate", "-", "--outcomes", "-"); got.code != 2 {
		t.Errorf("%+v", got)
	}
}

func TestWorkflowSchema(t *testing.T) {
	got := belfry(t, "", "workflow", "schema")
	want, err := json.Marshal(flow.Schema())
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if got.code != 0 || json.Unmarshal([]byte(got.out), &a) != nil || json.Unmarshal(want, &b) != nil || len(a.(map[string]any)) != len(b.(map[string]any)) || a.(map[string]any)["title"] != "Workflow of Belfry" {
		t.Errorf("%+v", got)
	}
	if got := belfry(t, "", "workflow", "schema", "-o", "yaml"); got.code != 0 || !strings.Contains(got.out, "title: Workflow of Belfry") {
		t.Errorf("%.200s", got.out)
	}
}

// A job with a workflow is applied and run; its steps are shown, one by one, too.
func TestRunningAWorkflow(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	file := written(t, "job.yaml", `{name: etl, target: {workflow: {steps: {
  extract: {exec: {argv: [echo, hello]}},
  parts: {needs: [extract], steps: {index: {exec: {argv: [sh, -c, "echo no; exit 3"], permanent_exit_codes: [3]}}}},
  load: {needs: [parts], input: {"input": true}, exec: {argv: ["true"]}}}}}}`)
	if got := belfry(t, "", "job", "apply", "-f", file, "--address", address); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	id := decode[wire.Run](t, belfry(t, "", "job", "trigger", "etl", "-o", "json", "--address", address).out).ID
	belfry(t, "", "run", "wait", id, "--address", address)
	for want, args := range map[string][]string{
		"step parts/index  failed":              {"run", "get", id},
		"load         upstream_failed":          {"run", "steps", id},
		"hello":                                 {"run", "step", id, "extract"},
		"no\n":                                  {"run", "logs", id, "--step", "parts/index"},
		"exit: exit code 3":                     {"run", "step", id + "/parts/index"},
		"kind       task":                       {"run", "get", id + "/parts/index"},
		"It is failed: permanent failure: exit": {"run", "why", id + "/parts/index"},
		`"step": "parts/index"`:                 {"run", "why", id + "/parts/index", "-o", "json"},
		"hello\n":                               {"run", "logs", id, "--step", "extract", "--follow", "--attempt", "1"},
		"Z hello\n":                             {"run", "logs", id, "--step", "extract", "-t", "--tail", "1", "--since", "1h"},
		`"step": "extract"`:                     {"run", "logs", id, "--step", "extract", "-o", "json"},
		"extract\nparts\nparts/index\n":         {"run", "steps", id, "-o", "name"},
		"1 extract  succeeded":                  {"run", "graph", id},
		"flowchart":                             {"run", "graph", id, "--format", "mermaid"},
		`class="box task bad"`:                  {"run", "graph", id, "--format", "svg"},
		`"workflow": {`:                         {"run", "graph", id, "-o", "json"},
		`{"input":true}`:                        {"run", "payload", id, "--step", "load"},
		`"step": "extract"` + "\n":              {"run", "payload", id, "--step", "extract", "-o", "json"},
	} {
		if got := belfry(t, "", append(args, "--address", address)...); got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	for _, more := range [][]string{nil, {"--follow"}} {
		if got := belfry(t, "", append([]string{"run", "logs", id + "/parts/index", "--address", address}, more...)...); got.code != 0 || got.out != "no\n" {
			t.Errorf("the log of RUN/PATH, %v: %+v", more, got)
		}
	}
	if got := belfry(t, "", "run", "payload", id+"/load", "--address", address); got.code != 0 || got.out != `{"input":true}` {
		t.Errorf("the payload of RUN/PATH: %+v", got)
	}
	// Of what a run of a workflow has not, nothing is shown: neither an attempt nor a fence. Its timeout is the workflow's.
	if got := belfry(t, "", "run", "get", id, "--address", address).out; strings.Contains(got, "fence") {
		t.Errorf("the run is shown as\n%s", got)
	}
	if got := belfry(t, "", "run", "list", "--address", address).out; regexp.MustCompile(` 0 `).MatchString(got) {
		t.Errorf("it is listed as\n%s", got)
	}
	if got := belfry(t, "", "job", "get", "etl", "--address", address).out; !regexp.MustCompile(`(?m)^timeout +7d$`).MatchString(got) {
		t.Errorf("the job is shown as\n%s", got)
	}
	for want, args := range map[string][]string{
		"parts\nparts/index\n": {"--state", "failed,dead"},
		"load\n":               {"--state", "upstream_failed"},
		"parts/index\n":        {"--under", "parts"},
		"":                     {"--under", "parts", "--state", "succeeded"},
	} {
		if got := belfry(t, "", append([]string{"run", "steps", id, "-o", "name", "--address", address}, args...)...); got.code != 0 || got.out != want {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	for want, args := range map[string][]string{
		"is a scope, which has no log":               {"run", "logs", id, "--step", "parts"},
		"parts of " + id + " is a scope":             {"run", "logs", id, "--step", "parts", "--follow"},
		"has no step \"z\"":                          {"run", "logs", id, "--step", "z", "-f"},
		"there is no attempt 2":                      {"run", "logs", id, "--step", "extract", "--follow", "--attempt", "2"},
		"want one of pending, scheduled, queued":     {"run", "steps", id, "--state", "lost"},
		"want the path of a scope; that step is a t": {"run", "steps", id, "--under", "load"},
		"want text, mermaid or svg":                  {"run", "graph", id, "--format", "png"},
		"is a scope, which has no payload":           {"run", "payload", id, "--step", "parts"},
		"names a step already":                       {"run", "logs", id + "/load", "--step", "extract"},
		"want the path of a step behind the slash":   {"run", "get", id + "/"},
		"want RUN and PATH":                          {"run", "step", id},
		"want the run's ID alone, \"" + id + "\"":    {"run", "cancel", id + "/load"},
		"has no step \"nothing\"":                    {"run", "why", id + "/nothing"},
	} {
		if got := belfry(t, "", append(args, "--address", address)...); got.code == 0 || !strings.Contains(got.errors, want) {
			t.Errorf("%v: %+v, want %q", args, got, want)
		}
	}
	// A run keeps its workflow when the job has another.
	other := written(t, "other.yaml", `{name: etl, target: {workflow: {timeout: 1h, steps: {quite_another: {pass: {}}}}}}`)
	belfry(t, "", "job", "apply", "-f", other, "--address", address)
	if got := belfry(t, "", "job", "get", "etl", "--address", address).out; !regexp.MustCompile(`(?m)^timeout +1h$`).MatchString(got) {
		t.Errorf("the job is shown as\n%s", got)
	}
	if got := belfry(t, "", "run", "graph", id, "--address", address); got.code != 0 || strings.Contains(got.out, "another") || !strings.Contains(got.out, "3 load") {
		t.Errorf("%+v", got)
	}
}

// A step's log is followed over its attempts, from before it has begun until it has ended, and no longer.
func TestFollowingAStep(t *testing.T) {
	dir := t.TempDir()
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	// The first step ends, and the one that is followed fails once, when the reader has come so far.
	file := written(t, "job.yaml", fmt.Sprintf(`{name: etl, target: {workflow: {steps: {
  first: {exec: {argv: [sh, -c, 'until test -e %[1]s/go; do sleep 0.05; done']}},
  second: {needs: [first], retry: {max_attempts: 2, initial: 10ms, max: 10ms},
    exec: {argv: [sh, -c, 'echo one; echo two; until test -e %[1]s/on; do sleep 0.05; done; test -e %[1]s/again || { touch %[1]s/again; exit 1; }; echo three']}},
  third: {needs: [second], exec: {argv: [sh, -c, 'until test -e %[1]s/end; do sleep 0.05; done']}}}}}}`, dir))
	touch := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { touch("go"); touch("on"); touch("end") })
	belfry(t, "", "job", "apply", "-f", file, "--address", address)
	id := decode[wire.Run](t, belfry(t, "", "job", "trigger", "etl", "-o", "json", "--address", address).out).ID
	followed := make(chan outcome, 1)
	go func() {
		followed <- belfry(t, "", "run", "logs", id, "--step", "second", "--follow", "--address", address)
	}()
	touch("go")
	for !strings.Contains(belfry(t, "", "run", "logs", id, "--step", "second", "--address", address).out, "two") { // until it has begun; bounded by the test's own time-out
		time.Sleep(20 * time.Millisecond)
	}
	if got := belfry(t, "", "run", "logs", id, "--step", "second", "--follow", "--tail", "1", "--timeout", "1s", "--address", address); got.out != "two\n" || !strings.Contains(got.errors, "step second of "+id+" has not ended within 1s") {
		t.Errorf("%+v", got)
	}
	touch("on")
	got := <-followed // while the third step still runs
	if got.code != 0 || got.out != "one\ntwo\none\ntwo\nthree\n" || !strings.Contains(got.errors, "attempt 1 failed") || !strings.Contains(got.errors, "succeeded") {
		t.Errorf("%+v", got)
	}
	if r := decode[wire.Run](t, belfry(t, "", "run", "get", id, "-o", "json", "--address", address).out); r.State != "running" {
		t.Errorf("the run is %s", r.State)
	}
	touch("end")
	belfry(t, "", "run", "wait", id, "--address", address)
	if got := belfry(t, "", "run", "logs", id, "--step", "second", "--attempt", "1", "--address", address); got.out != "one\ntwo\n" {
		t.Errorf("%+v", got)
	}
}

// A step that has not ended tells on a running server why: which steps it waits for, its back-off, its attempt, or what its run waits for.
func TestRunStepSaysWhyAStepDoesNotGoOn(t *testing.T) {
	dir := t.TempDir()
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	file := written(t, "job.yaml", fmt.Sprintf(`{name: etl, target: {workflow: {steps: {
  first: {exec: {argv: [sh, -c, 'until test -e %s/go; do sleep 0.05; done']}},
  flaky: {retry: {max_attempts: 3, initial: 1h, max: 1h}, exec: {argv: ["false"]}},
  parts: {needs: [first], steps: {index: {exec: {argv: ["true"]}}}},
  load: {needs: [first, flaky, parts], rule: all_done, exec: {argv: ["true"]}}}}}}`, dir))
	call(0, "", "job", "apply", "-f", file)
	id := decode[wire.Run](t, call(0, "", "job", "trigger", "etl", "-o", "json").out).ID
	t.Cleanup(func() { // else the attempt outlives the server
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	step := func(id, path string) wire.Step {
		return decode[wire.Step](t, call(0, "", "run", "step", id, path, "-o", "json").out)
	}
	for step(id, "first").State != "running" || step(id, "flaky").State != "retrying" { // bounded by the test's own time-out
		time.Sleep(20 * time.Millisecond)
	}
	for path, want := range map[string]string{
		"first":       "Attempt 1 is under way. Its worker renews the lease as long as it works. Until: ",
		"flaky":       "Attempt 1 failed. Try 2 of 3 begins when its back-off is over. Until: ",
		"parts":       "It waits for the step first to end, by its rule all_success. Up to: belfry run steps " + id + " shows them.",
		"parts/index": "The scope parts around it waits for the step first to end, by its rule all_success.",
		"load":        "It waits for the steps first, flaky and parts to end, by its rule all_done.",
	} {
		if got := call(0, "", "run", "step", id, path).out; !strings.Contains(got, "waits") || !strings.Contains(got, want) {
			t.Errorf("shown as\n%s\nwant it to say %q", got, want)
		}
	}
	if w := step(id, "load").Waiting; len(w) != 1 || w[0].Code != "steps" || !slices.Equal(w[0].Steps, []string{"first", "flaky", "parts"}) {
		t.Errorf("load waits for %+v", w)
	}
	// Asked about the whole run, it says the same of each task that is open, those first that the others wait for.
	lines := strings.Split(call(0, "", "run", "why", id).out, "\n")
	for i, want := range []string{"Steps of its workflow have not ended.", "step first is running: Attempt 1 is under way.", "step flaky is retrying: Attempt 1 failed.",
		"step parts/index is pending: The scope parts around it waits", "step load is pending: It waits for the steps first, flaky and parts to end", ""} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) || (want == "") != (lines[i] == "") {
			t.Errorf("line %d of why it does not go on is none that begins with %q:\n%s", i+1, want, strings.Join(lines, "\n"))
			break
		}
	}
	if data := decode[reasons](t, call(0, "", "run", "why", id, "-o", "json").out); len(data.Steps) != 4 || data.Steps[0].Path != "first" || data.Steps[0].Waiting[0].Code != "running" {
		t.Errorf("why it does not go on, as data: %+v", data)
	}
	later := decode[wire.Run](t, call(0, "", "job", "trigger", "etl", "--delay", "24h", "-o", "json").out).ID
	if w := step(later, "load").Waiting; len(w) != 2 || w[0].Code != "not_due" || w[0].Text != "Its run has not begun. Its time has not come." || w[0].Until.IsZero() || w[1].Code != "steps" {
		t.Errorf("load of a run to come waits for %+v", w)
	}
	call(0, "", "run", "cancel", id)
	call(6, "", "run", "wait", id)
	for _, path := range []string{"first", "flaky", "parts", "parts/index", "load"} {
		if w := step(id, path).Waiting; w != nil {
			t.Errorf("%s of a run that has ended waits for %+v", path, w)
		}
	}
}

// Of a run with many open steps it says why ten of them do not go on, and how many more there are.
func TestRunWhyIsBounded(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec", "--remote-queue", "far"))
	steps := []string{`first: {queue: far, exec: {argv: ["true"]}}`}
	for i := range 14 {
		steps = append(steps, fmt.Sprintf(`s%02d: {needs: [first], exec: {argv: ["true"]}}`, i))
	}
	call(0, "{name: wide, target: {workflow: {steps: {"+strings.Join(steps, ", ")+"}}}}", "job", "apply", "-f", "-")
	id := decode[wire.Run](t, call(0, "", "job", "trigger", "wide", "-o", "json").out).ID
	eventually(t, "its first step waits for a worker", func() (bool, string) {
		out := call(0, "", "run", "why", id).out
		return strings.Contains(out, "\nstep first is queued: No worker serves the queue far.") && strings.Count(out, "\nstep ") == 10 && strings.HasSuffix(out, "\n5 more have not ended.\n"), out
	})
	call(0, "", "run", "cancel", id)
	if got := call(0, "", "run", "why", id).out; strings.Contains(got, "step") {
		t.Errorf("of a run that has ended it says\n%s", got)
	}
}

// workflowPage is docs/workflows.md.
func workflowPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "workflows.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every definition on the page is right, and the picture is that of the first.
func TestTheWorkflowsOfThePage(t *testing.T) {
	page := workflowPage(t)
	found := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		found++
		if got := belfry(t, block[1], "workflow", "validate", "-"); got.code != 0 {
			t.Errorf("%s\n%s", block[1], got.errors)
		}
	}
	if found < 2 {
		t.Errorf("only %d definitions were found", found)
	}
	first := regexp.MustCompile(`(?s)cat > etl\.yaml <<'END'\n(.*?)END\n`).FindStringSubmatch(page)
	if first == nil {
		t.Fatal("the page has no etl.yaml")
	}
	picture := filepath.Join("..", "..", "docs", "workflow.svg")
	got := belfry(t, first[1], "workflow", "graph", "-", "--format", "svg").out
	if *update {
		if err := os.WriteFile(picture, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown, err := os.ReadFile(picture); err != nil || string(shown) != got {
		t.Error("docs/workflow.svg is not what the command draws; make generate writes it", err)
	}
}

// What the page says is not built yet is refused as such; a test of lib/flow finds what it does not say.
func TestThePageSaysWhatIsNotBuilt(t *testing.T) {
	_, list, found := strings.Cut(workflowPage(t), "## Not built yet")
	if !found {
		t.Fatal("the page does not say what is not built")
	}
	steps, rest, _ := strings.Cut(list, "- of a workflow:")
	ofWorkflow, _, _ := strings.Cut(rest, "\n- ")
	for _, c := range []struct{ list, of string }{{steps, `steps: {x: {pass: {}, %s: 1}}`}, {ofWorkflow, `{%s: 1, steps: {x: {pass: {}}}}`}} {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(c.list, -1) {
			if name[1] == "timeout" || name[1] == "steps" {
				continue
			}
			got := belfry(t, fmt.Sprintf(c.of, name[1]), "workflow", "validate", "-")
			if !strings.Contains(got.errors, name[1]+": want nothing here: "+name[1]+" is not built yet") {
				t.Errorf("%s: %s", name[1], got.errors)
			}
		}
	}
}
