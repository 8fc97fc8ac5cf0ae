package picture

import (
	"slices"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// passes is how often all layers are moved towards their neighbours.
const passes = 12

// spread gives every vertex the middle of its column: as near to the mean of its neighbours as the order and the widths leave room.
func (g *graph) spread() {
	for _, layer := range g.layers {
		x := 0
		for k, v := range layer {
			if k > 0 {
				x += g.apart(layer[k-1], v)
			}
			g.vertices[v].x = x
		}
		for _, v := range layer {
			g.vertices[v].x -= x / 2
		}
	}
	for pass := range passes {
		for k := range g.layers {
			layer := k
			if pass%2 == 1 {
				layer = len(g.layers) - 1 - k
			}
			last := pass >= passes-2
			g.settle(g.layers[layer], pass%2 == 0 || last, pass%2 == 1 || last)
		}
	}
	g.straighten()
	left := 0
	for i, v := range g.vertices {
		if edge := v.x - v.width/2; i == 0 || edge < left {
			left = edge
		}
	}
	for i := range g.vertices {
		g.vertices[i].x -= left
	}
}

// apart is how far the middles of two neighbours in a layer are from each other at least.
func (g *graph) apart(left, right int) int {
	a, b := g.vertices[left], g.vertices[right]
	room := between
	if a.lane || b.lane {
		room = beside
	}
	return (a.width+b.width)/2 + room
}

// settle moves a layer to the mean of its neighbours above, below or both, with the least sum of squared distances that keeps its order and
// its widths: isotonic regression, by pooling those that would get too near to each other.
func (g *graph) settle(layer []int, above, below bool) {
	type pool struct{ sum, weight, count int }
	pools := make([]pool, 0, len(layer))
	offset := 0
	offsets := make([]int, len(layer)) // where each would be if all were packed
	for k, id := range layer {
		if k > 0 {
			offset += g.apart(layer[k-1], id)
		}
		offsets[k] = offset
		want, weight := g.wish(id, above, below)
		pools = append(pools, pool{(want - offset) * weight, weight, 1})
		for n := len(pools); n > 1 && pools[n-2].sum*pools[n-1].weight > pools[n-1].sum*pools[n-2].weight; n = len(pools) {
			a, b := pools[n-2], pools[n-1]
			pools = append(pools[:n-2], pool{a.sum + b.sum, a.weight + b.weight, a.count + b.count})
		}
	}
	k := 0
	for _, p := range pools {
		x := floor(p.sum, p.weight)
		for range p.count {
			g.vertices[layer[k]].x = x + offsets[k]
			k++
		}
	}
}

// wish is where a vertex would like to be, and how much. Lanes want to be straight more than boxes want to be in the middle.
func (g *graph) wish(id int, above, below bool) (want, weight int) {
	v := g.vertices[id]
	sum, n := 0, 0
	add := func(near []int) {
		for _, u := range near {
			one := 1
			if v.lane && (g.vertices[u].lane || g.vertices[u].node == v.node) {
				one = 8
			}
			sum, n = sum+g.vertices[u].x*one, n+one
		}
	}
	if above {
		add(v.up)
	}
	if below {
		add(v.down)
	}
	weight = 1
	if v.lane {
		weight = 4
	}
	if n == 0 {
		return v.x, weight
	}
	return floor(sum, n), weight
}

func floor(a, b int) int {
	if q := a / b; a%b >= 0 {
		return q
	}
	return a/b - 1
}

// near is how far a box is moved at most to stand exactly above or below another.
const near = 24

// straighten takes bends out of lanes, and small ones out of edges, without any change of order.
func (g *graph) straighten() {
	for id, v := range g.vertices {
		if v.lane {
			continue
		}
		aim := v.x
		for lane := g.further(id); lane != flow.None; {
			// As many pieces as can have the same place.
			run := []int{lane}
			low, high := g.room(lane)
			for lane = g.further(lane); lane != flow.None; lane = g.further(lane) {
				l, h := g.room(lane)
				if max(l, low) > min(h, high) {
					break
				}
				low, high = max(l, low), min(h, high)
				run = append(run, lane)
			}
			aim = min(max(aim, low), high)
			for _, piece := range run {
				g.vertices[piece].x = aim
			}
		}
	}
	for _, layer := range g.layers {
		for _, id := range layer {
			if v := g.vertices[id]; !v.lane {
				g.vertices[id].x = g.aligned(id)
			}
		}
	}
}

// aligned is the place near to a box that is in line with most of its neighbours.
func (g *graph) aligned(id int) int {
	v := g.vertices[id]
	low, high := g.room(id)
	all := slices.Concat(v.up, v.down)
	best, most := v.x, 0
	for _, u := range all {
		x := g.vertices[u].x
		if x < max(low, v.x-near) || x > min(high, v.x+near) {
			continue
		}
		n := 0
		for _, other := range all {
			if g.vertices[other].x == x {
				n++
			}
		}
		if n > most {
			best, most = x, n
		}
	}
	return best
}

// room is from where to where a vertex can move between its neighbours in the layer.
func (g *graph) room(id int) (low, high int) {
	const far = 1 << 40
	v := g.vertices[id]
	layer := g.layers[v.layer]
	low, high = -far, far
	if v.place > 0 {
		low = g.vertices[layer[v.place-1]].x + g.apart(layer[v.place-1], id)
	}
	if v.place+1 < len(layer) {
		high = g.vertices[layer[v.place+1]].x - g.apart(id, layer[v.place+1])
	}
	return low, high
}
