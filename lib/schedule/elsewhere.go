package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Elsewhere is what another scheduler makes of a cron expression.
type Elsewhere struct {
	System string
	// Expressions are how the same is written there; several where one cannot say it all, none where it cannot be said.
	Expressions []string
	Notes       []string // what it does otherwise, a sentence each
}

// Elsewhere tells how the fires of a cron expression are written in other schedulers, and what these do otherwise. What a change of the
// clock does there is told where one of the next two years after an instant meets a fire. It is empty for other schedules than cron.
func (s *Schedule) Elsewhere(after time.Time) []Elsewhere {
	if s.kind != byCron {
		return nil
	}
	skipped, repeated := s.meetsChanges(after)
	all := []Elsewhere{s.inKubernetes(), s.inQuartz(), s.inSystemd(), s.inEventBridge()}
	for i, notes := range []struct{ skipped, repeated string }{
		{"A time that the clock skips does not fire that day.", "A time that the clock shows twice fires twice."},
		{"A time that the clock skips or shows twice may be left out, or fire twice: its documentation leaves that open.", "*"},
		{"What happens at a time that the clock skips or shows twice is not documented.", "*"},
		{"A time that the clock skips does not fire that day.", ""},
	} {
		if skipped || repeated && notes.repeated == "*" {
			all[i].Notes = append(all[i].Notes, notes.skipped)
		}
		if repeated && notes.repeated != "" && notes.repeated != "*" {
			all[i].Notes = append(all[i].Notes, notes.repeated)
		}
	}
	return all
}

// meetsChanges tells whether a change of the clock in the two years after an instant skips a time of the schedule, or shows one twice.
func (s *Schedule) meetsChanges(after time.Time) (skipped, repeated bool) {
	if s.cron.everyHour {
		return false, false // it follows the instants, there as here
	}
	const near, most = 3 * 3600, 400 // seconds on either side of a change, and fires that are looked at there
	begin := max(after.Unix(), 0)
	for u := s.zone.at(begin).end; u < begin+2*366*daySeconds && u < endOfTimeSec; u = s.zone.at(u).end {
		at := time.Unix(max(u-near, 0), 0)
		for range most {
			next, ok := s.Next(at)
			if !ok || next.Unix() > u+near {
				break
			}
			switch s.Fire(next).Mark {
			case Shifted, Merged:
				skipped = true
			case FirstOfTwo:
				repeated = true
			}
			at = next
		}
	}
	return skipped, repeated
}

// dayRule is which days an expression chooses, without what has no effect.
type dayRule struct {
	byMonth, byWeek bool // one of these alone, or both: all is whether a day must match both
	all             bool
}

func (d *cronDays) rule() dayRule {
	byMonth, byWeek := d.describeMonthDays() != "", d.describeWeekdays() != ""
	if !d.both && !(byMonth && byWeek) {
		return dayRule{} // one of the fields has every day, and either is enough
	}
	return dayRule{byMonth, byWeek, d.both && byMonth && byWeek}
}

// notation is how a scheduler writes a set of values.
type notation struct {
	to      string // between the ends of a range
	fromTop bool   // "*/n" where a step begins at the field's first value
	digits  string // as fmt has them
}

// write gives a set of values of a field as text.
func (n notation) write(set []int, first, last int, name func(int) string) string {
	if len(set) == last-first+1 {
		return "*"
	}
	if name == nil {
		name = func(v int) string { return fmt.Sprintf(n.digits, v) }
	}
	if step := stepOf(set); step > 1 && len(set) > 2 && set[len(set)-1]+step > last {
		if n.fromTop {
			if set[0] == first {
				return "*/" + strconv.Itoa(step)
			}
			return fmt.Sprintf("%s-%s/%d", name(set[0]), name(last), step)
		}
		return fmt.Sprintf("%s/%d", name(set[0]), step)
	}
	var parts []string
	for _, run := range runs(set) {
		if run[0] == run[1] {
			parts = append(parts, name(run[0]))
		} else {
			parts = append(parts, name(run[0])+n.to+name(run[1]))
		}
	}
	return strings.Join(parts, ",")
}

// runs are the stretches of neighbours in a set, by their ends; two neighbours are two stretches.
func runs(set []int) (of [][2]int) {
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		if j == i+1 {
			j = i
		}
		of = append(of, [2]int{set[i], set[j]})
		i = j + 1
	}
	return of
}

