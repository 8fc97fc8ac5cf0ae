package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"
)

// show prints one thing: as JSON, or as rows of name and value.
func show[T any](c *cli, v T, rows func(T) [][2]string) error {
	if c.output == "json" {
		return printJSON(c.stdout, v)
	}
	table := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows(v) {
		if row[1] != "" {
			fmt.Fprintf(table, "%s\t%s\n", row[0], strings.ReplaceAll(row[1], "\n", "\n\t"))
		}
	}
	return table.Flush()
}

// list prints many things: as one JSON array, or as a table with a line of headings. An error of the sequence ends it.
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

// rows prints a listing while it comes in.
type rows struct {
	out   io.Writer
	table *tabwriter.Writer // nil: JSON
	count int
}

func newRows(c *cli, headings []string) *rows {
	r := &rows{out: c.stdout}
	if c.output != "json" {
		r.table = tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(r.table, strings.Join(headings, "\t"))
	}
	return r
}

func (r *rows) add(item any, row []string) error {
	r.count++
	if r.table != nil {
		for i, cell := range row {
			row[i] = strings.Join(strings.Fields(cell), " ")
		}
		_, err := fmt.Fprintln(r.table, strings.Join(row, "\t"))
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("  ", "  ")
	if err := enc.Encode(item); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	lead := ",\n  "
	if r.count == 1 {
		lead = "[\n  "
	}
	_, err := fmt.Fprintf(r.out, "%s%s", lead, bytes.TrimSpace(text.Bytes()))
	return err
}

func (r *rows) end() error {
	if r.table != nil {
		return r.table.Flush()
	}
	text := "\n]"
	if r.count == 0 {
		text = "[]"
	}
	_, err := fmt.Fprintln(r.out, text)
	return err
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// clock shows a time, nothing for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// short cuts a cell of a table.
func short(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
