package job

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// OverlapPolicy says what becomes of a run that is due while as many earlier runs of its job are in progress as the limit allows. A run is in
// progress from its start until it has ended: the waits between its attempts count.
type OverlapPolicy string

// The policies.
const (
	OverlapAllow       OverlapPolicy = "allow"        // it starts all the same, or waits where a limit is given; the default, which without a limit is stored as nothing
	OverlapSkip        OverlapPolicy = "skip"         // it is skipped, with the reason and the runs that were in the way
	OverlapQueue       OverlapPolicy = "queue"        // it waits its turn, unless too many do: then it is skipped
	OverlapQueueOne    OverlapPolicy = "queue_one"    // it waits where nobody does, and is skipped otherwise
	OverlapQueueLatest OverlapPolicy = "queue_latest" // it waits, and whoever waited is skipped: of all that wait, the latest stays
	OverlapCancel      OverlapPolicy = "cancel"       // the earliest is asked to stop, and it starts when that has ended; whoever waited is skipped
	OverlapReplace     OverlapPolicy = "replace"      // the earliest is ended at once, and it starts; whoever waited is skipped
	OverlapStrict      OverlapPolicy = "strict"       // it waits its turn, and behind a run that ended badly until that has succeeded, or somebody lets the line go on
)

// overlapPolicies are those that there are, in the order of their numbers in records: a new one comes last, and none goes.
var overlapPolicies = []OverlapPolicy{OverlapAllow, OverlapSkip, OverlapQueue, OverlapQueueOne, OverlapQueueLatest, OverlapCancel, OverlapReplace, OverlapStrict}

// limits tells whether the name of the policy alone is a limit of one.
func (p OverlapPolicy) limits() bool { return p != OverlapAllow && slices.Contains(overlapPolicies, p) }

// Displaces tells whether a run makes earlier ones that are in progress give way to it.
func (p OverlapPolicy) Displaces() bool { return p == OverlapCancel || p == OverlapReplace }

// LatestWaits tells whether of all that wait the latest stays, and takes the place of the one before.
func (p OverlapPolicy) LatestWaits() bool { return p == OverlapQueueLatest || p.Displaces() }

// waiting says how many wait under policies that leave nothing to choose.
var waiting = map[OverlapPolicy]string{OverlapSkip: "no run waits", OverlapQueueOne: "one run waits", OverlapQueueLatest: "one run waits", OverlapCancel: "one run waits", OverlapReplace: "no other run waits"}

// The bounds of Overlap.Limit and Overlap.MaxWaiting.
const (
	DefaultOverlapLimit = 1
	MaxOverlapLimit     = 1000
	DefaultMaxWaiting   = 1000 // under queue and strict
	MaxMaxWaiting       = 100_000
)

// Overlap bounds how many runs of a job are in progress at once. The zero value bounds nothing. In JSON it is the name of the policy, or an
// object with the policy and its limits.
type Overlap struct {
	Policy OverlapPolicy `json:"policy,omitempty" cbor:"1,keyasint,omitempty" enum:"allow,skip,queue,queue_one,queue_latest,cancel,replace,strict" doc:"what becomes of a run that is one too many: under allow it starts all the same, or waits where a limit is given; under skip it is skipped; under queue it waits its turn; under queue_one it waits where no other does, else it is skipped; under queue_latest it waits, and the one that waited before is skipped; under cancel the earliest in progress is asked to stop, and it starts when that has ended; under replace the earliest in progress is ended at once, and it starts; under strict it waits its turn, and after a run that ended as failed, dead or unknown the line stands still until that run is retried and succeeds, or somebody opens the gate"`
	Limit  int           `json:"limit,omitempty" cbor:"2,keyasint,omitempty" minimum:"1" maximum:"1000" doc:"how many runs of the job may be in progress at once: under allow any number by default, under the others 1, and under strict no more"`

	// MaxWaiting is how many may wait, before the next is skipped: under queue and strict, DefaultMaxWaiting where none is given; under allow with a limit, any number.
	MaxWaiting *int `json:"max_waiting,omitempty" cbor:"3,keyasint,omitempty" minimum:"0" maximum:"100000" doc:"how many runs may wait, the next one being skipped: under queue and strict, 1000 by default; under allow with a limit, any number by default"`

	// Key is a text with expressions: runs for which it gives the same value share the limit and the line, and know nothing of the others.
	Key string `json:"key,omitempty" cbor:"4,keyasint,omitempty" minLength:"1" maxLength:"1024" example:"${ .payload.customer }" doc:"a text with expressions, such as ${ .payload.customer }: limit and line are those of each of its values by itself. It reads .payload, .job, .labels and .nominal_time. Where it fails, or gives null, an array or an object, the run fails"`

	// Since is the generation with which the job came to be strict, without a break up to this one; 0 under another policy. Nobody writes it: see Following.
	Since int64 `json:"-" cbor:"5,keyasint,omitempty"`
}

