package simulate

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The parts of a report have their JSON in package wire.
type (
	Report  = wire.Simulation
	Run     = wire.SimulatedRun
	Wait    = wire.SimulatedWait
	Attempt = wire.SimulatedAttempt
	Stretch = wire.SimulationMissed
	Most    = wire.SimulationMost
	Refusal = wire.SimulationRefused
	Stopped = wire.SimulationStopped
)

// The bounds that can end a simulation.
const (
	BoundRuns     = "runs"
	BoundAttempts = "attempts"
	BoundSpan     = "span" // of a scenario without until
)

// Last is when the last thing in a report happened, the zero time where nothing did.
func Last(r Report) time.Time {
	var last time.Time
	later := func(at *time.Time) {
		if at != nil && at.After(last) {
			last = *at
		}
	}
	for i := range r.Runs {
		later(&r.Runs[i].NominalTime)
		later(r.Runs[i].EndedAt)
		for k := range r.Runs[i].Attempts {
			later(&r.Runs[i].Attempts[k].StartedAt)
			later(r.Runs[i].Attempts[k].EndedAt)
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
