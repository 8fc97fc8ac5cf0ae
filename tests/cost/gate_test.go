package cost

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// What a run takes beyond one whose job bounds nothing: the gate's two reads and its write, and the run of the entry that is in its way, or was. A run that is
// skipped is neither started nor ended, but for being skipped. docs/cost.md tells of these.
func TestWhatAGateTakes(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	const runs = 60
	takes := func(t *testing.T, overlap job.Overlap, held bool, gates ...job.GateUse) (writes, reads float64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, lone, ok())
			time.Sleep(17 * time.Second)
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Overlap: overlap, Gates: gates}
			for _, use := range gates {
				defines(t, r, gate.Named{Tenant: "default", Name: use.Gate, Generation: 1, Def: gate.Definition{Limit: 100}})
			}
			j, _, err := r.Control.Put(r.ctx, "default", "report", def, control.Match{})
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			waits := run.Run{ID: run.RequestID("report", now.UnixMilli(), 1), Tenant: "default", State: run.Queued, Trigger: run.ByRequest,
				Priority: queue.Normal, Generation: j.Generation, Created: now.UnixMilli()}
			if held {
				if waits, err = r.Dispatch.PutRun(r.ctx, waits, job.Callbacks{}, now.UnixMilli()); err != nil {
					t.Fatal(err)
				}
				if came, err := r.Dispatch.Enter(r.ctx, waits, waits.ID.Nominal, j.Def); err != nil || came != dispatch.Passed {
					t.Fatal(came, err)
				}
				waits = waits.Start("w", now.UnixMilli(), time.Minute)
				next := waits.Fail(now.UnixMilli(), run.Failure{Error: "not yet", NextAt: now.Add(48 * time.Hour).UnixMilli()}, dispatch.Limits(j.Def))
				if _, err = r.Dispatch.PutRun(r.ctx, next, job.Callbacks{}, now.UnixMilli()); err != nil {
					t.Fatal(err)
				}
			}
			asked := 0
			ask := func(minute int) error { // each second one: what is remembered of a job for a minute is read anew for each
				if minute%2 > 0 || asked == runs {
					return nil
				}
				asked++
				_, _, err := r.Control.Trigger(r.ctx, "default", "report", control.Request{})
				return err
			}
			if err := r.minutes(2, nil); err != nil {
				t.Fatal(err)
			}
			before := r.meter.read()
			if err := r.minutes(2*runs+90, ask); err != nil { // until the last sweep has come upon all of them
				t.Fatal(err)
			}
			u := r.meter.read()
			writes, reads = (u.Writes-before.Writes-u.Shared+before.Shared)/runs, (u.Reads-before.Reads)/runs
		})
		return writes, reads
	}
	plainWrites, plainReads := takes(t, job.Overlap{}, false)
	for name, row := range map[string]struct {
		overlap       job.Overlap
		gates         []job.GateUse
		writes, reads float64
	}{
		"a named gate":               {job.Overlap{}, []job.GateUse{{Gate: "stripe"}}, 1, 3.5},
		"two gates, own and named":   {job.Overlap{Policy: job.OverlapQueue, Limit: 100}, []job.GateUse{{Gate: "stripe"}}, 2, 5.9},
		"two gates, both are named":  {job.Overlap{}, []job.GateUse{{Gate: "gpu"}, {Gate: "stripe"}}, 2, 6.8},
		"one at a time, and a named": {job.Overlap{Policy: job.OverlapQueue}, []job.GateUse{{Gate: "stripe"}}, 2, 6.5},
		"a named gate by a key":      {job.Overlap{}, []job.GateUse{{Gate: "customer", Key: "${ .job }"}}, 1, 3.5},
		// A transaction over the gate and the definition, which counts twice.
		"the first of its value": {job.Overlap{}, []job.GateUse{{Gate: "customer", Key: "${ .nominal_time }"}}, 4, 4},
	} {
		t.Run(name, func(t *testing.T) {
			writes, reads := takes(t, row.overlap, false, row.gates...)
			t.Logf("%.2f write units and %.2f read units a run, and %.2f and %.2f without a gate", writes, reads, plainWrites, plainReads)
			if math.Abs(writes-plainWrites-row.writes) > 0.25 || math.Abs(reads-plainReads-row.reads) > 0.25 {
				t.Errorf("the gates take %.2f write units and %.2f read units, want some %.2f and %.2f", writes-plainWrites, reads-plainReads, row.writes, row.reads)
			}
		})
	}
	for name, row := range map[string]struct {
		overlap       job.Overlap
		held          bool
		writes, reads float64
	}{
		"one at a time, and none in progress": {job.Overlap{Policy: job.OverlapSkip}, false, 1, 3},
		"one of each value at a time":         {job.Overlap{Policy: job.OverlapSkip, Key: "${ .job }"}, false, 1, 3},
		"skipped":                             {job.Overlap{Policy: job.OverlapSkip}, true, -1, 2},
		"one of two is in progress":           {job.Overlap{Policy: job.OverlapSkip, Limit: 2}, true, 1, 4},
		"a hundred at a time":                 {job.Overlap{Policy: job.OverlapSkip, Limit: 100}, false, 1, 2.3},
	} {
		t.Run(name, func(t *testing.T) {
			writes, reads := takes(t, row.overlap, row.held)
			t.Logf("%.2f write units and %.2f read units a run, and %.2f and %.2f without a gate", writes, reads, plainWrites, plainReads)
			if math.Abs(writes-plainWrites-row.writes) > 0.25 || math.Abs(reads-plainReads-row.reads) > 0.25 {
				t.Errorf("a gate takes %.2f write units and %.2f read units, want some %.2f and %.2f", writes-plainWrites, reads-plainReads, row.writes, row.reads)
			}
		})
	}
}

