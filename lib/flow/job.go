package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// IsJob tells whether a document is meant to be a job, and no workflow alone.
func IsJob(v *manifest.Value) bool { return v.Member("target") != nil }

// CheckJob makes a workflow of a job whose target is one. Errors name fields of the job: target.workflow.steps.load.needs[1]. The rest of the
// job is checked as far as that can be done without a server.
func CheckJob(v *manifest.Value, judge Judge) (*Workflow, error) {
	const at = "target.workflow"
	to := v.Member("target")
	definition := to.Member("workflow")
	switch {
	case to.Kind != manifest.Object:
		return nil, &invalid.Error{Field: "target", Got: shownKind(to), Want: "an object with workflow"}
	case definition == nil:
		return nil, invalid.Missing(at, "a workflow, which is missing: this job has another target")
	}
	wrong := []error{beside(v)}
	for _, m := range to.Members {
		if m.Name != "workflow" {
			wrong = append(wrong, invalid.Missing(under("target", m.Name), "nothing beside workflow"))
		}
	}
	w, err := Check(definition, judge)
	if err = errors.Join(append(wrong, invalid.Under(at, err))...); err != nil {
		return nil, err
	}
	return w, nil
}

// ofSteps are the fields that a job has for its one attempt, and a workflow for each step.
var ofSteps = map[string]string{
	"timeout":   "nothing here: each step has a timeout of its own, and target.workflow.timeout bounds the whole run",
	"retry":     "nothing here: each step has a retry of its own, and target.workflow.defaults one for all",
	"guarantee": "nothing here: each step has a guarantee of its own",
	"gates":     "nothing here: a workflow has no gates, and gates of steps are not built yet",
}

// beside checks what a job says beside its target.
func beside(v *manifest.Value) error {
	known := map[string]bool{"name": true, "status": true}
	var names []string
	of := reflect.TypeFor[job.Definition]()
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		known[name] = true
		if ofSteps[name] == "" {
			names = append(names, name)
		}
	}
	r := &report{}
	rest := &manifest.Value{Kind: manifest.Object}
	for _, m := range v.Members {
		switch {
		case ofSteps[m.Name] != "":
			r.add(m.Name, "", ofSteps[m.Name])
		case !known[m.Name]:
			want := oneOf(names)
			if guess := r.guess(m.Name, names); guess != "" {
				want = "a known one" + guess
			}
			r.add(m.Name, "an unknown field", want)
		case m.Name == "name" && m.Value.Kind != manifest.Text:
			r.add(m.Name, shownKind(m.Value), "text in quotes")
		case m.Name == "name":
			for _, e := range invalid.All(job.ValidName(m.Value.Scalar)) {
				r.add(m.Name, e.Got, e.Want)
			}
		case m.Name == "target" || m.Name == "status":
		case r.field(m):
			rest.Members = append(rest.Members, m)
		}
	}
	var def job.Definition
	if err := json.Unmarshal(rest.JSON(), &def); err != nil { // each field was read alone
		return err
	}
	def.Target = target.Spec{Handler: &target.Handler{Name: "workflow"}}
	return errors.Join(r.err(), AnyQueue(def))
}

// field reads one field of a job as strictly as a file should be read, and tells whether it is of the right form.
func (r *report) field(m manifest.Member) bool {
	alone := &manifest.Value{Kind: manifest.Object, Members: []manifest.Member{m}}
	var def job.Definition
	fields := json.NewDecoder(bytes.NewReader(alone.JSON()))
	fields.DisallowUnknownFields()
	err := fields.Decode(&def)
	if err == nil {
		return true
	}
	within := m.Value.Kind == manifest.Object // then it is not told where
	if all := invalid.All(err); len(all) > 0 && !within {
		r.add(m.Name, all[0].Got, all[0].Want)
		return false
	}
	var other *json.UnmarshalTypeError
	if !errors.As(err, &other) {
		r.add(m.Name, "", "what a job takes there: "+strings.TrimPrefix(strings.TrimPrefix(err.Error(), "json: "), "want "))
		return false
	}
	want := map[reflect.Kind]string{reflect.String: "text in quotes", reflect.Bool: "true or false", reflect.Slice: "an array", reflect.Map: "an object",
		reflect.Struct: "an object"}[other.Type.Kind()]
	if want == "" {
		want = "a whole number"
	}
	got := other.Value // "number 1.5" of one that is not whole
	if named, ok := map[string]string{"string": "text", "number": "a number", "array": "an array", "object": "an object", "bool": "true or false"}[got]; ok {
		got = named
	}
	at := m.Name
	if within && strings.HasPrefix(other.Field, m.Name+".") {
		at = other.Field
	}
	r.add(at, got, want)
	return false
}
