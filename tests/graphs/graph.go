// Package graphs has workflows whose outcome is known, the target that their steps call, and what tells how their runs came out: for tests that
// do something to the processes that run them. The outcome is that of the evaluator in lib/flow/reference.
package graphs

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
)

// Graph is a workflow. What a task does beside its end is in its name: one that ends in -once has one attempt, and one that ends in -flaky fails in its first.
type Graph struct {
	Name  string // of its job
	Steps []reference.Step
}

const (
	good  = reference.Success
	bad   = reference.Failure
	flaky = "-flaky"
	once  = "-once"
)

func task(name string, end rune, rule string, parents ...string) reference.Step {
	if rule == "" {
		rule = "all_success"
	}
	return reference.Step{Name: name, End: end, Rule: rule, Parents: parents}
}

// caught has the failures of a step be handled by another, but those of workers that died.
func caught(s reference.Step, by string) reference.Step {
	s.Code, s.Catch = "http_status", []reference.Clause{{Codes: []string{"http_status"}, To: by}}
	return s
}

// Fixed gives graphs of every shape.
func Fixed() []Graph {
	wide, names := []reference.Step{}, []string{}
	for i := range 20 {
		name := fmt.Sprintf("p%02d", i)
		wide, names = append(wide, task(name, good, "")), append(names, name)
	}
	return []Graph{
		{"chain", []reference.Step{task("a", good, ""), task("b-flaky", good, "", "a"), task("c", good, "", "b-flaky"), task("d", good, "", "c")}},
		{"diamond", []reference.Step{task("a", good, ""), task("b", good, "", "a"), task("c-flaky", good, "", "a"), task("d", good, "", "b", "c-flaky")}},
		{"wide", append(wide, task("join", good, "", names...))},
		{"failed", []reference.Step{task("a", bad, ""), task("b", good, "", "a"), task("c", good, "one_failed", "a"), task("d", good, "all_done", "b", "c")}},
		{"scopes", []reference.Step{task("a", good, ""),
			{Name: "s", Rule: "all_success", Parents: []string{"a"}, Inside: []reference.Step{task("x", good, ""),
				{Name: "t", Rule: "all_success", Parents: []string{"x"}, Inside: []reference.Step{task("y", bad, ""), task("z", good, "always", "y")}}}},
			task("b", good, "one_failed", "s"), task("c", good, "", "s"), task("d", good, "none_failed_min_one_success", "b", "c")}},
		{"asked", []reference.Step{task("a", good, ""),
			{Name: "runs", Rule: "all_success", Parents: []string{"a"}, When: good, Reads: []string{".steps.x.result", ".steps.a.state"}, Inside: []reference.Step{task("x-flaky", good, ""), task("x", good, "", "x-flaky")}},
			{Name: "idle", Rule: "all_success", Parents: []string{"a"}, When: reference.Skip, Inside: []reference.Step{task("y", good, "")}},
			{Name: "wrong", Rule: "all_success", Parents: []string{"a"}, When: bad, Allowed: true, Inside: []reference.Step{task("z", good, "")}},
			task("b", good, "", "runs"), task("c", good, "all_skipped", "idle"), task("d", good, "", "wrong", "b")}},
		{"allowed", []reference.Step{{Name: "a", End: bad, Rule: "all_success", Allowed: true}, task("b", good, "", "a"), task("c", bad, "none_failed", "a", "b"), task("d", good, "one_failed", "c")}},
		{"early", []reference.Step{task("a", good, ""), task("b-flaky", good, ""), task("c", good, "one_success", "a", "b-flaky"), task("d", good, "always", "c"), task("e", good, "", "c", "d")}},
		{"caught", []reference.Step{caught(task("a", bad, ""), "c"), task("b", good, "", "a"), task("c", good, ""),
			caught(reference.Step{Name: "s", Rule: "all_success", Parents: []string{"c"}, Inside: []reference.Step{task("x-flaky", good, ""), caught(task("y", bad, "", "x-flaky"), "z"), {Name: "z", End: bad, Rule: "all_success", Code: "http_status"}}}, "d"),
			task("d", good, ""), task("e", good, "none_failed_min_one_success", "b", "d")}},
		{"once", []reference.Step{task("a-once", good, ""), task("b-once", good, "", "a-once"), task("c", good, "all_done", "b-once"), task("d-once", bad, "", "c"), task("e", good, "one_failed", "d-once")}},
	}
}

// Draw draws so many more.
func Draw(seed uint64, n int) []Graph {
	chance := rand.New(rand.NewPCG(seed, 1<<36))
	var all []Graph
	for len(all) < n {
		g := Graph{fmt.Sprint("drawn-", len(all)), drawSteps(chance, "s", 0)}
		if _, err := flow.CheckTarget(g.workflow("http://127.0.0.1"), job.DefaultQueue, flow.AnyQueue); err == nil { // each step can run
			all = append(all, g)
		}
	}
	return all
}

