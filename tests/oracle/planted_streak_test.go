package oracle_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
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

// besides is a life of three runs of a job that each bad end pauses: two end badly, and one succeeds in between. The second bad end was decided on before that
// success, and written behind it, or all of it is behind.
func besides(t testing.TB, before bool) life {
	r := newRig(t)
	r.elapsed = time.Second
	def := works(1, nil)
	def.Retry.MaxAttempts, def.PauseAfter = 1, 1
	r.put(tenant, "one", def)
	ids := []run.ID{r.trigger("one", "", http.StatusAccepted, `{}`), r.trigger("one", "", http.StatusAccepted, `{}`), r.trigger("one", "", http.StatusAccepted, `{}`)}
	now := r.now().UnixMilli()
	limits := run.Limits{MaxFailures: 1, MaxCrashes: 1, Retention: 24 * time.Hour}
	decided := func(id run.ID, decide func(run.Run) run.Run) *dispatch.Put {
		standing, err := r.dispatch.ReadRuns(t.Context(), []run.Run{{ID: id, Tenant: tenant}})
		r.must(err)
		edition, err := r.dispatch.EditionOf(t.Context(), standing[0])
		r.must(err)
		put, err := r.dispatch.Prepare(t.Context(), decide(standing[0]), edition.Def.On, now)
		r.must(err)
		return put
	}
	written := func(put *dispatch.Put) {
		_, err := r.dispatch.Do(t.Context(), put)
		r.must(err)
	}
	fail := func(r run.Run) run.Run { return r.Fail(now, run.Failure{Error: "broken"}, limits) }
	for _, id := range ids {
		written(decided(id, func(r run.Run) run.Run { return r.Start("worker", now, time.Minute) }))
	}
	written(decided(ids[0], fail))
	var last *dispatch.Put
	if before {
		last = decided(ids[2], fail)
	}
	written(decided(ids[1], func(r run.Run) run.Run { return r.Succeed(now, run.Ref{}, "", limits) }))
	if !before {
		last = decided(ids[2], fail)
	}
	written(last)
	return r.told
}

// A bad end that pauses its job is counted with what it has seen, on whichever side of a success that came in between. Neither tells of more than there was.
func TestP8_ABadEndBesideASuccess(t *testing.T) {
	for name, before := range map[string]bool{"before": true, "behind": false} {
		t.Run(name, func(t *testing.T) {
			l := besides(t, before)
			ofEnds := func(l life) (found []string) {
				for _, v := range l.judged(oracle.Config{}) {
					if strings.HasPrefix(v, "P8: ") {
						found = append(found, v)
					}
				}
				return found
			}
			if found := ofEnds(l); len(found) > 0 {
				t.Errorf("found %q", found)
			}
			counts := 0
			at := 0
			for i, e := range l {
				if strings.HasPrefix(e.key.Partition, "streak#") && !e.gone {
					counts, at = counts+1, i
				}
			}
			if want := map[bool]int{true: 1, false: 2}[before]; counts != want {
				t.Fatalf("%d ends are counted, want %d", counts, want)
			}
			p := &plot{TB: t, life: l}
			read, err := run.StreakFromItem(store.Item{Key: l[at].key, Version: 1, Value: l[at].value})
			if err != nil {
				t.Fatal(err)
			}
			read.Count++
			l[at].value = encoded(p, read)
			if found := ofEnds(l); len(found) == 0 {
				t.Error("one that says too many is not found")
			}
		})
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
