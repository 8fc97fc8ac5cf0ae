package oracle_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// expiring is a life of a job whose runs have a minute to start: one waits long for its retry, and of those behind it some are too late.
func expiring(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(2*beat))
	def.Overlap, def.ExpiresAfter = job.Overlap{Policy: job.OverlapQueue}, schedule.Duration(time.Minute)
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

func TestNothingIsFoundWhereRunsAreTooLate(t *testing.T) {
	l := expiring(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	late := 0
	for _, e := range l {
		if r, ok := p.of(e); ok && r.Why.Code == run.WhyExpired {
			late++
		}
	}
	if late < 3 {
		t.Errorf("only %d were too late", late)
	}
}

// toStart changes until when the first run that is too late was to start, in all its records before its end.
func toStart(change func(by int64) int64) func(p *plot) {
	return func(p *plot) {
		end := p.run(first, "one", run.Skipped)
		late, _ := p.of(p.life[end])
		for i := range end {
			if r, ok := p.of(p.life[i]); ok && r.ID == late.ID {
				p.spoil(i, func(r *run.Run) { r.StartBy = change(r.StartBy) })
			}
		}
	}
}

var ofExpired = map[string]row{
	"too late without a time":                    {toStart(func(int64) int64 { return 0 }), "G4: run .* is skipped as too late, and has no time to start by"},
	"with less time to start than its job gives": {toStart(func(by int64) int64 { return by - 1 }), "G4: run .* is to start by .*, and its job says"},
	"too late before its time":                   {toStart(func(by int64) int64 { return by + time.Hour.Milliseconds() }), "G4: run .* is skipped as too late at .*, and was to start by"},
}
