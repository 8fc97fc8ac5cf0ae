package schedule

import (
	"errors"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Spec is a schedule as its user writes it, in JSON. Exactly one of Cron, Every and At is given.
type Spec struct {
	// Cron has five fields, or six with leading seconds, or is a macro such as @daily. docs/schedule.md has the dialect.
	Cron string `json:"cron,omitzero" cbor:"1,keyasint,omitempty"`
	// Every fires at the Unix epoch + Phase + k × Every, so that no restart and no edit of another field shifts it.
	// At least 1s, in whole milliseconds.
	Every Duration `json:"every,omitzero" cbor:"2,keyasint,omitempty"`
	// Phase shifts the fires of Every: 0 or more, below Every, in whole milliseconds.
	Phase Duration `json:"phase,omitzero" cbor:"3,keyasint,omitempty"`
	// At is the one instant of a schedule that fires once, in whole milliseconds.
	At *time.Time `json:"at,omitzero" cbor:"4,keyasint,omitempty"`
	// Timezone is the IANA name of the zone whose wall clock Cron reads; "" is UTC.
	Timezone string `json:"timezone,omitzero" cbor:"5,keyasint,omitempty"`
	// Start (inclusive) and End (exclusive) bound the fires, in whole milliseconds; nil is no bound.
	Start *time.Time `json:"start,omitzero" cbor:"6,keyasint,omitempty"`
	End   *time.Time `json:"end,omitzero" cbor:"7,keyasint,omitempty"`
	// Jitter is how much later than its fire a run may start, 0 to 10m. It moves no fire: nominal times stay.
	Jitter Duration `json:"jitter,omitzero" cbor:"8,keyasint,omitempty"`
	// CountedEnd is when the schedule is over before End, in Unix ms: no fire is at or after it; 0 is no such end. Nobody writes it: it is computed where a
	// schedule is to have so many fires and no more.
	CountedEnd int64 `json:"-" cbor:"9,keyasint,omitempty"`
}

// MaxJitter is the longest jitter.
const MaxJitter = Duration(10 * time.Minute)

const (
	smallestEvery = Duration(time.Second)

	// Fires lie in [1970, 10000): what a time of RFC 3339 and an int64 of milliseconds can both hold.
	endOfTimeSec = 253402300800
	endOfTime    = endOfTimeSec * 1000

	wantInstant = `a time such as "2026-11-21T09:00:00Z", between the years 1970 and 9999, in whole milliseconds`
)

// Compile checks the whole Spec and makes of it what computes fires. The error joins one *invalid.Error for each field
// that is wrong, named relative to the Spec ("cron", "end"). A schedule that would never fire is refused.
func (s Spec) Compile() (*Schedule, error) {
	var errs []error
	refuse := func(field, got, want string) { errs = append(errs, invalid.Field(field, got, want)) }

	c := &Schedule{spec: s, end: endOfTime}
	switch given := s.given(); len(given) {
	case 0:
		errs = append(errs, invalid.Missing("cron", `a cron expression such as "30 9 * * 1-5", or "every" or "at" instead`))
	case 1:
	default:
		refuse("", strings.Join(given, ", "), `exactly one of "cron", "every" and "at"`)
	}

	if s.Cron != "" {
		set, err := parseCron(s.Cron)
		if err != nil {
			errs = append(errs, err)
		}
		c.kind, c.cron = byCron, set
		if c.zone, err = zoneOf(s.Timezone); err != nil {
			errs = append(errs, err)
		}
	} else if s.Timezone != "" {
		refuse("timezone", s.Timezone, `no time zone beside "every" or "at": only "cron" reads a wall clock`)
	}

	if s.Every != 0 {
		c.kind, c.every, c.phase = byEvery, milliseconds(s.Every), milliseconds(s.Phase)
		if s.Every < smallestEvery || !wholeMilliseconds(s.Every) {
			refuse("every", s.Every.String(), "a duration of at least 1s, in whole milliseconds")
		} else if s.Phase < 0 || s.Phase >= s.Every || !wholeMilliseconds(s.Phase) {
			refuse("phase", s.Phase.String(), `a duration from 0s to below "every" (`+s.Every.String()+`), in whole milliseconds`)
		}
	} else if s.Phase != 0 {
		refuse("phase", s.Phase.String(), `no phase without "every"`)
	}

	instant := func(field string, t *time.Time, otherwise int64) int64 {
		if t == nil {
			return otherwise
		}
		if sec := t.Unix(); sec < 0 || sec >= endOfTimeSec || t.Nanosecond()%int(time.Millisecond) != 0 {
			refuse(field, t.Format(time.RFC3339Nano), wantInstant)
			return otherwise
		}
		return t.UnixMilli()
	}
	if s.At != nil {
		c.kind, c.at = byAt, instant("at", s.At, 0)
	}
	c.start = instant("start", s.Start, 0)
	c.end = instant("end", s.End, endOfTime)
	if c.start >= c.end {
		refuse("end", formatInstant(c.end), `a time after "start", `+formatInstant(c.start))
	}
	if s.CountedEnd > 0 {
		c.end = min(c.end, s.CountedEnd)
	}
	if s.Jitter < 0 || s.Jitter > MaxJitter || !wholeMilliseconds(s.Jitter) {
		refuse("jitter", s.Jitter.String(), "a duration from 0s to 10m, in whole milliseconds")
	}

	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if err := c.neverFires(); err != nil {
		return nil, err
	}
	return c, nil
}

// given names those of the three ways to say when that the Spec holds.
func (s Spec) given() []string {
	var names []string
	if s.Cron != "" {
		names = append(names, "cron")
	}
	if s.Every != 0 {
		names = append(names, "every")
	}
	if s.At != nil {
		names = append(names, "at")
	}
	return names
}

func wholeMilliseconds(d Duration) bool { return d.Std()%time.Millisecond == 0 }
func milliseconds(d Duration) int64     { return d.Std().Milliseconds() }

func formatInstant(ms int64) string {
	return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
}
