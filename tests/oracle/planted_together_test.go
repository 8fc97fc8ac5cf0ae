package oracle_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// together is a life of two jobs whose failures another one is told of, once a minute.
func together(t testing.TB) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.put(tenant, "two", works(1, nil))
	for _, name := range []string{"one", "more"} {
		def := works(1, every(2*beat))
		def.Retry.MaxAttempts = 1
		def.On.Failed = &job.Callback{Job: "two", Window: schedule.Duration(time.Minute)}
		r.fails[name] = true
		r.put(tenant, name, def)
		r.live(5*beat, beat)
		def.Schedule = nil
		r.put(tenant, name, def)
	}
	r.live(5*time.Minute, 5*time.Second)
	return r.end()
}

func TestNothingIsFoundWhereSeveralEndsAreToldOfTogether(t *testing.T) {
	l := together(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	for _, e := range l {
		if r, ok := p.of(e); ok && r.State == run.Succeeded && !r.Callback.IsZero() && r.Callback.Count < 4 {
			t.Errorf("a run tells of %d ends", r.Callback.Count)
		}
	}
}

// waiting is the timer that an event puts of a callback with a window.
func waiting(e event) (timer.Timer, bool) {
	t, err := timer.FromItem(store.Item{Key: e.key, Version: 1, Value: e.value})
	return t, err == nil && t.Create != nil && t.Window != 0
}

// gathers is the index of the first event by which a callback stands for others.
func (p *plot) gathers() int {
	return p.put(first, "due", func(e event) bool { t, ok := waiting(e); return ok && t.Joined })
}

// toldWith changes the payload of the run that tells of several, as it is made.
func toldWith(change func(payload []byte) []byte) func(p *plot) {
	return spoilt("two", run.Scheduled, func(r *run.Run) { r.Payload.Inline = change(r.Payload.Inline) })
}

func toldInstead(from, to string) func(p *plot) {
	return toldWith(func(payload []byte) []byte { return bytes.Replace(payload, []byte(from), []byte(to), 1) })
}

var ofTogether = map[string]row{
	"stands for others from the first": {func(p *plot) {
		i := p.put(first, "due", func(e event) bool { _, ok := waiting(e); return ok })
		t, _ := waiting(p.life[i])
		t.Create.Callback.Count, t.Version = 2, 0
		op, err := t.Put(1)
		if err != nil {
			p.Fatal(err)
		}
		p.life[i].value = op.Value
	}, "C2: the callback of two of run one~.* stands from the first for 2"},
	"stands for others again": {func(p *plot) { i := p.gathers(); p.insert(i+1, p.life[i]) }, "C2: the callback two~.* stands for .*, and no such end calls it, or it stood for all of its window before"},
	"counts one that is told by itself": {func(p *plot) {
		p.drop(p.index(p.gathers(), func(e event) bool { return e.gone }))
	}, "C2: the callback of two of the end of run .* counts .*, and 1 of them have timers of their own"},
	"takes one away that it does not count": {func(p *plot) {
		i := p.gathers()
		t, _ := waiting(p.life[i])
		t.Create.Callback.Count--
		t.Version = 0
		op, err := t.Put(1)
		if err != nil {
			p.Fatal(err)
		}
		p.life[i].value = op.Value
	}, "P4: timer .* is gone, and the sweeps have come to"},
	"told of another number": {toldInstead(`"count":`, `"count":1`), "C2: run two~.* is told .*, and stands for .* ends of its window"},
	"told of more of a job":  {toldInstead(`"one":`, `"one":1`), "C2: run two~.* is told of .* runs of job one, and there were"},
	"told of another job":    {toldInstead(`"jobs":{`, `"jobs":{"plain":0,`), "C2: run two~.* is told of 3 jobs, and there were 2"},
	"told of one as another state": {toldWith(func(payload []byte) []byte {
		last := bytes.LastIndex(payload, []byte(`"state":"dead"`))
		return append(bytes.Clone(payload[:last]), bytes.Replace(payload[last:], []byte("dead"), []byte("failed"), 1)...)
	}), "C2: run two~.* is told that run .* ended as failed, and that is not among what it tells of, or twice"},
	"never asked for": {func(p *plot) {
		p.drop(p.put(first, "due", func(e event) bool { _, ok := waiting(e); return ok }))
	}, "C2: the callback of two of run one~.* stands from the first for"},
	"not called": {func(p *plot) {
		for i := len(p.life) - 1; i >= 0; i-- {
			if r, ok := p.of(p.life[i]); ok && r.ID.Job == "two" {
				p.drop(i)
			}
		}
	}, "C1: run .* ended as dead at .*, and two was not called"},
}
