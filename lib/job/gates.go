package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// GateUse says that a job's runs pass a gate that has a name of its own, and how much of its limit each of them takes. In JSON it is the name of the gate,
// or an object with the gate and the rest.
type GateUse struct {
	Gate  string `json:"gate" cbor:"1,keyasint" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" example:"stripe" doc:"the name of the gate, which must exist"`
	Units int    `json:"units,omitempty" cbor:"2,keyasint,omitempty" minimum:"1" maximum:"1000" example:"2" doc:"how many of the gate's units each run of the job takes, 1 by default"`

	// Key is as Overlap.Key: limit and line are those of each of its values by itself, over all jobs that pass the gate by the same values.
	Key string `json:"key,omitempty" cbor:"3,keyasint,omitempty" minLength:"1" maxLength:"1024" example:"${ .payload.customer }" doc:"a text with expressions, such as ${ .payload.customer }: the gate has its limit and its line for each value by itself, over all jobs that name it with a key. It reads .payload, .job, .labels and .nominal_time. Where it fails, or gives null, an array or an object, the run fails"`
}

// The bounds of Definition.Gates.
const (
	MaxGates     = 8
	DefaultUnits = 1
	MaxUnits     = 1000
	maxGateName  = 64 // bytes: a run that waits has it in its record
)

// WantGateName says what the name of a gate may be.
const WantGateName = "1 to 64 letters, digits, dots, underscores or hyphens, beginning with a letter or digit"

// NamesGate tells whether a gate may have the name. None that may is that of a job's own gate.
func NamesGate(name string) bool { return named(name) && len(name) <= maxGateName }

// GateUseForm is GateUse's form as an object, without the methods that choose between that and a text.
type GateUseForm GateUse

// MarshalJSON gives the name of the gate, or an object where that does not say all.
func (u GateUse) MarshalJSON() ([]byte, error) {
	if u.Key == "" && (u.Units == 0 || u.Units == DefaultUnits) {
		return json.Marshal(u.Gate)
	}
	return json.Marshal(GateUseForm(u))
}

// UnmarshalJSON takes what MarshalJSON gives, and nothing else.
func (u *GateUse) UnmarshalJSON(data []byte) error {
	form := GateUseForm{}
	var err error
	if bytes.HasPrefix(data, []byte("{")) {
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		err = strict.Decode(&form)
	} else if err = json.Unmarshal(data, &form.Gate); err == nil {
		form.Units = DefaultUnits // as the name alone says
	}
	if err != nil {
		return errors.New(`want the name of a gate, such as "stripe", or {"gate": "stripe", "units": 2, "key": "${ .payload.customer }"}`)
	}
	*u = GateUse(form)
	return nil
}

// gatesWithDefaults gives the form that is stored.
func (d Definition) gatesWithDefaults() []GateUse {
	uses := slices.Clone(d.Gates)
	for i := range uses {
		def(&uses[i].Units, DefaultUnits)
	}
	return uses
}

// validateGates checks all that can be told without looking at the gates.
func (d Definition) validateGates() error {
	if d.Target.Workflow != nil && len(d.Gates) > 0 {
		return invalid.Field("gates", strconv.Itoa(len(d.Gates)), "nothing beside a workflow: its steps are to name gates, and cannot yet")
	}
	var wrong []error
	if len(d.Gates) > MaxGates {
		wrong = append(wrong, invalid.Field("gates", fmt.Sprintf("%d gates", len(d.Gates)), fmt.Sprintf("at most %d", MaxGates)))
	}
	for i, u := range d.Gates {
		field := fmt.Sprintf("gates[%d]", i)
		switch {
		case !NamesGate(u.Gate):
			wrong = append(wrong, invalid.Field(field+".gate", u.Gate, WantGateName))
		case slices.ContainsFunc(d.Gates[:i], func(o GateUse) bool { return o.Gate == u.Gate }):
			wrong = append(wrong, invalid.Field(field+".gate", u.Gate, "each gate once"))
		}
		if u.Units < 1 || u.Units > MaxUnits {
			wrong = append(wrong, invalid.Field(field+".units", strconv.Itoa(u.Units), fmt.Sprintf("1 to %d", MaxUnits)))
		}
		if u.Key != "" {
			wrong = append(wrong, checkKey(field+".key", u.Key))
		}
	}
	return errors.Join(wrong...)
}
