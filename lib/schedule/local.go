package schedule

import (
	"fmt"
	"time"
)

const (
	// widest is more than any clock has ever been from UTC.
	widest = 36 * time.Hour
	// briefest is less than any clock has ever run without a change.
	briefest = 3 * time.Hour
)

// Local gives the instant at which a zone's clock shows what wall shows in UTC. A time of day that the clock does not show, because it is
// put forward over it, is the end of that gap; one that it shows twice is the first of the two: the rule of cron expressions for a time
// of day (docs/schedule.md). told says which of these it was, "" for neither. It is for every place where somebody writes a time without
// its offset.
func Local(wall time.Time, zone *time.Location) (at time.Time, told string) {
	shown := wall.Unix()
	begins := shown - int64(widest/time.Second) // the instant from which on the clock has one offset
	_, offset := time.Unix(begins, 0).In(zone).Zone()
	found := false
	for begins < shown+int64(widest/time.Second) {
		ends, next := nextChange(zone, begins, offset)
		instant := shown - int64(offset)
		switch {
		case instant < begins && !found:
			at = time.Unix(begins, 0).In(zone)
			return at, fmt.Sprintf("the clock does not show that time in %s: taken for the end of the gap, %s", zone, at.Format(time.RFC3339))
		case instant < begins || instant >= ends:
		case found:
			second := time.Unix(instant, 0).In(zone)
			return at, fmt.Sprintf("the clock shows that time twice in %s: taken for the first, %s; the second is %s", zone, at.Format(time.RFC3339), second.Format(time.RFC3339))
		default:
			at, found = time.Unix(instant, int64(wall.Nanosecond())).In(zone), true
		}
		begins, offset = ends, next
	}
	return at, ""
}

// nextChange gives the first instant after u at which the clock of a zone has another offset, and that one; or an instant so far away
// that no wall time which anybody asks about lies beyond it. (Time.ZoneBounds stands still at the end of a leap year.)
func nextChange(zone *time.Location, u int64, offset int) (at int64, next int) {
	const step = int64(briefest / time.Second)
	offsetAt := func(u int64) int {
		_, offset := time.Unix(u, 0).In(zone).Zone()
		return offset
	}
	low := u
	for high := u + step; high < u+3*int64(widest/time.Second); high += step {
		if offsetAt(high) == offset {
			low = high
			continue
		}
		for high-low > 1 {
			if middle := (low + high) / 2; offsetAt(middle) == offset {
				low = middle
			} else {
				high = middle
			}
		}
		return high, offsetAt(high)
	}
	return u + 3*int64(widest/time.Second), offset
}
