package expression

import (
	"slices"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// fence looks at an expression, finds out what it reads, and gives it rewritten so that it pays for what it does. It stops at the first thing that
// an expression may not do.
type fence struct {
	text    string
	scope   scope
	reads   Reads
	vars    []variable // that are bound here, the newest last
	unsaids int        // variables of ours
	checks  []check    // that the rewritten expression calls
}

type variable struct {
	name string
	is   origin
}

// refuse ends a look at an expression. It is a panic, which Parse catches, so that no step of the way has to ask.
func (f *fence) refuse(what, want string) {
	panic(&Error{At: find(f.text, what, nil), Got: what, Want: want})
}

func (f *fence) refuseField(name, want string) {
	panic(&Error{At: find(f.text, name, ofAnything), Got: name, Want: want})
}

func call(name string, args ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}}}
}

func pipe(l, r *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: l, Op: gojq.OpPipe, Right: r}
}

// inner puts a query into brackets.
func inner(q *gojq.Query) *gojq.Term { return &gojq.Term{Type: gojq.TermTypeQuery, Query: q} }

func bracketed(q *gojq.Query) *gojq.Query { return &gojq.Query{Term: inner(q)} }

func text(s string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: s}}}
}

func looked(times string) *gojq.Query {
	return call("_look", number(times))
}

func number(n string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNumber, Number: n}}
}

func identity() *gojq.Query { return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}} }

// index gives one of the values that were put together to be paid for.
func index(n string) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIndex, Index: &gojq.Index{Start: number(n)}}}
}

// at gives what stands in a value under a name or number that is reckoned, and pays for that.
func at(of, i *gojq.Query) *gojq.Query {
	return pipe(call("_at", of, i), call("_index", index("0"), index("1")))
}

// under gives what stands in an object under a name.
func (f *fence) under(of *gojq.Query, name string) *gojq.Term {
	return &gojq.Term{Type: gojq.TermTypeQuery, Query: pipe(of, f.checked(aNull|anObject, noObject)), SuffixList: []*gojq.Suffix{{Index: &gojq.Index{Str: &gojq.String{Str: name}}}}}
}

// query rewrites a query whose input is dot, and says what comes of it.
func (f *fence) query(q *gojq.Query, dot origin) (*gojq.Query, origin) {
	switch {
	case q.Meta != nil || len(q.Imports) > 0:
		f.refuse("import", "an expression without modules")
	case len(q.FuncDefs) > 0:
		f.refuse("def", "an expression without functions of its own")
	case q.Term != nil:
		t, is := f.term(q.Term, dot)
		return &gojq.Query{Term: t}, is
	case q.Right == nil:
		f.refuse(f.text, "an expression such as "+f.scope.example())
	}
	switch q.Op {
	case gojq.OpPipe:
		l, is := f.query(q.Left, dot)
		if len(q.Patterns) == 0 {
			r, is := f.query(q.Right, is)
			return pipe(l, r), is
		}
		if len(q.Patterns) > 1 {
			f.refuse("?//", "one pattern behind as")
		}
		outside := len(f.vars)
		binds := f.pattern(q.Patterns[0], l, is)
		r, out := f.query(q.Right, dot)
		f.vars = f.vars[:outside]
		return bound(binds, r), out
	case gojq.OpComma, gojq.OpAlt:
		l, a := f.query(q.Left, dot)
		r, b := f.query(q.Right, dot)
		return &gojq.Query{Left: l, Op: q.Op, Right: r}, join(a, b)
	case gojq.OpAnd, gojq.OpOr:
		return &gojq.Query{Left: f.value(q.Left, dot), Op: q.Op, Right: f.value(q.Right, dot)}, nil
	case gojq.OpAdd, gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return operator(q.Op, f.value(q.Left, dot), f.value(q.Right, dot)), nil
	}
	f.refuse(q.Op.String(), "an expression that assigns nothing")
	return nil, nil
}

