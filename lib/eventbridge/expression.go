package eventbridge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

// expression is what a ScheduleExpression says, apart from where it begins and ends.
type expression struct {
	cron       string
	every      time.Duration
	at         time.Time
	start, end time.Time // of the years that cron names; zero for none
	notes      []string  // what its owner should know of how cron is kept
}

var (
	expressionForm = regexp.MustCompile(`^(cron|rate|at)\((.*)\)$`)
	rateForm       = regexp.MustCompile(`^([0-9]{1,9})\s+(minute|hour|day)s?$`)
)

var units = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// parseExpression reads an expression in its zone.
func parseExpression(text string, zone *time.Location) (expression, error) {
	parts := expressionForm.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return expression{}, fmt.Errorf("ScheduleExpression: got %q, want cron(…), rate(…) or at(…)", text)
	}
	var e expression
	var err error
	switch body := strings.TrimSpace(parts[2]); parts[1] {
	case "cron":
		e, err = parseCron(body, zone)
	case "rate":
		rate := rateForm.FindStringSubmatch(body)
		if rate == nil {
			return e, fmt.Errorf("ScheduleExpression: got %q, want a rate such as rate(5 minutes)", text)
		}
		n, _ := strconv.ParseInt(rate[1], 10, 64) // it has at most nine digits
		if e.every = time.Duration(n) * units[rate[2]]; n == 0 || e.every/units[rate[2]] != time.Duration(n) {
			return e, fmt.Errorf("ScheduleExpression: got %q, want a rate from 1 minute to 290 years", text)
		}
	case "at":
		wall, wrong := time.Parse("2006-01-02T15:04:05", body)
		if wrong != nil {
			err = fmt.Errorf("got at(%s), want a time such as at(2026-11-21T09:00:00)", body)
			break
		}
		at, told := schedule.Local(wall, zone)
		if e.at = at; told != "" {
			e.notes = append(e.notes, told)
		}
	}
	if err != nil {
		return e, fmt.Errorf("ScheduleExpression: %w", err)
	}
	return e, nil
}

// parseCron reads minutes, hours, days of the month, months, days of the week and years. Belfry's dialect has the first five,
// but for the days of the week, which AWS counts from 1, Sunday, to 7. Years become a start and an end.
func parseCron(body string, zone *time.Location) (expression, error) {
	fields := strings.Fields(strings.ToUpper(body))
	if len(fields) != 6 {
		return expression{}, fmt.Errorf("got %d fields in cron(%s), want 6", len(fields), body)
	}
	day, weekday := fields[2], fields[4]
	if day != "?" && day != "*" && weekday != "?" && weekday != "*" {
		return expression{}, fmt.Errorf("cron(%s) names days of the month and of the week; AWS wants ? for one of them", body)
	}
	for i, field := range fields[:4] {
		if strings.Contains(field, "?") && field != "?" || field == "?" && i != 2 {
			return expression{}, fmt.Errorf("cron(%s): ? stands alone, for the days", body)
		}
	}
	translated, err := weekdays(weekday)
	if err != nil {
		return expression{}, fmt.Errorf("cron(%s): %w", body, err)
	}
	var e expression
	if e.start, e.end, err = years(fields[5], zone); err != nil {
		return e, fmt.Errorf("cron(%s): %w", body, err)
	}
	if day == "?" {
		day = "*"
	}
	five := []string{fields[0], fields[1], day, fields[3], translated}
	for i, field := range five {
		if rest, ok := strings.CutPrefix(field, "/"); ok { // from the first value on
			five[i] = "*/" + rest
		}
	}
	for i, field := range five[:4] {
		five[i] = upwards(field, ranges[i])
	}
	e.cron, e.notes = takeover.Steps(strings.Join(five, " "))
	return e, nil
}

