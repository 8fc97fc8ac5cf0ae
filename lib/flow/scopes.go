package flow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// This file has what a scope gives to those outside of it. That is kept nowhere: it is made of what its steps have given, wherever it is read.

// given reads what a scope gives: its output, or else the results of its last steps.
func (c *checker) given(n *Node, at string, output json.RawMessage) *Data {
	seen := c.w.sees(n)
	for _, i := range n.Body.Steps {
		seen[c.w.Nodes[i].Name] = i
	}
	if output != nil {
		return c.dataAmong(at+".output", output, seen, "of this scope, or one that the scope waits for", n)
	}
	return c.dataAmong("the result of scope "+n.Path, c.w.lasting(n), seen, "", n)
}

// lasting is the output of a scope that says none: the result of its only last step, as a whole, or of several an object with theirs. A last step is one that no
// other needs but those that handle its failure.
func (w *Workflow) lasting(n *Node) json.RawMessage {
	var last []string
	for _, i := range n.Body.Steps {
		if !slices.ContainsFunc(w.Nodes[i].Next, func(next int) bool { return !w.Nodes[next].handles(i) }) {
			last = append(last, w.Nodes[i].Name)
		}
	}
	result := func(name string) string { return `"${ .steps[\"` + name + `\"].result }"` } // a name has nothing to escape
	if len(last) == 1 {
		return json.RawMessage(result(last[0]))
	}
	all := make([]string, len(last))
	for i, name := range last {
		all[i] = `"` + name + `": ` + result(name)
	}
	return json.RawMessage("{" + strings.Join(all, ", ") + "}")
}

// inScope says of a name that may not be read in which scope it stands, where that helps, in words to put behind others. seen is what may be read, and in the
// node that reads, or nil.
func (c *checker) inScope(name string, seen map[string]int, in *Node) string {
	stands := slices.Sorted(slices.Values(c.stands[name]))
	for _, path := range stands {
		if in != nil && in.Kind == KindScope && path == in.Path {
			return "; that one stands in this scope, and none of its steps has begun when this is asked"
		}
	}
	for _, path := range stands {
		for _, i := range slices.Sorted(maps.Values(seen)) {
			if scope := &c.w.Nodes[i]; scope.Kind == KindScope && standsIn(path, scope.Path) {
				return "; that one stands in the scope " + scope.Path + ", of which the result can be read"
			}
		}
	}
	return ""
}

// standsIn tells whether a path is that of a scope, or of something in it.
func standsIn(path, scope string) bool {
	rest, is := strings.CutPrefix(path, scope)
	return is && (rest == "" || rest[0] == '/')
}

// Rows lists the nodes whose rows are to be read for the data of a node that runs, by it or by passes and scopes whose results it reads, by index, ascending. sure has
// facts of others, by index, one for each node: what rules alone tell of passes and scopes, since they let the node run. Plan tells by all of these what is read, or
// else all rows are to be read, and so where all says so.
func (w *Workflow) Rows(index int) (rows []int, sure []Fact, all bool) {
	sure = make([]Fact, len(w.Nodes))
	w.succeeded(index, sure, map[int]bool{})
	w.through(index, func(int) bool { return true }, func(reader int, reads Reading) {
		all = all || reads.Caught
		for _, i := range reads.Nodes {
			switch n := &w.Nodes[i]; {
			case n.Kind == KindScope:
				all = all || w.Nodes[reader].Data.readsOf(n.Name, "error", "started_at", "ended_at")
			case n.Kind == KindTask || n.Asks():
				rows = append(rows, i)
			}
		}
	})
	return merged(rows, nil), sure, all
}

// readsOf tells whether one of some fields of a step is read.
func (d *Data) readsOf(name string, fields ...string) bool {
	return slices.ContainsFunc(d.Reads().Steps[name], func(field string) bool { return slices.Contains(fields, field) })
}

// succeeded adds the passes and scopes that have succeeded when a node runs, as far as the rules alone say so.
func (w *Workflow) succeeded(index int, sure []Fact, met map[int]bool) {
	if met[index] {
		return
	}
	met[index] = true
	n := &w.Nodes[index]
	if n.Scope != None {
		w.succeeded(n.Scope, sure, met) // it has been released
	}
	if n.Rule != AllSuccess {
		return
	}
	for _, i := range n.judged() {
		if p := &w.Nodes[i]; !p.AllowFailure && (p.Kind == KindScope || p.Kind == KindPass && !p.Asks()) {
			sure[i] = Fact{State: Succeeded, To: None}
		}
		w.succeeded(i, sure, met) // it ran
	}
}

// Whole finds the task whose result a pass or scope hands on as a whole, through others that do, by its index; None where it makes a result of its own.
func (w *Workflow) Whole(index int, facts Facts) int {
	for n := &w.Nodes[index]; n.Gives() && n.Data.Bare() != ""; {
		from := n.Data.names[n.Data.Bare()]
		if n = &w.Nodes[from]; facts.Seen(from).State != Succeeded {
			return None
		} else if n.Kind == KindTask {
			return from
		}
	}
	return None
}
