package expression

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
)

// What the evaluation of one text may cost, with all the expressions in it.
const (
	MaxSteps = 1_000_000 // instructions of the interpreter
	MaxWork  = 64 << 20  // bytes that are looked at or copied beside those
	MaxBytes = 1 << 20   // of what comes of it, as JSON

	maxNested = 2000 // levels of a value that is looked at as a whole
	maxBits   = 2048 // of a whole number that is reckoned with
	maxDigits = 400  // of a number in a text
)

// Failure says that an expression cannot be evaluated, here or anywhere: it would fail again.
type Failure struct{ Message string }

func (f *Failure) Error() string { return f.Message }

func failed(format string, args ...any) *Failure { return &Failure{fmt.Sprintf(format, args...)} }

var (
	errSteps  = failed("it took more than %d steps", MaxSteps)
	errWork   = failed("it went through more than %d MiB of data", MaxWork>>20)
	errNested = failed("a value is nested more than %d levels deep", maxNested)
)

// Budget counts what an evaluation costs. It is for one at a time.
type Budget struct {
	ctx   context.Context //nolint:containedctx // of the evaluation, which asks it once in a while
	steps int
	work  int
	held  int   // bytes that values take which were made of JSON
	over  error // once it may not go on
	gone  chan struct{}
}

// NewBudget gives an evaluation its budget. It also ends when ctx does, which is no Failure.
func NewBudget(ctx context.Context) *Budget {
	gone := make(chan struct{})
	close(gone)
	return &Budget{ctx: ctx, gone: gone}
}

// Spent is what an evaluation has cost so far: instructions, and bytes that it went through.
func (b *Budget) Spent() (steps, work int) { return b.steps, b.work }

// counting is the context by which the interpreter asks before each instruction whether it may go on.
type counting struct {
	context.Context //nolint:containedctx // stands for it
	b               *Budget
}

func (c counting) Done() <-chan struct{} {
	b := c.b
	if b.steps++; b.steps > MaxSteps {
		b.over = cmp.Or(b.over, error(errSteps))
	}
	if b.steps%1024 == 0 && b.ctx.Err() != nil {
		b.over = cmp.Or(b.over, b.ctx.Err())
	}
	if b.over != nil {
		return b.gone
	}
	return nil
}

func (c counting) Err() error { return c.b.over }

// stop has the evaluation end with err, whatever catches errors in it.
func (b *Budget) stop(err error) error {
	if b.over == nil {
		b.over = err
	}
	return b.over
}

// spend pays for bytes that are about to be looked at or copied.
func (b *Budget) spend(bytes int) error {
	if b.over != nil {
		return b.over
	}
	if bytes > MaxWork-b.work {
		b.work = MaxWork
		return b.stop(errWork)
	}
	b.work += bytes
	return nil
}

// perValue is what a value costs beside the bytes of its text.
const perValue = 16

// weight is what a value by itself costs: the bytes of its text, and those that hold it.
func weight(v any) int {
	switch v := v.(type) {
	case string:
		return perValue + len(v)
	case json.Number:
		return perValue + len(v)
	case *big.Int:
		return perValue + v.BitLen()/3 + 1 // no fewer than its digits
	}
	return perValue
}

// glance pays for a value without what is in it.
func (b *Budget) glance(v any) error {
	switch v := v.(type) {
	case []any:
		return b.spend(perValue * (1 + len(v)))
	case map[string]any:
		return b.object(v, len(v))
	}
	return b.scalar(v, 1)
}

// object pays for an object that is looked at, or was made, by so many names: some of these may have been the same.
func (b *Budget) object(v map[string]any, names int) error {
	bytes, longest := 4*perValue*(1+names), 0 // they are sorted, or have places of their own
	for name := range v {
		bytes += len(name)
		longest = max(longest, len(name))
	}
	return b.spend(bytes + (names-len(v))*longest)
}

// scalar pays for a value with nothing in it. It refuses numbers that are too long to reckon with.
func (b *Budget) scalar(v any, times int) error {
	switch v := v.(type) {
	case *big.Int:
		if v.BitLen() > maxBits {
			return failed("a number is larger than 2^%d", maxBits)
		}
	case json.Number:
		if len(v) > maxDigits {
			return failed("a number has more than %d digits", maxDigits)
		}
	}
	return b.spend(times * weight(v))
}

// look pays for a value and all that is in it, times as often. Names come in their order: where it is over, that is so at the same place on every machine.
func (b *Budget) look(v any, times, depth int) error {
	if depth > maxNested {
		return b.stop(errNested)
	}
	switch v := v.(type) {
	case []any:
		if err := b.spend(times * perValue); err != nil {
			return err
		}
		for _, one := range v {
			if err := b.look(one, times, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		bytes := perValue
		for name := range v {
			bytes += 2*perValue + len(name)
		}
		if err := b.spend(times * bytes); err != nil {
			return err
		}
		for _, name := range sorted(v) {
			if err := b.look(v[name], times, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return b.scalar(v, times)
}

// compare pays for finding out which of two values comes first.
func (b *Budget) compare(l, r any) error {
	switch x := l.(type) {
	case string:
		if y, ok := r.(string); ok {
			return b.spend(perValue + min(len(x), len(y)))
		}
	case []any:
		if _, ok := r.([]any); ok {
			return errors.Join(b.look(l, 1, 0), b.look(r, 1, 0))
		}
	case map[string]any:
		if _, ok := r.(map[string]any); ok {
			return errors.Join(b.look(l, 1, 0), b.look(r, 1, 0))
		}
	default:
		return errors.Join(b.glance(l), b.glanceNumber(r))
	}
	return b.spend(perValue)
}

// glanceNumber pays for a value of which no more than a number is looked at.
func (b *Budget) glanceNumber(v any) error {
	switch v.(type) {
	case *big.Int, json.Number:
		return b.scalar(v, 1)
	}
	return b.spend(perValue)
}

// glanceText pays for a value of which no more than a number or a text is looked at.
func (b *Budget) glanceText(v any) error {
	if s, ok := v.(string); ok {
		return b.scalar(s, 1)
	}
	return b.glanceNumber(v)
}
