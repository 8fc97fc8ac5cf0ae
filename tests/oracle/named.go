package oracle

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// namedState is a gate that jobs name.
type namedState struct {
	tenant, name string
	spans        []*namedSpan            // of its definition, the oldest first
	values       map[string]*namedWrites // by the key, "" for the gate of all
}

// namedWrites is what is known of the gate of one value.
type namedWrites struct {
	under  int64              // the highest generation under which it was written
	looked int                // the event by which it was last written
	came   map[*runState]bool // that were ever let in, or have waited, there
}

// value is what is known of the gate of a value, "" for that of all.
func (s *namedState) value(key string) *namedWrites {
	if s.values[key] == nil {
		s.values[key] = &namedWrites{came: map[*runState]bool{}}
	}
	return s.values[key]
}

// namedSpan is a time in which a definition stood, or none did.
type namedSpan struct {
	gate.Named
	since, end int   // events; end 0 while it stands
	until      int64 // Unix ms; forever while it stands
}

func (s *namedSpan) none() bool { return s.Version == 0 }

// spot is where a run waits: as place.key has it. No key of an own gate begins so.
func spot(r *run.Run) string {
	if at := gate.Of(*r); at.IsNamed() {
		return spotOf(at)
	}
	return r.GateKey
}

// spotOf is where a named gate is, or of those of values one.
func spotOf(at gate.ID) string { return namedSpot + at.Name + "#" + at.Key }

const namedSpot = "gate:"

func (j *Judge) gateNamed(tenant, name string) *namedState {
	key := gate.NamedKey(tenant, name)
	if j.gates[key] == nil {
		j.gates[key] = &namedState{tenant: tenant, name: name, spans: []*namedSpan{{until: forever}}, values: map[string]*namedWrites{}}
	}
	return j.gates[key]
}

// storedDefinition follows what a named gate says: its generation grows with each change.
func (j *Judge) storedDefinition(at time.Time, tenant string, before, after store.Item) {
	key := before.Key
	if after.Exists() {
		key = after.Key
	}
	j.storedOther(key, before, after)
	after.Key = key
	n, err := gate.NamedFromItem(tenant, after)
	if err != nil || key != gate.NamedKey(tenant, n.Name) {
		j.violate("P12", "%s is no definition of a gate: %v", key, err)
		return
	}
	s := j.gateNamed(tenant, n.Name)
	last := s.spans[len(s.spans)-1]
	if after.Exists() && n.Generation <= last.Generation {
		j.violate("P8", "gate %s of %s went from generation %d to %d", n.Name, tenant, last.Generation, n.Generation)
	}
	last.end, last.until = j.event, ms(at)
	s.spans = append(s.spans, &namedSpan{Named: n, since: j.event, until: forever})
}

// of is the definition of a generation; nil for none.
func (s *namedState) of(generation int64) *namedSpan {
	if at := slices.IndexFunc(s.spans, func(p *namedSpan) bool { return !p.none() && p.Generation == generation }); at >= 0 {
		return s.spans[at]
	}
	return nil
}

// noneSince tells whether the gate has had no definition at any time since an event.
func (s *namedState) noneSince(event int) bool {
	return slices.ContainsFunc(s.spans, func(p *namedSpan) bool { return p.none() && (p.end == 0 || p.end > event) })
}

// use is how a run's definition has it pass a gate.
func (rs *runState) use(name string) (use job.GateUse, named bool) {
	e := rs.job.byGeneration[rs.run.Generation]
	if e == nil {
		return use, false
	}
	at := slices.IndexFunc(e.Def.Gates, func(u job.GateUse) bool { return u.Gate == name })
	if at < 0 {
		return use, false
	}
	return e.Def.Gates[at], true
}

// namedAt are the times in which the run was let in where the named gate of this spot is.
func (rs *runState) namedAt(spot string) []place {
	of, named := strings.CutPrefix(spot, namedSpot)
	name, key, _ := strings.Cut(of, "#")
	if !named {
		return nil
	}
	return rs.named[gate.ID{Tenant: rs.job.tenant, Name: name, Key: key}]
}

