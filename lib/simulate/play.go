package simulate

import (
	"context"
	"errors"
	"time"
)

// Options bound a simulation, and say what it draws. Zero fields have their defaults.
type Options struct {
	// Seed draws jitter and the waits between attempts. Default: nil, where each is as long as it may be
	Seed *uint64

	Runs     int           // how many runs there may be, skipped ones included. Default: 1,000,000
	Attempts int           // how many attempts there may be. Default: 2,000,000
	Span     time.Duration // how long a scenario without Until lasts. Default: OpenSpan

	// Progress is told now and then how far the simulation is, on the goroutine of Play. Default: nobody is
	Progress func(now time.Time, runs int)
}

// Play simulates a scenario. A bound of Options that is hit ends it, and stands in the report; the error is that of ctx, or of a simulation
// that went wrong by itself.
func Play(ctx context.Context, s Scenario, o Options) (Report, error) {
	return Report{}, errors.New("not built yet")
}
