package invalid

import "strings"

// Nearest returns the known name that the given one was probably meant to be, and "" where none is close. It serves messages such as
// `unknown field; did you mean "cron"?`.
func Nearest(given string, known []string) string {
	const most = 64 // bytes; the work is quadratic, and nobody mistypes a longer name
	if len(given) > most {
		return ""
	}
	best, least := "", 3
	for _, name := range known {
		if len(name) > most {
			continue
		}
		if d := distance(strings.ToLower(given), strings.ToLower(name)); d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance counts the bytes to insert, delete, replace, or swap with their neighbour to make b of a.
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
