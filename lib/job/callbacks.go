package job

import (
	"errors"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
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

	// PauseAfter is that of the definition. An edition has it here, for whoever writes the end of a run: that needs both. No record and no form has it.
	PauseAfter int `json:"-" cbor:"-"`
}

// Callback is what is called: a job of the same tenant, of which a run is asked for. The run's payload tells what happened.
type Callback struct {
	Job string `json:"job" cbor:"1,keyasint" minLength:"1" maxLength:"128" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" example:"tell-ops" doc:"the job that runs then, with what happened as its payload; it must exist"`

	Window schedule.Duration `json:"window,omitempty" cbor:"8,keyasint,omitempty" example:"10m" doc:"of failed and missed: one call for all that tell the same job of the same event within this time, which is due when it is over; whole minutes, from 1m to 24h. None: a call for each"`
}

// A window is so long, in whole minutes.
const (
	MinWindow = time.Minute
	MaxWindow = 24 * time.Hour
)

// Until is when the window is over that an instant lies in, both Unix ms. Windows follow each other without a gap, and 1970 begins with one.
func (c Callback) Until(at int64) int64 {
	length := c.Window.Std().Milliseconds()
	return (at/length + 1) * length
}

// IsZero tells whether nothing is called.
func (c Callbacks) IsZero() bool { return c == Callbacks{PauseAfter: c.PauseAfter} }

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
		called := c.Of(e)
		if called == nil {
			continue
		}
		if !named(called.Job) {
			wrong = append(wrong, invalid.Field("on."+string(e)+".job", called.Job, "the name of a job"))
		}
		field, window := "on."+string(e)+".window", called.Window
		switch {
		case window == 0:
		case e != OnFailed && e != OnMissed:
			wrong = append(wrong, invalid.Field(field, window.String(), "none: each is told by itself; failed and missed may have a window"))
		case window.Std() < MinWindow, window.Std() > MaxWindow, window.Std()%time.Minute != 0:
			wrong = append(wrong, invalid.Field(field, window.String(), "whole minutes, from 1m to 24h"))
		}
	}
	return errors.Join(wrong...)
}