func (c *cronSet) clockIn(n notation) (seconds, minutes, hours string) {
	return n.write(values(c.seconds), 0, 59, nil), n.write(values(c.minutes), 0, 59, nil), n.write(values(uint64(c.hours)), 0, 23, nil)
}

func (c *cronSet) monthsIn(n notation) string { return n.write(values(uint64(c.months)), 1, 12, nil) }

const noSeconds = "It has no seconds: it fires once a minute at most."

func (s *Schedule) inKubernetes() Elsewhere {
	e := Elsewhere{System: "Kubernetes CronJob"}
	c, n := &s.cron, notation{to: "-", fromTop: true, digits: "%d"}
	rule := c.days.rule()
	if c.seconds != 1 {
		e.Notes = append(e.Notes, noSeconds)
	}
	if c.days.special() {
		e.Notes = append(e.Notes, "It does not know L, W and #.")
	}
	if rule.all {
		e.Notes = append(e.Notes, "A day that matches one of the two day fields fires: it cannot ask for both.")
	}
	if len(e.Notes) == 0 {
		_, minutes, hours := c.clockIn(n)
		days, weekdays := "*", "*"
		if rule.byMonth {
			days = kubernetesDays(values(uint64(c.days.monthDays)), 1, 31)
		}
		if rule.byWeek {
			weekdays = kubernetesDays(values(uint64(c.days.weekdays)), 0, 6)
		}
		e.Expressions = []string{strings.Join([]string{minutes, hours, days, c.monthsIn(n), weekdays}, " ")}
	}
	return e
}

// kubernetesDays writes a field of days without a star, which would say that a day must match both.
func kubernetesDays(set []int, first, last int) string {
	text := notation{to: "-", fromTop: true, digits: "%d"}.write(set, first, last, nil)
	return strings.Replace(text, "*", fmt.Sprintf("%d-%d", first, last), 1)
}

var shortWeekdays = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

func shortWeekday(w int) string { return shortWeekdays[w%7] }

// dayLists are the values of the two day fields for schedulers that take "?" in one of them, and each special value alone. without are the
// special values that one does not know.
func (c *cronSet) dayLists(n notation, without string) (byMonth, byWeek, unknown []string) {
	rule, d := c.days.rule(), &c.days
	add := func(to *[]string, kind, text string) {
		if strings.Contains(without, kind) {
			unknown = append(unknown, text)
		} else {
			*to = append(*to, text)
		}
	}
	if rule.byMonth {
		if days := values(uint64(d.monthDays)); len(days) > 0 {
			byMonth = append(byMonth, n.write(days, 1, 31, nil))
		}
		for _, k := range values(uint64(d.beforeLast)) {
			if k == 0 {
				byMonth = append(byMonth, "L")
			} else {
				add(&byMonth, "L-", fmt.Sprintf("L-%d", k))
			}
		}
		for _, k := range values(uint64(d.nearWeekday)) {
			byMonth = append(byMonth, fmt.Sprintf("%dW", k))
		}
		if d.lastWeekday {
			add(&byMonth, "LW", "LW")
		}
	}
	if rule.byWeek {
		if d.weekdays != 0 {
			byWeek = append(byWeek, notation{to: n.to, digits: n.digits}.write(mondayFirst(d.weekdays), 1, 7, shortWeekday))
		}
		for k, set := range d.nth {
			for _, w := range mondayFirst(set) {
				byWeek = append(byWeek, fmt.Sprintf("%d#%d", w%7+1, k+1)) // Sunday is 1
			}
		}
		for _, w := range mondayFirst(d.lastWeekdays) {
			byWeek = append(byWeek, fmt.Sprintf("%dL", w%7+1))
		}
	}
	return byMonth, byWeek, unknown
}

const eitherDay = "One of the two day fields must be ?: "

// asked gives the expressions of a scheduler that takes "?" in one of the day fields, and notes on the days.
func (s *Schedule) asked(without string, write func(days, months, weekdays string) string) (expressions, notes []string) {
	c, n := &s.cron, notation{to: "-", digits: "%d"}
	months := c.monthsIn(n)
	if c.days.rule().all {
		return nil, []string{eitherDay + "it cannot ask for a day that matches both."}
	}
	byMonth, byWeek, unknown := c.dayLists(n, without)
	if len(unknown) > 0 {
		return nil, []string{"It does not know " + and(unknown) + "."}
	}
	for _, days := range byMonth {
		expressions = append(expressions, write(days, months, "?"))
	}
	for _, weekdays := range byWeek {
		expressions = append(expressions, write("?", months, weekdays))
	}
	switch {
	case len(expressions) == 0:
		expressions = []string{write("*", months, "?")}
	case len(expressions) > 1:
		notes = append(notes, "It takes one schedule for each of these: a day that matches several fires several times.")
	}
	return expressions, notes
}

