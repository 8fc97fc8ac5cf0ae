package schedule

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
)

// What Python's zoneinfo makes of local times around the changes of all clocks; local.py writes it.
//
//go:embed testdata/local.txt
var localTimes string

const wallForm = "2006-01-02T15:04:05"

func TestLocal_is_what_Python_has_around_every_change(t *testing.T) {
	from, to := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)
	zones, times := 0, 0
	for line := range strings.Lines(localTimes) {
		parts := strings.Fields(line)
		zone, err := LoadZone(parts[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range parts[3:] {
			text, _, _ := strings.Cut(row, "=")
			if got := localRow(t, text, zone); got != row {
				t.Errorf("%s: got %s, want %s", parts[0], got, row)
			}
		}
		var rows []string
		spans, err := zoneOf(parts[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range spans.spans {
			if span.start < from.Unix() || span.start >= to.Unix() {
				continue
			}
			low, high := span.start+int64(min(span.before, span.offset)), span.start+int64(max(span.before, span.offset))
			for _, wall := range []int64{low - 1, low, (low + high) / 2, high - 1, high} {
				rows = append(rows, localRow(t, time.Unix(wall, 0).UTC().Format(wallForm), zone))
			}
		}
		digest := sha256.Sum256([]byte(strings.Join(rows, "\n")))
		if fmt.Sprint(len(rows)) != parts[1] || hex.EncodeToString(digest[:8]) != parts[2] {
			t.Errorf("%s: %d local times differ from Python's %s", parts[0], len(rows), parts[1])
		}
		zones, times = zones+1, times+len(rows)
	}
	if all, err := ZoneNames(); err != nil || zones != len(all) || times < 30_000 {
		t.Errorf("%d times of %d zones were compared, %v; there are %d zones", times, zones, err, len(all))
	}
}

func localRow(t *testing.T, text string, zone *time.Location) string {
	wall, err := time.Parse(wallForm, text)
	if err != nil {
		t.Fatal(err)
	}
	at, told := Local(wall, zone)
	if shown := at.Format(wallForm) == text; !shown && !strings.Contains(told, "end of the gap") {
		t.Errorf("%s in %s is %s, and nothing is said: %q", text, zone, at, told)
	}
	return fmt.Sprintf("%s=%d", text, at.Unix())
}

func TestLocal_says_what_a_clock_does_not_show_once(t *testing.T) {
	for _, c := range []struct{ zone, wall, want, told string }{
		{"America/New_York", "2027-03-14T02:30:00", "2027-03-14T07:00:00Z", "does not show that time in America/New_York: taken for the end of the gap, 2027-03-14T03:00:00-04:00"},
		{"Europe/Berlin", "2027-03-28T02:30:00", "2027-03-28T01:00:00Z", "does not show"},
		{"America/New_York", "2027-11-07T01:30:00", "2027-11-07T05:30:00Z", "twice in America/New_York: taken for the first, 2027-11-07T01:30:00-04:00; the second is 2027-11-07T01:30:00-05:00"},
		{"Europe/Berlin", "2027-10-31T02:30:00", "2027-10-31T00:30:00Z", "twice"},
		{"Europe/Berlin", "2027-06-01T12:00:00", "2027-06-01T10:00:00Z", ""},
		{"Australia/Lord_Howe", "2027-10-03T02:10:00", "2027-10-02T15:30:00Z", "does not show"},
		{"Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z", "does not show"}, // a day that was left out
		{"America/Havana", "2027-03-14T00:00:00", "2027-03-14T05:00:00Z", "does not show"},
		{"UTC", "2027-03-14T02:30:00", "2027-03-14T02:30:00Z", ""},
		{"Europe/Dublin", "2500-03-28T01:30:00", "2500-03-28T01:00:00Z", "does not show"}, // by the yearly rule
	} {
		zone, err := LoadZone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, _ := time.Parse(wallForm, c.wall)
		at, told := Local(wall, zone)
		if got := at.UTC().Format(time.RFC3339); got != c.want || (told == "") != (c.told == "") || !strings.Contains(told, c.told) {
			t.Errorf("%s in %s is %s, %q; want %s, %q", c.wall, c.zone, got, told, c.want, c.told)
		}
	}
	if at, told := Local(time.Date(2027, 3, 14, 2, 30, 0, 5e6, time.UTC), time.FixedZone("", 3600)); told != "" || at.UTC() != time.Date(2027, 3, 14, 1, 30, 0, 5e6, time.UTC) {
		t.Errorf("an offset that stands: %s, %q", at, told)
	}
}

// A time of day that a cron expression has is the instant at which somebody's local time is.
func TestLocal_agrees_with_cron(t *testing.T) {
	compared := 0
	for line := range strings.Lines(localTimes) {
		parts := strings.Fields(line)
		zone, err := LoadZone(parts[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range parts[3:] {
			text, _, _ := strings.Cut(row, "=")
			wall, _ := time.Parse(wallForm, text)
			at, _ := Local(wall, zone)
			cron := fmt.Sprintf("%d %d %d %d %d *", wall.Second(), wall.Minute(), wall.Hour(), wall.Day(), wall.Month())
			if fire, ok := compile(t, Spec{Cron: cron, Timezone: parts[0]}).Next(at.Add(-time.Second)); !ok || !fire.Equal(at) {
				t.Errorf("%s in %s is %s, and cron fires at %s", text, zone, at.UTC(), fire)
			}
			compared++
		}
	}
	if compared < 300 {
		t.Errorf("%d times were compared", compared)
	}
}
