package schedule

import (
	"fmt"
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

// The gate is there for what our parser might one day let through. FuzzCompile shows that there is nothing yet.
func TestCron_gate_refuses_what_gronx_does(t *testing.T) {
	for expr, refused := range map[string]bool{
		"0 0 1-5W * *": true, "0 0 * * 5#": true, "0 0 LW * *": false, "0 0 L-3 * *": false, "0 0 15W * 5L": false,
		"0 0 0 1-5W * *": false, // six fields are ours to read
	} {
		tokens, err := splitCron(expr)
		if err != nil {
			t.Fatal(err)
		}
		if err := gate(expr, tokens); (err != nil) != refused {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

// Every value, range and step of every field, alone: what we accept means what it means to gronx, value by value; and of
// numbers in bounds we refuse only ranges that run downwards and steps that run over the whole field.
func TestCron_items_mean_what_they_mean_to_gronx(t *testing.T) {
	for f := minute; f < fieldCount; f++ {
		spec, highest := fields[f], fields[f].last
		if f == dayOfWeek {
			highest = 7
		}
		count := spec.last - spec.first + 1
		steps := []int{1, 2, 3, 5, count, count + 1}
		var items []string
		for a := spec.first; a <= highest+1; a++ {
			items = append(items, fmt.Sprint(a), fmt.Sprintf("*/%d", a))
			for _, step := range steps {
				items = append(items, fmt.Sprintf("%d/%d", a, step))
			}
			for b := spec.first; b <= highest+1; b++ {
				items = append(items, fmt.Sprintf("%d-%d", a, b))
				for _, step := range steps {
					items = append(items, fmt.Sprintf("%d-%d/%d", a, b, step))
				}
			}
		}
		for _, item := range items {
			var p parsedField
			var a, b, step int
			if n, _ := fmt.Sscanf(item, "%d-%d/%d", &a, &b, &step); len(p.parse(f, item)) > 0 {
				downwards := n >= 2 && b < a
				_, after, stepped := strings.Cut(item, "/")
				if wide, _ := number(after); a <= highest && b <= highest && !downwards && !(stepped && (wide == 0 || wide > count)) {
					t.Errorf("%s %q is refused", spec.name, item)
				}
				continue
			}
			for v := spec.first; v <= spec.last; v++ {
				checker := &gronx.SegmentChecker{}
				checker.SetRef(momentWith(f, v))
				want, err := checker.CheckDue(item, int(f))
				if got := p.values>>v&1 != 0; got != want || err != nil {
					t.Fatalf("%s %q holds %d: %v, gronx says %v, %v", spec.name, item, v, got, want, err)
				}
			}
		}
	}
}

// momentWith gives an instant whose field f has the value v.
func momentWith(f field, v int) time.Time {
	switch f {
	case minute:
		return time.Date(2026, 3, 1, 0, v, 0, 0, time.UTC)
	case hour:
		return time.Date(2026, 3, 1, v, 0, 0, 0, time.UTC)
	case month:
		return time.Date(2026, time.Month(v), 1, 0, 0, 0, 0, time.UTC)
	case dayOfMonth:
		return time.Date(2026, 3, v, 0, 0, 0, 0, time.UTC)
	default:
		return time.Date(2026, 3, 1+v, 0, 0, 0, 0, time.UTC) // 1 March 2026 is a Sunday
	}
}
