package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Delay is what a wait waits for, as a user writes it. One of its fields is given.
type Delay struct {
	For   schedule.Duration `json:"for,omitempty"`   // from the end of what released it
	Until string            `json:"until,omitempty"` // an instant as ParseInstant reads it, or a text with expressions that gives one

	at   time.Time // of an Until without expressions
	data *Data     // of one with some
}

// wantInstant says what an instant looks like.
const wantInstant = `an instant such as "2026-12-24T18:00:00Z", or a time in a zone such as "2026-12-24T18:00[Europe/Berlin]"`

// MaxInstant is how long the text of an instant may be, in bytes.
const MaxInstant = 100

// ParseInstant reads an instant: RFC 3339, or the time that a zone's clock shows, with the zone's name behind it in brackets. A time that the clock does not show, or
// shows twice, is read as schedule.Local says. The error says what would be right.
func ParseInstant(text string) (time.Time, error) {
	wrong := invalid.Field("", invalid.Cut(text), wantInstant)
	if len(text) > MaxInstant {
		return time.Time{}, wrong
	}
	clock, name, zoned := strings.Cut(text, "[")
	if !zoned {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, wrong
		}
		return whole(at), nil
	}
	name, closed := strings.CutSuffix(name, "]")
	if !closed {
		return time.Time{}, wrong
	}
	zone, err := schedule.LoadZone(name)
	if err != nil {
		for _, e := range invalid.All(err) {
			return time.Time{}, invalid.Field("", text, e.Want+" in the brackets")
		}
		return time.Time{}, err
	}
	for _, form := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if wall, err := time.Parse(form, clock); err == nil {
			at, _ := schedule.Local(wall, zone)
			return whole(at), nil
		}
	}
	return time.Time{}, wrong
}

// whole is an instant in whole milliseconds, and never before it.
func whole(at time.Time) time.Time {
	return at.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC()
}

// instant is the shape of Delay.Until.
type instant struct{}

func (instant) want() string           { return wantInstant + ", or an expression in ${ } that gives one" }
func (instant) schema() map[string]any { return map[string]any{"type": "string", "minLength": 1} }

func (s instant) read(r *report, v *manifest.Value, at string) *manifest.Value {
	if v.Kind != manifest.Text || v.Scalar == "" {
		r.form(at, shownKind(v), s.want())
		return nil
	}
	t, err := expression.ParseText(v.Scalar)
	if err != nil {
		r.wrongly(at, err)
		return nil
	}
	if len(t.Expressions()) == 0 {
		if _, err := ParseInstant(v.Scalar); err != nil {
			for _, e := range invalid.All(err) {
				r.add(at, e.Got, e.Want+", or an expression in ${ } that gives one")
			}
			return nil
		}
	}
	return v
}

var waitShape = object{
	phrase: `an object such as {"for": "2h"} or {"until": "2026-12-24T18:00:00Z"}`,
	one:    []string{"for", "until"},
	later:  []string{"signal", "timeout"},
	fields: []field{
		{name: "for", shape: durationShape, doc: "how long, from the end of the step that it follows from"},
		{name: "until", shape: instant{}, doc: "until when: an instant of RFC 3339, a time in a zone such as 2026-12-24T18:00[Europe/Berlin], or an expression in ${ } that gives one of these; a past one ends at once"},
	},
}

// delay fills in what a wait waits for.
func (c *checker) delay(s Step, at string) *Delay {
	d := *s.Wait
	if limit := c.w.Timeout; d.For > limit {
		c.add(at+".wait.for", d.For.String(), "at most "+limit.String()+", which is the timeout of the whole workflow")
	}
	if t, err := ParseInstant(d.Until); err == nil {
		d.at = t
	}
	return &d
}

// Computed tells whether an expression says until when to wait.
func (d *Delay) Computed() bool { return d.data != nil }

