package picture

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/terminal"
)

// Label is what is written in a box: one line each, without control characters, and short enough for its box.
type Label struct {
	Title string
	Lines []string
	Full  string // the same, uncut
}

// The measures of a label. A cell is the width of a character of a font in which all are equally wide.
const (
	longestTitle = 28 // cells
	longestLine  = 36
	titleCell    = 75 // tenths of a pixel
	lineCell     = 64
	lineHigh     = 14
	headHigh     = 26
	footHigh     = 9
	side         = 12 // beside the text
)

func (l Label) size() (width, height int) {
	width = cells(l.Title) * titleCell
	for _, line := range l.Lines {
		width = max(width, cells(line)*lineCell)
	}
	return even((width+9)/10 + 2*side), headHigh + len(l.Lines)*lineHigh + footHigh
}

// labelOf says what a node is, what stands in its way, and where it stands in a run, "" for none.
func labelOf(w *flow.Workflow, n *flow.Node, stands string) Label {
	lines := []string{does(n)}
	if stands != "" {
		lines = []string{stands, does(n)}
	}
	if n.Rule != flow.AllSuccess && len(n.Needs) > len(n.Catches) {
		lines = append(lines, "rule "+string(n.Rule))
	}
	if n.AllowFailure {
		lines = append(lines, "may fail")
	}
	lines = append(lines, conditions(w, n)...)
	for _, of := range n.Catches {
		lines = append(lines, "if "+w.Nodes[of].Name+" is caught: "+caught(w, n, of))
	}
	if n.When != "" {
		lines = append(lines, "if "+n.When)
	}
	if n.Timeout != 0 {
		lines = append(lines, "at most "+n.Timeout.String())
	}
	if n.Stops {
		lines = append(lines, "stops at a failure")
	}
	l := Label{Title: cut(n.Name, longestTitle), Full: terminal.Line(n.Path + ": " + strings.Join(lines, "; "))}
	for _, line := range lines {
		l.Lines = append(l.Lines, cut(line, longestLine))
	}
	return l
}

// does tells what a node does, in two or three words. Of an address it tells the host: the rest may hold what is not for everybody.
func does(n *flow.Node) string {
	switch n.Kind {
	case flow.KindTask:
	case flow.KindScope:
		return "scope of " + counted(len(n.Body.Steps), "step")
	case flow.KindSwitch:
		return "switch of " + counted(len(n.Ways), "way")
	case flow.KindWait:
		return "wait " + n.Wait.String()
	case flow.KindFail:
		if n.Fail.Code != "" {
			return "fail with " + n.Fail.Code
		}
		return "fail"
	default:
		return n.Kind.String()
	}
	switch t := n.Task.Target; {
	case t.HTTP != nil:
		if u, err := url.Parse(t.HTTP.URL); err == nil {
			return "http " + u.Host
		}
		return "http"
	case t.Exec != nil && len(t.Exec.Argv) > 0:
		return "exec " + t.Exec.Argv[0]
	case t.Handler != nil:
		return "handler " + t.Handler.Name
	case t.AWS != nil:
		parts := strings.SplitN(t.AWS.ARN, ":", 6)
		if len(parts) < 6 {
			return "aws"
		}
		return "aws " + parts[2] + " " + parts[5]
	case t.Email != nil && len(t.Email.To) > 0:
		return "email " + t.Email.To[0]
	default:
		return "task"
	}
}

// conditions are those of the ways that lead to a node.
func conditions(w *flow.Workflow, n *flow.Node) []string {
	if n.Switch == flow.None {
		return nil
	}
	var lines []string
	for _, way := range w.Nodes[n.Switch].Ways {
		switch {
		case way.To != n.Index:
		case way.When == "":
			lines = append(lines, "else")
		default:
			lines = append(lines, "if "+way.When)
		}
	}
	return lines
}

// caught tells which failures of another a node handles.
func caught(w *flow.Workflow, n *flow.Node, of int) string {
	var codes []string
	for _, c := range w.Nodes[of].Catch {
		switch {
		case c.To != n.Index:
		case c.Codes == nil && len(w.Nodes[of].Catch) > 1:
			codes = append(codes, "all others")
		case c.Codes == nil:
			codes = append(codes, "all")
		default:
			codes = append(codes, c.Codes...)
		}
	}
	return strings.Join(codes, ", ")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// cells is how wide a text is. Characters of East Asia and pictures take two cells.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += cell(r)
	}
	return n
}

func cell(r rune) int {
	if r >= 0x1100 {
		return 2
	}
	return 1
}

// cut makes one line of a text, and ends it with … where it is too long.
func cut(text string, longest int) string {
	text = terminal.Line(text)
	if cells(text) <= longest {
		return text
	}
	n := 0
	for i, r := range text {
		if n += cell(r); n > longest-1 {
			return text[:i] + "…"
		}
	}
	return text
}
