package jobfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// Kind says what the documents of a file are.
type Kind string

// The kinds, by the word for one. A list of many has a member of that name, with an s.
const (
	Job  Kind = "job"
	Gate Kind = "gate"
)

// Document is a job or a gate of a file: its name, and what stands there of it, so that the server sees and names every field.
type Document struct {
	Name  string          // "" where none is given
	File  string          // "-" is standard input
	Count int             // which document of the file it is, from 1; 0 where the file has one
	Job   *manifest.Value // without its name
}

// Place says where it stands: "jobs.yaml, document 2, line 7".
func (d Document) Place() string { return manifest.Place(d.File, d.Count, d.Job.Line) }

// Named is the job with its name in front, as the batch of the API takes it and a file has it.
func (d Document) Named() *manifest.Value {
	return d.Job.With("name", &manifest.Value{Kind: manifest.Text, Scalar: d.Name})
}

// Text is Named as JSON.
func (d Document) Text() json.RawMessage { return d.Named().JSON() }

// Calls are the jobs that it calls when its runs end, each once.
func (d Document) Calls() (names []string) {
	on := d.Job.Member("on")
	if on == nil {
		return nil
	}
	for _, m := range on.Members {
		if name := m.Value.Member("job"); name != nil && !slices.Contains(names, name.Scalar) {
			names = append(names, name.Scalar)
		}
	}
	return names
}

// Explain says of a refusal in which line of the file each field stands.
func (d Document) Explain(p wire.Problem) string {
	text := fmt.Sprintf("%s (%s): %s", d.Name, d.Place(), p.Summary())
	for _, e := range p.Errors {
		text += fmt.Sprintf("\n  line %d: %s", d.Job.LineOf(e.Field), e.Message)
		if e.Field != "" {
			text = strings.TrimSuffix(text, e.Message) + e.Field + ": " + e.Message
		}
	}
	if p.MoreErrors > 0 {
		text += fmt.Sprintf("\n  and %d more", p.MoreErrors)
	}
	return text
}

// Error is what is wrong with a file, and where.
type Error struct {
	Place  string // as Document.Place has it
	Line   int    // counted from 1
	Column int    // counted from 1, in characters; 0 where it is not known
	What   string
}

func (e *Error) Error() string { return e.Place + ": " + e.What }

// Read takes a file apart: things of a kind, arrays of them, or objects with such an array, one after the other. The end of the file's name tells YAML from
// JSON, as manifest.Read has it. count is how many documents it has. The error is an *Error.
func Read(kind Kind, file string, text []byte) (all []Document, count int, err error) {
	values, err := manifest.Read(file, text)
	var wrong *manifest.Error
	if errors.As(err, &wrong) {
		return nil, 0, &Error{Place: manifest.Place(file, 0, wrong.Line), Line: wrong.Line, Column: wrong.Column, What: wrong.What}
	}
	for i, value := range values {
		d := Document{File: file, Job: value}
		if len(values) > 1 {
			d.Count = i + 1
		}
		many, err := kind.in(value)
		if err != nil {
			return nil, 0, d.wrong(err)
		}
		for _, d.Job = range many {
			if err := d.readName(); err != nil {
				return nil, 0, d.wrong(err)
			}
			all = append(all, d)
		}
	}
	return all, len(values), nil
}

func (d Document) wrong(err error) error {
	return &Error{Place: d.Place(), Line: d.Job.Line, What: err.Error()}
}

// in gives the things of one document.
func (k Kind) in(value *manifest.Value) ([]*manifest.Value, error) {
	plural := string(k) + "s"
	many := value.Member(plural)
	switch {
	case value.Kind == manifest.Array:
		return value.Items, nil
	case value.Kind != manifest.Object:
		return nil, fmt.Errorf("got %s, want a %s as an object, an array of %s, or {%q: [...]}", value.Kind, k, plural, plural)
	case many == nil:
		return []*manifest.Value{value}, nil
	case many.Kind != manifest.Array:
		return nil, fmt.Errorf("%s: got %s, want an array of %[1]s", plural, many.Kind)
	case len(value.Members) > 1:
		return nil, fmt.Errorf("want nothing beside %q in an object that holds many", plural)
	}
	return many.Items, nil
}

// readName finds a name, in "name" or else in "status", and takes it out: the rest is for the server to judge.
func (d *Document) readName() error {
	d.Name = ""
	if d.Job.Kind != manifest.Object {
		return fmt.Errorf("got %s, want an object", d.Job.Kind)
	}
	if name := d.Job.Member("name"); name != nil {
		if name.Kind != manifest.Text {
			return fmt.Errorf("name: got %s, want text", name.Kind)
		}
		d.Name, d.Job = name.Scalar, d.Job.Without("name")
	} else if status := d.Job.Member("status"); status != nil {
		if name := status.Member("name"); name != nil && name.Kind == manifest.Text {
			d.Name = name.Scalar
		}
	}
	return nil
}

// Of is a definition as a file has it: what PUT takes, in the order of the API, and nothing else.
func Of(def job.Definition) (*manifest.Value, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(def); err != nil {
		return nil, err
	}
	return manifest.ReadJSON(text.Bytes())
}

// Export is a job as a document of its own: its definition, and its name.
func Export(name string, def job.Definition) (*manifest.Value, error) {
	value, err := Of(def)
	if err != nil {
		return nil, err
	}
	return value.With("name", &manifest.Value{Kind: manifest.Text, Scalar: name}), nil
}
