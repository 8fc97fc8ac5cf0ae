package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// OwnOverlap is the policy that a request for a run brings, in place of that of its job; the zero value brings none. In JSON it is the name of the policy, or an object with it.
type OwnOverlap struct {
	Policy OverlapPolicy `json:"policy" enum:"allow,skip,queue,queue_one,queue_latest,cancel,replace,strict" doc:"what becomes of this run where it finds no room, in place of what its job says: key, limit and max_waiting stay the job's. allow passes the job's gate without an entry"`
}

// OwnOverlapForm is OwnOverlap's form as an object, without the methods that choose between that and a text.
type OwnOverlapForm OwnOverlap

// IsZero tells whether nothing is brought.
func (o OwnOverlap) IsZero() bool { return o.Policy == "" }

// MarshalJSON gives the name of the policy.
func (o OwnOverlap) MarshalJSON() ([]byte, error) { return json.Marshal(o.Policy) }

// UnmarshalJSON takes the name of a policy, or an object with it alone.
func (o *OwnOverlap) UnmarshalJSON(data []byte) error {
	var form OwnOverlapForm
	var err error
	if bytes.HasPrefix(data, []byte("{")) {
		strict := json.NewDecoder(bytes.NewReader(data))
		strict.DisallowUnknownFields()
		err = strict.Decode(&form)
	} else {
		err = json.Unmarshal(data, &form.Policy)
	}
	if err != nil {
		return errors.New(`want the name of a policy, such as "skip", or {"policy": "skip"}`)
	}
	*o = OwnOverlap(form)
	return nil
}

// OwnPolicy is the policy that a run has brought as its record holds it, by its number, counted from 1; 0 for none. In a full record there is no room for its name.
type OwnPolicy uint8

// Own gives the policy as a record holds it.
func (p OverlapPolicy) Own() OwnPolicy { return OwnPolicy(slices.Index(overlapPolicies, p) + 1) }

// Policy is which policy that is, "" for none. One of a newer version has its number for a name.
func (o OwnPolicy) Policy() OverlapPolicy {
	switch {
	case o == 0:
		return ""
	case int(o) > len(overlapPolicies):
		return OverlapPolicy(strconv.Itoa(int(o)))
	}
	return overlapPolicies[o-1]
}

// String is the name of the policy.
func (o OwnPolicy) String() string { return string(o.Policy()) }

// NotOwn are the fields of an overlap that a request cannot bring: they stay as the job says.
var NotOwn = []string{"key", "limit", "max_waiting"}

// By gives the overlap as it holds for a run that brings a policy of its own, "" for none: it stands in place of the job's, and key, limit and max_waiting stay as they are.
// Under allow nothing bounds the run. Where the job bounds nothing there is no limit that a policy could go by, and the run starts as all do. A policy that this version does
// not know means nothing to it.
func (o Overlap) By(own OverlapPolicy) Overlap {
	switch {
	case own == "" || o.IsZero() || own == OverlapStrict || !slices.Contains(overlapPolicies, own):
		return o
	case own == OverlapAllow:
		return Overlap{}
	}
	o.Policy = own
	if waiting[own] != "" {
		o.MaxWaiting = nil
	}
	return o
}

// Check refuses what is no policy, whatever the job says. An error names the field overlap.
func (o OwnOverlap) Check() error {
	if o.Policy != "" && !slices.Contains(overlapPolicies, o.Policy) {
		return invalid.Field("overlap", string(o.Policy), ownPolicies)
	}
	return nil
}

// ownPolicies is what a request may bring.
const ownPolicies = "allow, skip, queue, queue_one, queue_latest, cancel or replace, or strict of a job whose own policy that is"

// Kept gives the policy as a run keeps it, "" for that of its job: strict is of a line as a whole and not of one run, so a run that brings it goes by its job.
func (o OwnOverlap) Kept() OverlapPolicy {
	if o.Policy == OverlapStrict {
		return ""
	}
	return o.Policy
}

// Fits refuses a policy that no run of a job with that overlap may bring. An error names the field overlap.
func (o OwnOverlap) Fits(job Overlap) error {
	if err := o.Check(); err != nil {
		return err
	}
	switch {
	case o.Policy == "" || o.Policy == OverlapAllow:
		return nil
	case job.IsZero():
		return invalid.Field("overlap", string(o.Policy), "allow, or the field left out: the job has no overlap policy, so nobody counts which of its runs are in progress; give it one first, such as skip")
	case o.Policy == OverlapStrict && job.Policy != OverlapStrict:
		return invalid.Field("overlap", string(o.Policy), "another policy: strict is of a whole line, and the job's own policy is "+string(job.Policy))
	}
	return nil
}