// operator pays for an operator, and has jq do it.
func operator(op gojq.Operator, l, r *gojq.Query) *gojq.Query {
	return bracketed(pipe(call("_pair", text(op.String()), l, r), &gojq.Query{Left: index("0"), Op: op, Right: index("1")}))
}

// value rewrites a query of which the value itself is wanted.
func (f *fence) value(q *gojq.Query, dot origin) *gojq.Query {
	q, is := f.query(q, dot)
	f.use(is)
	return q
}

func (f *fence) values(qs []*gojq.Query, dot origin) []*gojq.Query {
	out := make([]*gojq.Query, len(qs))
	for i, q := range qs {
		out[i] = f.value(q, dot)
	}
	return out
}

// binding gives a variable its value.
type binding struct {
	name  string
	value *gojq.Query
}

// bound gives a query its variables, the first of them outermost.
func bound(binds []binding, in *gojq.Query) *gojq.Query {
	for _, one := range slices.Backward(binds) {
		in = &gojq.Query{Left: one.value, Op: gojq.OpPipe, Right: in, Patterns: []*gojq.Pattern{{Name: one.name}}}
	}
	return in
}

// unsaid gives a variable that no expression can say.
func (f *fence) unsaid() string {
	f.unsaids++
	return "$#" + strconv.Itoa(f.unsaids)
}

// pattern binds the variables of what stands behind as. What takes a value apart is written as one binding after another, so that each is checked.
func (f *fence) pattern(p *gojq.Pattern, value *gojq.Query, is origin) []binding {
	if p.Name != "" {
		f.bind(p.Name, is)
		return []binding{{p.Name, value}}
	}
	whole := f.unsaid()
	binds := []binding{{whole, value}}
	if len(p.Array) > 0 {
		f.use(is)
		for i, one := range p.Array {
			entry := pipe(call(whole), pipe(f.checked(aNull|anArray, noArray), index(strconv.Itoa(i))))
			binds = append(binds, f.pattern(one, entry, nil)...)
		}
		return binds
	}
	for _, one := range p.Object {
		name := one.Key
		switch {
		case one.KeyQuery != nil, one.KeyString != nil && one.KeyString.Queries != nil:
			f.refuse("as", "names in a pattern that stand there as they are")
		case one.KeyString != nil:
			name = one.KeyString.Str
		}
		field := strings.TrimPrefix(name, "$")
		at := f.field(is, field)
		entry := &gojq.Query{Term: f.under(call(whole), field)}
		if strings.HasPrefix(name, "$") && one.KeyString == nil {
			f.bind(name, at)
			binds = append(binds, binding{name, entry})
		}
		if one.Val != nil {
			binds = append(binds, f.pattern(one.Val, entry, at)...)
		}
	}
	return binds
}

func (f *fence) bind(name string, is origin) {
	if name == "$ENV" || name == "$__loc__" {
		f.refuse(name, "another name")
	}
	f.vars = append(f.vars, variable{name, is})
}

// term rewrites a term and its suffixes.
func (f *fence) term(t *gojq.Term, dot origin) (*gojq.Term, origin) {
	out, is := f.base(t, dot)
	for _, s := range t.SuffixList {
		switch {
		case s.Index != nil:
			out, is = f.index(out, is, s.Index, dot)
		case s.Iter:
			f.use(is)
			out, is = inner(pipe(&gojq.Query{Term: out}, call("_glance"))), nil
			out.SuffixList = []*gojq.Suffix{{Iter: true}}
		default: // ?
			out = &gojq.Term{Type: gojq.TermTypeTry, Try: &gojq.Try{Body: &gojq.Query{Term: out}}}
			out = inner(&gojq.Query{Term: out})
		}
	}
	return out, is
}