// passes is the gate of that name that the run's definition has it pass, by the key in its record.
func (rs *runState) passes(use job.GateUse) gate.ID {
	at := gate.ID{Tenant: rs.job.tenant, Name: use.Gate}
	if e := rs.job.byGeneration[rs.run.Generation]; e != nil && use.Key != "" {
		if i := slices.Index(e.Def.Gates, use); i < len(rs.run.NamedKeys) {
			at.Key = rs.run.NamedKeys[i]
		}
	}
	return at
}

// isOf tells whether a gate is the one of its name that the run passes: as the value of its key says, and as its record does where it says anything.
func (rs *runState) isOf(use job.GateUse, of gate.ID) bool {
	want, known := keyOf(rs.job.byGeneration[rs.run.Generation], &rs.run, use.Key)
	right := want == of.Key
	if !known {
		right = of.Key != ""
	}
	return right && (len(rs.run.NamedKeys) == 0 || rs.passes(use) == of)
}

// isIn tells whether the run is let in at a named gate, and has not ended.
func (rs *runState) isIn(at gate.ID) bool {
	stays := rs.named[at]
	return len(stays) > 0 && stays[len(stays)-1].until == forever
}

func (rs *runState) leavesNamed(gone gate.ID, at int64) {
	if rs.isIn(gone) {
		rs.named[gone][len(rs.named[gone])-1].until = at
	}
}

// leavesGates is told of a change of a run after which it may have to be let in anew at named gates. b is the run before.
func (rs *runState) leavesGates(b *run.Run, at int64) {
	a := &rs.run
	for of := range rs.named {
		stays := active(b.State) && active(a.State) && b.Opening == a.Opening && b.Generation == a.Generation
		if !stays || a.Waits() && gate.Of(*a) == of {
			rs.leavesNamed(of, at)
		}
	}
}

// storedNamedGate: whoever is in progress keeps its entry, whoever is let in finds room by the definition that the gate was written under, and that is none
// that an edit has replaced before (G1). Nobody is let in before another that could be (G3).
func (j *Judge) storedNamedGate(at time.Time, key store.Key, tenant, name string, after store.Item) {
	after.Key = key
	g, err := gate.FromItem(tenant, name, after)
	s := j.gateNamed(tenant, name)
	switch {
	case len(s.spans) == 1 || key != (gate.ID{Tenant: tenant, Name: name, Key: gate.KeyAt(key.Sort)}).Item():
		j.violate("P12", "%s is the gate of no job", key)
		return
	case err != nil:
		j.violate("G1", "%s: %v", key, err)
		return
	}
	def, of := s.of(g.Under), g.ID()
	writes := s.value(g.Key)
	standing := map[*runState]int{}
	var lets []*runState
	for i, e := range g.Entries {
		if slices.ContainsFunc(g.Entries[:i], func(other gate.Entry) bool { return g.Run(other) == g.Run(e) }) {
			j.violate("G1", "run %s of %s has two entries at its gate", g.Run(e), tenant)
		}
		rs := j.runs[g.Run(e).Key(tenant)]
		if rs == nil {
			j.violate("G1", "run %s of %s has an entry at its gate, and never was", g.Run(e), tenant)
			continue
		}
		if !active(rs.run.State) || e.Opening != rs.run.Opening || e.Generation != rs.run.Generation {
			continue
		}
		standing[rs] = max(1, e.Units)
		if rs.isIn(of) {
			continue
		}
		lets = append(lets, rs)
		if rs.named == nil {
			rs.named = map[gate.ID][]place{}
		}
		rs.named[of] = append(rs.named[of], place{ms(at), forever, spotOf(of)})
		writes.came[rs] = true
		use, named := rs.use(name)
		switch want := max(1, use.Units); {
		case !named:
			j.violate("G1", "run %s of %s is at gate %s, which its job does not name", rs.id(), tenant, name)
		case !rs.isOf(use, of):
			j.violate("G1", "run %s of %s was let in at gate %s for the key %q, and passes it by %q", rs.id(), tenant, name, g.Key, use.Key)
		case def != nil && max(1, e.Units) != min(want, def.Def.Limit):
			j.violate("G1", "run %s of %s was let in at gate %s with %d units, wants %d, and the limit is %d", rs.id(), tenant, name, e.Units, want, def.Def.Limit)
		}
	}
	total := 0
	for _, units := range standing {
		total += units
	}
	for rs := range writes.came {
		switch {
		case !rs.isIn(of) || standing[rs] != 0:
		case rs.run.Waits() && gate.Of(rs.run).Compare(of) < 0: // it leaves the place with the write by which it joins that line
			rs.leavesNamed(of, ms(at))
		default:
			j.violate("G1", "run %s of %s is %s, and has lost its entry at its gate in version %d", rs.id(), tenant, rs.run.State, after.Version)
			rs.leavesNamed(of, ms(at))
		}
	}
	j.namedInOrder(at, of, writes, lets)
	for _, rs := range lets {
		// Who lets in reads the jobs behind the gate, and so sees a pause that stood before that was last written.
		if held := rs.job.newest(); rs.run.Waits() && !rs.run.IgnorePause && held.Def.Paused && held.since < writes.looked {
			j.violate("P8", "run %s of %s was let in from the line, and its job is paused since generation %d", rs.id(), tenant, held.Generation)
		}
		switch {
		case def == nil:
			j.violate("G1", "run %s of %s was let in at gate %s under generation %d of it, which never was", rs.id(), tenant, name, g.Under)
		case g.Under < writes.under:
			j.violate("G1", "run %s of %s was let in at gate %s under its generation %d, and %d was in force", rs.id(), tenant, name, g.Under, writes.under)
		case g.Key != "" && after.Version == 1 && def.end != 0: // no change of the definition could have written it
			j.violate("G1", "run %s of %s was the first to be let in at gate %s for the key %q, under its generation %d, which was replaced", rs.id(), tenant, name, g.Key, g.Under)
		case def.Closed != nil:
			j.violate("G1", "run %s of %s was let in at gate %s, which is closed", rs.id(), tenant, name)
		case total > def.Def.Limit:
			j.violate("G1", "run %s of %s was let in at gate %s to make %d units of %d", rs.id(), tenant, name, total, def.Def.Limit)
		}
	}
	writes.under, writes.looked = max(writes.under, g.Under), j.event
}

