package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/target"
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
	// Caught lists the failures that a node handles, in the order of the nodes that have failed.
	Caught(index int) []Handled
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

// Evaluation evaluates texts of a run's workflow: conditions, and data. It is for one at a time. What a text may cost is counted for each by itself, whatever was
// evaluated before, so it comes out the same wherever that is done. Its errors are *expression.Failure where it would fail at any time, those of facts and of
// turns, and that of a context that has ended.
type Evaluation struct {
	w      *Workflow
	facts  Facts
	turn   Turn
	common *expression.Budget // of all texts; nil where each has its own
	known  map[int]*read      // what facts gave, by the index of the node, or payload
	size   int                // bytes of that

	// of the text in hand
	budget *expression.Budget
	counts map[int]bool // what of known counts
	bytes  int          // of that
	passes map[int]any  // what they give, and scopes
}

// Turn has f done when there is room for what it holds, with a context that ends when it has taken too long. All that f is to look at was read before.
type Turn func(ctx context.Context, f func(context.Context) error) error

// read is what was read of a node.
type read struct {
	data      []byte
	mediaType string
	value     any // once it is decoded for the text in hand
	decoded   bool
}

// payload stands for the payload of the run among nodes.
const payload = None

// maxKnown is how much is kept from one text for the next, in bytes.
const maxKnown = 256 << 10

// Evaluate begins evaluations of a run's workflow. turn may be nil: then nobody waits for a turn.
func (w *Workflow) Evaluate(facts Facts, turn Turn) *Evaluation {
	if turn == nil {
		turn = func(ctx context.Context, f func(context.Context) error) error { return f(ctx) }
	}
	return &Evaluation{w: w, facts: facts, turn: turn, known: map[int]*read{}}
}

// text has one text evaluated by f, in its turn. What it reads is read before: that may take long, and holds up no other.
func (e *Evaluation) text(ctx context.Context, at string, reads Reading, f func() error) error {
	e.counts, e.bytes, e.passes = map[int]bool{}, 0, map[int]any{}
	defer func() {
		if e.passes = nil; e.size > maxKnown {
			clear(e.known)
			e.size = 0
		}
		for _, r := range e.known { // the next text pays for what it has decoded by itself
			r.value, r.decoded = nil, false
		}
	}()
	if err := e.fetch(ctx, at, reads); err != nil {
		return err
	}
	return e.turn(ctx, func(ctx context.Context) error {
		if e.budget = e.common; e.budget == nil {
			e.budget = expression.NewBudget(ctx)
		}
		e.budget.Release() // by the text before
		return f()
	})
}

// fetch reads what is read, through passes too.
func (e *Evaluation) fetch(ctx context.Context, at string, reads Reading) error {
	if reads.Input {
		if err := e.take(payload, func() (data []byte, mediaType string, err error) {
			data, err = e.facts.Payload(ctx)
			return data, "", err
		}); err != nil {
			return within(at, err)
		}
	}
	for _, i := range reads.Results {
		n := &e.w.Nodes[i]
		if e.counts[i] || e.facts.Seen(i).State != Succeeded {
			continue
		}
		var err error
		switch {
		case n.Kind == KindTask:
			err = e.take(i, func() ([]byte, string, error) { return e.facts.Result(ctx, i) })
		case n.Data != nil:
			e.counts[i] = true
			err = e.fetch(ctx, n.Data.at, n.Data.Reading())
		}
		if err != nil {
			return within(at, err)
		}
	}
	return nil
}

// take has something be known, and counts it.
func (e *Evaluation) take(index int, from func() (data []byte, mediaType string, err error)) error {
	if e.counts[index] {
		return nil
	}
	if e.known[index] == nil {
		data, mediaType, err := from()
		if err != nil {
			return err
		}
		e.known[index] = &read{data: data, mediaType: mediaType}
		e.size += len(data)
	}
	e.counts[index] = true
	if e.bytes += len(e.known[index].data); e.bytes > MaxRead {
		return &expression.Failure{Message: fmt.Sprintf("%s is too large to compute with: all that is read may have %d MiB", e.what(index), MaxRead>>20)}
	}
	return nil
}

// what says in words what was read.
func (e *Evaluation) what(index int) string {
	if index == payload {
		return payloadOfRun
	}
	return "the result of step " + e.w.Nodes[index].Path
}

