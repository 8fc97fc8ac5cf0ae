package picture

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Text draws a workflow as lines, one for each node: its layer, its name, what it does, and when it runs, said in words. What is in a scope is
// indented, and has layers of its own. Of a run it says where each node stands, behind its name. No line has control characters.
func Text(w *flow.Workflow, marks Marks) string {
	var rows []row
	var walk func(scope, depth int)
	walk = func(scope, depth int) {
		layer := map[int]int{}
		var lines [][]int
		for _, i := range w.Siblings(scope) {
			for _, need := range w.Nodes[i].Needs {
				layer[i] = max(layer[i], layer[need]+1)
			}
			if layer[i] == len(lines) {
				lines = append(lines, nil)
			}
			lines[layer[i]] = append(lines[layer[i]], i)
		}
		for k, line := range lines {
			for _, i := range line {
				n := &w.Nodes[i]
				rows = append(rows, row{
					name: strings.Repeat("  ", depth) + strconv.Itoa(k+1) + " " + terminal.Line(n.Name), stands: cut(marks.of(i), longestLine), does: terminal.Line(does(n)) + traits(n), when: terminal.Line(when(w, n))})
				if n.Kind == flow.KindScope {
					walk(i, depth+1)
				}
			}
		}
	}
	walk(flow.None, 0)

	name, stands, what := 0, 0, 0
	for _, r := range rows {
		name, stands, what = max(name, cells(r.name)), max(stands, cells(r.stands)), max(what, min(cells(r.does), longestLine))
	}
	var out strings.Builder
	for _, r := range rows {
		line := pad(r.name, name) + "  "
		if stands > 0 {
			line += pad(r.stands, stands) + "  "
		}
		line += pad(r.does, what)
		if r.when != "" {
			line += "  " + r.when
		}
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
	}
	return out.String()
}

type row struct{ name, stands, does, when string }

// traits tells of a node whose failure is allowed, and of a scope what stops it.
func traits(n *flow.Node) (text string) {
	if n.Timeout != 0 {
		text += ", at most " + n.Timeout.String()
	}
	if n.Stops {
		text += ", stops at a failure"
	}
	if n.AllowFailure {
		text += ", may fail"
	}
	return text
}

func pad(text string, to int) string { return text + strings.Repeat(" ", max(to-cells(text), 0)) }

// meanings tell in words when a rule lets a step run after several others, and after one.
var meanings = map[flow.Rule][2]string{
	flow.AllSuccess:              {"all of %s succeeded", "%s succeeded"},
	flow.AllFailed:               {"all of %s failed", "%s failed"},
	flow.AllDone:                 {"all of %s ended", "%s ended"},
	flow.AllDoneMinOneSuccess:    {"all of %s ended, one succeeded and none was skipped", "%s succeeded"},
	flow.AllSkipped:              {"all of %s were skipped", "%s was skipped"},
	flow.OneSuccess:              {"one of %s succeeded", "%s succeeded"},
	flow.OneFailed:               {"one of %s failed", "%s failed"},
	flow.OneDone:                 {"one of %s succeeded or failed", "%s succeeded or failed"},
	flow.NoneFailed:              {"all of %s ended and none failed", "%s ended and did not fail"},
	flow.NoneFailedMinOneSuccess: {"all of %s ended, none failed and one succeeded", "%s succeeded"},
	flow.NoneSkipped:             {"all of %s ended and none was skipped", "%s ended and was not skipped"},
}

// mostNames is how many parents a line names; of more it gives the number.
const mostNames = 8

// when says when a node runs: "" for one that runs at the start of its graph.
func when(w *flow.Workflow, n *flow.Node) string {
	text := behind(w, n)
	switch {
	case n.When == "":
		return text
	case text == "":
		return "if " + n.When
	}
	return text + ", if " + n.When
}

// behind says after which others a node runs.
func behind(w *flow.Workflow, n *flow.Node) string {
	var names, failures []string
	for _, need := range n.Needs {
		if slices.Contains(n.Catches, need) {
			failures = append(failures, w.Nodes[need].Name+" ("+caught(w, n, need)+")")
		} else {
			names = append(names, w.Nodes[need].Name)
		}
	}
	text := judged(n, names)
	if len(failures) > 0 {
		if text != "" {
			text += ", and "
		}
		text += "once a failure was caught of " + strings.Join(failures, ", ")
	}
	if n.Switch != flow.None {
		text += ", if " + w.Nodes[n.Switch].Name + " chooses it (" + strings.Join(conditions(w, n), " or ") + ")"
	}
	return text
}

// judged says when the rule of a node lets it run, by the names of those that it judges.
func judged(n *flow.Node, names []string) string {
	one := len(names) == 1
	if len(names) == 0 {
		return ""
	}
	if more := len(names) - mostNames; more > 1 {
		names = append(names[:mostNames], fmt.Sprintf("%d more", more))
	}
	if n.Rule == flow.Always {
		return "at once, whatever becomes of " + strings.Join(names, ", ")
	}
	meaning := meanings[n.Rule][0]
	if one {
		meaning = meanings[n.Rule][1]
	}
	return "once " + fmt.Sprintf(meaning, strings.Join(names, ", "))
}
