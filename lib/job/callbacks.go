package job

import (
	"errors"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Event is what happens to a job that another one may be told of.
type Event string

// The events.
const (
	OnSucceeded Event = "succeeded" // the run has succeeded
	OnRecovered Event = "recovered" // the run has succeeded, and the run of the job that had ended before was given up
	OnFailed    Event = "failed"    // the run is given up: failed for good, dead, or unknown
	OnMissed    Event = "missed"    // fires of the job were missed, and its catch-up policy has dropped them
)

// Callbacks names what is called when a run of the job has ended, or when fires of it were dropped. The zero value calls nothing.
type Callbacks struct {
	Succeeded *Callback `json:"succeeded,omitempty" cbor:"1,keyasint,omitempty" doc:"when a run has succeeded"`
	Recovered *Callback `json:"recovered,omitempty" cbor:"3,keyasint,omitempty" doc:"when a run has succeeded, and the one that had ended before it was given up"`
	Failed    *Callback `json:"failed,omitempty" cbor:"2,keyasint,omitempty" doc:"when a run is given up: its state is failed, dead or unknown"`
	Missed    *Callback `json:"missed,omitempty" cbor:"4,keyasint,omitempty" doc:"when fires were missed and catch_up has dropped them: once for a whole stretch of them"`
}

// Callback is what is called: a job of the same tenant, of which a run is asked for. The run's payload tells what happened.
type Callback struct {
	Job string `json:"job" cbor:"1,keyasint" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" example:"tell-ops" doc:"the job that runs then, with what happened as its payload; it must exist"`
}

// IsZero tells whether nothing is called.
func (c Callbacks) IsZero() bool { return c == Callbacks{} }

// Of is what an event calls, nil for nothing.
func (c Callbacks) Of(e Event) *Callback {
	switch e {
	case OnSucceeded:
		return c.Succeeded
	case OnRecovered:
		return c.Recovered
	case OnFailed:
		return c.Failed
	case OnMissed:
		return c.Missed
	}
	return nil
}

// Events are all events, in the order in which they are named to a user.
func Events() []Event { return []Event{OnSucceeded, OnFailed, OnRecovered, OnMissed} }

// validate checks all that can be told without looking at other jobs.
func (c Callbacks) validate() error {
	var wrong []error
	for _, e := range Events() {
		if called := c.Of(e); called != nil && !named(called.Job) {
			wrong = append(wrong, invalid.Field("on."+string(e)+".job", called.Job, "the name of a job"))
		}
	}
	return errors.Join(wrong...)
}
