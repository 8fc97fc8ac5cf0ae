package belfry

import (
	crand "crypto/rand"
	"math/rand/v2"
	"time"
)

// The clock and the source of chance of programs that embed Belfry; belfrytest has its own.

func clock() time.Time { return time.Now() }

// stopwatch tells the time since now, by a clock that is never stepped.
func stopwatch() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}

// newID draws from the process's own source, seeded by the system at its start; 0 means no ID.
func newID() uint64 {
	for {
		if id := rand.Uint64(); id != 0 {
			return id
		}
	}
}

// newKey draws an idempotency key.
func newKey() string { return crand.Text() }
