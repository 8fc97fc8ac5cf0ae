package oracle_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// graph has a step for each thing that a judge looks at. A step that is called bad fails twice.
const graph = `{"steps": {
	"first": {"handler": {"name": "work"}},
	"once": {"needs": ["first"], "handler": {"name": "work"}, "guarantee": "at_most_once", "input": {"own": 1}},
	"bad": {"needs": ["first"], "handler": {"name": "work"}, "retry": {"max_attempts": 2, "initial": "1s"}},
	"parts": {"needs": ["first"], "steps": {"load": {"handler": {"name": "work"}}, "index": {"needs": ["load"], "handler": {"name": "work"}}}},
	"join": {"needs": ["once", "parts"], "pass": {}},
	"last": {"needs": ["bad", "join"], "rule": "all_done", "handler": {"name": "work"}, "allow_failure": true},
	"never": {"needs": ["bad"], "handler": {"name": "work"}}
}}`

func workflow(text string) job.Definition {
	return job.Definition{Target: target.Spec{Workflow: []byte(text)}, CatchUp: job.CatchUp{Mode: job.CatchUpOne}}
}

// branching is a life of workflows: a run of the job flow comes to its end, one of stopped is cancelled between the attempts of a step and one in the middle of
// one, and the time of one of slow is over.
func branching(t testing.TB) life {
	r := newRig(t)
	ctx := t.Context()
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.put(tenant, "flow", workflow(graph))
	r.put(tenant, "stopped", workflow(graph))
	r.put(tenant, "slow", workflow(`{"timeout": "5m", "steps": {"bad": {"handler": {"name": "work"}}, "next": {"needs": ["bad"], "handler": {"name": "work"}}}}`))
	r.put(tenant, "waiting", workflow(`{"steps": {"first": {"handler": {"name": "work"}}, "pause": {"needs": ["first"], "wait": {"for": "90s"}}, "next": {"needs": ["pause"], "handler": {"name": "work"}}}}`))
	r.put(tenant, "asked", works(1, nil))
	r.fails["bad"], r.after = true, 30*time.Second
	r.trigger("asked", "", http.StatusAccepted, `{}`)
	whole := r.trigger("flow", "", http.StatusAccepted, `{"day":1}`)
	r.live(10*beat, beat)
	r.graph(whole)
	r.live(30*beat, beat)
	r.graph(whole)

	between := r.trigger("stopped", "", http.StatusAccepted, `{}`)
	r.live(5*beat, beat)
	r.ofRun(oracle.Cancel, between, http.StatusOK, func() (run.Run, error) { return r.control.Cancel(ctx, tenant, between, "") })
	within := r.trigger("stopped", "", http.StatusAccepted, `{}`)
	r.during = func(step string) {
		if step == "parts/load" {
			r.ofRun(oracle.Cancel, within, http.StatusOK, func() (run.Run, error) { return r.control.Cancel(ctx, tenant, within, "") })
		}
	}
	r.live(5*beat, beat)
	r.during = nil
	r.graph(between)
	r.graph(within)

	waits := r.trigger("waiting", "", http.StatusAccepted, `{}`)
	r.live(60*beat, beat)
	r.graph(waits)
	r.after = 20 * time.Minute
	late := r.trigger("slow", "", http.StatusAccepted, `{}`)
	r.live(40*time.Minute, time.Minute)
	upTo := r.now()
	r.live(80*time.Minute, time.Minute)
	r.graph(late)
	r.tell(event{upTo: upTo})
	return r.told
}

// graph reads a run with where its steps stand.
func (r *rig) graph(id run.ID) {
	r.ask(oracle.Request{Op: oracle.GetRun, Run: id.String()}, http.StatusOK, func(a *oracle.Answer) error {
		g, err := r.control.Graph(r.Context(), tenant, id)
		if err != nil {
			return err
		}
		a.Run = shownRun(g.Run)
		for _, one := range g.Steps {
			a.Run.Steps = append(a.Run.Steps, wire.StepSummary{Path: one.Node.Path, State: string(one.State)})
		}
		return nil
	})
}

