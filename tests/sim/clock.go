package sim

import (
	"sync/atomic"
	"time"
)

// clock is what a host takes for the time. Its elapsed time is true: no clock that never steps goes wrong by much.
type clock struct {
	world  *World
	offset atomic.Int64 // ns that it is ahead of the true time
	began  time.Duration
	skew   atomic.Int64 // ns that the store is ahead, as last learned
}

func (c *clock) now() time.Time {
	c.world.sched.yield()
	return c.world.Now().Add(time.Duration(c.offset.Load()))
}

func (c *clock) elapsed() time.Duration {
	c.world.sched.yield()
	return c.world.sched.elapsed() - c.began
}

// learn is told at each answer of the store how far its clock is ahead, as lib/store/dynamo finds out: never too far.
func (h *host) learn() {
	h.clock.skew.Store(-h.clock.offset.Load())
}

func (h *host) skewed() time.Duration {
	if h.Mix.Shape.Alone {
		return 0
	}
	return time.Duration(h.clock.skew.Load())
}
