package schedule

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// cronCase is one line of testdata/cron-cases.json; an empty Next says that the expression is refused.
type cronCase struct {
	Expr string      `json:"expr"`
	Zone string      `json:"tz"`
	From time.Time   `json:"from"`
	Next []time.Time `json:"next"`
	Note string      `json:"note"`
}

func cronCases(t testing.TB) []cronCase {
	t.Helper()
	data, err := os.ReadFile("testdata/cron-cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []cronCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestFault15_cron_cases(t *testing.T) {
	for _, c := range cronCases(t) {
		s, err := Spec{Cron: c.Expr, Timezone: c.Zone}.Compile()
		if len(c.Next) == 0 {
			if err == nil {
				t.Errorf("%q is accepted; %s", c.Expr, c.Note)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.Expr, err)
			continue
		}
		at := c.From
		for _, want := range c.Next {
			got, ok := s.Next(at)
			if !ok || !got.Equal(want) {
				t.Errorf("%q in %s after %v fires at %v, want %v; %s", c.Expr, c.Zone, at, got, want, c.Note)
				break
			}
			at = got
		}
	}
}
