package oracle_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// bounded is a life of a job of which one run may be in progress: one waits for its retry while others are due.
func bounded(t testing.TB) life {
	r := newRig(t)
	ctx := t.Context()
	const beat = 2 * time.Second
	r.elapsed = time.Second
	def := works(1, every(2*beat))
	def.Overlap = job.Overlap{Policy: job.OverlapSkip}
	def.Retry = job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}
	r.fails["one"], r.after = true, 10*time.Minute
	r.put(tenant, "one", def)
	r.live(10*beat, beat)
	late := r.trigger("one", "", http.StatusAccepted, `{}`)
	r.live(5*beat, beat)
	def.Schedule = nil
	r.put(tenant, "one", def)
	r.fails["one"] = false
	r.live(30*time.Minute, time.Minute)
	r.ofRun(oracle.Retry, late, http.StatusOK, func() (run.Run, error) { return r.control.Retry(ctx, tenant, late, false, time.Time{}) })
	r.live(5*beat, beat)
	r.delete(tenant, "one")
	return r.end()
}

func TestNothingIsFoundWhereRunsAreSkippedForOverlap(t *testing.T) {
	l := bounded(t)
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	var skipped, gates int
	for _, e := range l {
		if r, ok := p.of(e); ok && r.State == run.Skipped && !r.Missed() {
			skipped++
		}
		if e.key == gate.Key(tenant, "one") {
			gates++
		}
	}
	if skipped < 5 || gates < 2 {
		t.Errorf("only %d runs were skipped, and %d times somebody was let in", skipped, gates)
	}
}

// gate is the index of the first event after another that puts the gate.
func (p *plot) gate(after int) int {
	p.Helper()
	return p.index(after, func(e event) bool { return e.key == gate.Key(tenant, "one") })
}

// spoilGate changes what an event puts of the gate.
func (p *plot) spoilGate(at int, change func(g *gate.Gate)) {
	g, err := gate.FromItem(tenant, "job:one", store.Item{Version: 1, Value: p.life[at].value})
	if err != nil {
		p.Fatal(err)
	}
	change(&g)
	p.life[at].value = encoded(p, g)
}

// puts is the event of the gate being put with the entries of some runs.
func (p *plot) puts(runs ...run.Run) event {
	g := gate.Gate{}
	for _, r := range runs {
		g.Entries = append(g.Entries, gate.Entry{Nominal: r.ID.Nominal, Random: r.ID.Random, Opening: r.Opening, Generation: r.Generation})
	}
	return event{key: gate.Key(tenant, "one"), value: encoded(p, g)}
}

// overlapped changes the first run that is skipped for overlap.
func overlapped(change func(r *run.Run)) func(p *plot) { return spoilt("one", run.Skipped, change) }

// reopened is the index of the event that opens a skipped run again, and the run.
func (p *plot) reopened() (int, run.Run) {
	i := p.index(p.run(first, "one", run.Skipped), func(e event) bool { r, ok := p.of(e); return ok && r.Opening != 0 && r.State == run.Queued })
	r, _ := p.of(p.life[i])
	return i, r
}