// index rewrites .name, .[i] and .[i:j] of a term; dot is what i and j are evaluated with.
func (f *fence) index(of *gojq.Term, is origin, i *gojq.Index, dot origin) (*gojq.Term, origin) {
	name, static := i.Name, i.Name != ""
	switch {
	case static:
	case i.Str != nil && i.Str.Queries == nil:
		name, static = i.Str.Str, true
	case !i.IsSlice && i.Start != nil && i.Start.Term != nil && i.Start.Term.Type == gojq.TermTypeString && i.Start.Term.Str.Queries == nil && len(i.Start.Term.SuffixList) == 0:
		name, static = i.Start.Term.Str.Str, true
	}
	if static {
		at := f.field(is, name)
		return f.under(&gojq.Query{Term: of}, name), at
	}
	f.use(is)
	source := &gojq.Query{Term: of}
	if i.IsSlice {
		null := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeNull}}
		start, end := null, null
		if i.Start != nil {
			start = f.value(i.Start, dot)
		}
		if i.End != nil {
			end = f.value(i.End, dot)
		}
		return inner(pipe(call("_part", source, end, start), call("_slice", index("0"), index("1"), index("2")))), nil
	}
	by := i.Start
	if i.Str != nil {
		by = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeString, Str: i.Str}}
	}
	return inner(at(source, f.value(by, dot))), nil
}

func (f *fence) base(t *gojq.Term, dot origin) (*gojq.Term, origin) {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return &gojq.Term{Type: t.Type}, dot
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse:
		return &gojq.Term{Type: t.Type}, nil
	case gojq.TermTypeNumber:
		if len(t.Number) > maxDigits {
			f.refuse(t.Number, "a number that is not as long")
		}
		return &gojq.Term{Type: t.Type, Number: t.Number}, nil
	case gojq.TermTypeIndex:
		return f.index(&gojq.Term{Type: gojq.TermTypeIdentity}, dot, t.Index, dot)
	case gojq.TermTypeString:
		return f.string(t.Str, "tostring/0", dot), nil
	case gojq.TermTypeFormat:
		if !slices.Contains(formats, t.Format) {
			f.refuse(t.Format, "one of the formats "+strings.Join(formats, ", "))
		}
		if t.Str != nil {
			return f.string(t.Str, t.Format, dot), nil
		}
		f.use(dot)
		return inner(rendered(t.Format)), nil
	case gojq.TermTypeQuery:
		q, is := f.query(t.Query, dot)
		return inner(q), is
	case gojq.TermTypeUnary:
		of, is := f.term(t.Unary.Term, dot)
		f.use(is)
		return &gojq.Term{Type: t.Type, Unary: &gojq.Unary{Op: t.Unary.Op, Term: inner(pipe(&gojq.Query{Term: of}, pipe(f.checked(aNumber, "no sign can stand before"), call("_glance"))))}}, nil
	case gojq.TermTypeArray:
		if t.Array.Query == nil {
			return &gojq.Term{Type: t.Type, Array: &gojq.Array{}}, nil
		}
		return &gojq.Term{Type: t.Type, Array: &gojq.Array{Query: f.value(t.Array.Query, dot)}}, nil
	case gojq.TermTypeObject:
		return inner(f.object(t.Object, dot)), nil
	case gojq.TermTypeIf:
		return f.branches(t.If, dot)
	case gojq.TermTypeTry:
		body, is := f.query(t.Try.Body, dot)
		try := &gojq.Try{Body: body}
		if t.Try.Catch != nil {
			catch, other := f.query(t.Try.Catch, nil)
			try.Catch, is = catch, join(is, other)
		}
		return inner(&gojq.Query{Term: &gojq.Term{Type: t.Type, Try: try}}), is
	case gojq.TermTypeFunc:
		return f.function(t.Func, dot)
	case gojq.TermTypeRecurse:
		f.refuse("..", "the names of what is meant: .. goes as deep as it likes")
	case gojq.TermTypeReduce:
		f.refuse("reduce", "add, map, select or another function that ends by itself")
	case gojq.TermTypeForeach:
		f.refuse("foreach", "map, select or another function that ends by itself")
	}
	f.refuse("label", "first or limit")
	return nil, nil
}

