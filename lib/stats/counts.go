package stats

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
)

// Buckets is how many buckets a Histogram has: one up to each bound, and one beyond.
const Buckets = 17

// Histogram counts durations by bucket: those above the bound before and up to its own. The last bucket has no bound. What is stored goes by
// the bounds of this build, so they hold for good.
type Histogram [Buckets]int

// Bounds are the upper bounds of all buckets but the last, ascending.
type Bounds [Buckets - 1]time.Duration

// The bounds of what is counted.
var (
	LatenessBounds = Bounds{
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
		500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
		30 * time.Minute, time.Hour,
	}
	DurationBounds = Bounds{
		10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second,
		2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour,
		6 * time.Hour, 24 * time.Hour,
	}
)

// add counts a duration in ms; one below zero counts as zero.
func (h *Histogram) add(bounds *Bounds, ms int64) {
	i := 0
	for i < len(bounds) && ms > bounds[i].Milliseconds() {
		i++
	}
	h[i]++
}

// Count is how many durations were counted.
func (h *Histogram) Count() (n int) {
	for _, in := range h {
		n += in
	}
	return n
}

// Quantile estimates the duration that the share q of all does not exceed, 0 < q <= 1. Durations are taken to be spread evenly in
// their bucket, those of the last one to be at the highest bound. Without any it is 0.
func (h *Histogram) Quantile(bounds *Bounds, q float64) time.Duration {
	rank := q * float64(h.Count())
	below := 0.0
	var lower time.Duration
	for i, in := range h {
		if i == len(bounds) {
			break
		}
		if n := float64(in); n > 0 && below+n >= rank {
			return lower + time.Duration((rank-below)/n*float64(bounds[i]-lower))
		}
		below += float64(in)
		lower = bounds[i]
	}
	if below == 0 && h[len(bounds)] == 0 {
		return 0
	}
	return bounds[len(bounds)-1]
}

// Ends is how many states a run can end in.
const Ends = int(run.Unknown-run.Succeeded) + 1

// Counts is what became of runs.
type Counts struct {
	Ended    [Ends]int `cbor:"1,keyasint,omitzero"` // by state, from run.Succeeded on
	Open     int       `cbor:"2,keyasint,omitzero"` // had not ended when they were looked at last
	Retries  int       `cbor:"3,keyasint,omitzero"` // attempts after the first
	Lateness Histogram `cbor:"4,keyasint,omitzero"` // start of the first attempt, after the run was due or let in at the gate of its job
	Duration Histogram `cbor:"5,keyasint,omitzero"` // from the start of the last attempt to the end of the run
}

// Due is how many runs were counted.
func (c *Counts) Due() int {
	due := c.Open
	for _, n := range c.Ended {
		due += n
	}
	return due
}

// In is how many runs ended in a state.
func (c *Counts) In(s run.State) int { return c.Ended[s-run.Succeeded] }

// Merge adds others.
func (c *Counts) Merge(o *Counts) {
	for i, n := range o.Ended {
		c.Ended[i] += n
	}
	c.Open += o.Open
	c.Retries += o.Retries
	for i := range Buckets {
		c.Lateness[i] += o.Lateness[i]
		c.Duration[i] += o.Duration[i]
	}
}

// Add counts a run as it stands.
func (c *Counts) Add(r run.Run) {
	if r.State.Ended() {
		c.Ended[r.State-run.Succeeded]++
	} else {
		c.Open++
	}
	c.Retries += max(r.Attempt-1, 0)
	if first := firstStart(r); first != 0 {
		c.Lateness.add(&LatenessBounds, first-max(r.ID.Nominal, min(r.Wait.LetIn, first)))
	}
	if r.State.Ended() && r.Started != 0 {
		c.Duration.add(&DurationBounds, r.Ended-r.Started)
	}
}

// firstStart is when the first attempt began, 0 where there was none, or the run has forgotten it for newer ones.
func firstStart(r run.Run) int64 {
	switch {
	case len(r.Attempts) > 0 && r.Attempts[0].Number == 1:
		return r.Attempts[0].Started
	case r.Attempt <= 1: // a workflow's run has none of its own
		return r.Started
	}
	return 0
}
