package expression_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/itchyny/gojq"

	"github.com/belfry-scheduler/belfry/lib/expression"
)

const sample = `{"input": {"a": 1, "b": [3, 1, 2], "s": "Héllo, world", "o": {"x": 1, "y": [true, null]}, "n": null, "f": 1.50, "big": 12345678901234567890123,
	"list": [{"k": "p", "v": 2}, {"k": "q", "v": 1}, {"k": "p", "v": 3}], "nested": [[1, [2]], [3]], "json": "{\"z\": [1]}", "when": "2026-01-02T03:04:05Z", "t": 1767322985},
	"run": {"id": "etl~1", "nominal_time": "2026-01-02T03:04:05Z"},
	"steps": {"extract": {"state": "succeeded", "result": {"rows": 5, "files": ["x", "y"]}, "attempt": 2}, "my-step": {"state": "failed", "error": "no disk"}}}`

// give evaluates an expression over the sample.
func give(t *testing.T, text string) (any, error) {
	t.Helper()
	e, err := expression.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e.Eval(expression.NewBudget(t.Context()), read(t, sample))
}

func read(t *testing.T, text string) any {
	t.Helper()
	v, err := expression.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// likeJq are expressions that give what jq gives, each function among them.
var likeJq = []string{
	`.input`, `.input.a`, `.input["a"]`, `.input."a"`, `.steps["my-step"].error`, `.steps.extract | .result.rows`, `.steps.extract`, `.input.none.none`, `.input.a.b?`, `[.input.a.b?]`,
	`.input.a + 1`, `.input.a - .input.f * 2 / 3 % 2`, `-.input.a`, `-(.input.b | length)`, `.input.big + 1`, `.input.big * .input.big`, `1 / 3`, `1 / 0`, `5 % 0`, `-5 % 3`, `.input.b + [1]`, `.input.o + {z: 1}`,
	`.input.s + "!"`, `null + 1`, `{} + 1`, `.input.o * {x: {w: 1}}`, `.input.b - [1]`, `[1, 2, 1] - [1]`, `[[1], 2] - [[1]]`, `"a" - 1`, `[] - {}`, `{} * 2`, `[] * 2`,
	`.input.a == 1`, `.input.o == {y: [true, null], x: 1}`, `.input.b < [3, 2]`, `"a" < "b"`, `null < false`, `1 != 1.0`, `.input.big >= 1e22`, `.input.b > .input.o`, `1 <= "x"`,
	`.input.b[0]`, `.input.b[-1]`, `.input.b[.input.a]`, `.input.b[1:]`, `.input.b[:-1]`, `.input.s[1:3]`, `.input.b[.input.a:2]`, `.input.n[1:2]`, `.input.b[7]`, `.input.o["x", "y"]`, `[.input.b[0, 1]]`, `.input.a[0]`, `[.input.b[(0, 1):(2, 3)]]`,
	`.input.b[]`, `[.input.b[]]`, `[.input.o[]]`, `.input.a[]`, `[.input.a[]?]`, `[.input.b[] | . + 1]`, `[.input[]?]`, `[.input.nested[][]]`, `.input.list[1].k`, `[.input.list[].k]`, `[.input.list[] | {k, v: (.v + 1)}]`,
	`{a: .input.a, "b": .input.b, ("c" + "d"): 1, "x\(1)": 2}`, `{(.input.b[] | tostring): 1}`, `[{a: (1, 2), b: (3, 4)}]`, `.input as {a: $q, b: [$x, $y], $s} | [$q, $x, $y, $s]`, `.input.a as $v | {$v}`, `.input.o | {x}`, `.input.o | {"x"}`, `{(1): 2}`,
	`"x-\(.input.a)-\(.input.o)-\(.input.s)"`, `["\(1, 2)-\(3, 4)"]`, `@base64 "\(.input.s)?"`, `.input.s | @uri`, `.input.s | @base64 | @base64d`, `[1, "a\"b", null] | @csv`, `[1, "a"] | @tsv`, `"<&'>" | @html`, `[1, "a b'c"] | @sh`, `.input.o | @json`, `.input.o | @text`, `{} | @csv`,
	`if .input.a == 1 then "one" elif .input.a then 2 else 3 end`, `.input.n | if . then 1 end`, `.input.n // "else"`, `[.input.b[] | select(. > 1)] | add`, `(.input.none // .input.a) | . + 1`, `[(false, null, 1) // 2]`, `.input.a and .input.n`, `[(true, false) or false]`, `.input.n | not`,
	`try error("x") catch .`, `try error({a: 1}) catch .a`, `error("x")`, `error(null)`, `.input.o | error`, `[.input.b[] | try (if . == 1 then error("one") else . end) catch "caught"]`, `[1, empty, 2]`, `try (1 / 0) catch .`,
	`.input.b | map(. * 2)`, `.input.b | sort`, `.input.b | sort_by(-.)`, `.input.list | sort_by(.k, .v)`, `.input.list | group_by(.k)`, `.input.list | unique_by(.k)`, `.input.list | min_by(.v)`, `.input.list | max_by(.v)`, `[3, 1, 3] | unique`, `.input.b | min, max | . + 0 | select(. > 2)`,
	`.input.b | max`, `[] | min`, `.input.b | reverse`, `.input.b | add`, `add(.input.b[])`, `["a", null, "b"] | add`, `[{a: 1}, {b: 2}] | add`, `[] | add`, `.input.nested | flatten`, `.input.nested | flatten(1)`, `.input.o | to_entries`, `[{name: "a", value: 1}] | from_entries`, `.input.o | with_entries(select(.key != "x"))`,
	`.input.o | keys`, `.input.b | keys`, `.input.o | has("x")`, `.input.b | has(7)`, `.input.s | length`, `.input.s | utf8bytelength`, `[.input[] | length?]`, `.input.o | type`, `[.input[] | type]`, `[.input[] | scalars]`, `[.input[] | arrays, objects, strings, numbers, nulls, booleans, iterables] | length`, `[.input[] | values] | length`,
	`first(.input.b[])`, `last(.input.b[])`, `[limit(2; .input.b[])]`, `[skip(1; .input.b[])]`, `nth(1; .input.b[])`, `.input.b | first`, `.input.b | last`, `isempty(.input.b[])`, `any(.input.b[]; . == 2)`, `all(.input.b[]; . > 1)`, `.input.b | any(. > 2)`, `.input.b | all(. > 0)`, `[true, false] | any`, `[true, false] | all`, `[limit(0; 1, 2)]`, `[limit(-1; 1)]`,
	`1.7 | floor, ceil, round, trunc | select(. == 2) | . + 0.5 | floor`, `16 | sqrt`, `-3 | abs`, `pow(2; 10)`, `pow(2; -1074)`, `pow(-2; 3)`, `pow(1.5; 2)`, `pow(0; -1)`, `pow(-1; 1e300)`, `pow(10; 22)`, `pow(10; 400)`, `pow(7; 0)`, `[pow(2, 3; 4, 5)]`, `"true" | toboolean`, `"12" | tonumber`, `"x" | tonumber`, `12 | tostring`, `.input.o | tojson`, `.input.json | fromjson`, `"[1" | fromjson`, `1 | fromjson`, `.input.f | tojson`, `.input.big | tostring`,
	`.input.s | ascii_downcase`, `.input.s | ascii_upcase`, `" a " | trim`, `" a " | ltrim + rtrim`, `.input.s | startswith("Hé")`, `.input.s | endswith("world")`, `.input.s | ltrimstr("H")`, `.input.s | rtrimstr("d")`, `.input.s | split(", ")`, `"abc" | split("")`, `"" | split("a")`, `.input.b | join("-")`, `["a", null, 1.5, true] | join(", ")`, `[] | join(",")`, `[[1]] | join(",")`,
	`[.input.s | split(",", "l"), startswith("H", "x"), ltrimstr("H", "x"), split(empty)]`, `[.input.nested | flatten(0, 1, 2)]`, `[{a: (1, 2), a: 3, "b": (4, 5)}]`, `.input.s | contains("ello")`, `.input.b | contains([1, 3])`, `.input.o | contains({y: [true]})`, `["foobar"] | contains(["bar"])`, `1 | contains(1)`, `1 | contains("a")`, `{a: 1} | contains({a: "x"})`, `{a: 1} | contains({b: 1})`, `null | contains(null)`,
	`.input.t | todate`, `.input.when | fromdate`, `.input.when | fromdateiso8601`, `.input.t | todateiso8601`, `"x" | fromdate`, `.run.nominal_time[:10]`, `[.steps.extract.result.files[] | {file: .}]`, `.steps.extract.result.rows > 3 and .steps["my-step"].state == "failed"`,
}

// What an expression pays for makes no difference to what it gives: that is what jq gives.
func TestExpressionsGiveWhatJqGives(t *testing.T) {
	for _, text := range likeJq {
		got, err := give(t, text)
		query, parseErr := gojq.Parse(text)
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		all := query.Run(read(t, sample))
		want, more := all.Next()
		_, second := all.Next()
		wantErr, _ := want.(error)
		switch {
		case !more || second && wantErr == nil:
			if err == nil {
				t.Errorf("%s: got %v, and jq gives no value, or several", text, got)
			}
		case (err != nil) != (wantErr != nil):
			t.Errorf("%s: got %v, %v; jq gives %v", text, got, err, want)
		case err == nil && gojq.Compare(got, want) != 0:
			t.Errorf("%s: got %v; jq gives %v", text, got, want)
		}
		var failure *expression.Failure
		if err != nil && !errors.As(err, &failure) {
			t.Errorf("%s: got the error %v, which is no Failure", text, err)
		}
	}
}

func TestWhatIsNoExpressionIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		`.`:                                `got ".", want the name of what is read: .input, .run or .steps.NAME`,
		`.steps`:                           `got "steps" at character 2, want the name of a step behind it, such as .steps.NAME`,
		`.steps | keys`:                    `got "steps" at character 2, want the name of a step behind it, such as .steps.NAME`,
		`.steps[.input.name].result`:       `got "steps" at character 2, want the name of a step behind it, such as .steps.NAME`,
		`. as $all | $all`:                 `got "." at character 1, want the name of what is read: .input, .run or .steps.NAME`,
		`[.[]]`:                            `got "." at character 2, want the name of what is read: .input, .run or .steps.NAME`,
		`{steps}`:                          `got "steps" at character 2, want the name of a step behind it, such as .steps.NAME`,
		`.inptu`:                           `got "inptu" at character 2, want one of input, run and steps; did you mean "input"?`,
		`.item`:                            `got "item" at character 2, want one of input, run and steps`,
		`.steps.a.reslt`:                   `got "reslt" at character 10, want a field of a step: state, result, error, attempt, started_at or ended_at; did you mean "result"?`,
		`.input | slect(.a)`:               `got "slect" at character 10, want one of the functions that expressions may use; did you mean "select"?`,
		`"é" | now`:                        `got "now" at character 7, want another function: the result would be another at each attempt`,
		`env.PATH`:                         `got "env" at character 1, want another function: an expression reads no environment`,
		`$ENV.PATH`:                        `got "$ENV" at character 1, want another function: an expression reads no environment`,
		`$__loc__`:                         `got "$__loc__", want a variable that as has bound`,
		`$x`:                               `got "$x", want a variable that as has bound`,
		`1 as $x | 2 as $y | {$z}`:         `got "$z" at character 22, want a variable that as has bound`,
		`input`:                            `got "input", want another function: what an expression reads is .input, with a dot`,
		`.input | test("a+")`:              `got "test" at character 10, want another function: regular expressions are not taken; use startswith, endswith, contains or split`,
		`.input | map(1; 2)`:               `got "map" at character 10, want it with 1 arguments, not 2`,
		`.input.a = 1`:                     `got "=" at character 10, want an expression that assigns nothing`,
		`.input.a |= 1`:                    `got "|=" at character 10, want an expression that assigns nothing`,
		`.input.a += 1`:                    `got "+=" at character 10, want an expression that assigns nothing`,
		`def f: f; f`:                      `got "def" at character 1, want an expression without functions of its own`,
		`import "a" as a; 1`:               `got "import" at character 1, want an expression without modules`,
		`reduce .input[] as $x (0; . + 1)`: `got "reduce" at character 1, want add, map, select or another function that ends by itself`,
		`foreach .input[] as $x (0; 1)`:    `got "foreach" at character 1, want map, select or another function that ends by itself`,
		`label $out | break $out`:          `got "label" at character 1, want first or limit`,
		`[..]`:                             `got ".." at character 2, want the names of what is meant: .. goes as deep as it likes`,
		`.input | @base32`:                 `got "@base32" at character 10, want one of the formats @base64, @base64d, @csv, @html, @json, @sh, @text, @tsv, @uri`,
		`.input as [$a] ?// $a | 1`:        `got "?//" at character 16, want one pattern behind as`,
		`.input.a +`:                       `got ".input.a +", want an expression of jq: it ends too early`,
		`.input.a ! 1`:                     `got "!" at character 10, want an expression of jq: unexpected token "!"`,
		`.input | _glance`:                 `got "_glance" at character 10, want one of the functions that expressions may use`,
		`["steps", .steps]`:                `got "steps" at character 12, want the name of a step behind it, such as .steps.NAME`,
		`{steps: .steps}`:                  `got "steps" at character 10, want the name of a step behind it, such as .steps.NAME`,
		`"now \(now)"`:                     `got "now" at character 8, want another function: the result would be another at each attempt`,
		"1 # now\n| now":                   `got "now" at character 11, want another function: the result would be another at each attempt`,
		` `:                                `got " ", want an expression such as .input or .steps.NAME.result`,
		`if .input then 1 end`:             `got "if" at character 1, want an else: without one it gives all that there is to read`,
	} {
		e, err := expression.Parse(text)
		if err == nil {
			t.Errorf("%s is taken, and reads %+v", text, e.Reads())
		} else if err.Error() != want {
			t.Errorf("%s:\n got %s\nwant %s", text, err, want)
		}
	}
	if _, err := expression.Parse("." + strings.Repeat("x", expression.MaxText)); err == nil {
		t.Error("an expression of 1,025 characters is taken")
	}
}

