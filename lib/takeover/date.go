package takeover

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	dateForms   = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999-0700"}
	pythonDate  = regexp.MustCompile(`^datetime\.datetime\(([0-9]+(?:, *[0-9]+){2,6}), *tzinfo=(.*)\)$`)
	pythonUTC   = regexp.MustCompile(`^(tzutc\(\)|datetime\.timezone\.utc|datetime\.UTC|<UTC>|zoneinfo\.ZoneInfo\(key='(Etc/)?UTC'\))$`)
	errZoneless = errors.New("a time with its offset, such as 2026-11-21T09:00:00+01:00")
)

// Date reads an instant as programs write it: RFC 3339, or as Python prints it, "2026-11-21 09:00:00+01:00" or
// "datetime.datetime(2026, 11, 21, 9, 0, tzinfo=tzutc())". The error says what would be right.
func Date(text string) (time.Time, error) {
	text = strings.TrimSpace(text)
	for _, form := range dateForms {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	parts := pythonDate.FindStringSubmatch(text)
	if parts == nil || !pythonUTC.MatchString(parts[2]) {
		return time.Time{}, fmt.Errorf("got %q, want %w", Shorten(text, 80), errZoneless)
	}
	var n [7]int // year, month, day, hour, minute, second, microsecond
	for i, digits := range strings.Split(parts[1], ",") {
		n[i], _ = strconv.Atoi(strings.TrimSpace(digits))
	}
	at := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, time.UTC)
	if at.Year() != n[0] || int(at.Month()) != n[1] || at.Day() != n[2] || at.Hour() != n[3] || at.Minute() != n[4] || at.Second() != n[5] {
		return time.Time{}, fmt.Errorf("got %q, want %w", text, errZoneless)
	}
	return at, nil
}
