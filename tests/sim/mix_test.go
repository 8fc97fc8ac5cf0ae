package sim

import (
	"strings"
	"testing"
)

// TestSeedsDiffer: the same seed is the same world, and what is drawn is off in many seeds and on in many others.
func TestSeedsDiffer(t *testing.T) {
	t.Parallel()
	const seeds = 500
	with := map[string]int{}
	for seed := range uint64(seeds) {
		m := Draw(seed)
		if again := Draw(seed); again.String() != m.String() {
			t.Fatalf("seed %d is two worlds:\n%s\n%s", seed, m, again)
		}
		for _, word := range []string{"alone", "refused", "throttled", "lost", "late ", "away ", "sendlost", "doubled", "crashfor", "pausefor", "stepby", "skew", "fullfor",
			"answerlost", "outage", "faults   none", "poison", "longretries", "atmostonce", "pace of seconds", "pace of minutes", "pace of hours", "deaf", "redrive ", "overlap", "callbacks", "missed", "requested", "defaults", "expiring", "counted", "pausing", "within", "onewaits", "workflows", "hurried", "scoped"} {
			if strings.Contains(m.String(), word) {
				with[word]++
			}
		}
	}
	for word, n := range with {
		if n < seeds/50 || n > seeds*49/50 {
			t.Errorf("%q is in %d of %d seeds", word, n, seeds)
		}
	}
	if len(with) != 37 {
		t.Errorf("only %d of 37 things were drawn: %v", len(with), with)
	}
}

// TestWorldsBeginNearChangesOfClocks: half of those that have a zone whose clocks change see one, else the rules for them would hardly
// be met.
func TestWorldsBeginNearChangesOfClocks(t *testing.T) {
	t.Parallel()
	const seeds = 2000
	able, near := 0, 0
	for seed := range uint64(seeds) {
		m := Draw(seed)
		can, sees := false, false
		for _, zone := range m.Zones {
			change, ok := nextChange(zone, m.Start)
			can = can || ok
			sees = sees || ok && change.Before(m.Start.Add(m.Length))
		}
		if can {
			able++
		}
		if sees {
			near++
		}
	}
	t.Logf("of %d worlds %d have a zone whose clocks change, and %d see a change", seeds, able, near)
	if able < seeds*6/10 {
		t.Errorf("%d of %d worlds have a zone whose clocks change", able, seeds)
	}
	if near < able*48/100 {
		t.Errorf("%d of %d worlds see a change of clocks, want about half", near, able)
	}
}
