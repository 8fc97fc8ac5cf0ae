package oracle

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// place is a time in which a run is in progress at its job's gate: from the write that lets it in until it has ended, or its claim was taken
// away. Unix ms.
type place struct {
	since, until int64
	key          string // of the gate, where there is one for each value
}

// inProgress tells whether the run is let in, and has not ended.
func (rs *runState) inProgress() bool {
	n := len(rs.places)
	return n > 0 && rs.places[n-1].until == forever
}

// leaves is told of a run's end, or of anything else after which it would have to be let in anew.
func (rs *runState) leaves(at int64) {
	if rs.inProgress() {
		rs.places[len(rs.places)-1].until = at
	}
}

// active tells whether a run that was let in is in progress in this state.
func active(s run.State) bool { return s == run.Queued || s == run.Running || s == run.Retrying }

// sameStay tells whether a run that was let in before a change of its record is in progress behind it.
func sameStay(b, a *run.Run) bool {
	return active(b.State) && active(a.State) && b.Opening == a.Opening && b.Generation == a.Generation && !waitsAtOwn(a)
}

// waitsAtOwn tells whether a run waits at an own gate of its job: at a named one it holds its place at that.
func waitsAtOwn(r *run.Run) bool { return r.Waits() && r.Wait.Gate == gate.Name(r.ID.Job) }

// lines is told of a change of a run that may join a line, or leave it. b is the run before.
func (rs *runState) lines(at time.Time, b *run.Run) {
	a := &rs.run
	if n := len(rs.waits); b.Waits() && n > 0 && rs.waits[n-1].until == forever && (!a.Waits() || a.Version == b.Version) {
		rs.waits[n-1].until = ms(at)
	}
	if a.Waits() && !b.Waits() {
		rs.waits = append(rs.waits, place{ms(at), forever, spot(a)})
	}
}

// storedPlace follows the places of lines: each is that of a run of the job.
func (j *Judge) storedPlace(key store.Key, rest string, before, after store.Item) {
	j.storedOther(key, before, after)
	tenant, named, _ := strings.Cut(rest, "#")
	p, err := gate.PlaceFromItem(strings.TrimSuffix(named, "#"), store.Item{Key: key})
	switch {
	case err != nil || p.Key(tenant) != key:
		j.violate("G3", "%s is no place in line: %v", key, err)
	case j.runs[p.Run.Key(tenant)] == nil:
		j.violate("G3", "%s is a place of a run that never was", key)
	}
}

// stands tells whether a place of the line stands.
func (j *Judge) placeStands(rs *runState) bool {
	_, ok := j.lasts[gate.PlaceOf(rs.run).Key(rs.job.tenant)]
	return ok
}

// inOrder: whoever is let in comes before all that go on waiting, and nobody enters past them (G3). lets are those that a write of the gate has let in; it is told of before the
// runs and the places that it writes. key is whose gate it is.
func (j *Judge) inOrder(at time.Time, js *jobState, key string, lets []*runState) {
	var first *runState // of those that go on waiting
	for _, rs := range js.runs {
		if !waitsAtOwn(&rs.run) || rs.run.GateKey != key || slices.Contains(lets, rs) || !j.placeStands(rs) || js.deletedSince(rs.run.Generation) || rs.run.TooLate(ms(at)+j.cfg.Clocks.Milliseconds()) {
			continue
		}
		if first == nil || gate.PlaceOf(rs.run).Compare(gate.PlaceOf(first.run)) < 0 {
			first = rs
		}
	}
	if first == nil {
		return
	}
	for _, rs := range lets {
		switch {
		case !rs.run.Waits() && rs.run.IgnorePause && js.pausedSince(rs.past[0].since): // it need not wait behind what a pause holds
		case !rs.run.Waits():
			j.violate("G3", "run %s of %s entered past the line, in which run %s waits", rs.id(), js.tenant, first.id())
		case gate.PlaceOf(first.run).Compare(gate.PlaceOf(rs.run)) < 0:
			j.violate("G3", "run %s of %s was let in before run %s, which stands before it in line", rs.id(), js.tenant, first.id())
		}
	}
}