// ranges are the values of minutes, hours, days of the month and months.
var ranges = [4]struct {
	first, last int
	names       string
}{{0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"}}

var rangeForm = regexp.MustCompile(`^([0-9]{1,2}|[A-Z]{3})-([0-9]{1,2}|[A-Z]{3})(?:/([0-9]{1,4}))?$`)

// upwards writes ranges that run over the field's end, which AWS takes and Belfry refuses, as ranges that run upwards. What is no
// such range stays.
func upwards(field string, of struct {
	first, last int
	names       string
}) string {
	value := func(text string) int {
		if at := strings.Index(of.names, text); at >= 0 && at%3 == 0 && len(text) == 3 {
			return of.first + at/3
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return -1
		}
		return n
	}
	parts := strings.Split(field, ",")
	for i, part := range parts {
		found := rangeForm.FindStringSubmatch(part)
		if found == nil {
			continue
		}
		from, to, step := value(found[1]), value(found[2]), "1"
		if found[3] != "" {
			step = found[3]
		}
		by, _ := strconv.Atoi(step) // it is of digits
		if to < from && to >= of.first && from <= of.last && by > 0 {
			parts[i] = runs(around(from, to, by, of.first, of.last))
		}
	}
	return strings.Join(parts, ",")
}

// around lists every by-th value from one on, over the last value to the first, up to another; sorted.
func around(from, to, by, first, last int) []int {
	var values []int
	count := last - first + 1
	for at := from; at <= to+count; at += by {
		values = append(values, first+(at-first)%count)
	}
	slices.Sort(values)
	return values
}

// runs writes sorted values as a list, in which those that follow one another are a range.
func runs(values []int) string {
	var parts []string
	for i := 0; i < len(values); {
		k := i
		for k+1 < len(values) && values[k+1] == values[k]+1 {
			k++
		}
		if k == i {
			parts = append(parts, strconv.Itoa(values[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", values[i], values[k]))
		}
		i = k + 1
	}
	return strings.Join(parts, ",")
}

var weekdayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// weekday is Belfry's number of a day that AWS gives by name or number.
func weekday(text string) (int, error) {
	if n := slices.Index(weekdayNames, text); n >= 0 {
		return n, nil
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 7 && len(text) == 1 {
		return n - 1, nil
	}
	return 0, fmt.Errorf("got %q, want a day of the week: 1 to 7 or SUN to SAT", text)
}

// weekdays translates the field. Steps are written out, for AWS's week ends on Saturday and Belfry's field goes on
// to another Sunday, 7.
func weekdays(field string) (string, error) {
	if field == "?" || field == "*" {
		return "*", nil
	}
	var days []string
	for _, part := range strings.Split(field, ",") {
		values, step, stepped := strings.Cut(part, "/")
		first, last, isRange := strings.Cut(values, "-")
		ordinal, nth, isNth := strings.Cut(part, "#")
		switch {
		case part == "L": // the week's last day
			days = append(days, "6")
		case isNth:
			n, err := weekday(ordinal)
			if err != nil {
				return "", err
			}
			days = append(days, fmt.Sprintf("%d#%s", n, nth))
		case !stepped && !isRange && len(part) > 1 && strings.HasSuffix(part, "L"):
			n, err := weekday(strings.TrimSuffix(part, "L"))
			if err != nil {
				return "", err
			}
			days = append(days, fmt.Sprintf("%dL", n))
		default:
			named, err := spread(first, last, isRange, step, stepped)
			if err != nil {
				return "", err
			}
			days = append(days, named...)
		}
	}
	if slices.Equal(days, []string{"0-6"}) {
		return "*", nil
	}
	return strings.Join(days, ","), nil
}

// spread names the days of a value, a range, or one of them with a step.
func spread(first, last string, isRange bool, step string, stepped bool) ([]string, error) {
	from, to, by := 0, 6, 1
	var err error
	if first != "*" && first != "" || isRange {
		if from, err = weekday(first); err != nil {
			return nil, err
		}
		if !stepped {
			to = from
		}
	} else if !stepped {
		return nil, fmt.Errorf("got %q among the days of the week, want * alone", first)
	}
	if isRange {
		if to, err = weekday(last); err != nil {
			return nil, err
		}
	}
	if stepped {
		if by, err = strconv.Atoi(step); err != nil || by < 1 {
			return nil, fmt.Errorf("got the step %q, want 1 or more", step)
		}
	}
	if to < from {
		return strings.Split(runs(around(from, to, by, 0, 6)), ","), nil
	}
	if isRange && by == 1 {
		return []string{fmt.Sprintf("%d-%d", from, to)}, nil
	}
	var days []string
	for day := from; day <= to; day += by {
		days = append(days, strconv.Itoa(day))
	}
	return days, nil
}

// The years that AWS knows.
const firstYear, lastYear = 1970, 2199

// years gives the beginning of the first year, and of the one after the last, in the zone. Years apart from one another have
// no start and end that would be exact.
func years(field string, zone *time.Location) (start, end time.Time, err error) {
	if field == "*" {
		return start, end, nil
	}
	named := map[int]bool{}
	year := func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < firstYear || n > lastYear {
			return 0, fmt.Errorf("got %q, want a year from %d to %d", text, firstYear, lastYear)
		}
		return n, nil
	}
	for _, part := range strings.Split(field, ",") {
		values, step, stepped := strings.Cut(part, "/")
		first, last, isRange := strings.Cut(values, "-")
		from, to, by := firstYear, lastYear, 1
		if first != "*" && first != "" || isRange {
			if from, err = year(first); err != nil {
				return start, end, err
			}
			if !stepped {
				to = from
			}
		}
		if isRange {
			if to, err = year(last); err != nil {
				return start, end, err
			}
		}
		if stepped {
			if by, err = strconv.Atoi(step); err != nil || by < 1 || by > lastYear {
				return start, end, fmt.Errorf("got the step %q among the years, want 1 or more", step)
			}
		}
		for n := from; n <= to; n += by {
			named[n] = true
		}
	}
	least, most := lastYear+1, 0
	for n := range named {
		least, most = min(least, n), max(most, n)
	}
	if len(named) == 0 || most-least+1 != len(named) {
		return start, end, fmt.Errorf("the years %s are not one after the other, and a job has one start and one end; write a job for each of them", field)
	}
	if least > firstYear {
		start, _ = schedule.Local(time.Date(least, 1, 1, 0, 0, 0, 0, time.UTC), zone)
	}
	if most < lastYear {
		end, _ = schedule.Local(time.Date(most+1, 1, 1, 0, 0, 0, 0, time.UTC), zone)
	}
	return start, end, nil
}

// spec makes a schedule of an expression and of where it may begin and end.
func (e expression) spec(zone string, start, end time.Time) schedule.Spec {
	if e.start.After(start) {
		start = e.start
	}
	if !e.end.IsZero() && (end.IsZero() || e.end.Before(end)) {
		end = e.end
	}
	var s schedule.Spec
	switch {
	case e.cron != "":
		s.Cron, s.Timezone = e.cron, zone
	case e.every != 0:
		s.Every = schedule.Duration(e.every)
	default:
		at := e.at.UTC()
		s.At = &at
		return s // AWS does not look at the bounds of what fires once
	}
	if !start.IsZero() {
		start = start.UTC().Truncate(time.Millisecond)
		s.Start = &start
	}
	if !end.IsZero() {
		end = end.UTC().Truncate(time.Millisecond)
		s.End = &end
	}
	return s
}
