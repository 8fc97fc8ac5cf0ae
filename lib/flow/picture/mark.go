package picture

import (
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// Mark is where a node stands in a run of the workflow.
type Mark struct {
	State flow.State
	Note  string // more about it in a few words; "" for nothing
}

// Marks has a mark for each node, by index; nil for a workflow that is not that of a run.
type Marks []Mark

// of is what is said of a node, "" where nothing is.
func (m Marks) of(node int) string {
	switch {
	case node >= len(m):
		return ""
	case m[node].Note == "":
		return string(m[node].State)
	}
	return string(m[node].State) + ", " + m[node].Note
}

// class is how a box looks: by whether its node has done what it should, failed, is under way, or does not run.
func (m Marks) class(node int) string {
	if node >= len(m) {
		return ""
	}
	switch m[node].State {
	case flow.Succeeded:
		return " done"
	case flow.Failed, flow.Dead, flow.Unknown, flow.UpstreamFailed:
		return " bad"
	case flow.Queued, flow.Running, flow.Retrying, flow.Suspended, flow.Scheduled:
		return " busy"
	default:
		return " off"
	}
}

// states are the colours of what a node has done, in the order of Marks.class.
func (p palette) states() string {
	return fmt.Sprintf(`.done { stroke: %s } .bad { stroke: %s } .busy { stroke: %s } .off { stroke: %s; stroke-dasharray: 4 3 }`, p.done, p.bad, p.busy, p.off)
}
