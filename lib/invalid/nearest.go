package invalid

import "strings"

// longestName is beyond what anybody mistypes; the work is quadratic.
const longestName = 64

// furthest is how many mistakes a name that was meant may have.
const furthest = 2

// Nearest is the known name that the given one was probably meant to be: at most two letters put in, left out, replaced or swapped with
// their neighbour, and less than half of the name; "" where none is that close. Upper case is lower case.
func Nearest(given string, known []string) string {
	if len(given) > longestName {
		return ""
	}
	given = strings.ToLower(given)
	best, least := "", furthest+1
	for _, name := range known {
		if len(name) > longestName {
			continue
		}
		if d := distance(given, strings.ToLower(name)); d < least && 2*d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// distance is that of Damerau and Levenshtein, where no letter is moved twice, as far as it is at most furthest; of what is further, any
// greater number. So only the places that are that near to the diagonal are looked at: there may be hundreds of names for each of a hundred.
func distance(a, b string) int {
	const beyond = furthest + 1
	if max(len(a)-len(b), len(b)-len(a)) > furthest {
		return beyond
	}
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		from, to := max(0, i-furthest), min(len(b), i+furthest+1)
		next[from] = beyond
		if from == 0 {
			next[0] = i + 1
		}
		for j := from; j < to; j++ {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(next[j]+1, last[j]+cost)
			if j < i+furthest { // what is above the last place is beyond
				next[j+1] = min(next[j+1], last[j+1]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}
