package run

import "encoding/binary"

// This file has the scopes of a workflow's run that were stopped: since a failure in one says so, or since its time was over. Each takes four bytes of the run's record, and a
// run of which none was has none of it: every start of a step reads that record anyway.

// Stop is a scope of the workflow that was stopped. Both are nodes, by index in its workflow, whose order is that of its definition.
type Stop struct {
	Scope int
	By    int // whose failure stopped it, or -1: its time was over
}

const perStop = 4

// Limited tells whether the run is the row of a scope that says until when that may take, which is NextAt.
func (r Run) Limited() bool { return r.State == Succeeded && r.NextAt != 0 && r.ID.IsStep() }

// Stops lists the scopes of the workflow's run that were stopped, in the order in which they were.
func (r Run) Stops() []Stop {
	var all []Stop
	for rest := r.Stopped; len(rest) >= perStop; rest = rest[perStop:] {
		all = append(all, Stop{int(binary.BigEndian.Uint16(rest)), int(binary.BigEndian.Uint16(rest[2:])) - 1})
	}
	return all
}

// Stop tells the workflow's run that one of its scopes is stopped: nothing in it starts any more.
func (r Run) Stop(s Stop) Run {
	stopped := append([]byte(nil), r.Stopped...)
	stopped = binary.BigEndian.AppendUint16(stopped, uint16(s.Scope))  //nolint:gosec // a workflow has few nodes
	r.Stopped = binary.BigEndian.AppendUint16(stopped, uint16(s.By+1)) //nolint:gosec // nor is it below -1
	return r
}