func TestWhatAnExpressionReadsIsKnownBefore(t *testing.T) {
	for text, want := range map[string]string{
		`.input.a`:                               `{true false map[] false}`,
		`.run.id`:                                `{false true map[] false}`,
		`1 + 1`:                                  `{false false map[] false}`,
		`.steps.a.result`:                        `{false false map[a:[result]] false}`,
		`.steps.a | .result.rows > .input.least`: ``,
		`.steps | .a | .state`:                   `{false false map[a:[state]] false}`,
		`(.steps.a, .steps.b) | .state`:          ``,
		`first((.steps.a, .steps.b) | select(.state == "failed") | .error)`: `{false false map[a:[state error] b:[state error]] false}`,
		`.steps["my-step"].result // .steps.a.error`:                        `{false false map[a:[error] my-step:[result]] false}`,
		`.steps.a as {result: {$rows}, $state} | [$rows, $state]`:           `{false false map[a:[state result]] false}`,
		`. as $c | [1, 2] | map(. + $c.steps.a.result)`:                     `{false false map[a:[result]] false}`,
		`if .input then .steps.a else .steps.b end | .state`:                `{true false map[a:[state] b:[state]] false}`,
		`.steps.a`:                         `{false false map[a:[state result error attempt started_at ended_at]] false}`,
		`"\(.steps.a.result)"`:             `{false false map[a:[result]] false}`,
		`{steps: .steps.a.state}`:          `{false false map[a:[state]] false}`,
		`.input.steps.x.anything`:          `{true false map[] false}`,
		`.steps.a.result.steps.b`:          `{false false map[a:[result]] false}`,
		`[.steps.a.result[] | .run]`:       `{false false map[a:[result]] false}`,
		`.caught[0] | .error, .code`:       ``,
		`[.caught[].step]`:                 `{false false map[] true}`,
		`try .steps.a.result catch .steps`: `{false false map[a:[result]] false}`,
	} {
		e, err := expression.Parse(text)
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if got := fmt.Sprint(e.Reads()); want != "" && got != want {
			t.Errorf("%s reads %s, want %s", text, got, want)
		}
	}
}

