package budget_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// A step that reads what a scope gives reads the rows that this is made of, and no others, however many steps the scope and the run have; and a scope that asks whether
// it runs is one write more.
func TestAScopeCostsWhatItsResultIsMadeOf(t *testing.T) {
	flow := func(scope, reads string) string {
		return `{"steps": {"s": {` + scope + `"output": "${ [.steps.s000.result, .steps.s001.result] }", "steps": {` + chain(50) + `}}, "z": {"needs": ["s"], "handler": {"name": "h"}` + reads + `}}}`
	}
	plainWrites, plainReads := spent(t, flow("", ""))
	for _, c := range []struct {
		name, workflow string
		writes, reads  float64 // more than without
	}{
		{"it is read", flow("", `, "input": "${ .steps.s.result }"`), 0, 2},
		{"its state is read", flow("", `, "input": "${ .steps.s.state }"`), 0, 0},
		{"all of it is read", flow("", `, "input": "${ .steps.s }"`), 0, 5},
		{"it asks", flow(`"when": ".run.job != \"\"", `, ""), 1, 1},
		{"it stops at a failure, and nothing fails", flow(`"on_failure": "stop", `, ""), 0, 0},
		{"it has a timeout of an hour", flow(`"timeout": "1h", `, ""), 1, 2},
		{"it has a timeout of a minute", flow(`"timeout": "1m", `, ""), 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			writes, reads := spent(t, c.workflow)
			t.Logf("%.2f write units and %.2f read units more than %.2f and %.2f", writes-plainWrites, reads-plainReads, plainWrites, plainReads)
			if writes-plainWrites != c.writes {
				t.Errorf("%.2f write units more, want %.0f", writes-plainWrites, c.writes)
			}
			if reads-plainReads > c.reads {
				t.Errorf("%.2f read units more, want at most %.0f", reads-plainReads, c.reads)
			}
		})
	}
}

// spent is what one run of a workflow costs, in units.
func spent(t *testing.T, workflow string) (writes, reads float64) {
	synctest.Test(t, func(t *testing.T) {
		m := &meter{Store: memory.New(memory.Config{})}
		n := open(t, m, func(context.Context, target.Call) (target.Result, error) { return target.Result{}, nil })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		time.Sleep(2 * time.Second)
		def := job.Definition{Target: target.Spec{Workflow: []byte(workflow)}}
		if _, _, err := n.Control.Put(ctx, "default", "flow", def, control.Match{}); err != nil {
			t.Fatal(err)
		}
		const runs = 10
		m.writes, m.reads = 0, 0
		for range runs {
			if _, _, err := n.Control.Trigger(ctx, "default", "flow", control.Request{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Minute)
		writes, reads = m.writes/runs, m.reads/runs
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return writes, reads
}
