package oracle_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// scoped has scopes that ask whether they run, one of which does, and a step that is handed what that gives, at two attempts.
const scoped = `{"steps": {
	"first": {"handler": {"name": "work"}},
	"runs": {"needs": ["first"], "when": ".input.day == 1", "steps": {"in": {"handler": {"name": "work"}}}},
	"idle": {"needs": ["first"], "when": ".input.day == 2", "steps": {"x": {"handler": {"name": "work"}}}},
	"bad": {"needs": ["runs"], "handler": {"name": "work"}, "retry": {"max_attempts": 2, "initial": "1s"}, "input": "${ [.steps.runs] }"}
}}`

// asking is a life of such a workflow.
func asking(t testing.TB) life {
	r := newRig(t)
	r.elapsed = time.Second
	r.put(tenant, "flow", workflow(scoped))
	r.fails["bad"], r.after = true, 30*time.Second
	whole := r.trigger("flow", "", http.StatusAccepted, `{"day":1}`)
	r.live(80*time.Second, 2*time.Second)
	r.graph(whole)
	upTo := r.now()
	r.live(80*time.Minute, time.Minute)
	r.tell(event{upTo: upTo})
	return r.told
}

func TestNothingIsFoundInScopesThatAsk(t *testing.T) {
	l := asking(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	for path, state := range map[string]run.State{"runs": run.Succeeded, "idle": run.Skipped, "runs/in": run.Succeeded, "bad": run.Dead} {
		p.step(first, "flow", path, state)
	}
	p.head(first, "flow", run.Failed)
}

var ofScopes = map[string]row{
	"an answer that is a step": {func(p *plot) {
		i, answer := p.step(first, "flow", "runs", run.Succeeded)
		_, head := p.head(first, "flow", run.Running)
		p.insert(i, p.item(head.Release("runs", answer.Created, answer.Created, kept(head))))
	}, "W8: step flow~.*/runs of default is put as queued, and it is a scope"},
	"an answer that is not kept": {func(p *plot) {
		i, row := p.step(first, "flow", "idle", run.Skipped)
		row.Expires = 0
		p.rewrite(i, row)
	}, "P6: run flow~.*/idle .*an answer is put as it ends"},
	"asked before its parent has ended": {func(p *plot) {
		i, head := p.head(first, "flow", run.Running)
		p.insert(i+1, p.item(head.Answered("runs", run.Answer{State: run.Succeeded}, head.Started, kept(head))))
	}, "W2: step flow~.*/runs of default was released, and its needs do not let it run: first -"},
	"released in a scope that was not asked": {func(p *plot) {
		i, answer := p.step(first, "flow", "runs", run.Succeeded)
		_, head := p.head(first, "flow", run.Running)
		p.insert(i, p.item(head.Release("runs/in", answer.Created, answer.Created, kept(head))))
	}, "W2: step flow~.*/runs/in of default was released"},
	"released in a scope that does not run": {func(p *plot) {
		i, answer := p.step(first, "flow", "idle", run.Skipped)
		_, head := p.head(first, "flow", run.Running)
		p.insert(i+1, p.item(head.Release("idle/x", answer.Created, answer.Created, kept(head))))
	}, "W2: step flow~.*/idle/x of default was released, .*idle K"},
	"handed something else at a later attempt": {func(p *plot) {
		call := func(from int) int {
			return p.index(from, func(e event) bool { return e.call != nil && strings.HasSuffix(e.call.Run, "/bad") })
		}
		p.calls(call(call(first)+1), func(c *oracle.Call) { c.Payload = []byte(`[{"state":"open"}]`) })
	}, "W9: attempt 2 of step flow~.*/bad of default was handed .*open.*, and one before .*succeeded"},
}
