package oracle

import (
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A step that waits is put once, as any other, and ends by itself: never before its time (P3), by the clock of whoever ends it and by the true one as far as clocks may
// be apart. That it ends at all, and how late, is looked at as of all runs, when nothing goes wrong any more.

func init() {
	stepEdges[[2]run.State{nothing, run.Suspended}] = edge{births&^payload | expires, all(suspends, released)}
	stepEdges[[2]run.State{nothing, run.Succeeded}] = edge{births&^payload | ends, all(released, over)} // its time was past
	stepEdges[[2]run.State{run.Suspended, run.Succeeded}] = edge{ends, over}
	stepEdges[[2]run.State{run.Suspended, run.Cancelled}] = edge{ends, over}
}

func suspends(_, a *run.Run) string {
	return unless(a.Generation > 0 && a.Trigger != 0 && a.NextAt > a.Created, "a step that waits names its generation, what asked for it, and a time that is to come")
}

// mayWait tells whether a step that stands so when it is put may be that of a node.
func mayWait(n *flow.Node, a *run.Run) bool {
	return n.Kind == flow.KindWait && (a.Suspended() || a.State == run.Succeeded)
}

// waits: a step that waits does so for as long as its workflow says, from the end of a step of its run, or its opening.
func (j *Judge) waits(rs *runState, n *flow.Node) {
	a, head := &rs.run, rs.head
	if n.Wait.For == 0 {
		return
	}
	until := a.NextAt
	since := until - n.Wait.For.Std().Milliseconds()
	from := []int64{head.last().Started}
	for _, s := range head.flow.steps {
		from = append(from, s.last().Ended)
	}
	if a.Suspended() && !slices.Contains(from, since) {
		j.violate("W1", "step %s of %s waits %s until %s, and nothing of its run has ended at %s", a.ID, a.Tenant, n.Wait, instant(until), instant(since))
	}
}

// waited: a step that waited has ended.
func (j *Judge) waited(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	switch {
	case a.State != run.Succeeded:
		j.ended(rs, b)
	case a.Ended < b.NextAt:
		j.violate("P3", "step %s of %s waited until %s, and ended %d ms early, by the clock of whoever ended it", a.ID, a.Tenant, instant(b.NextAt), b.NextAt-a.Ended)
	case ms(at) < b.NextAt-j.cfg.Clocks.Milliseconds():
		j.violate("P3", "step %s of %s waited until %s, and ended at %s", a.ID, a.Tenant, instant(b.NextAt), instant(ms(at)))
	}
}
