package schedule

// mostSpans ends every search. The longest way to a fire, 40 years, leads through some 80 spans; a search that has seen
// this many is not going to advance.
const mostSpans = 1000

// first gives the earliest fire of the expression in zone z at or after u >= 0, in Unix seconds; false when there is
// none before the end of time. The rule it keeps:
//
//   - When the hour field starts with "*", every instant whose wall clock matches fires.
//   - Else a wall time that the clock shows again fires only the first time, and a gap of less than a day that swallowed
//     a match fires once, at its end; a regular fire at that very instant is the same fire.
func (c *cronSet) first(z *zone, u int64) (int64, bool) {
	// No wall time in [empty, match) matches; match does, or there is none. An expression that fires once in years
	// thus passes the spans in between without another search.
	empty, match := int64(0), int64(-1)
	seek := func(w int64) int64 {
		if w < empty || w > match {
			empty, match = w, c.next(w)
		}
		return match
	}
	for range mostSpans {
		s := z.at(u)
		w := u + int64(s.offset)
		if !c.everyHour {
			gap := s.offset - s.before
			if u == s.start && gap > 0 && gap < daySeconds && seek(w-int64(gap)) < w {
				return u, true
			}
			w = max(w, s.fresh)
		}
		// Not "found < end of the span's wall": that sum overflows in a zone's last span.
		if found := seek(w); found != noWall && found-int64(s.offset) < s.end {
			u = found - int64(s.offset)
			return u, u < endOfTimeSec
		}
		if s.end >= endOfTimeSec {
			return 0, false
		}
		u = s.end
	}
	return 0, false
}