// A step is told where it is named as one, and not where the same word says something else.
func TestWhereAStepIsNamed(t *testing.T) {
	for text, want := range map[string]int{
		`.input.extrct + .steps.extrct.result`:            24,
		`.input["extrct"] + .steps["extrct"].result`:      28,
		`"extrct" + .steps.extrct.result`:                 19,
		`"steps.extrct" + .steps.extrct.result`:           25,
		`# .steps.extrct` + "\n" + `.steps.extrct.result`: 24,
		`"\(.steps.extrct.result)"`:                       11,
		`"é" | .steps."extrct".state`:                     15,
		`.steps.extrct2.state + .steps.extrct.state`:      31,
		`. as {steps: {extrct: {$state}}} | $state`:       15,
	} {
		e, err := expression.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := e.Place("extrct"); got != want {
			t.Errorf("%s names it at character %d, want %d", text, got, want)
		}
	}
}

// Powers are the same on each machine: whole exponents are reckoned, and others are not.
func TestAPowerIsExact(t *testing.T) {
	for text, want := range map[string]string{
		`pow(3; 40) == 12157665459056928801`: `true`, `pow(1.0000000000000002; 9007199254740992)`: `7.389056098930649`, `pow(0.1; 3)`: `0.0010000000000000002`, `pow(5e-324; 1)`: `5e-324`,
		`pow(2; 0.5)`: `pow takes a whole exponent, not number (0.5); for a root there is sqrt`, `pow(2; -1 | sqrt)`: `pow takes a whole exponent, not number (null); for a root there is sqrt`,
		`pow("a"; 1)`: `pow cannot be given: string ("a")`, `pow(1; [2])`: `pow cannot be given: array ([2])`,
	} {
		v, err := give(t, text)
		got := fmt.Sprint(err)
		if err == nil {
			written, _ := gojq.Marshal(v)
			got = string(written)
		}
		if got != want {
			t.Errorf("%s gives %s, want %s", text, got, want)
		}
	}
}

