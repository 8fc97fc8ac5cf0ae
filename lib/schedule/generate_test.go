package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// expression is a generated cron expression together with what it means, told apart from the parser under test.
type expression struct {
	tokens [6]string // seconds first; "" without
	match  [6]func(wall time.Time) bool
}

func (e expression) text() string { return strings.TrimSpace(strings.Join(e.tokens[:], " ")) }

func (e expression) everyHour() bool { return e.tokens[hour][0] == '*' }

// matches tells whether the wall time w, in seconds as if it were UTC, is one of the expression's.
func (e expression) matches(w int64) bool {
	wall := time.Unix(w, 0).UTC()
	for _, f := range []field{minute, hour, month} {
		if !e.match[f](wall) {
			return false
		}
	}
	if e.tokens[second] == "" && wall.Second() != 0 || e.tokens[second] != "" && !e.match[second](wall) {
		return false
	}
	return e.matchesDay(wall)
}

func (e expression) matchesDay(wall time.Time) bool {
	byMonth, byWeek := e.match[dayOfMonth](wall), e.match[dayOfWeek](wall)
	if e.tokens[dayOfMonth][0] == '*' || e.tokens[dayOfWeek][0] == '*' {
		return byMonth && byWeek
	}
	return byMonth || byWeek
}

// everMatchesADay looks through 28 years, in which a year of each shape occurs.
func (e expression) everMatchesADay() bool {
	for t := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC); t.Year() < 2029; t = t.AddDate(0, 0, 1) {
		if e.match[month](t) && e.matchesDay(t) {
			return true
		}
	}
	return false
}

var valueOf = [fieldCount]func(time.Time) int{
	second: time.Time.Second, minute: time.Time.Minute, hour: time.Time.Hour, dayOfMonth: time.Time.Day,
	month:     func(t time.Time) int { return int(t.Month()) },
	dayOfWeek: func(t time.Time) int { return int(t.Weekday()) },
}

// generate makes an expression whose fields often name the wall's values on either side of the instant around.
func generate(r *rand.Rand, around int64, loc *time.Location, seconds bool) expression {
	near := func() time.Time {
		_, before := time.Unix(around-1, 0).In(loc).Zone()
		_, after := time.Unix(around, 0).In(loc).Zone()
		lo, hi := int64(min(before, after))-3600, int64(max(before, after))+3600
		return time.Unix(around+lo+r.Int64N(hi-lo), 0).UTC()
	}
	var e expression
	star := func(f field) { e.tokens[f], e.match[f] = "*", func(time.Time) bool { return true } }
	plain := func(f field) {
		spec := fields[f]
		pick := func() int {
			if r.IntN(4) == 0 {
				return spec.first + r.IntN(spec.last-spec.first+1)
			}
			return valueOf[f](near())
		}
		chosen := map[int]bool{}
		switch a, b := pick(), pick(); r.IntN(6) {
		case 0, 1:
			e.tokens[f], chosen[a] = fmt.Sprint(a), true
		case 2:
			e.tokens[f], chosen[a], chosen[b] = fmt.Sprintf("%d,%d", a, b), true, true
		case 3:
			a, b = min(a, b), max(a, b)
			step := 1 + r.IntN(3)
			e.tokens[f] = fmt.Sprintf("%d-%d/%d", a, b, step)
			for v := a; v <= b; v += step {
				chosen[v] = true
			}
		case 4:
			step := 1 + r.IntN(spec.last-spec.first+1)
			e.tokens[f] = fmt.Sprintf("*/%d", step)
			for v := spec.first; v <= spec.last; v += step {
				chosen[v] = true
			}
		case 5:
			step := 1 + r.IntN(spec.last-spec.first+1)
			e.tokens[f] = fmt.Sprintf("%d/%d", a, step)
			for v := a; v <= spec.last; v += step {
				chosen[v] = true
			}
		}
		e.match[f] = func(t time.Time) bool { return chosen[valueOf[f](t)] }
	}
	for f := minute; f < fieldCount; f++ {
		if plain(f); f != minute && f != hour && r.IntN(2) == 0 || r.IntN(5) == 0 {
			star(f)
		}
	}
	if seconds {
		plain(second)
	}
	switch r.IntN(8) {
	case 0:
		e.specialMonthDay(near(), r)
	case 1:
		e.specialWeekday(near())
	}
	return e
}

func lastOf(t time.Time) int { return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }

func workday(t time.Time) bool { return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday }

func (e *expression) specialMonthDay(t time.Time, r *rand.Rand) {
	switch r.IntN(3) {
	case 0:
		n := lastOf(t) - t.Day()
		e.tokens[dayOfMonth] = strings.TrimSuffix(fmt.Sprintf("L-%d", n), "-0")
		e.match[dayOfMonth] = func(w time.Time) bool { return w.Day() == lastOf(w)-n }
	case 1:
		e.tokens[dayOfMonth] = "LW"
		e.match[dayOfMonth] = func(w time.Time) bool {
			for d := w.AddDate(0, 0, 1); d.Month() == w.Month(); d = d.AddDate(0, 0, 1) {
				if workday(d) {
					return false
				}
			}
			return workday(w)
		}
	case 2:
		n := t.Day()
		e.tokens[dayOfMonth] = fmt.Sprintf("%dW", n)
		e.match[dayOfMonth] = func(w time.Time) bool {
			if n > lastOf(w) {
				return false
			}
			for _, shift := range []int{0, -1, 1, -2, 2} {
				d := time.Date(w.Year(), w.Month(), n+shift, 0, 0, 0, 0, time.UTC)
				if d.Month() == w.Month() && workday(d) {
					return d.Day() == w.Day()
				}
			}
			return false
		}
	}
}

func (e *expression) specialWeekday(t time.Time) {
	weekday, k := t.Weekday(), (t.Day()-1)/7+1
	if t.Day()+7 > lastOf(t) {
		e.tokens[dayOfWeek] = fmt.Sprintf("%dL", weekday)
		e.match[dayOfWeek] = func(w time.Time) bool { return w.Weekday() == weekday && w.Day()+7 > lastOf(w) }
		return
	}
	e.tokens[dayOfWeek] = fmt.Sprintf("%d#%d", weekday, k)
	e.match[dayOfWeek] = func(w time.Time) bool { return w.Weekday() == weekday && (w.Day()-1)/7+1 == k }
}
