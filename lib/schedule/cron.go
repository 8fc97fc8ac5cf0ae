package schedule

import (
	"math"
	"math/bits"
)

// cronSet is a cron expression as bitsets: bit n stands for the value n.
type cronSet struct {
	seconds, minutes uint64
	hours            uint32
	months           uint16
	days             cronDays

	// everyHour says that the hour field starts with "*": such an expression follows the instants, any other one the
	// wall clock.
	everyHour bool
}

// cronDays is the part of an expression that chooses among the days of a month.
type cronDays struct {
	monthDays    uint32   // day-of-month n, 1 to 31
	beforeLast   uint32   // L-n, bit 0 being L
	nearWeekday  uint32   // nW
	lastWeekday  bool     // LW
	weekdays     uint8    // day-of-week, 0 to 6
	lastWeekdays uint8    // nL
	nth          [5]uint8 // n#k at k-1

	// both says that a day must match the two fields (one of them starts with "*"); else one of them is enough.
	both bool
}

const noWall = math.MaxInt64

// lastYear bounds every search; fires end before.
const lastYear = 10000

// next gives the earliest wall time at or after w, in seconds, that the expression matches; noWall if there is none
// before the end of time.
func (c *cronSet) next(w int64) int64 {
	// One day up, so that the division rounds down for the walls just before 1970.
	days := (w+daySeconds)/daySeconds - 1
	clock := int(w - days*daySeconds)
	y, m, d := dateOf(days)
	if c.months>>m&1 != 0 {
		first := days - int64(d-1)
		of := c.days.in(weekdayOf(first), daysIn(y, m)) >> d
		if of&1 != 0 {
			if s, ok := c.clockAfter(clock); ok {
				return days*daySeconds + int64(s)
			}
		}
		if of >>= 1; of != 0 {
			return (days+1+int64(bits.TrailingZeros32(of)))*daySeconds + int64(c.firstClock())
		}
	}
	for {
		later := uint32(c.months) >> (m + 1)
		if later != 0 {
			m += 1 + bits.TrailingZeros32(later)
		} else {
			if y++; y > lastYear {
				return noWall
			}
			m = bits.TrailingZeros16(c.months)
		}
		first := daysOf(y, m, 1)
		if of := c.days.in(weekdayOf(first), daysIn(y, m)); of != 0 {
			return (first-1+int64(bits.TrailingZeros32(of)))*daySeconds + int64(c.firstClock())
		}
	}
}

// clockAfter gives the earliest matching second of a day at or after the given one.
func (c *cronSet) clockAfter(clock int) (int, bool) {
	h, m, s := clock/3600, clock/60%60, clock%60
	if c.hours>>h&1 != 0 {
		if c.minutes>>m&1 != 0 {
			if of := c.seconds >> s; of != 0 {
				return clock + bits.TrailingZeros64(of), true
			}
		}
		if of := c.minutes >> (m + 1); of != 0 {
			return h*3600 + (m+1+bits.TrailingZeros64(of))*60 + bits.TrailingZeros64(c.seconds), true
		}
	}
	if of := c.hours >> (h + 1); of != 0 {
		return (h+1+bits.TrailingZeros32(of))*3600 + bits.TrailingZeros64(c.minutes)*60 + bits.TrailingZeros64(c.seconds), true
	}
	return 0, false
}

func (c *cronSet) firstClock() int {
	return bits.TrailingZeros32(c.hours)*3600 + bits.TrailingZeros64(c.minutes)*60 + bits.TrailingZeros64(c.seconds)
}

// in gives the matching days, as bits 1 to 31, of a month by the weekday of its first day and its length.
func (d *cronDays) in(firstWeekday, length int) uint32 {
	all := uint32(1)<<(length+1) - 2
	byMonth := d.monthDays
	byWeek := spread(d.weekdays, firstWeekday)
	if d.special() {
		byMonth |= d.specialMonthDays(firstWeekday, length)
		byWeek |= d.specialWeekdays(firstWeekday, length)
	}
	if d.both {
		return byMonth & byWeek & all
	}
	return (byMonth | byWeek) & all
}

func (d *cronDays) special() bool {
	return d.beforeLast|d.nearWeekday != 0 || d.lastWeekday || d.lastWeekdays != 0 || d.nth != [5]uint8{}
}

// spread repeats a set of weekdays over a month: bit n is set when day n falls on one of them.
func spread(weekdays uint8, firstWeekday int) uint32 {
	week := uint64(weekdays)
	week |= week << 7
	week = week >> firstWeekday & 0x7f // bit 0 is now the weekday of the 1st
	return uint32((week | week<<7 | week<<14 | week<<21 | week<<28) << 1)
}

func (d *cronDays) specialMonthDays(firstWeekday, length int) uint32 {
	var of uint32
	for set := d.beforeLast; set != 0; set &= set - 1 {
		if day := length - bits.TrailingZeros32(set); day >= 1 {
			of |= 1 << day
		}
	}
	for set := d.nearWeekday; set != 0; set &= set - 1 {
		if day := bits.TrailingZeros32(set); day <= length {
			of |= 1 << nearestWorkday(day, firstWeekday, length)
		}
	}
	if d.lastWeekday {
		of |= 1 << nearestWorkday(length, firstWeekday, length)
	}
	return of
}

// nearestWorkday gives the day from Monday to Friday that is nearest to the given one without leaving the month.
func nearestWorkday(day, firstWeekday, length int) int {
	switch (firstWeekday + day - 1) % 7 {
	case 6:
		if day > 1 {
			return day - 1
		}
		return day + 2
	case 0:
		if day < length {
			return day + 1
		}
		return day - 2
	default:
		return day
	}
}

func (d *cronDays) specialWeekdays(firstWeekday, length int) uint32 {
	lastWeek := uint32(0x7f) << (length - 6)
	of := spread(d.lastWeekdays, firstWeekday) & lastWeek
	for k, weekdays := range d.nth {
		of |= spread(weekdays, firstWeekday) & (0x7f << (7*k + 1))
	}
	return of
}
