package calendar

import (
	"sort"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// Day is a date of a zone's clock, and the instants that it takes: from From, up to To and without it.
type Day struct {
	Date     string // as 2026-03-29
	From, To time.Time
}

// Days gives the days from first to last, both included, oldest first; none where last is before first. Of first and last only the date
// in UTC counts.
func Days(first, last time.Time, zone *time.Location) []Day {
	begins := func(date time.Time) time.Time {
		at, _ := schedule.Local(date, zone)
		return at.UTC()
	}
	const day = 24 * time.Hour
	first, last = first.UTC().Truncate(day), last.UTC().Truncate(day)
	var days []Day
	for date, from := first, begins(first); !date.After(last); {
		next := date.Add(day)
		to := begins(next)
		days = append(days, Day{Date: date.Format(time.DateOnly), From: from, To: to})
		date, from = next, to
	}
	return days
}

// Find gives the index of the day that holds an instant; false where none does.
func Find(days []Day, at time.Time) (int, bool) {
	n := sort.Search(len(days), func(i int) bool { return at.Before(days[i].To) })
	return n, n < len(days) && !at.Before(days[n].From)
}
