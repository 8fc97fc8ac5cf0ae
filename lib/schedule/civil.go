package schedule

const daySeconds = 86400

// A civil date is counted in days since 1970-01-01; years begin in March inside the arithmetic, so that the leap day
// comes last and every month's first day is a linear formula.

// daysOf gives the day number of a date; y from 0 to 10400, m from 1 to 12.
func daysOf(y, m, d int) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	return int64(365*y + y/4 - y/100 + y/400 + (153*(m-3)+2)/5 + d - 1 - 719468)
}

// dateOf is the inverse of daysOf. It divides 32-bit numbers only, which is several times quicker.
func dateOf(days int64) (y, m, d int) {
	n := uint32(days+719468)*4 + 3
	century := n / 146097
	rest := n%146097 | 3
	year := rest / 1461
	dayOfYear := rest % 1461 / 4
	month := (5*dayOfYear + 2) / 153
	d = int(dayOfYear-(153*month+2)/5) + 1
	y = int(100*century + year)
	if month >= 10 {
		return y + 1, int(month) - 9, d
	}
	return y, int(month) + 3, d
}

// daysIn gives the length of a month.
func daysIn(y, m int) int {
	if m == 2 {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 30 | (m ^ m>>3)
}

// weekdayOf gives 0 for Sunday to 6 for Saturday.
func weekdayOf(days int64) int {
	return int(uint32(days+4) % 7) // 1970-01-01 was a Thursday
}
