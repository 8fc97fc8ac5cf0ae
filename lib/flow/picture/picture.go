// Package picture lays out the graph of a workflow and draws it: as text, as Mermaid and as SVG.
//
// # Layout
//
// Edges join steps of one scope only, so each scope is laid out by itself and then stands as one box in the graph around it. A graph is laid
// out in layers from top to bottom (Sugiyama, Tagawa, Toda 1981): a step stands one layer below the lowest step that it needs. An edge that
// passes layers has a lane in each, and all such edges of a step share its lanes. Within a layer, boxes and lanes are ordered by barycentre
// sweeps, and then moved to where their neighbours are, as far as the order leaves room. Boxes and lanes have columns of their own within a
// layer, and edges move sideways only between layers, so no edge runs through a box and no box lies over another.
//
// All is reckoned in whole numbers and in the order of the definition: the same workflow gives the same bytes on every machine.
package picture

import (
	"github.com/belfry-scheduler/belfry/lib/flow"
)

// Picture is the graph of a workflow in a plane. Lengths are pixels at the size at which text is 12 high; x grows to the right, y downwards.
type Picture struct {
	Width, Height int
	Boxes         []Box // one for each node, by index: a scope before what is in it
	Lanes         []Lane
	Edges         []Edge
}

// Box is where a node stands.
type Box struct {
	Node                int // by index
	X, Y, Width, Height int // of its upper left corner, and its size
	Label               Label
}

// Lane is the way that edges of a node share past the layers below it: from its lower side, vertically through layers, and in curves between them.
type Lane struct {
	From   int // node, by index
	Points []Point
}

// Edge leads from the lower side of a node, or from the lane of that node, to the upper side of one that needs it.
type Edge struct {
	From, To int  // nodes, by index
	Chosen   bool // From is the switch that leads to To
	Caught   bool // To handles failures of From
	Points   []Point
}

// Point is a point on a line. Where two in a row have the same X, or the same Y, the line between them is straight; else it is a curve that is vertical at both.
type Point struct{ X, Y int }

// The measures of a picture.
const (
	margin  = 16  // around all
	inset   = 14  // around what is in a scope
	between = 24  // boxes of a layer
	beside  = 12  // a lane and its neighbours
	gap     = 36  // between layers, at least
	widest  = 120 // between layers, at most: where edges go far aside, they go less steeply
)

// Of lays out a workflow, and what is said of its nodes.
func Of(w *flow.Workflow, marks Marks) Picture {
	l := layout{w: w, indent: make([]int, len(w.Nodes))}
	l.Boxes = make([]Box, len(w.Nodes))
	for i := range w.Nodes {
		l.Boxes[i] = Box{Node: i, Label: labelOf(w, &w.Nodes[i], marks.of(i))}
	}
	width, height := l.arrange(flow.None)
	l.Width, l.Height = width+2*margin, height+2*margin
	l.move(flow.None, margin, margin)
	return l.Picture
}

// layout is a picture in the making.
type layout struct {
	w *flow.Workflow
	Picture
	indent []int // of what is in a scope, from the left side of its box
}

// arrange lays out what is directly in a scope, with its upper left corner at 0, and gives its size. Inner scopes come first: what is in
// them makes the size of their box.
func (l *layout) arrange(scope int) (width, height int) {
	siblings := l.w.Siblings(scope)
	for _, i := range siblings {
		b := &l.Boxes[i]
		b.Width, b.Height = b.Label.size()
		if l.w.Nodes[i].Kind == flow.KindScope {
			inner, high := l.arrange(i)
			b.Width = max(b.Width, even(inner+2*inset))
			b.Height += high + inset
			l.indent[i] = (b.Width - inner) / 2
		}
	}
	g := l.layers(siblings)
	g.order()
	g.spread()
	return l.draw(g)
}

// move puts what is directly in a scope, and all that is inside, where it belongs.
func (l *layout) move(scope, dx, dy int) {
	shift := func(from int, points []Point) {
		if l.w.Nodes[from].Scope != scope {
			return
		}
		for k := range points {
			points[k] = Point{points[k].X + dx, points[k].Y + dy}
		}
	}
	for _, lane := range l.Lanes {
		shift(lane.From, lane.Points)
	}
	for _, edge := range l.Edges {
		shift(edge.From, edge.Points)
	}
	for _, i := range l.w.Siblings(scope) {
		b := &l.Boxes[i]
		b.X, b.Y = b.X+dx, b.Y+dy
		if l.w.Nodes[i].Kind == flow.KindScope {
			_, head := b.Label.size()
			l.move(i, b.X+l.indent[i], b.Y+head)
		}
	}
}

// even rounds up, so that half of a box is a whole number too.
func even(n int) int { return n + n%2 }
