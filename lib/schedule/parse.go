package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/adhocore/gronx"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

const (
	longestCron  = 640 // bytes: every value of every field written out in full fits
	mostRefusals = 3   // of one field: more say no more to a reader, and would let a list of rubbish cost time
)

// A field is one of a cron expression's positions; its order is that of six-field expressions.
type field int

const (
	second field = iota
	minute
	hour
	dayOfMonth
	month
	dayOfWeek
	fieldCount
)

// fieldSpec says what a field may hold. last is the highest value that "n/step" runs to; a day-of-week may be written 7
// too, which is Sunday like 0.
type fieldSpec struct {
	name        string
	first, last int
	names       string // three letters each, the first of them standing for the value first
}

var fields = [fieldCount]fieldSpec{
	second:     {name: "second", last: 59},
	minute:     {name: "minute", last: 59},
	hour:       {name: "hour", last: 23},
	dayOfMonth: {name: "day-of-month", first: 1, last: 31},
	month:      {name: "month", first: 1, last: 12, names: "janfebmaraprmayjunjulaugsepoctnovdec"},
	dayOfWeek:  {name: "day-of-week", last: 6, names: "sunmontuewedthufrisat"},
}

var macros = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

const (
	wantFields = `five fields "minute hour day-of-month month day-of-week", such as "30 9 * * 1-5", six with leading seconds, or a macro such as "@daily"`
	wantMacro  = "one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
)

// parseCron reads an expression strictly. Its error joins an *invalid.Error of the field "cron" for each token that is
// wrong, which names the cron field and what would be right.
func parseCron(expr string) (cronSet, error) {
	tokens, err := splitCron(expr)
	if err != nil {
		return cronSet{}, err
	}
	var read [fieldCount]parsedField
	var errs []error
	for f := range fieldCount {
		errs = append(errs, read[f].parse(f, tokens[f])...)
	}
	if len(errs) > 0 {
		if five, ok := yearLast(strings.Fields(expr)); ok {
			return cronSet{}, invalid.Field("cron", expr, fmt.Sprintf(
				`six fields to begin with seconds; with a year at the end write %q, and bound years by the fields "start" and "end"`, five))
		}
		return cronSet{}, errors.Join(errs...)
	}
	set := cronSet{
		seconds: read[second].values, minutes: read[minute].values,
		hours: uint32(read[hour].values), months: uint16(read[month].values),
		everyHour: strings.HasPrefix(tokens[hour], "*"),
		days:      read[dayOfMonth].days,
	}
	set.days.monthDays = uint32(read[dayOfMonth].values)
	set.days.weekdays = uint8(read[dayOfWeek].values)
	set.days.lastWeekdays, set.days.nth = read[dayOfWeek].days.lastWeekdays, read[dayOfWeek].days.nth
	set.days.both = strings.HasPrefix(tokens[dayOfMonth], "*") || strings.HasPrefix(tokens[dayOfWeek], "*")
	if !set.everHasADay() {
		return cronSet{}, neverFires{invalid.Field("cron", tokens[dayOfMonth],
			"day-of-month: a day that the chosen months and weekdays have; this would never fire")}
	}
	return set, gate(expr, tokens)
}

// splitCron gives the six fields of an expression; of one with five, the seconds are "0".
func splitCron(expr string) (tokens [fieldCount]string, err error) {
	refuse := func(got, want string) ([fieldCount]string, error) { return tokens, invalid.Field("cron", got, want) }
	if len(expr) > longestCron {
		return refuse(expr, fmt.Sprintf("at most %d characters", longestCron))
	}
	for _, r := range expr {
		if r != '\t' && (r < ' ' || r > '~') {
			return refuse(expr, "printable ASCII characters, and blanks or tabs between the fields")
		}
	}
	if strings.HasPrefix(expr, "CRON_TZ=") || strings.HasPrefix(expr, "TZ=") {
		return refuse(expr, `the expression alone: a time zone stands in the field "timezone"`)
	}
	if name := strings.ToLower(strings.Trim(expr, " \t")); strings.HasPrefix(name, "@") {
		switch expanded, known := macros[name]; {
		case known:
			expr = expanded
		case name == "@every_minute":
			return refuse(expr, `"* * * * *"`)
		case name == "@every_second":
			return refuse(expr, `"* * * * * *"`)
		case strings.HasPrefix(name, "@every"):
			return refuse(expr, `the field "every" instead of "cron", such as {"every": "90s"}`)
		case name == "@reboot":
			return refuse(expr, wantMacro+": a schedule knows time alone, so start the job when the machine starts")
		default:
			return refuse(expr, wantMacro)
		}
	}
	switch parts := strings.Fields(expr); len(parts) {
	case 5:
		tokens[second] = "0"
		copy(tokens[minute:], parts)
	case 6:
		copy(tokens[:], parts)
	default:
		return refuse(expr, fmt.Sprintf("%s; these are %d", wantFields, len(parts)))
	}
	return tokens, nil
}