// pausedSince tells whether a job was paused at any time since an event.
func (js *jobState) pausedSince(event int) bool {
	return slices.ContainsFunc(js.editions, func(e *edition) bool { return e.Def.Paused && (e.end == 0 || e.end > event) })
}

// storedGate: whoever is in progress keeps its entry, and whoever is let in finds room (G1).
func (j *Judge) storedGate(at time.Time, key store.Key, rest string, before, after store.Item) {
	j.storedOther(key, before, after)
	tenant, named, _ := strings.Cut(rest, "#")
	if isNamedGate(named) {
		j.storedNamedGate(at, key, tenant, named, after)
		return
	}
	jobName := strings.TrimPrefix(named, "job:")
	js := j.job(tenant, jobName)
	g, err := gate.FromItem(tenant, named, after)
	switch {
	case err != nil:
		j.violate("G1", "%s: %v", key, err)
		return
	case key != g.ID().Item() || len(js.editions) == 0:
		j.violate("P12", "%s is the gate of no job", key)
		return
	}
	j.oneWaits(js, g.Key)
	standing := map[*runState]bool{}
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
		if e.Kept && rs.still.holds && rs.still.kept != e.Opening && e.Opening == rs.run.Opening && !rs.run.State.Ended() { // by the write that has opened it again
			rs.still.kept = e.Opening
			rs.places = append(rs.places, place{ms(at), forever, g.Key})
		}
		j.passesBy(rs)
		if active(rs.run.State) && e.Opening == rs.run.Opening && (e.Generation == rs.run.Generation || e.Kept) || e.Kept && rs.still.kept == rs.run.Opening && rs.inProgress() {
			standing[rs] = true
			j.atItsKey(rs, g.Key)
			if !rs.inProgress() {
				rs.places = append(rs.places, place{ms(at), forever, g.Key})
				lets = append(lets, rs)
				rs.entersStrictly(js.gateWritten[g.Key])
			}
		}
	}
	for _, rs := range js.runs {
		if rs.inProgress() && rs.places[len(rs.places)-1].key == g.Key && !standing[rs] {
			j.violate("G1", "run %s of %s is %s, and has lost its entry at its gate in version %d", rs.id(), tenant, rs.run.State, after.Version)
			rs.leaves(ms(at))
		}
	}
	j.enteredFor(js, g.Key)
	j.letGo(at, js, before, g)
	j.stoodStill(js, g.Key, lets)
	j.inOrder(at, js, g.Key, lets)
	if js.gateWritten == nil {
		js.gateWritten = map[string]int{}
	}
	held, looked := js.newest(), js.gateWritten[g.Key]
	js.gateWritten[g.Key] = j.event
	// Those that one write lets in come one after the other, and an edit between their claims may have given them different limits.
	slices.SortStableFunc(lets, func(a, b *runState) int { return cmp.Compare(a.most(), b.most()) })
	for i, rs := range lets {
		// Who lets in reads the job behind the gate, and so sees a pause that stood before that was last written.
		if rs.run.Waits() && !rs.run.IgnorePause && held.Def.Paused && held.since < looked {
			j.violate("P8", "run %s of %s was let in from the line, and its job is paused since generation %d", rs.id(), tenant, held.Generation)
		}
		if n := len(standing) - (len(lets) - 1 - i); n > rs.most() {
			j.violate("G1", "run %s of %s was let in as one of %d, and its job allows %d at once", rs.id(), tenant, n, rs.most())
		}
	}
}

// most is allowed, as a number that none comes up to where any is.
func (rs *runState) most() int {
	if limit := rs.allowed(); limit > 0 {
		return limit
	}
	return math.MaxInt
}

// allowed is how many runs may be in progress where this one is let in, 0 for any number: as its own definition says where it enters by itself, and as any one since then says where
// it waited, since the job as it stands is read when it is let in.
func (rs *runState) allowed() int {
	most := rs.limit()
	if !rs.run.Waits() {
		return most
	}
	for _, e := range rs.job.editions {
		switch {
		case e.Generation < rs.run.Generation || e.deleted:
		case e.Def.Overlap.Limit == 0:
			return 0
		default:
			most = max(most, e.Def.Overlap.Limit)
		}
	}
	return most
}

// limit is how many runs may be in progress where this one is let in; 0 for any number.
func (rs *runState) limit() int {
	return rs.overlap().Limit
}