// namedInOrder is inOrder at a named gate. A run of a job that is paused, or was since the gate was last written, is passed over.
func (j *Judge) namedInOrder(at time.Time, of gate.ID, writes *namedWrites, lets []*runState) {
	if len(lets) == 0 {
		return
	}
	var first *runState // of those that go on waiting
	for rs := range writes.came {
		r := &rs.run
		if !r.Waits() || gate.Of(*r) != of || slices.Contains(lets, rs) || !j.placeStands(rs) || rs.job.deletedOver(r.Generation) ||
			r.TooLate(ms(at)+j.cfg.Clocks.Milliseconds()) || !r.IgnorePause && rs.job.pausedSince(writes.looked) {
			continue
		}
		if first == nil || gate.PlaceOf(*r).Compare(gate.PlaceOf(first.run)) < 0 {
			first = rs
		}
	}
	if first == nil {
		return
	}
	for _, rs := range lets {
		switch {
		case !rs.run.Waits():
			j.violate("G3", "run %s of %s entered past the line, in which run %s waits", rs.id(), of.Tenant, first.id())
		case gate.PlaceOf(first.run).Compare(gate.PlaceOf(rs.run)) < 0:
			j.violate("G3", "run %s of %s was let in before run %s, which stands before it in line", rs.id(), of.Tenant, first.id())
		}
	}
}

// deletedOver tells whether a delete of the job has been written since a generation: whoever lets in at a named gate ends its runs by the same write.
func (js *jobState) deletedOver(generation int64) bool {
	return slices.ContainsFunc(js.editions, func(e *edition) bool { return e.deleted && e.Generation > generation })
}

// inAtAll: what starts was let in at each gate that its definition names, unless that has had no definition since the run was made (G1).
func (j *Judge) inAtAll(rs *runState) {
	e := rs.job.byGeneration[rs.run.Generation]
	if e == nil {
		return
	}
	for _, use := range e.Def.Gates {
		if !rs.isIn(rs.passes(use)) && !j.gateNamed(rs.job.tenant, use.Gate).noneSince(rs.past[0].since) {
			j.violate("G1", "run %s of %s started, its job names gate %s, and it was not let in there", rs.id(), rs.job.tenant, use.Gate)
		}
	}
}