// How a hostile text ends.
const (
	refused = "it is refused"      // by Parse
	stopped = "it is over budget"  // and nothing in it catches that
	fails   = "it fails"           // before it has done anything large
	given   = "it gives something" // within the budget
)

// hostile are texts that would take all the memory or time there is, or nearly so, and how each ends.
func hostile() []struct{ name, text, end string } {
	doubled := strings.Repeat("|[.,.]", 120)
	letters := ""
	for i := range 190 {
		letters += fmt.Sprintf("%c%c:1,", 'a'+i/26, 'a'+i%26)
	}
	digits := `.input.big * .input.big * 1 as $b | `
	return []struct{ name, text, end string }{
		{"a text times a number", `"x" * 1000000000`, fails},
		{"a far index", `.input.list[100000000]`, given},
		{"an assignment", `.input.list[100000000] = 1`, refused},
		{"setpath", `.input | setpath([100000000]; 1)`, refused},
		{"recursion", `def f: [f]; f`, refused},
		{"recurse", `.input | recurse([.])`, refused},
		{"range", `[range(1000000000000)]`, refused},
		{"repeat", `[limit(1000000000; repeat(1))]`, refused},
		{"until", `0 | until(false; . + 1)`, refused},
		{"reduce", `reduce .input.list[] as $x (0; . + 1)`, refused},
		{"splits", `.input.s | splits("(a+)+$")`, refused},
		{"regular expression", `.input.s | test("((a{100}){100}){100}")`, refused},
		{"implode", `[1114111] | implode`, refused},
		{"environment", `env`, refused},
		{"halt", `halt`, refused},
		{"doubling a text", `.input.s` + strings.Repeat("|.+.", 150), stopped},
		{"doubling an array", `.input.list` + strings.Repeat("|.+.", 150), stopped},
		{"doubling by nesting", `.input.list` + doubled + ` | . == .`, stopped},
		{"nested, as JSON", `.input.list` + doubled + ` | tojson`, stopped},
		{"nested, as text", `.input.list` + doubled + ` | "\(.)"`, stopped},
		{"nested, flattened", `.input.list` + doubled + ` | flatten`, stopped},
		{"nested, sorted", `.input.list` + doubled + ` | sort`, stopped},
		{"nested, unique", `.input.list` + doubled + ` | unique_by(.)`, stopped},
		{"nested, contains", `.input.list` + doubled + ` | contains(.)`, stopped},
		{"nested, as it is", `.input.list` + doubled, stopped},
		{"nested, as an error", `.input.list` + doubled + ` | error`, stopped},
		{"nested, joined", `.input.list` + doubled + ` | join(",")`, fails},
		{"nested, subtracted", `.input.list` + doubled + ` | . - .`, stopped},
		{"nested, base64", `.input.list` + doubled + ` | @base64`, stopped},
		{"nested, merged", `{a: .input.list}` + strings.Repeat("|{a:.,b:.}", 90) + ` | . * .`, stopped},
		{"squared", `.input.big` + strings.Repeat("|.*.", 150), fails},
		{"many values", `[(1, 2)` + strings.Repeat("|(.,.)", 100) + `]`, stopped},
		{"many values, none of them", `first((1, 2)` + strings.Repeat("|(.,.)", 100) + ` | select(. > 2))`, stopped},
		{"every one with every other", `[.input.list[] as $a | .input.list[] as $b | .input.list[] as $c | [$a, $b, $c]]`, stopped},
		{"every one with the whole", `[.input.list[] as $a | .input.list | length] | add`, stopped},
		{"a slice for each", `.input.s as $s | [.input.list[] | $s[1:]] | length`, stopped},
		{"texts for each", `.input.s as $s | [.input.list[] | $s + "x"] | length`, stopped},
		{"a sort for each", `.input.list as $l | [.input.list[] | $l | sort] | length`, stopped},
		{"split into letters", `[.input.s, .input.s, .input.s | split("")]`, stopped},
		{"joined by a long text", `.input.s as $s | .input.list | join($s)`, stopped},
		{"numbers of a text", `(.input.list | map("9") | add) | tonumber`, stopped},
		{"JSON out of a text", `("[" + (.input.list | map("[") | add)) | fromjson`, stopped},
		{"a budget caught", `try (.input.list` + strings.Repeat("|.+.", 100) + `) catch "caught"`, stopped},
		{"a budget left out", `(.input.list` + strings.Repeat("|.+.", 100) + `)? // "caught"`, stopped},
		{"any of many", `any(.input.list[] | (1, 2)` + strings.Repeat("|(.,.)", 100) + `; . > 2)`, stopped},
		{"grouped by the whole", `.input.list as $l | .input.list | group_by($l) | length`, stopped},
		{"least by the whole", `.input.list as $l | .input.list | min_by($l)`, stopped},
		{"names in one", `.input.s as $s | [.input.list[] | {key: $s, value: 1}] | from_entries`, stopped},
		{"names looked for", `.input.s as $s | {($s): 1} as $o | [.input.list[] | $o[$s]] | length`, stopped},
		{"names added", `.input.s as $s | {($s): 1} as $o | [.input.list[] | $o + {a: 1}] | length`, stopped},
		{"names asked for", `.input.s as $s | {($s): 1} as $o | [.input.list[] | . as $x | $o | has($s)] | length`, stopped},
		{"beginnings", `.input.s as $s | ($s + "x") as $t | [.input.list[] | . as $x | $t | startswith($s)] | length`, stopped},
		{"names entered", `.input.s as $s | .input.list | map({key: $s, value: 1}) | {a: .} | with_entries(.value[]) | length`, stopped},
		{"names", `.input.s as $s | [.input.list[] | {($s): 1}] | add`, stopped},
		{"a number for each", `.input.big as $b | [.input.list[] | $b]`, stopped},
		{"a number for each, as text", `.input.big as $b | "\([.input.list[] | $b])"`, stopped},
		{"numbers, doubled", `[.input.big]` + strings.Repeat("|.+.", 16), stopped},
		{"numbers, doubled by nesting", `.input.big` + doubled, stopped},
		{"numbers reckoned, doubled by nesting", digits + `$b` + doubled, stopped},
		{"numbers reckoned, for each", digits + `[.input.list[] | $b]`, stopped},
		{"numbers reckoned, for each, as text", digits + `[.input.list[] | $b] | tojson`, stopped},
		{"numbers rounded", `.input.big as $b | [.input.list[] | $b | floor] | length`, stopped},
		{"numbers compared", `.input.big as $b | [.input.list[] | $b] | sort | length`, stopped},
		{"a power for each", `.input.big as $b | [.input.list[] | pow($b; 1)] | length`, stopped},
		{"a slice by numbers for each", `.input.big as $b | [.input.list[] | [1][$b:$b]] | length`, stopped},
		{"a letter for each", `.input.s as $s | [.input.list[] | $s[0]] | length`, stopped},
		{"a letter far off, for each", `.input.s as $s | [.input.list[] | $s[-1]] | length`, stopped},
		{"the first letter for each", `.input.s as $s | [.input.list[] as $x | $s | first] | length`, stopped},
		{"the last letter for each", `.input.s as $s | [.input.list[] as $x | $s | last] | length`, stopped},
		{"a text looked for, for each", `.input.s as $s | [.input.list[] as $x | $s | contains("b")] | length`, stopped},
		{"an error for each, of a name", `.input.s as $s | [.input.list[] | $s.a?] | length`, stopped},
		{"an error for each, of a list", `[.input.s] as $s | [.input.list[] | $s.a?] | length`, stopped},
		{"an error for each, of an object", `{a: .input.s} as $s | [.input.list[] | $s[0]?] | length`, stopped},
		{"an error for each, of a number", `[.input.s] as $s | [.input.list[] | try ($s | floor) catch .] | length`, stopped},
		{"an error for each, of a text", `[.input.s] as $s | [.input.list[] | try ($s | ascii_downcase) catch .] | length`, stopped},
		{"an error for each, of a sum", `[.input.s] as $s | [.input.list[] | try ($s + 1) catch .] | length`, stopped},
		{"an error for each, of a product", `.input.s as $s | [.input.list[] | try ($s * 2) catch .] | length`, stopped},
		{"an error for each, of a pattern", `.input.s as $s | [.input.list[] | try ($s as [$a] | $a) catch .] | length`, stopped},
		{"an error for each, of a pattern in a pattern", `{a: .input.s} as $s | [.input.list[] | try ($s as {a: {$b}} | $b) catch .] | length`, stopped},
		{"an error for each, of a beginning", `.input.s as $s | [.input.list[] | try ($s | startswith(1)) catch .] | length`, stopped},
		{"an error for each, of a beginning of a list", `[.input.s] as $s | [.input.list[] | try ("a" | startswith($s)) catch .] | length`, stopped},
		{"an error for each, of what it has", `[.input.s] as $s | [.input.list[] | try ($s | has("a")) catch .] | length`, stopped},
		{"an error for each, of a boolean", `.input.s as $s | [.input.list[] | try ($s | toboolean) catch .] | length`, stopped},
		{"an error for each, of a key", `[.input.s] as $s | [.input.list[] | try {($s): 1} catch .] | length`, stopped},
		{"an error for each, of JSON", `[.input.s] as $s | [.input.list[] | try ($s | fromjson) catch .] | length`, stopped},
		{"an error for each, of a least", `{a: .input.s} as $s | [.input.list[] | try ($s | min_by(1)) catch .] | length`, stopped},
		{"an error for each, of a sign", `[.input.s] as $s | [.input.list[] | try (-$s) catch .] | length`, stopped},
		{"an error for each, of a date", `[.input.s] as $s | [.input.list[] | try ($s | todate) catch .] | length`, stopped},
		{"an error for each, of a time", `[.input.s] as $s | [.input.list[] | try ($s | fromdate) catch .] | length`, stopped},
		{"an error for each, of a limit", `[.input.s] as $s | [.input.list[] | try limit($s; 1) catch .] | length`, stopped},
		{"an error for each, of what contains", `[.input.s] as $s | [.input.list[] | try ($s | contains(1)) catch .] | length`, stopped},
		{"an error for each, of what is joined", `[[.input.s]] as $s | [.input.list[] | try ($s | join("")) catch .] | length`, stopped},
		{"an error for each, of an end", `[.input.s] as $s | [.input.list[] | try ([1][$s:]) catch .] | length`, stopped},
		{"split again and again", `"aaaaaaaa"` + strings.Repeat("|.+.", 16) + ` | [split(""` + strings.Repeat(`,""`, 200) + `)] | length`, stopped},
		{"flattened again and again", `.input.list as $l | $l | [flatten($l[] | 1)] | length`, stopped},
		{"many names again and again", `[{` + letters + `z: .input.list[]}] | length`, stopped},
		{"one name many times, again and again", `[{` + strings.Repeat("a:1,", 230) + `z: .input.list[]}] | length`, stopped},
		{"a long name again and again", `.input.s as $s | [{($s): 1, z: .input.list[]}] | length`, stopped},
		{"JSON for each", `.input.json as $j | [.input.list[] | $j | fromjson] | length`, stopped},
		{"JSON caught", `.input.json as $j | [.input.list[] | try ($j | fromjson) catch 1] | length`, stopped},
	}
}

