package flow

import "strings"

// nearest finds the name that was most likely meant by another: one that differs by few letters, as a typing error does. "" where none is
// near. Of several that are as near it is the first.
func nearest(name string, among []string) string {
	const longest = 64 // of a step's name
	if len(name) > longest {
		return ""
	}
	best, least := "", len(name)/3+1 // edits up to which a name is near
	for _, other := range among {
		if len(other) > longest {
			continue
		}
		if d := edits(strings.ToLower(name), strings.ToLower(other)); d < least || d == least && best == "" && d < len(other) {
			best, least = other, d
		}
	}
	return best
}

// edits counts the letters to insert, delete, replace or swap with the next that make one word of another.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
