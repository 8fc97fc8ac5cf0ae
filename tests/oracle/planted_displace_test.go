package oracle_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// displacing is a life of a job whose earlier runs give way to later ones: each waits long for its retry, until the next one comes.
func displacing(t testing.TB, policy job.OverlapPolicy) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(3*beat))
	def.Overlap = job.Overlap{Policy: policy}
	def.Retry = job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}
	r.fails["one"], r.after = true, 3*time.Minute
	r.put(tenant, "one", def)
	r.live(12*beat, beat)
	r.trigger("one", "", http.StatusAccepted, `{}`)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.fails["one"] = false
	r.live(30*time.Minute, time.Minute)
	return r.end()
}

func TestNothingIsFoundWhereEarlierRunsGiveWay(t *testing.T) {
	for _, policy := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		l := displacing(t, policy)
		if found := l.judged(oracle.Config{}); len(found) > 0 {
			t.Errorf("%s: found %q", policy, found)
		}
		p := &plot{TB: t, life: l}
		gave := 0
		for _, e := range l {
			if r, ok := p.of(e); ok && r.State == run.Cancelled && r.Why.Policy == string(policy) {
				gave++
			}
		}
		if gave < 3 {
			t.Errorf("%s: %d gave way", policy, gave)
		}
	}
}

func displaced(change func(r *run.Run)) func(p *plot) { return spoilt("one", run.Cancelled, change) }

var ofCancel = map[string]row{
	"given way by another policy": {displaced(func(r *run.Run) { r.Why.Policy = "replace" }), "G4: run .* is to give way by replace for .*, and the job of neither says so"},
	"given way to nobody":         {displaced(func(r *run.Run) { r.Why.InTheWay = nil }), `G4: run .* is to give way by cancel for \[\], want one other run of its job`},
	"given way to one that does not wait": {func(p *plot) {
		i := p.run(first, "one", run.Cancelled)
		later, _ := p.of(p.life[p.run(p.run(i, "one", run.Cancelled), "one", run.Queued)])
		p.spoil(i, func(r *run.Run) { r.Why.InTheWay = []string{later.ID.String()} })
		p.insert(i, p.item(later))
	}, "G4: run .* is asked to stop for run .*, which did not wait then"},
}

var ofReplace = map[string]row{
	"ended and its gate not written": {func(p *plot) {
		i := p.run(first, "one", run.Cancelled)
		p.drop(p.index(i, func(e event) bool { return len(e.key.Partition) > 5 && e.key.Partition[:5] == "gate#" }))
	}, "G1: run .* has lost its entry|G4: run .* was ended for run|P1: gate#"},
}
