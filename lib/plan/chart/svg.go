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

// style has no colour of its own for the ground: the picture is for a page that is light or dark, and goes by what its reader prefers.
const style = `
  svg { --ink: #1f2933; --soft: #66727f; --grid: #d9dfe5; --area: #4c78a8; --line: #2f5d8f; --bound: #c2410c; --ground: #ffffff; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9aa7b4; --grid: #313b46; --area: #5b8fc7; --line: #8ab8ea; --bound: #fb923c; --ground: #12181f; }
  }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
  .title { font-size: 17px; font-weight: 600; }
  .soft { fill: var(--soft); }
  .right { text-anchor: end; } .middle { text-anchor: middle; }
  .grid { stroke: var(--grid); stroke-width: 1; }
  .area { fill: var(--area); fill-opacity: .28; }
  .line { fill: none; stroke: var(--line); stroke-width: 1.6; stroke-linejoin: round; }
  .bound { stroke: var(--bound); stroke-width: 1.4; stroke-dasharray: 6 4; }
  .bounded { fill: var(--bound); }
  .ground { fill: var(--ground); }
`

// SVG draws the chart as a picture that needs nothing else.
func (c Chart) SVG() string {
	var out strings.Builder
	full := head + float64(len(c.Panels))*(high+apart) - apart + bottom
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`+"\n", width, full, width, full, html.EscapeString(c.Title))
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", html.EscapeString(c.Title), html.EscapeString(c.About), style)
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
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, y, class, html.EscapeString(text))
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
	points := func(values []float64) string {
		var path strings.Builder
		for i, v := range values {
			fmt.Fprintf(&path, " %.1f,%.1f", across((float64(i)+0.5)/float64(len(values))), up(v))
		}
		return path.String()
	}
	fmt.Fprintf(out, `<polygon class="area" points="%.1f,%.1f%s %.1f,%.1f"/>`+"\n", left, ground, points(p.values()), left+wide, ground)
	fmt.Fprintf(out, `<polyline class="line" points="%s"/>`+"\n", strings.TrimSpace(points(p.Mean)))
	if p.Line > 0 {
		fmt.Fprintf(out, `<line class="bound" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", left, up(p.Line), left+wide, up(p.Line))
		label(out, left+wide, up(p.Line)-6, "bounded right", p.Bound)
	}
}
