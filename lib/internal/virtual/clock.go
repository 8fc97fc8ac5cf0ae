package virtual

import (
	"sync"
	"time"
)

// Clock stands where it was set, in whole milliseconds.
type Clock struct {
	mu         sync.Mutex
	begin, now time.Time
	ahead      time.Duration
}

// NewClock stands at an instant.
func NewClock(at time.Time) *Clock {
	at = at.UTC().Truncate(time.Millisecond)
	return &Clock{begin: at, now: at}
}

// Now is what the hosts' clocks show.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now.Add(c.ahead)
}

// Passed is the time as it passes: Now, as if no clock had been stepped.
func (c *Clock) Passed() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Elapsed is the time since the clock was made. Steps leave it as it is.
func (c *Clock) Elapsed() time.Duration { return c.Passed().Sub(c.begin) }

// Set moves the clock to an instant of Passed.
func (c *Clock) Set(passed time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = passed.UTC().Truncate(time.Millisecond)
}

// Step sets the hosts' clocks forward, or back, while no time passes.
func (c *Clock) Step(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += by.Truncate(time.Millisecond)
}
