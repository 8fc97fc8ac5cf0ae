package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// structured tells whether the result is for programs: print gives it, in the form that --output names.
func (c *cli) structured() bool { return c.output != formTable }

// print prints a value as JSON, as YAML with the same keys in the same order, or what names or a template take out of it.
func (c *cli) print(v any) error {
	text, err := encodeJSON(v, "", "  ")
	switch template, picks := strings.CutPrefix(c.output, formPath); {
	case err != nil:
	case c.output == formYAML:
		text, err = yamlOf(text)
	case c.output == formName:
		text, err = namesOf(text)
	case picks:
		text, err = picked(template, text)
	}
	if err == nil && len(text) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = c.stdout.Write(append(bytes.TrimRight(text, "\n"), '\n'))
	return err
}

// encodeJSON writes JSON that does nothing to a terminal, and is read as what was given.
func encodeJSON(v any, prefix, indent string) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, indent)
	err := enc.Encode(v)
	return terminal.Escape(text.Bytes()), err
}

// yamlOf writes JSON as YAML.
func yamlOf(text []byte) ([]byte, error) {
	values, err := manifest.Read(".json", text)
	if err != nil {
		return nil, fmt.Errorf("YAML cannot hold it, -o json can: %w", err)
	}
	return manifest.YAML(values...), nil
}

// show prints one thing: as JSON or YAML, or as rows of name and value. A row without a value is left out.
func show[T any](c *cli, v T, rows func(T) [][2]string) error {
	if c.structured() {
		return c.print(v)
	}
	all := rows(v)
	wide := 0
	for _, row := range all {
		if row[1] != "" {
			wide = max(wide, columnsOf(row[0]))
		}
	}
	var text strings.Builder
	for _, row := range all {
		if row[1] == "" {
			continue
		}
		for i, line := range strings.Split(row[1], "\n") {
			name := row[0]
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(&text, "%s%s%s\n", pad(name, wide), gap, c.dress(row[0], line))
		}
	}
	_, err := io.WriteString(c.stdout, text.String())
	return err
}

// dress shows a value: a time in the user's zone, a state in its colour.
func (c *cli) dress(name, value string) string {
	value = terminal.Line(value)
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return c.moment(at)
	}
	if c.colour && name == "state" {
		return paint(value, colours[value])
	}
	return value
}

// list prints many things: as one array, or as a table with a line of headings. An error of the sequence ends it.
func list[T any](c *cli, items iter.Seq2[T, error], most int, headings []string, row func(T) []string) error {
	if most < 0 {
		return misused("-n %d: want 0 for all, or more", most)
	}
	out := newRows(c, headings)
	shown := 0
	for item, err := range items {
		if err != nil {
			return endWith(out, err)
		}
		if err := out.add(item, row(item)); err != nil {
			return err
		}
		if shown++; shown == most {
			break
		}
	}
	return out.end()
}

// endWith ends a listing that broke off, so that what was printed can be read, and gives the error.
func endWith(out *rows, err error) error {
	if out.table != nil && out.count == 0 {
		return err // headings over nothing would only hide it
	}
	if failed := out.end(); failed != nil {
		return failed
	}
	return err
}

// rows prints a listing while it comes in. Cells are plain data, times as clock gives them; see table for how they are shown.
type rows struct {
	c     *cli
	table *table // nil: a form for programs
	count int
	held  []any // for a template, which is of all of them
}

func newRows(c *cli, headings []string) *rows {
	r := &rows{c: c}
	if !c.structured() {
		r.table = &table{out: c.stdout, headings: headings, width: c.width, colour: c.colour, zone: c.zone, now: c.now()}
	}
	return r
}

func (r *rows) add(item any, row []string) error {
	r.count++
	if r.table != nil {
		return r.table.add(row)
	}
	switch {
	case r.c.output == formYAML, r.c.output == formName:
		return r.c.print([]any{item}) // sequences one below the other are one
	case strings.HasPrefix(r.c.output, formPath):
		r.held = append(r.held, item)
		return nil
	}
	text, err := encodeJSON(item, "  ", "  ")
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	lead := ",\n  "
	if r.count == 1 {
		lead = "[\n  "
	}
	_, err = fmt.Fprintf(r.c.stdout, "%s%s", lead, bytes.TrimSpace(text))
	return err
}

func (r *rows) end() error {
	if r.table != nil {
		return r.table.flush()
	}
	text := "\n]\n"
	switch {
	case strings.HasPrefix(r.c.output, formPath):
		if r.held == nil {
			r.held = []any{}
		}
		return r.c.print(r.held)
	case r.c.output == formName:
		text = ""
	case r.count == 0:
		text = "[]\n"
	case r.c.output == formYAML:
		text = ""
	}
	_, err := io.WriteString(r.c.stdout, text)
	return err
}

// short cuts a cell of a table.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