// Holds asks a condition of a node.
func (e *Evaluation) Holds(ctx context.Context, c *Condition) (holds bool, err error) {
	err = e.text(ctx, c.at, reading(c.Reads(), c.named), func() error {
		input, err := e.input(c.at, c.Reads(), c.named)
		if err != nil {
			return err
		}
		v, err := c.Eval(e.budget, input)
		if err != nil {
			return within(c.at, err)
		}
		var is bool
		if holds, is = v.(bool); !is {
			return within(c.at, &expression.Failure{Message: "it gives " + shownValue(v) + "; a condition is to give true or false"})
		}
		return nil
	})
	return holds, err
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
	if whole := e.passed(d); whole != nil {
		data, mediaType, err := e.Give(ctx, whole)
		return data, mediaType, within(d.at, err)
	}
	err = e.text(ctx, d.at, d.Reading(), func() error {
		v, err := e.value(d)
		if err != nil {
			return err
		}
		data, err = e.budget.Marshal(v, expression.MaxBytes)
		return within(d.at, err)
	})
	return data, "application/json", err
}

// passed is what a pass or scope hands on, which is a result as a whole, where a text is nothing but the result of that one; else nil.
func (e *Evaluation) passed(d *Data) *Data {
	if d.Bare() == "" {
		return nil
	}
	n := &e.w.Nodes[d.names[d.Bare()]]
	if !n.Gives() || n.Data.Bare() == "" || e.facts.Seen(n.Index).State != Succeeded {
		return nil
	}
	return n.Data
}

func (e *Evaluation) value(d *Data) (any, error) {
	input, err := e.input(d.at, d.Reads(), d.named)
	if err != nil {
		return nil, err
	}
	return d.Eval(e.budget, d.at, input)
}

// input makes what an expression reads.
func (e *Evaluation) input(at string, reads expression.Reads, of named) (map[string]any, error) {
	input := map[string]any{"run": e.facts.Run()}
	if reads.Input {
		var err error
		if input["input"], err = e.decode(payload); err != nil {
			return nil, within(at, err)
		}
	}
	steps := map[string]any{}
	for _, name := range reads.Names() {
		i := of.names[name]
		seen := e.facts.Seen(i)
		one := map[string]any{"state": string(seen.State), "result": nil, "error": nil, "attempt": seen.Attempt, "started_at": moment(seen.Started), "ended_at": moment(seen.Ended)}
		if seen.Error != "" {
			one["error"] = seen.Error
		}
		if reads.Result(name) && seen.State == Succeeded {
			var err error
			if one["result"], err = e.result(i); err != nil {
				return nil, within(at, err)
			}
		}
		steps[name] = one
	}
	input["steps"] = steps
	if reads.Caught {
		caught := []any{}
		for _, h := range e.facts.Caught(of.caught) {
			one := map[string]any{"step": h.Step, "error": nil, "code": h.Code}
			if h.Error != "" {
				one["error"] = h.Error
			}
			caught = append(caught, one)
		}
		input[expression.Caught] = caught
	}
	return input, nil
}

// result is what a node has given.
func (e *Evaluation) result(index int) (v any, err error) {
	n := &e.w.Nodes[index]
	if n.Kind == KindTask {
		return e.decode(index)
	}
	if v, met := e.passes[index]; met {
		return v, nil
	}
	switch {
	case n.Data != nil:
		v, err = e.value(n.Data)
	case n.Kind == KindPass && n.Pass.Input != nil:
		v, err = e.budget.Decode(unescaped(n.Pass.Input))
	}
	if err != nil {
		return nil, err
	}
	e.passes[index] = v
	return v, nil
}

// decode makes of what was read what expressions read: what is said to be JSON, or as a payload is, and of anything else a text.
func (e *Evaluation) decode(index int) (any, error) {
	r := e.known[index]
	if r.decoded {
		return r.value, nil
	}
	v, err := e.decoded(r, index)
	if err != nil {
		return nil, within(e.what(index), err)
	}
	r.value, r.decoded = v, true
	return v, nil
}

func (e *Evaluation) decoded(r *read, index int) (any, error) {
	switch {
	case len(r.data) == 0:
		return nil, nil
	case target.IsJSON(r.mediaType), r.mediaType == "" && index == payload && json.Valid(r.data):
		return e.budget.Decode(r.data)
	case !utf8.Valid(r.data):
		return nil, &expression.Failure{Message: e.what(index) + " is neither JSON nor text: only as a whole it can be handed on"}
	}
	return string(r.data), nil
}

const payloadOfRun = "the payload of the run"

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
