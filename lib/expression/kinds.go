package expression

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// kinds is a set of kinds of values.
type kinds uint8

const (
	aNull kinds = 1 << iota
	aBoolean
	aNumber
	aText
	anArray
	anObject
)

func kindOf(v any) kinds {
	switch v.(type) {
	case nil:
		return aNull
	case bool:
		return aBoolean
	case int, float64, *big.Int, json.Number:
		return aNumber
	case string:
		return aText
	case []any:
		return anArray
	case map[string]any:
		return anObject
	}
	return 0 // which gojq does not know either
}

// inputs are the kinds that functions take as their input, where they fail of another that could be large. gojq shows in an error the beginning of what it is
// of, and goes through a whole text or object for that, which nobody has paid for. So such an error is ours.
var inputs = map[string]kinds{
	"utf8bytelength/0": aText, "ascii_downcase/0": aText, "ascii_upcase/0": aText, "trim/0": aText, "ltrim/0": aText, "rtrim/0": aText, "startswith/1": aText, "endswith/1": aText, "ltrimstr/1": aText, "rtrimstr/1": aText, "split/1": aText,
	"fromdate/0": aText, "fromdateiso8601/0": aText, "toboolean/0": aBoolean | aText, "tonumber/0": aNumber | aText,
	"floor/0": aNumber, "ceil/0": aNumber, "round/0": aNumber, "trunc/0": aNumber, "sqrt/0": aNumber,
	"reverse/0": anArray, "min_by/1": anArray, "max_by/1": anArray, "sort_by/1": anArray, "group_by/1": anArray, "unique_by/1": anArray,
}

// arguments are the kinds that functions take as their first argument, of those that go through that themselves.
var arguments = map[string]kinds{
	"startswith/1": aText, "endswith/1": aText, "ltrimstr/1": aText, "rtrimstr/1": aText, "split/1": aText,
	"limit/2": aNumber, "skip/2": aNumber, "nth/2": aNumber, "flatten/1": aNumber,
}

// check refuses values by their kind.
type check struct {
	takes kinds
	what  string // the error, before the value
}

// checked gives a query that gives on its input where that is of such a kind, and else fails.
func (f *fence) checked(takes kinds, what string) *gojq.Query {
	one := check{takes, what}
	for i, c := range f.checks {
		if c == one {
			return call(checkName(i))
		}
	}
	f.checks = append(f.checks, one)
	return call(checkName(len(f.checks) - 1))
}

func checkName(i int) string { return "_check" + strconv.Itoa(i) }

func (c check) function(v any, _ []any) any {
	if c.takes&kindOf(v) == 0 {
		return failed("%s: %s", c.what, shown(v))
	}
	return v
}

// shown is the kind of a value, and the beginning of it as gojq shows that. It looks at no more than the beginning.
func shown(v any) string {
	if v == nil {
		return "null"
	}
	if o, ok := v.(map[string]any); ok && len(o) > fewShown {
		return "object (of " + strconv.Itoa(len(o)) + " names)"
	}
	return gojq.TypeOf(v) + " (" + preview(v) + ")"
}

func preview(v any) string { return gojq.Preview(beginning(v, fewShown)) }

// fewShown is of how many values one is shown, at most: no more have a place in 30 bytes.
const fewShown = 16

func beginning(v any, levels int) any {
	const longest = 64 // bytes
	switch v := v.(type) {
	case string:
		if len(v) > longest {
			return strings.ToValidUTF8(v[:longest], "")
		}
	case []any:
		if levels == 0 {
			return []any{}
		}
		some := make([]any, min(len(v), fewShown))
		for i := range some {
			some[i] = beginning(v[i], levels-1)
		}
		return some
	case map[string]any:
		if levels == 0 || len(v) > fewShown {
			return map[string]any{}
		}
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[beginning(name, 0).(string)] = beginning(one, levels-1)
		}
		return all
	}
	return v
}
