package expression

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// MaxText is how many characters an expression may have.
const MaxText = 1024

// Error says what is wrong with an expression before it is evaluated.
type Error struct {
	At   int    // in characters from 1; 0 where it is no place of its own
	Got  string // what stands there
	Want string // what would be right
}

func (e *Error) Error() string { return fmt.Sprintf("got %s, want %s", e.Shown(), e.Want) }

// Shown is what stands there, and where.
func (e *Error) Shown() string {
	if e.At == 0 {
		return invalid.Quote(e.Got)
	}
	return fmt.Sprintf("%s at character %d", invalid.Quote(e.Got), e.At)
}

// Expression is one that may be evaluated. It is never changed, and may be shared.
type Expression struct {
	text   string
	reads  Reads
	query  *gojq.Query
	checks []check // that the query calls
	// bare is the step whose result is all that the expression gives, as it is; "" where it is anything else.
	bare string
	from int // characters of the text around it that stand before it
}

// Parse reads an expression of a workflow and finds out what it reads. An error is an *Error.
func Parse(text string) (*Expression, error) { return parse(text, ofWorkflow) }

func parse(text string, of scope) (e *Expression, err error) {
	if n := utf8.RuneCountInString(text); n > MaxText {
		return nil, &Error{Got: text, Want: fmt.Sprintf("an expression of at most %d characters; it has %d", MaxText, n)}
	}
	defer func() {
		switch caught := recover().(type) {
		case nil:
		case *Error:
			e, err = nil, caught
		default: // by whatever parses definitions, workers among them: the text breaks each of them
			e, err = nil, &Error{Got: text, Want: "another expression: " + broken(caught).Error()}
		}
	}()
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, syntax(text, err)
	}
	f := &fence{text: text, scope: of}
	rewritten := f.value(q, whole)
	e = &Expression{text: text, reads: f.reads, query: rewritten, checks: f.checks, bare: bare(q)}
	if _, err := gojq.Compile(rewritten, NewBudget(nil).ours(f.checks)...); err != nil { //nolint:staticcheck // nothing is evaluated
		return nil, &Error{Got: text, Want: "an expression of jq: " + err.Error()}
	}
	return e, nil
}

// syntax says where a text is no expression.
func syntax(text string, err error) *Error {
	var wrong *gojq.ParseError
	if !errors.As(err, &wrong) || wrong.Token == "" {
		return &Error{Got: text, Want: "an expression of jq: it ends too early"}
	}
	at := max(0, min(wrong.Offset, len(text))-len(wrong.Token))
	return &Error{At: utf8.RuneCountInString(text[:at]) + 1, Got: wrong.Token, Want: "an expression of jq: " + wrong.Error()}
}

// bare gives the step of .steps.NAME.result, where that is all.
func bare(q *gojq.Query) string {
	t := q.Term
	if t == nil || t.Type != gojq.TermTypeIndex || t.Index.Name != "steps" || len(t.SuffixList) != 2 {
		return ""
	}
	var names []string
	for _, s := range t.SuffixList {
		switch {
		case s.Index == nil || s.Index.IsSlice:
			return ""
		case s.Index.Name != "":
			names = append(names, s.Index.Name)
		case s.Index.Str != nil && s.Index.Str.Queries == nil:
			names = append(names, s.Index.Str.Str)
		case s.Index.Start != nil && s.Index.Start.Term != nil && s.Index.Start.Term.Type == gojq.TermTypeString && s.Index.Start.Term.Str.Queries == nil:
			names = append(names, s.Index.Start.Term.Str.Str)
		default:
			return ""
		}
	}
	if names[1] != "result" {
		return ""
	}
	return names[0]
}

// String is the text of the expression.
func (e *Expression) String() string { return e.text }

// Place tells where a step, or Caught, is named, in characters from 1 of the text that the expression was read from; 0 where that is all of it.
func (e *Expression) Place(step string) int {
	if at := find(e.text, step, ofSteps); at > 0 {
		return e.from + at
	}
	return 0
}

// Reads is what the expression reads.
func (e *Expression) Reads() Reads { return e.reads }

// Eval gives the one value that comes of the expression over an input: an object that has what it reads, as Decode gives it. What is wrong for good is a
// *Failure; any other error is that of the budget's context.
func (e *Expression) Eval(b *Budget, input any) (v any, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			v, err = nil, broken(caught)
		}
	}()
	code, err := gojq.Compile(e.query, b.ours(e.checks)...)
	if err != nil {
		return nil, fmt.Errorf("compile an expression that was compiled before: %w", err)
	}
	values := code.RunWithContext(counting{b.ctx, b}, input)
	v, ok := values.Next()
	if b.over == nil && ok {
		if _, failed := v.(error); !failed {
			if second, more := values.Next(); b.over == nil && more {
				if err, failed := second.(error); failed {
					return nil, failure(err)
				}
				return nil, several(v, second)
			}
		}
	}
	switch {
	case b.over != nil:
		return nil, b.over
	case !ok:
		return nil, failed("it gives no value; it is to give exactly one")
	}
	if err, isErr := v.(error); isErr {
		return nil, failure(err)
	}
	return v, nil
}

// broken is a defect of the interpreter, which the expression meets wherever it is evaluated.
func broken(caught any) error {
	return failure(fmt.Errorf("the interpreter of jq has a defect that it meets: %v", caught))
}

func several(first, second any) error {
	return failed("it gives several values, %s and %s first; it is to give exactly one", preview(first), preview(second))
}

// longestError is how much of an error is told, in bytes.
const longestError = 160

// failure is an error of the interpreter, told for people.
func failure(err error) error {
	var own *Failure
	if errors.As(err, &own) {
		return own
	}
	text := err.Error()
	if len(text) > longestError {
		text = text[:longestError]
		for len(text) > 0 && !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
		text += "…"
	}
	return &Failure{text}
}
