package api

import (
	"encoding/json"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// description is what an API says of itself, and what its requests are checked against. Nothing of it changes once it is finished, so all
// handlers of a process that have the same parts share one: to make it of Go's types is nearly all of what New does.
type description struct {
	doc        *huma.OpenAPI
	operations map[string]described // by method and path
	later      later
	ignored    ignored

	// text is the document as it is published. Written when it is first asked for: that takes as long as all the rest of a start, and a
	// function starts often.
	text func() ([]byte, error)
}

// described is what a description says of one operation.
type described struct {
	*huma.Operation
	body   *huma.Schema     // nil: none
	fields map[string][]int // those that parameters set, by name
}

// parts are what descriptions differ by.
type parts struct {
	version                                                     string
	backup, secrets, work, simulations, plans, looks, following bool
}

// descriptions holds those of this process that are finished: parts to *description.
var descriptions sync.Map

func partsOf(cfg Config) parts {
	return parts{cfg.Version, cfg.Backup != nil, cfg.Secrets != nil, cfg.Remote != nil, cfg.Simulator != nil, cfg.Planner != nil, cfg.Look != nil, cfg.Changes != nil}
}

func newDescription(version string) *description {
	d := &description{doc: newDocument(version), operations: map[string]described{}}
	d.text = sync.OnceValues(func() ([]byte, error) { return json.Marshal(published(d.doc)) })
	return d
}

// of gives what it says of an operation, which it makes where it is not finished.
func (d *description) of(op operation, h handling) described {
	name := op.method + " " + op.path
	found, ok := d.operations[name]
	if !ok {
		found = op.describe(d.doc.Components.Schemas, h)
		d.doc.AddOperation(found.Operation)
		d.operations[name] = found
	}
	return found
}
