package schedule

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Duration is a length of time whose JSON form is text such as "90s", "1h30m", "250ms" or "30d"; a day is 24 hours.
// It is never negative.
type Duration time.Duration

const (
	day             = 24 * time.Hour
	longestDuration = 64 // bytes of text; the longest that String gives is far below
	wantDuration    = `a duration such as "90s", "5m", "1h30m" or "30d"`
)

// Std gives d as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// ParseDuration reads what String gives, and every other order of magnitude of it: whole days first ("7d", "1d12h"),
// then what time.ParseDuration reads. An error is an *invalid.Error without a field.
func ParseDuration(text string) (Duration, error) {
	refuse := func(want string) (Duration, error) { return 0, invalid.Field("", text, want) }
	if text == "" || len(text) > longestDuration || strings.ContainsAny(text, "+ ") {
		return refuse(wantDuration)
	}
	if text[0] == '-' {
		return refuse(wantDuration + ", not a negative one")
	}
	var days time.Duration
	rest := text
	if count, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil {
			return refuse(wantDuration + " (whole days, before the other units)")
		}
		if n > uint64(math.MaxInt64/day) {
			return refuse("a duration of at most 106751d")
		}
		days, rest = time.Duration(n)*day, after
	}
	var parts time.Duration
	if rest != "" {
		var err error
		if parts, err = time.ParseDuration(rest); err != nil || strings.HasPrefix(rest, "-") {
			return refuse(wantDuration)
		}
	}
	if days > math.MaxInt64-parts {
		return refuse("a duration of at most 106751d")
	}
	return Duration(days + parts), nil
}

// String gives the shortest text that still reads well: one unit when its number stays under a thousand ("90s", "36h",
// "30d"), else the units in order ("1d1h1m1s").
func (d Duration) String() string {
	left := time.Duration(d)
	if left == 0 {
		return "0s"
	}
	for _, u := range [...]struct {
		size time.Duration
		name string
	}{{day, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if left%u.size == 0 {
			if n := int64(left / u.size); n < 1000 || u.size == day {
				return strconv.FormatInt(n, 10) + u.name
			}
			break
		}
	}
	text := ""
	if left >= day {
		text, left = strconv.FormatInt(int64(left/day), 10)+"d", left%day
	}
	// The standard form writes zeros in the middle and at the end ("1h0m0s"), which a reader does not need.
	if hours := left / time.Hour; hours > 0 {
		text, left = text+strconv.FormatInt(int64(hours), 10)+"h", left%time.Hour
	}
	if minutes := left / time.Minute; minutes > 0 {
		text, left = text+strconv.FormatInt(int64(minutes), 10)+"m", left%time.Minute
	}
	if left != 0 {
		text += left.String()
	}
	return text
}

// MarshalJSON writes String as JSON text.
func (d Duration) MarshalJSON() ([]byte, error) {
	return []byte(`"` + d.String() + `"`), nil
}

// UnmarshalJSON reads JSON text; a bare number is refused, since its unit would be a guess.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return invalid.Field("", string(data), wantDuration+", in quotes")
	}
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}
