package oracle_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// away is a life of a job whose missed fires another one is told of: nobody is there for a while.
func away(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.put(tenant, "two", works(1, nil))
	def := works(1, every(2*beat))
	def.On.Missed = &job.Callback{Job: "two"}
	r.put(tenant, "one", def)
	r.live(2*beat, beat)
	r.elapsed += 10 * time.Minute
	r.live(4*beat, beat)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.live(5*time.Minute, time.Minute)
	return r.end()
}

func TestNothingIsFoundWhereMissedFiresAreToldOf(t *testing.T) {
	l := away(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p, told := &plot{TB: t, life: l}, 0
	for _, e := range l {
		if r, ok := p.of(e); ok && r.State == run.Succeeded && r.Callback.Event == "missed" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d runs told of missed fires", told)
	}
}

// replaced changes what a text of a run's payload says, as the run is made.
func replaced(from, to string) func(p *plot) {
	return spoilt("two", run.Scheduled, func(r *run.Run) { r.Payload.Inline = bytes.Replace(r.Payload.Inline, []byte(from), []byte(to), 1) })
}

var ofMissed = map[string]row{
	"never asked for": {func(p *plot) { i, _ := p.asksForCall(); p.drop(i) }, "C1: run one~.* ended as skipped at .*, and no callback of two was asked for with that"},
	"not called": {func(p *plot) {
		p.life = slices.DeleteFunc(p.life, func(e event) bool { r, ok := p.of(e); return ok && r.ID.Job == "two" })
	}, "C1: run one~.* ended as skipped at .*, and two was not called"},
	"told of another end":  {replaced(`"state":"skipped"`, `"state":"dead"`), "C2: run two~.* is told .* of the end of run one~.* as skipped"},
	"told of more of them": {replaced(`"count":1`, `"count":2`), "C2: run two~.* is told .* of the fires that one~.* says were missed"},
	"told of none":         {replaced(`"missed":{`, `"other":{`), "C2: run two~.* is told .* of the fires that one~.* says were missed"},
}

// forgetting is a life of a job whose runs are kept for a day: fires were missed in an outage of a minute, and another one takes so long that the
// record of them is cleaned up before the first sweep comes by.
func forgetting(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(2*beat))
	def.Retention = schedule.Duration(job.MinRetention)
	r.put(tenant, "one", def)
	r.live(2*beat, beat)
	r.elapsed += time.Minute
	r.live(beat, beat)
	r.elapsed += job.MinRetention + time.Hour
	r.expire()
	r.live(4*beat, beat)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.live(5*time.Minute, 5*beat)
	return r.end()
}

// expire removes the runs that are kept no longer.
func (r *rig) expire() {
	for _, e := range r.told {
		if !strings.HasPrefix(e.key.Partition, "run#") || e.gone {
			continue
		}
		items, err := r.store.Get(r.Context(), e.key)
		r.must(err)
		if i := items[0]; i.Exists() && !i.Expires.IsZero() && i.Expires.Before(r.now()) {
			_, err := r.store.Write(r.Context(), store.Op{Kind: store.Delete, Key: e.key})
			r.must(err)
		}
	}
}

func TestNothingIsFoundWhereWhatWasDroppedIsForgotten(t *testing.T) {
	l := forgetting(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %.3000q", found)
	}
	p := &plot{TB: t, life: l}
	dropped := p.run(first, "one", run.Skipped)
	gone := p.index(dropped, func(e event) bool { return e.key == l[dropped].key && e.gone })
	if swept := p.shardWhere(swept(0)); swept < gone {
		t.Errorf("a sweep came by before the record was gone: event %d, and that was %d", swept, gone)
	}
}

var ofForgotten = map[string]row{
	"what is gone has dropped less": {spoilt("one", run.Skipped, func(r *run.Run) {
		r.Through, r.Count = r.Through-4000, r.Count-1
	}), "P2: the first sweep has passed the fire of one of default at .*, and there is no run"},
}
