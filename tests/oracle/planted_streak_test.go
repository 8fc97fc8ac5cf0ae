package oracle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// pausing is a life of a job that two bad ends pause, beside one that goes on failing.
func pausing(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(2*beat))
	def.Retry.MaxAttempts = 1
	r.fails["one"], r.fails["two"] = true, true
	r.put(tenant, "two", def)
	def.PauseAfter = 2
	r.put(tenant, "one", def)
	r.live(8*beat, beat)
	def = works(2, nil)
	r.put(tenant, "two", def)
	r.live(time.Minute, beat)
	return r.end()
}

func TestNothingIsFoundWhereBadEndsPauseAJob(t *testing.T) {
	l := pausing(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	if p.spoilJob(p.pause(), func(j *job.Job) {
		if !strings.HasPrefix(j.Reason, "pause_after: 2 runs in a row") {
			t.Errorf("paused for %q", j.Reason)
		}
	}); p.put(first, "streak") < 0 {
		t.Error("no end was counted")
	}
}

// pause is the index of the event that pauses the job.
func (p *plot) pause() int {
	return p.put(first, "job", func(e event) bool {
		j, err := job.FromItem(tenant, e.key.Sort, store.Item{Key: e.key, Version: 1, Value: e.value})
		return err == nil && e.key.Sort == "one" && j.Def.Paused
	})
}

var ofStreaks = map[string]row{
	"pauses for nothing":         {spoilt("two", run.Dead, func(r *run.Run) { r.Pauses = true }), "P8: run two~.* of default is to pause its job, and is not counted"},
	"pauses for the first":       {spoilt("one", run.Dead, func(r *run.Run) { r.Pauses = true }), "P8: run one~.* of default is the 1. in a row that ended badly, of 2 that pause its job, and says of that true"},
	"an end that is not counted": {func(p *plot) { p.drop(p.put(first, "streak")) }, "P8: run one~.* of default ended as dead, and was not counted with that: want 1 in a row"},
	"an end that is counted twice": {func(p *plot) {
		r, _ := p.of(p.life[p.run(first, "one", run.Dead)])
		p.life[p.put(first, "streak")].value = encoded(p, run.Streak{Generation: r.Generation, Count: 2})
	}, "P8: streak#.* says that 2 runs of generation .* ended badly in a row, and the runs do not"},
	"paused, and no run says so": {func(p *plot) {
		p.spoil(p.run(p.run(first, "one", run.Dead), "one", run.Dead), func(r *run.Run) { r.Pauses = false })
	}, "P8: job one of default was paused for its runs, and none of generation .* says so"},
	"goes on": {func(p *plot) { p.drop(p.pause()) }, "P8: run one~.* of default was to pause its job, which goes on"},
}
