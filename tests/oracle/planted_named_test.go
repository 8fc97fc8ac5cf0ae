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
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// redefine writes a definition of the gate "stripe", and makes it hold.
func (r *rig) redefine(change func(*gate.Named)) {
	items, err := r.store.Get(r.Context(), gate.NamedKey(tenant, "stripe"))
	r.must(err)
	n, err := gate.NamedFromItem(tenant, items[0])
	r.must(err)
	n.Generation++
	change(&n)
	op, err := n.Put(1000 + uint64(n.Generation))
	r.must(err)
	versions, err := r.store.Write(r.Context(), op)
	r.must(err)
	r.must(r.dispatch.Redefined(r.Context(), n.Written(versions[0])))
}

// atNamed is a life of a job whose runs pass a named gate: one waits long for its retry, two wait behind it, of which one is released, and one is skipped. Then the gate is
// closed, gets another limit, and is opened.
func atNamed(t testing.TB) life { return atNamedBy(t, "") }

func atNamedBy(t testing.TB, key string) life {
	r := newRig(t)
	const beat = 2 * time.Second
	r.elapsed = time.Second
	most := 2
	r.redefine(func(n *gate.Named) { n.Def = gate.Definition{Limit: 1, MaxWaiting: &most} })
	def := works(1, nil)
	def.Gates = []job.GateUse{{Gate: "stripe", Units: 1, Key: key}}
	def.Retry = job.Retry{MaxAttempts: 2, Initial: schedule.Duration(time.Second)}
	r.fails["one"], r.after = true, 3*time.Minute
	r.put(tenant, "one", def)
	var asked []run.ID
	for range 4 {
		asked = append(asked, r.trigger("one", "", http.StatusAccepted, `{"customer": "acme"}`))
		r.live(2*beat, beat)
	}
	if _, err := r.dispatch.Release(t.Context(), run.Run{ID: asked[2], Tenant: tenant}, "", ""); err != nil {
		t.Fatal(err)
	}
	r.fails["one"] = false
	r.redefine(func(n *gate.Named) { n.Closed = &gate.Change{At: r.now().UnixMilli()} })
	r.live(10*time.Minute, time.Minute)
	r.redefine(func(n *gate.Named) { n.Def.Limit = 2 })
	r.redefine(func(n *gate.Named) { n.Closed = nil })
	r.live(30*time.Minute, time.Minute)
	r.ask(oracle.Request{Op: oracle.DeleteJob, Job: "one"}, http.StatusNoContent, func(*oracle.Answer) error { return r.control.Delete(t.Context(), tenant, "one", control.Match{}) })
	upTo := r.now()
	r.live(80*time.Minute, time.Minute)
	r.tell(event{upTo: upTo})
	return r.told
}

func TestNothingIsFoundAtANamedGate(t *testing.T) {
	for _, key := range []string{"", "${ .payload.customer }"} {
		nothingIsFoundAtANamedGate(t, atNamedBy(t, key))
	}
}

func nothingIsFoundAtANamedGate(t *testing.T, l life) {
	if found := l.judged(oracle.Config{}); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	p := &plot{TB: t, life: l}
	waited, skipped, released := map[run.ID]bool{}, 0, 0
	for _, e := range l {
		r, ok := p.of(e)
		if ok && r.Waits() {
			waited[r.ID] = true
		}
		if ok && r.State == run.Skipped {
			skipped++
		}
		if ok && r.Released != 0 && r.State == run.Succeeded {
			released++
		}
	}
	if len(waited) != 2 || skipped != 1 || released != 1 {
		t.Errorf("%d waited, %d were skipped, and %d released", len(waited), skipped, released)
	}
}

// stripe is the index of the n-th event that puts the gate; the first was by its definition.
func (p *plot) stripe(n int) int {
	p.Helper()
	at := first
	for range n {
		at = p.index(at, func(e event) bool { return e.key == gate.ID{Tenant: tenant, Name: "stripe"}.Item() })
	}
	return at
}

// definition is the index of the n-th event that puts the definition of the gate.
func (p *plot) definition(n int) int {
	p.Helper()
	at := first
	for range n {
		at = p.index(at, func(e event) bool { return e.key == gate.NamedKey(tenant, "stripe") })
	}
	return at
}

