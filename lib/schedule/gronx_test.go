package schedule

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/adhocore/gronx"
)

// In UTC, where no clock changes, the dialect's own library is the oracle.
func TestCron_agrees_with_gronx_in_UTC(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	compared := 0
	for range 1500 {
		around := r.Int64N(3e9)
		e := generate(r, around, time.UTC, false)
		if days := e.tokens[dayOfMonth]; strings.HasPrefix(days, "L") && days != "L" {
			continue // LW and L-n are ours alone
		}
		s, err := Spec{Cron: e.text()}.Compile()
		if err != nil {
			continue // what never fires; the brute-force oracle checks these refusals
		}
		at := time.Unix(around, 0).UTC()
		for range 4 {
			want, err := gronx.NextTickAfter(e.text(), at, false)
			if err != nil {
				break // it gives up on rare expressions
			}
			compared++
			got, ok := s.Next(at)
			if !ok || !got.Equal(want) {
				t.Fatalf("%q after %v fires at %v, gronx says %v", e.text(), at, got, want)
			}
			at = got
		}
	}
	if compared < 3000 {
		t.Errorf("only %d fires compared", compared)
	}
}
