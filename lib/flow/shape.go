package flow

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// shape is the form of a value. What Check takes and what Schema says are both made of shapes, so they cannot differ.
type shape interface {
	// read reports what is wrong with a value, and returns what is right of it, nil where nothing is.
	read(r *report, v *manifest.Value, at string) *manifest.Value
	// want says in a phrase what would be right.
	want() string
	// schema is its JSON Schema.
	schema() map[string]any
}

// text is a text.
type text struct {
	phrase   string         // what would be right, where the pattern does not say it to people
	pattern  *regexp.Regexp // nil: any text
	longest  int            // in characters; 0: no bound
	empty    bool           // may be empty
	duration bool           // is one
	computed bool           // may come to hold expressions
}

func (s text) want() string {
	switch {
	case s.phrase != "":
		return s.phrase
	case s.longest > 0:
		return fmt.Sprintf("a text of 1 to %d characters", s.longest)
	}
	return "text in quotes"
}

func (s text) read(r *report, v *manifest.Value, at string) *manifest.Value {
	length := utf8.RuneCountInString(v.Scalar)
	switch {
	case v.Kind != manifest.Text:
		r.form(at, shownKind(v), s.want())
	case length == 0 && !s.empty, s.longest > 0 && length > s.longest, s.pattern != nil && !s.pattern.MatchString(v.Scalar):
		r.form(at, invalid.Quote(v.Scalar), s.want())
	case s.duration && !r.duration(v.Scalar, at):
	case s.computed && r.expression(v.Scalar, at):
	default:
		return v
	}
	return nil
}

func (s text) schema() map[string]any {
	m := map[string]any{"type": "string"}
	if s.pattern != nil {
		m["pattern"] = s.pattern.String()
	} else if !s.empty {
		m["minLength"] = 1
	}
	if s.longest > 0 {
		m["maxLength"] = s.longest
	}
	return m
}

// duration reports a text of the right pattern that is no duration that may be given.
func (r *report) duration(text, at string) bool {
	d, err := schedule.ParseDuration(text)
	if err == nil && d == 0 {
		err = invalid.Field("", text, "more than 0s, or the field left out")
	}
	for _, e := range invalid.All(err) {
		r.add(at, e.Got, e.Want)
	}
	return err == nil
}

// wrongly reports what is wrong with an expression.
func (r *report) wrongly(at string, err error) {
	var what *expression.Error
	if errors.As(err, &what) {
		r.add(at, what.Shown(), what.Want)
		return
	}
	r.add(at, "", err.Error())
}

// expression reports a text that holds one where none can stand yet: who writes one wants more than its characters.
func (r *report) expression(text, at string) bool {
	for rest := text; ; {
		i := strings.Index(rest, "${")
		if i < 0 {
			return false
		}
		if i == 0 || rest[i-1] != '$' {
			r.add(at, invalid.Quote(text), "text without ${: "+notBuilt("expressions here")+", and input takes them; for the characters themselves write $${")
			return true
		}
		rest = rest[i+2:]
	}
}

// condition is the text of an expression that stands by itself.
type condition struct{ text }

func (s condition) read(r *report, v *manifest.Value, at string) *manifest.Value {
	kept := s.text.read(r, v, at)
	if kept == nil {
		return nil
	}
	if strings.HasPrefix(strings.TrimSpace(kept.Scalar), "${") {
		r.add(at, invalid.Quote(kept.Scalar), "a bare condition, without ${ }")
		return nil
	}
	if _, err := expression.Parse(kept.Scalar); err != nil {
		r.wrongly(at, err)
		return nil
	}
	return kept
}

// choice is one of a few texts.
type choice struct{ of, later []string }

func (s choice) want() string { return oneOf(s.of) }

func (s choice) read(r *report, v *manifest.Value, at string) *manifest.Value {
	switch {
	case v.Kind != manifest.Text:
		r.form(at, shownKind(v), s.want())
	case slices.Contains(s.later, v.Scalar):
		r.form(at, invalid.Quote(v.Scalar), s.want()+": "+v.Scalar+" is not built yet")
	case !slices.Contains(s.of, v.Scalar):
		r.form(at, invalid.Quote(v.Scalar), s.want()+r.guess(v.Scalar, s.of))
	default:
		return v
	}
	return nil
}

func (s choice) schema() map[string]any { return map[string]any{"enum": s.of} }

// number is a number between two bounds.
type number struct {
	least, most float64
	whole       bool
}

func (s number) want() string {
	what := "a number"
	if s.whole {
		what = "a whole number"
	}
	return fmt.Sprintf("%s from %v to %v", what, s.least, s.most)
}

func (s number) read(r *report, v *manifest.Value, at string) *manifest.Value {
	if v.Kind != manifest.Number {
		r.form(at, shownKind(v), s.want())
		return nil
	}
	value, err := strconv.ParseFloat(v.Scalar, 64)
	if err != nil || value < s.least || value > s.most || s.whole && value != math.Trunc(value) {
		r.form(at, invalid.Cut(v.Scalar), s.want())
		return nil
	}
	if s.whole && strings.ContainsAny(v.Scalar, ".eE") { // a schema takes 3.0 for a whole number
		r.add(at, invalid.Cut(v.Scalar), s.want()+", without a fraction or exponent")
		return nil
	}
	return v
}

func (s number) schema() map[string]any {
	m := map[string]any{"type": "number", "minimum": s.least, "maximum": s.most}
	if s.whole {
		m["type"] = "integer"
	}
	return m
}

// yesOrNo is true or false.
type yesOrNo struct{}

