package plan

import "math"

// ramp is how the functions of a queue become more: so many at first, a few more each second, up to a bound. All of its amounts are work, in
// seconds of a function.
type ramp struct {
	from, grow, most float64
	taken            float64 // of those at first, that are at work for what comes evenly: they are free one after the other
	each             float64 // work of one event: a function that is free begins all of it at once
}

// full is when the bound is reached.
func (r ramp) full() float64 { return max(0, (r.most-r.from)/r.grow) }

// at is how many there are.
func (r ramp) at(t float64) float64 { return min(r.from+r.grow*t, r.most) }

// idle is how many of those at first have nothing to do.
func (r ramp) idle() float64 { return max(0, r.from-r.taken) }

// stretch is a time in which work is begun at a pace that grows evenly. done is what was begun before it.
type stretch struct{ since, until, done, pace, grow float64 }

// by is what is begun so many seconds later.
func (s stretch) by(later float64) float64 { return s.done + s.pace*later + s.grow*later*later/2 }

// stretches are all, until the end of time: how much work functions can have begun. One that has been there for less than an event takes has begun that
// event. One that has been there for longer has done as much as there was time for: the event that it is at then is left out, so that nothing begins
// later than is said.
func (r ramp) stretches() []stretch {
	all := make([]stretch, 0, 4)
	full, idle := r.full(), r.idle()
	next := stretch{done: idle * r.each}
	for _, until := range [...]float64{min(r.each, full), max(r.each, full), full + r.each, math.Inf(1)} {
		next.until, next.pace, next.grow = until, r.from-idle, 0
		if next.since < full {
			next.pace += r.grow * r.each
		}
		if next.since >= r.each {
			next.pace += idle + r.grow*min(next.since-r.each, full)
			if next.since < full+r.each {
				next.grow = r.grow
			}
		}
		if all = append(all, next); math.IsInf(until, 1) {
			break
		}
		next = stretch{since: until, done: next.by(until - next.since)}
	}
	return all
}

// takes is after how many seconds so much work is begun.
func (r ramp) takes(work float64) float64 { return begins(r.stretches(), work) }

func begins(all []stretch, work float64) float64 {
	for _, s := range all {
		left := work - s.done
		if left <= 0 {
			return s.since
		}
		if math.IsInf(s.until, 1) || s.by(s.until-s.since) >= work {
			return s.since + 2*left/(s.pace+math.Sqrt(s.pace*s.pace+2*s.grow*left))
		}
	}
	return math.Inf(1)
}

// latest is how long the last one waits, of a burst and of what comes evenly in the minute after it, first come, first served.
func (r ramp) latest(burst, even float64) float64 {
	r.from = min(r.from, r.most)
	all := r.stretches()
	late := max(0, begins(all, burst), begins(all, burst+even*minute)-minute)
	if even <= 0 {
		return late
	}
	// What begins at an instant came when there was as much work as is begun by then.
	waited := func(at, begun float64) {
		if came := (begun - burst) / even; came > 0 && came < minute {
			late = max(late, at-came)
		}
	}
	for _, s := range all {
		waited(s.since, s.done)
		if turns := (even - s.pace) / s.grow; s.grow > 0 && turns > 0 && turns < s.until-s.since { // waits grow until as much is begun as comes
			waited(s.since+turns, s.by(turns))
		}
	}
	return late
}

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
