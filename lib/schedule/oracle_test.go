package schedule

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"time"
)

// transitionsPerZone is how many changes of each zone's clock the brute-force oracle looks at.
var transitionsPerZone = flag.Int("oracle", 2, "changes of the clock, of each zone, that the brute-force oracle expands")

// tick is an instant at which a zone's wall clock shows a full minute (or second), as time.Time.In tells it.
type tick struct {
	at     int64
	offset int64
}

// expand lists every instant of [from, to) at which the wall shows a multiple of unit seconds.
func expand(loc *time.Location, from, to, unit int64) []tick {
	var ticks []tick
	add := func(u int64) bool {
		_, offset := time.Unix(u, 0).In(loc).Zone()
		if (u+int64(offset))%unit != 0 {
			return false
		}
		ticks = append(ticks, tick{u, int64(offset)})
		return true
	}
	for u := from; u < to; {
		if add(u) {
			u += unit
			continue
		}
		// The offset is not of whole units, or changed in the middle of one: look at each second.
		u++
	}
	return ticks
}

// brute gives the fires in [from, to) by the rule's own words, from ticks that begin more than a day earlier.
func brute(e expression, ticks []tick, from, to, unit int64, loc *time.Location) []int64 {
	var fires []int64
	fire := func(u int64) {
		if u >= from && u < to {
			fires = append(fires, u)
		}
	}
	if len(ticks) == 0 {
		return nil
	}
	base := ticks[0].at - 2*daySeconds
	shown := make([]bool, (to-base+2*daySeconds)/unit)
	for i, t := range ticks {
		wall := t.at + t.offset
		if i > 0 && !e.everyHour() && t.offset > ticks[i-1].offset && t.offset-ticks[i-1].offset < 24*3600 {
			change := changeBetween(loc, ticks[i-1].at, t.at)
			end := change + t.offset
			start := change + ticks[i-1].offset
			for w := start + (unit-start%unit)%unit; w < end; w += unit {
				if e.matches(w) {
					fire(change)
					break
				}
			}
		}
		first := !shown[(wall-base)/unit]
		shown[(wall-base)/unit] = true
		if e.matches(wall) && (first || e.everyHour()) {
			fire(t.at)
		}
	}
	slices.Sort(fires)
	return slices.Compact(fires)
}

// changeBetween gives the first second after lo that has the offset of hi.
func changeBetween(loc *time.Location, lo, hi int64) int64 {
	offset := func(u int64) int { _, o := time.Unix(u, 0).In(loc).Zone(); return o }
	return lo + 1 + int64(sort.Search(int(hi-lo-1), func(i int) bool { return offset(lo+1+int64(i)) == offset(hi) }))
}

// clockChanges lists the instants in [1970, 2110) at which the offset of loc changes, without this package's table.
func clockChanges(loc *time.Location) []int64 {
	var all []int64
	t := time.Unix(0, 0).In(loc)
	for t.Year() < 2110 {
		_, before := t.Zone()
		_, end := t.ZoneBounds()
		if end.IsZero() {
			break
		}
		if !end.After(t) { // in leap years the standard library ends the year a day early
			end = t.Add(24 * time.Hour)
		}
		if _, after := end.Zone(); after != before {
			all = append(all, end.Unix())
		}
		t = end
	}
	return all
}

// everyZone calls do for each zone of the database whose data differs from those before it.
func everyZone(t *testing.T, do func(name string, loc *time.Location)) {
	t.Helper()
	files, err := zoneFiles()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	if len(names) < 590 {
		t.Fatalf("only %d zones are embedded", len(names))
	}
	var seen [][]byte
	for _, name := range names {
		data, err := zoneData(name)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(seen, func(other []byte) bool { return bytes.Equal(other, data) }) {
			continue
		}
		seen = append(seen, data)
		loc, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		do(name, loc)
	}
}