// spoilStripe changes what an event puts of the gate.
func (p *plot) spoilStripe(at int, change func(g *gate.Gate)) {
	p.Helper()
	g, err := gate.FromItem(tenant, "stripe", store.Item{Version: 1, Value: p.life[at].value})
	if err != nil {
		p.Fatal(err)
	}
	change(&g)
	op, err := g.Put(time.Time{}, 1)
	if err != nil {
		p.Fatal(err)
	}
	p.life[at].value = op.Value
}

// spoilDefinition changes what an event puts of the gate's definition.
func (p *plot) spoilDefinition(at int, change func(n *gate.Named)) {
	p.Helper()
	n, err := gate.NamedFromItem(tenant, store.Item{Key: p.life[at].key, Version: 1, Value: p.life[at].value})
	if err != nil {
		p.Fatal(err)
	}
	change(&n)
	p.life[at].value = encoded(p, n)
}

// letIn is the index of the write that lets in those that waited.
func (p *plot) letIn() int {
	p.Helper()
	i := p.index(first, func(e event) bool { r, ok := p.of(e); return ok && r.State == run.Queued && r.Wait.LetIn != 0 })
	for p.life[i].key.Partition != "gate#"+tenant+"#stripe" {
		i--
	}
	return i
}

// ofValue is the index of the first event that puts the gate of a value.
func (p *plot) ofValue() int {
	p.Helper()
	return p.index(first, func(e event) bool {
		return e.key == gate.ID{Tenant: tenant, Name: "stripe", Key: gate.KeyOf("acme")}.Item()
	})
}

var ofNamedGatesOfValues = map[string]row{
	"entered elsewhere": {func(p *plot) {
		p.life[p.ofValue()].key = gate.ID{Tenant: tenant, Name: "stripe", Key: gate.KeyOf("other")}.Item()
	}, "G1: run .* was let in at gate stripe for the key \"=other\", and passes it by"},
	"entered the gate of all": {func(p *plot) {
		p.life[p.ofValue()].key = gate.ID{Tenant: tenant, Name: "stripe"}.Item()
	}, "G1: run .* was let in at gate stripe for the key \"\", and passes it by"},
	"waits elsewhere": {func(p *plot) {
		i, _ := p.joins(first)
		p.spoil(i, func(r *run.Run) { r.Wait.Key = gate.KeyOf("other") })
	}, "G1: run .* waits at gate stripe for the key \"=other\", and passes it by"},
	"skipped by the gate of another value": {overlapped(func(r *run.Run) { r.Why.Key = gate.KeyOf("other") }), "G4: run .* is skipped at gate stripe, where 0 wait, and at most 2 may"},
	"the first of a value was let in by what was said before": {func(p *plot) {
		p.spoilStripe(p.ofValue(), func(g *gate.Gate) { g.Under = 1 })
		items := p.definition(1)
		again := p.life[items]
		n, err := gate.NamedFromItem(tenant, store.Item{Key: again.key, Version: 1, Value: again.value})
		if err != nil {
			p.Fatal(err)
		}
		n.Generation = 2
		again.value = encoded(p, n)
		p.insert(items+1, again)
		for _, i := range []int{2, 3, 4} {
			at := p.definition(i + 1)
			p.spoilDefinition(at, func(n *gate.Named) { n.Generation += 10 })
		}
	}, "G1: run .* was the first to be let in at gate stripe for the key \"=acme\", under its generation 1, which was replaced"},
}

