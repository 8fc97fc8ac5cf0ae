package schedule

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
)

// change is an instant, in Unix seconds, from which on a zone's offset from UTC is the given one.
type change struct {
	at     int64
	offset int32
}

var errTZif = errors.New("not a time zone file of version 2 or later")

// parseTZif reads a compiled zone (RFC 9636): the changes in order, the first of them at the beginning of time, and the
// yearly rule that goes on after the last one, or nil when the zone's last offset stands for good.
func parseTZif(data []byte) ([]change, *yearlyRule, error) {
	// The first block holds 32-bit times for readers of the 1980s; the second repeats them in 64 bits.
	first, ok := tzifBlock(data, 4)
	if !ok {
		return nil, nil, errTZif
	}
	data = data[first.size:]
	b, ok := tzifBlock(data, 8)
	if !ok || b.types == 0 {
		return nil, nil, errTZif
	}
	const header = 44
	times := data[header:]
	kinds := times[b.times*8:]
	types := kinds[b.times:]
	offsetOf := func(kind int) int32 { return int32(binary.BigEndian.Uint32(types[kind*6:])) }

	changes := []change{{math.MinInt64, offsetOf(0)}}
	for i := range b.times {
		if int(kinds[i]) >= b.types {
			return nil, nil, errTZif
		}
		changes = append(changes, change{int64(binary.BigEndian.Uint64(times[i*8:])), offsetOf(int(kinds[i]))})
	}
	footer, ok := strings.CutPrefix(string(data[b.size:]), "\n")
	if !ok {
		return nil, nil, errTZif
	}
	rule, err := parseRule(strings.TrimSuffix(footer, "\n"))
	return changes, rule, err
}

type tzifCounts struct{ times, types, size int }

func tzifBlock(data []byte, timeSize int) (tzifCounts, bool) {
	if len(data) < 44 || string(data[:4]) != "TZif" || data[4] < '2' {
		return tzifCounts{}, false
	}
	count := func(i int) int { return int(binary.BigEndian.Uint32(data[20+4*i:])) }
	utc, std, leaps, times, types, chars := count(0), count(1), count(2), count(3), count(4), count(5)
	size := 44 + times*(timeSize+1) + types*6 + chars + leaps*(timeSize+4) + std + utc
	return tzifCounts{times, types, size}, size <= len(data)
}

// yearlyRule is a zone's daylight saving law as it stands: the same two changes every year, for ever.
type yearlyRule struct {
	standard, summer int32 // offsets in seconds
	begin, end       ruleDate
}

// ruleDate is "the week-th weekday of a month (5 is the last), at so many seconds after that day's midnight".
type ruleDate struct {
	month, week, weekday int
	seconds              int64
}

// changes gives the two changes of year y, in order.
func (r *yearlyRule) changes(y int) [2]change {
	begin := change{r.begin.in(y) - int64(r.standard), r.summer}
	end := change{r.end.in(y) - int64(r.summer), r.standard}
	if begin.at < end.at {
		return [2]change{begin, end}
	}
	return [2]change{end, begin}
}

// in gives the wall time of the date in year y.
func (d ruleDate) in(y int) int64 {
	first := daysOf(y, d.month, 1)
	ofMonth := (d.weekday-weekdayOf(first)+7)%7 + 7*(d.week-1)
	if ofMonth >= daysIn(y, d.month) {
		ofMonth -= 7
	}
	return (first+int64(ofMonth))*daySeconds + d.seconds
}

// at gives the span that holds the instant u.
func (r *yearlyRule) at(u int64) span {
	y, _, _ := dateOf(u / daySeconds)
	before, now, after := r.changes(y-1), r.changes(y), r.changes(y+1)
	begin, end := before[1], now[0]
	for _, c := range [...]change{now[1], after[0]} {
		if u >= end.at {
			begin, end = end, c
		}
	}
	return span{
		start: begin.at, end: end.at, offset: begin.offset, before: end.offset,
		fresh: begin.at + int64(max(begin.offset, end.offset)),
	}
}

var errRule = errors.New("a yearly rule of a form that no zone has had")

// parseRule reads the POSIX TZ text at a zone file's end, such as "CET-1CEST,M3.5.0,M10.5.0/3". Of the forms of a date
// it knows the only one in the database, Mm.w.d; a test reads every zone.
func parseRule(text string) (*yearlyRule, error) {
	offsets, dates, yearly := strings.Cut(text, ",")
	if !yearly {
		return nil, nil
	}
	begin, end, ok := strings.Cut(dates, ",")
	if !ok {
		return nil, errRule
	}
	var r yearlyRule
	var standard, summer int64
	offsets = skipName(offsets)
	name := strings.IndexFunc(offsets, func(c rune) bool { return c == '<' || c >= 'A' })
	if name < 0 {
		return nil, errRule
	}
	standard, ok1 := parseClock(offsets[:name])
	if !ok1 {
		return nil, errRule
	}
	// The text counts offsets westwards, and summer time is an hour ahead unless it says otherwise.
	summer = standard - 3600
	if given := skipName(offsets[name:]); given != "" {
		if summer, ok = parseClock(given); !ok {
			return nil, errRule
		}
	}
	r.standard, r.summer = int32(-standard), int32(-summer)
	if r.begin, ok = parseRuleDate(begin); !ok {
		return nil, errRule
	}
	if r.end, ok = parseRuleDate(end); !ok {
		return nil, errRule
	}
	return &r, nil
}

// skipName drops a zone's short name, "CET" or "<+0330>", from the front of text.
func skipName(text string) string {
	if strings.HasPrefix(text, "<") {
		return text[strings.IndexByte(text, '>')+1:]
	}
	return strings.TrimLeftFunc(text, func(c rune) bool { return c >= 'A' && c <= 'z' })
}

func parseRuleDate(text string) (ruleDate, bool) {
	d := ruleDate{seconds: 2 * 3600}
	date, clock, given := strings.Cut(text, "/")
	if given {
		var ok bool
		if d.seconds, ok = parseClock(clock); !ok {
			return d, false
		}
	}
	parts := strings.Split(strings.TrimPrefix(date, "M"), ".")
	if len(parts) != 3 || !strings.HasPrefix(date, "M") {
		return d, false
	}
	var errs [3]error
	d.month, errs[0] = strconv.Atoi(parts[0])
	d.week, errs[1] = strconv.Atoi(parts[1])
	d.weekday, errs[2] = strconv.Atoi(parts[2])
	inRange := d.month >= 1 && d.month <= 12 && d.week >= 1 && d.week <= 5 && d.weekday >= 0 && d.weekday <= 6
	return d, errors.Join(errs[:]...) == nil && inRange
}

// parseClock reads "[+-]h[:m[:s]]" as seconds.
func parseClock(text string) (int64, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	digits = strings.TrimPrefix(digits, "+")
	var seconds int64
	unit := int64(3600)
	for _, part := range strings.SplitN(digits, ":", 3) {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return 0, false
		}
		seconds += int64(n) * unit
		unit /= 60
	}
	if negative {
		return -seconds, true
	}
	return seconds, true
}
