package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Mermaid writes a workflow in the language of flowcharts that GitHub, GitLab and many wikis draw. Nodes have names of their own there, n0, n1
// and so on, since names of steps may be words of that language. An arrow that a switch may choose is dashed, and one that a
// failure takes says so.
func Mermaid(w *flow.Workflow, marks Marks) string {
	var out strings.Builder
	out.WriteString("flowchart TD\n")
	var walk func(scope int, indent string)
	walk = func(scope int, indent string) {
		for _, i := range w.Siblings(scope) {
			n := &w.Nodes[i]
			label := quote(append([]string{n.Name}, labelOf(w, n, marks.of(i)).Lines...))
			if n.Kind == flow.KindScope {
				fmt.Fprintf(&out, "%ssubgraph n%d[%s]\n", indent, i, label)
				walk(i, indent+"  ")
				fmt.Fprintf(&out, "%send\n", indent)
				continue
			}
			brackets := around[n.Kind]
			fmt.Fprintf(&out, "%sn%d%s%s%s\n", indent, i, brackets[0], label, brackets[1])
		}
	}
	walk(flow.None, "  ")
	for i := range w.Nodes {
		for _, need := range w.Nodes[i].Needs {
			arrow := "-->"
			if w.Nodes[i].Switch == need {
				arrow = "-.->"
			}
			if slices.Contains(w.Nodes[i].Catches, need) {
				arrow = "-. " + quote([]string{"caught: " + cut(caught(w, &w.Nodes[i], need), longestLine)}) + " .->"
			}
			fmt.Fprintf(&out, "  n%d %s n%d\n", need, arrow, i)
		}
	}
	return out.String()
}

// around are the brackets that give each kind its shape.
var around = map[flow.Kind][2]string{
	flow.KindTask: {"[", "]"}, flow.KindPass: {"([", "])"}, flow.KindFail: {"[[", "]]"}, flow.KindSwitch: {"{{", "}}"}, flow.KindWait: {"([", "])"},
}

// quote writes lines as a label. In one, only entities keep a character from being a mark of Mermaid, of Markdown or of HTML. Letters,
// digits and blanks are none, nor is what joins two letters or digits, as in "warm-cache".
func quote(lines []string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i, line := range lines {
		if i > 0 {
			out.WriteString("<br/>")
		}
		all := []rune(terminal.Line(line))
		for k, r := range all {
			joins := strings.ContainsRune("-.:/_", r) && k > 0 && k+1 < len(all) && plain(all[k-1]) && plain(all[k+1])
			if r >= 0x80 || r == ' ' || plain(r) || joins {
				out.WriteRune(r)
				continue
			}
			fmt.Fprintf(&out, "#%d;", r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

func plain(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' }
