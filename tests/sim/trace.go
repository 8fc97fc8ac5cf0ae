package sim

import (
	"fmt"
	"slices"
	"strings"
)

// String is one line of a readable trace.
func (s Step) String() string {
	line := fmt.Sprintf("%7d %s  %-10s %-12s %s", s.N, s.At.Format("02 15:04:05.000"), s.Who, s.What, s.Key)
	if s.Sort != "" {
		line += " / " + s.Sort
	}
	if s.Outcome != "" {
		line += "  => " + s.Outcome
	}
	return line
}

// parting tells where two traces part, with what led there.
func parting(one, other []string) string {
	const before, after = 30, 3
	at := 0
	for at < min(len(one), len(other)) && one[at] == other[at] {
		at++
	}
	cut := func(all []string, from, to int) []string { return all[min(from, len(all)):min(to, len(all))] }
	lines := slices.Clone(cut(one, max(0, at-before), at))
	lines = append(lines, "--- one:")
	lines = append(lines, cut(one, at, at+after)...)
	lines = append(lines, "--- the other:")
	lines = append(lines, cut(other, at, at+after)...)
	return strings.Join(lines, "\n")
}
