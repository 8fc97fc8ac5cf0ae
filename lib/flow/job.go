package flow

import (
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
		case m.Name == "target" || m.Name == "name" || m.Name == "status":
		default:
			if err := readField(m); err != nil {
				r.add(m.Name, "", "what a job takes there: "+err.Error())
				continue
			}
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

// readField reads one field of a job as strictly as a file should be read.
func readField(m manifest.Member) error {
	alone := &manifest.Value{Kind: manifest.Object, Members: []manifest.Member{m}}
	var def job.Definition
	fields := json.NewDecoder(strings.NewReader(string(alone.JSON())))
	fields.DisallowUnknownFields()
	err := fields.Decode(&def)
	if err == nil {
		return nil
	}
	if all := invalid.All(err); len(all) > 0 {
		return errors.New(all[0].Error())
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
