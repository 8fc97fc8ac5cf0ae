package oracle_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// overrunning is a life of a job whose runs have a minute to end: one waits longer for its retry, and those that wait behind it have no attempt.
func overrunning(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(2*beat))
	def.Overlap, def.Deadline = job.Overlap{Policy: job.OverlapQueue}, schedule.Duration(time.Minute)
	def.Retry = job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}
	r.fails["one"], r.after = true, 3*time.Minute
	r.put(tenant, "one", def)
	r.live(12*beat, beat)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.fails["one"] = false
	r.live(30*time.Minute, time.Minute)
	return r.end()
}

func TestNothingIsFoundWhereRunsPassTheirDeadline(t *testing.T) {
	l := overrunning(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	tried, untried := 0, 0
	for _, e := range l {
		switch r, ok := p.of(e); {
		case !ok || r.State != run.Cancelled || r.Why.Code != run.WhyDeadline:
		case r.Attempt > 0:
			tried++
		default:
			untried++
		}
	}
	if tried < 1 || untried < 1 {
		t.Errorf("%d had an attempt before their deadline, and %d had none", tried, untried)
	}
}

// toEnd changes until when the first run that is stopped by its deadline was to end, in all its records before.
func toEnd(change func(by int64) int64) func(p *plot) {
	return func(p *plot) {
		end := p.run(first, "one", run.Cancelled)
		late, _ := p.of(p.life[end])
		for i := range end {
			if r, ok := p.of(p.life[i]); ok && r.ID == late.ID {
				p.spoil(i, func(r *run.Run) { r.EndBy = change(r.EndBy) })
			}
		}
	}
}

var ofDeadlines = map[string]row{
	"past a deadline that is none":             {toEnd(func(int64) int64 { return 0 }), "G4: run .* is stopped by its deadline, and has none"},
	"with less time to end than its job gives": {toEnd(func(by int64) int64 { return by - 1 }), "G4: run .* is to have ended by .*, and its job says"},
	"stopped ahead of its deadline":            {toEnd(func(by int64) int64 { return by + time.Hour.Milliseconds() }), "G4: run .* is stopped by its deadline at .*, and was to end by"},
}
