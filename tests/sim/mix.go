package sim

import (
	"time"
)

// Mix is all that a seed draws before its world begins: what is switched off in it leaves the rest as it was.
type Mix struct {
	Start   time.Time     // the true time at the begin
	Length  time.Duration // of the phase with faults
	Shape   Shape
	Latency Latency
	Faults  Faults
}

// Draw gives the mix of a seed.
func Draw(seed uint64) Mix {
	return Mix{Start: time.Date(2026, 3, 28, 22, 0, 0, 0, time.UTC), Length: time.Hour, Shape: Shape{Hosts: 1}}
}
