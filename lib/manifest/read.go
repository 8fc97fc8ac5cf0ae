package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Endings are those of files that Read takes, with which a folder is searched.
var Endings = []string{".yaml", ".yml", ".json"}

// Is tells by its ending whether a file is one that Read takes.
func Is(name string) bool { return slices.Contains(Endings, strings.ToLower(filepath.Ext(name))) }

// Read takes a text apart into its documents: YAML's, between lines of ---, or JSON values one after the other. name says by
// its ending which of the two it is; of any other name, a text that begins with a brace or bracket is JSON if it reads as such.
// Empty documents are left out. The error is an *Error.
func Read(name string, text []byte) ([]*Value, error) {
	values, err := read(name, text)
	return values, placed(err, text)
}

func read(name string, text []byte) ([]*Value, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return nil, wrong(1, "the text is in UTF-16; want it in UTF-8")
	}
	if !utf8.Valid(text) {
		at := 0
		for at < len(text) {
			r, size := utf8.DecodeRune(text[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		begins := bytes.LastIndexByte(text[:at], '\n') + 1
		return nil, wrongAt(1+bytes.Count(text[:at], []byte("\n")), column(text[begins:], at-begins), "want text in UTF-8")
	}
	begins := bytes.TrimSpace(text)
	switch ending := strings.ToLower(filepath.Ext(name)); {
	case ending == ".json":
		return readJSON(text)
	case ending == ".yaml" || ending == ".yml" || len(begins) == 0 || begins[0] != '{' && begins[0] != '[':
		return readYAML(text)
	}
	values, err := readJSON(text)
	if err != nil {
		if flow, ok := readYAML(text); ok == nil {
			return flow, nil
		}
	}
	return values, err
}

// source is a text of JSON whose lines can be found.
type source struct {
	text []byte
	ends []int // where lines end
}

func (s *source) line(offset int) int { return 1 + sort.SearchInts(s.ends, offset) }

// wrong is an error at an offset.
func (s *source) wrong(offset int, format string, args ...any) error {
	offset = min(offset, len(s.text))
	line := s.line(offset)
	begins := 0
	if line > 1 {
		begins = s.ends[line-2] + 1
	}
	return wrongAt(line, column(s.text[begins:], offset-begins), format, args...)
}

// ReadJSON reads the one value of a text of JSON. The error is an *Error.
func ReadJSON(text []byte) (*Value, error) {
	if at := beyond(text); at >= 0 { // before a decoder holds a state for each level
		return nil, wrong(1+bytes.Count(text[:at], []byte("\n")), "more than %d values inside one another", maxDepth)
	}
	values, err := readJSON(text)
	switch {
	case err != nil:
		return nil, err
	case len(values) != 1:
		return nil, wrong(1, "got %d values, want one", len(values))
	}
	return values[0], nil
}

// beyond is where a text of JSON becomes deeper than maxDepth, -1 where it does not.
func beyond(text []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

func readJSON(text []byte) ([]*Value, error) {
	s := &source{text: text}
	for i, b := range text {
		if b == '\n' {
			s.ends = append(s.ends, i)
		}
	}
	var all []*Value
	for at := 0; ; {
		at += len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n"))
		if at == len(text) {
			return all, nil
		}
		in := json.NewDecoder(bytes.NewReader(text[at:]))
		var whole json.RawMessage
		if err := in.Decode(&whole); err != nil {
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				return nil, s.wrong(at+max(0, int(syntax.Offset)-1), "want JSON: %v", err)
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, s.wrong(len(bytes.TrimRight(text, " \t\r\n")), "want JSON: it ends too early")
			}
			return nil, s.wrong(at, "want JSON: %v", err)
		}
		if broken := invalid.BrokenText(whole); broken != nil {
			field := ""
			if broken.Field != "" {
				field = broken.Field + ": "
			}
			return nil, s.wrong(at+broken.Offset, "%sgot %s, want %s", field, broken.Got, broken.Want())
		}
		reader := jsonReader{source: s, from: at, in: json.NewDecoder(bytes.NewReader(text[at : at+len(whole)]))}
		reader.in.UseNumber()
		value, err := reader.value(0)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
		at += len(whole)
	}
}

// jsonReader reads a text that is valid JSON.
type jsonReader struct {
	*source
	in   *json.Decoder
	from int // where the decoder's text begins
}

// here is the line of the next token.
func (r *jsonReader) here() int {
	at := r.from + int(r.in.InputOffset())
	for at < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return r.line(at)
}

func (r *jsonReader) value(depth int) (*Value, error) {
	v := &Value{Line: r.here()}
	if depth > maxDepth {
		return nil, wrong(v.Line, "more than %d values inside one another", maxDepth)
	}
	token, err := r.in.Token()
	if err != nil {
		return nil, wrong(v.Line, "want JSON: %v", err)
	}
	switch token := token.(type) {
	case nil:
	case bool:
		v.Kind, v.Scalar = Bool, map[bool]string{true: "true", false: "false"}[token]
	case json.Number:
		v.Kind, v.Scalar = Number, token.String()
	case string:
		v.Kind, v.Scalar = Text, token
	case json.Delim:
		v.Kind = Array
		if token == '{' {
			v.Kind = Object
		}
		for r.in.More() {
			m := Member{Line: r.here()}
			if v.Kind == Object {
				name, _ := r.in.Token()
				m.Name, _ = name.(string)
			}
			if m.Value, err = r.value(depth + 1); err != nil {
				return nil, err
			}
			if v.Kind == Object {
				v.Members = append(v.Members, m)
			} else {
				v.Items = append(v.Items, m.Value)
			}
		}
		_, _ = r.in.Token() // the end, which is there
		return v, v.object()
	}
	return v, nil
}
