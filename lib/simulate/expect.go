package simulate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
)

// Expectation is the part of a report that a scenario expects: of objects the fields that it has, of lists the first entries. null expects
// nothing in that place, and an empty list an empty one. Steps may be named by their paths instead.
type Expectation struct {
	part   *manifest.Value
	byPath map[*manifest.Value]bool // objects that name the entries of a list of steps
}

// Difference is something that a scenario expects and a report has otherwise.
type Difference struct {
	Line  int    `json:"line"`  // of the scenario's file, where that is expected
	Field string `json:"field"` // path in the report, such as runs[2].state
	Want  string `json:"want"`  // for people: JSON, or "nothing"
	Got   string `json:"got"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: want %s, got %s", d.Field, d.Want, d.Got)
}

// Compare lists what a report has otherwise than expected, in the order of the expectation, at most invalid.Most of it; more is how much there
// is beyond that. Both are none where nothing is expected.
func (e *Expectation) Compare(report Report) (found []Difference, more int, err error) {
	if e == nil {
		return nil, 0, nil
	}
	text, err := json.Marshal(report)
	if err != nil {
		return nil, 0, fmt.Errorf("report: %w", err)
	}
	values, err := manifest.Read(".json", text)
	if err != nil {
		return nil, 0, fmt.Errorf("report: %w", err)
	}
	c := comparison{byPath: e.byPath}
	c.compare(e.part, values[0], "")
	return c.found, c.more, nil
}

type comparison struct {
	found  []Difference
	more   int // beyond invalid.Most
	byPath map[*manifest.Value]bool
}

// compare compares a part with what the report has there; got is nil where it has nothing.
func (c *comparison) compare(want, got *manifest.Value, at string) {
	if got != nil && got.Kind == manifest.Null {
		got = nil
	}
	switch {
	case want.Kind == manifest.Null:
		if got != nil {
			c.differ(want, got, at)
		}
	case c.byPath[want] && got != nil:
		for _, m := range want.Members {
			at, there := below(at, m.Name), (*manifest.Value)(nil)
			if i := slices.IndexFunc(got.Items, func(s *manifest.Value) bool { return s.Member("path").Scalar == m.Name }); i >= 0 {
				there = got.Items[i]
			}
			c.compare(m.Value, there, at)
		}
	case got == nil || want.Kind != got.Kind:
		c.differ(want, got, at)
	case want.Kind == manifest.Object:
		for _, m := range want.Members {
			c.compare(m.Value, got.Member(m.Name), below(at, m.Name))
		}
	case want.Kind == manifest.Array:
		if len(want.Items) == 0 && len(got.Items) > 0 {
			c.differ(want, got, at)
		}
		for i, item := range want.Items {
			var there *manifest.Value
			if i < len(got.Items) {
				there = got.Items[i]
			}
			c.compare(item, there, fmt.Sprintf("%s[%d]", at, i))
		}
	case !same(want, got):
		c.differ(want, got, at)
	}
}

func (c *comparison) differ(want, got *manifest.Value, at string) {
	if len(c.found) == invalid.Most {
		c.more++
		return
	}
	c.found = append(c.found, Difference{Line: want.Line, Field: at, Want: inShort(want), Got: inShort(got)})
}

// same compares what holds no other values: numbers by what they are worth, times by their instant.
func same(want, got *manifest.Value) bool {
	switch {
	case want.Scalar == got.Scalar:
		return true
	case want.Kind == manifest.Number:
		a, errA := strconv.ParseFloat(want.Scalar, 64)
		b, errB := strconv.ParseFloat(got.Scalar, 64)
		return errA == nil && errB == nil && a == b
	case want.Kind == manifest.Text:
		a, errA := time.Parse(time.RFC3339, want.Scalar)
		b, errB := time.Parse(time.RFC3339, got.Scalar)
		return errA == nil && errB == nil && a.Equal(b)
	}
	return false
}

// inShort is a value as a line has room for it.
func inShort(v *manifest.Value) string {
	const longest = 120
	switch {
	case v == nil || v.Kind == manifest.Null:
		return "nothing"
	case v.Kind == manifest.Array && len(v.Items) == 0:
		return "an empty list"
	case v.Kind == manifest.Array && len(v.Items) > 3:
		return fmt.Sprintf("%d entries", len(v.Items))
	}
	text := string(v.JSON())
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
