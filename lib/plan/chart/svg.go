package chart

import (
	"fmt"
	"html"
	"strings"
)

// Measures of the picture, in its own units.
const (
	width  = 860.0
	left   = 84.0
	right  = 24.0
	head   = 74.0
	high   = 190.0 // of a panel
	apart  = 62.0  // between two
	bottom = 46.0
)

// palette is the colours of a picture: its ground, its text, what is said softly, lines of the grid, what lies under the curve, the curve.
type palette struct{ ground, ink, soft, grid, area, line string }

// The picture goes by what its reader prefers. There are no variables in it, which not every program that shows pictures knows.
var (
	light = palette{"#ffffff", "#1f2933", "#5b6773", "#d9dfe5", "#b9cde4", "#2f5d8f"}
	dark  = palette{"#12181f", "#e6edf3", "#9aa7b4", "#2c3640", "#27435f", "#8ab8ea"}
)

func (p palette) rules() string {
	return fmt.Sprintf(`.ground { fill: %s } text { fill: %s } .soft { fill: %s } .grid { stroke: %s } .area { fill: %s } .line { stroke: %s }`,
		p.ground, p.ink, p.soft, p.grid, p.area, p.line)
}

const shapes = `text { font: 13px "DejaVu Sans", Verdana, sans-serif } .title { font-size: 17px; font-weight: bold }
.right { text-anchor: end } .middle { text-anchor: middle } .grid { stroke-width: 1 } .line { fill: none; stroke-width: 1.6; stroke-linejoin: round }
`

func style() string {
	return "\n" + shapes + light.rules() + "\n@media (prefers-color-scheme: dark) { " + dark.rules() + " }\n"
}

// SVG draws the chart as a picture that needs nothing else.
func (c Chart) SVG() string {
	var out strings.Builder
	full := head + float64(len(c.Panels))*(high+apart) - apart + bottom
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`+"\n", width, full, width, full, html.EscapeString(c.Title))
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", html.EscapeString(c.Title), html.EscapeString(c.About), style())
	fmt.Fprintf(&out, `<rect class="ground" width="%g" height="%g" rx="8"/>`+"\n", width, full)
	label(&out, left, 30, "title", c.Title)
	label(&out, left, 50, "soft", c.About)
	for i, p := range c.Panels {
		c.panel(&out, p, head+float64(i)*(high+apart))
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func label(out *strings.Builder, x, y float64, class, text string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f"%s>%s</text>`+"\n", x, y, class, html.EscapeString(text))
}

func (c Chart) panel(out *strings.Builder, p Panel, y float64) {
	const title = 20
	top, wide := p.top(), width-left-right
	ground, tall := y+high, high-title
	across := func(share float64) float64 { return left + share*wide }
	up := func(v float64) float64 { return ground - min(v/top, 1)*tall }
	label(out, left, y+8, "", p.Title)
	const lines = 4
	for i := range lines + 1 {
		v := top * float64(i) / lines
		fmt.Fprintf(out, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", left, up(v), left+wide, up(v))
		label(out, left-8, up(v)+4, "soft right", p.Format(v))
		at := float64(i) / lines
		class := map[int]string{0: "soft", lines: "soft right"}[i]
		if class == "" {
			class = "soft middle"
		}
		label(out, across(at), ground+18, class, clock(c.From+(c.To-c.From)*at))
	}
	// Each stands for a stretch of time, and is drawn in its middle.
	middle := func(i, of int) float64 { return across((float64(i) + 0.5) / float64(of)) }
	points := func(values []float64) string {
		var path strings.Builder
		for i, v := range values {
			fmt.Fprintf(&path, " %.1f,%.1f", middle(i, len(values)), up(v))
		}
		return path.String()
	}
	n := len(p.values())
	fmt.Fprintf(out, `<polygon class="area" points="%.1f,%.1f%s %.1f,%.1f"/>`+"\n", middle(0, n), ground, points(p.values()), middle(n-1, n), ground)
	fmt.Fprintf(out, `<polyline class="line" points="%s"/>`+"\n", strings.TrimSpace(points(p.Mean)))
}
