package oracle_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// telling is a life of a job whose ends another one is told of: first it fails, then it succeeds.
func telling(t testing.TB) life {
	two := &job.Callback{Job: "two"}
	return failing(t, job.Callbacks{Succeeded: two, Failed: two, Recovered: two}, dispatch.DefaultCallbacks{})
}

// failing is the life of a job that calls whom it says, and else whom the operator names.
func failing(t testing.TB, on job.Callbacks, all dispatch.DefaultCallbacks) life {
	r := newRig(t)
	r.dispatch.Callbacks = all
	const beat = 2 * time.Second
	r.elapsed = time.Second
	r.put(tenant, "two", works(1, nil))
	def := works(1, every(2*beat))
	def.Retry.MaxAttempts = 1
	def.On = on
	r.fails["one"] = true
	r.put(tenant, "one", def)
	r.live(5*beat, beat)
	r.fails["one"] = false
	r.live(4*beat, beat)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.live(5*time.Minute, time.Minute)
	return r.end()
}

func TestNothingIsFoundWhereRunsTellOfOthers(t *testing.T) {
	l := telling(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	told := map[string]int{}
	for _, e := range l {
		if r, ok := p.of(e); ok && r.State == run.Succeeded && !r.Callback.IsZero() {
			told[r.Callback.Event]++
		}
	}
	if told["failed"] < 2 || told["succeeded"] < 2 || told["recovered"] != 1 {
		t.Errorf("%v runs told of ends", told)
	}
}

// The judge has the operator's word from its Config, and nothing of it is in the store.
func TestTheOperatorsWordIsJudged(t *testing.T) {
	named := func(name string) dispatch.DefaultCallbacks {
		all := dispatch.DefaultCallee{"": name}
		return dispatch.DefaultCallbacks{Failed: all, Missed: all, Recovered: all}
	}
	two := job.Callbacks{Failed: &job.Callback{Job: "two"}, Recovered: &job.Callback{Job: "two"}}
	failed := func(name string) dispatch.DefaultCallbacks {
		return dispatch.DefaultCallbacks{Failed: named(name).Failed}
	}
	for what, c := range map[string]struct {
		on         job.Callbacks
		were, says dispatch.DefaultCallbacks
		want       string // a regular expression; "": nothing is found
	}{
		"it was followed":              {were: named("two"), says: named("two")},
		"of a tenant":                  {were: dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{"": "nobody", tenant: "two"}}, says: dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{tenant: "two"}}},
		"the job has the word":         {on: two, were: named("nobody"), says: named("nobody")},
		"nobody is there":              {were: named("nobody"), says: named("nobody")},
		"it is of the job itself":      {says: named("one")},
		"it is of another tenant":      {says: dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{"other": "two"}}},
		"nobody followed it":           {says: failed("two"), want: "C1: run one~.* ended as dead at .*, and no callback of two was asked for with that"},
		"nobody said it":               {were: failed("two"), want: `C2: a callback of two is asked for on "failed" of run one~`},
		"another one was called":       {were: failed("two"), says: failed("nobody"), want: `C2: a callback of two is asked for on "failed" of run one~`},
		"nobody noted that it is down": {were: failed("two"), says: named("two"), want: "C1: run one~.* ended as dead, and its job calls somebody when it recovers"},
	} {
		found := failing(t, c.on, c.were).judged(oracle.Config{Callbacks: c.says})
		if (len(found) > 0) != (c.want != "") || c.want != "" && !regexp.MustCompile("^"+c.want).MatchString(found[0]) {
			t.Errorf("%s: found %q, want %q", what, found, c.want)
		}
	}
}

// asksForCall is the index of the first event that asks for a callback, and its timer.
func (p *plot) asksForCall() (int, timer.Timer) {
	p.Helper()
	read := func(e event) (timer.Timer, bool) {
		t, err := timer.FromItem(store.Item{Key: e.key, Version: 1, Value: e.value})
		return t, err == nil && t.Create != nil && !t.Create.Callback.IsZero()
	}
	i := p.put(first, "due", func(e event) bool { _, ok := read(e); return ok })
	t, _ := read(p.life[i])
	return i, t
}

