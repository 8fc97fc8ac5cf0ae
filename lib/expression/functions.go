package expression

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// toll is what a function pays before it is called: for its input, its arguments, or neither.
type toll uint8

const (
	free     toll = iota // it costs no more than its instructions
	glances              // it looks at its input, and not at what is in that
	looks                // it looks at all of its input
	sorts                // it compares all that is in its input
	keys                 // it compares what its argument gives for each entry of its input
	renders              // it makes a text of its input, up to eight times as long, or what takes as much
	breaks               // it makes many values of a text
	short                // it takes a short text
	replaced             // its place is taken by a function of ours
)

// taken are the functions of jq that an expression may use, by name and number of arguments.
var taken = map[string]toll{
	"empty/0": free, "not/0": free, "type/0": free, "error/0": renders, "error/1": renders,
	"select/1": free, "first/0": replaced, "last/0": replaced, "first/1": free, "last/1": free, "limit/2": free, "skip/2": free, "nth/2": free, "isempty/1": free,
	"any/0": glances, "all/0": glances, "any/1": glances, "all/1": glances, "any/2": free, "all/2": free,
	"arrays/0": free, "objects/0": free, "booleans/0": free, "numbers/0": free, "strings/0": free, "nulls/0": free, "values/0": free, "iterables/0": free, "scalars/0": free,
	"has/1": replaced, "length/0": glances, "utf8bytelength/0": glances, "keys/0": glances, "to_entries/0": glances, "from_entries/0": looks, "with_entries/1": replaced,
	"map/1": glances, "reverse/0": glances, "add/0": looks, "add/1": replaced, "flatten/0": looks, "flatten/1": looks, "contains/1": replaced,
	"min/0": looks, "max/0": looks, "sort/0": sorts, "unique/0": sorts, "min_by/1": keys, "max_by/1": keys, "sort_by/1": keys, "group_by/1": keys, "unique_by/1": keys,
	"floor/0": renders, "ceil/0": renders, "round/0": renders, "trunc/0": renders, "sqrt/0": renders, "abs/0": glances, "pow/2": replaced, "toboolean/0": glances,
	"tonumber/0": short, "tostring/0": renders, "tojson/0": renders, "fromjson/0": replaced,
	"ascii_downcase/0": glances, "ascii_upcase/0": glances, "trim/0": glances, "ltrim/0": glances, "rtrim/0": glances, "startswith/1": free, "endswith/1": free,
	"ltrimstr/1": free, "rtrimstr/1": free, "split/1": breaks, "join/1": replaced,
	"todate/0": looks, "fromdate/0": short, "todateiso8601/0": looks, "fromdateiso8601/0": short,
}

// formats are the formats that an expression may use.
var formats = []string{"@base64", "@base64d", "@csv", "@html", "@json", "@sh", "@text", "@tsv", "@uri"}

// Functions lists the functions that an expression may use, as NAME/ARGUMENTS, and the formats, each in the order of their names.
func Functions() (functions, asFormats []string) {
	return slices.Sorted(maps.Keys(taken)), slices.Clone(formats)
}

// left are functions of jq that are left out for a reason that is worth a word.
var left = map[string]string{
	"now": "the result would be another at each attempt", "localtime": "it depends on the host", "strflocaltime": "it depends on the host", "env": "an expression reads no environment",
	"$ENV": "an expression reads no environment", "input": "what an expression reads is .input, with a dot", "inputs": "what an expression reads is .input, with a dot",
	"debug": "there is nowhere to write", "stderr": "there is nowhere to write", "halt": "use error", "halt_error": "use error",
	"range": "it counts as far as it likes", "recurse": "it goes as deep as it likes", "repeat": "it repeats for ever", "while": "it repeats for ever", "until": "it repeats for ever", "walk": "it goes as deep as it likes",
	"combinations": "it makes too many values", "setpath": "an expression assigns nothing", "delpaths": "an expression assigns nothing", "del": "an expression assigns nothing; use with_entries(select(.key != \"…\"))",
	"map_values": "an expression assigns nothing; use with_entries", "test": notRegexp, "match": notRegexp, "capture": notRegexp, "scan": notRegexp, "split": "with one argument, a plain text", "splits": notRegexp, "sub": notRegexp, "gsub": notRegexp,
}

const notRegexp = "regular expressions are not taken; use startswith, endswith, contains or split"

