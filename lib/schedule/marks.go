package schedule

import "time"

// Mark tells what a change of the clock has to do with a fire.
type Mark string

// The marks. Their names are shown, and stable.
const (
	Unmarked    Mark = ""
	Shifted     Mark = "shifted"       // the clock skips the time that was asked for: the fire is the end of the gap
	Merged      Mark = "merged"        // the end of a gap, for several times that were asked for
	FirstOfTwo  Mark = "first_of_two"  // the clock shows this time again later
	SecondOfTwo Mark = "second_of_two" // the clock has shown this time before
)

// MostAsked is how many of the times that a fire stands for are named.
const MostAsked = 10

// Fire is a fire of a schedule, as the clock of its zone shows it.
type Fire struct {
	At    time.Time // UTC
	Local time.Time // the same instant, with the offset that the zone has then
	Mark  Mark
	Asked []string // of Shifted and Merged: the wall times that were asked for, as 2026-03-29T02:30:00, at most MostAsked
}

// Fire describes an instant at which the schedule fires.
func (s *Schedule) Fire(at time.Time) Fire {
	f := Fire{At: at.UTC(), Local: at.UTC()}
	if s.kind != byCron {
		return f
	}
	u := at.Unix()
	here := s.zone.at(u)
	if here.offset != 0 {
		f.Local = at.In(time.FixedZone("", int(here.offset)))
	}
	wall := u + int64(here.offset)
	asked := s.cron.askedInGap(here, u)
	switch {
	case len(asked) > 1:
		f.Mark = Merged
	case len(asked) == 1 && asked[0] != wall:
		f.Mark = Shifted
	case wall < here.fresh:
		f.Mark = SecondOfTwo
	case s.zone.showsAgain(here, wall):
		f.Mark = FirstOfTwo
	}
	if f.Mark == Shifted || f.Mark == Merged {
		for _, w := range asked[:min(len(asked), MostAsked)] {
			f.Asked = append(f.Asked, time.Unix(w, 0).UTC().Format("2006-01-02T15:04:05"))
		}
	}
	return f
}

// askedInGap gives the wall times that a fire at the beginning of a span stands for: those that the gap before it has swallowed, and its own. It
// gives a few more than are named, and none where there is no such gap.
func (c *cronSet) askedInGap(s span, u int64) (asked []int64) {
	gap := int64(s.offset - s.before)
	if c.everyHour || u != s.start || gap <= 0 || gap >= daySeconds {
		return nil
	}
	end := u + int64(s.offset)
	for w := c.next(end - gap); w <= end && len(asked) <= MostAsked; w = c.next(w + 1) {
		asked = append(asked, w)
	}
	return asked
}

// showsAgain tells whether the clock shows a wall time of a span once more after it.
func (z *zone) showsAgain(s span, wall int64) bool {
	if s.end >= endOfTimeSec {
		return false
	}
	next := z.at(s.end)
	return next.offset < s.offset && wall-int64(next.offset) >= next.start && wall-int64(next.offset) < next.end
}
