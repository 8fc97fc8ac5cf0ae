package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Describe says in plain English when the schedule fires: "At 09:30, Monday to Friday, Europe/Berlin".
func (s *Schedule) Describe() string {
	var parts []string
	switch s.kind {
	case byCron:
		parts = append(parts, upperFirst(s.cron.describeClock()))
		if days := s.cron.days.describe(); days != "" {
			parts = append(parts, days)
		}
		if months := values(uint64(s.cron.months)); len(months) < 12 {
			parts = append(parts, "in "+series(months, func(m int) string { return time.Month(m).String() }))
		}
		zone := s.spec.Timezone
		if zone == "" {
			zone = "UTC"
		}
		parts = append(parts, zone)
	case byEvery:
		parts = append(parts, "Every "+inWords(s.spec.Every))
		if s.spec.Phase != 0 {
			parts = append(parts, "shifted by "+s.spec.Phase.String())
		}
	case byAt:
		parts = append(parts, "Once, at "+formatInstant(s.at))
	}
	if s.spec.Start != nil {
		parts = append(parts, "from "+formatInstant(s.start))
	}
	if s.spec.End != nil {
		parts = append(parts, "until "+formatInstant(s.end))
	}
	if s.spec.CountedEnd != 0 {
		parts = append(parts, "up to "+formatInstant(s.spec.CountedEnd-1))
	}
	if s.spec.Jitter != 0 {
		parts = append(parts, "spread over "+inWords(s.spec.Jitter))
	}
	return strings.Join(parts, ", ")
}

// inWords writes out a duration of one unit ("5 minutes"); others stay as they are ("1h1m1s").
func inWords(d Duration) string {
	text := d.String()
	number := strings.TrimRight(text, "dhms")
	unit, known := map[string]string{"d": "day", "h": "hour", "m": "minute", "s": "second"}[text[len(number):]]
	switch {
	case !known || strings.Trim(number, "0123456789") != "":
		return text
	case number == "1":
		return unit
	default:
		return number + " " + unit + "s"
	}
}

// fewTimes is how many times of day are listed before a description turns to hours and minutes apart.
const fewTimes = 6

// describeClock says at which times of a day.
func (c *cronSet) describeClock() string {
	secs, mins, hrs := values(c.seconds), values(c.minutes), values(uint64(c.hours))
	if len(secs)*len(mins)*len(hrs) <= fewTimes {
		var times []string
		for _, h := range hrs {
			for _, m := range mins {
				for _, s := range secs {
					times = append(times, clock(h, m, s))
				}
			}
		}
		return "at " + and(times)
	}
	onTheMinute := c.seconds == 1
	var parts []string
	if !onTheMinute {
		parts = append(parts, units(secs, 60, "second"))
	}
	if onTheMinute && len(mins) == 1 {
		text := everyNth(hrs, 24, "hour")
		if text == "" {
			text = "every hour " + within(hrs)
		}
		if mins[0] != 0 {
			text += " at minute " + strconv.Itoa(mins[0])
		}
		return text
	}
	if onTheMinute || len(mins) < 60 {
		parts = append(parts, units(mins, 60, "minute"))
	}
	if len(hrs) < 24 {
		if text := everyNth(hrs, 24, "hour"); text != "" {
			parts = append(parts, "of "+text)
		} else {
			parts = append(parts, within(hrs))
		}
	}
	return strings.Join(parts, " ")
}

func clock(h, m, s int) string {
	if s == 0 {
		return fmt.Sprintf("%02d:%02d", h, m)
	}
	return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
}

// units says which seconds or minutes: "every 5 minutes", "every minute from 0 to 29", "at minutes 5, 20 and 35".
func units(set []int, of int, unit string) string {
	if text := everyNth(set, of, unit); text != "" {
		return text
	}
	first, last := set[0], set[len(set)-1]
	step := stepOf(set)
	switch {
	case len(set) == 1:
		return fmt.Sprintf("at %s %d", unit, first)
	case len(set) > 2 && step == 1:
		return fmt.Sprintf("every %s from %d to %d", unit, first, last)
	case len(set) > fewTimes && step > 1:
		return fmt.Sprintf("every %s %s from %d to %d", ordinal(step), unit, first, last)
	default:
		return fmt.Sprintf("at %ss %s", unit, series(set, strconv.Itoa))
	}
}

