package protocol_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// crowd is a world with many runs of workflows that wait, all asked for within two minutes.
type crowd struct {
	*world
	ids   []run.ID
	calls map[string]int // by step of a run

	away   bool // the store refuses all
	refuse int  // operations that it has refused
	writes int  // items written since this was last set to 0
}

// kinds are the workflows of a crowd: their waits, or the second attempts of their steps, are due while the store is away, or after that.
var kinds = map[string]string{
	"meanwhile": `{"steps": {"w": {"wait": {"for": "3h"}}, "b": {"needs": ["w"], "handler": {"name": "call"}}}}`,
	"after":     `{"steps": {"a": {"handler": {"name": "call"}}, "w": {"needs": ["a"], "wait": {"for": "5h"}}, "b": {"needs": ["w"], "handler": {"name": "call"}}}}`,
	"retries":   `{"steps": {"a": {"handler": {"name": "fails_once"}, "retry": {"initial": "3h", "max": "3h"}}, "b": {"needs": ["a"], "handler": {"name": "call"}}}}`,
}

// newCrowd has so many runs asked for, and worked on until all of them wait.
func newCrowd(t testing.TB, n int) *crowd {
	c := &crowd{world: newWorld(t), calls: map[string]int{}}
	called := func(call target.Call) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[call.Run]++
	}
	c.must(c.handlers.Register("call", func(_ context.Context, call target.Call) (target.Result, error) {
		called(call)
		return target.Result{}, nil
	}))
	c.must(c.handlers.Register("fails_once", func(_ context.Context, call target.Call) (target.Result, error) {
		if call.Attempt == 1 {
			return target.Result{}, errors.New("not yet")
		}
		called(call)
		return target.Result{}, nil
	}))
	var names []string
	for name, workflow := range kinds {
		_, _, err := c.host("api").control.Put(context.Background(), tenant, name, job.Definition{Target: target.Spec{Workflow: []byte(workflow)}}, control.Match{})
		c.must(err)
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range []string{"worker", "calm"} {
		c.host(name).before = func(op operation) faulty.Fault {
			switch {
			case c.away:
				c.refuse++
				return faulty.Fault{Refuse: store.ErrThrottled}
			case op.call.Method == faulty.Write, op.call.Method == faulty.WriteEach:
				c.writes += len(op.call.Ops)
			}
			return faulty.Fault{}
		}
	}
	const groups = 12
	for group := range groups {
		for i := group * n / groups; i < (group+1)*n/groups; i++ {
			r, _, err := c.host("api").control.Trigger(context.Background(), tenant, names[i%len(names)], controlRequest())
			c.must(err)
			c.ids = append(c.ids, r.ID)
		}
		c.advance(10*time.Second, 10*time.Second, "calm")
	}
	c.advance(time.Minute, 10*time.Second, "calm")
	return c
}

// states counts the runs by where they stand.
func (c *crowd) states() map[run.State]int {
	states := map[run.State]int{}
	for _, id := range c.ids {
		r, _ := c.run(tenant, id)
		states[r.State]++
	}
	return states
}

// outage lets the store be away from 2 h after the beginning until 4 h after it, while processes go on and try.
func (c *crowd) outage() {
	c.advance(2*time.Hour-c.elapsed, time.Minute, "calm")
	for c.away = true; c.elapsed < 4*time.Hour; c.elapsed += time.Minute {
		_ = c.host("calm").tick()
		_ = c.host("worker").worker.Pass(context.Background(), 0)
	}
	c.away = false
}

// wrong tells what was not done, or twice, once all is over.
func (c *crowd) wrong() (wrong []string) {
	tasks := map[string][]string{"meanwhile": {"b"}, "after": {"a", "b"}, "retries": {"a", "b"}}
	calls := 0
	for _, id := range c.ids {
		if r, _ := c.run(tenant, id); r.State != run.Succeeded {
			wrong = append(wrong, fmt.Sprintf("W3: run %s is %s (%s)", id, r.State, r.Reason))
		}
		for _, path := range tasks[id.Job] {
			calls++
			if n := c.calls[id.At(path).String()]; n != 1 {
				wrong = append(wrong, fmt.Sprintf("W2: step %s was called %d times", id.At(path), n))
			}
		}
	}
	if calls != len(c.calls) {
		wrong = append(wrong, fmt.Sprintf("%d steps were called, want %d", len(c.calls), calls))
	}
	return wrong[:min(len(wrong), 20)]
}

// Scenario 36: 10,000 open runs wait, in the short suite 200, and the store is away for two hours. What fell due meanwhile goes on within five minutes of its return, all of it
// once; and what did not waits for its time.
func TestW2_W3_Scenario36_TheStoreIsAwayWhileManyRunsWait(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 200
	}
	c := newCrowd(t, n)
	if states := c.states(); states[run.Running] != n {
		t.Fatalf("before, the runs are %v", states)
	}
	c.outage()
	if states := c.states(); states[run.Running] != n || c.refuse == 0 {
		t.Fatalf("while it is away, with %d operations refused, the runs are %v", c.refuse, states)
	}
	later := (n + 2) / 3 // of three kinds in turn, the first by name
	c.advance(5*time.Minute, 10*time.Second, "calm")
	if states := c.states(); states[run.Succeeded] != n-later || states[run.Running] != later {
		t.Errorf("five minutes after it is back the runs are %v, want %d to have ended", states, n-later)
	}
	c.advance(5*time.Hour+15*time.Minute-c.elapsed, time.Minute, "calm")
	for _, w := range c.wrong() {
		t.Error(w)
	}
}

// What it takes that the store is back after two hours while 10,000 runs are open: the items written until all that fell due has ended, for each of these runs, and before
// the store went away for each of all.
func BenchmarkTheStoreIsBackWhileManyRunsWait(b *testing.B) {
	const n = 10_000
	for range b.N {
		b.StopTimer()
		c := newCrowd(b, n)
		c.writes = 0
		c.outage()
		idle := c.writes
		c.writes = 0
		b.StartTimer()
		c.advance(5*time.Minute, 10*time.Second, "calm")
		b.StopTimer()
		b.ReportMetric(float64(idle)/n, "writes/run-before")
		b.ReportMetric(float64(c.writes)/float64(c.states()[run.Succeeded]), "writes/run-back")
	}
}
