package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// ErrNeverFires is what errors.Is finds in the error of a schedule whose fields are sound and that would never fire.
var ErrNeverFires = errors.New("the schedule would never fire")

type neverFires struct{ error }

func (neverFires) Is(target error) bool { return target == ErrNeverFires }
func (e neverFires) Unwrap() error      { return e.error }

// Check is Compile for what somebody writes. It also refuses six fields that mean something else with the year last, as
// other schedulers have it: "0 9 * * 1-5 *" is 09:00 on workdays there. A job that was stored with such an expression keeps
// its meaning, since Compile reads it.
func (s Spec) Check() (*Schedule, error) {
	compiled, err := s.Compile()
	if err != nil || s.Cron == "" {
		return compiled, err
	}
	tokens := strings.Fields(s.Cron)
	if len(tokens) != 6 || tokens[month] == "*" || tokens[dayOfWeek] != "*" {
		return compiled, nil
	}
	five, ok := yearLast(tokens)
	if !ok {
		return compiled, nil
	}
	other, err := Spec{Cron: five}.Compile()
	if err != nil {
		return compiled, nil //nolint:nilerr // it has one meaning
	}
	tokens[month] = withNames(month, tokens[month], 1)
	means := func(s *Schedule) string {
		s.spec = Spec{}
		return strings.TrimSuffix(s.Describe(), ", UTC")
	}
	return nil, invalid.Field("cron", s.Cron, fmt.Sprintf("one reading: with seconds first (%s) name the month, %q; with the year last (%s) leave the year out, %q",
		means(compiled), strings.Join(tokens, " "), means(other), five))
}

var years = regexp.MustCompile(`^(\*|\?|[0-9]{4}([-,/][0-9]+)*)$`)

// yearLast gives the five fields that are before a year, where six are read so; ok is false for six that have no such meaning.
func yearLast(tokens []string) (five string, ok bool) {
	if len(tokens) != 6 || !years.MatchString(tokens[5]) {
		return "", false
	}
	var read [fieldCount]parsedField
	parts := slices.Clone(tokens[:5])
	if slices.Contains(tokens, "?") { // whoever writes it counts the days of the week from 1, Sunday
		parts[4] = withNames(dayOfWeek, parts[4], 1)
	}
	for i, part := range parts {
		if part == "?" {
			parts[i] = "*"
		}
		f := minute + field(i)
		if len(read[f].parse(f, parts[i])) > 0 {
			return "", false
		}
	}
	return strings.Join(parts, " "), true
}

var numbers = regexp.MustCompile(`[0-9]+`)

// withNames writes the values of a token by their names, of which the first is base, and its steps as they stand.
func withNames(f field, token string, base int) string {
	parts := strings.Split(token, ",")
	for i, part := range parts {
		end := len(part)
		if at := strings.IndexAny(part, "/#"); at >= 0 {
			end = at
		}
		values := part[:end]
		if values == "*" && end < len(part) {
			values = fmt.Sprintf("%d-%d", base, base+len(fields[f].names)/3-1)
		}
		parts[i] = numbers.ReplaceAllStringFunc(values, func(digits string) string {
			n, ok := number(digits)
			if at := 3 * (n - base); ok && at >= 0 && at < len(fields[f].names) {
				return fields[f].names[at : at+3]
			}
			return digits
		}) + part[end:]
	}
	return strings.Join(parts, ",")
}

// longNames are the names that cron abbreviates to three letters.
var longNames = map[field][]string{
	month:     {"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"},
	dayOfWeek: {"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"},
}

var (
	letters = regexp.MustCompile(`[A-Za-z]+`)
	hashed  = regexp.MustCompile(`^H([^A-Za-z]|$)`)
)

// meant says what to write instead of an item that means something to another scheduler; "" for one that does not.
func meant(f field, item string) string {
	switch {
	case strings.Contains(item, "~"):
		return fmt.Sprintf(`a fixed value such as "%d": "~" picks one at random, and the field "jitter" spreads starts`, fields[f].first)
	case hashed.MatchString(item):
		return fmt.Sprintf(`a fixed value such as "%d": "H" lets Jenkins pick one`, fields[f].first)
	}
	known := false
	short := letters.ReplaceAllStringFunc(item, func(word string) string {
		for _, name := range longNames[f] {
			if len(word) > 3 && strings.HasPrefix(name, strings.ToLower(word)) {
				known = true
				return name[:3]
			}
		}
		return word
	})
	if known {
		if want := new(parsedField).item(f, short); want != "" { // with short names, too, it is not what can be written
			return want
		}
		return fmt.Sprintf("%q: names have three letters", short)
	}
	return ""
}

// stepUnits name what a step of a field counts, as a duration has it.
var stepUnits = map[field]string{second: "s", minute: "m", hour: "h", dayOfMonth: "d"}

// wantStep says which steps a field has, and what a longer one comes to.
func (s *fieldSpec) wantStep(f field, first int, step string) string {
	count := s.last - s.first + 1
	want := fmt.Sprintf("a step from 1 to %d after the slash", count)
	n, err := strconv.Atoi(step)
	if err != nil || n <= count || n > 9999 || stepUnits[f] == "" {
		return want
	}
	return want + fmt.Sprintf(`; write "%d" for that value alone, or {"every": "%d%s"} instead of "cron"`, first, n, stepUnits[f])
}
