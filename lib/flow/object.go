package flow

import (
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
)

// field is a field of an object.
type field struct {
	name     string
	shape    shape
	required bool
	doc      string
	// beside lists the fields of object.one of which this one needs to stand beside one; nil: any.
	beside []string
	later  []string // and of which a later version has it beside
}

// object is an object with known fields.
type object struct {
	fields []field
	one    []string          // exactly one of these is given
	later  []string          // fields that a later version has
	hints  map[string]string // what to say of fields that people try
	phrase string
}

func (s object) want() string { return s.phrase }

func (s object) find(name string) *field {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

func (s object) names() []string {
	all := make([]string, len(s.fields))
	for i, f := range s.fields {
		all[i] = f.name
	}
	return all
}

func (s object) read(r *report, v *manifest.Value, at string) *manifest.Value {
	if v.Kind != manifest.Object {
		r.form(at, shownKind(v), s.phrase)
		return nil
	}
	kept := &manifest.Value{Kind: manifest.Object, Line: v.Line}
	meant := false // a field of s.one may have been meant by one that is not there
	for _, m := range v.Members {
		f := s.find(m.Name)
		if f == nil {
			meant = s.unknown(r, m.Name, at) || meant
			continue
		}
		if right := f.shape.read(r, m.Value, under(at, m.Name)); right != nil {
			kept.Members = append(kept.Members, manifest.Member{Name: m.Name, Line: m.Line, Value: right})
		}
	}
	for _, f := range s.fields {
		if f.required && v.Member(f.name) == nil {
			r.form(under(at, f.name), "", f.shape.want()+", which is missing")
		}
	}
	s.choose(r, v, at, meant)
	return kept
}

// unknown reports a field that the object does not have, and whether one of s.one may be meant by it.
func (s object) unknown(r *report, name, at string) bool {
	at = under(at, name)
	if slices.Contains(s.later, name) {
		r.form(at, "", "nothing here: "+name+" is not built yet")
		return true
	}
	if hint := s.hints[name]; hint != "" {
		r.form(at, "an unknown field", hint)
		return false
	}
	known := s.names()
	want := oneOf(known)
	if guess := r.guess(name, slices.Concat(known, s.later)); guess != "" {
		want = "a known one" + guess
	}
	r.form(at, "an unknown field", want)
	near := invalid.Nearest(name, slices.Concat(known, s.later))
	return slices.Contains(s.one, near) || slices.Contains(s.later, near)
}

// choose reports how many there are of the fields of which there is to be one, and what does not fit beside that.
func (s object) choose(r *report, v *manifest.Value, at string, meant bool) {
	if s.one == nil {
		return
	}
	var given []string
	for _, name := range s.one {
		if v.Member(name) != nil {
			given = append(given, name)
		}
	}
	switch {
	case len(given) == 0 && !meant:
		r.form(at, "none of them", "exactly one of "+listOf(s.one))
	case len(given) > 1:
		r.form(at, strings.Join(given, " and "), "exactly one of "+listOf(s.one))
	case len(given) == 1:
		for _, f := range s.fields {
			if f.beside == nil || v.Member(f.name) == nil || slices.Contains(f.beside, given[0]) {
				continue
			}
			why := f.name + " stands beside " + listOf(f.beside)
			if slices.Contains(f.later, given[0]) {
				why = f.name + " is not built yet beside " + given[0]
			}
			r.form(under(at, f.name), "", "none beside "+given[0]+": "+why)
		}
	}
}

func (s object) schema() map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range s.fields {
		one := f.shape.schema()
		if f.doc != "" {
			one["description"] = f.doc
		}
		properties[f.name] = one
		if f.required {
			required = append(required, f.name)
		}
	}
	m := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		m["required"] = required
	}
	if s.one == nil {
		return m
	}
	var one []any
	apart := map[string]any{}
	for _, name := range s.one {
		one = append(one, map[string]any{"required": []string{name}})
		not := map[string]any{}
		for _, f := range s.fields {
			if f.beside != nil && !slices.Contains(f.beside, name) {
				not[f.name] = false
			}
		}
		if len(not) > 0 {
			apart[name] = map[string]any{"properties": not}
		}
	}
	m["oneOf"], m["dependentSchemas"] = one, apart
	return m
}
