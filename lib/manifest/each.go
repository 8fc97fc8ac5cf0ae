package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Document is one of a text's documents, or why it cannot be read.
type Document struct {
	Line  int    // where it begins, counted from 1
	Text  string // of one that cannot be read
	Value *Value // nil for one that cannot be read
	Err   error  // an *Error, whose line is that of the whole text
}

// ReadEach is Read for a text of which some documents may be no YAML or JSON: they are given with their errors, in their places. Where no
// document can be read, or where it is not told where one ends, the error is that of Read.
func ReadEach(name string, text []byte) ([]Document, error) {
	values, err := Read(name, text)
	if err == nil {
		all := make([]Document, len(values))
		for i, v := range values {
			all[i] = Document{Line: v.Line, Value: v}
		}
		return all, nil
	}
	var all []Document
	read := 0
	for _, part := range apart(name, bytes.TrimPrefix(text, []byte("\ufeff"))) {
		values, wrong := Read(part.name, part.text)
		if wrong != nil {
			var at *Error
			if errors.As(wrong, &at) {
				what := otherLine.ReplaceAllStringFunc(at.What, func(text string) string {
					n, _ := strconv.Atoi(strings.TrimPrefix(text, "in line "))
					return fmt.Sprintf("in line %d", n+part.before)
				})
				wrong = &Error{Line: at.Line + part.before, What: what}
			}
			begins := part.before + 1
			if first, _, _ := bytes.Cut(part.text, []byte("\n")); string(bytes.TrimSpace(first)) == "---" {
				begins++
			}
			all = append(all, Document{Line: begins, Text: string(part.text), Err: wrong})
			continue
		}
		for _, v := range values {
			v.move(part.before, map[*Value]bool{})
			all = append(all, Document{Line: v.Line, Value: v})
			read++
		}
	}
	if read == 0 {
		return nil, err
	}
	return all, nil
}

// otherLine is where an error names another line than its own.
var otherLine = regexp.MustCompile(`\bin line [0-9]+`)

// part is a piece of a text that stands for itself.
type part struct {
	name   string
	text   []byte
	before int // lines of the whole text that are before it
}

// apart cuts a text where a document begins whatever is before it: at a line of --- in YAML, in JSON at a brace that begins a line.
func apart(name string, text []byte) []part {
	begins := bytes.TrimSpace(text)
	isJSON := strings.EqualFold(filepath.Ext(name), ".json")
	if !isJSON && !bytes.Contains(text, []byte("\n---")) {
		isJSON = len(begins) > 0 && begins[0] == '{'
	}
	as := "part.yaml"
	if isJSON {
		as = "part.json"
	}
	all := []part{{name: as}}
	line := 0
	for at := range bytes.Lines(text) {
		marks := isJSON && at[0] == '{' ||
			!isJSON && bytes.HasPrefix(at, []byte("---")) && (len(at) == 3 || bytes.IndexByte([]byte(" \t\r\n"), at[3]) >= 0)
		if marks {
			all = append(all, part{name: as, before: line})
		}
		last := &all[len(all)-1]
		last.text = append(last.text, at...)
		line++
	}
	return all
}

// move makes lines of a value be counted from further up. A value that aliases share is moved once.
func (v *Value) move(lines int, moved map[*Value]bool) {
	if moved[v] {
		return
	}
	moved[v] = true
	v.Line += lines
	for _, item := range v.Items {
		item.move(lines, moved)
	}
	for i := range v.Members {
		v.Members[i].Line += lines
		v.Members[i].Value.move(lines, moved)
	}
}