// namedFull: who is skipped at a named gate found as many waiting as it lets wait, and names others that wait there or are in progress (G4).
func (j *Judge) namedFull(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	_, named := rs.use(a.Why.Gate)
	switch {
	case a.Why.Code != run.WhyFull && a.Why.Code != run.WhyClosed || a.Why.Policy != "" || !named:
		j.violate("G4", "run %s of %s is skipped for %s by %q at gate %s, which its job does not say", a.ID, a.Tenant, a.Why.Code, a.Why.Policy, a.Why.Gate)
		return
	case rs.byHand:
		j.violate("G4", "run %s of %s was opened by hand, and is skipped", a.ID, a.Tenant)
	}
	from := max(rs.due(b), rs.written) - j.cfg.Clocks.Milliseconds()
	most, waiting := math.MaxInt, 0
	stood := map[string]bool{} // the codes for which it was such as it says
	for _, p := range j.gateNamed(a.Tenant, a.Why.Gate).spans {
		if p.none() || p.until < from {
			continue
		}
		if p.Closed != nil {
			stood[run.WhyClosed] = true
		} else {
			stood[run.WhyFull] = true
		}
		if p.Def.MaxWaiting != nil {
			most = min(most, *p.Def.MaxWaiting)
		}
	}
	if !stood[a.Why.Code] {
		j.violate("G4", "run %s of %s is skipped for %s at gate %s, which was not so", a.ID, a.Tenant, a.Why.Code, a.Why.Gate)
	}
	key := spotOf(gate.ID{Name: a.Why.Gate, Key: a.Why.Key})
	waited := func(other *runState) bool {
		return other != rs && slices.ContainsFunc(other.waits, func(p place) bool { return p.key == key && p.since <= ms(at) && p.until >= from })
	}
	for other := range j.gateNamed(a.Tenant, a.Why.Gate).value(a.Why.Key).came {
		if waited(other) {
			waiting++
		}
	}
	if waiting < most {
		j.violate("G4", "run %s of %s is skipped at gate %s, where %d wait, and at most %d may", a.ID, a.Tenant, a.Why.Gate, waiting, most)
	}
	for _, id := range a.Why.InTheWay {
		switch other := j.named(a.Tenant, id); {
		case other == nil || other == rs || len(other.stays(key)) == 0:
			j.violate("G4", "run %s of %s is skipped at gate %s, and run %s in its way was never there", a.ID, a.Tenant, a.Why.Gate, id)
		case a.Why.Code == run.WhyClosed && !waited(other):
			j.violate("G4", "run %s of %s is skipped at gate %s, which was closed, and run %s in its way did not wait then", a.ID, a.Tenant, a.Why.Gate, id)
		}
	}
}

// comes notes a run with the named gate where it waits.
func (j *Judge) comes(rs *runState) {
	if at := gate.Of(rs.run); rs.run.Waits() && at.IsNamed() {
		j.gateNamed(at.Tenant, at.Name).value(at.Key).came[rs] = true
	}
}

// waitsAtItsOwn: a run waits at no named gate but one that its job names (G1).
func (j *Judge) waitsAtItsOwn(rs *runState) {
	name := rs.run.Wait.Gate
	use, named := rs.use(name)
	switch {
	case !rs.run.Waits() || !isNamedGate(name):
	case !named:
		j.violate("G1", "run %s of %s is at gate %s, which its job does not name", rs.id(), rs.job.tenant, name)
	case !rs.isOf(use, gate.Of(rs.run)):
		j.violate("G1", "run %s of %s waits at gate %s for the key %q, and passes it by %q", rs.id(), rs.job.tenant, name, rs.run.Wait.Key, use.Key)
	}
}

// isNamedGate tells of what stands in the key of a gate's partition whether that is one that jobs name.
func isNamedGate(named string) bool { return !strings.HasPrefix(named, "job:") }
