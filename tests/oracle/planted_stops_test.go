package oracle_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// halting is a life of workflows with scopes that stop: one for a failure, beside a step that waits for its next attempt, and one since its time is over; each is caught.
func halting(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.put(tenant, "fails", workflow(`{"steps": {
		"s": {"on_failure": "stop", "catch": [{"codes": ["handler"], "to": "h"}], "steps": {
			"waits": {"handler": {"name": "work"}, "retry": {"max_attempts": 5}}, "good": {"handler": {"name": "work"}}, "late": {"needs": ["waits"], "handler": {"name": "work"}},
			"bad": {"needs": ["good"], "handler": {"name": "work"}, "retry": {"max_attempts": 1}}, "behind": {"needs": ["bad"], "rule": "all_done", "handler": {"name": "work"}}}},
		"h": {"handler": {"name": "work"}}, "next": {"needs": ["s"], "handler": {"name": "work"}}}}`))
	r.put(tenant, "limits", workflow(`{"steps": {
		"s": {"timeout": "10s", "catch": [{"codes": ["timeout"], "to": "h"}], "steps": {"waits": {"handler": {"name": "work"}, "retry": {"max_attempts": 5}}, "behind": {"needs": ["waits"], "rule": "all_done", "handler": {"name": "work"}}}},
		"h": {"handler": {"name": "work"}}, "next": {"needs": ["s"], "handler": {"name": "work"}}}}`))
	for _, path := range []string{"s/bad", "s/waits"} {
		r.fails[path] = true
	}
	r.after = time.Hour
	fails := r.trigger("fails", "", http.StatusAccepted, `{}`)
	limits := r.trigger("limits", "", http.StatusAccepted, `{}`)
	r.live(20*beat, beat)
	r.graph(fails)
	r.graph(limits)
	return r.end()
}

func TestNothingIsFoundInScopesThatStop(t *testing.T) {
	l := halting(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	for _, job := range []string{"fails", "limits"} {
		p.head(first, job, run.Succeeded)
		p.step(first, job, "h", run.Succeeded)
		p.step(first, job, "s/waits", run.Cancelled)
		p.step(first, job, "s/behind", run.Cancelled)
	}
}

// stopping puts a word of a stop before the first row of a step.
func stopping(job, path string, s run.Stop) func(p *plot) {
	return func(p *plot) {
		i, _ := p.step(first, job, path, run.Queued)
		_, head := p.head(first, job, run.Running)
		p.insert(i, p.item(head.Stop(s)))
	}
}

var ofStops = map[string]row{
	"a scope is stopped before its failure": {stopping("fails", "s/bad", run.Stop{Scope: 0, By: 2}), "W2: a failure of s/bad stops scope s of run fails~.* of default, it says, and none does"},
	"a scope is stopped that has no time":   {stopping("fails", "s/bad", run.Stop{Scope: 0, By: -1}), "P3: the time of scope s of run fails~.* of default is over, it says, and it has none"},
	"a scope is stopped before its time":    {stopping("limits", "s/waits", run.Stop{Scope: 0, By: -1}), "P3: the time of scope s of run limits~.* of default is over, it says, and that is at"},
	"what is no scope is stopped":           {stopping("fails", "s/bad", run.Stop{Scope: 1, By: -1}), "W8: run fails~.* of default stops what is no scope"},
	"a scope is stopped twice": {func(p *plot) {
		i, _ := p.step(first, "limits", "h", run.Queued)
		_, head := p.head(first, "limits", run.Running)
		stop := run.Stop{Scope: 0, By: -1}
		p.insert(i, p.item(head.Stop(stop).Stop(stop)))
	}, "W4: run limits~.* of default stops scope s, which was stopped before"},
	"a step is put as cancelled in a scope that goes on": {func(p *plot) {
		i, _ := p.step(first, "fails", "s/bad", run.Queued)
		_, head := p.head(first, "fails", run.Running)
		p.insert(i, p.item(head.Answered("s/behind", run.Answer{State: run.Cancelled}, head.Started, kept(head))))
	}, "W5: step fails~.*/s/behind of default is put as cancelled, and no scope around it was stopped"},
	"the failure of a scope that was stopped is not handled": {putBefore("limits", "next", run.Succeeded), "W2: step limits~.*/next of default was released, .*next K"},
}
