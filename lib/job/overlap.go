package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// OverlapPolicy says what becomes of a run that is due while as many earlier runs of its job are in progress as the limit allows. A run is in
// progress from its start until it has ended: the waits between its attempts count.
type OverlapPolicy string

// The policies. Those that are not built yet are refused by their names.
const (
	OverlapAllow OverlapPolicy = "allow" // it starts all the same; the default, which is stored as nothing
	OverlapSkip  OverlapPolicy = "skip"  // it is skipped, with the reason and the runs that were in the way
)

// OverlapsToCome are the policies that a later version has.
var OverlapsToCome = []OverlapPolicy{"queue_one", "queue_latest", "queue", "strict", "cancel", "replace"}

// The bounds of Overlap.Limit.
const (
	DefaultOverlapLimit = 1
	MaxOverlapLimit     = 1000
)

// Overlap bounds how many runs of a job are in progress at once. The zero value bounds nothing. In JSON it is the name of the policy, or an
// object with the policy and its limit.
type Overlap struct {
	Policy OverlapPolicy `json:"policy,omitempty" cbor:"1,keyasint,omitempty" enum:"allow,skip" doc:"what becomes of a run that is one too many: it starts all the same, or is skipped"`
	Limit  int           `json:"limit,omitempty" cbor:"2,keyasint,omitempty" minimum:"1" maximum:"1000" doc:"how many runs of the job may be in progress at once: under skip, 1 by default; under allow, none may be given"`

	// Key and MaxWaiting are of a later version: Validate refuses them, so they are never stored.
	Key        string `json:"key,omitempty" cbor:"-"`
	MaxWaiting *int   `json:"max_waiting,omitempty" cbor:"-"`
}

// IsZero tells whether nothing is bounded.
func (o Overlap) IsZero() bool { return o == Overlap{} }

// withDefaults gives the form that is stored: nothing where all runs may start, else policy and limit.
func (o Overlap) withDefaults() Overlap {
	if o.IsZero() || o == (Overlap{Policy: OverlapAllow}) {
		return Overlap{}
	}
	def(&o.Policy, OverlapAllow)
	if o.Policy != OverlapAllow {
		def(&o.Limit, DefaultOverlapLimit)
	}
	return o
}

// OverlapForm is Overlap's form as an object, without the methods that choose between that and a text.
type OverlapForm Overlap

// MarshalJSON gives the name of the policy, or an object where that does not say all.
func (o Overlap) MarshalJSON() ([]byte, error) {
	if o == (Overlap{Policy: o.Policy}) || o == (Overlap{Policy: o.Policy, Limit: DefaultOverlapLimit}) && o.Policy == OverlapSkip {
		return json.Marshal(o.Policy)
	}
	return json.Marshal(OverlapForm(o))
}

// UnmarshalJSON takes what MarshalJSON gives, and nothing else.
func (o *Overlap) UnmarshalJSON(data []byte) error {
	var form OverlapForm
	var err error
	if bytes.HasPrefix(data, []byte("{")) {
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		err = strict.Decode(&form)
	} else if err = json.Unmarshal(data, &form.Policy); form.Policy == OverlapSkip {
		form.Limit = DefaultOverlapLimit // as the name alone says
	}
	if err != nil {
		return errors.New(`want the name of a policy, such as "skip", or {"policy": "skip", "limit": 3}`)
	}
	*o = Overlap(form)
	return nil
}

// validate checks what a definition with its defaults says.
func (o Overlap) validate() error {
	var wrong []error
	limit := fmt.Sprintf("1 to %d", MaxOverlapLimit)
	switch {
	case o.IsZero():
		return nil
	case o.Policy == OverlapAllow && o.Limit != 0:
		wrong = append(wrong, invalid.Field("overlap.limit", fmt.Sprint(o.Limit), "no limit under allow, which cannot be limited yet; skip can"))
	case o.Policy == OverlapAllow:
	case o.Policy == OverlapSkip:
		if o.Limit < 1 || o.Limit > MaxOverlapLimit {
			wrong = append(wrong, invalid.Field("overlap.limit", fmt.Sprint(o.Limit), limit))
		}
	default:
		wrong = append(wrong, o.refusePolicy())
	}
	if o.Key != "" {
		wrong = append(wrong, invalid.Field("overlap.key", o.Key, "no key: there are no limits for each value yet"))
	}
	if o.MaxWaiting != nil {
		wrong = append(wrong, invalid.Field("overlap.max_waiting", fmt.Sprint(*o.MaxWaiting), "no max_waiting: no run waits for another one yet"))
	}
	return errors.Join(wrong...)
}

func (o Overlap) refusePolicy() error {
	const known = "allow or skip"
	for _, p := range OverlapsToCome {
		if o.Policy == p {
			return invalid.Field("overlap.policy", string(o.Policy), known+"; this one is not available yet")
		}
	}
	return invalid.Field("overlap.policy", string(o.Policy), known)
}
