package api

import "time"

// fineFor is how long a window is counted by minutes unless told otherwise. A begun minute more is none: who reckons back from now does so in
// whole seconds.
const fineFor = 6 * time.Hour

// window is a time in whole steps.
type window struct {
	from  time.Time // in UTC
	step  time.Duration
	steps int
}

func (w window) at(step int) time.Time { return w.from.Add(time.Duration(step) * w.step) }

func (w window) to() time.Time { return w.at(w.steps) }

// windowOf divides a time into steps, of a minute up to 6 hours and else of an hour where step is 0. Its beginning is rounded down, to a whole step
// or where that is shorter to grid, and its end is that of the last step that has begun. to is after from.
func windowOf(from, to time.Time, step, grid time.Duration) window {
	if step == 0 {
		if step = time.Minute; to.Sub(from).Truncate(time.Minute) > fineFor {
			step = time.Hour
		}
	}
	from = from.UTC().Truncate(min(step, grid))
	return window{from, step, int((to.Sub(from) + step - 1) / step)}
}
