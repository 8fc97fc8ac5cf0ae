package bench

import (
	"math"
	"testing"
)

func TestATrendIsHeldAgainstItsScatter(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5, 6, 7}
	for _, row := range []struct {
		name    string
		y       []float64
		slope   float64
		verdict string
	}{
		{"always the same", []float64{5, 5, 5, 5, 5, 5, 5, 5}, 0, Flat},
		{"to and fro", []float64{5, 9, 5, 9, 9, 5, 9, 5}, 0, Flat},
		{"a straight line", []float64{0, 2, 4, 6, 8, 10, 12, 14}, 2, Rising},
		{"and downwards", []float64{14, 12, 10, 8, 6, 4, 2, 0}, -2, Falling},
		{"a line that scatters little", []float64{0.5, 1.5, 4.5, 5.5, 7.5, 10.5, 11.5, 14.5}, 2, Rising},
		{"two looks", []float64{1, 2}, 0, Unclear},
	} {
		if got := trendOf(x[:len(row.y)], row.y); got.Verdict != row.verdict || math.Abs(got.Slope-row.slope) > 0.05 {
			t.Errorf("%s: got %+v, want %s, a slope of %v", row.name, got, row.verdict, row.slope)
		}
	}
	if got := trendOf([]float64{3, 3, 3}, []float64{1, 2, 3}); got.Verdict != Unclear {
		t.Errorf("at one place: got %+v", got)
	}
}
