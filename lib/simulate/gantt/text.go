package gantt

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// signs are the characters of the marks. Where marks meet in a column, the later kind is shown: what is rare and short must not be hidden.
var signs = [...]rune{waiting: '·', succeeded: '█', failed: '▒', stopped: '░', running: '▶', skipped: '×', missed: '-'}

var legend = []struct {
	kind kind
	what string
}{{succeeded, "attempt"}, {failed, "failed or crashed"}, {stopped, "cancelled"}, {running, "still running"}, {waiting, "waits"}, {skipped, "skipped"}, {missed, "missed"}}

// Text draws the chart for a terminal of so many columns, without colour.
func (c Chart) Text(columns int) string {
	const ticks, widest = 4, 24
	wide := 3
	for _, r := range c.Report.Runs {
		wide = max(wide, len(r.Job))
		for _, s := range r.Steps {
			wide = max(wide, 2+len(s.Path))
		}
	}
	for _, s := range c.Report.Skipped {
		wide = max(wide, len(s.Job))
	}
	wide = min(wide, widest)
	across := max(columns-wide-2, 20)
	rows, left := c.rows(c.span() / time.Duration(across))
	var out strings.Builder
	var used [len(signs)]bool
	for _, r := range rows {
		name := ""
		if r.first {
			name = cut(terminal.Line(r.job), wide)
			if r.step != "" {
				name = "  " + cutBefore(terminal.Line(r.step), wide-2)
			}
		}
		cells := []rune(strings.Repeat(" ", across))
		shown := make([]int, across) // kinds + 1
		for _, m := range r.marks {
			from, to := c.column(m.from, across), c.column(m.to, across)
			if m.kind != missed && to > from && !c.at(to, across).Before(m.to) {
				to--
			}
			for i := from; i <= to; i++ {
				if int(m.kind)+1 >= shown[i] {
					shown[i], cells[i] = int(m.kind)+1, signs[m.kind]
				}
			}
		}
		for _, k := range shown {
			if k > 0 {
				used[k-1] = true
			}
		}
		fmt.Fprintf(&out, "%s%s%s\n", name, strings.Repeat(" ", wide-utf8.RuneCountInString(name)+1), strings.TrimRight("│"+string(cells), " "))
		if r.more > 0 {
			fmt.Fprintf(&out, "%s%s\n", strings.Repeat(" ", wide+1), "│ and "+count(r.more, "run")+" more at the same time")
		}
		if r.steps > 0 {
			fmt.Fprintf(&out, "%s│ and %s more\n", strings.Repeat(" ", wide+1), count(r.steps, "step"))
		}
	}
	if left > 0 {
		fmt.Fprintf(&out, "%s│ and %s more\n", strings.Repeat(" ", wide+1), count(left, "job"))
	}
	marks, labels := []rune(strings.Repeat("─", across)), []rune(strings.Repeat(" ", across))
	for i, text := range c.ticks(ticks) {
		at := i * (across - 1) / ticks
		marks[at] = '┬'
		if n := utf8.RuneCountInString(text); across >= (n+1)*ticks || i == 0 || i == ticks {
			copy(labels[min(max(at-n/2, 0), across-n):], []rune(text))
		}
	}
	fmt.Fprintf(&out, "%s└%s\n%s%s\n", strings.Repeat(" ", wide+1), string(marks), strings.Repeat(" ", wide+2), strings.TrimRight(string(labels), " "))
	var said []string
	for _, l := range legend {
		if used[l.kind] {
			said = append(said, string(signs[l.kind])+" "+l.what)
		}
	}
	if len(said) > 0 {
		fmt.Fprintf(&out, "\n%s\n", strings.Join(said, "   "))
	}
	return out.String()
}

// column is where an instant lies.
func (c Chart) column(at time.Time, across int) int {
	return min(max(int(float64(at.Sub(c.From))/float64(c.span())*float64(across)), 0), across-1)
}

// at is when a column begins.
func (c Chart) at(column, across int) time.Time {
	return c.From.Add(time.Duration(float64(c.span()) * float64(column) / float64(across)))
}
