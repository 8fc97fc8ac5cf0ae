package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Judge says what is wrong with a task, given as the job that would do the same. Its errors name the job's fields.
type Judge func(job.Definition) error

// AnyQueue judges as a server does that has every queue.
func AnyQueue(def job.Definition) error {
	_, err := def.WithDefaults().Validate(func(name string) bool { return job.ValidName(name) == nil })
	return err
}

// Read is Check for a text of JSON, with tasks judged by AnyQueue.
func Read(text []byte) (*Workflow, error) {
	v, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return Check(v, AnyQueue)
}

// Parse reads a definition from a text of JSON. Of one that is too large no more is read than its size.
func Parse(text []byte) (*manifest.Value, error) {
	if len(text) > MaxBytes {
		return nil, tooLarge(len(text))
	}
	v, err := manifest.ReadJSON(text)
	if err != nil {
		return nil, invalid.Missing("", "JSON with each name once: "+err.Error())
	}
	return v, nil
}

func tooLarge(size int) error {
	return invalid.Missing("", fmt.Sprintf("at most %d bytes as JSON without blanks; it has %d", MaxBytes, size))
}

// Check makes a workflow of its definition. The error joins an *invalid.Error for all that is wrong, named by its path from the
// definition: steps.load.needs[1].
func Check(v *manifest.Value, judge Judge) (*Workflow, error) {
	if size := len(v.JSON()); size > MaxBytes {
		return nil, tooLarge(size)
	}
	r := &report{}
	kept := workflowShape.read(r, v, "")
	if kept == nil {
		return nil, r.err()
	}
	var def Definition
	if err := json.Unmarshal(kept.JSON(), &def); err != nil {
		return nil, errors.Join(r.err(), fmt.Errorf("read the definition: %w", err))
	}
	c := checkerOf(r, def, judge)
	c.build()
	if r.count() == 0 {
		c.expressions()
		c.catching()
		c.reach()
	}
	if r.count() > 0 {
		return nil, r.err()
	}
	return c.w, nil
}

// MarshalJSON gives the definition of which the workflow was made. Check makes the same workflow of it.
func (w *Workflow) MarshalJSON() ([]byte, error) { return json.Marshal(w.source) }

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// checker makes a workflow of a definition whose form was read.
type checker struct {
	*report
	judge  Judge
	def    Definition
	w      *Workflow
	size   int                 // how many steps there are
	stands map[string][]string // paths of the scopes in which a name stands, "" outside of every one
	blamed map[string]bool     // fields of the defaults that were reported
}

func checkerOf(r *report, def Definition, judge Judge) *checker {
	return &checker{report: r, judge: judge, def: def, stands: map[string][]string{}, blamed: map[string]bool{}}
}

// build makes the graph of all steps.
func (c *checker) build() {
	if d := c.def.Timeout; d != 0 && (d.Std() < time.Second || d.Std() > MaxTimeout) {
		c.add("timeout", d.String(), "a duration from 1s to "+schedule.Duration(MaxTimeout).String())
	}
	c.w = &Workflow{Timeout: c.def.Timeout, Stops: c.def.OnFailure == Stop, source: c.def}
	fill(&c.w.Timeout, schedule.Duration(DefaultTimeout))
	c.defaults()
	c.survey(c.def.Steps, "", 1)
	if c.size > MaxNodes {
		c.add("steps", fmt.Sprintf("%d steps", c.size), fmt.Sprintf("at most %d, those in scopes counted", MaxNodes))
		return
	}
	c.w.Top = c.graph(c.def.Steps, outside{scope: None, depth: 1, at: "steps"})
}

