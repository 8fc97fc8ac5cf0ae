package sim

import (
	"sync/atomic"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
)

// clock is what a host takes for the time. Its elapsed time is true: no clock that never steps goes wrong by much.
type clock struct {
	world  *World
	offset atomic.Int64 // ns that it is ahead of the true time
	began  time.Duration
	skew   atomic.Int64 // ns that the store is ahead, as last learned
}

func (c *clock) now() time.Time { return c.world.Now().Add(time.Duration(c.offset.Load())) }

func (c *clock) elapsed() time.Duration { return c.world.sched.elapsed() - c.began }

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

// astray tells whether a host's clock is so far from the store's that it is to do nothing.
func (h *host) astray() bool {
	off := time.Duration(h.clock.offset.Load())
	return !h.Mix.Shape.Alone && (off > dispatch.MaxSkew || off < -dispatch.MaxSkew)
}
