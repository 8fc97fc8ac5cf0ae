package picture

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// palette is the colours of a picture: its ground, its text, what is said softly, edges, edges of a switch, what is in a scope, and for each
// kind the side of its boxes; boxes themselves; and the sides of boxes of a run.
type palette struct {
	ground, ink, soft, edge, way, scope, scopeSide, box, task, pass, fail, choice, done, bad, busy, off string
}

// The picture goes by what its reader prefers. There are no variables in it, which not every program that shows pictures knows.
var (
	light = palette{"#ffffff", "#1f2933", "#56626e", "#8794a1", "#a86b12", "#f3f6f9", "#b4c0cb", "#ffffff", "#2f5d8f", "#8794a1", "#b3372f", "#a86b12", "#2e7d46", "#b3372f", "#2f5d8f", "#8794a1"}
	dark  = palette{"#12181f", "#e6edf3", "#a2aeba", "#71808e", "#d9a44a", "#19222b", "#3d4a57", "#1f2a35", "#6ea3d8", "#71808e", "#e5776e", "#d9a44a", "#63b67c", "#e5776e", "#6ea3d8", "#71808e"}
)

func (p palette) rules() string {
	return fmt.Sprintf(`.ground { fill: %s } text { fill: %s } .soft { fill: %s } .edge { stroke: %s } .tip { fill: %s } .way { stroke: %s } .tip.way { fill: %s }
.scope { fill: %s; stroke: %s } .box { fill: %s } .task { stroke: %s } .pass { stroke: %s } .fail { stroke: %s } .switch { stroke: %s }`,
		p.ground, p.ink, p.soft, p.edge, p.edge, p.way, p.way, p.scope, p.scopeSide, p.box, p.task, p.pass, p.fail, p.choice)
}

// failures are the looks of edges that a failure takes.
func (p palette) failures() string {
	return fmt.Sprintf(`.caught { stroke: %s; stroke-dasharray: 5 3 } .tip.caught { fill: %s }`, p.fail, p.fail)
}

const shapes = `text { font: 10px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace } .name { font-size: 12px; font-weight: bold }
.edge { fill: none; stroke-width: 1.4 } .tip { stroke: none } .box { stroke-width: 1.5 } .scope { stroke-width: 1.2 }
`

// SVG draws a workflow as a picture that needs nothing else, in the light or dark colours that its reader prefers. Of a run each box says in words where its
// node stands, and its side has the colour of that.
func SVG(w *flow.Workflow, marks Marks) string {
	p := Of(w, marks)
	lightRules, darkRules := light.rules(), dark.rules()
	if slices.ContainsFunc(p.Edges, func(e Edge) bool { return e.Caught }) {
		lightRules, darkRules = lightRules+"\n"+light.failures(), darkRules+" "+dark.failures()
	}
	if marks != nil {
		lightRules, darkRules = lightRules+"\n"+light.states(), darkRules+" "+dark.states()
	}
	title := "Workflow of " + counted(len(w.Nodes), "step")
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n", p.Width, p.Height, p.Width, p.Height, title)
	fmt.Fprintf(&out, "<title>%s</title>\n<style>\n%s%s\n@media (prefers-color-scheme: dark) { %s }\n</style>\n", title, shapes, lightRules, darkRules)
	fmt.Fprintf(&out, `<rect class="ground" width="%d" height="%d" rx="8"/>`+"\n", p.Width, p.Height)
	// A scope comes before what is in it. So the boxes of scopes come first, then the lines, then what lines lead to.
	for _, b := range p.Boxes {
		if w.Nodes[b.Node].Kind == flow.KindScope {
			b.draw(&out, &w.Nodes[b.Node], marks.class(b.Node))
		}
	}
	for _, l := range p.Lanes {
		fmt.Fprintf(&out, `<path class="edge%s" d="%s"/>`+"\n", way(w.Nodes[l.From].Kind == flow.KindSwitch), path(l.Points))
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&out, `<path class="edge%s" d="%s"/>`+"\n", e.class(), path(e.Points))
	}
	for _, b := range p.Boxes {
		if w.Nodes[b.Node].Kind != flow.KindScope {
			b.draw(&out, &w.Nodes[b.Node], marks.class(b.Node))
		}
	}
	for _, e := range p.Edges {
		end := e.Points[len(e.Points)-1]
		fmt.Fprintf(&out, `<path class="tip%s" d="M%d %dl-4 -7h8z"/>`+"\n", e.class(), end.X, end.Y)
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// class is how an edge looks: by whether a switch may choose it, or a failure takes it.
func (e Edge) class() string {
	if e.Caught {
		return " caught"
	}
	return way(e.Chosen)
}

func way(chosen bool) string {
	if chosen {
		return " way"
	}
	return ""
}

func path(points []Point) string {
	var d strings.Builder
	fmt.Fprintf(&d, "M%d %d", points[0].X, points[0].Y)
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		switch middle := (a.Y + b.Y) / 2; {
		case a.X == b.X:
			fmt.Fprintf(&d, "V%d", b.Y)
		case a.Y == b.Y:
			fmt.Fprintf(&d, "H%d", b.X)
		default:
			fmt.Fprintf(&d, "C%d %d %d %d %d %d", a.X, middle, b.X, middle, b.X, b.Y)
		}
	}
	return d.String()
}

// corners tell kinds apart for those to whom the colours say nothing.
var corners = map[flow.Kind]int{flow.KindTask: 5, flow.KindScope: 8, flow.KindPass: 18, flow.KindFail: 0, flow.KindWait: 18}

func (b Box) draw(out *strings.Builder, n *flow.Node, stands string) {
	fmt.Fprintf(out, "<g><title>%s</title>\n", escape(b.Label.Full))
	class := "box " + n.Kind.String()
	if n.Kind == flow.KindScope {
		class = "scope"
	}
	class += stands
	if n.Kind == flow.KindSwitch {
		const cut = 10
		fmt.Fprintf(out, `<path class="%s" d="M%d %dh%dl%d %dv%dl-%d %dh-%dl-%d -%dv-%dz"/>`+"\n", class, b.X+cut, b.Y,
			b.Width-2*cut, cut, cut, b.Height-2*cut, cut, cut, b.Width-2*cut, cut, cut, b.Height-2*cut)
	} else {
		fmt.Fprintf(out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`+"\n", class, b.X, b.Y, b.Width, b.Height, corners[n.Kind])
	}
	fmt.Fprintf(out, `<text class="name" x="%d" y="%d">%s</text>`+"\n", b.X+side, b.Y+19, escape(b.Label.Title))
	for i, line := range b.Label.Lines {
		fmt.Fprintf(out, `<text class="soft" x="%d" y="%d">%s</text>`+"\n", b.X+side, b.Y+headHigh+lineHigh*i+8, escape(line))
	}
	out.WriteString("</g>\n")
}

// escape makes text of a label harmless in a picture. Two characters that are text have no place in XML at all.
func escape(text string) string {
	return html.EscapeString(strings.NewReplacer("\ufffe", "\ufffd", "\uffff", "\ufffd").Replace(text))
}
