package oracle_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// byKey is a life of a job of which one run of each customer may be in progress: one waits long for its retry, one of the same customer waits behind it,
// another customer's starts, and one has no customer.
func byKey(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, nil)
	def.Overlap = job.Overlap{Policy: job.OverlapQueue, Key: "${ .payload.customer }"}
	def.Retry = job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}
	r.fails["one"], r.after = true, 3*time.Minute
	r.put(tenant, "one", def)
	for _, payload := range []string{`{"customer": "acme"}`, `{"customer": "acme"}`, `{"customer": 7}`, `{}`} {
		r.trigger("one", "", http.StatusAccepted, payload)
		r.live(2*beat, beat)
	}
	r.fails["one"] = false
	r.live(30*time.Minute, time.Minute)
	r.delete(tenant, "one")
	return r.end()
}

func TestNothingIsFoundWhereEachValueHasAGate(t *testing.T) {
	l := byKey(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	gates := map[string]bool{}
	var waited, failed int
	for _, e := range l {
		r, ok := p.of(e)
		switch {
		case ok && r.Waits():
			waited++
		case ok && r.State == run.Failed:
			failed++
		case ok && r.State == run.Running:
			gates[r.GateKey] = true
		}
	}
	if waited != 1 || failed != 1 || len(gates) != 2 {
		t.Errorf("%d waited, %d failed, and some started at the keys %v", waited, failed, gates)
	}
}

// atKey is the index of the first event that puts a gate of a value.
func (p *plot) atKey() int {
	p.Helper()
	return p.index(first, func(e event) bool {
		return e.key == gate.ID{Tenant: tenant, Name: "job:one", Key: gate.KeyOf("acme")}.Item()
	})
}

var ofKeyedGates = map[string]row{
	"started as if it had entered elsewhere": {spoilt("one", run.Running, func(r *run.Run) { r.GateKey = gate.KeyOf("other") }), "G1: run .* started as let in at the key \"=other\", and was let in at \"=acme\""},
	"entered elsewhere": {func(p *plot) {
		p.life[p.atKey()].key = gate.ID{Tenant: tenant, Name: "job:one", Key: gate.KeyOf("other")}.Item()
	}, "G1: run .* is at the key \"=other\" of its job, and its own is \"=acme\""},
	"waits elsewhere": {func(p *plot) {
		i, _ := p.joins(first)
		p.spoil(i, func(r *run.Run) { r.GateKey = gate.KeyOf("other") })
	}, "P6: run .*it is let in at another key than that at which it waited"},
	"failed, and it has a key": {func(p *plot) {
		failed, _ := p.of(p.life[p.run(first, "one", run.Failed)])
		i := p.run(first, "one", run.Queued)
		r, _ := p.of(p.life[i])
		r.State, r.Reason, r.Ended, r.Expires = run.Failed, failed.Reason, failed.Ended, failed.Expires
		p.insert(i+1, p.item(r))
	}, "G4: run .* has failed for its key, which is \"=acme\""},
	"failed for a key that its job has not": {func(p *plot) {
		for i, e := range p.life {
			if e.key.Sort == "one" && len(e.value) > 0 && !e.gone && e.key == job.Key(tenant, "one") {
				p.spoilJob(i, func(j *job.Job) { j.Def.Overlap.Key = "" })
			}
		}
	}, "G4: run .* has failed for its key, and its job has none"},
	"failed before it began, for another reason": {spoilt("one", run.Failed, func(r *run.Run) { r.Reason = "permanent failure" }), "P6: run .*only a run whose key cannot be told fails before it has started"},
}