var ofNamedGates = map[string]row{
	"no definition":               {func(p *plot) { p.life[p.definition(1)].value = broken }, "P12: .* is no definition of a gate"},
	"a generation comes again":    {func(p *plot) { p.spoilDefinition(p.definition(2), func(n *gate.Named) { n.Generation = 1 }) }, "P8: gate stripe of default went from generation 1 to 1"},
	"a gate without a definition": {func(p *plot) { p.drop(p.definition(1)) }, "P12: gate#.* is the gate of no job"},
	"it is unreadable":            {func(p *plot) { p.life[p.stripe(2)].value = broken }, "G1: gate#.*unreadable"},
	"two entries of a run": {func(p *plot) {
		p.spoilStripe(p.stripe(2), func(g *gate.Gate) { g.Entries = append(g.Entries, g.Entries[0]) })
	}, "G1: run .* has two entries"},
	"an entry of no run":       {func(p *plot) { p.spoilStripe(p.stripe(2), func(g *gate.Gate) { g.Entries[0].Nominal++ }) }, "G1: run .* has an entry at its gate, and never was"},
	"started without an entry": {func(p *plot) { p.drop(p.stripe(2)) }, "G1: run .* started, its job names gate stripe, and it was not let in there"},
	"the entry is taken out":   {func(p *plot) { p.spoilStripe(p.stripe(3), func(g *gate.Gate) { g.Entries = nil }) }, "G1: run .* is retrying, and has lost its entry"},
	"too many units":           {func(p *plot) { p.spoilStripe(p.stripe(2), func(g *gate.Gate) { g.Entries[0].Units = 2 }) }, "G1: run .* was let in at gate stripe with 2 units, wants 1, and the limit is 1"},
	"by no definition":         {func(p *plot) { p.spoilStripe(p.stripe(2), func(g *gate.Gate) { g.Under = 9 }) }, "G1: run .* was let in at gate stripe under generation 9 of it, which never was"},
	"by one of before":         {func(p *plot) { p.spoilStripe(p.letIn(), func(g *gate.Gate) { g.Under = 1 }) }, "G1: run .* was let in at gate stripe under its generation 1, and 4 was in force"},
	"though it is closed": {func(p *plot) {
		p.spoilDefinition(p.definition(4), func(n *gate.Named) { n.Closed = &gate.Change{At: 1} })
	}, "G1: run .* was let in at gate stripe, which is closed"},
	"beyond the limit": {func(p *plot) { p.spoilDefinition(p.definition(4), func(n *gate.Named) { n.Def.Limit = 1 }) }, "G1: run .* was let in at gate stripe to make 2 units of 1"},
	"its job does not name it": {func(p *plot) {
		for i, e := range p.life {
			if len(e.value) > 0 && !e.gone && e.key == job.Key(tenant, "one") {
				p.spoilJob(i, func(j *job.Job) { j.Def.Gates = nil })
			}
		}
	}, "G1: run .* is at gate stripe, which its job does not name"},
	"skipped by another gate":     {overlapped(func(r *run.Run) { r.Why.Gate = "gpu" }), "G4: run .* is skipped for full by \"\" at gate gpu, which its job does not say"},
	"skipped as at a closed gate": {overlapped(func(r *run.Run) { r.Why.Code = run.WhyClosed }), "G4: run .* is skipped for closed at gate stripe, which was not so"},
	"skipped at a closed gate as at a full one": {func(p *plot) {
		p.spoilDefinition(p.definition(1), func(n *gate.Named) { n.Closed = &gate.Change{At: 1} })
	}, "G4: run .* is skipped for full at gate stripe, which was not so"},
	"who held a place was in its way at a closed gate": {func(p *plot) {
		p.spoilDefinition(p.definition(1), func(n *gate.Named) { n.Closed = &gate.Change{At: 1} })
		overlapped(func(r *run.Run) { r.Why.Code = run.WhyClosed })(p)
	}, "G4: run .* is skipped at gate stripe, which was closed, and run .* in its way did not wait then"},
	"skipped while more may wait": {func(p *plot) {
		p.spoilDefinition(p.definition(1), func(n *gate.Named) { three := 3; n.Def.MaxWaiting = &three })
	}, "G4: run .* is skipped at gate stripe, where 2 wait, and at most 3 may"},
	"who was in its way was never there": {overlapped(func(r *run.Run) { r.Why.InTheWay = []string{"one~0000000rs"} }), "G4: run .* is skipped at gate stripe, and run .* in its way was never there"},
	"released twice": {func(p *plot) {
		i := p.index(first, func(e event) bool { r, ok := p.of(e); return ok && r.Released != 0 })
		r, _ := p.of(p.life[i])
		r.Released++
		p.insert(i+1, p.item(r))
	}, "P6: run .*who waits goes nowhere but to the front, when it is released"},
	"the first is passed": {func(p *plot) {
		i := p.letIn()
		p.spoilStripe(i, func(g *gate.Gate) {
			g.Entries = g.Entries[len(g.Entries)-1:] // the first in line goes on waiting
		})
	}, "G3: run .* was let in before run .*, which stands before it in line"},
}
