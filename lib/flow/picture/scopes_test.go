package picture_test

import (
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow/picture"
)

// Every picture says what a scope asks before it runs, as it does of a task.
func TestAScopeSaysWhatItAsks(t *testing.T) {
	w := read(t, []byte(`{"steps": {"a": {"handler": {"name": "x"}}, "s": {"needs": ["a"], "when": ".steps.a.result.rows == 7", "steps": {"x": {"pass": {}}}}}}`))
	if got, want := picture.Text(w, nil), "2 s    scope of 1 step  once a succeeded, if .steps.a.result.rows == 7\n"; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant with\n%s", got, want)
	}
	for name, drawn := range map[string]string{"Mermaid": strings.NewReplacer("#46;", ".", "#61;", "=").Replace(picture.Mermaid(w, nil)), "SVG": picture.SVG(w, nil)} {
		if !strings.Contains(drawn, "if .steps.a.result.rows == 7") {
			t.Errorf("%s does not say it:\n%s", name, drawn)
		}
	}
}

// Every picture says what stops a scope.
func TestAScopeSaysWhatStopsIt(t *testing.T) {
	w := read(t, []byte(`{"steps": {"s": {"timeout": "30m", "on_failure": "stop", "steps": {"x": {"handler": {"name": "x"}}}}}}`))
	if got, want := picture.Text(w, nil), "1 s    scope of 1 step, at most 30m, stops at a failure\n"; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant with\n%s", got, want)
	}
	for name, drawn := range map[string]string{"Mermaid": picture.Mermaid(w, nil), "SVG": picture.SVG(w, nil)} {
		if !strings.Contains(drawn, "at most 30m") || !strings.Contains(drawn, "stops at a failure") {
			t.Errorf("%s does not say it:\n%s", name, drawn)
		}
	}
}
