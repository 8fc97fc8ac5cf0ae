package expression_test

import (
	"errors"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/expression"
)

func TestAKey(t *testing.T) {
	input := read(t, `{"payload": {"customer": "acme", "n": 1.50, "same": 15e-1, "whole": 3.0, "big": 123456789012345678901234567890, "zero": -0, "yes": true, "none": null, "list": [1], "object": {}, "empty": ""},
		"job": "import", "labels": {"team": "billing"}, "nominal_time": "2026-01-02T03:04:05.000Z"}`).(map[string]any)
	for text, want := range map[string]string{
		"${ .payload.customer }":                   "acme",
		"${ .payload.customer | ascii_upcase }":    "ACME",
		"${ .labels.team }/${ .payload.customer }": "billing/acme",
		"x-${ .payload.n }":                        "x-1.50",
		"${ .payload.n }":                          "1.5",
		"${ .payload.same }":                       "1.5",
		"${ .payload.whole }":                      "3",
		"${ .payload.whole + 0 }":                  "3",
		"${ .payload.big }":                        "123456789012345678901234567890",
		"${ .payload.zero }":                       "0",
		"${ .payload.yes }":                        "true",
		"${ .payload.empty }":                      "",
		"${ .job }":                                "import",
		"${ .nominal_time[:10] }":                  "2026-01-02",
		"${ .payload.none // \"default\" }":        "default",
	} {
		k, err := expression.ParseKey(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := k.Eval(t.Context(), input); err != nil || got != want {
			t.Errorf("%s gives %q, %v, want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"${ .payload.none }":   "it gives null; want a text, a number, true or false",
		"${ .payload.gone }":   "it gives null; want a text, a number, true or false",
		"${ .payload.list }":   "it gives an array; want a text, a number, true or false",
		"${ .payload.object }": "it gives an object; want a text, a number, true or false",
		"${ .labels }":         "it gives an object; want a text, a number, true or false",
		"${ error(\"no\") }":   "error: no",
	} {
		k, err := expression.ParseKey(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := k.Eval(t.Context(), input)
		var failed *expression.Failure
		if !errors.As(err, &failed) || failed.Message != want {
			t.Errorf("%s gives %q, %v, want it to fail: %s", text, got, err, want)
		}
	}
}

func TestWhatIsNoKeyIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"customer":        `got "customer", want an expression in it, such as ${ .payload.customer }: without one, all runs have the same key`,
		"${ .input.a }":   `got "input" at character 5, want one of payload, job, labels and nominal_time`,
		"${ .steps.a }":   `got "steps" at character 5, want one of payload, job, labels and nominal_time`,
		"${ . }":          `got "." at character 4, want the name of what is read: .payload, .job, .labels or .nominal_time`,
		"${ now }":        `got "now" at character 4, want another function: the result would be another at each attempt`,
		"a ${ .payload.a": `got "${" at character 3, want a } behind the expression; for the characters themselves write $${`,
		"${ .paylod.a }":  `got "paylod" at character 5, want one of payload, job, labels and nominal_time; did you mean "payload"?`,
		"${  }":           `got "  ", want an expression such as .payload.customer`,
	} {
		if _, err := expression.ParseKey(text); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestAKeyThatDoesNotNameThePayloadDoesNotReadIt(t *testing.T) {
	for text, want := range map[string]bool{"${ .job }": false, "${ .labels.payload }": false, "${ .payload }": true, "${ .job }${ .payload.a }": true} {
		if k, err := expression.ParseKey(text); err != nil || k.ReadsPayload() != want {
			t.Errorf("%s: %t, %v", text, k.ReadsPayload(), err)
		}
	}
}