// branches rewrites if, with all that may come of it.
func (f *fence) branches(i *gojq.If, dot origin) (*gojq.Term, origin) {
	out := &gojq.If{Cond: f.value(i.Cond, dot)}
	then, is := f.query(i.Then, dot)
	out.Then = then
	for _, e := range i.Elif {
		cond := f.value(e.Cond, dot)
		then, other := f.query(e.Then, dot)
		out.Elif, is = append(out.Elif, &gojq.IfElif{Cond: cond, Then: then}), join(is, other)
	}
	if i.Else == nil {
		if slices.Contains(dot, whole[0]) {
			f.refuse("if", "an else: without one it gives all that there is to read")
		}
		return &gojq.Term{Type: gojq.TermTypeIf, If: out}, join(is, dot)
	}
	otherwise, other := f.query(i.Else, dot)
	out.Else = otherwise
	return &gojq.Term{Type: gojq.TermTypeIf, If: out}, join(is, other)
}

// string rewrites a text with values in it, each made a text by a function or format.
func (f *fence) string(s *gojq.String, by string, dot origin) *gojq.Term {
	if s.Queries == nil {
		return &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: s.Str}}
	}
	var whole *gojq.Query
	for _, q := range s.Queries {
		part := q
		if q.Term.Str == nil {
			part = bracketed(pipe(f.value(q, dot), rendered(by)))
		}
		if whole == nil {
			whole = part
		} else {
			whole = operator(gojq.OpAdd, whole, part)
		}
	}
	return inner(whole)
}

// rendered makes a text of a value, by a function or format, and pays for it.
func rendered(by string) *gojq.Query {
	render := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFormat, Format: by}}
	if name, isFunction := strings.CutSuffix(by, "/0"); isFunction {
		render = call(name)
	}
	return pipe(looked("8"), render)
}

// object rewrites an object. It is paid for once it is there, with all of its names: where a value or name in it is a generator, each further value of that
// makes another object, and nothing else of it runs again.
func (f *fence) object(o *gojq.Object, dot origin) *gojq.Query {
	out := &gojq.Object{}
	for _, kv := range o.KeyVals {
		one := &gojq.ObjectKeyVal{}
		shorthand := "" // {a} is {a: .a}
		switch {
		case strings.HasPrefix(kv.Key, "$"):
			is, known := f.variable(kv.Key)
			if !known {
				f.refuse(kv.Key, "a variable that as has bound")
			}
			f.use(is)
			one.Key = kv.Key
			if kv.Val != nil {
				f.refuse(kv.Key, "a name before the colon, or an expression in brackets")
			}
		case kv.Key != "":
			one.KeyString, shorthand = &gojq.String{Str: kv.Key}, kv.Key
		case kv.KeyString != nil && kv.KeyString.Queries == nil:
			one.KeyString, shorthand = &gojq.String{Str: kv.KeyString.Str}, kv.KeyString.Str
		case kv.KeyString != nil:
			if kv.Val == nil {
				f.refuse("{", "a value for each name that is put together")
			}
			one.KeyQuery = pipe(&gojq.Query{Term: f.string(kv.KeyString, "tostring/0", dot)}, call("_glance"))
		default:
			one.KeyQuery = pipe(bracketed(f.value(kv.KeyQuery, dot)), pipe(f.checked(aText, "expected a string for object key but got"), call("_glance")))
		}
		switch {
		case kv.Val != nil:
			one.Val = bracketed(f.value(kv.Val, dot))
		case one.Key == "":
			of, is := f.index(&gojq.Term{Type: gojq.TermTypeIdentity}, dot, &gojq.Index{Name: shorthand}, dot)
			f.use(is)
			one.Val = &gojq.Query{Term: of}
		}
		out.KeyVals = append(out.KeyVals, one)
	}
	return pipe(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeObject, Object: out}}, call("_object", number(strconv.Itoa(len(out.KeyVals)))))
}

func (f *fence) variable(name string) (origin, bool) {
	for i := len(f.vars) - 1; i >= 0; i-- {
		if f.vars[i].name == name {
			return f.vars[i].is, true
		}
	}
	return nil, false
}