func drawSteps(chance *rand.Rand, prefix string, depth int) []reference.Step {
	steps := make([]reference.Step, 2+chance.IntN(5))
	for i := range steps {
		s := task(fmt.Sprintf("%s%d", prefix, i), good, "")
		switch chance.IntN(6) {
		case 0, 1:
			s.End = bad
		case 2:
			s.Name += flaky
		}
		for p := range i {
			if len(s.Parents) < 3 && chance.IntN(2) == 0 {
				s.Parents = append(s.Parents, steps[p].Name)
			}
		}
		if len(s.Parents) > 0 && chance.IntN(2) == 0 {
			s.Rule = string(flow.Rules[chance.IntN(len(flow.Rules))])
		}
		if depth < 2 && chance.IntN(5) == 0 {
			s.Inside = drawSteps(chance, s.Name+"-", depth+1)
		}
		s.Allowed = chance.IntN(6) == 0
		steps[i] = s
	}
	return steps
}

// payload is what every run of a graph brings, and so all of its steps get.
const payload = `{"day":"monday"}`

// Definition is a job of the workflow, whose tasks call url.
func (g Graph) Definition(url string) job.Definition {
	def := job.Definition{Payload: []byte(payload)}
	def.Target.Workflow = g.workflow(url)
	return def
}

func (g Graph) workflow(url string) []byte {
	return fmt.Appendf(nil, `{"defaults": {"timeout": "5m", "retry": {"max_attempts": 2, "initial": "20ms", "max": "50ms"}}, "steps": %s}`, stepsJSON(g.Steps, url))
}

func stepsJSON(steps []reference.Step, url string) string {
	texts := make([]string, len(steps))
	for i, s := range steps {
		text := fmt.Sprintf(`"http": {"url": %q}`, url)
		switch {
		case len(s.Inside) > 0:
			text = `"steps": ` + stepsJSON(s.Inside, url) + scopeJSON(s)
		case strings.HasSuffix(s.Name, once):
			text += `, "guarantee": "at_most_once"`
		}
		for _, c := range s.Catch {
			text += fmt.Sprintf(`, "catch": [{"codes": ["%s"], "to": "%s"}]`, c.Codes[0], c.To)
		}
		if s.Allowed {
			text += `, "allow_failure": true`
		}
		if len(s.Parents) > 0 {
			needs, err := json.Marshal(s.Parents)
			if err != nil {
				panic(err)
			}
			text += fmt.Sprintf(`, "needs": %s, "rule": "%s"`, needs, s.Rule)
		}
		texts[i] = fmt.Sprintf(`"%s": {%s}`, s.Name, text)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// scopeJSON is what a scope asks, of the payload that every run brings, and what it gives.
func scopeJSON(s reference.Step) (text string) {
	if asks := map[rune]string{good: `.input.day == \"monday\"`, reference.Skip: `.input.day == \"tuesday\"`, bad: `.input.day`}[s.When]; asks != "" {
		text = fmt.Sprintf(`, "when": "%s"`, asks)
	}
	if len(s.Reads) > 0 {
		text += fmt.Sprintf(`, "output": "${ [%s] }"`, strings.Join(s.Reads, ", "))
	}
	return text
}

// tasks calls f with each task, its path, and the tasks that have ended when it begins: those that its needs, and the needs of the scopes around it, have
// run, and those whose failures it handles. A rule that may let it run while others are open waits for none of them.
func (g Graph) tasks(f func(path string, s reference.Step, behind []string)) {
	ran := reference.Evaluate(g.Steps).Ran
	var walk func(steps []reference.Step, prefix string, behind []string)
	walk = func(steps []reference.Step, prefix string, behind []string) {
		for _, s := range steps {
			before := slices.Clone(behind)
			early := slices.Contains([]string{"always", "one_success", "one_failed", "one_done"}, s.Rule)
			for _, p := range steps {
				handled := slices.ContainsFunc(p.Catch, func(c reference.Clause) bool { return c.To == s.Name })
				if handled || !early && slices.Contains(s.Parents, p.Name) {
					inside(p, prefix, func(path string, _ reference.Step) {
						if ran[path] {
							before = append(before, path)
						}
					})
				}
			}
			if len(s.Inside) > 0 {
				walk(s.Inside, prefix+s.Name+"/", before)
				continue
			}
			f(prefix+s.Name, s, before)
		}
	}
	walk(g.Steps, "", nil)
}

// inside calls f with the task that a step is, or with those in it.
func inside(s reference.Step, prefix string, f func(path string, s reference.Step)) {
	if len(s.Inside) == 0 {
		f(prefix+s.Name, s)
	}
	for _, one := range s.Inside {
		inside(one, prefix+s.Name+"/", f)
	}
}

// draw draws what is always the same of a step: below n.
func draw(text string, n uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // it never fails
	return h.Sum32() % n
}
