package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// ErrDefinition says that a stored workflow cannot be used here: a newer version of Belfry may.
var ErrDefinition = errors.New("the workflow cannot be used")

// CheckTarget makes a workflow of the text in a job's target, which is to run. Errors name fields of the job. queue is that of the job, for the
// tasks that name none.
func CheckTarget(text json.RawMessage, inherited string, judge Judge) (*Workflow, error) {
	const at = "target.workflow"
	v, err := Parse(text)
	if err != nil {
		return nil, invalid.Under(at, err)
	}
	w, err := Check(v, func(def job.Definition) error {
		fill(&def.Queue, inherited)
		return judge(def)
	})
	return w, invalid.Under(at, err)
}

// field is the path of a node's field in the definition.
func (w *Workflow) field(n *Node) string {
	if n.Scope == None {
		return "steps." + n.Name
	}
	return w.field(&w.Nodes[n.Scope]) + ".steps." + n.Name
}

// compilation is what is made of the edition of a job whose target is a workflow.
type compilation struct {
	workflow *Workflow
	steps    map[string]*job.Edition // of tasks, by path
}

// Of gives the workflow of an edition whose job has one. An error is ErrDefinition.
func Of(e *job.Edition) (*Workflow, error) {
	c, err := compilationOf(e)
	if err != nil {
		return nil, err
	}
	return c.workflow, nil
}

// StepOf gives what attempts of a step go by, of a job's edition whose target is a workflow. An error is ErrDefinition, and so is a step that the
// workflow does not have.
func StepOf(e *job.Edition, path string) (*job.Edition, error) {
	c, err := compilationOf(e)
	if err != nil {
		return nil, err
	}
	step := c.steps[path]
	if step == nil {
		return nil, fmt.Errorf("%w: it has no task %q", ErrDefinition, path)
	}
	return step, nil
}

func compilationOf(e *job.Edition) (*compilation, error) {
	made, err := e.Made(func() (any, error) {
		w, err := Read(e.Def.Target.Workflow)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDefinition, err)
		}
		c := &compilation{workflow: w, steps: map[string]*job.Edition{}}
		for i := range w.Nodes {
			if n := &w.Nodes[i]; n.Kind == KindTask {
				c.steps[n.Path] = w.edition(n, e)
			}
		}
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*compilation), nil
}

// Longest is for how long a run of a job may be under way at the most. One whose workflow cannot be used here may have the longest timeout.
func Longest(def job.Definition) time.Duration {
	if def.Target.Workflow == nil {
		return def.Retry.Longest(def.Timeout.Std())
	}
	w, err := Read(def.Target.Workflow)
	if err != nil {
		return MaxTimeout
	}
	return w.Timeout.Std()
}

// Within reports whether a node is in a scope, directly or in scopes in it; both by index.
func (w *Workflow) Within(index, scope int) bool {
	for n := w.Nodes[index].Scope; n != None; n = w.Nodes[n].Scope {
		if n == scope {
			return true
		}
	}
	return false
}

// Before lists the nodes whose ends a node may have waited for, by index, in no order: those that it and the scopes around it need, what is in these, and all
// that stands before them.
func (w *Workflow) Before(index int) []int {
	var all []int
	met := make([]bool, len(w.Nodes))
	add := func(n int) {
		if !met[n] {
			met[n] = true
			all = append(all, n)
		}
	}
	needs := func(n *Node) {
		for _, needed := range n.Needs {
			add(needed)
		}
	}
	for n := index; n != None; n = w.Nodes[n].Scope {
		needs(&w.Nodes[n])
	}
	for i := 0; i < len(all); i++ {
		n := &w.Nodes[all[i]]
		needs(n)
		if n.Kind == KindScope {
			for _, inner := range n.Body.Steps {
				add(inner)
			}
		}
	}
	return all
}

// edition is what attempts of a task go by.
func (w *Workflow) edition(n *Node, of *job.Edition) *job.Edition {
	t := n.Task
	def := job.Definition{Target: literal(t.Target), Payload: of.Def.Payload, Queue: t.Queue, Priority: t.Priority, Timeout: t.Timeout, Guarantee: t.Guarantee,
		Retry: t.Retry, Retention: schedule.Duration(of.Def.Kept()), Labels: of.Def.Labels}
	fill(&def.Queue, of.Def.Queue)
	if t.Input != nil && n.Data == nil {
		def.Payload = unescaped(t.Input)
	}
	return &job.Edition{Generation: of.Generation, Def: def, Own: t.Input != nil, Computed: n.Data != nil}
}

// PriorityOf is the priority of a step of a run.
func (n *Node) PriorityOf(run queue.Priority) queue.Priority {
	if n.Task.Priority != "" {
		return n.Task.Priority
	}
	return run
}

// unescaped is a text in which what stands for no expression stands for itself.
func unescaped[T ~string | ~[]byte](text T) T {
	return T(bytes.ReplaceAll([]byte(text), []byte("$${"), []byte("${")))
}

// literal is a target as it is called. Texts that may come to hold expressions are those that have something to escape.
func literal(s target.Spec) target.Spec {
	switch {
	case s.HTTP != nil:
		h := *s.HTTP
		h.URL, h.Headers = unescaped(h.URL), literals(h.Headers)
		s.HTTP = &h
	case s.Exec != nil:
		x := *s.Exec
		x.Argv, x.Env = make([]string, len(x.Argv)), literals(x.Env)
		for i, word := range s.Exec.Argv {
			x.Argv[i] = unescaped(word)
		}
		s.Exec = &x
	}
	return s
}

func literals(values map[string]target.Value) map[string]target.Value {
	if values == nil {
		return nil
	}
	out := make(map[string]target.Value, len(values))
	for name, v := range values {
		v.Text = unescaped(v.Text)
		out[name] = v
	}
	return out
}
