package takeover

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// NeverFires reports whether a schedule is sound but for this: it has no fire. People write such ones, 31 February, for what is
// started by hand alone.
func NeverFires(s schedule.Spec) bool {
	_, err := s.Compile()
	return errors.Is(err, schedule.ErrNeverFires) && len(invalid.All(err)) == 1
}

// OnDemand is the note on a schedule that never fires.
const OnDemand = `its schedule, %q, never fires: the job runs on demand alone, by "belfry job trigger"`

var (
	yearForm = regexp.MustCompile(`^(\*|[0-9]{4}([-,/][0-9]+)*)$`)
	fullDay  = regexp.MustCompile(`(?i)\b(sun|mon|tue|wed|thu|fri|sat)[a-z]*day\b`)
)

// SixFields says what to write in five fields for an expression of six: without the first, which may be seconds, or without the last, which
// may be a year. It shows both where either may be meant, or neither can be read.
func SixFields(six []string) string {
	write := func(five []string) string {
		return fullDay.ReplaceAllString(strings.ReplaceAll(strings.Join(five, " "), "?", "*"), "$1")
	}
	first, last := write(six[1:]), write(six[:5])
	seconds := sound(six[0]+" * * * *") && sound(first)
	year := yearForm.MatchString(six[5]) && sound(last)
	switch {
	case seconds && (first == last || !year):
		return fmt.Sprintf("%q, without seconds", first)
	case year && !seconds:
		return fmt.Sprintf("%q, without the year", last)
	}
	return fmt.Sprintf("%q where the first is seconds, %q where the last is a year", first, last)
}

// sound reports whether five fields can be read, whether or not they ever fire.
func sound(five string) bool {
	kept, _ := Steps(five)
	spec := schedule.Spec{Cron: kept}
	_, err := spec.Compile()
	return err == nil || NeverFires(spec)
}

// fiveFields are the fields of a cron expression, with the number of their values and what a longer step counts.
var fiveFields = [5]struct {
	name          string
	first, values int
	unit          string
}{
	{"minutes", 0, 60, "minutes"}, {"hours", 0, 24, "hours"}, {"days of the month", 1, 31, "days"},
	{"months", 1, 12, "months"}, {"days of the week", 0, 7, "days"},
}

// Steps writes steps that are longer than their field as what other schedulers make of them: the first value alone, so that
// */90 of the minutes is 0. Belfry's dialect refuses them. It returns a note on each. An expression that has not five fields stays.
func Steps(cron string) (kept string, notes []string) {
	fields := strings.Fields(cron)
	if len(fields) != len(fiveFields) {
		return cron, nil
	}
	for i, f := range fiveFields {
		parts := strings.Split(fields[i], ",")
		for k, part := range parts {
			values, step, stepped := strings.Cut(part, "/")
			if !stepped || !longer(step, f.values) {
				continue
			}
			first, _, _ := strings.Cut(values, "-")
			if first == "*" || first == "?" {
				first = strconv.Itoa(f.first)
			}
			parts[k] = first
			if values == "*" && k == 0 && (i == 2 && fields[4] != "*" || i == 4 && fields[2] != "*") {
				// A field of days that begins with a star joins the other one by "and", and without it by "or".
				parts[k] = fmt.Sprintf("*/%d", f.values)
			}
			notes = append(notes, fmt.Sprintf("%s of the %s fires at %s alone, as it did; it does not count %s %s", part, f.name, first, step, f.unit))
		}
		fields[i] = strings.Join(parts, ",")
	}
	if len(notes) == 0 {
		return cron, nil
	}
	return strings.Join(fields, " "), notes
}

// longer reports whether digits are a number greater than most.
func longer(digits string, most int) bool {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	digits = strings.TrimLeft(digits, "0")
	n, err := strconv.Atoi(digits)
	return digits != "" && (err != nil || n > most)
}
