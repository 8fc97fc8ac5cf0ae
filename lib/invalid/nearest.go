package invalid

import "strings"

// longestName is beyond what anybody mistypes; the work is quadratic.
const longestName = 64

// Nearest is the known name that the given one was probably meant to be: at most two letters put in, left out, replaced or swapped with
// their neighbour, and less than half of the name; "" where none is that close. Upper case is lower case.
func Nearest(given string, known []string) string {
	if len(given) > longestName {
		return ""
	}
	best, least := "", 3
	for _, name := range known {
		if len(name) > longestName {
			continue
		}
		if d := distance(strings.ToLower(given), strings.ToLower(name)); d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance is that of Damerau and Levenshtein, where no letter is moved twice.
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
