package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What a change of the clock does to fires, written out: each fire as its clock shows it, its mark, and the times that it stands for.
func TestFiresTellOfChangesOfTheClock(t *testing.T) {
	for _, c := range []struct {
		name, zone, cron, from string
		want                   string
	}{
		{"NoChange", "Europe/Berlin", "30 9 * * *", "2026-03-28T12:00:00Z", "2026-03-29T09:30:00+02:00 2026-03-30T09:30:00+02:00"},
		{"UTC", "UTC", "30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T02:30:00Z 2026-03-30T02:30:00Z"},
		{"Gap", "Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 shifted(2026-03-29T02:30:00) 2026-03-30T02:30:00+02:00"},
		{"GapOfSeveral", "Europe/Berlin", "0,30 2 * * *", "2026-03-28T12:00:00Z",
			"2026-03-29T03:00:00+02:00 merged(2026-03-29T02:00:00,2026-03-29T02:30:00) 2026-03-30T02:00:00+02:00"},
		{"GapAndRegular", "Europe/Berlin", "30,0 2,3 * * *", "2026-03-28T12:00:00Z",
			"2026-03-29T03:00:00+02:00 merged(2026-03-29T02:00:00,2026-03-29T02:30:00,2026-03-29T03:00:00) 2026-03-29T03:30:00+02:00"},
		{"RegularAtAGapsEnd", "Europe/Berlin", "0 3 * * *", "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00 2026-03-30T03:00:00+02:00"},
		{"GapOfEveryMinute", "Europe/Berlin", "* 2 * * *", "2026-03-29T00:30:00Z",
			"2026-03-29T03:00:00+02:00 merged(2026-03-29T02:00:00,2026-03-29T02:01:00,2026-03-29T02:02:00,2026-03-29T02:03:00,2026-03-29T02:04:00,2026-03-29T02:05:00,2026-03-29T02:06:00," +
				"2026-03-29T02:07:00,2026-03-29T02:08:00,2026-03-29T02:09:00) 2026-03-30T02:00:00+02:00"},
		{"EveryHourHasNoGap", "Europe/Berlin", "30 * * * *", "2026-03-29T00:00:00Z", "2026-03-29T01:30:00+01:00 2026-03-29T03:30:00+02:00"},
		{"Overlap", "Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00 first_of_two 2026-10-26T02:30:00+01:00"},
		{"OverlapOfEveryHour", "Europe/Berlin", "30 * * * *", "2026-10-24T23:00:00Z",
			"2026-10-25T01:30:00+02:00 2026-10-25T02:30:00+02:00 first_of_two 2026-10-25T02:30:00+01:00 second_of_two 2026-10-25T03:30:00+01:00"},
		{"OverlapsEdges", "Europe/Berlin", "0 * * * *", "2026-10-24T23:00:00Z",
			"2026-10-25T02:00:00+02:00 first_of_two 2026-10-25T02:00:00+01:00 second_of_two 2026-10-25T03:00:00+01:00"},
		{"HalfAnHour", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30", "2026-10-04T02:30:00+11:00 shifted(2026-10-04T02:15:00) 2026-10-05T02:15:00+11:00"},
		{"HalfAnHourTwice", "Australia/Lord_Howe", "*/15 * * * *", "2026-04-05T01:15:00+11:00",
			"2026-04-05T01:30:00+11:00 first_of_two 2026-04-05T01:45:00+11:00 first_of_two 2026-04-05T01:30:00+10:30 second_of_two 2026-04-05T01:45:00+10:30 second_of_two 2026-04-05T02:00:00+10:30"},
		{"Midnight", "America/Havana", "0 0,1 * * *", "2026-03-07T12:00:00-05:00",
			"2026-03-08T01:00:00-04:00 merged(2026-03-08T00:00:00,2026-03-08T01:00:00) 2026-03-09T00:00:00-04:00"},
		{"TwoHours", "Antarctica/Troll", "30 1,2 * * *", "2026-03-28T12:00:00Z",
			"2026-03-29T03:00:00+02:00 merged(2026-03-29T01:30:00,2026-03-29T02:30:00) 2026-03-30T01:30:00+02:00"},
		{"ALostDayIsNotMadeUp", "Pacific/Apia", "0 12 * * *", "2011-12-28T13:00:00-10:00", "2011-12-29T12:00:00-10:00 2011-12-31T12:00:00+14:00"},
		{"AfterEveryTable", "Europe/Berlin", "30 2 * * *", "2400-03-25T12:00:00+01:00", "2400-03-26T03:00:00+02:00 shifted(2400-03-26T02:30:00) 2400-03-27T02:30:00+02:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			s := compile(t, Spec{Cron: c.cron, Timezone: c.zone})
			var got []string
			for len(strings.Join(got, " ")) < len(c.want) {
				at, _ = s.Next(at)
				f := s.Fire(at)
				if !f.At.Equal(at) || !f.Local.Equal(at) || f.At.Location() != time.UTC {
					t.Errorf("%s is described as %+v", at, f)
				}
				got = append(got, f.Local.Format(time.RFC3339))
				if f.Mark != Unmarked {
					mark := string(f.Mark)
					if len(f.Asked) > 0 {
						mark += "(" + strings.Join(f.Asked, ",") + ")"
					}
					got = append(got, mark)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("\n\tgot  %s\n\twant %s", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestFiresOfOtherSchedulesAreInUTC(t *testing.T) {
	at := instant(t, "2026-03-29T01:00:00Z")
	for _, spec := range []Spec{{Every: Duration(time.Hour)}, {At: at}} {
		if f := compile(t, spec).Fire(*at); f.Mark != Unmarked || !f.At.Equal(*at) || f.Local.Format(time.RFC3339) != "2026-03-29T01:00:00Z" {
			t.Errorf("%+v: %+v", spec, f)
		}
	}
}

// In every zone, what the clock shows twice and what it skips is what Go's own reading of the zone says.
func TestMarksAreWhatTheClockShows(t *testing.T) {
	names, err := ZoneNames()
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		names = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll", "Asia/Kathmandu", "America/Santiago", "Pacific/Chatham", "Africa/Cairo"}
	}
	for _, name := range names {
		zone, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		wallOf := func(u int64) int64 {
			_, offset := time.Unix(u, 0).In(zone).Zone()
			return u + int64(offset)
		}
		begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		for day := begin; day < begin+2*366*daySeconds; day += daySeconds {
			if wallOf(day)-day == wallOf(day+daySeconds)-day-daySeconds {
				continue // the clock goes on as it is
			}
			for _, cron := range []string{"*/15 * * * *", "0,15,30,45 0-3,22,23 * * *"} {
				s := compile(t, Spec{Cron: cron, Timezone: name})
				for at, ok := s.Next(time.Unix(day-daySeconds, 0)); ok && at.Unix() < day+2*daySeconds; at, ok = s.Next(at) {
					u := at.Unix()
					want := Unmarked
					for other := u - daySeconds; other <= u+daySeconds; other += 900 {
						if other != u && wallOf(other) == wallOf(u) {
							if want = FirstOfTwo; other < u {
								want = SecondOfTwo
							}
						}
					}
					// The clock jumped to here, over times that were asked for.
					if jump := wallOf(u) - wallOf(u-1) - 1; jump > 0 && cron[0] != '*' {
						if n := countAsked(s, wallOf(u)-jump, wallOf(u)); n > 1 {
							want = Merged
						} else if n == 1 && s.cron.next(wallOf(u)) != wallOf(u) {
							want = Shifted
						}
					}
					if f := s.Fire(at); f.Mark != want || f.Local.Format(time.RFC3339) != at.In(zone).Format(time.RFC3339) {
						t.Fatalf("%s in %s at %s: got %+v, want %s", cron, name, at.In(zone), f, fmt.Sprintf("%q", want))
					}
				}
			}
		}
	}
}

// countAsked counts the wall times of an expression from one to another, minute by minute.
func countAsked(s *Schedule, from, to int64) (n int) {
	for w := from; w <= to; w += 60 {
		if s.cron.next(w) == w {
			n++
		}
	}
	return n
}