// large is an input of 8 MiB.
func large(t testing.TB) any {
	list := make([]any, 200_000)
	for i := range list {
		list[i] = json.Number(fmt.Sprint(i))
	}
	v, err := expression.Decode([]byte(`{"input": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	many := map[string]any{}
	for i := range 20_000 {
		many[fmt.Sprint("name", i)] = json.Number("1")
	}
	v.(map[string]any)["input"] = map[string]any{"many": many, "named": map[string]any{strings.Repeat("n", 4<<20): true}, "list": list, "s": strings.Repeat("aé", 2<<20), "short": strings.Repeat("x", 64<<10), "big": json.Number(strings.Repeat("7", 300)),
		"json": "[" + strings.Repeat("{},", 1000) + "0]"}
	return v
}

// bounds holds an evaluation to its budgets, which are counted: whatever is done is paid for, so none takes more memory or time. It gives how it ended.
func bounds(t *testing.T, text string, in any) (v any, end string, err error) {
	t.Helper()
	const most = 128 << 20 // bytes allocated in all, most of which are free again at once
	e, err := expression.Parse(text)
	if err != nil {
		var wrong *expression.Error
		if !errors.As(err, &wrong) || wrong.At < 0 || wrong.At > len(text)+1 {
			t.Errorf("%q is refused with %v", text, err)
		}
		return nil, refused, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := expression.NewBudget(t.Context())
	v, err = e.Eval(b, in)
	if err == nil {
		_, err = b.Marshal(v, expression.MaxBytes)
	}
	runtime.ReadMemStats(&after)
	steps, work := b.Spent()
	if used := after.TotalAlloc - before.TotalAlloc; used > most || steps > expression.MaxSteps+2 || work > expression.MaxWork {
		t.Errorf("%.80q took %d MiB, %d steps and %d bytes of work: %v", text, used>>20, steps, work, err)
	}
	var failure *expression.Failure
	switch {
	case err == nil:
		return v, given, nil
	case !errors.As(err, &failure):
		t.Errorf("%.80q: %v, want a Failure", text, err)
	case strings.HasPrefix(err.Error(), "it took more than"), strings.HasPrefix(err.Error(), "it went through more than"), strings.HasPrefix(err.Error(), "what comes of it has more than"), strings.HasPrefix(err.Error(), "it is too large"):
		return nil, stopped, err
	}
	return nil, fails, err
}

// A generator goes on inside of what it stands in. Whatever is done for each of its values is paid for each time.
func TestEachValueOfAGeneratorIsPaidFor(t *testing.T) {
	const size = 16 << 10
	in := map[string]any{"input": map[string]any{"s": strings.Repeat("a", size), "l": slices.Repeat([]any{1}, size/16), "o": map[string]any{strings.Repeat("n", size): 1},
		"b": json.Number(strings.Repeat("7", 300))}}
	// What takes a value of a generator, what that is, and how many bytes are gone through for it.
	type row struct {
		text, value string
		bytes       int
	}
	rows := map[string][]row{
		"has/1": {{`{a: 1} | has(%s)`, `$s`, size}}, "contains/1": {{`$s | contains(%s)`, `"b"`, size}, {`$l | contains(%s)`, `[2]`, size}}, "join/1": {{`$l | join(%s)`, `""`, size}},
		"split/1": {{`$s | split(%s)`, `"b"`, size}}, "flatten/1": {{`$l | flatten(%s)`, `1`, size}}, "pow/2": {{`pow($b; %s)`, `1`, 300}, {`pow(%s; 1)`, `$b`, 300}},
		"startswith/1": {{`$s | startswith(%s)`, `$s`, size}}, "endswith/1": {{`$s | endswith(%s)`, `$s`, size}}, "ltrimstr/1": {{`$s | ltrimstr(%s)`, `$s`, size}}, "rtrimstr/1": {{`$s | rtrimstr(%s)`, `$s`, size}},
		"objects":   {{`{($s): 1, z: %s}`, `1`, size}, {`{z: %s, ($s): 1}`, `1`, size}, {`{(%s): 1}`, `$s`, size}, {`{` + strings.Repeat("($s): 1, ", 4) + `z: %s}`, `1`, 4 * size}, {`{` + strings.Repeat("a: 1, ", 100) + `z: %s}`, `1`, 100 * 64}},
		"indexes":   {{`$o[%s]`, `$s`, size}, {`$s[%s]`, `1`, size}, {`$s[0:%s]`, `1`, size}, {`$s[%s:1]`, `0`, size}, {`$l[%s:1]`, `0`, size}},
		"texts":     {{`"\($s)\(%s)"`, `1`, size}, {`"\(%s)\($s)"`, `1`, size}, {`@base64 "\($s)\(%s)"`, `1`, size}},
		"operators": {{`$l + (%s)`, `[1]`, size}, {`(%s) + $l`, `[1]`, size}, {`$l - (%s)`, `[1]`, size}, {`$s == (%s)`, `$s`, size}, {`$l < (%s)`, `$l`, size}, {`$o * (%s)`, `{a: 1}`, size}},
	}
	// These have no argument of which they take the values, but evaluate it for something else, or give these on.
	inside := []string{"add/1", "all/1", "all/2", "any/1", "any/2", "error/1", "first/1", "group_by/1", "isempty/1", "last/1", "limit/2", "map/1", "max_by/1", "min_by/1", "nth/2", "select/1", "skip/2", "sort_by/1", "unique_by/1", "with_entries/1"}
	functions, _ := expression.Functions()
	for _, f := range functions {
		if _, listed := rows[f]; !strings.HasSuffix(f, "/0") && listed == slices.Contains(inside, f) {
			t.Errorf("what of %s with a generator?", f)
		}
	}
	work := func(text, value string, times int) int {
		text = `.input as {$s, $l, $o, $b} | [` + strings.ReplaceAll(text, "%s", "("+value+strings.Repeat(","+value, times-1)+")") + `] | length`
		e, err := expression.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		b := expression.NewBudget(t.Context())
		if v, err := e.Eval(b, in); err != nil || v != times {
			t.Fatalf("%s: %v, %v", text, v, err)
		}
		_, work := b.Spent()
		return work
	}
	const times = 9
	for what, some := range rows {
		for _, r := range some {
			if once, all := work(r.text, r.value, 1), work(r.text, r.value, times); all-once < (times-1)*r.bytes {
				t.Errorf("%s: %.80s pays %d bytes for one value, and %d for %d", what, r.text, once, all, times)
			}
		}
	}
	large := large(t)
	for _, f := range functions {
		name, count, _ := strings.Cut(f, "/")
		for _, x := range []string{"s", "short", "many", "named", "big"} {
			generator := `(1, "", $x)`
			switch count {
			case "1":
				bounds(t, fmt.Sprintf(`.input.%s as $x | [try ($x | %s(%s)) catch 1] | length`, x, name, generator), large)
			case "2":
				bounds(t, fmt.Sprintf(`.input.%s as $x | [try ($x | %s(%s; %s)) catch 1] | length`, x, name, generator, generator), large)
			}
		}
	}
}

// The budgets hold memory and time under any expression: both are counted, so each row comes out the same wherever it runs.
func TestNoExpressionTakesAllMemoryOrTime(t *testing.T) {
	in := large(t)
	for _, row := range hostile() {
		if _, end, err := bounds(t, row.text, in); end != row.end {
			t.Errorf("%s: %s: %v; want that %s", row.name, end, err, row.end)
		}
	}
}

// Whoever stops an evaluation, by its context, gets that as the error: the expression has not failed.
func TestAnEvaluationIsStoppedByItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e, err := expression.Parse(`[(1, 2)` + strings.Repeat("|(.,.)", 100) + `]`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(expression.NewBudget(ctx), read(t, `{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was stopped", err)
	}
}

func FuzzExpression(f *testing.F) {
	for _, text := range likeJq {
		f.Add(text)
	}
	if flag.Lookup("test.fuzz").Value.String() != "" { // else each has a test of its own
		for _, row := range hostile() {
			f.Add(row.text)
		}
	}
	in := large(f)
	f.Fuzz(func(t *testing.T, text string) {
		v, end, _ := bounds(t, text, in)
		again, endAgain, _ := bounds(t, text, in)
		if end != endAgain || end == given && gojq.Compare(v, again) != 0 {
			t.Errorf("%q: %s: %v, and then %s: %v", text, end, v, endAgain, again)
		}
	})
}

func TestFunctionsAreInTheirOrder(t *testing.T) {
	functions, formats := expression.Functions()
	if !slices.IsSorted(functions) || !slices.IsSorted(formats) || len(functions) < 60 {
		t.Errorf("got %v and %v", functions, formats)
	}
}

// An object has no order, and yet what an expression costs, and how it ends, is the same each time.
func TestAnEvaluationIsTheSameEachTime(t *testing.T) {
	names := map[string]any{}
	for i := range 50 {
		names[fmt.Sprint("n", i)] = strings.Repeat("x", i)
	}
	long := map[string]any{"a": []any{1, 2}, "few": names, "long": strings.Repeat("x", 7<<20), "big": json.Number(strings.Repeat("7", 300))}
	for _, text := range []string{
		`.input.few as $f | $f | contains($f | with_entries(select(.key != "n7")) + {n9: "y"})`,
		`{a: (.input.big * .input.big * .input.big * .input.big), b: .input.long} | try tojson catch "caught"`,
		`{b: (.input.big * .input.big * .input.big * .input.big), a: .input.long} | try tojson catch "caught"`,
	} {
		e, err := expression.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]bool{}
		for range 30 {
			b := expression.NewBudget(t.Context())
			v, err := e.Eval(b, map[string]any{"input": long})
			steps, work := b.Spent()
			told[fmt.Sprint(v, err, steps, work)] = true
		}
		if len(told) != 1 {
			t.Errorf("%s ends in %d ways", text, len(told))
		}
	}
}

// A defect of the interpreter is a failure of the expression: it would end whoever evaluates it, again and again.
func TestAPanicOfTheInterpreterIsAFailure(t *testing.T) {
	type unknown struct{} // to gojq, which panics
	for _, text := range []string{`.input | type`, `[.input | tojson]`, `.input | try tojson catch 1`} {
		e, err := expression.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := e.Eval(expression.NewBudget(t.Context()), map[string]any{"input": unknown{}})
		var failure *expression.Failure
		if !errors.As(err, &failure) || !strings.HasPrefix(err.Error(), "the interpreter of jq has a defect that it meets: ") {
			t.Errorf("%s: got %v, %v", text, v, err)
		}
	}
}

// Values are written as gojq writes them.
func TestMarshalWritesWhatJqWrites(t *testing.T) {
	for _, v := range []any{nil, true, 1, -1.5, 1e300, math.NaN(), math.Inf(1), json.Number("1.50"), new(big.Int).Lsh(big.NewInt(1), 2000), "", "a\"\\\n\x01\x7f<é\xff", []any{}, map[string]any{}, read(t, sample), []any{[]any{}, map[string]any{"b": 1, "a\n": []any{nil}}}} {
		want, err := gojq.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got, err := expression.NewBudget(t.Context()).Marshal(v, len(want))
		if err != nil || string(got) != string(want) {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
		if got, err := expression.NewBudget(t.Context()).Marshal(v, len(want)-1); err == nil {
			t.Errorf("got %s, which has more than %d bytes", got, len(want)-1)
		}
	}
}
