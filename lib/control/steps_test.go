package control_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// A scope that was stopped says why, from then on, and once it has failed what of: also where another scope in it stopped it, whose time was over.
func TestAScopeThatWasStoppedSaysWhy(t *testing.T) {
	w, err := flow.Read([]byte(`{"steps": {"out": {"on_failure": "stop", "steps": {"in": {"timeout": "1m", "steps": {"slow": {"handler": {"name": "x"}}}},
		"bad": {"fail": {"code": "work:undone"}}, "other": {"handler": {"name": "x"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	index := func(path string) int {
		n, ok := w.Node(path)
		if !ok {
			t.Fatalf("there is no %s", path)
		}
		return n.Index
	}
	inTime, failed := run.Stop{Scope: index("out/in"), By: flow.None}, run.Stop{Scope: index("out"), By: index("out/bad")}
	byInner := run.Stop{Scope: index("out"), By: index("out/in")}
	for name, c := range map[string]struct {
		stops       []run.Stop
		open        bool   // what is in them has not ended
		path        string // of the scope that is looked at
		state       flow.State
		why, failed string
	}{
		"its time is over":               {[]run.Stop{inTime}, true, "out/in", flow.Running, "timeout: the scope was not over after 1m", ""},
		"it has ended with that":         {[]run.Stop{inTime}, false, "out/in", flow.Failed, "timeout: the scope was not over after 1m", "timeout"},
		"a failure stops it":             {[]run.Stop{failed}, true, "out", flow.Running, "step out/bad has failed, which stopped it", ""},
		"it has ended with the failure":  {[]run.Stop{failed}, false, "out", flow.Failed, "step out/bad has failed, which stopped it", "work:undone"},
		"the time of another in it":      {[]run.Stop{inTime, byInner}, false, "out", flow.Failed, "step out/in has failed, which stopped it", "timeout"},
		"one that was not stopped tells": {nil, true, "out", flow.Running, "", ""},
	} {
		head := run.Run{ID: run.RequestID("job", 1, 2), Tenant: "default", State: run.Running, Started: 1}
		for _, s := range c.stops {
			head = head.Stop(s)
		}
		begun := head.Answered("out/in", run.Answer{State: run.Succeeded}, 1, 9)
		begun.NextAt, begun.Version = 60_000, 1
		rows := map[string]run.Run{"out/in": begun}
		for _, path := range []string{"out/in/slow", "out/other"} {
			row := head.Release(path, 1, 1, 9)
			if !c.open {
				row = head.Answered(path, run.Answer{State: run.Cancelled}, 1, 9)
			}
			row.Version = 1
			rows[path] = row
		}
		steps, _ := control.StandOf(head, w, rows)
		if got := steps[index(c.path)]; got.State != c.state || got.Stopped != c.why || got.Code != c.failed {
			t.Errorf("%s: it is %s, %q, %q; want %s, %q, %q", name, got.State, got.Stopped, got.Code, c.state, c.why, c.failed)
		}
	}
}