// ours are the functions that a rewritten expression uses beside those of jq. They are bound to the budget of one evaluation.
func (b *Budget) ours(checks []check) []gojq.CompilerOption {
	all := []gojq.CompilerOption{
		gojq.WithFunction("_glance", 0, 0, func(v any, _ []any) any { return paid(v, b.glance(v)) }),
		gojq.WithFunction("_look", 1, 1, func(v any, args []any) any { return paid(v, b.look(v, args[0].(int), 0)) }),
		gojq.WithFunction("_short", 0, 0, func(v any, _ []any) any {
			if s, ok := v.(string); ok && len(s) > maxDigits {
				return failed("a text of more than %d characters is no number and no date", maxDigits)
			}
			return paid(v, b.glance(v))
		}),
		gojq.WithFunction("_pair", 3, 3, func(_ any, args []any) any {
			l, r := args[1], args[2]
			return paid([]any{l, r}, b.operands(args[0].(string), l, r))
		}),
		gojq.WithFunction("_at", 2, 2, func(_ any, args []any) any {
			of, at := args[0], args[1]
			switch kindOf(at) {
			case aText:
				if kindOf(of)&(aNull|anObject) == 0 {
					return failed("%s: %s", noObject, shown(of))
				}
			case aNumber:
				if kindOf(of)&(aNull|anArray|aText) == 0 {
					return failed("%s: %s", noArray, shown(of))
				}
			default:
				return failed("an index is a name or a number, not %s", shown(at))
			}
			return paid([]any{of, at}, errors.Join(b.glanceText(of), b.glance(at))) // a text is counted through for each of its characters
		}),
		gojq.WithFunction("_part", 3, 3, func(_ any, args []any) any {
			of, end, start := args[0], args[1], args[2]
			if of == nil {
				return []any{nil, nil, nil}
			}
			if kindOf(of)&(anArray|aText) == 0 {
				return failed("%s: %s", noArray, shown(of))
			}
			for _, bound := range []any{start, end} {
				if kindOf(bound)&(aNull|aNumber) == 0 {
					return failed("a slice is from one number to another, not %s", shown(bound))
				}
			}
			return paid([]any{of, end, start}, errors.Join(b.glance(of), b.glance(end), b.glance(start)))
		}),
		gojq.WithFunction("_object", 1, 1, func(v any, args []any) any { return paid(v, b.object(v.(map[string]any), args[0].(int))) }),
		gojq.WithFunction("_has", 1, 1, func(v any, args []any) any { return b.has(v, args[0]) }),
		gojq.WithFunction("_join", 1, 1, func(v any, args []any) any { return b.join(v, args[0]) }),
		gojq.WithFunction("_contains", 1, 1, func(v any, args []any) any {
			has, err := b.contains(v, args[0], 0)
			return paid(has, err)
		}),
		gojq.WithFunction("_pow", 2, 2, func(_ any, args []any) any { return b.pow(args[0], args[1]) }),
		gojq.WithFunction("_fromjson", 0, 0, func(v any, _ []any) any { return b.fromJSON(v) }),
	}
	for i, c := range checks {
		all = append(all, gojq.WithFunction(checkName(i), 0, 0, c.function))
	}
	return all
}

// What is said of a value that has nothing under a name or number.
const (
	noObject = "expected an object but got"
	noArray  = "expected an array but got"
)

func paid(v any, err error) any {
	if err != nil {
		return err
	}
	return v
}

// operations are what the operators of arithmetic are called, and of which kinds both operands may be.
var operations = map[string]struct {
	name  string
	takes kinds
}{
	"+": {"add", aNumber | aText | anArray | anObject}, "-": {"subtract", aNumber | anArray}, "*": {"multiply", aNumber | anObject}, "/": {"divide", aNumber}, "%": {"modulo", aNumber},
}

// operands pays for an operator over two values, or refuses to do it.
func (b *Budget) operands(op string, l, r any) error {
	of, reckons := operations[op]
	if !reckons {
		return b.compare(l, r)
	}
	switch x, y := kindOf(l), kindOf(r); {
	case op == "+" && (x == aNull || y == aNull): // gives the other
		return b.spend(perValue)
	case x != y || x&of.takes == 0:
		return failed("cannot %s: %s and %s", of.name, shown(l), shown(r))
	case op == "-" && x == anArray:
		return errors.Join(b.look(l, 1+len(r.([]any)), 0), b.look(r, 1+len(l.([]any)), 0))
	case op == "*" && x == anObject:
		return errors.Join(b.look(l, 4, 0), b.look(r, 4, 0))
	}
	return errors.Join(b.glance(l), b.glance(r))
}

// has tells whether an object has a name, or an array an entry.
func (b *Budget) has(v, at any) any {
	if err := b.glance(at); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		return false
	case []any:
		if i, ok := gojq.ToInt(at); ok {
			return i >= 0 && i < len(v)
		}
	case map[string]any:
		if name, ok := at.(string); ok {
			_, has := v[name]
			return has
		}
	}
	return failed("has takes an array and a number, or an object and a name, not %s and %s", shown(v), shown(at))
}