// String says what is waited for.
func (d *Delay) String() string {
	switch {
	case d.For != 0:
		return "for " + d.For.String()
	default:
		return "until " + d.Until
	}
}

// untilData reads the expressions of a wait.
func (c *checker) untilData(at string, n *Node) {
	text, err := json.Marshal(n.Wait.Until)
	if err == nil && n.Wait.Until != "" {
		n.Wait.data = c.data(at+".wait.until", text, n)
	}
}

// mayFail tells whether an expression is evaluated, which may fail, before it is known what becomes of the node.
func (n *Node) mayFail() bool {
	return n.Kind == KindSwitch || n.When != "" || n.Wait != nil && n.Wait.Computed()
}

// Waits tells whether the workflow has steps that wait.
func (w *Workflow) Waits() bool {
	return slices.ContainsFunc(w.Nodes, func(n Node) bool { return n.Kind == KindWait })
}

// Limits tells whether the workflow has scopes with a timeout.
func (w *Workflow) Limits() bool {
	return slices.ContainsFunc(w.Nodes, func(n Node) bool { return n.Kind == KindScope && n.Timeout != 0 })
}

// Settled tells whether nothing follows from the facts that were decided over: nothing is to be released, asked, stopped or ended.
func (d *Decisions) Settled() bool {
	return d.End == "" && d.Stop == None && len(d.Halt) == 0 && len(d.Release) == 0 && len(d.Ask) == 0 && len(d.Cancel) == 0
}

// Until evaluates until when a wait is to wait that was released at since. An error is that of a text which Evaluation tells of.
func (e *Evaluation) Until(ctx context.Context, n *Node, since time.Time) (until time.Time, err error) {
	d := n.Wait
	switch {
	case d.For != 0:
		return since.Add(d.For.Std()), nil
	case d.data == nil:
		return d.at, nil
	}
	err = e.text(ctx, d.data.at, d.data.Reading(), func() error {
		v, err := e.value(d.data)
		if err != nil {
			return err
		}
		text, is := v.(string)
		if !is {
			return within(d.data.at, &expression.Failure{Message: "it gives " + shownValue(v) + "; want " + wantInstant})
		}
		until, err = ParseInstant(text)
		if err != nil {
			return within(d.data.at, &expression.Failure{Message: fmt.Sprintf("it gives %s; want %s", invalid.Quote(text), wantInstant)})
		}
		return nil
	})
	return until, err
}

// checkWait holds an outcome against the wait that it is for.
func (n *Node) checkWait(o Outcome) error {
	fails := n.mayFail()
	switch {
	case o.State != "" && (o.State != Failed || !fails):
		want := `nothing: this wait cannot fail; {"takes": "3d"} says how long it is`
		if fails {
			want = `failed, where an expression of the wait fails`
		}
		return invalid.Field("state", string(o.State), want)
	case o.State != "" && o.Takes != nil:
		return invalid.Field("takes", o.Takes.String(), "nothing beside the state failed")
	case o.To != nil:
		return wrong("to", o.To, "nothing: only a switch chooses")
	case o.Fails != 0:
		return invalid.Field("fails", fmt.Sprint(o.Fails), "nothing: a wait has no attempts")
	case o.Result != nil:
		return wrong("result", o.Result, "nothing: a wait has no result")
	case o.Code != "":
		return invalid.Field("code", o.Code, "nothing: a wait fails of its expressions alone")
	}
	return nil
}

// wait is how a wait goes that is released: as long as was told, or else as it says. One until an instant takes as long as any step of which nothing is told: a
// simulation has no date.
func (o Outcome) wait(d *Delay) course {
	c := course{state: o.State, takes: defaultTakes}
	switch {
	case c.state == Failed:
		c.takes, c.code = 0, target.KindExpression
		return c
	case o.Takes != nil:
		c.takes = o.Takes.Std()
	case d.For != 0:
		c.takes = d.For.Std()
	}
	c.state = Succeeded
	return c
}
