package main

import (
	"fmt"
	"time"

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
