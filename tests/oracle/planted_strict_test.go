package oracle_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// strictly is a life of a strict job: its first run dies, and others wait until its retry has succeeded. A later one dies as well, and somebody opens the gate.
func strictly(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	most := 3
	def := works(1, every(3*beat))
	def.Overlap = job.Overlap{Policy: job.OverlapStrict, MaxWaiting: &most}
	def.Retry = job.Retry{MaxAttempts: 1, Initial: schedule.Duration(time.Second)}
	r.fails["one"] = true
	r.put(tenant, "one", def)
	r.live(18*beat, beat)
	dead := func() control.Blocker {
		g, err := r.control.Gate(r.Context(), tenant, "job:one")
		if err != nil || len(g.Blocked) != 1 {
			t.Fatalf("the gate is %+v, %v", g, err)
		}
		return g.Blocked[0]
	}
	r.fails["one"] = false
	first, err := run.ParseID(dead().Run)
	r.must(err)
	r.ofRun(oracle.Retry, first, http.StatusOK, func() (run.Run, error) {
		return r.control.Retry(r.Context(), tenant, first, true, time.Time{})
	})
	r.live(6*beat, beat)
	r.fails["one"] = true
	r.live(6*beat, beat)
	r.fails["one"] = false
	_, err = r.control.OpenLine(r.Context(), tenant, "job:one", "somebody", control.Opening{Run: dead().Run}, control.Match{})
	r.must(err)
	r.live(6*beat, beat)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.live(20*time.Minute, time.Minute)
	return r.end()
}

func TestNothingIsFoundWhereALineStandsStill(t *testing.T) {
	l := strictly(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	var waited, dead, full int
	for _, e := range l {
		r, ok := p.of(e)
		switch {
		case ok && r.Waits():
			waited++
		case ok && r.State == run.Dead:
			dead++
		case ok && r.State == run.Skipped && r.Why.Code == run.WhyFull:
			full++
		}
	}
	if waited < 3 || dead < 2 || full < 1 {
		t.Errorf("%d waited, %d died, and %d were skipped since the line was full", waited, dead, full)
	}
}

var ofStrict = map[string]row{
	"let in behind a run that died": {func(p *plot) {
		i := p.run(first, "one", run.Dead)
		again := p.run(i, "one", run.Succeeded)
		p.spoil(again, func(r *run.Run) { r.State, r.Reason = run.Dead, "attempts spent" })
	}, "G3: run .* was let in while its line stood still behind run .*"},
	"let in behind a retry that its deadline has cancelled": {func(p *plot) {
		i := p.run(first, "one", run.Dead)
		again := p.run(i, "one", run.Succeeded)
		p.spoil(again, func(r *run.Run) { r.State, r.Why = run.Cancelled, run.Why{Code: run.WhyDeadline} })
	}, "G3: run .* was let in while its line stood still behind run .*"},
	"strict since another generation": {func(p *plot) {
		p.spoilJob(p.put(first, "job"), func(j *job.Job) { j.Def.Overlap.Since++ })
	}, "G3: generation .* of job one of default says that it is strict since .*, and it is since"},
	"let in, and nobody has let the line go on": {func(p *plot) {
		for i, e := range p.life {
			if e.key == gate.Key(tenant, "one") && !e.gone {
				p.spoilGate(i, func(g *gate.Gate) { g.LetGo = gate.LetGo{} })
			}
		}
	}, "G3: run .* was let in while its line stood still behind run .*"},
}
