package simulate

import "strings"

// meant is a question after a name that is close to what was given, or "".
func meant(given string, known []string) string {
	if near := nearest(given, known); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

// nearest is the known name that the given one was probably meant to be, "" where none is close.
func nearest(given string, known []string) string {
	const longest = 64 // beyond it nobody mistypes a name, and the work is quadratic
	if len(given) > longest {
		return ""
	}
	best, least := "", 3
	for _, name := range known {
		if len(name) > longest {
			continue
		}
		if d := distance(strings.ToLower(given), strings.ToLower(name)); d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters are to be put in, left out, replaced, or swapped with their neighbour to come from a to b.
func distance(a, b string) int {
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(last[j+1]+1, next[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}

// anyOf lists names as a sentence has them.
func anyOf(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
