package calendar_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/calendar"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := schedule.LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func date(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDaysFollowTheClockOfTheirZone(t *testing.T) {
	for _, c := range []struct {
		zone, date, from string
		long             time.Duration
	}{
		{"UTC", "2026-03-29", "2026-03-29T00:00:00Z", 24 * time.Hour},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", 23 * time.Hour},
		{"Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", 25 * time.Hour},
		{"Asia/Kolkata", "2026-01-01", "2025-12-31T18:30:00Z", 24 * time.Hour},
		{"Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00Z", 23 * time.Hour},   // midnight is skipped: it begins at 01:00
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", 25 * time.Hour}, // midnight comes twice: it begins with the first
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", 24*time.Hour + 30*time.Minute},
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z", 0}, // Samoa had no such day
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z", 24 * time.Hour},
	} {
		days := calendar.Days(date(t, c.date), date(t, c.date), zone(t, c.zone))
		if len(days) != 1 || days[0].Date != c.date || days[0].From.Format(time.RFC3339) != c.from || days[0].To.Sub(days[0].From) != c.long {
			t.Errorf("%s in %s: %+v, want it from %s on, %s long", c.date, c.zone, days, c.from, c.long)
		}
	}
}

// In every zone, days leave out no instant and hold none twice, and an instant is of the day that the clock shows then, but where that shows a date
// again that was over.
func TestDaysHoldEachInstantOnce(t *testing.T) {
	names, err := schedule.ZoneNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		z := zone(t, name)
		days := calendar.Days(date(t, "2026-01-01"), date(t, "2026-12-31"), z)
		if len(days) != 365 {
			t.Fatalf("%s: %d days, want 365", name, len(days))
		}
		for i, d := range days {
			if i > 0 && !d.From.Equal(days[i-1].To) {
				t.Errorf("%s: %s begins at %s, and the day before ends at %s", name, d.Date, d.From, days[i-1].To)
			}
			for _, at := range []time.Time{d.From, d.From.Add(d.To.Sub(d.From) / 2), d.To.Add(-time.Millisecond)} {
				if n, ok := calendar.Find(days, at); !ok || n != i {
					t.Errorf("%s: %s is found in day %d, %t, want %d", name, at, n, ok, i)
				}
				if got := at.In(z).Format(time.DateOnly); got != d.Date {
					t.Errorf("%s: at %s the clock shows %s, and the day is %s", name, at, got, d.Date)
				}
			}
		}
		for _, at := range []time.Time{days[0].From.Add(-time.Millisecond), days[364].To} {
			if n, ok := calendar.Find(days, at); ok {
				t.Errorf("%s: %s is found in day %d, want in none", name, at, n)
			}
		}
	}
}

func TestNoDaysWhereTheLastIsBeforeTheFirst(t *testing.T) {
	if days := calendar.Days(date(t, "2026-03-02"), date(t, "2026-03-01"), time.UTC); len(days) != 0 {
		t.Errorf("got %+v", days)
	}
	if _, ok := calendar.Find(nil, time.Now()); ok {
		t.Error("found in no days")
	}
}
