package expression

import (
	"fmt"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// passing are the functions that give their input, or what their last argument gives for it, as it is.
var passing = []string{"select/1", "first/1", "last/1", "limit/2", "skip/2", "nth/2", "arrays/0", "objects/0", "booleans/0", "numbers/0", "strings/0", "nulls/0",
	"values/0", "iterables/0", "scalars/0"}

// function rewrites a call, or a variable.
func (f *fence) function(fn *gojq.Func, dot origin) (*gojq.Term, origin) {
	if strings.HasPrefix(fn.Name, "$") {
		is, known := f.variable(fn.Name)
		if !known {
			f.unknown(fn)
		}
		return &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: fn.Name}}, is
	}
	full := fmt.Sprintf("%s/%d", fn.Name, len(fn.Args))
	pays, known := taken[full]
	if !known {
		f.unknown(fn)
	}
	if slices.Contains(passing, full) {
		return f.passes(fn, full, dot)
	}
	inside := dot // what the arguments are evaluated with
	switch full {
	case "empty/0", "any/2", "all/2", "isempty/1", "error/1", "add/1", "pow/2": // these look at nothing but their arguments
	default:
		f.use(dot)
	}
	switch full {
	case "any/2", "all/2": // the second is for each of what the first gives
		first, is := f.query(fn.Args[0], dot)
		f.use(is)
		return inner(call(fn.Name, first, f.value(fn.Args[1], nil))), nil
	case "map/1", "with_entries/1", "any/1", "all/1", "min_by/1", "max_by/1", "sort_by/1", "group_by/1", "unique_by/1":
		inside = nil
	}
	args := f.values(fn.Args, inside)
	var binds []binding
	if takes, goesThrough := arguments[full]; goesThrough {
		// A generator goes on inside of a call, behind where that was paid for. So each of its values has a call of its own.
		value := f.unsaid()
		binds = []binding{{value, args[0]}}
		args[0] = f.argument(call(value), fn.Name, takes)
	}
	plain := call(fn.Name, args...)
	switch pays {
	case glances:
		plain = pipe(call("_glance"), plain)
	case looks:
		plain = pipe(looked("2"), plain)
	case sorts:
		plain = pipe(looked("8"), plain)
	case keys:
		plain = pipe(call("_glance"), call(fn.Name, pipe(bracketed(args[0]), looked("8"))))
	case short:
		plain = pipe(call("_short"), plain)
	case breaks:
		plain = pipe(looked("64"), plain)
	case renders:
		plain = pipe(looked("8"), plain)
		if full == "error/1" {
			plain = call("error", pipe(bracketed(args[0]), looked("8")))
		}
	case replaced:
		switch full {
		case "first/0":
			plain = at(identity(), number("0"))
		case "last/0":
			plain = at(identity(), number("-1"))
		case "with_entries/1":
			plain = pipe(pipe(call("_glance"), call("to_entries")), pipe(call("map", args[0]), pipe(looked("2"), call("from_entries"))))
		case "add/1":
			plain = pipe(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeArray, Array: &gojq.Array{Query: args[0]}}}, pipe(looked("2"), call("add")))
		default:
			plain = call("_"+fn.Name, args...)
		}
	}
	if takes, picky := inputs[full]; picky {
		plain = pipe(f.checked(takes, fn.Name+" cannot be applied to"), plain)
	}
	return inner(bound(binds, plain)), nil
}

// argument pays for an argument that a function goes through.
func (f *fence) argument(given *gojq.Query, name string, takes kinds) *gojq.Query {
	return pipe(bracketed(given), pipe(f.checked(takes, name+" cannot be given"), call("_glance")))
}

// passes rewrites a call of a function that gives on what it is given.
func (f *fence) passes(fn *gojq.Func, full string, dot origin) (*gojq.Term, origin) {
	if len(fn.Args) == 0 {
		f.use(dot)
		return inner(call(fn.Name)), dot
	}
	last := len(fn.Args) - 1
	args := f.values(fn.Args[:last], dot)
	for i := range args {
		args[i] = f.argument(args[i], fn.Name, arguments[full])
	}
	given, is := f.query(fn.Args[last], dot)
	if full == "select/1" {
		f.use(is)
		is = dot
	}
	return inner(call(fn.Name, append(args, given)...)), is
}

// unknown refuses a function or variable, and says why, or what may have been meant.
func (f *fence) unknown(fn *gojq.Func) {
	if strings.HasPrefix(fn.Name, "$") && left[fn.Name] == "" {
		f.refuse(fn.Name, "a variable that as has bound")
	}
	var names, with []string
	for full := range taken {
		name, count, _ := strings.Cut(full, "/")
		names = append(names, name)
		if name == fn.Name {
			with = append(with, count)
		}
	}
	switch {
	case left[fn.Name] != "":
		f.refuse(fn.Name, "another function: "+left[fn.Name])
	case len(with) > 0:
		slices.Sort(with)
		f.refuse(fn.Name, fmt.Sprintf("it with %s arguments, not %d", strings.Join(with, " or "), len(fn.Args)))
	}
	want := "one of the functions that expressions may use"
	slices.Sort(names)
	if near := invalid.Nearest(fn.Name, names); near != "" {
		want += `; did you mean "` + near + `"?`
	}
	f.refuse(fn.Name, want)
}