// gate refuses a five-field expression that gronx does, so that what is created here is never news to programs of that
// dialect. LW and L-n, which it lacks, pass. It comes last: after our own parser little is left for it to refuse.
func gate(expr string, tokens [fieldCount]string) error {
	days := strings.ToUpper(tokens[dayOfMonth])
	if strings.Contains(days, "LW") || strings.Contains(days, "L-") {
		return nil
	}
	if !slices.ContainsFunc(tokens[minute:], func(token string) bool { return !plain(token) }) {
		return nil
	}
	if len(strings.Fields(expr)) == 6 || gronx.IsValid(strings.Join(tokens[minute:], " ")) {
		return nil
	}
	return invalid.Field("cron", expr, "an expression that the dialect of adhocore/gronx knows too")
}

// plain tells that a token that our parser took is a star, a star with a step, or one number: what each dialect takes. So the gate, which
// costs several times what the rest of a compilation does, is asked only about what it might differ on.
func plain(token string) bool {
	digits := strings.TrimPrefix(token, "*/")
	return token == "*" || digits != "" && strings.Trim(digits, "0123456789") == ""
}

// everHasADay tells whether any day matches at all. A year has one of fourteen shapes (leap or not, by the weekday of its
// first day), and each of them occurs.
func (c *cronSet) everHasADay() bool {
	for shape := range 14 {
		year := 2000 + shape/7 // 2000 is a leap year and 2001 is none; only the lengths of their months are used
		weekday := shape % 7
		for m := 1; m <= 12; m++ {
			length := daysIn(year, m)
			if c.months>>m&1 != 0 && c.days.in(weekday, length) != 0 {
				return true
			}
			weekday = (weekday + length) % 7
		}
	}
	return false
}

// parsedField collects what a field's list chooses: plain values as bits, and the special days.
type parsedField struct {
	values uint64
	days   cronDays
}

func (p *parsedField) parse(f field, token string) []error {
	var errs []error
	for item := range strings.SplitSeq(token, ",") {
		if len(errs) == mostRefusals {
			break
		}
		if want := p.item(f, item); want != "" {
			got := item
			if item == "" {
				got = token
			}
			if instead := meant(f, item); instead != "" {
				want = instead
			}
			errs = append(errs, invalid.Field("cron", got, fields[f].name+": "+want))
		}
	}
	return errs
}

// item adds one item of a list, or says what would be right in its place.
func (p *parsedField) item(f field, item string) (want string) {
	spec := &fields[f]
	switch item {
	case "":
		return "a value on each side of every comma"
	case "?":
		return `"*" for any value`
	}
	if f == dayOfMonth || f == dayOfWeek {
		if special, want := p.special(f, strings.ToUpper(item)); special {
			return want
		}
	}
	values, stepText, stepped := strings.Cut(item, "/")
	first, last := spec.first, spec.last
	over := false
	if values != "*" {
		from, to, ranged := strings.Cut(values, "-")
		var ok bool
		if first, ok = spec.value(f, from); !ok {
			return spec.want(f)
		}
		switch {
		case ranged:
			if last, ok = spec.value(f, to); !ok {
				return spec.want(f) + " at both ends of the range"
			}
			over = last < first
		case stepped:
			if f == dayOfWeek {
				first %= 7
			}
		default:
			last = first
		}
	}
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText); !ok || step < 1 || step > spec.last-spec.first+1 {
			return spec.wantStep(f, first, stepText)
		}
	}
	if over {
		return "a range that runs upwards: " + spec.upwards(first, last, step)
	}
	for v := first; v <= last; v += step {
		p.values |= 1 << v
	}
	if f == dayOfWeek && p.values>>7&1 != 0 {
		p.values = p.values&0x7f | 1
	}
	return ""
}