// join puts the entries of an array together, as jq does.
func (b *Budget) join(v, by any) any {
	list, ok := v.([]any)
	between, isText := by.(string)
	if !ok || !isText {
		return failed("join takes an array and a text, not %s and %s", shown(v), shown(by))
	}
	parts := make([]string, len(list))
	if err := b.glance(v); err != nil {
		return err
	}
	for i, one := range list {
		switch one := one.(type) {
		case nil:
		case string:
			parts[i] = one
		case bool, int, float64, *big.Int, json.Number:
			if err := b.glance(one); err != nil {
				return err
			}
			text, err := gojq.Marshal(one)
			if err != nil {
				return err
			}
			parts[i] = string(text)
		default:
			return failed("join takes no %s", shown(one))
		}
		if err := b.spend(perValue + len(parts[i]) + len(between)); err != nil {
			return err
		}
	}
	return strings.Join(parts, between)
}

// contains is jq's: texts by what stands in them, arrays and objects by their entries, all else by being equal.
func (b *Budget) contains(l, r any, depth int) (bool, error) {
	if depth > maxNested {
		return false, b.stop(errNested)
	}
	if err := b.spend(perValue); err != nil {
		return false, err
	}
	switch y := r.(type) {
	case string:
		if x, ok := l.(string); ok {
			if err := b.spend(len(x) + len(y)); err != nil {
				return false, err
			}
			return strings.Contains(x, y), nil
		}
	case []any:
		if x, ok := l.([]any); ok {
			for _, wanted := range y {
				has, err := b.any(x, wanted, depth)
				if err != nil || !has {
					return false, err
				}
			}
			return true, nil
		}
	case map[string]any:
		if x, ok := l.(map[string]any); ok {
			if err := b.glance(y); err != nil {
				return false, err
			}
			for _, name := range sorted(y) { // so that where it ends, and what that costs, is the same at each attempt
				one, ok := x[name]
				if !ok {
					return false, nil
				}
				has, err := b.contains(one, y[name], depth+1)
				if err != nil || !has {
					return false, err
				}
			}
			return true, nil
		}
	default:
		if gojq.TypeOf(l) == gojq.TypeOf(r) {
			if err := errors.Join(b.glanceNumber(l), b.glanceNumber(r)); err != nil {
				return false, err
			}
			return gojq.Compare(l, r) == 0, nil
		}
	}
	if depth > 0 {
		return false, nil
	}
	return false, failed("%s and %s are of two kinds, so neither contains the other", shown(l), shown(r))
}

func (b *Budget) any(list []any, wanted any, depth int) (bool, error) {
	for _, one := range list {
		if has, err := b.contains(one, wanted, depth+1); err != nil || has {
			return has, err
		}
	}
	return false, nil
}

// pow is a number to the power of a whole one. math.Pow is rounded in another way where a processor multiplies and adds at once, and a step is to be
// handed the same on each.
func (b *Budget) pow(base, exponent any) any {
	for _, v := range []any{base, exponent} {
		if kindOf(v) != aNumber {
			return failed("pow cannot be given: %s", shown(v))
		}
		if err := b.scalar(v, 8); err != nil { // its digits are read
			return err
		}
	}
	x, _ := gojq.ToFloat64(base)
	y, _ := gojq.ToFloat64(exponent)
	switch {
	case y != math.Trunc(y): // also of what is no number
		return failed("pow takes a whole exponent, not %s; for a root there is sqrt", shown(exponent))
	case x == 0 || math.IsNaN(x) || math.IsInf(x, 0) || math.Abs(y) >= 1<<63: // it goes by the case, and multiplies nothing
		return math.Pow(x, y)
	}
	const precision = 128 // bits, of which multiplying loses fewer than an exponent has
	power := new(big.Float).SetPrec(precision).SetInt64(1)
	square := new(big.Float).SetPrec(precision).SetFloat64(x)
	for n := uint64(math.Abs(y)); n > 0; n >>= 1 {
		if err := b.spend(4 * perValue); err != nil {
			return err
		}
		if n&1 == 1 {
			power.Mul(power, square)
		}
		if n > 1 {
			square.Mul(square, square)
		}
	}
	if y < 0 {
		power.Quo(big.NewFloat(1), power)
	}
	rounded, _ := power.Float64()
	return rounded
}

// fromJSON reads a text as JSON.
func (b *Budget) fromJSON(v any) any {
	s, ok := v.(string)
	if !ok {
		return failed("fromjson takes a text, not %s", shown(v))
	}
	if err := b.spend(4 * len(s)); err != nil {
		return err
	}
	read, err := b.Decode([]byte(s))
	if err != nil {
		return err
	}
	return paid(read, b.look(read, 1, 0))
}

// written is what stands for a value inside of a text: a text as it is, anything else as JSON.
func written(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	text, err := gojq.Marshal(v)
	return string(text), err
}
