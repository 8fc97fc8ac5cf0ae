package api

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// mergePatch is a merge patch (RFC 7396) of a job, as JSON. What it makes of the job is checked as a job that is put.
type mergePatch json.RawMessage

// Schema gives it to the framework: what a member may be is said by the job that comes of it.
func (mergePatch) Schema(huma.Registry) *huma.Schema {
	most := 100 // more names than a job has fields
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{}, MaxProperties: &most,
		Description: "fields of a job, as PUT takes them: an object is merged, null takes a field back to its default, and anything else replaces what stands, a list as a whole"}
}

// UnmarshalJSON keeps the text.
func (p *mergePatch) UnmarshalJSON(text []byte) error {
	*p = bytes.Clone(text)
	return nil
}

// tree is JSON of which the objects are taken apart.
type tree struct {
	text    json.RawMessage // as it was written; nil for an object that was changed since
	members []member        // of an object
	object  bool
}

type member struct {
	name  string
	value *tree
}

func (t *tree) null() bool { return !t.object && string(t.text) == "null" }

// treeOf takes valid JSON apart in one pass. check is told where an object has a name again, and the last value counts.
func treeOf(text json.RawMessage, check *form) *tree {
	p := &planting{form: check, text: text, at: between(text, 0)}
	return p.value()
}

type planting struct {
	*form
	text json.RawMessage
	at   int
	path []string // names of the objects around
}

func (p *planting) skip() json.RawMessage {
	begin := p.at
	p.at = behind(p.text, p.at)
	return p.text[begin:p.at]
}

func (p *planting) value() *tree {
	if p.text[p.at] != '{' {
		return &tree{text: p.skip()}
	}
	begin := p.at
	t := &tree{object: true}
	known := map[string]int{}
	for p.at = between(p.text, p.at+1); p.text[p.at] != '}'; p.at = between(p.text, p.at) {
		name := textOf(p.skip())
		p.at = between(p.text, p.at)
		p.path = append(p.path, name)
		value := p.value()
		if i, again := known[name]; again {
			p.twice()
			t.members[i].value = value
		} else {
			known[name] = len(t.members)
			t.members = append(t.members, member{name, value})
		}
		p.path = p.path[:len(p.path)-1]
	}
	p.at++
	t.text = p.text[begin:p.at]
	return t
}

// twice names what stands here. Deep down, the outermost names are as good as all of them.
func (p *planting) twice() {
	field := ""
	for _, name := range p.path[:min(len(p.path), 10)] {
		field = p.under(field, name)
	}
	p.surplus(field, "given twice")
}

// merge gives what a patch makes of a document, nil for none. What the patch does not name stays to the byte.
func merge(document, patch *tree) *tree {
	if !patch.object {
		return patch
	}
	made := &tree{object: true}
	at := map[string]int{}
	if document != nil {
		for _, m := range document.members {
			at[m.name] = len(made.members)
			made.members = append(made.members, m)
		}
	}
	for _, m := range patch.members {
		i, stands := at[m.name]
		switch {
		case !m.value.null() && stands:
			made.members[i].value = merge(made.members[i].value, m.value)
		case !m.value.null():
			made.members = append(made.members, member{m.name, merge(nil, m.value)})
		case stands:
			made.members[i].value = nil
		}
	}
	return made
}

func (t *tree) write(to *bytes.Buffer) {
	if t.text != nil {
		to.Write(t.text)
		return
	}
	to.WriteByte('{')
	first := to.Len()
	for _, m := range t.members {
		if m.value == nil { // taken out
			continue
		}
		if to.Len() > first {
			to.WriteByte(',')
		}
		to.Write(plainJSON(m.name))
		to.WriteByte(':')
		m.value.write(to)
	}
	to.WriteByte('}')
}

// plainJSON writes a value without what keeps JSON out of the way of HTML: a payload stays as it was given. Only values that have a JSON form.
func plainJSON(v any) []byte {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v)
	return bytes.TrimSuffix(to.Bytes(), []byte("\n"))
}

// patched gives the definition that a merge patch makes of that of a job, checked as that of a put.
func (a *api) patched(tenant, name string, def job.Definition, patch mergePatch) (job.Definition, error) {
	check := form{registry: a.doc.Components.Schemas, later: a.later, ignored: a.ignored}
	schema := check.registry.Schema(reflect.TypeFor[wire.Job](), true, "")
	change := treeOf(json.RawMessage(patch), &check)
	check.removals(schema, change, "")
	var text bytes.Buffer
	merge(treeOf(plainJSON(wire.Job{Definition: def}), &form{}), change).write(&text)
	if text.Len() > maxBody {
		return job.Definition{}, newProblem(codeTooLarge, "With this change the job would be larger than one may be that is put, which is "+sizeText(maxBody)+".")
	}
	asked, err := judging(a.jobValues).read(input[wire.Job]{tenant: tenant, path: func(string) string { return name }}, check.body(schema, text.Bytes()), &check)
	in := asked.in
	if err == nil {
		err = check.problem()
	}
	if err == nil && in.body.Called(name) != nil {
		err = a.jobValues(in)
	}
	return in.body.Definition, err
}

// removals refuses to take out what no job has: a typing error would pass for a field that is back at its default.
func (f *form) removals(schema *huma.Schema, change *tree, field string) {
	for schema.Ref != "" {
		schema = f.registry.SchemaFromRef(schema.Ref)
	}
	for _, alternative := range schema.OneOf {
		if schema.Type == "" && (alternative.Ref != "" || alternative.Type == huma.TypeObject) {
			f.removals(alternative, change, field)
			return
		}
	}
	if !change.object || schema.Type != huma.TypeObject {
		return
	}
	free, _ := schema.AdditionalProperties.(*huma.Schema)
	for _, m := range change.members {
		property := schema.Properties[m.name]
		if property == nil {
			property = free
		}
		switch at := f.under(field, m.name); {
		case property != nil:
			f.removals(property, m.value, at)
		case m.value.null() && f.later.has(schema, m.name):
			f.surplus(at, "%s", f.later.says(schema, m.name))
		case m.value.null():
			f.surplus(at, "unknown field; want %s", fieldsOf{schema})
		}
	}
}