func (s *Schedule) inQuartz() Elsewhere {
	e := Elsewhere{System: "Quartz"}
	seconds, minutes, hours := s.cron.clockIn(notation{to: "-", digits: "%d"})
	e.Expressions, e.Notes = s.asked("", func(days, months, weekdays string) string {
		return strings.Join([]string{seconds, minutes, hours, days, months, weekdays}, " ")
	})
	if s.cron.days.rule().byWeek {
		e.Notes = append(e.Notes, "It counts weekdays from 1, Sunday, so that 1-5 is Sunday to Thursday.")
	}
	return e
}

func (s *Schedule) inEventBridge() Elsewhere {
	e := Elsewhere{System: "EventBridge Scheduler"}
	if s.cron.seconds != 1 {
		e.Notes = []string{noSeconds}
		return e
	}
	_, minutes, hours := s.cron.clockIn(notation{to: "-", digits: "%d"})
	e.Expressions, e.Notes = s.asked("L- LW", func(days, months, weekdays string) string {
		return "cron(" + strings.Join([]string{minutes, hours, days, months, weekdays, "*"}, " ") + ")"
	})
	if s.cron.days.rule().byWeek {
		e.Notes = append(e.Notes, "It counts weekdays from 1, Sunday, so that 1-5 is Sunday to Thursday.")
	}
	return e
}

func (s *Schedule) inSystemd() Elsewhere {
	e := Elsewhere{System: "systemd"}
	c, d, n := &s.cron, &s.cron.days, notation{to: "..", digits: "%02d"}
	rule := d.rule()
	seconds, minutes, hours := c.clockIn(n)
	months := c.monthsIn(n)
	zone := ""
	if s.spec.Timezone != "" {
		zone = " " + s.spec.Timezone
	}
	on := func(weekdays, days string) {
		if weekdays != "" {
			weekdays += " "
		}
		e.Expressions = append(e.Expressions, fmt.Sprintf("OnCalendar=%s*-%s%s %s:%s:%s%s", weekdays, months, days, hours, minutes, seconds, zone))
	}
	name := func(w int) string { return weekdayName(w)[:3] }
	week := func(set []int) string {
		var names []string
		for _, run := range runs(set) {
			if run[0] == run[1] {
				names = append(names, name(run[0]))
			} else {
				names = append(names, name(run[0])+".."+name(run[1]))
			}
		}
		return strings.Join(names, ",") // without a step, which weekdays do not have there
	}
	switch {
	case rule.byMonth && (d.nearWeekday != 0 || d.lastWeekday):
		e.Notes = append(e.Notes, "It does not know W, the weekday nearest to a day.")
	case rule.all && (d.nth != [5]uint8{} || d.lastWeekdays != 0):
		e.Notes = append(e.Notes, "It cannot ask for a day of the month that is also a certain weekday of the month.")
	case !rule.byMonth && !rule.byWeek:
		on("", "-*")
	default:
		if rule.byMonth {
			with := ""
			if rule.all {
				with = week(mondayFirst(d.weekdays))
			}
			if days := values(uint64(d.monthDays)); len(days) > 0 {
				on(with, "-"+n.write(days, 1, 31, nil))
			}
			for _, k := range values(uint64(d.beforeLast)) {
				on(with, fmt.Sprintf("~%02d", k+1))
			}
		}
		if rule.byWeek && !rule.all {
			if d.weekdays != 0 {
				on(week(mondayFirst(d.weekdays)), "-*")
			}
			for k, set := range d.nth {
				if set != 0 {
					on(week(mondayFirst(set)), fmt.Sprintf("-%02d..%02d", 7*k+1, min(7*k+7, 31)))
				}
			}
			if d.lastWeekdays != 0 {
				on(week(mondayFirst(d.lastWeekdays)), "~07/1")
			}
		}
	}
	if len(e.Expressions) > 1 {
		e.Notes = append(e.Notes, "One timer takes all these lines, and fires once where they meet.")
	}
	return e
}
