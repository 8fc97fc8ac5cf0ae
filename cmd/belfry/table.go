package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// A cell holds plain data, a time as clock gives it; how it is shown is the table's. What a column's heading says of it:
var (
	// freeText is the columns that give way when a line is wider than the terminal. IDs, names and states never do: half of one
	// is of no use.
	freeText = map[string]bool{"WHY": true, "ERROR": true, "TARGET": true, "DETAIL": true, "WHAT": true, "DESCRIPTION": true,
		"MESSAGE": true, "WHEN": true, "REASON": true, "RESULT": true, "VALUE": true, "FROM": true, "NOTE": true, "LABELS": true}
	// states is the columns whose words have colours.
	states = map[string]bool{"STATE": true, "RESULT": true, "OUTCOME": true, "STATUS": true, "LAST RUN": true, "": true}
)

// Bounds of a table.
const (
	gap       = "  "
	leastFree = 10   // columns that a free text keeps, however narrow the terminal
	block     = 1000 // rows that are held back to find out how wide the columns are
)

// table prints rows in columns, a block of rows at a time, so that a listing of any length takes little memory.
type table struct {
	out      io.Writer
	headings []string
	width    int // of the terminal; 0: no bound
	colour   bool
	zone     *time.Location
	now      time.Time
	held     [][]cell
	widths   []int // at least, from the blocks before
	brief    []bool
	begun    bool
}

// cell is one field of a row: its text, and what remains of it where room is short.
type cell struct{ full, brief string }

func (t *table) cell(heading, text string) cell {
	text = terminal.Line(text)
	if !freeText[heading] {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			ago := age(at, t.now)
			return cell{at.In(t.zone).Format(time.DateTime) + " (" + ago + ")", ago}
		}
	}
	return cell{text, text}
}

func (t *table) add(row []string) error {
	cells := make([]cell, len(t.headings))
	for i, text := range row {
		cells[i] = t.cell(t.headings[i], text)
	}
	if t.held = append(t.held, cells); len(t.held) < block {
		return nil
	}
	return t.flush()
}

// flush prints what is held.
func (t *table) flush() error {
	if t.begun && len(t.held) == 0 {
		return nil
	}
	t.fit()
	var text strings.Builder
	if !t.begun {
		t.begun = true
		titles := make([]cell, len(t.headings))
		for i, heading := range t.headings {
			titles[i] = cell{heading, heading}
		}
		t.line(&text, titles, func(_, title string) string { return t.paint(title, bold) })
	}
	for _, cells := range t.held {
		t.line(&text, cells, func(heading, shown string) string {
			if states[heading] {
				return t.paint(shown, colours[shown])
			}
			return shown
		})
	}
	t.held = nil
	_, err := io.WriteString(t.out, text.String())
	return err
}

// fit finds the columns' widths. Where a line is too wide for the terminal, times are told by their age alone, and then the
// widest free texts are cut.
func (t *table) fit() {
	if t.widths == nil {
		t.widths, t.brief = make([]int, len(t.headings)), make([]bool, len(t.headings))
		for i, heading := range t.headings {
			t.widths[i] = columnsOf(heading)
		}
	}
	need := func() []int {
		widths := slices.Clone(t.widths)
		for _, cells := range t.held {
			for i, c := range cells {
				widths[i] = max(widths[i], columnsOf(t.text(i, c)))
			}
		}
		return widths
	}
	widths := need()
	if t.width == 0 || total(widths) <= t.width {
		t.widths = widths
		return
	}
	for i := range t.brief {
		t.brief[i] = true
	}
	widths = need()
	for total(widths) > t.width {
		widest := -1
		for i, heading := range t.headings {
			if freeText[heading] && widths[i] > max(leastFree, columnsOf(heading)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // nothing may give way any more: the terminal wraps
		}
		widths[widest]--
	}
	t.widths = widths
}

func total(widths []int) int {
	sum := len(gap) * (len(widths) - 1)
	for _, width := range widths {
		sum += width
	}
	return sum
}

func (t *table) text(column int, c cell) string {
	if t.brief[column] {
		return c.brief
	}
	return c.full
}

// line writes cells in their columns; look dresses a text whose width is known.
func (t *table) line(to *strings.Builder, cells []cell, look func(heading, shown string) string) {
	last := len(cells) - 1
	for last > 0 && cells[last].full == "" {
		last-- // no blanks at the end of a line
	}
	for i, c := range cells[:last+1] {
		shown := cutTo(t.text(i, c), t.widths[i])
		if i < last {
			fmt.Fprintf(to, "%s%*s%s", look(t.headings[i], shown), t.widths[i]-columnsOf(shown), "", gap)
		} else {
			to.WriteString(look(t.headings[i], shown))
		}
	}
	to.WriteByte('\n')
}

func (t *table) paint(text, colour string) string {
	if !t.colour {
		return text
	}
	return paint(text, colour)
}
