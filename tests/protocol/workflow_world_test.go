package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// flowWorld is a world with the run of one workflow in it, which is judged by the evaluator and not by the oracle.
type flowWorld struct {
	*world
	steps []reference.Step
	id    run.ID

	mu       sync.Mutex
	calls    []call
	during   func(path string) // called in each attempt
	stopped  bool              // a cancel was answered: nothing may start any more
	breaches []string
	handed   map[string]string // what a step was handed, by its name RUN/PATH
	tries    map[string]int    // attempts that were told to fail, by path
}

// call is one attempt of a step that reached its target.
type call struct {
	step    run.ID
	attempt int
	fence   uint64
}

// newFlowWorld has a job whose workflow has these steps, triggered once. Each calls a handler that ends as the step says. change is what the job has
// beside its target.
func newFlowWorld(w *world, steps []reference.Step, change ...func(*job.Definition)) *flowWorld {
	f := &flowWorld{world: w, steps: steps, handed: map[string]string{}, tries: map[string]int{}}
	ends, fails, codes := map[string]rune{}, map[string]int{}, map[string]string{}
	var note func(steps []reference.Step, prefix string)
	note = func(steps []reference.Step, prefix string) {
		for _, s := range steps {
			ends[prefix+s.Name], fails[prefix+s.Name] = s.End, s.Fails
			codes[prefix+s.Name] = strings.TrimPrefix(s.Code, target.KindHandler+":")
			note(s.Inside, prefix+s.Name+"/")
		}
	}
	note(steps, "")
	w.must(w.handlers.Register("act", func(_ context.Context, c target.Call) (target.Result, error) {
		id, err := run.ParseID(c.Run)
		if err != nil {
			return target.Result{}, err
		}
		f.mu.Lock()
		f.calls = append(f.calls, call{id, c.Attempt, c.Fence})
		if first, again := f.handed[c.Run]; again && first != string(c.Payload) {
			f.breaches = append(f.breaches, fmt.Sprintf("W9: step %s was handed %s, and then %s", id.Step, first, c.Payload))
		}
		f.handed[c.Run] = string(c.Payload)
		if f.stopped {
			f.breaches = append(f.breaches, "W5: step "+id.Step+" started after the cancel was answered")
		}
		during := f.during
		again := f.tries[id.Step] < fails[id.Step]
		f.tries[id.Step]++
		f.mu.Unlock()
		if during != nil {
			during(id.Step)
		}
		if again {
			return target.Result{}, errors.New("told to, for now")
		}
		if ends[id.Step] == reference.Failure {
			err := target.Permanent(errors.New("told to"))
			if code := codes[id.Step]; code != target.KindHandler {
				err = target.WithCode(code, err)
			}
			return target.Result{}, err
		}
		result := c.Payload
		if bytes.HasPrefix(result, []byte("[")) { // by its input; whoever reads several would be handed ever more
			digest := fnv.New64()
			digest.Write(result)
			result = fmt.Appendf(nil, `"%x"`, digest.Sum64())
		}
		return target.Result{Body: result, ContentType: "application/json"}, nil
	}))
	var def job.Definition
	for _, c := range change {
		c(&def)
	}
	w.must(f.defineAs("flow", "", def))
	r, _, err := w.host("api").control.Trigger(context.Background(), tenant, "flow", control.Request{Payload: []byte(`{"day":"monday"}`)})
	w.must(err)
	f.id = r.ID
	return f
}

// define puts a job of the workflow; more are fields of it as JSON, after a comma.
func (f *flowWorld) define(name, more string) error {
	return f.defineAs(name, more, job.Definition{})
}

// defineAs is define with what the job has beside its target.
func (f *flowWorld) defineAs(name, more string, def job.Definition) error {
	def.Target = target.Spec{Workflow: fmt.Appendf(nil, `{"steps": %s%s}`, stepsJSON(f.steps), more)}
	_, _, err := f.host("api").control.Put(context.Background(), tenant, name, def, control.Match{})
	return err
}

