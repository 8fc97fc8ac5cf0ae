package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Outcomes says how the nodes of a workflow come out in a simulation, by path.
type Outcomes map[string]Outcome

// Outcome is how one node comes out if it is released. The zero Outcome is a task that succeeds at its first attempt in one second, or a
// switch that takes the way without a condition.
type Outcome struct {
	// State is how a task ends; "" is Succeeded, or Dead where all attempts fail.
	State State `json:"state,omitempty"`
	// Takes is the time of each attempt; nil is one second. One that takes longer than the step's timeout fails when that is over.
	Takes *schedule.Duration `json:"takes,omitempty"`
	// Fails is how many attempts fail before the one that State is about.
	Fails int `json:"fails,omitempty"`
	// Code is what a task fails of, as catch names it; without a State it ends as Failed. "": what nobody names, or timeout and crash where that is plain.
	Code string `json:"code,omitempty"`
	// To is the name of the step that a switch chooses, or null for none of its ways.
	To json.RawMessage `json:"to,omitempty"`
	// Result is what a task gives, for expressions that read it; nil where nothing is said.
	Result json.RawMessage `json:"result,omitempty"`
}

// defaultTakes is how long an attempt takes of which nothing is said.
const defaultTakes = time.Second

// madeUp are the states that a task can be told to end in.
var madeUp = []State{Succeeded, Failed, Dead, Unknown, Cancelled, Skipped}

// wantOutcome says what a node's outcome looks like.
func wantOutcome(n *Node) string {
	if n.Kind == KindSwitch {
		return `{"to": "NAME"} with the step that the switch chooses, {"to": null} for none, or "failed" where a condition fails`
	}
	if n.Kind == KindWait {
		return `{"takes": "3d"} with how long it waits, or "failed" where its expression fails`
	}
	return `a state such as "failed", or an object of state, takes, fails, code and result`
}

// wrong reports a field that holds what it cannot. A text is shown in quotes, other JSON as it is.
func wrong(field string, got json.RawMessage, want string) error {
	shown := invalid.Cut(string(got))
	var text string
	if got[0] == '"' && json.Unmarshal(got, &text) == nil {
		shown = invalid.Quote(text)
	}
	return &invalid.Error{Field: field, Got: shown, Want: want}
}

// ReadOutcomes reads outcomes and checks them against the workflow: an object that has an outcome, or just a state, for paths of nodes.
// Nothing, or null, is no outcome at all. An error names its field by the path.
func (w *Workflow) ReadOutcomes(text []byte) (Outcomes, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, nil
	}
	if _, err := manifest.ReadJSON(text); err != nil {
		return nil, invalid.Missing("", "JSON with each name once: "+err.Error())
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, wrong("", text, `an object such as {"load": "failed", "parts/index": {"takes": "5s"}}`)
	}
	paths := make([]string, len(w.Nodes))
	for i := range w.Nodes {
		paths[i] = w.Nodes[i].Path
	}
	outcomes := Outcomes{}
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(parts)) {
		n, ok := w.Node(path)
		if !ok {
			want := "the path of a step of the workflow"
			if len(errs) < invalid.Most { // behind the errors that anybody reads, no more is guessed
				if near := invalid.Nearest(path, paths); near != "" {
					want += `; did you mean "` + near + `"?`
				}
			}
			errs = append(errs, invalid.Field(path, path, want))
			continue
		}
		o, err := readOutcome(n, parts[path])
		if err == nil {
			err = w.check(n, o)
		}
		if err != nil {
			if parts[path][0] == '"' { // there is no field to name
				for _, e := range invalid.All(err) {
					e.Field = ""
				}
			}
			errs = append(errs, invalid.Under(path, err))
			continue
		}
		outcomes[path] = o
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return outcomes, nil
}

func readOutcome(n *Node, text json.RawMessage) (Outcome, error) {
	var o Outcome
	var fields map[string]json.RawMessage
	switch text[0] {
	case '"':
		fields = map[string]json.RawMessage{"state": text}
	case '{':
		if err := json.Unmarshal(text, &fields); err != nil {
			return o, wrong("", text, wantOutcome(n))
		}
	default:
		return o, wrong("", text, wantOutcome(n))
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		switch name {
		case "state":
			// Of what is no task, check says it better.
			if json.Unmarshal(field, &o.State) != nil || o.State == "" || n.Kind == KindTask && !slices.Contains(madeUp, o.State) {
				errs = append(errs, wrong(name, field, "one of "+states(madeUp)))
			}
		case "takes":
			if string(field) == "null" {
				errs = append(errs, wrong(name, field, `a duration such as "5s", or the field left out`))
				continue
			}
			errs = append(errs, invalid.Under(name, json.Unmarshal(field, &o.Takes)))
		case "fails":
			if json.Unmarshal(field, &o.Fails) != nil || string(field) == "null" {
				errs = append(errs, wrong(name, field, "a whole number"))
			}
		case "code":
			if json.Unmarshal(field, &o.Code) != nil || o.Code == "" {
				errs = append(errs, wrong(name, field, `a code that the step can fail with, such as "timeout"`))
			}
		case "to":
			o.To = field
		case "result":
			o.Result = field
		default:
			errs = append(errs, invalid.Field(name, name, "one of state, takes, fails, code, to and result"))
		}
	}
	return o, errors.Join(errs...)
}

