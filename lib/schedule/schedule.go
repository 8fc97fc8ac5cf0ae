package schedule

import (
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Schedule is a compiled Spec: a fixed set of instants, its fires. It is immutable, and safe for concurrent use.
type Schedule struct {
	spec       Spec
	kind       kind
	start, end int64 // Unix milliseconds; fires lie in [start, end)

	every, phase int64 // milliseconds
	at           int64 // Unix milliseconds

	cron cronSet
	zone *zone
}

type kind uint8

const (
	byCron kind = iota
	byEvery
	byAt
)

// Spec gives back what the Schedule was compiled from.
func (s *Schedule) Spec() Spec { return s.spec }

// Next gives the earliest fire strictly after the given instant, in UTC; false when there is none. It allocates nothing.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	ms, ok := s.first(floorMillis(after) + 1)
	if !ok {
		return time.Time{}, false
	}
	return time.UnixMilli(ms).UTC(), true
}

// Last gives the latest fire f with from <= f <= upTo, in UTC; false when there is none. Its cost grows with the
// logarithm of the range, not with the number of fires in it.
func (s *Schedule) Last(from, upTo time.Time) (time.Time, bool) {
	last, hi := int64(-1), floorMillis(upTo)
	// Halving on Next alone keeps one definition of a fire: the two directions can't disagree.
	for lo := ceilMillis(from); lo <= hi; {
		mid := lo + (hi-lo)/2
		if f, ok := s.first(mid); ok && f <= hi {
			last, lo = f, f+1
		} else {
			hi = mid - 1
		}
	}
	if last < 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(last).UTC(), true
}

// Count gives how many fires lie in [from, upTo], and stops at limit: more says that there are others beyond it.
func (s *Schedule) Count(from, upTo time.Time, limit int) (n int, more bool) {
	lo, hi := ceilMillis(from), floorMillis(upTo)
	if s.kind == byEvery {
		first, ok := s.first(lo)
		if hi = min(hi, s.end-1); !ok || first > hi {
			return 0, false
		}
		all := (hi-first)/s.every + 1
		if all > int64(limit) {
			return max(limit, 0), true
		}
		return int(all), false
	}
	for {
		f, ok := s.first(lo)
		if !ok || f > hi {
			return n, false
		}
		if n >= limit {
			return n, true
		}
		n, lo = n+1, f+1
	}
}

// first gives the earliest fire at or after ms.
func (s *Schedule) first(ms int64) (int64, bool) {
	ms = max(ms, s.start)
	switch s.kind {
	case byCron:
		sec := (ms + 999) / 1000
		sec, ok := s.cron.first(s.zone, sec)
		return sec * 1000, ok && sec*1000 < s.end
	case byEvery:
		f := s.phase
		if ms > f {
			f += (ms - f + s.every - 1) / s.every * s.every
		}
		return f, f < s.end
	default:
		return s.at, s.at >= ms && s.at < s.end
	}
}

// neverFires tells apart why a schedule of sound fields has no fire at all.
func (s *Schedule) neverFires() error {
	if _, ok := s.first(0); ok {
		return nil
	}
	free := *s
	free.end = endOfTime
	f, ok := free.first(0)
	switch {
	case ok:
		return neverFires{invalid.Field("end", formatInstant(s.end), "a time after the first fire, "+formatInstant(f))}
	case s.kind == byAt:
		return neverFires{invalid.Field("at", formatInstant(s.at), `a time not before "start", `+formatInstant(s.start))}
	default:
		return neverFires{invalid.Field("start", formatInstant(s.start), "a time with a fire after it before the year 10000")}
	}
}

// floorMillis gives the Unix milliseconds of t, rounded down and held within the supported years, so that no arithmetic
// on it overflows.
func floorMillis(t time.Time) int64 {
	switch sec := t.Unix(); {
	case sec < 0:
		return -1
	case sec >= endOfTimeSec:
		return endOfTime
	}
	return t.UnixMilli()
}

// ceilMillis is floorMillis rounded up.
func ceilMillis(t time.Time) int64 { return floorMillis(t.Add(-1)) + 1 }