// tells changes the first run that tells of an end, as it is made.
func tells(change func(r *run.Run)) func(p *plot) { return spoilt("two", run.Queued, change) }

// ofRequestsThatCall are of runs whose own request names whom to call.
var ofRequestsThatCall = map[string]row{
	"calls whom nobody asked for": {spoilt("asked", run.Queued, func(r *run.Run) { r.Callees.Failed = "plain" }), "C2: run asked~.* is to call {Succeeded: Failed:plain}, and no such request was left"},
	"calls nobody, and was to": {func(p *plot) {
		p.asks(oracle.Trigger, func(q *oracle.Request) { q.Calls.Failed = "plain" })
	}, "C2: run asked~.* is to call {Succeeded: Failed:}, and no such request was left"},
	"calls another later": {spoilt("asked", run.Running, func(r *run.Run) { r.Callees.Succeeded = "plain" }), "P6: run asked~.* it must not change the jobs that its request names"},
	"calls whom it names, and was not written with its end": {spoilt("asked", run.Succeeded, func(r *run.Run) { r.Callees.Succeeded = "plain" }),
		"C1: run asked~.* ended as succeeded at .*, and no callback of plain was asked for with that"},
}

var ofCallbacks = map[string]row{
	"asked for on another end": {func(p *plot) {
		i, t := p.asksForCall()
		t.Create.Callback.Event = "succeeded"
		t.Version = 0
		op, err := t.Put(1)
		if err != nil {
			p.Fatal(err)
		}
		p.life[i].value = op.Value
	}, `C2: a callback of two is asked for on "succeeded" of run one~`},
	"not asked for with the end": {func(p *plot) { i, _ := p.asksForCall(); p.drop(i) }, "C1: run two~.* tells of an end, and nothing was asked for with that"},
	"never asked for":            {func(p *plot) { i, _ := p.asksForCall(); p.drop(i) }, "C1: run one~.* ended as dead at .*, and no callback of two was asked for with that"},
	"tells of another run":       {tells(func(r *run.Run) { r.Callback.Run = r.ID.String() }), `C2: run two~.* tells of "failed" of run two~.*, and no such end calls it`},
	"told twice": {func(p *plot) {
		i := p.run(first, "two", run.Queued)
		r, _ := p.of(p.life[i])
		r.ID = run.RequestID("two", r.ID.Nominal, 7)
		p.insert(i+1, p.item(r))
	}, "C2: runs two~.* and two~.* tell of the same end of run one~"},
	"told something else": {tells(func(r *run.Run) { r.Payload.Inline = []byte(`{"event":"failed","run":{"id":"x"}}`) }), "C2: run two~.* is told .* of the end of run one~.* as dead"},
	"not called":          {func(p *plot) { p.drop(p.run(first, "two", run.Queued)) }, "C1: run one~.* ended as dead at .*, and two was not called"},
	"down without a word": {func(p *plot) { p.drop(p.put(first, "down")) }, "C1: run one~.* ended as dead, and its job calls somebody when it recovers"},
	"down by another run": {func(p *plot) {
		i := p.put(first, "down")
		p.insert(i+1, p.life[i])
		p.life[i+1].value = encoded(p, run.Down{Generation: 1, Run: "one~000000000"})
	}, `C2: down#.* says that job one is down by run "one~000000000"`},
	"well without a success": {func(p *plot) {
		i := p.put(first, "down")
		p.insert(i+1, event{key: p.life[i].key, gone: true})
	}, "C2: down#.* is gone, and no run of job one has just succeeded"},
	"tells of several":           {tells(func(r *run.Run) { r.Callback.Count = 2 }), "C2: run two~.* tells of 0, and who calls it names no window"},
	"tells of another end later": {spoilt("two", run.Running, func(r *run.Run) { r.Callback.Event = "succeeded" }), "P6: run two~.* it must not change the end that it tells of"},
}
