package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Kind is what a Value is.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	Text
	Array
	Object
)

// String says it for people.
func (k Kind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "an array", "an object"}[k]
}

// Value is JSON that knows its lines.
type Value struct {
	Kind    Kind
	Line    int      // counted from 1
	Scalar  string   // a number's digits as JSON has them, a text's characters, "true" or "false"
	Items   []*Value // of an Array
	Members []Member // of an Object, as they were written; no name twice
}

// Member is a name and a value of an object.
type Member struct {
	Name  string
	Line  int // of the name
	Value *Value
}

// Member gives the value under a name, nil where there is none.
func (v *Value) Member(name string) *Value {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// With gives the object with a member in front that replaces any of that name.
func (v *Value) With(name string, value *Value) *Value {
	changed := v.Without(name)
	changed.Members = append([]Member{{Name: name, Line: v.Line, Value: value}}, changed.Members...)
	return changed
}

// Without gives the object without a member.
func (v *Value) Without(name string) *Value {
	changed := &Value{Kind: v.Kind, Line: v.Line}
	for _, m := range v.Members {
		if m.Name != name {
			changed.Members = append(changed.Members, m)
		}
	}
	return changed
}

// JSON gives it without blanks.
func (v *Value) JSON() json.RawMessage {
	var to bytes.Buffer
	v.write(&to)
	return to.Bytes()
}

func (v *Value) write(to *bytes.Buffer) {
	switch v.Kind {
	case Null:
		to.WriteString("null")
	case Bool, Number:
		to.WriteString(v.Scalar)
	case Text:
		to.Write(quoted(v.Scalar))
	case Array:
		to.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				to.WriteByte(',')
			}
			item.write(to)
		}
		to.WriteByte(']')
	case Object:
		to.WriteByte('{')
		for i, m := range v.Members {
			if i > 0 {
				to.WriteByte(',')
			}
			to.Write(quoted(m.Name))
			to.WriteByte(':')
			m.Value.write(to)
		}
		to.WriteByte('}')
	}
}

func quoted(text string) []byte {
	var to bytes.Buffer
	enc := json.NewEncoder(&to)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // text always has a JSON form
	return bytes.TrimSpace(to.Bytes())
}

// LineOf finds the line of a field by its path, such as target.exec.argv[0], as problems name it. Of a field that is not there
// it is the line of what would hold it.
func (v *Value) LineOf(path string) int {
	line, _ := v.lineOf("", path)
	return line
}

func (v *Value) lineOf(at, path string) (line, depth int) {
	line = v.Line
	look := func(next string, nextLine int, value *Value) {
		if next != path && !strings.HasPrefix(path, next+".") && !strings.HasPrefix(path, next+"[") {
			return
		}
		found, further := nextLine, 1
		if next != path {
			if deeper, steps := value.lineOf(next, path); steps > 0 {
				found, further = deeper, steps+1
			}
		}
		if further > depth {
			line, depth = found, further
		}
	}
	for _, m := range v.Members {
		next := m.Name
		if at != "" {
			next = at + "." + m.Name
		}
		look(next, m.Line, m.Value)
	}
	for i, item := range v.Items {
		look(fmt.Sprintf("%s[%d]", at, i), item.Line, item)
	}
	return line, depth
}

// Place says where something stands in a file; count is that of its document, from 1, and 0 where the file has one.
func Place(file string, count, line int) string {
	if file == "-" {
		file = "standard input"
	}
	if count > 0 {
		file += fmt.Sprintf(", document %d", count)
	}
	return fmt.Sprintf("%s, line %d", file, line)
}

// Error is what is wrong with a text, and where.
type Error struct {
	Line   int // counted from 1
	Column int // counted from 1, in characters; where only the line is known, it is where its text begins
	What   string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

func wrong(line int, format string, args ...any) error {
	return wrongAt(line, 0, format, args...)
}

func wrongAt(line, column int, format string, args ...any) error {
	return &Error{Line: line, Column: column, What: fmt.Sprintf(format, args...)}
}

// placed gives an error its column where it has none.
func placed(err error, text []byte) error {
	var wrong *Error
	if errors.As(err, &wrong) && wrong.Column == 0 {
		for range wrong.Line - 1 {
			_, text, _ = bytes.Cut(text, []byte("\n"))
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		wrong.Column = column(line, len(line)-len(bytes.TrimLeft(line, " \t")))
	}
	return err
}

// maxDepth is how deep values may be nested.
const maxDepth = 500

// object refuses a name that is given twice.
func (v *Value) object() error {
	lines := make(map[string]int, len(v.Members))
	for _, m := range v.Members {
		if first, twice := lines[m.Name]; twice {
			return wrong(m.Line, "%s: given twice; first in line %d", m.Name, first)
		}
		lines[m.Name] = m.Line
	}
	return nil
}
