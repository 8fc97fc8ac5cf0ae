package schedule

import (
	"strings"
	"time"
)

// Part is one field of a cron expression as it stands in the text, in words.
type Part struct {
	Field      string // "minute"; "macro" for one such as @daily
	Text       string
	Begin, End int // where it stands in the expression, in characters; End is behind it
	Means      string
}

// Parts explains a cron expression field by field, in the order of the text. It is empty for other schedules.
func (s *Schedule) Parts() []Part {
	if s.kind != byCron {
		return nil
	}
	var parts []Part
	text := s.spec.Cron
	for begin := 0; begin < len(text); {
		if text[begin] == ' ' || text[begin] == '\t' {
			begin++
			continue
		}
		end := begin
		for end < len(text) && text[end] != ' ' && text[end] != '\t' {
			end++
		}
		parts = append(parts, Part{Text: text[begin:end], Begin: begin, End: end})
		begin = end
	}
	if len(parts) == 1 {
		parts[0].Field = "macro"
		parts[0].Means = "the same as " + macros[strings.ToLower(parts[0].Text)]
		return parts
	}
	first := fieldCount - field(len(parts))
	for i := range parts {
		f := first + field(i)
		parts[i].Field, parts[i].Means = fields[f].name, s.cron.means(f)
	}
	return parts
}

// means says what a field chooses.
func (c *cronSet) means(f field) string {
	switch f {
	case second:
		return units(values(c.seconds), 60, "second")
	case minute:
		return units(values(c.minutes), 60, "minute")
	case hour:
		return units(values(uint64(c.hours)), 24, "hour")
	case month:
		months := values(uint64(c.months))
		if len(months) == 12 {
			return "every month"
		}
		return "in " + series(months, func(m int) string { return time.Month(m).String() })
	}
	monthDays, weekdays := c.days.describeMonthDays(), c.days.describeWeekdays()
	text, other := monthDays, fields[dayOfWeek].name
	if f == dayOfWeek {
		text, other = weekdays, fields[dayOfMonth].name
		if text != "" {
			text = "on " + text
		}
	}
	switch {
	case text == "" && f == dayOfMonth:
		return "every day of the month"
	case text == "":
		return "every day of the week"
	case monthDays == "" || weekdays == "":
		return text
	case c.days.both:
		return text + "; a day must match " + other + " too, since one of the two begins with *"
	default:
		return text + "; a day that matches " + other + " alone is enough, too"
	}
}
