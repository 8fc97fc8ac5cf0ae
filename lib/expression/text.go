package expression

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Text is a text that may hold expressions: ${ … }. One that is nothing but an expression gives what that gives, of any kind. In every other the
// values stand in the text. $${ stands for the characters ${ themselves.
type Text struct {
	parts []part
	whole bool // one expression, and nothing around it
}

// part is a piece of a text: an expression, or else characters.
type part struct {
	chars string
	is    *Expression
}

// ParseText reads a text of a workflow. An error is an *Error, whose place is that in the text.
func ParseText(text string) (*Text, error) { return parseText(text, ofWorkflow) }

func parseText(text string, of scope) (*Text, error) {
	t := &Text{}
	var chars strings.Builder
	for rest := text; ; {
		i := strings.Index(rest, "${")
		if i < 0 {
			chars.WriteString(rest)
			break
		}
		if i > 0 && rest[i-1] == '$' {
			chars.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		chars.WriteString(rest[:i])
		begins := len(text) - len(rest) + i
		inside, ok := cutExpression(rest[i+2:])
		if !ok {
			return nil, &Error{At: utf8.RuneCountInString(text[:begins]) + 1, Got: "${", Want: "a } behind the expression; for the characters themselves write $${"}
		}
		e, err := parse(inside, of)
		if err != nil {
			var wrong *Error
			if errors.As(err, &wrong) && wrong.At > 0 {
				moved := *wrong
				moved.At += utf8.RuneCountInString(text[:begins+2])
				return nil, &moved
			}
			return nil, err
		}
		e.from = utf8.RuneCountInString(text[:begins+2])
		if chars.Len() > 0 {
			t.parts = append(t.parts, part{chars: chars.String()})
			chars.Reset()
		}
		t.parts = append(t.parts, part{is: e})
		rest = rest[i+2+len(inside)+1:]
	}
	t.whole = len(t.parts) == 1 && chars.Len() == 0 && t.parts[0].is != nil
	if chars.Len() > 0 {
		t.parts = append(t.parts, part{chars: chars.String()})
	}
	return t, nil
}

// Name reads a name in JSON, in which no expression can stand: $${ is the characters ${ as in a text.
func Name(name string) (string, *Error) {
	var out strings.Builder
	for rest := name; ; {
		before, behind, found := strings.Cut(rest, "${")
		if !found {
			return out.String() + rest, nil
		}
		literal, escaped := strings.CutSuffix(before, "$")
		if !escaped {
			at := len(name) - len(rest) + len(before)
			return "", &Error{At: utf8.RuneCountInString(name[:at]) + 1, Got: "${", Want: "a name without an expression: these stand in texts; for the characters themselves write $${"}
		}
		out.WriteString(literal + "${")
		rest = behind
	}
}

// cutExpression gives what stands before the } that ends an expression: none that stands in a text or has a { of its own.
func cutExpression(rest string) (string, bool) {
	var open nesting
	for i := 0; i < len(rest); {
		if rest[i] == '}' && len(open.signs) == 0 {
			return rest[:i], true
		}
		i += open.step(rest[i:])
	}
	return "", false
}

// nesting is what is open at a place in an expression.
type nesting struct {
	signs []byte // '{', '(' or '"', the innermost last
}

func (n *nesting) top() byte {
	if len(n.signs) == 0 {
		return 0
	}
	return n.signs[len(n.signs)-1]
}

func (n *nesting) inText() bool { return n.top() == '"' }

// step goes over the sign with which rest begins, and gives how many bytes that has: a comment is one.
func (n *nesting) step(rest string) int {
	switch c := rest[0]; {
	case n.inText() && c == '\\':
		if strings.HasPrefix(rest, `\(`) {
			n.signs = append(n.signs, '(')
		}
		return min(2, len(rest))
	case c == '"' && n.inText(), c == ')' && n.top() == '(', c == '}' && n.top() == '{':
		n.signs = n.signs[:len(n.signs)-1]
	case n.inText():
	case c == '"', c == '{', c == '(':
		n.signs = append(n.signs, c)
	case c == '#':
		if end := strings.IndexByte(rest, '\n'); end >= 0 {
			return end
		}
		return len(rest)
	}
	return 1
}

// Expressions lists those of the text.
func (t *Text) Expressions() []*Expression {
	var all []*Expression
	for _, p := range t.parts {
		if p.is != nil {
			all = append(all, p.is)
		}
	}
	return all
}

// eval gives what stands for the text.
func (t *Text) eval(b *Budget, input any) (any, error) {
	if t.whole {
		return t.parts[0].is.Eval(b, input)
	}
	var out strings.Builder
	for _, p := range t.parts {
		chars := p.chars
		if p.is != nil {
			v, err := p.is.Eval(b, input)
			if err != nil {
				return nil, err
			}
			if err := b.look(v, 8, 0); err != nil {
				return nil, err
			}
			if chars, err = written(v); err != nil {
				return nil, failure(err)
			}
		}
		if err := b.spend(len(chars)); err != nil {
			return nil, err
		}
		out.WriteString(chars)
	}
	return out.String(), nil
}
