package flow

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/expression"
)

// Condition is an expression that asks whether something holds.
type Condition struct {
	*expression.Expression
	at string
	named
}

// named is what a text names: nodes, by index, and the one whose failures it reads as .caught, or None.
type named struct {
	names   map[string]int
	caught  int   // that handles them
	catches []int // of which they are
}

// Data is JSON with expressions in its texts.
type Data struct {
	*expression.Template
	at string
	named
}

// Reading tells what expressions read: the payload of the run, and of which nodes, by index, ascending, something, or the result.
type Reading struct {
	Input   bool
	Nodes   []int
	Results []int
	Caught  bool // of nodes among them the failures that were caught
}

func reading(reads expression.Reads, n named) Reading {
	r := Reading{Input: reads.Input, Nodes: slices.Clone(n.catches), Caught: n.catches != nil}
	for name, i := range n.names {
		r.Nodes = append(r.Nodes, i)
		if reads.Result(name) {
			r.Results = append(r.Results, i)
		}
	}
	r.Nodes = merged(r.Nodes, nil)
	slices.Sort(r.Results)
	return r
}

// expressions reads the expressions of all nodes, and finds what they name.
func (c *checker) expressions() {
	for i := range c.w.Nodes {
		n := &c.w.Nodes[i]
		at := c.w.field(n)
		s := c.w.step(n)
		if n.When != "" {
			n.Condition = c.condition(at+".when", n.When, n)
		}
		for k := range n.Ways {
			if n.Ways[k].When != "" {
				n.Ways[k].Condition = c.condition(entry(at+".switch", k)+".when", n.Ways[k].When, n)
			}
		}
		switch {
		case n.Kind == KindTask:
			n.Data = c.data(at+".input", s.Input, n)
		case n.Kind == KindPass:
			n.Data = c.data(at+".pass.input", s.Pass.Input, n)
		case n.Kind == KindScope:
			n.Data = c.given(n, at, s.Output)
		case n.Kind == KindWait:
			c.untilData(at, n)
		}
	}
	c.w.Output = c.data("output", c.def.Output, nil)
}

// step is a node as it is written.
func (w *Workflow) step(n *Node) Step {
	if n.Scope == None {
		return w.source.Steps[n.Name]
	}
	return w.step(&w.Nodes[n.Scope]).Steps[n.Name]
}

// condition reads a condition of a node. Its form was looked at before.
func (c *checker) condition(at, text string, n *Node) *Condition {
	e, err := expression.Parse(text)
	if err != nil {
		c.wrongly(at, err)
		return nil
	}
	of := named{names: map[string]int{}, caught: None}
	c.named(at, e, n, &of)
	return &Condition{e, at, of}
}

// data reads JSON of a node, or of the whole workflow; nil where it holds no expression. Of the whole it is never nil, where there is any.
func (c *checker) data(at string, text json.RawMessage, n *Node) *Data {
	if text == nil {
		return nil
	}
	d := c.dataAmong(at, text, c.w.sees(n), whatIsNamed(n), n)
	if d != nil && d.Constant() && n != nil {
		return nil
	}
	return d
}

// dataAmong reads JSON that may name some nodes, which what says in words; nil where that is wrong. in is the node that it is of, or nil.
func (c *checker) dataAmong(at string, text json.RawMessage, seen map[string]int, what string, in *Node) *Data {
	t, err := expression.ParseTemplate(text)
	if err != nil {
		var which *expression.At
		if errors.As(err, &which) {
			at += which.Path
		}
		c.wrongly(at, err)
		return nil
	}
	of := named{names: map[string]int{}, caught: None}
	for path, e := range t.All() {
		c.namedAmong(at+path, e, seen, what, in, &of)
	}
	return &Data{t, at, of}
}

// named finds the nodes that an expression names: those that node n waits for, or of the whole workflow any outside of every scope.
func (c *checker) named(at string, e *expression.Expression, n *Node, of *named) {
	c.namedAmong(at, e, c.w.sees(n), whatIsNamed(n), n, of)
}

// namedAmong finds the nodes that an expression names, among those that it may name, which what says in words. in is the node that it is of, or nil.
func (c *checker) namedAmong(at string, e *expression.Expression, seen map[string]int, what string, in *Node, of *named) {
	reads := e.Reads()
	if reads.Caught {
		if of.caught = c.w.handler(in); of.caught != None {
			of.catches = c.w.Nodes[of.caught].Catches
		} else {
			got := &expression.Error{At: e.Place(expression.Caught), Got: expression.Caught}
			c.add(at, got.Shown(), "what this step can read: .caught is of steps that a catch leads to, and of what is in a scope that one leads to")
		}
	}
	for _, name := range reads.Names() {
		i, ok := seen[name]
		if !ok {
			got := &expression.Error{At: e.Place(name), Got: name}
			where := c.inScope(name, seen, in)
			if where == "" {
				where = c.whichElse(name, seen)
			}
			c.add(at, got.Shown(), "a step "+what+where)
			continue
		}
		of.names[name] = i
	}
}

func whatIsNamed(n *Node) string {
	if n == nil {
		return "outside of every scope"
	}
	return "that this one waits for"
}

// whichElse says which names there are, in words to put behind others.
func (c *checker) whichElse(name string, seen map[string]int) string {
	var names []string
	for one := range seen {
		names = append(names, one)
	}
	slices.Sort(names)
	const few = 10
	switch guess := c.guess(name, names); {
	case guess != "":
		return guess
	case len(names) == 0:
		return "; it waits for none"
	case len(names) <= few:
		return ": " + listOf(names)
	}
	return ""
}