// bounds tells whether a generation says how many runs may be in progress at once.
func (js *jobState) bounds(generation int64) bool {
	e := js.byGeneration[generation]
	return e != nil && !e.Def.Overlap.IsZero()
}

// letIn: what starts has an entry that was written behind its claim (G1).
func (j *Judge) letIn(rs *runState) {
	if limit := rs.limit(); limit > 0 && !rs.inProgress() {
		j.violate("G1", "run %s of %s started, its job allows %d at once, and it was not let in", rs.id(), rs.job.tenant, limit)
	} else if limit > 0 && rs.places[len(rs.places)-1].key != rs.run.GateKey {
		j.violate("G1", "run %s of %s started as let in at the key %q, and was let in at %q", rs.id(), rs.job.tenant, rs.run.GateKey, rs.places[len(rs.places)-1].key)
	}
}

// atItsKey: a run enters, and waits at, the gate of the value that its key has by the definition of its generation (G1).
func (j *Judge) atItsKey(rs *runState, key string) {
	e := rs.job.byGeneration[rs.run.Generation]
	if e == nil || rs.run.Waits() && rs.run.GateKey == key {
		return // it goes on from where it waited
	}
	if rs.still.kept != 0 && rs.still.kept == rs.run.Opening {
		return // it goes on from where it has kept its place, which an edit of the key leaves where it is
	}
	if want, known := keyOf(e, &rs.run, e.Def.Overlap.Key); known && want != key {
		j.violate("G1", "run %s of %s is at the key %q of its job, and its own is %q", rs.id(), rs.job.tenant, key, want)
	}
}

// keyless: what fails since its key cannot be told has none by its definition (G4).
func (j *Judge) keyless(rs *runState) {
	text := ""
	if e := rs.job.byGeneration[rs.run.Generation]; e != nil {
		var n int
		if got, err := fmt.Sscanf(rs.run.Reason, "expression: gates[%d].key: ", &n); got == 1 && err == nil && n < len(e.Def.Gates) {
			text = e.Def.Gates[n].Key
		} else {
			text = rs.overlap().Key
		}
	}
	if text == "" {
		j.violate("G4", "run %s of %s has failed for its key, and its job has none", rs.id(), rs.job.tenant)
	} else if key, known := keyOf(rs.job.byGeneration[rs.run.Generation], &rs.run, text); known && key != "" {
		j.violate("G4", "run %s of %s has failed for its key, which is %q", rs.id(), rs.job.tenant, key)
	}
}

// keyOf is the key of a run by a text of its definition that names a field of the payload, a label, or characters of the nominal time, and false where that is not known here: of any other text, and of
// a payload that is kept apart. A value that a key cannot have gives none.
func keyOf(e *edition, r *run.Run, text string) (key string, known bool) {
	if text == "" {
		return "", true
	}
	if label, ok := strings.CutPrefix(text, "${ .labels."); ok {
		value, ok := e.Def.Labels[strings.TrimSuffix(label, " }")]
		if !ok {
			return "", true
		}
		return gate.KeyOf(value), true
	}
	var from, to int
	if n, err := fmt.Sscanf(text, "${ .nominal_time[%d:%d] }", &from, &to); n == 2 && err == nil {
		return gate.KeyOf(r.ID.Time().UTC().Format("2006-01-02T15:04:05.000Z")[from:to]), true
	}
	field, ok := strings.CutPrefix(text, "${ .payload.")
	if !ok || r.Payload.Blob != "" {
		return "", false
	}
	data := r.Payload.Inline
	if len(data) == 0 {
		data = e.Def.Payload
	}
	var fields map[string]any
	if json.Unmarshal(data, &fields) != nil {
		return "", true
	}
	switch v := fields[strings.TrimSuffix(field, " }")].(type) {
	case string:
		return gate.KeyOf(v), true
	case float64, bool:
		return gate.KeyOf(fmt.Sprint(v)), true
	}
	return "", true
}