// compare walks Next over [from, to) and wants the fires of the oracle, from any starting point.
func compare(t *testing.T, e expression, zone string, loc *time.Location, ticks []tick, from, to, unit int64, r *rand.Rand) {
	t.Helper()
	want := brute(e, ticks, from, to, unit, loc)
	s, err := Spec{Cron: e.text(), Timezone: zone}.Compile()
	if err != nil && !e.everMatchesADay() {
		return
	}
	if err != nil {
		t.Fatalf("%q: %v", e.text(), err)
	}
	var got []int64
	for at := time.Unix(from-1, 0); ; {
		next, ok := s.Next(at)
		if !ok || next.Unix() >= to {
			break
		}
		if !next.After(at) {
			t.Fatalf("%q in %s: after %v fires at %v", e.text(), zone, at, next)
		}
		got, at = append(got, next.Unix()), next
	}
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%q in %s, fire %d of %d in the window: got %s, want %s", e.text(), zone, i, len(want), show(got, i, loc), show(want, i, loc))
			}
		}
	}
	for range 3 {
		u := from + r.Int64N(to-from)
		i, _ := slices.BinarySearch(want, u+1)
		if i == len(want) {
			continue
		}
		if next, _ := s.Next(time.Unix(u, 5)); next.Unix() != want[i] {
			t.Fatalf("%q in %s: after %v fires at %v, want %s", e.text(), zone, time.Unix(u, 0).In(loc), next, show(want, i, loc))
		}
	}
}

func show(fires []int64, i int, loc *time.Location) string {
	if i >= len(fires) {
		return "none"
	}
	return time.Unix(fires[i], 0).In(loc).Format(time.RFC3339)
}

// Every minute around clock changes of every zone, over generated expressions that aim at them.
func TestFault15_brute_force_in_every_zone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	zones, expressions := 0, 0
	everyZone(t, func(name string, loc *time.Location) {
		zones++
		changes := clockChanges(loc)
		if len(changes) == 0 {
			changes = []int64{r.Int64N(2524608000)}
		}
		rounds := *transitionsPerZone
		if testing.Short() {
			rounds = (zones + 2) / 3 % 2 // every other three zones, once
		}
		for range rounds {
			around := changes[r.IntN(len(changes))]
			from, to := max(around-36*3600, 0), around+36*3600
			ticks := expand(loc, from-36*3600, to, 60)
			for range 12 {
				expressions++
				compare(t, generate(r, around, loc, false), name, loc, ticks, from, to, 60, r)
			}
		}
	})
	t.Logf("%d expressions in %d zones", expressions, zones)
}

// The same with seconds, over hours: every second around one clock change of every zone.
func TestFault15_brute_force_with_seconds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	everyZone(t, func(name string, loc *time.Location) {
		changes := clockChanges(loc)
		if len(changes) == 0 {
			return
		}
		around := changes[r.IntN(len(changes))]
		_, before := time.Unix(around-1, 0).In(loc).Zone()
		_, after := time.Unix(around, 0).In(loc).Zone()
		if after < before-3*3600 { // what the wall shows again must lie in the window
			return
		}
		from, to := max(around-1800, 0), around+2*3600
		ticks := expand(loc, from-3*3600, to, 1)
		for range 2 {
			compare(t, generate(r, around, loc, true), name, loc, ticks, from, to, 1, r)
		}
	})
}

// Every minute of a year and a half, in zones whose clocks do what others don't.
func TestFault15_brute_force_over_whole_years(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for zone, year := range map[string]int{
		"Europe/Berlin": 2026, "Australia/Lord_Howe": 2027, "Pacific/Apia": 2011, "Africa/Casablanca": 2025,
		"Antarctica/Troll": 2030, "Africa/Monrovia": 1971, "America/Santiago": 2099,
	} {
		loc, err := LoadZone(zone)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
		to := from + 550*daySeconds
		ticks := expand(loc, from-2*daySeconds, to, 60)
		changes := slices.DeleteFunc(clockChanges(loc), func(u int64) bool { return u < from || u >= to })
		for range 3 {
			compare(t, generate(r, changes[r.IntN(len(changes))], loc, false), zone, loc, ticks, from, to, 60, r)
		}
	}
}
