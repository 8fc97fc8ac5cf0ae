package gantt

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Measures of the picture, in its own units.
const (
	width  = 960.0
	left   = 168.0
	right  = 24.0
	head   = 82.0
	lane   = 22.0
	bar    = 14.0
	bottom = 78.0
)

// palette is the colours of a picture: its ground, its text, what is said softly, lines of the grid, and of each kind of mark.
type palette struct {
	ground, ink, soft, grid string
	marks                   [missed + 1]string
}

// The picture goes by what its reader prefers.
var (
	light = palette{"#ffffff", "#1f2933", "#5b6773", "#d9dfe5",
		[...]string{waiting: "#c9d1d9", succeeded: "#2f7d5b", failed: "#c2413b", stopped: "#7b8794", running: "#2f5d8f", skipped: "#8a5a00", missed: "#8a5a00"}}
	dark = palette{"#12181f", "#e6edf3", "#9aa7b4", "#2c3640",
		[...]string{waiting: "#3d4955", succeeded: "#5fc08f", failed: "#f0837c", stopped: "#8b98a5", running: "#8ab8ea", skipped: "#e3b341", missed: "#e3b341"}}
)

var classes = [...]string{waiting: "waits", succeeded: "ok", failed: "failed", stopped: "stopped", running: "runs", skipped: "skipped", missed: "missed"}

func (p palette) rules() string {
	rules := fmt.Sprintf(".ground { fill: %s } text { fill: %s } .soft { fill: %s } .grid { stroke: %s }", p.ground, p.ink, p.soft, p.grid)
	for k, colour := range p.marks {
		rules += fmt.Sprintf(" .%s { fill: %s }", classes[k], colour)
	}
	return rules
}

const shapes = `text { font: 13px "DejaVu Sans", Verdana, sans-serif } .title { font-size: 17px; font-weight: bold } .grid { stroke-width: 1 }
.right { text-anchor: end } .middle { text-anchor: middle }
`

// SVG draws the chart as a picture that needs nothing else. What a mark stands for is told where the pointer is.
func (c Chart) SVG() string {
	rows, jobs := c.rows(c.span() / 300)
	wide := width - left - right
	high := head + float64(max(len(rows), 1))*lane + bottom
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`+"\n", width, high, width, high, escape(c.Title))
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n<style>\n%s%s\n@media (prefers-color-scheme: dark) { %s }\n</style>\n",
		escape(c.Title), escape(c.about()), shapes, light.rules(), dark.rules())
	fmt.Fprintf(&out, `<rect class="ground" width="%g" height="%g" rx="8"/>`+"\n", width, high)
	label(&out, 24, 32, "title", cut(c.Title, 80))
	label(&out, 24, 54, "soft", c.about())
	ground := high - bottom
	const ticks = 6
	for i, text := range c.ticks(ticks) {
		x := left + wide*float64(i)/ticks
		fmt.Fprintf(&out, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", x, head-8, x, ground)
		class := "soft middle"
		if i == ticks {
			class = "soft right"
		}
		label(&out, x, ground+20, class, text)
	}
	drawn, over, steps := 0, 0, 0
	var used [missed + 1]bool
	for i, r := range rows {
		y := head + float64(i)*lane
		if r.first {
			if i > 0 && r.step == "" {
				fmt.Fprintf(&out, `<line class="grid" x1="24" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", y-2, width-right, y-2)
			}
			name, class := cut(r.job, 20), "right"
			if r.step != "" {
				name, class = cutBefore(r.step, 20), "soft right"
			}
			label(&out, left-12, y+bar-2, class, name)
		}
		over, steps = over+r.more, steps+r.steps
		for _, m := range r.marks {
			if drawn++; drawn > mostMarks {
				over++
				continue
			}
			used[m.kind] = true
			c.mark(&out, m, y, wide)
		}
	}
	c.legend(&out, ground+52, used)
	if over > 0 || jobs > 0 || steps > 0 {
		left := fmt.Sprintf("not drawn: %s, %s", count(over, "mark"), count(jobs, "job"))
		if steps > 0 {
			left += ", " + count(steps, "step")
		}
		label(&out, width-right, ground+52, "soft right", left)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func (c Chart) mark(out *strings.Builder, m mark, y, wide float64) {
	x := func(at time.Time) float64 {
		return left + min(max(float64(at.Sub(c.From))/float64(c.span()), 0), 1)*wide
	}
	about := escape(m.about)
	if m.kind == skipped {
		at, middle := x(m.from), y+bar/2
		fmt.Fprintf(out, `<path class="skipped" d="M%.1f %.1f l5 5 l-5 5 l-5 -5 z"><title>%s</title></path>`+"\n", at, middle-5, about)
		return
	}
	top, tall := y, bar
	if m.kind == waiting || m.kind == missed {
		top, tall = y+bar/2-2, 4
	}
	fmt.Fprintf(out, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"><title>%s</title></rect>`+"\n",
		classes[m.kind], x(m.from), top, max(x(m.to)-x(m.from), 2), tall, about)
}

func (c Chart) legend(out *strings.Builder, y float64, used [missed + 1]bool) {
	x := 24.0
	for _, l := range legend {
		if !used[l.kind] {
			continue
		}
		if l.kind == skipped {
			fmt.Fprintf(out, `<path class="skipped" d="M%.1f %.1f l5 5 l-5 5 l-5 -5 z"/>`+"\n", x+6, y-9)
		} else {
			fmt.Fprintf(out, `<rect class="%s" x="%.1f" y="%.1f" width="12" height="10" rx="2"/>`+"\n", classes[l.kind], x, y-9)
		}
		label(out, x+18, y, "soft", l.what)
		x += 36 + 7.4*float64(len(l.what))
	}
}

// about is the chart in a line.
func (c Chart) about() string {
	return fmt.Sprintf("%s to %s %s: %s", c.stamp(c.From), c.stamp(c.To), c.zone(), count(len(c.Report.Runs), "run"))
}

func label(out *strings.Builder, x, y float64, class, text string) {
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, y, strings.TrimSpace(class), escape(text))
}

// escape makes a text one of XML, which has fewer characters than a name may have.
func escape(text string) string {
	return html.EscapeString(strings.NewReplacer("\ufffe", "\ufffd", "\uffff", "\ufffd").Replace(terminal.Line(text)))
}

// cutBefore keeps the end of a text: of a path, the step's own name.
func cutBefore(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most+1:])
	}
	return text
}

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