func (yesOrNo) want() string           { return "true or false" }
func (yesOrNo) schema() map[string]any { return map[string]any{"type": "boolean"} }

func (s yesOrNo) read(r *report, v *manifest.Value, at string) *manifest.Value {
	if v.Kind != manifest.Bool {
		r.form(at, shownKind(v), s.want())
		return nil
	}
	return v
}

// data is any JSON, with expressions in its texts.
type data struct{}

func (data) want() string           { return "any JSON" }
func (data) schema() map[string]any { return map[string]any{} }

func (data) read(r *report, v *manifest.Value, at string) *manifest.Value {
	found := false
	var look func(v *manifest.Value, at string)
	look = func(v *manifest.Value, at string) {
		if v.Kind == manifest.Text {
			if _, err := expression.ParseText(v.Scalar); err != nil {
				r.wrongly(at, err)
				found = true
			}
		}
		for i, item := range v.Items {
			look(item, entry(at, i))
		}
		for _, m := range v.Members {
			if _, err := expression.Name(m.Name); err != nil {
				r.wrongly(at, err)
				found = true
			}
			look(m.Value, under(at, m.Name))
		}
	}
	look(v, at)
	if found {
		return nil
	}
	return v
}

// value is a text or the name of a secret: target.Value.
type value struct{}

var secretOf = object{fields: []field{{name: "secret", shape: text{pattern: regexp.MustCompile(target.SecretNamePattern), phrase: wantWide}, required: true}}}

func (value) want() string { return `a text, or {"secret": "name"}` }

func (s value) read(r *report, v *manifest.Value, at string) *manifest.Value {
	switch v.Kind {
	case manifest.Text:
		return text{empty: true, computed: true}.read(r, v, at)
	case manifest.Object:
		before := r.count()
		if kept := secretOf.read(r, v, at); r.count() == before {
			return kept
		}
	default:
		r.form(at, shownKind(v), s.want())
	}
	return nil
}

func (value) schema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, secretOf.schema()}}
}

// list is a list of values of one shape.
type list struct {
	of          shape
	least, most int // entries; most 0: no bound
	distinct    bool
	phrase      string
}

func (s list) want() string { return s.phrase }

func (s list) read(r *report, v *manifest.Value, at string) *manifest.Value {
	if v.Kind != manifest.Array {
		r.form(at, shownKind(v), s.phrase)
		return nil
	}
	if n := len(v.Items); n < s.least || s.most > 0 && n > s.most {
		r.form(at, fmt.Sprintf("%d entries", n), s.phrase)
		return nil
	}
	kept := &manifest.Value{Kind: manifest.Array, Line: v.Line}
	seen := map[string]bool{}
	for i, item := range v.Items {
		right := s.of.read(r, item, entry(at, i))
		if s.distinct && right != nil {
			if seen[right.Scalar] {
				r.form(entry(at, i), invalid.Quote(right.Scalar), "each name once")
				right = nil
			} else {
				seen[right.Scalar] = true
			}
		}
		if right == nil {
			right = &manifest.Value{Kind: manifest.Null, Line: item.Line} // so that the others keep their places
		}
		kept.Items = append(kept.Items, right)
	}
	return kept
}

func (s list) schema() map[string]any {
	m := map[string]any{"type": "array", "items": s.of.schema()}
	if s.least > 0 {
		m["minItems"] = s.least
	}
	if s.most > 0 {
		m["maxItems"] = s.most
	}
	if s.distinct {
		m["uniqueItems"] = true
	}
	return m
}

// names is an object whose names the user chooses.
type names struct {
	of          shape
	pattern     *regexp.Regexp // of a name; nil: any
	wantName    string
	least, most int // most 0: no bound
	phrase      string
}

func (s names) want() string { return s.phrase }

func (s names) read(r *report, v *manifest.Value, at string) *manifest.Value {
	if v.Kind != manifest.Object {
		r.form(at, shownKind(v), s.phrase)
		return nil
	}
	if n := len(v.Members); n < s.least || s.most > 0 && n > s.most {
		r.form(at, fmt.Sprintf("%d names", n), s.phrase)
		return nil
	}
	kept := &manifest.Value{Kind: manifest.Object, Line: v.Line}
	for _, m := range v.Members {
		if s.pattern != nil && !s.pattern.MatchString(m.Name) {
			r.form(under(at, m.Name), invalid.Quote(m.Name), s.wantName)
			continue
		}
		if right := s.of.read(r, m.Value, under(at, m.Name)); right != nil {
			kept.Members = append(kept.Members, manifest.Member{Name: m.Name, Line: m.Line, Value: right})
		}
	}
	return kept
}

func (s names) schema() map[string]any {
	m := map[string]any{"type": "object", "additionalProperties": s.of.schema()}
	if s.pattern != nil {
		m["propertyNames"] = map[string]any{"pattern": s.pattern.String()}
	}
	if s.least > 0 {
		m["minProperties"] = s.least
	}
	if s.most > 0 {
		m["maxProperties"] = s.most
	}
	return m
}

// entry is the path of an entry of a list.
func entry(at string, i int) string { return at + "[" + strconv.Itoa(i) + "]" }

// under is the path of a name in an object.
func under(at, name string) string {
	if name = invalid.Cut(name); at == "" {
		return name
	}
	return at + "." + name
}

// shownKind is what a value is, where it is not of the right kind.
func shownKind(v *manifest.Value) string { return v.Kind.String() }

func oneOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return "one of " + listOf(names)
}

func listOf(names []string) string {
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return strings.Join(names, "")
}