// defines writes the definition of a gate, and makes it hold.
func defines(t *testing.T, r *rig, n gate.Named) {
	t.Helper()
	op, err := n.Put(1)
	if err == nil {
		_, err = r.Dispatch.Store.Write(r.ctx, op)
	}
	if err == nil {
		err = r.Dispatch.Redefined(r.ctx, n.Written(1))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What a run takes that waits, beyond one whose job bounds nothing: alone, and ten at a time. It joins the line and is let in by one transaction each, over the gate, the run and its place,
// and its wait has checks. Under queue_latest each but the first takes the place of the one before: one transaction over the gate, both runs and both places, and the last alone is let in.
func TestWhatAWaitTakes(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	const runs = 10
	takes := func(t *testing.T, overlap job.Overlap, apart time.Duration, limit int, gates ...job.GateUse) (writes float64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, lone, ok())
			time.Sleep(17 * time.Second)
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Overlap: overlap, Gates: gates}
			for _, use := range gates {
				n := gate.Named{Tenant: "default", Name: use.Gate, Generation: 1, Def: gate.Definition{Limit: 1}}
				if use.Gate == "bounded" {
					n.Def.MaxWait, n.Def.Order = schedule.Duration(time.Hour), gate.OrderDeadline
				}
				defines(t, r, n)
			}
			j, _, err := r.Control.Put(r.ctx, "default", "report", def, control.Match{})
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			holder := run.Run{ID: run.RequestID("report", now.UnixMilli(), 1), Tenant: "default", State: run.Queued, Trigger: run.ByRequest,
				Priority: queue.Normal, Generation: j.Generation, Created: now.UnixMilli()}
			if !overlap.IsZero() || len(gates) > 0 {
				if holder, err = r.Dispatch.PutRun(r.ctx, holder, job.Callbacks{}, now.UnixMilli()); err != nil {
					t.Fatal(err)
				}
				if came, err := r.Dispatch.Enter(r.ctx, holder, holder.ID.Nominal, j.Def); err != nil || came != dispatch.Passed {
					t.Fatal(came, err)
				}
				holder = holder.Start("w", now.UnixMilli(), time.Minute)
				next := holder.Fail(now.UnixMilli(), run.Failure{Error: "not yet", NextAt: now.Add(48 * time.Hour).UnixMilli()}, dispatch.Limits(j.Def))
				if _, err = r.Dispatch.PutRun(r.ctx, next, job.Callbacks{}, now.UnixMilli()); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.minutes(2, nil); err != nil {
				t.Fatal(err)
			}
			before := r.meter.read()
			step := 0
			if err := r.minutes(90, func(int) error {
				if step++; step == 1 {
					for range runs {
						if _, _, err := r.Control.Trigger(r.ctx, "default", "report", control.Request{}); err != nil {
							return err
						}
						time.Sleep(apart)
					}
				}
				if step == 2 && (!overlap.IsZero() || len(gates) > 0) {
					if limit > 1 {
						def.Overlap.Limit = limit
						_, _, err := r.Control.Put(r.ctx, "default", "report", def, control.Match{})
						return err
					}
					_, err := r.Control.Cancel(r.ctx, "default", holder.ID, "")
					return err
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			u := r.meter.read()
			writes = (u.Writes - before.Writes - u.Shared + before.Shared) / runs
		})
		return writes
	}
	for name, row := range map[string]struct {
		policy      job.OverlapPolicy
		apart       time.Duration
		limit       int
		least, most float64
		gates       []job.GateUse
	}{
		"alone":               {job.OverlapQueue, 2 * time.Second, 1, 5, 14, nil},
		"ten at a time":       {job.OverlapQueue, 0, 20, 5, 12, nil},
		"alone, strict":       {job.OverlapStrict, 2 * time.Second, 1, 5, 14, nil},
		"in another's place":  {job.OverlapQueueLatest, 2 * time.Second, 1, 8, 9, nil},
		"at a named gate":     {"", 2 * time.Second, 1, 5, 14, []job.GateUse{{Gate: "stripe"}}},
		"for at most an hour": {"", 2 * time.Second, 1, 5, 14, []job.GateUse{{Gate: "bounded"}}}, // a check that comes anyway finds it over
	} {
		t.Run(name, func(t *testing.T) {
			plain := takes(t, job.Overlap{}, row.apart, 0)
			writes := takes(t, job.Overlap{Policy: row.policy}, row.apart, row.limit, row.gates...)
			t.Logf("%.2f write units a run, and %.2f without a gate: %.2f more", writes, plain, writes-plain)
			if writes-plain > row.most || writes-plain < row.least {
				t.Errorf("a wait takes %.2f write units, want %.0f to %.0f", writes-plain, row.least, row.most)
			}
		})
	}
}

// What a run takes that has another one give way to it, beyond one whose job bounds nothing: the earlier is between two attempts. Under replace it ends by the transaction by which the later one
// enters, over the gate and both runs. Under cancel the later one joins the line and is let in, as any that waits, and the other ends by a transaction between, over the same three. Who has ended has one
// check less than one that goes on. tests/budget has those that are under way, and what is read. docs/cost.md tells of both.
func TestWhatGivingWayTakes(t *testing.T) {
	if emulated {
		t.Skip("counted by the test without emulators, which they change nothing about")
	}
	const runs = 20
	later := func(context.Context, target.Call) (target.Result, error) {
		return target.Result{}, errors.New("not yet")
	}
	takes := func(t *testing.T, overlap job.Overlap) (writes float64) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, lone, later)
			time.Sleep(17 * time.Second)
			wait := schedule.Duration(12 * time.Hour)
			def := job.Definition{Target: target.Spec{Handler: &target.Handler{Name: "h"}}, Overlap: overlap, Retry: job.Retry{MaxAttempts: 2, Initial: wait, Max: wait, Factor: 1}}
			if _, _, err := r.Control.Put(r.ctx, "default", "report", def, control.Match{}); err != nil {
				t.Fatal(err)
			}
			var asked []run.ID
			ask := func(minute int) error {
				if minute%2 > 0 || len(asked) == runs+1 {
					return nil
				}
				one, _, err := r.Control.Trigger(r.ctx, "default", "report", control.Request{})
				asked = append(asked, one.ID)
				return err
			}
			if err := r.minutes(2, ask); err != nil { // the first finds nobody
				t.Fatal(err)
			}
			before := r.meter.read()
			if err := r.minutes(2*runs+90, ask); err != nil {
				t.Fatal(err)
			}
			u := r.meter.read()
			writes = (u.Writes - before.Writes - u.Shared + before.Shared) / runs
			for _, id := range asked[:runs] {
				if ended, err := r.Control.Run(r.ctx, "default", id); err != nil || ended.Why.Policy != string(overlap.Policy) || !overlap.IsZero() && ended.State != run.Cancelled {
					t.Fatalf("it is %s, for %+v, %v", ended.State, ended.Why, err)
				}
			}
		})
		return writes
	}
	plain := takes(t, job.Overlap{})
	for policy, want := range map[job.OverlapPolicy]float64{job.OverlapReplace: 5, job.OverlapCancel: 19} {
		t.Run(string(policy), func(t *testing.T) {
			writes := takes(t, job.Overlap{Policy: policy})
			t.Logf("%.2f write units a run, and %.2f without a gate", writes, plain)
			if math.Abs(writes-plain-want) > 0.25 {
				t.Errorf("giving way takes %.2f write units, want some %.0f", writes-plain, want)
			}
		})
	}
}
