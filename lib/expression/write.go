package expression

import (
	"encoding/json"
	"math/big"
	"strconv"

	"github.com/itchyny/gojq"
)

// Marshal gives a value as JSON, of at most most bytes. It pays for what it writes, and stops where it has written as much.
func (b *Budget) Marshal(v any, most int) ([]byte, error) {
	w := writing{budget: b, most: most}
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	return w.text, nil
}

// writing is JSON that is being written.
type writing struct {
	budget *Budget
	most   int
	text   []byte
}

// room pays for bytes that are about to be written, or refuses them.
func (w *writing) room(bytes int) error {
	if bytes > w.most-len(w.text) {
		return failed("what comes of it has more than %d bytes, which is the most that is taken", w.most)
	}
	return w.budget.spend(bytes)
}

func (w *writing) put(text string) error {
	if err := w.room(len(text)); err != nil {
		return err
	}
	w.text = append(w.text, text...)
	return nil
}

func (w *writing) value(v any, depth int) error {
	if depth > maxNested {
		return w.budget.stop(errNested)
	}
	if err := w.budget.spend(perValue); err != nil {
		return err
	}
	switch v := v.(type) {
	case []any:
		return w.array(v, depth)
	case map[string]any:
		return w.object(v, depth)
	case string:
		return w.string(v)
	case json.Number:
		return w.put(string(v))
	case int:
		return w.put(strconv.Itoa(v))
	case *big.Int:
		if err := w.budget.scalar(v, 1); err != nil {
			return err
		}
		return w.put(v.String())
	}
	text, err := gojq.Marshal(v)
	if err != nil {
		return failure(err)
	}
	return w.put(string(text))
}

func (w *writing) array(list []any, depth int) error {
	between := "["
	for _, one := range list {
		if err := w.put(between); err != nil {
			return err
		}
		if err := w.value(one, depth+1); err != nil {
			return err
		}
		between = ","
	}
	if between == "[" {
		return w.put("[]")
	}
	return w.put("]")
}

func (w *writing) object(fields map[string]any, depth int) error {
	if err := w.budget.glance(fields); err != nil {
		return err
	}
	between := "{"
	for _, name := range sorted(fields) {
		if err := w.put(between); err != nil {
			return err
		}
		if err := w.string(name); err != nil {
			return err
		}
		if err := w.put(":"); err != nil {
			return err
		}
		if err := w.value(fields[name], depth+1); err != nil {
			return err
		}
		between = ","
	}
	if between == "{" {
		return w.put("{}")
	}
	return w.put("}")
}

// string writes a text as gojq does, which escapes what is no printable character of ASCII, or no character at all.
func (w *writing) string(s string) error {
	if len(s)+2 > w.most-len(w.text) {
		return w.room(len(s) + 2) // which refuses it
	}
	text, err := gojq.Marshal(s)
	if err != nil {
		return failure(err)
	}
	return w.put(string(text))
}
