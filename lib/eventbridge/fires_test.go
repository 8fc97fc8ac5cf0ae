package eventbridge

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The words of AWS's documentation are asked, minute by minute, whether a schedule fires, and the job must do so at the same times.
func TestTranslatedExpressionsFireAtTheSameTimes(t *testing.T) {
	minutes := []string{"0", "0/20", "5,50", "*/30", "/15", "0/90", "50-10/5", "/75"}
	hours := []string{"9", "8-17/3", "*", "22", "22-2", "20-5/3", "3/30"}
	days := []string{"?", "*", "1", "L", "LW", "15W", "1W", "L-3", "*/7", "10-20/5", "1,15,31", "29", "28-3", "30-5/2", "1/40", "*/40"}
	weekdays := []string{"1", "7", "SUN", "2-6", "MON-FRI", "1,7", "L", "6L", "2#1", "SAT#3", "1#5", "3L", "2/2", "*/3", "TUE/2", "MON,4-6", "/2", "SAT-SUN", "MON-SUN", "FRI-TUE/2", "7-1", "WED-TUE", "3/9"}
	months := []string{"*", "2", "JAN-mar", "*/2", "6/3", "FEB,12", "NOV-FEB", "10-3/2"}
	years := []string{"*", "2026", "2025-2026", "2026,2027", "2027/1", "*/1"}
	var all []string
	never := 0
	add := func(day, weekday string) {
		n := len(all)
		all = append(all, strings.Join([]string{minutes[n%len(minutes)], hours[n%len(hours)], day, months[n%len(months)], weekday, years[n%len(years)]}, " "))
	}
	for range 3 {
		for _, day := range days {
			add(day, "?")
		}
		for _, weekday := range weekdays {
			add("?", weekday)
			add("*", weekday)
		}
	}
	from, to := time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, body := range all {
		e, err := parseExpression("cron("+body+")", time.UTC)
		if err != nil {
			t.Errorf("cron(%s): %v", body, err)
			continue
		}
		job, err := e.spec("UTC", time.Time{}, time.Time{}).Compile()
		if err != nil && len(slices.Collect(firesOf(body, from, to))) == 0 {
			never++ // such as 29 February of 2026 alone: Belfry refuses it
			continue
		}
		if err != nil {
			t.Errorf("cron(%s) became %+v: %v", body, e, err)
			continue
		}
		at, fires := from.Add(-time.Millisecond), 0
		for want := range firesOf(body, from, to) {
			got, ok := job.Next(at)
			if !ok || !got.Equal(want) {
				t.Errorf("cron(%s) became %s, which after %s fires at %s, want %s", body, e.cron, at, got, want)
				break
			}
			at, fires = got, fires+1
		}
		if fires == 0 {
			never++
		}
		if got, ok := job.Next(at); ok && got.Before(to) && !t.Failed() {
			t.Errorf("cron(%s) became %s, which fires at %s, too", body, e.cron, got)
		}
	}
	for body, want := range map[string]string{"0 8 ? * SAT-SUN *": "0 8 * * 0,6", "0 8 ? * MON-SUN *": "0 8 * * *", "0 22-2 * NOV-FEB ? *": "0 0-2,22-23 * 1-2,11-12 *", "0/90 * * * ? *": "0 * * * *"} {
		if e, err := parseExpression("cron("+body+")", time.UTC); err != nil || e.cron != want {
			t.Errorf("cron(%s) became %q, %v; want %q", body, e.cron, err, want)
		}
	}
	if never > len(all)/20 {
		t.Errorf("%d of %d expressions never fire", never, len(all))
	}
}