func states(all []State) string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// check holds an outcome against the node that it is for.
func (w *Workflow) check(n *Node, o Outcome) error {
	if n.Kind != KindTask && n.Kind != KindSwitch && n.Kind != KindWait {
		return invalid.Field("", n.Kind.String(), "no outcome: only of tasks, switches and waits it can be said how they come out")
	}
	if n.Kind == KindWait {
		return n.checkWait(o)
	}
	if n.Kind == KindSwitch {
		switch {
		case o.State != "" && o.State != Failed:
			name := "NAME"
			if slices.ContainsFunc(n.Ways, func(way Way) bool { return w.Nodes[way.To].Name == string(o.State) }) {
				name = string(o.State)
			}
			return invalid.Field("state", string(o.State), `failed, where a condition of the switch fails; else {"to": "`+name+`"} with what it chooses`)
		case o.Takes != nil:
			return invalid.Field("takes", o.Takes.String(), "nothing: a switch takes no time")
		case o.Fails != 0:
			return invalid.Field("fails", strconv.Itoa(o.Fails), "nothing: a switch has no attempts")
		case o.Result != nil:
			return wrong("result", o.Result, "nothing: a switch has no result")
		case o.Code != "":
			return invalid.Field("code", o.Code, "nothing: a switch fails of its expressions alone")
		case o.State != "" && o.To != nil:
			return wrong("to", o.To, "nothing beside the state failed")
		}
		_, err := w.chosen(n, o)
		return err
	}
	var errs []error
	refuse := func(field, got, want string) { errs = append(errs, invalid.Field(field, got, want)) }
	if o.To != nil {
		errs = append(errs, wrong("to", o.To, "nothing: only a switch chooses"))
	}
	if o.Code != "" {
		all := codes{}
		w.codesOf(n, all)
		delete(all, string(Unknown)) // which is a state
		switch {
		case o.State != "" && !o.State.Failure():
			refuse("code", o.Code, "nothing beside the state "+string(o.State))
		case !all.allows(o.Code) || strings.HasPrefix(o.Code, statusCode) && strings.HasSuffix(o.Code, hundreds):
			refuse("code", o.Code, "a code that the step can fail with: "+all.text())
		}
	}
	most := n.Task.Retry.MaxAttempts
	switch {
	case o.Fails < 0 || o.Fails > most:
		refuse("fails", strconv.Itoa(o.Fails), fmt.Sprintf("a number from 0 to %d, which is the step's retry.max_attempts", most))
	case o.Fails > 0 && (o.State == Dead || o.State == Skipped):
		refuse("fails", strconv.Itoa(o.Fails), fmt.Sprintf("nothing beside the state %s", o.State))
	case o.State != "" && o.Fails == most && most > 0:
		refuse("fails", strconv.Itoa(o.Fails), fmt.Sprintf("at most %d beside a state: the last of the step's %d attempts ends in it", most-1, most))
	}
	return errors.Join(errs...)
}

// chosen finds the node that the outcome lets a switch choose, or None.
func (w *Workflow) chosen(n *Node, o Outcome) (int, error) {
	if o.To == nil {
		for _, way := range n.Ways {
			if way.When == "" {
				return way.To, nil
			}
		}
		return None, nil
	}
	if string(o.To) == "null" {
		return None, nil
	}
	var name string
	names := make([]string, len(n.Ways))
	if err := json.Unmarshal(o.To, &name); err != nil {
		return None, wrong("to", o.To, "the name of the step that the switch chooses, or null for none")
	}
	for i, way := range n.Ways {
		if names[i] = w.Nodes[way.To].Name; names[i] == name {
			return way.To, nil
		}
	}
	slices.Sort(names)
	return None, invalid.Field("to", name, "one of the steps that the switch names: "+strings.Join(slices.Compact(names), ", "))
}

// course is how a released task goes: attempts of some length, with waits between them.
type course struct {
	starts []time.Duration // of attempts, from its release
	takes  time.Duration   // from its release to the end of the last attempt
	state  State
	code   string
}

func (o Outcome) course(n *Node) course {
	if n.Kind == KindWait {
		return o.wait(n.Wait)
	}
	return o.task(n.Task)
}

func (o Outcome) task(t *Task) course {
	each := defaultTakes
	if o.Takes != nil {
		each = o.Takes.Std()
	}
	most := max(t.Retry.MaxAttempts, 1)
	c := course{state: o.State, code: o.Code}
	switch {
	case c.state != "":
	case c.code != "":
		c.state = Failed
	default:
		c.state = Succeeded
	}
	attempts := o.Fails + 1
	limit := t.Timeout.Std()
	switch slow := limit > 0 && each > limit; {
	case c.state == Skipped:
		return c
	case c.state == Unknown: // its worker died, so nobody tells how much longer it would have taken
		fill(&c.code, target.CodeCrash)
	case slow:
		attempts, c.state = most, Dead
		fill(&c.code, target.KindTimeout)
	case c.state == Dead, attempts > most:
		attempts, c.state = most, Dead
	}
	if limit > 0 {
		each = min(each, limit)
	}
	for n := range attempts {
		if n > 0 {
			_, most := t.Retry.Wait(n)
			c.takes = later(c.takes, most)
		}
		c.starts = append(c.starts, c.takes)
		c.takes = later(c.takes, each)
	}
	return c
}
