package schedule

import (
	"testing"
	"time"

	"github.com/adhocore/gronx"
	"github.com/robfig/cron/v3"
)

// Why neither library is the engine, as docs/schedule.md says it. When one of them mends this, the text has to change.
func TestOthers_go_wrong_where_the_docs_say_so(t *testing.T) {
	for _, expr := range []string{"*,99 * * * *", "*/+5 * * * *", "0 0 * JANFEB *", "0 0 * * 5#6"} {
		if !gronx.IsValid(expr) {
			t.Errorf("gronx no longer accepts %q", expr)
		}
	}

	// Every quarter of an hour leaves no question about the daylight saving rule: on a clock that moves by quarters of
	// an hour, any two fires are 15 minutes apart.
	wrong, zones := 0, 0
	files, err := zoneFiles()
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		loc, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		zones++
		if !everyQuarter(loc, func(at time.Time) time.Time {
			next, _ := gronx.NextTickAfter("*/15 * * * *", at, false)
			return next
		}) {
			wrong++
		}
		ours := compile(t, Spec{Cron: "*/15 * * * *", Timezone: name})
		if !everyQuarter(loc, func(at time.Time) time.Time {
			next, _ := ours.Next(at)
			return next
		}) {
			t.Errorf("we go wrong in %s", name)
		}
	}
	t.Logf("gronx goes wrong around a clock change of 2026 in %d of %d zones", wrong, zones)
	if wrong < 100 {
		t.Errorf("gronx goes wrong in %d zones only", wrong)
	}

	robfig := func(expr, zone string, from time.Time) time.Time {
		loc, err := LoadZone(zone)
		if err != nil {
			t.Fatal(err)
		}
		s, err := cron.ParseStandard(expr)
		if err != nil {
			t.Fatal(err)
		}
		return s.Next(from.In(loc))
	}
	if next := robfig("0 0 29 2 *", "UTC", time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)); !next.IsZero() {
		t.Errorf("robfig finds 29 February after 2096: %v", next)
	}
	if next := robfig("0 0 1 1 *", "Africa/Cairo", time.Date(2014, 8, 9, 12, 0, 0, 0, time.UTC)); next.Year() != 2016 {
		t.Errorf("robfig no longer loses 2015 in Cairo: %v", next)
	}
	if next := robfig("30 2 * * *", "Europe/Berlin", time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)); next.Day() != 30 {
		t.Errorf("robfig no longer skips a fire in a gap: %v", next)
	}
}

// everyQuarter walks over the hours around each change of the clock in 2026.
func everyQuarter(loc *time.Location, next func(time.Time) time.Time) bool {
	begin, end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for _, change := range clockChanges(loc) {
		if change < begin || change >= end {
			continue
		}
		at := time.Unix(change-3*3600, 0).In(loc)
		for at.Unix() < change+3*3600 {
			following := next(at)
			if following.Sub(at) != 15*time.Minute {
				return false
			}
			at = following
		}
	}
	return true
}