func TestNothingIsFoundInWorkflows(t *testing.T) {
	l := branching(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	ends := map[string]int{}
	for _, e := range l {
		if r, ok := p.stepOf(e); ok && r.State.Ended() {
			ends["step "+r.State.String()]++
		}
		if r, ok := p.of(e); ok && r.State.Ended() && r.ID.Job != "asked" {
			ends["run "+r.State.String()]++
		}
	}
	for what, least := range map[string]int{"run failed": 2, "run cancelled": 2, "step succeeded": 6, "step dead": 1, "step cancelled": 3} {
		if ends[what] < least {
			t.Errorf("%d of %s, want %d at least: %v", ends[what], what, least, ends)
		}
	}
}

// stepOf reads what an event puts of a step.
func (p *plot) stepOf(e event) (run.Run, bool) {
	parts := strings.SplitN(e.key.Partition, "#", 3)
	if parts[0] != "step" || e.gone {
		return run.Run{}, false
	}
	id, err := run.ParseID(parts[2])
	if err != nil {
		p.Fatal(err)
	}
	r, err := run.StepFromItem(parts[1], id, store.Item{Key: e.key, Version: 1, Value: e.value})
	if err != nil {
		p.Fatal(err)
	}
	return r, true
}

// kept is when a step of a run may be cleaned up, Unix ms.
func kept(head run.Run) int64 {
	return head.Started + (flow.DefaultTimeout + job.DefaultRetention + 24*time.Hour).Milliseconds()
}

// step is the index of the first event after another that puts a step of a job's run into a state, and the step.
func (p *plot) step(after int, jobName, path string, state run.State) (int, run.Run) {
	p.Helper()
	var found run.Run
	i := p.index(after, func(e event) bool {
		r, ok := p.stepOf(e)
		found = r
		return ok && r.ID.Job == jobName && r.ID.Step == path && r.State == state
	})
	return i, found
}

// head is the same of a run.
func (p *plot) head(after int, jobName string, state run.State) (int, run.Run) {
	p.Helper()
	i := p.run(after, jobName, state)
	r, _ := p.of(p.life[i])
	return i, r
}

// puts has an event put another thing, of a run or a step.
func (p *plot) rewrite(at int, r run.Run) { p.life[at].value = p.item(r).value }

// releasedAgain is a step that is put once more behind its end.
func (p *plot) releasedAgain(gone bool) {
	_, row := p.step(first, "flow", "first", run.Queued)
	i, _ := p.step(first, "flow", "first", run.Succeeded)
	again := p.item(row)
	if gone {
		p.insert(i+1, event{key: again.key, gone: true}, again)
		return
	}
	p.insert(i+1, again)
}

// stopped are the indexes of the first run of the job stopped: where it was told to stop, and where it ended; and the run as it was told.
func (p *plot) stopped() (told, ended int, r run.Run) {
	told = p.index(first, func(e event) bool { r, ok := p.of(e); return ok && r.ID.Job == "stopped" && r.Cancel && r.Heads() })
	r, _ = p.of(p.life[told])
	return told, p.run(told, "stopped", run.Cancelled), r
}

// starts puts a step that was never released, and starts it, behind an event.
func (p *plot) starts(at int, of run.Run, path string) {
	now := p.life[at].at.UnixMilli()
	row := of.Release(path, now, now, now+(90*24*time.Hour).Milliseconds())
	begun := row
	begun.Version = 1
	p.insert(at+1, p.item(row), p.item(begun.Start("worker", now, time.Minute)))
}

var ofFlows = map[string]row{
	"the key of a step is none": {func(p *plot) {
		i, _ := p.step(first, "flow", "first", run.Queued)
		p.life[i].key.Sort = "a//b"
	}, "P1: step#.*run ID"},
	"a run that was never opened": {func(p *plot) {
		i, _ := p.head(first, "flow", run.Running)
		p.drop(i)
	}, "W1: step flow~.*/first of default stands, and its run was never opened"},
	"a wait that ends early": {func(p *plot) {
		_, put := p.step(first, "waiting", "pause", run.Queued)
		i, row := p.step(first, "waiting", "pause", run.Succeeded)
		row.Ended = put.NextAt - 1
		p.rewrite(i, row)
	}, "P3: step waiting~.*/pause of default waited until .*, and ended 1 ms early"},
	"a wait that is ended before its time has come": {func(p *plot) {
		i, put := p.step(first, "waiting", "pause", run.Queued)
		end := put.Resume(put.NextAt, time.Hour)
		end.Version = 1
		p.insert(i+1, p.item(end))
	}, "P3: step waiting~.*/pause of default waited until .*, and ended at "},
	"a wait that lasts too long": {func(p *plot) {
		i, put := p.step(first, "waiting", "pause", run.Queued)
		put.NextAt += 5
		p.rewrite(i, put)
	}, "W1: step waiting~.*/pause of default waits for 90s until .*, and nothing of its run has ended at"},
	"a wait in the place of a task": {func(p *plot) {
		i, row := p.step(first, "waiting", "first", run.Queued)
		row.NextAt = row.Created + 1000
		p.rewrite(i, row)
	}, "W8: step waiting~.*/first of default is put as queued, and it is a task"},
	"what follows a wait is released before its end": {func(p *plot) {
		i, put := p.step(first, "waiting", "pause", run.Queued)
		p.insert(i+1, p.item(run.Run{ID: put.ID.Whole(), Tenant: put.Tenant, Generation: put.Generation, Trigger: put.Trigger}.Release("next", put.Created, put.Created, put.Expires)))
	}, "W2: step waiting~.*/next of default was released, and its needs do not let it run"},
	"a step over what stands":   {func(p *plot) { p.releasedAgain(false) }, "P7: run flow~.*/first .*from succeeded to queued .*an ended run"},
	"a step again where it was": {func(p *plot) { p.releasedAgain(true) }, "W1: step flow~.*/first of default was released before, and is again"},
	"a step goes another way than steps do": {func(p *plot) {
		i, row := p.step(first, "flow", "first", run.Queued)
		row.State = run.Scheduled
		p.insert(i+1, p.item(row))
	}, "P6: run flow~.*/first .*no edge of the graph"},
	"a step brings a payload": {func(p *plot) {
		i, row := p.step(first, "flow", "first", run.Queued)
		row.Payload.Inline = []byte("{}")
		p.rewrite(i, row)
	}, "P6: run flow~.*/first .*it must not change the payload"},
	"a step that is not kept": {func(p *plot) {
		i, row := p.step(first, "flow", "first", run.Queued)
		row.Expires = 0
		p.rewrite(i, row)
	}, "P6: run flow~.*/first .*a step is put without an attempt, and for as long as its run is kept"},
	"a step of another definition": {func(p *plot) {
		i, row := p.step(first, "flow", "first", run.Queued)
		row.Generation++
		p.rewrite(i, row)
	}, "W8: step flow~.*/first of default is of generation .*, and its run of"},
	"a step that its workflow has not": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		p.insert(i+1, p.item(head.Release("other", head.Started, head.Started, kept(head))))
	}, "W8: step flow~.*/other of default is no task"},
	"a row of a scope": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		p.insert(i+1, p.item(head.Release("parts", head.Started, head.Started, kept(head))))
	}, "W8: step flow~.*/parts of default is no task"},
	"released before its parent has ended": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		p.insert(i+1, p.item(head.Release("once", head.Started, head.Started, kept(head))))
	}, "W2: step flow~.*/once of default was released, and its needs do not let it run: first -"},
	"released in a scope that may not run": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		p.insert(i+1, p.item(head.Release("parts/load", head.Started, head.Started, kept(head))))
	}, "W2: step flow~.*/parts/load of default was released"},
	"released though its parent failed": {func(p *plot) {
		i, head := p.head(first, "flow", run.Failed)
		p.insert(i, p.item(head.Release("never", head.Started, head.Started, kept(head))))
	}, "W2: step flow~.*/never of default was released, .*bad F.*never U"},
	"started when its run had ended": {func(p *plot) {
		i, head := p.head(first, "flow", run.Failed)
		p.starts(i, head, "never")
	}, "W4: step flow~.*/never of default started in version 2, and its run had ended as failed"},
	"started after the answer to a cancel": {func(p *plot) {
		_, head := p.head(p.run(first, "stopped", run.Cancelled), "stopped", run.Running)
		_, answered := p.answer(first, oracle.Cancel, func(q oracle.Request, _ oracle.Answer) bool { return q.Run == head.ID.String() })
		p.starts(answered, head, "last")
	}, "W5: step stopped~.*/last of default started in version 2, after the answer to a cancel"},
	"cancelled while its run goes on": {func(p *plot) {
		i, row := p.step(first, "flow", "bad", run.Retrying)
		row, _ = row.AskCancel(p.life[i].at.UnixMilli(), "so", time.Hour*24*90)
		p.insert(i+1, p.item(row))
	}, "W2: step flow~.*/bad of default was cancelled as it was retrying, and its run goes on"},
	"told to stop while its run goes on": {func(p *plot) {
		i, row := p.step(first, "flow", "first", run.Running)
		row.Cancel = true
		p.insert(i+1, p.item(row))
	}, "P2: run flow~.*/first of default is to be cancelled, and nobody asked for it"},
	"a run that ended before its step": {func(p *plot) {
		i, head := p.head(first, "flow", run.Failed)
		head.Ended -= 60_000
		p.rewrite(i, head)
	}, "W4: run flow~.* of default ended at .*, it says, and its step .* at "},
	"a dead letter of a step": {func(p *plot) {
		i, row := p.step(first, "flow", "bad", run.Dead)
		op, err := row.DeadLetterOp(1)
		if err != nil {
			p.Fatal(err)
		}
		p.insert(i+1, event{key: op.Key, value: op.Value})
	}, "W4: step flow~.*/bad of default is listed as a dead letter"},
	"at most once, and again": {func(p *plot) {
		i, row := p.step(first, "flow", "once", run.Running)
		p.insert(i+1, p.item(row.Crash(p.life[i].at.UnixMilli(), "its lease ran out", run.Limits{MaxCrashes: 3})))
	}, "W13: at-most-once run flow~.*/once of default goes on as queued after an attempt that crashed"},
	"another payload than its own": {func(p *plot) {
		i := p.index(first, func(e event) bool { return e.call != nil && strings.HasSuffix(e.call.Run, "/once") })
		p.calls(i, func(c *oracle.Call) { c.Payload = []byte(`{"day":1}`) })
	}, "P8: run flow~.*/once of default of generation .* was called with"},
	"another payload than its run's": {func(p *plot) {
		i := p.index(first, func(e event) bool { return e.call != nil && strings.HasSuffix(e.call.Run, "/first") })
		p.calls(i, func(c *oracle.Call) { c.Payload = []byte(`{"own":1}`) })
	}, "P8: run flow~.*/first of default of generation .* was called with"},
	"a step that was shown as what it was not": {func(p *plot) {
		p.tells(first, oracle.GetRun, func(a *oracle.Answer) {
			shown := *a.Run
			shown.Steps = []wire.StepSummary{{Path: "first", State: "pending"}}
			a.Run = &shown
		})
	}, "P1: GET run: step first of run flow~.* of default is shown as pending"},

	"a step cancelled with its run, shown as behind a failure": {func(p *plot) {
		p.tells(first, oracle.GetRun, func(a *oracle.Answer) {
			shown := *a.Run
			shown.Steps = []wire.StepSummary{{Path: "never", State: "upstream_failed"}}
			a.Run = &shown
		}, func(_ oracle.Request, a oracle.Answer) bool { return a.Run != nil && a.Run.State == "cancelled" })
	}, "P1: GET run: step never of run stopped~.* of default is shown as upstream_failed"},
	"a step behind a failure, shown as cancelled": {func(p *plot) {
		p.tells(first, oracle.GetRun, func(a *oracle.Answer) {
			shown := *a.Run
			shown.Steps = []wire.StepSummary{{Path: "never", State: "cancelled"}}
			a.Run = &shown
		}, func(_ oracle.Request, a oracle.Answer) bool { return a.Run != nil && a.Run.State == "failed" })
	}, "P1: GET run: step never of run flow~.* of default is shown as cancelled"},

	"opened with a lease": {func(p *plot) {
		i, head := p.head(first, "flow", run.Queued)
		head.Version = 1
		begun := p.item(head.Start("worker", p.life[i].at.UnixMilli(), time.Minute))
		p.insert(i+1, begun)
	}, "W8: run flow~.* of default started as an attempt, and generation .* of its job is a workflow"},
	"a job opened that is no workflow": {func(p *plot) {
		i, r := p.head(first, "asked", run.Running)
		r.Lease, r.Worker, r.Attempt, r.Fence, r.Attempts = 0, "", 0, 0, nil
		p.rewrite(i, r)
	}, "W8: run asked~.* of default was opened as a workflow's, and generation .* of its job is none"},
	"a workflow that cannot be read": {func(p *plot) {
		i := p.put(first, "job", func(e event) bool { return e.key.Sort == "flow" })
		p.spoilJob(i, func(j *job.Job) { j.Def.Target.Workflow = []byte(`{"steps":{}}`) })
	}, "W8: run flow~.* of default was opened, and its workflow cannot be used"},
	"opened early": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		head.Started = head.ID.Nominal - 1
		p.rewrite(i, head)
	}, "P3: run flow~.* of default was opened 1 ms early"},
	"opened long before it was due": {func(p *plot) {
		i, _ := p.head(first, "flow", run.Running)
		p.life[i].at = p.life[i].at.Add(-time.Minute)
	}, "P3: attempt 0 of run flow~.* of default was opened .* early"},
	"opened as an attempt": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		head.Attempts = []run.Attempt{{Number: 1, Started: head.Started}}
		p.rewrite(i, head)
	}, "P6: run flow~.* opening a workflow is no attempt"},
	"taken for crashed": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		head.State, head.Crashes = run.Queued, 1
		p.insert(i+1, p.item(head))
	}, "P6: run flow~.*from running to queued .*no edge of the graph"},
	"over before its time": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		p.insert(i+1, p.item(head.LateFor("timeout")))
	}, "W5: the time of run flow~.* of default is over, it says, and that is at 2026-01-12"},
	"over its time, and not to stop": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		head.Overdue = true
		p.insert(i+1, p.item(head))
	}, "W5: run flow~.*only the run of a workflow that is to stop is over its time"},
	"ended before its steps": {func(p *plot) {
		_, end := p.head(first, "flow", run.Failed)
		i, _ := p.step(first, "flow", "once", run.Queued)
		p.insert(i, p.item(end))
	}, "W4: run flow~.* of default ended as failed, and not all has ended that is to run: .*once -"},
	"ended before a step was released": {func(p *plot) {
		i, _ := p.step(first, "flow", "last", run.Queued)
		at, end := p.head(first, "flow", run.Failed)
		for _, state := range []run.State{run.Succeeded, run.Running} {
			gone, _ := p.step(first, "flow", "last", state)
			p.drop(gone)
			at--
		}
		p.drop(i)
		p.rewrite(at-1, end)
	}, "W4: run flow~.* of default ended as failed, and not all has ended that is to run: .*last -"},
	"ended as its steps did not": {func(p *plot) {
		i, end := p.head(first, "flow", run.Failed)
		end.State = run.Succeeded
		p.rewrite(i, end)
	}, "W2: run flow~.* of default ended as succeeded, and by its steps it is failed"},
	"cancelled without its steps": {func(p *plot) {
		i, end := p.head(first, "flow", run.Failed)
		end.State = run.Cancelled
		p.rewrite(i, end)
	}, "W5: run flow~.* of default was cancelled, and nobody asked its steps to stop"},
	"to stop, and succeeded": {func(p *plot) {
		_, i, head := p.stopped()
		end, _ := p.of(p.life[i])
		end.State = run.Succeeded
		p.rewrite(i, end)
		_ = head
	}, "W5: run stopped~.* of default was to stop, and ended as succeeded"},
	"ended before a step of it has": {func(p *plot) {
		_, ended, _ := p.stopped()
		end := p.life[ended]
		p.drop(ended)
		i, _ := p.step(first, "stopped", "bad", run.Cancelled)
		p.insert(i, end)
	}, "W4: run stopped~.* of default was to stop and has ended, and its step bad is retrying"},
	"told to stop by nobody": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		head.Cancel = true
		p.insert(i+1, p.item(head))
	}, "P2: run flow~.* of default is to be cancelled, and nobody asked for it"},
	"opened again": {func(p *plot) {
		i, end := p.head(first, "flow", run.Failed)
		p.insert(i+1, p.item(end.Reopen(1, 0, "again")))
	}, "W4: run flow~.* of default is that of a workflow that was begun, and is opened again"},
	"it never comes to its end": {func(p *plot) {
		i, _ := p.head(first, "flow", run.Failed)
		p.drop(i)
		p.life = slices.DeleteFunc(p.life, func(e event) bool { return strings.HasPrefix(e.key.Partition, "dead#") })
	}, "P4: run flow~.* of default is still running .*: first S, .*last S"},
}