func stepsJSON(steps []reference.Step) string {
	texts := make([]string, len(steps))
	for i, s := range steps {
		what, input := `"handler": {"name": "act"}`, ""
		if len(s.Reads) > 0 {
			input = `"input": "${ [` + strings.Join(s.Reads, ", ") + `] }"`
		}
		switch {
		case len(s.Inside) > 0:
			what = `"steps": ` + stepsJSON(s.Inside) + scopeJSON(s)
		case len(s.Choices) > 0:
			what = `"switch": ` + waysJSON(s)
		case s.Pass:
			what = `"pass": {` + input + `}`
		case input != "":
			what += ", " + input
		}
		if s.Fails > 0 {
			what += fmt.Sprintf(`, "retry": {"max_attempts": 20, "initial": "%s"}`, s.Again)
		}
		if s.End == reference.Skip {
			what += `, "when": ".input.day == \"tuesday\""`
		}
		if s.Allowed {
			what += `, "allow_failure": true`
		}
		if s.Catch != nil {
			what += `, "catch": ` + catchJSON(s.Catch)
		}
		if len(s.Parents) > 0 {
			what += fmt.Sprintf(`, "needs": ["%s"], "rule": "%s"`, strings.Join(s.Parents, `","`), s.Rule)
		}
		texts[i] = fmt.Sprintf(`"%s": {%s}`, s.Name, what)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func catchJSON(clauses []reference.Clause) string {
	texts := make([]string, len(clauses))
	for i, c := range clauses {
		codes := ""
		if c.Codes != nil {
			codes = `"codes": ["` + strings.Join(c.Codes, `","`) + `"], `
		}
		texts[i] = fmt.Sprintf(`{%s"to": "%s"}`, codes, c.To)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// waysJSON are the ways of a switch, of which the chosen one's condition holds.
func waysJSON(s reference.Step) string {
	var ways []string
	for _, to := range slices.Sorted(maps.Keys(s.Choices)) {
		day := "tuesday"
		if to == s.Chosen {
			day = "monday"
		}
		ways = append(ways, fmt.Sprintf(`{"when": ".input.day == \"%s\"", "to": "%s"}`, day, to))
	}
	return "[" + strings.Join(ways, ", ") + "]"
}

// crashing has a new worker host take what it can until its n-th operation, and then it is gone, with all that it holds. It tells whether it came so
// far, and the operation.
func (f *flowWorld) crashing(n int) (met bool, last string) {
	return f.crashingAfter(n, func(operation) faulty.Fault { return faulty.Fault{} })
}

// crashingAfter is crashing, with faults in the operations before.
func (f *flowWorld) crashingAfter(n int, before func(operation) faulty.Fault) (met bool, last string) {
	h := f.restart("worker")
	gone, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var at string
	h.before = func(op operation) faulty.Fault {
		if op.n < n {
			return before(op)
		}
		once.Do(func() { at = op.text(); close(gone) })
		<-over
		return faulty.Fault{Refuse: store.ErrClosed}
	}
	f.Cleanup(func() { close(over) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.work()
	}()
	select {
	case <-done:
	case <-gone:
		met, last = true, at
	}
	delete(f.hosts, "worker")
	return met, last
}

// lose has the queue forget every message that it could hand out now.
func (f *flowWorld) lose() {
	ctx := context.Background()
	for {
		got, err := f.queue.Receive(ctx, 10, 0, time.Second)
		f.must(err)
		if len(got) == 0 {
			return
		}
		_, err = f.queue.Delete(ctx, got...)
		f.must(err)
	}
}

// rows are the steps that were released, by path.
func (f *flowWorld) rows() map[string]run.Run {
	all, err := f.host("api").dispatch.Steps(context.Background(), run.Run{ID: f.id, Tenant: tenant})
	f.must(err)
	rows := map[string]run.Run{}
	for _, r := range all {
		rows[r.ID.Step] = r
	}
	return rows
}

func (f *flowWorld) head() run.Run {
	r, _ := f.run(tenant, f.id)
	return r
}

// calm lets everything come to its end, within the bounded time of a run's checks.
func (f *flowWorld) calm() {
	f.advance(4*time.Minute, 10*time.Second, "calm")
	for range 5 {
		if f.head().State.Ended() {
			return
		}
		f.advance(16*time.Minute, 10*time.Second, "calm") // further apart, and ticks judge no leases
	}
}

// wrong tells in what the run has not come out as the evaluator says.
func (f *flowWorld) wrong() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrong := slices.Clone(f.breaches)
	steps := f.came(f.steps)
	want := reference.Evaluate(steps)
	rows, head := f.rows(), f.head()
	state := run.Succeeded
	if want.End == reference.Failure {
		state = run.Failed
	}
	if head.State != state {
		wrong = append(wrong, fmt.Sprintf("W3, W4: the run is %s (%s), want %s", head.State, head.Reason, state))
	}
	written := map[string]rune{} // the ends of steps with a row of their own
	var note func(steps []reference.Step, prefix string)
	note = func(steps []reference.Step, prefix string) {
		for _, s := range steps {
			if len(s.Inside) == 0 && (!s.Pass || s.End == reference.Skip) {
				written[prefix+s.Name] = s.End
			}
			if s.When != 0 {
				written[prefix+s.Name] = s.When
			}
			note(s.Inside, prefix+s.Name+"/")
		}
	}
	note(steps, "")
	for _, path := range slices.Sorted(maps.Keys(written)) {
		row, released := rows[path]
		end := run.Succeeded
		switch written[path] {
		case reference.Failure:
			end = run.Failed
		case reference.Skip:
			end = run.Skipped
		}
		switch {
		case released != want.Ran[path]:
			wrong = append(wrong, fmt.Sprintf("W1, W2: step %s was released: %t, want %t", path, released, want.Ran[path]))
		case released && row.State != end && !(row.State == run.Cancelled && end == run.Failed && want.Codes[path] == "cancelled"):
			wrong = append(wrong, fmt.Sprintf("W2: step %s is %s, want %s", path, row.State, end))
		case row.Ended > head.Ended:
			wrong = append(wrong, fmt.Sprintf("W4: the run ended %d ms before its step %s", row.Ended-head.Ended, path))
		}
	}
	seen := map[call]bool{}
	for _, c := range f.calls {
		c.attempt = 0
		if seen[c] {
			wrong = append(wrong, fmt.Sprintf("W1: step %s was called twice under fence %d", c.step, c.fence))
		}
		seen[c] = true
	}
	return wrong
}

// task is a step that calls its target.
func task(name string, end rune, rule string, parents ...string) reference.Step {
	if rule == "" {
		rule = "all_success"
	}
	return reference.Step{Name: name, End: end, Rule: rule, Parents: parents}
}

func controlRequest() control.Request { return control.Request{} }

// freezing has a worker host take what it can until its n-th operation, before which it stands still. thaw lets it go on to its end; nil where it
// never came so far.
func (f *flowWorld) freezing(n int) (thaw func()) {
	h := f.restart("worker")
	still, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.before = func(op operation) faulty.Fault {
		if op.n == n {
			once.Do(func() { close(still) })
			<-goOn
		}
		return faulty.Fault{}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.must(h.worker.Pass(context.Background(), 0))
		for range 20 { // what it has sent itself meanwhile
			f.must(h.worker.Pass(context.Background(), 0))
		}
		close(over)
	}()
	select {
	case <-over:
		delete(f.hosts, "worker")
		return nil
	case <-still:
	}
	delete(f.hosts, "worker")
	return func() {
		h.before = nil
		close(goOn)
		<-done
	}
}
