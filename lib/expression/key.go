package expression

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"unicode/utf8"
)

// Key is a text whose value, for each run, says with which other runs of the job it shares a limit. It is never changed, and may be shared.
type Key struct {
	text    *Text
	payload bool
}

// ParseKey reads a key: one or more expressions over .payload, .job, .labels and .nominal_time, and characters around them. An error is an *Error, whose
// place is that in the text.
func ParseKey(text string) (*Key, error) {
	if n := utf8.RuneCountInString(text); n > MaxText {
		return nil, &Error{Got: text, Want: fmt.Sprintf("at most %d characters; it has %d", MaxText, n)}
	}
	t, err := parseText(text, ofKey)
	if err != nil {
		return nil, err
	}
	if len(t.Expressions()) == 0 {
		return nil, &Error{Got: text, Want: "an expression in it, such as ${ .payload.customer }: without one, all runs have the same key"}
	}
	k := &Key{text: t}
	for _, e := range t.Expressions() {
		k.payload = k.payload || e.reads.Input
	}
	return k, nil
}

// ReadsPayload tells whether the key reads the payload of the run.
func (k *Key) ReadsPayload() bool { return k.payload }

// Eval gives the value of the key over an object with what it may read, as Decode gives it: a text as it is, a boolean as JSON, and so a number, of which one text
// stands for all that are equal. What is wrong for good,
// null, an array and an object among it, is a *Failure; any other error is that of ctx.
func (k *Key) Eval(ctx context.Context, input map[string]any) (string, error) {
	b := NewBudget(ctx)
	v, err := k.text.eval(b, input)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case nil, []any, map[string]any:
		return "", failed("it gives %s; want a text, a number, true or false", kind(v))
	case json.Number:
		return b.number(v)
	}
	return b.shown(v)
}

func (b *Budget) shown(v any) (string, error) {
	text, err := b.Marshal(v, MaxBytes)
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// number is the text that 1.50, 15e-1 and 1.5 have in common.
func (b *Budget) number(n json.Number) (string, error) {
	if whole, ok := new(big.Int).SetString(n.String(), 10); ok {
		return b.shown(whole)
	}
	if f, err := n.Float64(); err == nil {
		return b.shown(f)
	}
	return b.shown(n)
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case []any:
		return "an array"
	}
	return "an object"
}
