package flow

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/expression"
)

// The bounds of what is evaluated.
const (
	MaxRead   = 8 << 20  // bytes that the expressions of one text read: results that they name, and the payload of the run
	MaxResult = 16 << 20 // bytes of the result of a step
)

// Facts are what expressions of one run may read. Nodes are given by their index.
type Facts interface {
	// Payload is what the run brings, as it was given.
	Payload(ctx context.Context) ([]byte, error)
	// Run is what is told of the run itself.
	Run() map[string]any
	// Seen is what is known of a node.
	Seen(index int) Seen
	// Result is what a task has given, as it was kept, and its media type.
	Result(ctx context.Context, index int) (data []byte, mediaType string, err error)
}

// RunFacts is what is told of a run: its ID, its job's name, the time that its schedule asked for, and whether that asked for it or a request.
func RunFacts(id, job, nominal, trigger string) map[string]any {
	return map[string]any{"id": id, "job": job, "nominal_time": nominal, "trigger": trigger}
}

// Seen is what is known of a node.
type Seen struct {
	State   State
	Error   string
	Attempt int
	Started time.Time
	Ended   time.Time
}

// Open is the state that expressions see of a step that had not ended when it was looked at for the first time.
const Open State = "open"

// Evaluation evaluates one text of a run's workflow. It is for one at a time, and for one text: what that may cost is counted.
type Evaluation struct {
	w      *Workflow
	facts  Facts
	budget *expression.Budget
	read   int // bytes
	known  map[int]any
}

// Evaluate begins an evaluation. Its errors are *expression.Failure where it would fail at any time, those of facts, and that of ctx once that has ended.
func (w *Workflow) Evaluate(ctx context.Context, facts Facts) *Evaluation {
	return &Evaluation{w: w, facts: facts, budget: expression.NewBudget(ctx), known: map[int]any{}}
}

// Holds asks a condition of a node.
func (e *Evaluation) Holds(ctx context.Context, c *Condition) (bool, error) {
	input, err := e.input(ctx, c.at, c.Reads(), c.names)
	if err != nil {
		return false, err
	}
	v, err := c.Eval(e.budget, input)
	if err != nil {
		return false, within(c.at, err)
	}
	holds, ok := v.(bool)
	if !ok {
		return false, within(c.at, &expression.Failure{Message: "it gives " + shownValue(v) + "; a condition is to give true or false"})
	}
	return holds, nil
}

// Choose asks a switch which node it chooses, or None.
func (e *Evaluation) Choose(ctx context.Context, n *Node) (int, error) {
	for _, way := range n.Ways {
		if way.Condition == nil {
			return way.To, nil
		}
		holds, err := e.Holds(ctx, way.Condition)
		if err != nil || holds {
			return way.To, err
		}
	}
	return None, nil
}

// Give gives what a text stands for, as JSON. A text that is nothing but a result gives that as it was kept, of whatever kind.
func (e *Evaluation) Give(ctx context.Context, d *Data) (data []byte, mediaType string, err error) {
	if name := d.Bare(); name != "" && e.w.Nodes[d.names[name]].Kind == KindTask {
		i := d.names[name]
		if e.facts.Seen(i).State != Succeeded {
			return []byte("null"), "application/json", nil
		}
		data, mediaType, err := e.facts.Result(ctx, i)
		if err == nil && len(data) == 0 {
			return []byte("null"), "application/json", nil
		}
		return data, mediaType, within(d.at, err)
	}
	v, err := e.value(ctx, d)
	if err != nil {
		return nil, "", err
	}
	data, err = e.budget.Marshal(v, expression.MaxBytes)
	return data, "application/json", within(d.at, err)
}

func (e *Evaluation) value(ctx context.Context, d *Data) (any, error) {
	input, err := e.input(ctx, d.at, d.Reads(), d.names)
	if err != nil {
		return nil, err
	}
	v, err := d.Eval(e.budget, d.at, input)
	return v, err
}

// input makes what an expression reads.
func (e *Evaluation) input(ctx context.Context, at string, reads expression.Reads, names map[string]int) (map[string]any, error) {
	input := map[string]any{"run": e.facts.Run()}
	if reads.Input {
		payload, err := e.facts.Payload(ctx)
		if err != nil {
			return nil, within(at, err)
		}
		if input["input"], err = e.decoded(payload, "", payloadOfRun); err != nil {
			return nil, within(at, err)
		}
	}
	steps := map[string]any{}
	for _, name := range reads.Names() {
		i := names[name]
		seen := e.facts.Seen(i)
		one := map[string]any{"state": string(seen.State), "result": nil, "error": nil, "attempt": seen.Attempt, "started_at": moment(seen.Started), "ended_at": moment(seen.Ended)}
		if seen.Error != "" {
			one["error"] = seen.Error
		}
		if reads.Result(name) && seen.State == Succeeded {
			var err error
			if one["result"], err = e.result(ctx, i); err != nil {
				return nil, within(at, err)
			}
		}
		steps[name] = one
	}
	input["steps"] = steps
	return input, nil
}

// result is what a node has given.
func (e *Evaluation) result(ctx context.Context, index int) (any, error) {
	if v, known := e.known[index]; known {
		return v, nil
	}
	n := &e.w.Nodes[index]
	var v any
	var err error
	switch {
	case n.Kind == KindTask:
		data, mediaType, failed := e.facts.Result(ctx, index)
		if failed != nil {
			return nil, failed
		}
		v, err = e.decoded(data, mediaType, "the result of step "+n.Path)
	case n.Data != nil:
		v, err = e.value(ctx, n.Data)
	case n.Kind == KindPass && n.Pass.Input != nil:
		v, err = expression.Decode(unescaped(n.Pass.Input))
	}
	if err != nil {
		return nil, err
	}
	e.known[index] = v
	return v, nil
}

// decoded makes of bytes what expressions read: what is said to be JSON, or as a payload is, and of anything else a text.
func (e *Evaluation) decoded(data []byte, mediaType, what string) (any, error) {
	if e.read += len(data); e.read > MaxRead {
		return nil, &expression.Failure{Message: fmt.Sprintf("what it reads has more than %d MiB", MaxRead>>20)}
	}
	if len(data) == 0 {
		return nil, nil
	}
	isJSON := isJSON(mediaType)
	if isJSON || mediaType == "" && what == payloadOfRun {
		v, err := expression.Decode(data)
		if err == nil || isJSON {
			return v, within(what, err)
		}
	}
	if !utf8.Valid(data) {
		return nil, &expression.Failure{Message: what + " is neither JSON nor text: only as a whole it can be handed on"}
	}
	return string(data), nil
}

const payloadOfRun = "the payload of the run"

func isJSON(mediaType string) bool {
	name, _, err := mime.ParseMediaType(mediaType)
	return err == nil && (name == "application/json" || strings.HasSuffix(name, "+json"))
}

func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// within says where a failure is, unless it says so itself.
func within(at string, err error) error {
	var wrong *expression.Failure
	if errors.As(err, &wrong) && !strings.HasPrefix(wrong.Message, at) {
		return &expression.Failure{Message: at + ": " + wrong.Message}
	}
	return err
}

func shownValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	default:
		return fmt.Sprint(v)
	}
}
