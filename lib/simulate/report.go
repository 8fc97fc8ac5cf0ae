package simulate

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The parts of a report have their JSON in package wire.
type (
	Report  = wire.Simulation
	Run     = wire.SimulatedRun
	Wait    = wire.SimulatedWait
	Attempt = wire.SimulatedAttempt
	Step    = wire.SimulatedStep
	Event   = wire.SimulatedEvent

	StepError = wire.SimulatedStepError
	Stretch   = wire.SimulationMissed
	Most      = wire.SimulationMost
	Refusal   = wire.SimulationRefused
	Stopped   = wire.SimulationStopped
)

// Names are what a table calls runs, by their IDs: as the script names them.
func Names(r Report) map[string]string {
	names := make(map[string]string, len(r.Runs))
	for i := range r.Runs {
		one := &r.Runs[i]
		names[one.ID] = one.Job + "@" + one.NominalTime.Format(time.RFC3339Nano)
		if one.As != nil {
			names[one.ID] = *one.As
		}
	}
	return names
}

// Waited says in words at which gate a wait was, how long it lasted, and who was in progress there when it began.
func Waited(w Wait, names map[string]string) string {
	at := w.Gate
	if w.Key != "" {
		at += " for the key " + w.Key
	}
	text := "waits at " + at
	if w.To != nil {
		text = "waited " + schedule.Duration(w.To.Sub(w.From)).String() + " at " + at
	}
	var ahead []string
	for _, id := range w.InTheWay {
		if name := names[id]; name != "" {
			id = name
		}
		ahead = append(ahead, id)
	}
	switch n := len(ahead); {
	case n == 0:
		return text
	case n == 1:
		return text + ", while " + ahead[0] + " was in progress"
	case n <= 3:
		return text + ", while " + strings.Join(ahead[:n-1], ", ") + " and " + ahead[n-1] + " were in progress"
	default: // the report names only so many
		return text + fmt.Sprintf(", while %s, %s and at least %d more were in progress", ahead[0], ahead[1], n-2)
	}
}

// The bounds that can end a simulation.
const (
	BoundRuns     = "runs"
	BoundAttempts = "attempts"
	BoundSpan     = "span" // of a scenario without until
	BoundData     = "data"
	BoundEvents   = "events" // of a scenario that asks for them
)

// Last is when the last thing in a report happened, the zero time where nothing did.
func Last(r Report) time.Time {
	var last time.Time
	later := func(at *time.Time) {
		if at != nil && at.After(last) {
			last = *at
		}
	}
	of := func(attempts []Attempt) {
		for k := range attempts {
			later(&attempts[k].StartedAt)
			later(attempts[k].EndedAt)
		}
	}
	for i := range r.Runs {
		later(&r.Runs[i].NominalTime)
		later(r.Runs[i].EndedAt)
		of(r.Runs[i].Attempts)
		for k := range r.Runs[i].Steps {
			later(r.Runs[i].Steps[k].EndedAt)
			of(r.Runs[i].Steps[k].Attempts)
		}
	}
	for i := range r.Skipped {
		later(&r.Skipped[i].Through)
	}
	for i := range r.Refused {
		later(&r.Refused[i].At)
	}
	return last
}
