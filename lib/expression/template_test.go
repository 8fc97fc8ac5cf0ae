package expression_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/expression"
)

func TestATemplateIsFilledIn(t *testing.T) {
	for template, want := range map[string]string{
		`"${ .steps.extract.result.rows }"`:        `5`,
		`"${ {id: .steps.extract.result.rows} }"`:  `{"id":5}`,
		`"${{id: {x: \"}\"}}}"`:                    `{"id":{"x":"}"}}`,
		`"rows: ${ .steps.extract.result.rows }."`: `"rows: 5."`,
		`"${ .input.s } and ${ .input.o }"`:        `"Héllo, world and {\"x\":1,\"y\":[true,null]}"`,
		`"$${ .input }"`:                           `"${ .input }"`,
		`"$${${ .input.a }$${"`:                    `"${1${"`,
		`"$$${ 1 }"`:                               `"$${ 1 }"`,
		`"costs $5 {x} }"`:                         `"costs $5 {x} }"`,
		`""`:                                       `""`,
		`[1, "${ .input.b }", {"a b": "x${ 1 }"}, null, 1.50]`: `[1,[3,1,2],{"a b":"x1"},null,1.50]`,
		`" ${ .input.a }"`:                                         `" 1"`,
		`"${ .input.n }${ true }"`:                                 `"nulltrue"`,
		`"${ \"a\\(\"}\")b\" }"`:                                   `"a}b"`,
		`"${ .input.a # } a comment\n}"`:                           `1`,
		`{"n": 12345678901234567890123, "big": "${ .input.big }"}`: `{"big":12345678901234567890123,"n":12345678901234567890123}`,
		`{"f": "${ .input.f }"}`:                                   `{"f":1.50}`,
		`{"$${a": 1, "$b $$${": 2}`:                                `{"$b $${":2,"${a":1}`,
		`{"$${a": {"$${b}$${": "${ .input.a }"}}`:                  `{"${a":{"${b}${":1}}`,
	} {
		parsed, err := expression.ParseTemplate([]byte(template))
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		b := expression.NewBudget(t.Context())
		v, err := parsed.Eval(b, "", read(t, sample))
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if got, err := b.Marshal(v, expression.MaxBytes); err != nil || string(got) != want {
			t.Errorf("%s gives %s, %v; want %s", template, got, err, want)
		}
	}
}

func TestWhatIsWrongWithATemplateIsToldWithItsPlace(t *testing.T) {
	for template, want := range map[string]string{
		`"a ${ .inptu }"`:                     `: got "inptu" at character 7, want one of input, run and steps; did you mean "input"?`,
		`{"a": ["é${ now }"]}`:                `.a[0]: got "now" at character 5, want another function: the result would be another at each attempt`,
		`"a ${ .input"`:                       `: got "${" at character 3, want a } behind the expression; for the characters themselves write $${`,
		`"${ \"}\""`:                          `: got "${" at character 1, want a } behind the expression; for the characters themselves write $${`,
		`{"a": {"é${ .input }": "${ now }"}}`: `.a: got "${" at character 2, want a name without an expression: these stand in texts; for the characters themselves write $${`,
		`{"$${${a": 1}`:                       `: got "${" at character 4, want a name without an expression: these stand in texts; for the characters themselves write $${`,
		`"${ }"`:                              `: got " ", want an expression such as .input or .steps.NAME.result`,
	} {
		_, err := expression.ParseTemplate([]byte(template))
		var at *expression.At
		if !errors.As(err, &at) || at.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", template, err, want)
		}
	}
	parsed, err := expression.ParseTemplate([]byte(`{"a": [1, "x ${ .input.s.t }"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parsed.Eval(expression.NewBudget(t.Context()), "steps.x.input", read(t, sample)); err == nil || !strings.HasPrefix(err.Error(), "steps.x.input.a[1]: ") {
		t.Errorf("it fails with %v, want the place", err)
	}
}

func TestATemplateThatIsOnlyAResultSaysSo(t *testing.T) {
	for template, want := range map[string]string{
		`"${ .steps.a.result }"`: "a", `"${.steps[\"my-step\"].result}"`: "my-step", `"${ .steps.a.result }."`: "", `"${ .steps.a.result.x }"`: "", `"${ .steps.a }"`: "", `["${ .steps.a.result }"]`: "", `"${ .input }"`: "",
		`"${ .steps.a.state }"`: "", `"${ (.steps.a.result) }"`: "", `"${ .steps.a.result? }"`: "",
	} {
		parsed, err := expression.ParseTemplate([]byte(template))
		if err != nil {
			t.Errorf("%s: %v", template, err)
		} else if parsed.Bare() != want {
			t.Errorf("%s is %q, want %q", template, parsed.Bare(), want)
		}
	}
}

func TestATemplateReadsWhatItsExpressionsRead(t *testing.T) {
	parsed, err := expression.ParseTemplate([]byte(`{"a": "${ .steps.a.state }", "b": ["x ${ .run.id } ${ .steps.a.error // .steps.b.result }"]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(parsed.Reads()); got != "{false true map[a:[state error] b:[result]] false}" || parsed.Constant() {
		t.Errorf("it reads %s", got)
	}
}