// overlapped: who is skipped for overlap names gate, policy and who was in the way, and they all were, at one instant between the time from
// which its worker may have looked and the write (G4). size is that of its record.
func (j *Judge) overlapped(at time.Time, rs *runState, b *run.Run, size int) {
	a := &rs.run
	switch {
	case a.Why.Code == run.WhyExpired:
		j.expired(at, rs, b)
		return
	case a.Why.Code == run.WhyMaxWait:
		j.outwaited(at, rs, b)
		return
	case a.Why.Policy == string(job.OverlapQueueLatest), displaces(a):
		j.replacedInLine(at, rs, b)
		return
	case isNamedGate(a.Why.Gate):
		j.namedFull(at, rs, b)
		return
	}
	code, says := run.WhyOverlap, rs.overlap()
	if says.Policy == job.OverlapQueue || says.Policy == job.OverlapAllow || says.Policy == job.OverlapStrict {
		code = run.WhyFull
	}
	if says.Limit == 0 || a.Why.Code != code || a.Why.Gate != gate.Name(a.ID.Job) || a.Why.Policy != string(says.Policy) {
		j.violate("G4", "run %s of %s of generation %d is skipped for %s by %q at %q, which its job does not say", a.ID, a.Tenant, a.Generation, a.Why.Code, a.Why.Policy, a.Why.Gate)
		return
	}
	if rs.byHand {
		j.violate("G4", "run %s of %s was opened by hand, and is skipped", a.ID, a.Tenant)
	}
	from := max(rs.due(b), rs.written) - j.cfg.Clocks.Milliseconds()
	waiting := rs.job.waiting(a.GateKey, from, ms(at))
	if most, bounded := says.Waiting(); !bounded || waiting < most {
		j.violate("G4", "run %s of %s is skipped, %d wait, and its job lets %d wait", a.ID, a.Tenant, waiting, most)
	}
	if want := min(says.Limit, run.MaxInTheWay); (len(a.Why.InTheWay) < want && waiting == 0 || len(a.Why.InTheWay) == 0) && size < roomy {
		j.violate("G4", "run %s of %s is skipped and names %q, fewer than the %d that its job allows at once", a.ID, a.Tenant, a.Why.InTheWay, want)
	}
	var others []*runState
	for _, id := range a.Why.InTheWay {
		other := j.named(a.Tenant, id)
		if other == nil || other.job != rs.job || other == rs {
			j.violate("G4", "run %s of %s is skipped, and run %s in its way is no other run of its job", a.ID, a.Tenant, id)
			return
		}
		others = append(others, other)
	}
	if !together(others, a.GateKey, from, ms(at)) {
		j.violate("G4", "run %s of %s is skipped for %q, and they were not in progress at one time from %s to %s", a.ID, a.Tenant, a.Why.InTheWay, instant(from), instant(ms(at)))
	}
}

// takesOver names the policies under which a later run takes the place of one that waits.
func takesOver(p job.OverlapPolicy) bool { return p == job.OverlapQueueLatest || p.Displaces() }

// later gives the runs that a run has given way to, where each came later, by the order of the line, and the job of one of them says so; nil where that is not so (G4).
func (j *Judge) later(rs *runState, b *run.Run, what string) (others []*runState) {
	a := &rs.run
	says := func(rs *runState) bool { return string(j.policy(rs)) == a.Why.Policy }
	if a.Why.Code != run.WhyOverlap || a.Why.Gate != gate.Name(a.ID.Job) {
		j.violate("G4", "run %s of %s is %s for %s by %s at %q", a.ID, a.Tenant, what, a.Why.Code, a.Why.Policy, a.Why.Gate)
		return nil
	}
	said := says(rs)
	for _, id := range a.Why.InTheWay {
		if other := j.named(a.Tenant, id); other != nil && other.job == rs.job && other != rs {
			others, said = append(others, other), said || says(other)
		}
	}
	most := 1
	if displaces(a) && a.State == run.Skipped {
		most = run.MaxInTheWay // as many as are in progress, and later
	}
	switch {
	case len(others) == 0 || len(others) != len(a.Why.InTheWay) || len(others) > most:
		j.violate("G4", "run %s of %s is %s by %s for %q, want one other run of its job", a.ID, a.Tenant, what, a.Why.Policy, a.Why.InTheWay)
		return nil
	case !said:
		j.violate("G4", "run %s of %s is %s by %s for %s, and the job of neither says so", a.ID, a.Tenant, what, a.Why.Policy, others[0].id())
		return nil
	case rs.byHand:
		j.violate("G4", "run %s of %s was opened by hand, and is %s", a.ID, a.Tenant, what)
		return nil
	}
	for _, other := range others {
		if displaces(a) && other.run.Attempt > 0 { // what it was ranked by when it came is not in its record any more
			continue
		}
		mine := j.place(rs, b)
		if displaces(a) && a.State != run.Skipped { // what it was let in by, as far as another policy may have been in force
			mine.Rank = max(b.ID.Nominal, b.Created)
		}
		if j.place(other, &other.run).Compare(mine) < 0 {
			j.violate("G4", "run %s of %s is %s for run %s, which is earlier", a.ID, a.Tenant, what, other.id())
			return nil
		}
	}
	return others
}

