package simulate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Mistake is one thing that is wrong in a file.
type Mistake struct {
	Line    int    `json:"line"`            // counted from 1
	Field   string `json:"field,omitempty"` // path such as jobs.report.schedule.cron, "" for the whole
	Message string `json:"message"`
}

func (m Mistake) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Text()) }

// Text is the mistake without its line.
func (m Mistake) Text() string {
	if m.Field == "" {
		return m.Message
	}
	return m.Field + ": " + m.Message
}

// Mistaken is the error of a file that is no scenario: what is wrong with it, in the order of its lines, at most invalid.Most things.
type Mistaken struct {
	Mistakes []Mistake
	More     int // how many there are beyond those
}

func (m *Mistaken) Error() string {
	lines := make([]string, len(m.Mistakes))
	for i, one := range m.Mistakes {
		lines[i] = one.String()
	}
	if m.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", m.More))
	}
	return strings.Join(lines, "\n")
}

// Parse reads a scenario of YAML or JSON. name says by its ending which of the two it is. The error is a *Mistaken.
func Parse(name string, text []byte) (Scenario, error) {
	alone := func(line int, message string) (Scenario, error) {
		return Scenario{}, &Mistaken{Mistakes: []Mistake{{Line: line, Message: message}}}
	}
	if len(text) > MaxDocument {
		return alone(1, fmt.Sprintf("the file has %d bytes, want at most %d MB", len(text), MaxDocument>>20))
	}
	values, err := manifest.Read(name, text)
	var wrong *manifest.Error
	switch {
	case errors.As(err, &wrong):
		return alone(wrong.Line, wrong.What)
	case err != nil:
		return alone(1, err.Error())
	case len(values) == 0:
		return alone(1, "the file is empty; want a scenario")
	case len(values) > 1:
		return alone(values[1].Line, "a second document begins here; want one scenario in a file")
	}
	return read(values[0])
}

func read(root *manifest.Value) (Scenario, error) {
	f := &form{}
	var document wire.Scenario
	f.value(root, reflect.ValueOf(&document).Elem(), "", "")
	s, err := Resolve(document)
	for _, e := range invalid.All(err) {
		if !f.clouded(e.Field) {
			f.tell(root.LineOf(e.Field), e.Field, messageOf(e))
		}
	}
	if expected := root.Member("expect"); expected != nil && expected.Kind != manifest.Null {
		f.byPath = map[*manifest.Value]bool{}
		if err == nil {
			f.paths = paths(s)
		}
		f.expected(expected, reflect.TypeFor[Report](), "expect")
		s.Expect = &Expectation{expected, f.byPath}
	}
	if len(f.mistakes) > 0 {
		slices.SortStableFunc(f.mistakes, func(a, b Mistake) int { return cmp.Compare(a.Line, b.Line) })
		return Scenario{}, &Mistaken{f.mistakes, f.more}
	}
	return s, nil
}

// messageOf is an error without its field.
func messageOf(e *invalid.Error) string {
	without := *e
	without.Field = ""
	return without.Error()
}

// paths are those of the steps of all workflows that a scenario has.
func paths(s Scenario) map[string]bool {
	all := map[string]bool{}
	for _, j := range definitions(s) {
		if w := workflowOf(j.Definition); w != nil {
			for i := range w.Nodes {
				all[w.Nodes[i].Path] = true
			}
		}
	}
	return all
}

// expected refuses names that a report does not have: with null, such a typing error would hold for ever.
func (f *form) expected(v *manifest.Value, of reflect.Type, at string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[json.RawMessage]():
	case of.Kind() == reflect.Struct && v.Kind == manifest.Object:
		fields := fieldsOf(of)
		for _, m := range v.Members {
			if field, ok := fields[m.Name]; ok {
				f.expected(m.Value, field.Type, below(at, m.Name))
			} else {
				f.unknown(m, of, at)
			}
		}
	case of.Kind() == reflect.Map && v.Kind == manifest.Object:
		for _, m := range v.Members {
			f.expected(m.Value, of.Elem(), below(at, m.Name))
		}
	case of == reflect.TypeFor[[]Step]() && v.Kind == manifest.Object:
		f.byPath[v] = true
		for _, m := range v.Members {
			where := below(at, m.Name)
			if f.paths != nil && !f.paths[m.Name] {
				f.tell(m.Line, where, "no workflow of this scenario has such a step"+meant(m.Name, slices.Sorted(maps.Keys(f.paths))))
			}
			f.expected(m.Value, of.Elem(), where)
		}
	case of.Kind() == reflect.Slice && v.Kind == manifest.Array:
		for i, item := range v.Items {
			f.expected(item, of.Elem(), fmt.Sprintf("%s[%d]", at, i))
		}
	case v.Kind != manifest.Null && (v.Kind == manifest.Object || v.Kind == manifest.Array || of.Kind() == reflect.Map || of.Kind() == reflect.Slice):
		f.refuse(v, at, "got %s, want %s", v.Kind, kindOf(of))
	case of.Kind() == reflect.Struct && of.String() != "time.Time" && v.Kind != manifest.Null:
		f.refuse(v, at, "got %s, want %s", v.Kind, kindOf(of))
	}
}