// TestAWorkflowThatComesAgainIsAnotherOne: a callback that was cleaned up comes again after an outage that is longer than it was kept. Then its steps
// are released again, or still stand with what they did. What else this says of a run that was no callback is not looked at, nor that a step of at most
// once is called again.
func TestAWorkflowThatComesAgainIsAnotherOne(t *testing.T) {
	whole := branching(t)
	for name, stepsStand := range map[string]bool{"its steps are gone as well": false, "its steps are kept for longer": true} {
		t.Run(name, func(t *testing.T) {
			p := &plot{TB: t, life: slices.Clone(whole)}
			_, head := p.head(first, "flow", run.Failed)
			later := p.life[p.end()].at.Add(400 * 24 * time.Hour)
			var again, gone life
			seen := map[store.Key]bool{}
			for _, e := range p.life {
				r, ok := p.of(e)
				if !ok && !stepsStand {
					r, ok = p.stepOf(e)
				}
				if !ok || r.ID.Whole() != head.ID {
					continue
				}
				if !seen[e.key] {
					seen[e.key] = true
					gone = append(gone, event{at: later, key: e.key, gone: true})
				}
				e.at = later.Add(time.Hour)
				again = append(again, e)
			}
			p.life = append(p.life, append(gone, again...)...)
			if len(again) < 3 {
				t.Fatalf("%d changes of the run and its steps", len(again))
			}
			for _, v := range p.judged(p.cfg) {
				if strings.HasPrefix(v, "W") && !strings.HasPrefix(v, "W13") {
					t.Error(v)
				}
			}
		})
	}
}