// replacedInLine: who is skipped by a policy under which the latest wins has given way to one that came later, and that waited or was in progress at some time between (G4).
func (j *Judge) replacedInLine(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	others := j.later(rs, b, "skipped")
	switch {
	case others == nil:
	case b.Waits() && j.policy(others[0]) == job.OverlapReplace: // it enters by the same write
		rs.job.ousted = append(rs.job.ousted, ousting{rs, others[0], a.GateKey})
	case !together(others, a.GateKey, max(rs.due(b), rs.written)-j.cfg.Clocks.Milliseconds(), ms(at)):
		j.violate("G4", "run %s of %s is skipped for run %s, which did not wait then", a.ID, a.Tenant, others[0].id())
	}
}

// ousting is a run that has ended for another one, which enters their gate by the same write.
type ousting struct {
	run, by *runState
	key     string
}

// gaveWay: who is ended for a later run, or asked to stop, held a place at that time, and the later one waits, or enters by the same write (G4).
func (j *Judge) gaveWay(at time.Time, rs *runState, b *run.Run) {
	a := &rs.run
	others := j.later(rs, b, "to give way")
	switch {
	case others == nil:
	case !rs.inProgress():
		j.violate("G4", "run %s of %s gives way to run %s, and holds no place", a.ID, a.Tenant, others[0].id())
	case a.GaveWay() && !others[0].run.Waits():
		rs.job.ousted = append(rs.job.ousted, ousting{rs, others[0], a.GateKey})
	case !together(others, rs.places[len(rs.places)-1].key, rs.places[len(rs.places)-1].since, ms(at)):
		j.violate("G4", "run %s of %s is asked to stop for run %s, which did not wait then", a.ID, a.Tenant, others[0].id())
	}
}

// enteredFor: those for whom others were ended have entered (G4).
func (j *Judge) enteredFor(js *jobState, key string) {
	js.ousted = slices.DeleteFunc(js.ousted, func(o ousting) bool {
		if o.key == key && !o.by.inProgress() && !o.by.run.Waits() && o.run.run.GaveWay() {
			j.violate("G4", "run %s of %s was ended for run %s, which did not enter by the same write", o.run.id(), js.tenant, o.by.id())
		}
		return o.key == key
	})
}

// expired: who is skipped since it is too late was to start by a time that is over (G4).
func (j *Judge) expired(at time.Time, rs *runState, b *run.Run) {
	switch a := &rs.run; {
	case b.StartBy == 0:
		j.violate("G4", "run %s of %s is skipped as too late, and has no time to start by", a.ID, a.Tenant)
	case ms(at)+j.cfg.Clocks.Milliseconds() <= b.StartBy:
		j.violate("G4", "run %s of %s is skipped as too late at %s, and was to start by %s", a.ID, a.Tenant, instant(ms(at)), instant(b.StartBy))
	}
}

// overdue: who is stopped by its deadline was to have ended by a time that is over (G4).
func (j *Judge) overdue(at time.Time, rs *runState, b *run.Run) {
	switch a := &rs.run; {
	case b.EndBy == 0:
		j.violate("G4", "run %s of %s is stopped by its deadline, and has none", a.ID, a.Tenant)
	case ms(at)+j.cfg.Clocks.Milliseconds() < b.EndBy:
		j.violate("G4", "run %s of %s is stopped by its deadline at %s, and was to end by %s", a.ID, a.Tenant, instant(ms(at)), instant(b.EndBy))
	}
}

