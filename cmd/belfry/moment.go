package main

import (
	"fmt"
	"os"
	"time"

	"github.com/belfry-scheduler/belfry/lib/crontab"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// clock is a time as rows carry it: RFC 3339 in UTC, nothing for none. A table shows it in the user's zone, with its age.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// moment shows a time to people, in their zone and with its age: 2026-11-21 10:00:05 CET (3m ago).
func (c *cli) moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(c.zone).Format("2006-01-02 15:04:05 MST") + " (" + age(t, c.now()) + ")"
}

// age says how far a time is from now, in one unit up to two days, two where one would say too little.
func age(t, now time.Time) string {
	d := t.Sub(now)
	if d > -time.Second && d < time.Second {
		return "now"
	}
	if d < 0 {
		return span(-d) + " ago"
	}
	return "in " + span(d)
}

func span(d time.Duration) string {
	const day = 24 * time.Hour
	two := func(unit, rest time.Duration, name, less string) string {
		text := fmt.Sprintf("%d%s", d/unit, name)
		if n := d % unit / rest; n > 0 {
			text += fmt.Sprintf("%d%s", n, less)
		}
		return text
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return two(time.Minute, time.Second, "m", "s")
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 10*time.Hour:
		return two(time.Hour, time.Minute, "h", "m")
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d < 2*365*day:
		return fmt.Sprintf("%dd", d/day)
	}
	return fmt.Sprintf("%dy", d/(365*day))
}

// userZone is the zone that times are shown in: the one that was named, else this host's.
func userZone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	zone, err := schedule.LoadZone(name)
	if err != nil {
		return nil, misused("--timezone: %w", err)
	}
	return zone, nil
}

// instant reads a flag that holds a time, "" as none, which is the zero time: with its offset, or as tables show it, in a zone. What is
// before 1970 is refused, so that no time that was given is taken for none. It warns where the clock of the zone does not show a time, or
// shows it twice.
func (c *cli) instant(flag, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := c.readInstant(flag, text, zone)
	if err == nil && t.Unix() < 0 {
		return time.Time{}, misused("%s %q: want a time such as 2026-11-21T09:00:00Z, from 1970 on", flag, text)
	}
	return t, err
}

func (c *cli) readInstant(flag, text string, zone *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range []string{time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		wall, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		if tz := os.Getenv("TZ"); zone == time.Local && unread(tz, zone) {
			return time.Time{}, misused("%s %q: TZ is %q, which is no IANA name of a time zone; give the time with its offset, or the zone with --timezone", flag, text, tz)
		}
		at, told := schedule.Local(wall, zone)
		if told != "" {
			c.warn("%s %q: %s", flag, text, told)
		}
		return at, nil
	}
	return time.Time{}, misused("%s %q: want a time such as 2026-11-21T09:00:00Z, or in the zone %s \"2026-11-21 09:00\" or 2026-11-21", flag, text, zone)
}

// unread reports whether a value of TZ could not be read, for which Go takes UTC as the local zone without a word.
func unread(tz string, local *time.Location) bool {
	_, known := crontab.ZoneName(tz)
	return tz != "" && !known && local.String() == "UTC"
}
