package plan

import "math"

// ramp is how the functions of a queue become more: so many at first, a few more each second, up to a bound. All of its amounts are work, in
// seconds of a function.
type ramp struct{ from, grow, most float64 }

// full is when the bound is reached.
func (r ramp) full() float64 { return max(0, (r.most-r.from)/r.grow) }

// at is how many there are.
func (r ramp) at(t float64) float64 { return min(r.from+r.grow*t, r.most) }

// takes is after how many seconds so much work is done: the other way round of from·t + grow·t²/2.
func (r ramp) takes(work float64) float64 {
	full := r.full()
	if done := r.from*full + r.grow*full*full/2; work > done && !math.IsInf(full, 1) {
		return full + (work-done)/r.at(full)
	}
	return (math.Sqrt(r.from*r.from+2*r.grow*work) - r.from) / r.grow
}

// latest is how long the last one waits, of a burst and of what comes evenly in the minute after it, first come, first served.
func (r ramp) latest(burst, even float64) float64 {
	r.from = min(r.from, r.most)
	waits := func(t float64) float64 { return r.takes(burst+even*t) - t }
	late := max(0, waits(0), waits(minute))
	if even > r.from { // waits grow until as many work as are needed for what comes
		if t := (r.work(min((even-r.from)/r.grow, r.full())) - burst) / even; t > 0 && t < minute {
			late = max(late, waits(t))
		}
	}
	return late
}

// work is what is done by then, while it grows.
func (r ramp) work(t float64) float64 { return r.from*t + r.grow*t*t/2 }

// enough is the lowest bound, from some on, with which nothing waits longer than so many seconds; and no more than there are when the last has
// begun, where growing is too slow for that.
func (r ramp) enough(least, burst, even, within float64) float64 {
	if r.most = least; r.latest(burst, even) <= within {
		return least
	}
	r.most = math.Inf(1)
	low, high := least, max(least, r.at(r.takes(burst+even*minute)))
	if r.latest(burst, even) > within {
		return high
	}
	for range 40 {
		r.most = (low + high) / 2
		if r.latest(burst, even) > within {
			low = r.most
		} else {
			high = r.most
		}
	}
	return high
}
