package flow

import (
	"maps"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// graph is what the steps of one scope need of one another, by their names.
type graph struct {
	names   []string // sorted
	needs   map[string][]string
	ledBy   map[string]string            // the switch that leads to a step
	catches map[string][]string          // the steps whose failures a step handles
	field   map[string]map[string]string // of a step and one that it needs: the path of the field that says so
}

// edges reads who needs whom.
func (c *checker) edges(steps map[string]Step, around outside) *graph {
	g := &graph{names: slices.Sorted(maps.Keys(steps)), needs: map[string][]string{}, ledBy: map[string]string{}, catches: map[string][]string{}, field: map[string]map[string]string{}}
	add := func(name, needed, at string) {
		if g.field[name] == nil {
			g.field[name] = map[string]string{}
		}
		if g.field[name][needed] == "" {
			g.field[name][needed] = at
			g.needs[name] = append(g.needs[name], needed)
		}
	}
	known := func(name, at string) bool {
		_, ok := steps[name]
		if !ok && name != "" { // "" stands where the form was wrong
			c.add(at, invalid.Quote(name), "the name of a step in the same scope"+c.whereElse(name, g.names, around.path))
		}
		return ok
	}
	for _, name := range g.names {
		at := around.at + "." + name
		for i, needed := range steps[name].Needs {
			if field := entry(at+".needs", i); known(needed, field) {
				add(name, needed, field)
			}
		}
	}
	for _, name := range g.names {
		ways := steps[name].Switch
		for i, way := range ways {
			at := entry(around.at+"."+name+".switch", i)
			if way.When == "" && way.To != "" && i < len(ways)-1 && !c.reported(at) {
				c.add(at, "no condition", "one, or this way last: nothing can reach those behind it")
			}
			if !known(way.To, at+".to") {
				continue
			}
			if by := g.ledBy[way.To]; by != "" && by != name {
				c.add(at+".to", invalid.Quote(way.To), "a step that no other switch leads to, and "+by+" does; let both lead to a pass of their own, and the step need these")
				continue
			}
			g.ledBy[way.To] = name
			add(way.To, name, at+".to")
		}
	}
	for _, name := range g.names {
		for i, clause := range steps[name].Catch {
			at := entry(around.at+"."+name+".catch", i) + ".to"
			if !known(clause.To, at) || slices.Contains(g.catches[clause.To], name) {
				continue
			}
			switch {
			case clause.To == name:
				c.add(at, invalid.Quote(name), "another step: none handles its own failure")
				continue
			case g.ledBy[clause.To] != "":
				c.add(at, invalid.Quote(clause.To), "a step that no switch leads to, and "+g.ledBy[clause.To]+" does; let both lead to a pass of their own, and the step need these")
				continue
			case g.field[clause.To][name] != "":
				c.add(g.field[clause.To][name], invalid.Quote(name), "none here: "+name+" leads to this step by its catch, so the step waits for it, and its rule does not judge it")
				continue
			}
			g.catches[clause.To] = append(g.catches[clause.To], name)
			add(clause.To, name, at)
		}
	}
	return g
}

// whereElse says what may have been meant by a name that no step of a scope has, in words to put behind others.
func (c *checker) whereElse(name string, names []string, path string) string {
	if guess := c.guess(name, names); guess != "" {
		return guess
	}
	for _, in := range c.stands[name] {
		switch {
		case in == "":
			return "; that one stands outside of this scope, which can need it as a whole"
		case path == "" || strings.HasPrefix(in, path+"/"):
			return "; that one stands in the scope " + in + ", which is one step from outside"
		default:
			return "; that one stands in the scope " + in
		}
	}
	const few = 10
	if len(names) <= few {
		return ", which are " + strings.Join(names, ", ")
	}
	return ""
}

// order gives the steps so that each stands behind those that it needs, and otherwise by their names. Where some need one another in a
// circle, that is reported, and those come last.
func (c *checker) order(g *graph) []string {
	var order []string
	placed, left := map[string]bool{}, g.names
	for len(left) > 0 {
		next := slices.IndexFunc(left, func(name string) bool {
			return !slices.ContainsFunc(g.needs[name], func(needed string) bool { return !placed[needed] })
		})
		if next < 0 {
			c.circles(g, left)
			return append(order, left...)
		}
		name := left[next]
		placed[name] = true
		order = append(order, name)
		left = slices.Delete(slices.Clone(left), next, next+1)
	}
	return order
}

// circles reports a shortest circle through each step that is in one, but no step twice.
func (c *checker) circles(g *graph, left []string) {
	reported := map[string]bool{}
	for _, from := range left {
		if reported[from] {
			continue
		}
		circle := g.circle(from)
		if circle == nil {
			continue
		}
		for _, name := range circle {
			reported[name] = true
		}
		c.add(g.field[from][circle[1]], "the cycle "+arrows(circle), "steps that do not wait for themselves: in the cycle each needs the next")
	}
}

// circle is a shortest way from a step to itself along what is needed, with the step at both ends; nil where there is none.
func (g *graph) circle(from string) []string {
	came := map[string]string{}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, needed := range g.needs[todo[0]] {
			if needed == from {
				way := []string{from}
				for at := todo[0]; at != from; at = came[at] {
					way = append(way, at)
				}
				way = append(way, from)
				slices.Reverse(way)
				return way
			}
			if _, met := came[needed]; !met {
				came[needed] = todo[0]
				todo = append(todo, needed)
			}
		}
	}
	return nil
}

// arrows shows a cycle, its middle left out where it is long.
func arrows(circle []string) string {
	const ends = 10
	if len(circle) > 2*ends {
		circle = slices.Concat(circle[:ends], []string{"…"}, circle[len(circle)-ends:])
	}
	return strings.Join(circle, " → ")
}

// ancestors lists the steps that a step needs, those that these need, and so on.
func (g *graph) ancestors(name string) []string {
	var all []string
	met := map[string]bool{name: true}
	for todo := []string{name}; len(todo) > 0; todo = todo[1:] {
		for _, needed := range g.needs[todo[0]] {
			if !met[needed] {
				met[needed] = true
				all, todo = append(all, needed), append(todo, needed)
			}
		}
	}
	return all
}
