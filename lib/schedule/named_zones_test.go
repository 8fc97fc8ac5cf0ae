package schedule

import (
	"strings"
	"testing"
	"time"
)

// Places whose clocks do what others don't, with what must fire written out. One line a fire, on the wall.
func TestFault15_named_zones(t *testing.T) {
	for _, c := range []struct {
		name, zone, cron, from string
		want                   string
	}{
		{"Lord Howe moves by 30 minutes: the gap's fire comes at its end", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30",
			"2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"Lord Howe shows half an hour twice", "Australia/Lord_Howe", "30,45 1,2 * * *", "2026-04-04T12:00:00+11:00",
			"2026-04-05T01:30:00+11:00 2026-04-05T01:45:00+11:00 2026-04-05T02:30:00+10:30"},
		{"Lord Howe, every quarter of an hour that is", "Australia/Lord_Howe", "*/15 * * * *", "2026-04-05T01:44:00+11:00",
			"2026-04-05T01:45:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T01:45:00+10:30 2026-04-05T02:00:00+10:30"},
		{"Apia has no 30 December 2011, and a lost day is not made up", "Pacific/Apia", "0 12 * * *", "2011-12-28T13:00:00-10:00",
			"2011-12-29T12:00:00-10:00 2011-12-31T12:00:00+14:00"},
		{"Apia, every hour over the lost day", "Pacific/Apia", "0 * * * *", "2011-12-29T22:30:00-10:00",
			"2011-12-29T23:00:00-10:00 2011-12-31T00:00:00+14:00"},
		{"Cairo goes forward at midnight of a Friday", "Africa/Cairo", "30 0 * * 5", "2026-04-23T12:00:00+02:00",
			"2026-04-24T01:00:00+03:00 2026-05-01T00:30:00+03:00"},
		{"Cairo goes back at midnight: 23:30 comes twice", "Africa/Cairo", "30 23 * * *", "2026-10-29T12:00:00+03:00",
			"2026-10-29T23:30:00+03:00 2026-10-30T23:30:00+02:00"},
		{"Havana goes forward at midnight", "America/Havana", "0 0 * * *", "2026-03-07T12:00:00-05:00",
			"2026-03-08T01:00:00-04:00 2026-03-09T00:00:00-04:00"},
		{"Havana goes forward at midnight, with a regular fire at the gap's end", "America/Havana", "30 0,1 * * *", "2026-03-07T12:00:00-05:00",
			"2026-03-08T01:00:00-04:00 2026-03-08T01:30:00-04:00 2026-03-09T00:30:00-04:00"},
		{"Havana, where gap and regular fire are one", "America/Havana", "0 0,1 * * *", "2026-03-07T12:00:00-05:00",
			"2026-03-08T01:00:00-04:00 2026-03-09T00:00:00-04:00"},
		{"Santiago's first of a month in the gap", "America/Santiago", "0 0 6 9 *", "2026-09-01T00:00:00-04:00",
			"2026-09-06T01:00:00-03:00 2027-09-06T00:00:00-03:00"},
		{"Santiago goes back at midnight: Saturday's last hour comes twice", "America/Santiago", "0 23 * * 6", "2026-04-04T12:00:00-03:00",
			"2026-04-04T23:00:00-03:00 2026-04-11T23:00:00-04:00"},
		{"The Azores go back at one: midnight comes twice", "Atlantic/Azores", "30 0 * * *", "2026-10-24T12:00:00Z",
			"2026-10-25T00:30:00Z 2026-10-26T00:30:00-01:00"},
		{"Troll loses two hours at once, and two matches are one fire", "Antarctica/Troll", "30 1,2 * * *", "2026-03-28T12:00:00Z",
			"2026-03-29T03:00:00+02:00 2026-03-30T01:30:00+02:00"},
		{"Troll shows two hours twice", "Antarctica/Troll", "0 */2 * * *", "2026-10-24T23:00:00Z",
			"2026-10-25T02:00:00+02:00 2026-10-25T02:00:00Z 2026-10-25T04:00:00Z"},
		{"Casablanca goes back for Ramadan", "Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00:00+01:00",
			"2026-02-15T02:30:00+01:00 2026-02-16T02:30:00Z"},
		{"Casablanca's table ends in 2087, and its law with it", "Africa/Casablanca", "30 2 * * *", "2090-07-01T00:00:00+01:00",
			"2090-07-01T02:30:00+01:00"},
		{"Berlin by the yearly rule, after every table", "Europe/Berlin", "30 2 * * *", "2400-03-25T12:00:00+01:00",
			"2400-03-26T03:00:00+02:00 2400-03-27T02:30:00+02:00"},
		{"Berlin with seconds: one fire for the gap", "Europe/Berlin", "*/20 30 2 * * *", "2026-03-28T12:00:00+01:00",
			"2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00 2026-03-30T02:30:20+02:00"},
		{"Berlin with seconds, in the repeated hour", "Europe/Berlin", "59 59 2 * * *", "2026-10-25T02:59:58+02:00",
			"2026-10-25T02:59:59+02:00 2026-10-26T02:59:59+01:00"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.from)
			if err != nil {
				t.Fatal(err)
			}
			loc, err := LoadZone(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			s := compile(t, Spec{Cron: c.cron, Timezone: c.zone})
			var got []string
			for range strings.Fields(c.want) {
				at, _ = s.Next(at)
				got = append(got, at.In(loc).Format(time.RFC3339))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%s in %s after %s\n\tgot  %s\n\twant %s", c.cron, c.zone, c.from, strings.Join(got, " "), c.want)
			}
		})
	}
}

func compile(t testing.TB, spec Spec) *Schedule {
	t.Helper()
	s, err := spec.Compile()
	if err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	return s
}
