package protocol_test

import (
	"context"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Whoever decided before a cancel may put a step behind it, and die before it sends it. Nothing looks for such a step: it is shown as what it is, one that never starts.
func TestW5_AStepThatWasPutBehindACancelAndLeft(t *testing.T) {
	f := newFlowWorld(newWorld(t), graphs["chain"])
	cancelled := false
	f.during = func(string) {
		if !cancelled {
			cancelled = true
			_, err := f.host("api").control.Cancel(context.Background(), tenant, f.id, "no longer needed")
			f.must(err)
		}
	}
	f.work()
	f.calm()
	api, head := f.host("api").control, f.head()
	rows := f.rows()
	g, err := api.Graph(context.Background(), tenant, f.id)
	f.must(err)
	left := ""
	for _, s := range g.Steps {
		if rows[s.Node.Path].State == 0 {
			left = s.Node.Path
		}
	}
	if !head.State.Ended() || left == "" {
		t.Fatalf("the run is %s, and %d steps were released, want it cancelled and some not", head.State, len(rows))
	}
	op, err := head.Release(left, head.Ended, head.Ended, head.Expires).Item(7)
	f.must(err)
	op.If = store.Absent
	_, err = f.store.Write(context.Background(), op)
	f.must(err)
	f.calm()
	s, err := api.Step(context.Background(), tenant, f.id, left)
	f.must(err)
	if s.State != flow.Cancelled {
		t.Errorf("the step is shown as %s, want cancelled: its run has ended, and it never starts", s.State)
	}
}
