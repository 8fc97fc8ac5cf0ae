package record_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/record"
)

func TestNumbersInKeys(t *testing.T) {
	for _, n := range []int64{0, 1, 9, 10, 99, 100, 1_800_000_000_000, 999_999_999_999_999, 1_000_000_000_000_000, math.MaxInt64, -1, -99, -100, math.MinInt64} {
		for _, digits := range []int{2, 10, 15} {
			if got, want := string(record.AppendPadded([]byte("a#"), n, digits)), fmt.Sprintf("a#%0*d", digits, n); got != want {
				t.Errorf("%d in %d digits is %q, want %q", n, digits, got, want)
			}
		}
		if got, want := string(record.AppendTime(nil, n)), fmt.Sprintf("%015d", n); got != want {
			t.Errorf("the time %d is %q, want %q", n, got, want)
		}
	}
}