var ofGates = map[string]row{
	"the gate is unreadable": {func(p *plot) { p.life[p.gate(first)].value = broken }, "G1: gate#.*unreadable"},
	"the gate of nobody":     {func(p *plot) { p.life[p.gate(first)].key = gate.Key(tenant, "two") }, "P12: gate#.* is the gate of no job"},
	"a gate that no job has": {func(p *plot) { p.life[p.gate(first)].key.Partition = "gate#default#one" }, "P12: gate#.* is the gate of no job"},
	"two entries of one run": {func(p *plot) {
		p.spoilGate(p.gate(first), func(g *gate.Gate) { g.Entries = append(g.Entries, g.Entries[0]) })
	}, "G1: run .* has two entries"},
	"an entry of no run": {func(p *plot) { p.spoilGate(p.gate(first), func(g *gate.Gate) { g.Entries[0].Nominal++ }) }, "G1: run .* has an entry at its gate, and never was"},
	"an entry of who brings allow": {func(p *plot) {
		for i, e := range p.life {
			if r, ok := p.of(e); ok && r.ID.Job == "one" && r.State == run.Queued {
				p.spoil(i, func(r *run.Run) { r.Overlap = job.OverlapAllow.Own() })
			}
		}
	}, "G1: run .* was asked for with allow, and has an entry at its job's gate"},
	"started without the gate":  {func(p *plot) { p.drop(p.gate(first)) }, "G1: run .* started, its job allows 1 at once, and it was not let in"},
	"an entry of other times":   {func(p *plot) { p.spoilGate(p.gate(first), func(g *gate.Gate) { g.Entries[0].Opening++ }) }, "G1: run .* started, .* and it was not let in"},
	"taken out while it runs":   {func(p *plot) { p.insert(p.run(first, "one", run.Running)+1, p.puts()) }, "G1: run .* is running, and has lost its entry"},
	"taken out while it waits":  {func(p *plot) { p.insert(p.run(first, "one", run.Retrying)+1, p.puts()) }, "G1: run .* is retrying, and has lost its entry"},
	"taken out before it began": {func(p *plot) { p.insert(p.gate(first)+1, p.puts()) }, "G1: run .* is queued, and has lost its entry"},
	"one too many is let in": {func(p *plot) {
		holds, _ := p.of(p.life[p.run(first, "one", run.Retrying)])
		i := p.run(p.run(first, "one", run.Retrying), "one", run.Skipped)
		wants, _ := p.of(p.life[i])
		p.insert(i, p.puts(holds, wants))
	}, "G1: run .* was let in as one of 2, and its job allows 1 at once"},
	"skipped by another policy": {overlapped(func(r *run.Run) { r.Why.Policy = "queue" }), "G4: run .* is skipped for overlap by \"queue\" at \"job:one\", which its job does not say"},
	"skipped by no gate":        {overlapped(func(r *run.Run) { r.Why.Gate = "" }), "G4: run .* which its job does not say"},
	"nobody was in the way":     {overlapped(func(r *run.Run) { r.Why.InTheWay = nil }), "G4: run .* is skipped and names .*, fewer than the 1"},
	"it was in its own way":     {overlapped(func(r *run.Run) { r.Why.InTheWay = []string{r.ID.String()} }), "G4: run .* in its way is no other run of its job"},
	"who was in the way had ended": {func(p *plot) {
		i := p.run(first, "one", run.Retrying)
		r, _ := p.of(p.life[i])
		r.State, r.NextAt, r.Ended = run.Failed, 0, r.Attempts[0].Ended
		r.Expires = r.Ended + job.MinRetention.Milliseconds()
		p.spoil(i, func(was *run.Run) { *was = r })
		p.hideAfter(i, r.ID)
	}, "G4: run .* is skipped for .*, and they were not in progress at one time"},
	"who was in the way came later": {func(p *plot) {
		_, r := p.reopened()
		p.spoil(p.run(first, "one", run.Skipped), func(s *run.Run) { s.Why.InTheWay = []string{r.ID.String()} })
	}, "G4: run .* in its way is no other run of its job"},
	"opened by hand, and skipped": {func(p *plot) {
		i, r := p.reopened()
		skipped, _ := p.of(p.life[p.run(first, "one", run.Skipped)])
		r.State, r.Why, r.Ended, r.Expires = run.Skipped, skipped.Why, skipped.Ended, skipped.Expires
		p.insert(i+1, p.item(r))
	}, "G4: run .* was opened by hand, and is skipped"},
	"an opening without a number": {func(p *plot) {
		i, _ := p.reopened()
		p.spoil(i, func(r *run.Run) { r.Opening = 0 })
	}, "G1: run .* is opened again in version .*, and the number of its opening is 0"},
	"skipped after an attempt": {func(p *plot) {
		skipped, _ := p.of(p.life[p.run(first, "one", run.Skipped)])
		i := p.run(first, "one", run.Retrying)
		p.spoil(i, func(r *run.Run) {
			r.State, r.NextAt, r.Why, r.Ended, r.Expires = run.Skipped, 0, skipped.Why, skipped.Ended, skipped.Expires
		})
	}, "P6: run .* went from running to skipped .*no edge of the graph"},
	"skipped, and its claim changed": {overlapped(func(r *run.Run) { r.Generation++ }), "P6: run .*it keeps its claim, and has a reason"},
	"skipped under another opening":  {overlapped(func(r *run.Run) { r.Opening = 2 }), "P6: run .*it must not change the opening"},
	"an edit takes back what was skipped": {func(p *plot) {
		i := p.run(first, "one", run.Skipped)
		r, _ := p.of(p.life[i])
		p.insert(i+1, p.item(run.Run{ID: r.ID, Tenant: r.Tenant, State: run.Fenced, Generation: r.Generation + 1, Expires: r.Expires}))
	}, "P6: run .*a newer generation takes back what was dropped as missed"},
	"a claim over what was skipped": {func(p *plot) {
		i := p.run(first, "one", run.Skipped)
		r, _ := p.of(p.life[i])
		p.insert(i+1, p.item(run.Run{ID: r.ID, Tenant: r.Tenant, State: run.Queued, Generation: r.Generation, Trigger: run.BySchedule, Priority: r.Priority, Created: r.Created}))
	}, "P7: run .* had ended as skipped, and is queued without a request of its own"},
}

// hideAfter leaves out what becomes of a run behind an event.
func (p *plot) hideAfter(at int, id run.ID) {
	before := append(life{}, p.life[:at+1]...)
	p.life = append(life{}, p.life[at+1:]...)
	p.hide(id)
	p.life = append(before, p.life...)
}