// bounded: whoever is queued for the first time has as long to start as its definition gives it, from when it is due (G4).
func (j *Judge) bounded(rs *runState) {
	a := &rs.run
	e := rs.job.byGeneration[a.Generation]
	if e == nil || a.State != run.Queued || a.Spared() {
		return
	}
	due := a.ID.Nominal
	if !a.ID.OnDemand() {
		due = e.Due(a.Tenant, a.ID.Job, a.ID.Nominal)
	}
	by := func(after time.Duration) int64 {
		if after == 0 {
			return 0
		}
		return due + after.Milliseconds()
	}
	if by := by(e.Def.ExpiresAfter.Std()); a.StartBy != by {
		j.violate("G4", "run %s of %s is to start by %s, and its job says %s", a.ID, a.Tenant, instant(a.StartBy), instant(by))
	}
	if by := by(e.Def.Deadline.Std()); a.EndBy != by {
		j.violate("G4", "run %s of %s is to have ended by %s, and its job says %s", a.ID, a.Tenant, instant(a.EndBy), instant(by))
	}
}

// policy is by what a run goes, its own or what its job says of overlap, "" for nothing.
func (j *Judge) policy(rs *runState) job.OverlapPolicy { return rs.overlap().Policy }

// place is where a run stands in line, or would, where it stands as b.
func (j *Judge) place(rs *runState, b *run.Run) gate.Place {
	switch {
	case b.Waits():
		return gate.PlaceOf(*b)
	case b.Attempt > 0: // when it is tried again is no place in line
		return gate.Place{Rank: max(b.ID.Nominal, b.Created, b.Wait.Rank), Run: b.ID}
	}
	return gate.Place{Rank: max(rs.due(b), b.Created, b.Wait.Rank), Run: b.ID}
}

// oneWaits: where a later run takes the place of one that waits, one waits at most at a key, of those that may be skipped (G4).
func (j *Judge) oneWaits(js *jobState, key string) {
	var first *runState
	for _, rs := range js.runs {
		if !waitsAtOwn(&rs.run) || rs.run.GateKey != key || rs.run.Spared() || rs.run.IgnorePause || rs.run.Released != 0 || !takesOver(j.policy(rs)) || !j.placeStands(rs) {
			continue
		}
		if first != nil {
			j.violate("G4", "runs %s and %s of %s both wait, and their job has the latest wait alone", first.id(), rs.id(), js.tenant)
			return
		}
		first = rs
	}
}

// stays are the times in which a run was in progress, or waited, at a key.
func (rs *runState) stays(key string) []place {
	all := slices.Concat(rs.places, rs.waits, rs.held, rs.namedAt(key))
	return slices.DeleteFunc(all, func(p place) bool { return p.key != key })
}

// waiting is how many runs of a job waited at a key at some time from one instant to another.
func (js *jobState) waiting(key string, from, to int64) (n int) {
	for _, rs := range js.runs {
		if slices.ContainsFunc(rs.waits, func(p place) bool { return p.key == key && p.since <= to && p.until >= from }) {
			n++
		}
	}
	return n
}

// roomy is the size of a record that has room to name another run, in bytes.
const roomy = 700

// due is when the next attempt of a run may start, Unix ms. b is the run as it waits. A step has no share of the jitter: its run has waited for that, and
// by a clock that was set back since, a step waits for the fire alone.
func (rs *runState) due(b *run.Run) int64 {
	due := max(b.ID.Nominal, b.NextAt)
	if e := rs.job.byGeneration[b.Generation]; e != nil && !b.ID.OnDemand() && !b.ID.IsStep() {
		due = max(due, e.Due(b.Tenant, b.ID.Job, b.ID.Nominal))
	}
	return due
}

// together tells whether runs were in progress, or waited, at a key all at one instant from one time to another.
func together(runs []*runState, key string, from, to int64) bool {
	instants := []int64{from}
	for _, rs := range runs {
		for _, p := range rs.stays(key) {
			instants = append(instants, p.since)
		}
	}
	return slices.ContainsFunc(instants, func(t int64) bool {
		return from <= t && t <= to && !slices.ContainsFunc(runs, func(rs *runState) bool {
			return !slices.ContainsFunc(rs.stays(key), func(p place) bool { return p.since <= t && t <= p.until })
		})
	})
}
