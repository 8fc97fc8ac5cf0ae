package expression

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// Template is JSON whose texts may hold expressions. It is never changed, and may be shared.
type Template struct {
	root  any // as Decode gives it, with a *Text in the place of each text that holds expressions
	reads Reads
	bare  string
	texts int
}

// ParseTemplate reads JSON. An error joins one for each text that is wrong, an *At.
func ParseTemplate(text []byte) (*Template, error) {
	v, err := Decode(text)
	if err != nil {
		return nil, err
	}
	t := &Template{}
	var wrong []error
	t.root = t.read(v, "", &wrong)
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if whole, ok := t.root.(*Text); ok && whole.whole {
		t.bare = whole.parts[0].is.bare
	}
	return t, nil
}

// At says what is wrong with a text in JSON.
type At struct {
	Path string // from the JSON's own: ".a[0]", or ""
	Err  *Error
}

func (a *At) Error() string { return a.Path + ": " + a.Err.Error() }
func (a *At) Unwrap() error { return a.Err }

func (t *Template) read(v any, at string, wrong *[]error) any {
	switch v := v.(type) {
	case string:
		text, err := ParseText(v)
		if err != nil {
			var what *Error
			if !errors.As(err, &what) {
				what = &Error{Got: v, Want: err.Error()}
			}
			*wrong = append(*wrong, &At{at, what})
			return v
		}
		for _, e := range text.Expressions() {
			t.reads = t.reads.with(e.reads)
			t.texts++
		}
		if len(text.Expressions()) > 0 {
			return text
		}
		if len(text.parts) == 0 {
			return ""
		}
		return text.parts[0].chars
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = t.read(one, at+"["+strconv.Itoa(i)+"]", wrong)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range sorted(v) {
			literal, err := Name(name)
			if err != nil {
				*wrong = append(*wrong, &At{at, err})
				continue
			}
			out[literal] = t.read(v[name], at+"."+name, wrong)
		}
		return out
	}
	return v
}

// Constant tells whether the template holds no expression.
func (t *Template) Constant() bool { return t.texts == 0 }

// Reads is what all expressions of the template read.
func (t *Template) Reads() Reads { return t.reads }

// Bare is the step whose result is all that comes of the template, as it is; "" where anything else does.
func (t *Template) Bare() string { return t.bare }

// Eval gives what comes of the template over an input, as Expression.Eval does, with the errors of that. at is where the template stands: a *Failure says
// where in it an expression does.
func (t *Template) Eval(b *Budget, at string, input any) (any, error) {
	return eval(t.root, at, b, input)
}

func eval(v any, at string, b *Budget, input any) (any, error) {
	switch v := v.(type) {
	case *Text:
		out, err := v.eval(b, input)
		var wrong *Failure
		if errors.As(err, &wrong) && at != "" {
			return nil, failed("%s: %s", at, wrong.Message)
		}
		return out, err
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			var err error
			if out[i], err = eval(one, fmt.Sprintf("%s[%d]", at, i), b, input); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range sorted(v) {
			var err error
			if out[name], err = eval(v[name], at+"."+name, b, input); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// All gives the expressions of the template, each with the path of the text in which it stands.
func (t *Template) All() iter.Seq2[string, *Expression] {
	return func(yield func(string, *Expression) bool) { all(t.root, "", yield) }
}

func all(v any, at string, yield func(string, *Expression) bool) bool {
	switch v := v.(type) {
	case *Text:
		for _, e := range v.Expressions() {
			if !yield(at, e) {
				return false
			}
		}
	case []any:
		for i, one := range v {
			if !all(one, fmt.Sprintf("%s[%d]", at, i), yield) {
				return false
			}
		}
	case map[string]any:
		for _, name := range sorted(v) {
			if !all(v[name], at+"."+name, yield) {
				return false
			}
		}
	}
	return true
}
