package invalid

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	known := []string{"schedule", "target", "timeout", "retry", "as", strings.Repeat("x", 65)}
	for given, want := range map[string]string{
		"shedule": "schedule", "shcedule": "schedule", "Schedule": "schedule", "scheduling": "", "timeuot": "timeout", "rety": "retry", "retries": "",
		"at": "", "": "", "ass": "", strings.Repeat("x", 64): "", "targte": "target", "tagret": "target",
	} {
		if got := Nearest(given, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", given, got, want)
		}
	}
}

// All places of the table are filled in here, and give the same wherever it matters.
func TestDistanceIsThatOfTheWholeTable(t *testing.T) {
	whole := func(a, b string) int {
		table := make([][]int, len(a)+1)
		for i := range table {
			table[i] = make([]int, len(b)+1)
			for j := range table[i] {
				switch {
				case i == 0 || j == 0:
					table[i][j] = i + j
					continue
				case a[i-1] == b[j-1]:
					table[i][j] = table[i-1][j-1]
				default:
					table[i][j] = 1 + min(table[i-1][j-1], table[i-1][j], table[i][j-1])
				}
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					table[i][j] = min(table[i][j], 1+table[i-2][j-2])
				}
			}
		}
		return table[len(a)][len(b)]
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := func(length int) string {
		letters := make([]byte, length)
		for i := range letters {
			letters[i] = "ab"[random.IntN(2)]
		}
		return string(letters)
	}
	near := 0
	for range 20000 {
		a, b := text(random.IntN(9)), text(random.IntN(9))
		want, got := whole(a, b), distance(a, b)
		if want <= furthest {
			near++
		}
		if got != want && (want <= furthest || got <= furthest) {
			t.Fatalf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
	}
	if near < 1000 {
		t.Errorf("only %d pairs were near", near)
	}
}
