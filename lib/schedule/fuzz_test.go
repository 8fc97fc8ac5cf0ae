package schedule

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// zoneNames are those that the fuzz targets choose among: one of each kind of clock.
var zoneNames = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo", "America/Havana", "America/Santiago",
	"Atlantic/Azores", "Antarctica/Troll", "Africa/Casablanca", "Africa/Monrovia", "Europe/Dublin", "Asia/Gaza", "America/Nuuk", "Pacific/Kiritimati",
}

// seedCrons are the expressions, good and bad, from which fuzzing starts.
func seedCrons(t testing.TB) []string {
	var all []string
	for _, c := range cronCases(t) {
		all = append(all, c.Expr)
	}
	for _, c := range refusals {
		all = append(all, c.cron)
	}
	r := rand.New(rand.NewPCG(9, 10))
	for i := range 50 {
		all = append(all, generate(r, r.Int64N(3e9), time.UTC, i%3 == 0).text())
	}
	return all
}

// FuzzCompile holds what every expression must keep: it is refused with a bounded text of our own that says what would be
// right (the gate never has to step in), or it is accepted and can be described.
func FuzzCompile(f *testing.F) {
	for _, cron := range seedCrons(f) {
		f.Add(cron)
	}
	f.Fuzz(func(t *testing.T, cron string) {
		s, err := Spec{Cron: cron}.Compile()
		if err != nil {
			all := invalid.All(err)
			if len(all) == 0 || len(all) > 6*mostRefusals || len(err.Error()) > 6*mostRefusals*250 {
				t.Errorf("%q: refused with %d reasons: %v", cron, len(all), err)
			}
			for _, e := range all {
				if e.Want == "" || e.Field != "cron" || strings.Contains(e.Want, "gronx") {
					t.Errorf("%q: refused without a reason of our own: %v", cron, err)
				}
			}
			return
		}
		if s.Describe() == "" {
			t.Errorf("%q has no description", cron)
		}
	})
}

// FuzzNext holds what every schedule must keep: the fires are a fixed set of instants, whichever way one asks for them.
func FuzzNext(f *testing.F) {
	for i, cron := range seedCrons(f) {
		f.Add(cron, uint8(i), int64(1760000000+i*7777777), uint32(i*99991))
	}
	f.Fuzz(func(t *testing.T, cron string, zone uint8, from int64, part uint32) {
		s, err := Spec{Cron: cron, Timezone: zoneNames[int(zone)%len(zoneNames)]}.Compile()
		if err != nil {
			return
		}
		if err := holdsTogether(s, time.Unix(from%endOfTimeSec, 0), part); err != nil {
			t.Errorf("%q in %s after %d: %v", cron, s.spec.Timezone, from, err)
		}
	})
}

// FuzzEvery is FuzzNext for schedules with a fixed interval.
func FuzzEvery(f *testing.F) {
	f.Add(int64(90_000), int64(250), int64(1760000000), uint32(7))
	f.Add(int64(1000), int64(0), int64(0), uint32(0))
	f.Fuzz(func(t *testing.T, every, phase, from int64, part uint32) {
		const longest = int64(1e12)
		s, err := Spec{Every: Duration(every % longest * 1e6), Phase: Duration(phase % longest * 1e6)}.Compile()
		if err != nil {
			return
		}
		if err := holdsTogether(s, time.Unix(from%endOfTimeSec, 0), part); err != nil {
			t.Errorf("every %v, phase %v, after %d: %v", s.spec.Every, s.spec.Phase, from, err)
		}
	})
}