// special reads the items that stand for days by their place in the month: L, L-n, LW and nW, or nL and n#k.
func (p *parsedField) special(f field, item string) (special bool, want string) {
	if f == dayOfMonth {
		switch {
		case item == "L":
			p.days.beforeLast |= 1
		case item == "LW":
			p.days.lastWeekday = true
		case strings.HasPrefix(item, "L-"):
			n, ok := number(item[2:])
			if !ok || n < 1 || n > 30 {
				return true, `"L-1" to "L-30", the days before the last one`
			}
			p.days.beforeLast |= 1 << n
		case strings.HasSuffix(item, "W"):
			n, ok := number(item[:len(item)-1])
			if !ok || n < 1 || n > 31 {
				return true, `"1W" to "31W", the weekday nearest to that day, or "LW"`
			}
			p.days.nearWeekday |= 1 << n
		default:
			return false, ""
		}
		return true, ""
	}
	if weekday, k, found := strings.Cut(item, "#"); found {
		v, ok := fields[f].value(f, weekday)
		n, okNth := number(k)
		if !ok || !okNth || n < 1 || n > 5 {
			return true, `a weekday and which one of the month, "5#1" to "5#5"`
		}
		p.days.nth[n-1] |= 1 << (v % 7)
		return true, ""
	}
	if weekday, found := strings.CutSuffix(item, "L"); found {
		v, ok := fields[f].value(f, weekday)
		if !ok {
			return true, `a weekday before the L, such as "5L" for the month's last Friday`
		}
		p.days.lastWeekdays |= 1 << (v % 7)
		return true, ""
	}
	return false, ""
}

// value reads a number or a name of the field.
func (s *fieldSpec) value(f field, text string) (int, bool) {
	if n, ok := number(text); ok {
		return n, n >= s.first && (n <= s.last || f == dayOfWeek && n == 7)
	}
	if len(text) == 3 {
		if at := strings.Index(s.names, strings.ToLower(text)); at >= 0 && at%3 == 0 {
			return s.first + at/3, true
		}
	}
	return 0, false
}

// want says which values the field takes.
func (s *fieldSpec) want(f field) string {
	switch f {
	case dayOfMonth:
		return "1 to 31, L, L-n, LW or nW"
	case month:
		return "1 to 12 or jan to dec"
	case dayOfWeek:
		return "0 to 7 or sun to sat (0 and 7 are Sunday), nL or n#k"
	default:
		return fmt.Sprintf("%d to %d", s.first, s.last)
	}
}

// upwards shows how to write a range that was meant to run over the field's end, with its step.
func (s *fieldSpec) upwards(first, last, step int) string {
	run := func(from, to int) string {
		switch {
		case from+step > to:
			return strconv.Itoa(from)
		case step > 1:
			return fmt.Sprintf("%d-%d/%d", from, to, step)
		}
		return fmt.Sprintf("%d-%d", from, to)
	}
	if first > s.last { // a Sunday written 7
		return fmt.Sprintf("%q", run(s.first, last))
	}
	count := s.last - s.first + 1
	if first == last+1 && step == 1 {
		return fmt.Sprintf("%q", run(s.first, s.last))
	}
	begin := first + (s.last-first)/step*step + step - count // where it goes on in the next round
	if begin > last {
		return fmt.Sprintf("%q", run(first, s.last))
	}
	return fmt.Sprintf("%q", run(first, s.last)+","+run(begin, last))
}

// number reads one or two digits: no sign, no blank, nothing that another parser could read otherwise.
func number(text string) (int, bool) {
	if len(text) == 0 || len(text) > 2 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