// firesOf goes through all days, and through all minutes of those that match.
func firesOf(body string, from, to time.Time) func(yield func(time.Time) bool) {
	f := strings.Fields(strings.ToUpper(body))
	return func(yield func(time.Time) bool) {
		for day := from; day.Before(to); day = day.AddDate(0, 0, 1) {
			if !holds(f[3], int(day.Month()), 1, 12, "", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC") ||
				!holds(f[5], day.Year(), 1970, 2199) || !holdsDay(f[2], day) || !holdsWeekday(f[4], day) {
				continue
			}
			for minute := range 24 * 60 {
				if holds(f[1], minute/60, 0, 23) && holds(f[0], minute%60, 0, 59) && !yield(day.Add(time.Duration(minute)*time.Minute)) {
					return
				}
			}
		}
	}
}

// holds tells whether a field of values, ranges and steps has n.
func holds(field string, n, least, most int, names ...string) bool {
	number := func(text string) int {
		if i := slices.Index(names, text); i >= 0 {
			return i
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(text)
		}
		return n
	}
	for _, part := range strings.Split(field, ",") {
		values, step, stepped := strings.Cut(part, "/")
		low, high, by := least, most, 1
		if stepped {
			by = number(step)
		}
		if first, last, ranged := strings.Cut(values, "-"); ranged {
			low, high = number(first), number(last)
		} else if values != "*" && values != "" {
			low = number(values)
			if !stepped {
				high = low
			}
		}
		if n >= low && n <= high && (n-low)%by == 0 {
			return true
		}
		if count := most - least + 1; low > high && (n >= low || n <= high) && (n-low+count)%count%by == 0 { // over the end
			return true
		}
	}
	return false
}

func lastOf(day time.Time) int {
	return time.Date(day.Year(), day.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

func holdsDay(field string, day time.Time) bool {
	last := lastOf(day)
	switch {
	case field == "?":
		return true
	case field == "L":
		return day.Day() == last
	case strings.HasPrefix(field, "L-"):
		back, _ := strconv.Atoi(field[2:])
		return day.Day() == last-back
	case strings.HasSuffix(field, "W"):
		want := last
		if field != "LW" {
			want, _ = strconv.Atoi(strings.TrimSuffix(field, "W"))
		}
		// the weekday of this month that is nearest; no two are as near
		best := 0
		for n := 1; n <= last; n++ {
			w := time.Date(day.Year(), day.Month(), n, 0, 0, 0, 0, time.UTC).Weekday()
			if w != time.Saturday && w != time.Sunday && (best == 0 || abs(n-want) < abs(best-want)) {
				best = n
			}
		}
		return day.Day() == best
	}
	return holds(field, day.Day(), 1, 31)
}

func abs(n int) int { return max(n, -n) }

func holdsWeekday(field string, day time.Time) bool {
	number := func(text string) int { // Sunday is 1
		if i := strings.Index("SUNMONTUEWEDTHUFRISAT", text); i >= 0 && len(text) == 3 {
			return i/3 + 1
		}
		n, _ := strconv.Atoi(text)
		return n
	}
	today := int(day.Weekday()) + 1
	ordinal, nth, isNth := strings.Cut(field, "#")
	switch {
	case field == "?":
		return true
	case field == "L":
		return today == 7
	case isNth:
		n, _ := strconv.Atoi(nth)
		return today == number(ordinal) && (day.Day()+6)/7 == n
	case strings.HasSuffix(field, "L"):
		return today == number(strings.TrimSuffix(field, "L")) && day.Day()+7 > lastOf(day)
	}
	return holds(field, today, 1, 7, "", "SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
}

func TestExpressionsThatHaveNoEqualAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"cron(0 12 1 * MON *)":         "AWS wants ? for one of them",
		"cron(0 12 * * ?)":             "got 5 fields",
		"cron(0 12 * * ? 2026,2028)":   "not one after the other",
		"cron(0 12 * * ? 2026/2)":      "not one after the other",
		"cron(0 12 * * ? 1969)":        "a year from 1970 to 2199",
		"cron(0 12 ? * 0 *)":           "1 to 7 or SUN to SAT",
		"cron(0 12 ? * 8 *)":           "1 to 7 or SUN to SAT",
		"cron(0 12 ? * 2,* *)":         "want * alone",
		"cron(0 ? * * ? *)":            "stands alone",
		"rate(0 minutes)":              "a rate from 1 minute",
		"rate(5 seconds)":              "a rate such as",
		"rate(999999999 days)":         "a rate from 1 minute",
		"at(2026-11-21)":               "a time such as",
		"at(2026-02-30T00:00:00)":      "a time such as",
		"0 12 * * *":                   "want cron(…)",
		"cron(0 12 ? * MON/0 *)":       "step",
		"cron(0 12 * * ? 2027-2026)":   "not one after the other",
		"cron(0 12 * * ? 2026-)":       "a year from",
		"cron(0 12 ? * MON- *)":        "1 to 7 or SUN to SAT",
		"cron(0 12 * * ? 2026-2027/5)": "",
	} {
		_, err := parseExpression(text, time.UTC)
		if says == "" && err == nil {
			continue // one year is left
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s gives %v, want %q", text, err, says)
		}
	}
}

func TestYearsBeginInTheScheduleZone(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	e, err := parseExpression("cron(0 0 1 1 ? 2027)", zone)
	if err != nil {
		t.Fatal(err)
	}
	job, err := e.spec("Asia/Tokyo", time.Time{}, time.Time{}).Compile()
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 12, 31, 15, 0, 0, 0, time.UTC)
	got, ok := job.Next(time.Unix(0, 0))
	if _, more := job.Next(got); !ok || more || !got.Equal(want) {
		t.Errorf("fires at %s, want %s alone", got, want)
	}
}