// survey counts the steps, and notes where their names stand.
func (c *checker) survey(steps map[string]Step, path string, depth int) {
	c.size += len(steps)
	for name, s := range steps {
		c.stands[name] = append(c.stands[name], path)
		if depth < MaxDepth {
			c.survey(s.Steps, join(path, name), depth+1)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// outside is what surrounds a graph.
type outside struct {
	scope int
	path  string
	at    string // of the field that has the steps
	depth int
	seen  []string // names of steps that the graph's own steps see outside of it
}

// graph adds the steps of one graph to the workflow, and returns which they are.
func (c *checker) graph(steps map[string]Step, around outside) []int {
	g := c.edges(steps, around)
	order := c.order(g)
	index := map[string]int{}
	var top []int
	for _, name := range order {
		s, at := steps[name], around.at+"."+name
		if slices.Contains(around.seen, name) {
			c.add(at, invalid.Quote(name), "another name: the steps here see a step of that name outside of their scope")
		}
		n := Node{Index: len(c.w.Nodes), Path: join(around.path, name), Name: name, Kind: kindOf(s), Depth: around.depth, Scope: around.scope,
			Rule: s.Rule, When: s.When, AllowFailure: s.AllowFailure, Switch: None}
		fill(&n.Rule, AllSuccess)
		for _, needed := range g.needs[name] {
			n.Needs = append(n.Needs, index[needed])
		}
		slices.Sort(n.Needs)
		if by := g.ledBy[name]; by != "" {
			n.Switch = index[by]
		}
		for _, by := range g.catches[name] {
			n.Catches = append(n.Catches, index[by])
		}
		slices.Sort(n.Catches)
		index[name] = n.Index
		top = append(top, n.Index)
		c.w.Nodes = append(c.w.Nodes, n)
		seen := around.seen
		if n.Kind == KindScope {
			seen = append(slices.Clone(seen), g.ancestors(name)...)
		}
		c.fill(n.Index, s, at, around, seen)
	}
	for _, i := range top {
		n := &c.w.Nodes[i]
		for _, needed := range n.Needs {
			c.w.Nodes[needed].Next = append(c.w.Nodes[needed].Next, i)
		}
		for _, choice := range steps[n.Name].Switch {
			if to, ok := index[choice.To]; ok {
				n.Ways = append(n.Ways, Way{When: choice.When, To: to})
			}
		}
		for _, clause := range steps[n.Name].Catch {
			if to, ok := index[clause.To]; ok {
				n.Catch = append(n.Catch, Clause{Codes: clause.Codes, To: to})
			}
		}
	}
	return top
}

// fill gives a node what its kind brings.
func (c *checker) fill(i int, s Step, at string, around outside, seen []string) {
	switch n := &c.w.Nodes[i]; n.Kind {
	case KindTask:
		n.Task = c.task(s, at)
	case KindPass:
		c.small(at+".pass.input", s.Pass.Input)
		n.Pass = s.Pass
	case KindWait:
		n.Wait = c.delay(s, at)
	case KindFail:
		n.Fail = &Fail{Code: s.Fail.Code, Message: s.Fail.Message}
		fill(&n.Fail.Code, DefaultCode)
	case KindScope:
		body := &Scope{}
		n.Body, n.Stops, n.Timeout = body, s.OnFailure == Stop, c.limit(s, at)
		if around.depth == MaxDepth {
			c.add(at+".steps", "", fmt.Sprintf("no scope here: there are %d levels of steps at most", MaxDepth))
			return
		}
		// The list of nodes grows, so n is not to be used from here on.
		body.Steps = c.graph(s.Steps, outside{scope: i, path: n.Path, at: at + ".steps", depth: around.depth + 1, seen: seen})
	}
}

// limit is how long a scope may take.
func (c *checker) limit(s Step, at string) schedule.Duration {
	if d := s.Timeout; d != 0 && (d.Std() < time.Second || d > c.w.Timeout) {
		c.add(at+".timeout", d.String(), "a duration from 1s to "+c.w.Timeout.String()+", which is the timeout of the whole workflow")
	}
	return s.Timeout
}

func kindOf(s Step) Kind {
	switch {
	case s.Steps != nil:
		return KindScope
	case s.Pass != nil:
		return KindPass
	case s.Fail != nil:
		return KindFail
	case s.Switch != nil:
		return KindSwitch
	case s.Wait != nil:
		return KindWait
	}
	return KindTask
}

// small reports JSON that is larger than what a job may have.
func (c *checker) small(at string, input json.RawMessage) {
	if len(input) > job.MaxPayload {
		c.add(at, fmt.Sprintf("%d bytes", len(input)), fmt.Sprintf("at most %d bytes", job.MaxPayload))
	}
}

// task fills in the defaults of a task and judges it as a job, unless the form of its target is wrong already.
func (c *checker) task(s Step, at string) *Task {
	c.small(at+".input", s.Input)
	own := job.Definition{Target: s.Spec, Timeout: s.Timeout, Guarantee: s.Guarantee, Queue: s.Queue, Priority: s.Priority}
	if s.Retry != nil {
		own.Retry = *s.Retry
	}
	def := c.withDefaults(own)
	if c.hasTarget(s.Spec, at) {
		says := settings(own)
		for field, e := range c.judged(def) {
			switch {
			case field == "":
				c.add(at, e.Got, e.Want)
			case says[field] || !c.blamed[field]:
				c.add(at+"."+field, e.Got, e.Want)
			}
		}
	}
	full := def.WithDefaults()
	return &Task{Target: s.Spec, Input: s.Input, Timeout: full.Timeout, Retry: full.Retry, Guarantee: full.Guarantee, Queue: def.Queue, Priority: def.Priority}
}

// hasTarget tells whether a step has one target, of the right form.
func (c *checker) hasTarget(s target.Spec, at string) bool {
	count := 0
	for i, is := range []bool{s.HTTP != nil, s.Exec != nil, s.Handler != nil, s.AWS != nil, s.Email != nil} {
		if is && c.reported(at+"."+targetFields[i]) {
			return false
		} else if is {
			count++
		}
	}
	return count == 1
}

// withDefaults fills in what a task leaves to the defaults of the workflow. One that runs at most once keeps its one attempt.
func (c *checker) withDefaults(def job.Definition) job.Definition {
	d := c.def.Defaults
	if d == nil {
		return def
	}
	fill(&def.Timeout, d.Timeout)
	fill(&def.Queue, d.Queue)
	fill(&def.Priority, d.Priority)
	if d.Retry != nil {
		if def.Guarantee != job.AtMostOnce {
			fill(&def.Retry.MaxAttempts, d.Retry.MaxAttempts)
		}
		fill(&def.Retry.Initial, d.Retry.Initial)
		fill(&def.Retry.Factor, d.Retry.Factor)
		fill(&def.Retry.Max, d.Retry.Max)
	}
	return def
}

// settings tells which of the fields that defaults may have a task says itself.
func settings(def job.Definition) map[string]bool {
	return map[string]bool{
		"timeout": def.Timeout != 0, "queue": def.Queue != "", "priority": def.Priority != "",
		"retry.max_attempts": def.Retry.MaxAttempts != 0, "retry.initial": def.Retry.Initial != 0, "retry.factor": def.Retry.Factor != 0, "retry.max": def.Retry.Max != 0,
	}
}

// defaults reports what no task could take of them, once for all tasks.
func (c *checker) defaults() {
	def := c.withDefaults(job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "any"}}})
	says := settings(def)
	for field, e := range c.judged(def) {
		if says[field] {
			c.blamed[field] = true
			c.add("defaults."+field, e.Got, e.Want)
		}
	}
}

// judged gives what is wrong with a task as a job, by the field of the step; "" is the step itself.
func (c *checker) judged(def job.Definition) iter.Seq2[string, *invalid.Error] {
	return func(yield func(string, *invalid.Error) bool) {
		err := c.judge(def)
		all := invalid.All(err)
		if err != nil && len(all) == 0 {
			all = []*invalid.Error{{Want: "a task that can run: " + err.Error()}}
		}
		for _, e := range all {
			if !yield(strings.TrimPrefix(strings.TrimPrefix(e.Field, "target"), "."), e) {
				return
			}
		}
	}
}

// reported tells whether something is wrong already with a field, or in it.
func (c *checker) reported(at string) bool {
	return slices.ContainsFunc(c.wrong, func(e *invalid.Error) bool {
		rest, within := strings.CutPrefix(e.Field, at)
		return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
