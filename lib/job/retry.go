package job

import (
	"fmt"
	"math"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// The default of retries: they go on for about three hours, so that a target may be deployed, restarted or mended meanwhile.
const (
	DefaultAttempts = 15
	DefaultInitial  = time.Second
	DefaultFactor   = 2.0
	DefaultMaxWait  = time.Hour
)

// Retry is how a failed attempt is tried again: see Wait.
type Retry struct {
	MaxAttempts int               `json:"max_attempts,omitempty" cbor:"1,keyasint,omitempty" minimum:"1" maximum:"100" doc:"tries in all, the first included"`
	Initial     schedule.Duration `json:"initial,omitempty" cbor:"2,keyasint,omitempty" doc:"shortest wait between attempts; the wait before the second attempt is one to two times as long"`
	Factor      float64           `json:"factor,omitempty" cbor:"3,keyasint,omitempty" minimum:"1" maximum:"10" doc:"how many times longer each further wait is"`
	Max         schedule.Duration `json:"max,omitempty" cbor:"4,keyasint,omitempty" doc:"longest wait between attempts"`
}

func (r Retry) withDefaults(g Guarantee) Retry {
	if g == AtMostOnce {
		def(&r.MaxAttempts, 1)
	}
	def(&r.MaxAttempts, DefaultAttempts)
	def(&r.Initial, schedule.Duration(DefaultInitial))
	def(&r.Factor, DefaultFactor)
	def(&r.Max, schedule.Duration(max(DefaultMaxWait, r.Initial.Std())))
	return r
}

// Wait bounds the wait between the n-th failure, counted from 1, and the attempt that follows it; it is drawn evenly from least to most. Most is
// twice Initial * Factor^(n-1), or Max where that is less. Least is half of most ("equal jitter", AWS Architecture Blog, "Exponential Backoff
// And Jitter"), so that what failed together is not tried together, and Initial where that is more: no wait is shorter than Initial or
// longer than Max.
func (r Retry) Wait(n int) (least, most time.Duration) {
	grown := 2 * float64(r.Initial) * math.Pow(r.Factor, float64(n-1))
	most = time.Duration(min(grown, float64(r.Max)))
	return min(max(most/2, r.Initial.Std()), most), most
}

// Waits is how long all waits together are, at least and at most. Attempts themselves take their time besides.
func (r Retry) Waits() (least, most time.Duration) {
	for n := 1; n < r.MaxAttempts; n++ {
		l, m := r.Wait(n)
		least, most = least+l, most+m
	}
	return least, most
}

// Longest is for how long a run may be under way whose attempts take so long each.
func (r Retry) Longest(attempt time.Duration) time.Duration {
	_, waits := r.Waits()
	return waits + time.Duration(r.MaxAttempts)*attempt
}

// Tries says in a few words how often and for how long a run is tried that goes on failing: "tries once", "tries 15 times over about 3 h". It is
// empty where nothing is said of it: in a workflow's job, whose steps have their own.
func (r Retry) Tries() string {
	switch {
	case r.MaxAttempts == 0:
		return ""
	case r.MaxAttempts == 1:
		return "tries once"
	case r.MaxAttempts == 2:
		return "tries twice over " + r.Lasts()
	}
	return fmt.Sprintf("tries %d times over %s", r.MaxAttempts, r.Lasts())
}

// Lasts is how long all waits together are as they are drawn on average: "about 3 h", "less than a second". Below ten of a unit it tells halves.
func (r Retry) Lasts() string {
	least, most := r.Waits()
	in := func(unit time.Duration) float64 {
		count := float64(least+(most-least)/2) / float64(unit)
		if count < 10 {
			return math.Round(2*count) / 2
		}
		return math.Round(count)
	}
	switch seconds, minutes, hours, days := in(time.Second), in(time.Minute), in(time.Hour), in(24*time.Hour); {
	case seconds < 1:
		return "less than a second"
	case seconds < 60:
		return fmt.Sprintf("about %g s", seconds)
	case minutes < 60:
		return fmt.Sprintf("about %g min", minutes)
	case hours < 48:
		return fmt.Sprintf("about %g h", hours)
	default:
		return fmt.Sprintf("about %g days", days)
	}
}