// sees gives the nodes that expressions of a node may name, by their names: those that it waits for, and those that the scopes around it do. Of the whole workflow, for
// nil, it gives all outside of every scope.
func (w *Workflow) sees(n *Node) map[string]int {
	seen := map[string]int{}
	if n == nil {
		for _, i := range w.Top {
			seen[w.Nodes[i].Name] = i
		}
		return seen
	}
	for at := n.Index; at != None; at = w.Nodes[at].Scope {
		todo := slices.Clone(w.Nodes[at].Needs)
		for len(todo) > 0 {
			i := todo[0]
			todo = todo[1:]
			if _, met := seen[w.Nodes[i].Name]; !met {
				seen[w.Nodes[i].Name] = i
				todo = append(todo, w.Nodes[i].Needs...)
			}
		}
	}
	return seen
}

// Reading tells what the data read.
func (d *Data) Reading() Reading { return reading(d.Reads(), d.named) }

// asked tells what the conditions of a node read, all together.
func (n *Node) asked() Reading {
	var all Reading
	add := func(c *Condition) {
		if c == nil {
			return
		}
		r := reading(c.Reads(), c.named)
		all = Reading{Input: all.Input || r.Input, Caught: all.Caught || r.Caught, Nodes: merged(all.Nodes, r.Nodes), Results: merged(all.Results, r.Results)}
	}
	add(n.Condition)
	for _, way := range n.Ways {
		add(way.Condition)
	}
	return all
}

func merged(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Unsure lists the nodes that are read for the data of a node, by it or by passes and scopes whose results it reads, by index, ascending, which may still be open when
// the node is released: it stands behind an early rule, or they do. All others have ended by then, whatever happened.
func (w *Workflow) Unsure(index int) []int {
	if w.Nodes[index].Data == nil {
		return nil
	}
	released := map[int]bool{}
	w.ended(index, released)
	var unsure []int
	w.through(index, func(int) bool { return true }, func(reader int, reads Reading) {
		sure := released
		if reader != index { // it is read only if it ran
			sure = maps.Clone(released)
			w.ended(reader, sure)
			w.endedIn(reader, sure)
		}
		for _, i := range reads.Nodes {
			if !sure[i] {
				unsure = append(unsure, i)
			}
		}
	})
	return merged(unsure, nil)
}

// Early lists the nodes that are read for the data of a node, by it or by passes and scopes whose results it reads, and of which facts do not say yet what it is to be
// handed of them: that they have ended, or are Open for it, as lasting tells. It gives their indexes, ascending.
func (w *Workflow) Early(index int, facts Facts, lasting func(int) bool) []int {
	var early []int
	w.through(index, func(i int) bool { return facts.Seen(i).State == Succeeded }, func(_ int, reads Reading) {
		for _, i := range reads.Nodes {
			if facts.Seen(i).State == Open && !lasting(i) {
				early = append(early, i)
			}
		}
	})
	return merged(early, nil)
}

// through visits the data of a node, and of each pass and scope whose result is read for it and for which follow says so, once.
func (w *Workflow) through(index int, follow func(int) bool, visit func(reader int, reads Reading)) {
	met := map[int]bool{index: true}
	for todo := []int{index}; len(todo) > 0; todo = todo[1:] {
		reads := w.Nodes[todo[0]].Data.Reading()
		visit(todo[0], reads)
		for _, i := range reads.Results {
			if n := &w.Nodes[i]; n.Gives() && !met[i] && follow(i) {
				met[i] = true
				todo = append(todo, i)
			}
		}
	}
}

// ended adds the nodes that have ended when a node runs, as far as the rules alone say so.
func (w *Workflow) ended(index int, sure map[int]bool) {
	n := &w.Nodes[index]
	if n.Scope != None {
		w.ended(n.Scope, sure) // it has been released
	}
	for _, i := range n.Catches { // whatever the rule
		sure[i] = true
		if len(n.Catches) == 1 { // it ran, and failed
			w.ended(i, sure)
		}
	}
	switch n.Rule {
	case OneSuccess, OneFailed, OneDone, Always:
		if n.Switch != None { // it has chosen, whatever the rule
			sure[n.Switch] = true
			w.ended(n.Switch, sure)
		}
		return
	}
	for _, i := range n.Needs {
		if !sure[i] {
			sure[i] = true
			if n.Rule == AllSuccess || i == n.Switch { // it ran
				w.ended(i, sure)
			}
		}
	}
}

// endedIn adds what is directly in a scope, which has ended once the scope has.
func (w *Workflow) endedIn(scope int, sure map[int]bool) {
	if n := &w.Nodes[scope]; n.Kind == KindScope {
		for _, i := range n.Body.Steps {
			sure[i] = true
		}
	}
}

// Said is an expression of a workflow.
type Said struct {
	Field string // where it stands in the definition
	Text  string
	Reads []string // what it reads: ".input", ".run", ".steps.NAME.FIELD"; ".steps.NAME" is all of a step
}

// Expressions lists those of the workflow, in the order of its nodes, and those of its output last.
func (w *Workflow) Expressions() []Said {
	var all []Said
	add := func(at string, e *expression.Expression) {
		all = append(all, Said{Field: at, Text: strings.TrimSpace(e.String()), Reads: e.Reads().List()})
	}
	data := func(d *Data) {
		if d == nil {
			return
		}
		for path, e := range d.All() {
			add(d.at+path, e)
		}
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		if n.Condition != nil {
			add(n.Condition.at, n.Condition.Expression)
		}
		for _, way := range n.Ways {
			if way.Condition != nil {
				add(way.Condition.at, way.Condition.Expression)
			}
		}
		if n.Kind != KindScope || w.step(n).Output != nil { // else nobody has written it
			data(n.Data)
		}
		if n.Wait != nil {
			data(n.Wait.data)
		}
	}
	data(w.Output)
	return all
}
