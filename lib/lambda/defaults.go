package lambda

import (
	crand "crypto/rand"
	"io"
	"math/rand/v2"
	"time"
)

// What a main hands in elsewhere: the mains of functions only wire.

func clock() time.Time { return time.Now() }

// elapsed gives a clock that is never stepped.
func elapsed() func() time.Duration {
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

var random io.Reader = crand.Reader
