package oracle_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// replacing is a life of a job of whose runs the latest waits alone: one waits long for its retry, while others take each other's place.
func replacing(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(2*beat))
	def.Overlap = job.Overlap{Policy: job.OverlapQueueLatest}
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

func TestNothingIsFoundWhereTheLatestWaits(t *testing.T) {
	l := replacing(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	replaced, waited := 0, map[run.ID]bool{}
	for _, e := range l {
		r, ok := p.of(e)
		if !ok {
			continue
		}
		if r.Waits() {
			waited[r.ID] = true
		}
		if r.State == run.Skipped && waited[r.ID] {
			replaced++
		}
	}
	if replaced < 3 || len(waited) != replaced+1 {
		t.Errorf("%d waited, and %d of them gave way", len(waited), replaced)
	}
}

// gaveWay changes the first run that gave way to a later one. holder is in progress then.
func gaveWay(change func(r *run.Run, holder run.Run)) func(p *plot) {
	return func(p *plot) {
		i := p.run(first, "one", run.Skipped)
		p.spoil(i, func(r *run.Run) { change(r, p.holds(i)) })
	}
}

var ofLatest = map[string]row{
	"given way at no gate":       {gaveWay(func(r *run.Run, _ run.Run) { r.Why.Gate = "" }), `G4: run .* is skipped for overlap by queue_latest at ""`},
	"given way to nobody":        {gaveWay(func(r *run.Run, _ run.Run) { r.Why.InTheWay = nil }), `G4: run .* is skipped by queue_latest for \[\], want one other`},
	"given way to itself":        {gaveWay(func(r *run.Run, _ run.Run) { r.Why.InTheWay = []string{r.ID.String()} }), "G4: run .* want one other run of its job"},
	"given way to one before it": {gaveWay(func(r *run.Run, holder run.Run) { r.Why.InTheWay = []string{holder.ID.String()} }), "G4: run .* is skipped for run .*, which is earlier"},
	"given way to one that does not wait": {func(p *plot) {
		i := p.run(first, "one", run.Skipped)
		later, _ := p.of(p.life[p.run(p.run(i, "one", run.Skipped), "one", run.Queued)])
		p.spoil(i, func(r *run.Run) { r.Why.InTheWay = []string{later.ID.String()} })
		p.insert(i, p.item(later))
	}, "G4: run .* is skipped for run .*, which did not wait then"},
	"no job says so": {func(p *plot) {
		for i, e := range p.life {
			if e.key.Sort != "one" || e.gone {
				continue
			}
			if j, err := job.FromItem(tenant, "one", store.Item{Version: 1, Value: e.value}); err == nil && !j.Def.Overlap.IsZero() {
				p.spoilJob(i, func(j *job.Job) { j.Def.Overlap.Policy = job.OverlapQueue })
			}
		}
	}, "G4: run .* is skipped by queue_latest for .*, and the job of neither says so"},
	"two wait": {func(p *plot) {
		i := p.run(first, "one", run.Skipped)
		p.drop(i)
		p.drop(p.index(i-1, func(e event) bool { return strings.HasPrefix(e.key.Partition, "line#") && e.gone }))
	}, "G4: runs .* both wait, and their job has the latest wait alone"},
}