// everyNth gives "every minute" or "every 5 minutes" for a set that goes on evenly over the end of its hour or day, and
// "" for any other.
func everyNth(set []int, of int, unit string) string {
	step := stepOf(set)
	switch {
	case step == 0 || set[0] != 0 || step*len(set) != of:
		return ""
	case step == 1:
		return "every " + unit
	default:
		return fmt.Sprintf("every %d %ss", step, unit)
	}
}

// within says in which hours: "from 09:00 to 17:59", "in hours 1, 5 and 7".
func within(hours []int) string {
	first, last := hours[0], hours[len(hours)-1]
	if len(hours) == 1 || stepOf(hours) == 1 {
		return fmt.Sprintf("from %02d:00 to %02d:59", first, last)
	}
	return "in hours " + series(hours, strconv.Itoa)
}

// describe says on which days; "" is every day.
func (d *cronDays) describe() string {
	monthDays, weekdays := d.describeMonthDays(), d.describeWeekdays()
	switch {
	case d.both && monthDays != "" && weekdays != "":
		return monthDays + ", only if " + weekdays
	case d.both:
		return monthDays + weekdays
	case monthDays == "" || weekdays == "":
		return ""
	default:
		return monthDays + " or " + weekdays
	}
}

func (d *cronDays) describeMonthDays() string {
	var parts []string
	switch days := values(uint64(d.monthDays)); {
	case len(days) == 31:
		return ""
	case len(days) == 1:
		parts = append(parts, fmt.Sprintf("day %d", days[0]))
	case len(days) > fewTimes && stepOf(days) > 1:
		parts = append(parts, fmt.Sprintf("every %s day from %d to %d", ordinal(stepOf(days)), days[0], days[len(days)-1]))
	case len(days) > 1:
		parts = append(parts, "days "+series(days, strconv.Itoa))
	}
	for _, n := range values(uint64(d.beforeLast)) {
		switch n {
		case 0:
			parts = append(parts, "the last day")
		case 1:
			parts = append(parts, "the day before the last")
		default:
			parts = append(parts, fmt.Sprintf("%d days before the last", n))
		}
	}
	for _, n := range values(uint64(d.nearWeekday)) {
		parts = append(parts, fmt.Sprintf("the working day nearest to day %d", n))
	}
	if d.lastWeekday {
		parts = append(parts, "the last working day")
	}
	return "on " + and(parts) + " of the month"
}

func (d *cronDays) describeWeekdays() string {
	if d.weekdays == 0x7f {
		return ""
	}
	var parts []string
	if d.weekdays != 0 {
		parts = append(parts, series(mondayFirst(d.weekdays), weekdayName))
	}
	for k, set := range d.nth {
		for _, w := range mondayFirst(set) {
			parts = append(parts, fmt.Sprintf("the %s %s of the month", ordinal(k+1), weekdayName(w)))
		}
	}
	for _, w := range mondayFirst(d.lastWeekdays) {
		parts = append(parts, fmt.Sprintf("the last %s of the month", weekdayName(w)))
	}
	return and(parts)
}

// mondayFirst lists a set of weekdays as 1, Monday, to 7, Sunday: "Saturday and Sunday" reads as one weekend.
func mondayFirst(set uint8) []int {
	return values(uint64(set&^1 | set&1<<7))
}

func weekdayName(w int) string { return time.Weekday(w % 7).String() }

// values lists the bits of a set in order.
func values(set uint64) []int {
	var of []int
	for ; set != 0; set &= set - 1 {
		of = append(of, bits.TrailingZeros64(set))
	}
	return of
}

// stepOf gives the distance between neighbours when it is the same all along, else 0.
func stepOf(set []int) int {
	if len(set) < 2 {
		return 0
	}
	step := set[1] - set[0]
	for i := 2; i < len(set); i++ {
		if set[i]-set[i-1] != step {
			return 0
		}
	}
	return step
}

// series lists values, with three or more neighbours drawn together: "1 to 5, 7 and 9".
func series(set []int, name func(int) string) string {
	var parts []string
	for i := 0; i < len(set); {
		j := i
		for j+1 < len(set) && set[j+1] == set[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, name(set[i])+" to "+name(set[j]))
			i = j + 1
			continue
		}
		parts = append(parts, name(set[i]))
		i++
	}
	return and(parts)
}

func and(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n != 11:
		return strconv.Itoa(n) + "st"
	case n%10 == 2 && n != 12:
		return strconv.Itoa(n) + "nd"
	case n%10 == 3 && n != 13:
		return strconv.Itoa(n) + "rd"
	default:
		return strconv.Itoa(n) + "th"
	}
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
