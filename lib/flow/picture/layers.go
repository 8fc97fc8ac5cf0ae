package picture

import (
	"slices"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// graph is a graph in layers. Every link joins two layers that follow each other.
type graph struct {
	vertices []vertex // the nodes first, then the lanes
	layers   [][]int  // vertices, from left to right
}

// vertex is a node, or a piece of the lane of one.
type vertex struct {
	node     int // whose it is, by index in the workflow
	lane     bool
	layer    int
	width    int
	up, down []int // vertices that it is linked with
	x        int   // its middle
	place    int   // in its layer
	mean     int   // of the places of its neighbours
}

// layers puts siblings into layers, and lanes where edges pass a layer.
func (l *layout) layers(siblings []int) *graph {
	g := &graph{}
	at := make(map[int]int, len(siblings)) // vertex by node
	deepest := make(map[int]int)           // layer of the lowest node that needs one
	for _, i := range siblings {
		v := vertex{node: i, width: l.Boxes[i].Width}
		for _, need := range l.w.Nodes[i].Needs {
			v.layer = max(v.layer, g.vertices[at[need]].layer+1)
		}
		at[i] = len(g.vertices)
		g.add(v)
		for _, need := range l.w.Nodes[i].Needs {
			deepest[need] = max(deepest[need], v.layer)
		}
	}
	for _, i := range siblings {
		from := at[i]
		chain := []int{from} // the node and its lane, by how many layers below it
		for layer := g.vertices[from].layer + 1; layer < deepest[i]; layer++ {
			chain = append(chain, g.add(vertex{node: i, lane: true, layer: layer}))
			g.link(chain[len(chain)-2], chain[len(chain)-1])
		}
		for _, next := range l.w.Nodes[i].Next {
			to := at[next]
			g.link(chain[g.vertices[to].layer-1-g.vertices[from].layer], to)
		}
	}
	return g
}

func (g *graph) add(v vertex) int {
	for len(g.layers) <= v.layer {
		g.layers = append(g.layers, nil)
	}
	id := len(g.vertices)
	v.place = len(g.layers[v.layer])
	g.layers[v.layer] = append(g.layers[v.layer], id)
	g.vertices = append(g.vertices, v)
	return id
}

func (g *graph) link(up, down int) {
	g.vertices[up].down = append(g.vertices[up].down, down)
	g.vertices[down].up = append(g.vertices[down].up, up)
}

// sweeps is how often the order of the layers is mended, down and up in turn. Few graphs gain by more.
const sweeps = 16

// order moves the vertices of each layer to the mean place of their neighbours, sweeping down and up, and keeps the order that had the
// fewest crossings.
func (g *graph) order() {
	fewest := g.crossings()
	best := g.kept()
	for sweep := 0; sweep < sweeps && fewest > 0; sweep++ {
		for k := range g.layers {
			layer := k
			if sweep%2 == 1 {
				layer = len(g.layers) - 1 - k
			}
			g.sweep(g.layers[layer], sweep%2 == 0)
		}
		if n := g.crossings(); n < fewest {
			fewest, best = n, g.kept()
		}
	}
	g.layers = best
	for _, layer := range g.layers {
		g.number(layer)
	}
}

func (g *graph) kept() [][]int {
	kept := make([][]int, len(g.layers))
	for i := range g.layers {
		kept[i] = slices.Clone(g.layers[i])
	}
	return kept
}

func (g *graph) number(layer []int) {
	for place, v := range layer {
		g.vertices[v].place = place
	}
}

// sweep orders one layer by the layer above it, or the one below. Who has no neighbour there stays where it is.
func (g *graph) sweep(layer []int, down bool) {
	const fine = 1 << 16 // places are whole numbers, and means of them are not
	for place, v := range layer {
		near := g.vertices[v].up
		if !down {
			near = g.vertices[v].down
		}
		g.vertices[v].mean = place * fine
		if len(near) > 0 {
			sum := 0
			for _, u := range near {
				sum += g.vertices[u].place
			}
			g.vertices[v].mean = sum * fine / len(near)
		}
	}
	slices.SortStableFunc(layer, func(a, b int) int { return g.vertices[a].mean - g.vertices[b].mean })
	g.number(layer)
}

// crossings counts the pairs of links that cross.
func (g *graph) crossings() int {
	n := 0
	for i := 1; i < len(g.layers); i++ {
		// Links in the order of their upper ends: each crosses those before it whose lower ends are further to the right. A tree of
		// counts finds how many these are (Fenwick 1994).
		tree := make([]int, len(g.layers[i])+1)
		before := 0
		for _, u := range g.layers[i-1] {
			for _, v := range g.vertices[u].down {
				n += before
				for k := g.vertices[v].place + 1; k > 0; k -= k & -k {
					n -= tree[k]
				}
			}
			for _, v := range g.vertices[u].down {
				before++
				for k := g.vertices[v].place + 1; k < len(tree); k += k & -k {
					tree[k]++
				}
			}
		}
	}
	return n
}

// draw gives boxes their places and edges their points, and the size of it all.
func (l *layout) draw(g *graph) (width, height int) {
	top, bottom := make([]int, len(g.layers)), make([]int, len(g.layers))
	for i, layer := range g.layers {
		if i > 0 {
			aside := 0
			for _, id := range g.layers[i-1] {
				for _, to := range g.vertices[id].down {
					aside = max(aside, g.vertices[id].x-g.vertices[to].x, g.vertices[to].x-g.vertices[id].x)
				}
			}
			top[i] = bottom[i-1] + min(gap+aside/8, widest)
		}
		high := 0
		for _, id := range layer {
			if v := g.vertices[id]; !v.lane {
				high = max(high, l.Boxes[v.node].Height)
			}
		}
		bottom[i] = top[i] + high
	}
	for _, v := range g.vertices {
		if !v.lane {
			b := &l.Boxes[v.node]
			b.X = v.x - v.width/2
			b.Y = top[v.layer]
			if len(v.up) > 0 { // what runs from the start stands at the top
				b.Y += (bottom[v.layer] - top[v.layer] - b.Height) / 2
			}
			width = max(width, b.X+b.Width)
		}
		width = max(width, v.x)
	}
	for id := range g.vertices {
		l.lines(g, id, func(v vertex) (int, int) { return top[v.layer], bottom[v.layer] })
	}
	if n := len(bottom); n > 0 {
		height = bottom[n-1]
	}
	return width, height
}

// lines adds the edges that leave a vertex, and the lane that leaves a node. band tells from where to where the layer of a vertex goes.
func (l *layout) lines(g *graph, id int, band func(vertex) (top, bottom int)) {
	from := g.vertices[id]
	_, low := band(from)
	var out []Point
	if !from.lane {
		b := l.Boxes[from.node]
		out = extend(out, Point{from.x, b.Y + b.Height})
	}
	out = extend(out, Point{from.x, low})
	for _, to := range from.down {
		v := g.vertices[to]
		high, _ := band(v)
		if !v.lane {
			points := extend(slices.Clone(out), Point{v.x, high}, Point{v.x, l.Boxes[v.node].Y})
			l.Edges = append(l.Edges, Edge{From: from.node, To: v.node, Chosen: l.w.Nodes[v.node].Switch == from.node, Caught: slices.Contains(l.w.Nodes[v.node].Catches, from.node), Points: points})
			continue
		}
		if from.lane {
			continue // its lane was followed from the node
		}
		points := slices.Clone(out)
		for lane := to; lane != flow.None; lane = g.further(lane) {
			high, low := band(g.vertices[lane])
			points = extend(points, Point{g.vertices[lane].x, high}, Point{g.vertices[lane].x, low})
		}
		l.Lanes = append(l.Lanes, Lane{From: from.node, Points: points})
	}
}

// further is the piece of a lane below one, or None at its end.
func (g *graph) further(lane int) int {
	for _, to := range g.vertices[lane].down {
		if g.vertices[to].lane {
			return to
		}
	}
	return flow.None
}

// extend goes on with a line, and leaves out what would not go anywhere.
func extend(line []Point, by ...Point) []Point {
	for _, p := range by {
		if len(line) == 0 || line[len(line)-1] != p {
			line = append(line, p)
		}
	}
	return line
}