// IsZero tells whether nothing is bounded.
func (o Overlap) IsZero() bool { return o == Overlap{} }

// StrictSince is the generation with which the job came to be strict, 0 where it is not.
func (o Overlap) StrictSince() int64 {
	if o.Policy != OverlapStrict {
		return 0
	}
	return o.Since
}

// StrictSince is the generation with which the job came to be strict, 0 where it is not, or was deleted.
func (j Job) StrictSince() int64 {
	if j.Generation == 0 || j.Deleted {
		return 0
	}
	return j.Def.Overlap.StrictSince()
}

// Following gives the overlap as it stands in the definition of a generation that follows a job that was strict since a generation, 0 for one that was not: it has been so since then.
func (o Overlap) Following(since, generation int64) Overlap {
	if o.Since = 0; o.Policy == OverlapStrict {
		o.Since = cmp.Or(since, generation)
	}
	return o
}

// Gated tells whether runs of the job pass any gate: its own, or one that it names.
func (d Definition) Gated() bool { return !d.Overlap.IsZero() || len(d.Gates) > 0 }

// Waiting is how many runs may wait in line; any number where that is not bounded.
func (o Overlap) Waiting() (most int, bounded bool) {
	switch {
	case o.Policy == OverlapSkip:
		return 0, true
	case o.Policy == OverlapQueueOne:
		return 1, true
	case o.MaxWaiting != nil:
		return *o.MaxWaiting, true
	case o.Policy == OverlapQueue, o.Policy == OverlapStrict:
		return DefaultMaxWaiting, true
	}
	return 0, false
}

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
	o.Since = 0
	if o == (Overlap{Policy: o.Policy}) || o == (Overlap{Policy: o.Policy, Limit: DefaultOverlapLimit}) && o.Policy.limits() {
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
	} else if err = json.Unmarshal(data, &form.Policy); form.Policy.limits() {
		form.Limit = DefaultOverlapLimit // as the name alone says
	}
	if err != nil {
		return errors.New(`want the name of a policy, such as "queue", or {"policy": "queue", "limit": 3, "max_waiting": 100}`)
	}
	*o = Overlap(form)
	return nil
}

// validate checks what a definition with its defaults says.
func (o Overlap) validate() error {
	var wrong []error
	switch {
	case o.IsZero():
		return nil
	case o.Policy == OverlapAllow && o.Limit == 0:
		if o.MaxWaiting != nil {
			wrong = append(wrong, invalid.Field("overlap.max_waiting", fmt.Sprint(*o.MaxWaiting), "a limit beside it: under allow without a limit, no run waits"))
		}
	case slices.Contains(overlapPolicies, o.Policy):
		if o.Policy == OverlapStrict && o.Limit != 1 {
			wrong = append(wrong, invalid.Field("overlap.limit", fmt.Sprint(o.Limit), "1 under strict, or the field left out: one run follows the other"))
		} else if o.Limit < 1 || o.Limit > MaxOverlapLimit {
			wrong = append(wrong, invalid.Field("overlap.limit", fmt.Sprint(o.Limit), fmt.Sprintf("1 to %d", MaxOverlapLimit)))
		}
		if o.MaxWaiting != nil && waiting[o.Policy] != "" {
			wrong = append(wrong, invalid.Field("overlap.max_waiting", fmt.Sprint(*o.MaxWaiting), fmt.Sprintf("no max_waiting under %s, where %s; queue has it", o.Policy, waiting[o.Policy])))
		} else if o.MaxWaiting != nil && (*o.MaxWaiting < 0 || *o.MaxWaiting > MaxMaxWaiting) {
			wrong = append(wrong, invalid.Field("overlap.max_waiting", fmt.Sprint(*o.MaxWaiting), fmt.Sprintf("0 to %d", MaxMaxWaiting)))
		}
	default:
		wrong = append(wrong, o.refusePolicy())
	}
	if o.Key != "" {
		if o.Policy == OverlapAllow && o.Limit == 0 {
			wrong = append(wrong, invalid.Field("overlap.key", o.Key, "a limit beside it, or a policy such as queue: without one, all runs start"))
		} else {
			wrong = append(wrong, checkKey("overlap.key", o.Key))
		}
	}
	return errors.Join(wrong...)
}

// checkKey refuses a text that is no key.
func checkKey(field, text string) error {
	_, err := expression.ParseKey(text)
	var wrong *expression.Error
	if errors.As(err, &wrong) {
		return &invalid.Error{Field: field, Got: wrong.Shown(), Want: wrong.Want}
	}
	return err
}

func (o Overlap) refusePolicy() error {
	return invalid.Field("overlap.policy", string(o.Policy), "allow, skip, queue, queue_one, queue_latest, cancel, replace or strict")
}
