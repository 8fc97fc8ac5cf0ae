package oracle_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// catching is a life of workflows in which steps fail: failures are caught, at the step and at a scope, and by whom depends on what they are; and one that nobody
// handles stops its run, while a step of it waits for its next attempt.
func catching(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.put(tenant, "caught", workflow(`{"steps": {
		"bad": {"handler": {"name": "work"}, "retry": {"max_attempts": 1}, "catch": [{"codes": ["timeout"], "to": "other"}, {"codes": ["handler"], "to": "handles"}]},
		"needs": {"needs": ["bad"], "handler": {"name": "work"}},
		"parts": {"steps": {"worse": {"handler": {"name": "work"}, "retry": {"max_attempts": 1}}}, "catch": [{"to": "handles"}]},
		"handles": {"handler": {"name": "work"}}, "other": {"handler": {"name": "work"}}}}`))
	r.put(tenant, "stops", workflow(`{"on_failure": "stop", "steps": {
		"waits": {"handler": {"name": "work"}, "retry": {"max_attempts": 5}}, "good": {"handler": {"name": "work"}},
		"bad": {"needs": ["good"], "handler": {"name": "work"}, "retry": {"max_attempts": 1}}, "behind": {"needs": ["bad"], "rule": "all_done", "handler": {"name": "work"}}}}`))
	for _, path := range []string{"bad", "parts/worse", "waits"} {
		r.fails[path] = true
	}
	r.after = time.Hour
	caught := r.trigger("caught", "", http.StatusAccepted, `{}`)
	stops := r.trigger("stops", "", http.StatusAccepted, `{}`)
	r.live(20*beat, beat)
	r.graph(caught)
	r.graph(stops)
	return r.end()
}

func TestNothingIsFoundWhereFailuresAreCaught(t *testing.T) {
	l := catching(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	p.head(first, "caught", run.Succeeded)
	p.head(first, "stops", run.Failed)
	p.step(first, "caught", "handles", run.Succeeded)
	p.step(first, "stops", "waits", run.Cancelled)
}

// putBefore puts a step of a job's run that was never released, before the run ends.
func putBefore(job, path string, end run.State) func(p *plot) {
	return func(p *plot) {
		i, head := p.head(first, job, end)
		p.insert(i, p.item(head.Release(path, head.Started, head.Started, kept(head))))
	}
}

var ofCaught = map[string]row{
	"a step runs whose parent's failure was caught": {putBefore("caught", "needs", run.Succeeded), "W2: step caught~.*/needs of default was released, and its needs do not let it run: .*needs K"},
	"another step handles the failure":              {putBefore("caught", "other", run.Succeeded), "W2: step caught~.*/other of default was released, .*other K"},
	"a failure is handled before all has ended that leads there": {func(p *plot) {
		i, head := p.head(first, "caught", run.Running)
		p.insert(i+1, p.item(head.Release("handles", head.Started, head.Started, kept(head))))
	}, "W2: step caught~.*/handles of default was released, .*handles -"},
	"a failure that was caught fails the run": {func(p *plot) {
		i, end := p.head(first, "caught", run.Succeeded)
		end.State = run.Failed
		p.rewrite(i, end)
	}, "W2: run caught~.* of default ended as failed, and by its steps it is succeeded"},
	"a failure that was caught stops the run": {func(p *plot) {
		i, _ := p.step(first, "caught", "handles", run.Queued)
		_, head := p.head(first, "caught", run.Running)
		p.insert(i, p.item(head.LateFor("step bad is dead")))
	}, "W5: the time of run caught~.* of default is over, it says, .*nor does a failure stop it"},
	"the run is stopped before the failure": {func(p *plot) {
		i, _ := p.step(first, "stops", "bad", run.Running)
		_, head := p.head(first, "stops", run.Running)
		p.insert(i, p.item(head.LateFor("step bad is dead")))
	}, "W5: the time of run stops~.* of default is over, it says, .*nor does a failure stop it"},
	"a failure stops the run, and it succeeded": {func(p *plot) {
		i, end := p.head(first, "stops", run.Failed)
		end.State = run.Succeeded
		p.rewrite(i, end)
	}, "W5: run stops~.* of default was to stop, and ended as succeeded"},
	"a step starts when the run has stopped": {func(p *plot) {
		i, head := p.head(first, "stops", run.Failed)
		p.starts(i, head, "behind")
	}, "W4: step stops~.*/behind of default started in version 2, and its run had ended as failed"},
	"what a failure stopped, shown as skipped": {func(p *plot) {
		p.tells(first, oracle.GetRun, func(a *oracle.Answer) {
			shown := *a.Run
			shown.Steps = []wire.StepSummary{{Path: "behind", State: "skipped"}}
			a.Run = &shown
		}, func(_ oracle.Request, a oracle.Answer) bool { return a.Run != nil && a.Run.State == "failed" })
	}, "P1: GET run: step behind of run stops~.* of default is shown as skipped"},
}