// holdsTogether walks a few fires and asks for the same ones in every other way.
func holdsTogether(s *Schedule, from time.Time, part uint32) error {
	var all []time.Time
	for at := from; len(all) < 12; {
		next, ok := s.Next(at)
		if !ok {
			break
		}
		if !next.After(at) {
			return errors.New("does not advance: " + next.String())
		}
		// Path independence: the same fire from every instant in between.
		gap := next.Sub(at)
		inside := at.Add(gap / 1000 * time.Duration(part%1000))
		for _, t := range []time.Time{inside, next.Add(-1), next.Add(-time.Second)} {
			if t.Before(at) {
				continue
			}
			if again, _ := s.Next(t); !again.Equal(next) {
				return errors.New(t.String() + " leads to " + again.String() + ", not to " + next.String())
			}
			if last, ok := s.Last(at.Add(1), t); ok {
				return errors.New("Last finds " + last.String() + " between two fires")
			}
		}
		all, at = append(all, next), next
	}
	if len(all) == 0 {
		return nil
	}
	end := all[len(all)-1]
	if last, ok := s.Last(from.Add(1), end); !ok || !last.Equal(end) {
		return errors.New("Last finds " + last.String() + ", not " + end.String())
	}
	if first, ok := s.Last(all[0], end.Add(-1)); len(all) > 1 && (!ok || !first.Equal(all[len(all)-2])) {
		return errors.New("Last finds " + first.String() + " before the last")
	}
	if n, more := s.Count(from.Add(1), end, 100); n != len(all) || more {
		return errors.New("Count differs from what Next walks through")
	}
	if n, more := s.Count(from.Add(1), end, len(all)-1); n != len(all)-1 || !more {
		return errors.New("Count does not stop at its limit")
	}
	return nil
}

// A walk over generated expressions at every kind of clock: each fire lies after the one before, is the same from every
// instant in between, and Last and Count agree with it.
func TestFault16_next_advances_whatever_the_clock_does(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, zone := range zoneNames {
		loc, err := LoadZone(zone)
		if err != nil {
			t.Fatal(err)
		}
		changes := append(clockChanges(loc), 1760000000)
		for i := range 60 {
			around := changes[r.IntN(len(changes))]
			e := generate(r, around, loc, i%4 == 0)
			s, err := Spec{Cron: e.text(), Timezone: zone}.Compile()
			if err != nil {
				continue // what never fires; the brute-force oracle checks these refusals
			}
			if err := holdsTogether(s, time.Unix(around-r.Int64N(2*daySeconds), 0), r.Uint32()); err != nil {
				t.Errorf("%q in %s around %v: %v", e.text(), zone, time.Unix(around, 0).In(loc), err)
			}
		}
	}
}

// The rarest expressions, in a zone that changes its clock twice a year for ever, are found or given up soon: the bound
// is a hundred times what they take, and one try of many has to keep it.
func TestFault16_rare_and_spent_schedules_end_soon(t *testing.T) {
	for _, c := range []struct{ cron, from, want string }{
		{"0 0 29 2 *", "2097-01-01T00:00:00Z", "2104-02-28T23:00:00Z"},
		{"30 2 29 2 */7", "2060-01-01T00:00:00Z", "2060-02-29T01:30:00Z"},
		{"30 2 29 2 */7", "2060-03-01T00:00:00Z", "2088-02-29T01:30:00Z"},
		{"30 2 29 2 */7", "2680-03-01T00:00:00Z", "2720-02-29T01:30:00Z"},
		{"0 0 29 2 */7", "9980-01-01T00:00:00Z", "none"},
		{"* * * * *", "9999-12-31T23:58:59.5Z", "9999-12-31T23:59:00Z none"},
	} {
		s := compile(t, Spec{Cron: c.cron, Timezone: "Europe/Berlin"})
		fastest := time.Duration(1 << 62)
		var got string
		for range 20 {
			begin := time.Now()
			got = fires(s, *instant(t, c.from), strings.Count(c.want, " ")+1)
			fastest = min(fastest, time.Since(begin))
		}
		if got != c.want || fastest > time.Millisecond {
			t.Errorf("%q after %s: %s in %v, want %s", c.cron, c.from, got, fastest, c.want)
		}
	}
}
