package job

import (
	"bytes"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// The fires that MaxRuns allows are counted once, at the edit that says so, and the instant at which they end is stored with the schedule. So whoever asks
// the schedule for fires finds that end, and nothing is counted, read or written when a run starts.

// CountEnd gives the definition with the end that MaxRuns says, counted by the fires after an instant. fires are those of its schedule, without such an
// end. One that has fewer ends by itself.
func (d Definition) CountEnd(fires Fires, after time.Time) Definition {
	at := after
	for range d.MaxRuns {
		next, ok := fires.Next(at)
		if !ok {
			return d.withCountedEnd(0)
		}
		at = next
	}
	return d.withCountedEnd(at.UnixMilli() + 1)
}

// WithoutCountedEnd gives the definition without the end that MaxRuns says, for it to be counted anew.
func (d Definition) WithoutCountedEnd() Definition { return d.withCountedEnd(0) }

// KeepCountedEnd gives the definition with the end of a standing one, where that has the same schedule and the same MaxRuns: an edit of anything else goes on
// counting. Where it has not, the end is to be counted anew.
func (d Definition) KeepCountedEnd(standing Definition) Definition {
	d = d.WithoutCountedEnd()
	if d.MaxRuns == 0 || d.MaxRuns != standing.MaxRuns || !sameTimes(d.Schedule, standing.WithoutCountedEnd().Schedule) {
		return d
	}
	return d.withCountedEnd(standing.Schedule.CountedEnd)
}

// FinalRun is the last nominal time that the schedule has under MaxRuns; not ok where that does not end it.
func (d Definition) FinalRun() (time.Time, bool) {
	if d.Schedule == nil || d.Schedule.CountedEnd == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(d.Schedule.CountedEnd - 1).UTC(), true
}

func (d Definition) withCountedEnd(end int64) Definition {
	if d.Schedule != nil && d.Schedule.CountedEnd != end {
		spec := *d.Schedule // others may have it
		spec.CountedEnd = end
		d.Schedule = &spec
	}
	return d
}

// sameTimes compares schedules as they are stored.
func sameTimes(a, b *schedule.Spec) bool {
	if a == nil || b == nil {
		return false
	}
	left, err1 := record.Encode(*a)
	right, err2 := record.Encode(*b)
	return err1 == nil && err2 == nil && bytes.Equal(left, right)
}
