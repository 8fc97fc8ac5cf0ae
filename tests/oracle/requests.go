package oracle

import (
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// asking is a request that was sent.
type asking struct {
	Request
	n     int
	since int // the event before which it was sent

	refused bool // for good: nothing was done
}

// told is what was asked and answered under an idempotency key.
type told struct {
	bodies []string
	jobs   []string
	calls  []asksFor
	run    string // that an answer named
	body   string // of the request that it answered
	at     int64  // when
}

// asksFor is whom a request for a run of a job names.
type asksFor struct {
	job   string
	calls run.Callees
}

// keyState is an idempotency key as it stands in the store.
type keyState struct {
	version uint64
	run     run.ID
}

// kept is for how long one key gives one run.
const kept = 24 * time.Hour

// Asked is told what a client asks for, before it is sent, and gives the number that Answered wants.
func (j *Judge) Asked(r Request) int {
	j.event++
	j.asks++
	a := &asking{Request: r, n: j.asks, since: j.event}
	j.asked[a.n] = a
	switch r.Op {
	case Trigger:
		j.asksForRun(a)
	case Cancel:
		if rs := j.named(r.Tenant, r.Run); rs != nil {
			rs.cancels++
		}
	case Retry:
		if rs := j.named(r.Tenant, r.Run); rs != nil {
			rs.consents = append(rs.consents, a)
		}
	case Discard:
		j.discards[r.Tenant] = append(j.discards[r.Tenant], a)
	case Redrive:
		for _, id := range r.Runs {
			if rs := j.named(r.Tenant, id); rs != nil {
				rs.consents = append(rs.consents, a)
			}
		}
		if len(r.Runs) == 0 {
			j.redrives[r.Tenant] = append(j.redrives[r.Tenant], a)
		}
	}
	return a.n
}

func (j *Judge) asksForRun(a *asking) {
	js := j.job(a.Tenant, a.Job)
	one := func() {
		js.asked++
		if a.Ignore {
			js.mayIgnore++
		}
		js.asksWith(a.Own)
	}
	if a.Key == "" {
		one()
		js.askedCalls[a.Calls]++
		return
	}
	key := name{a.Tenant, a.Key}
	t := j.keyed[key]
	if t == nil {
		t = &told{}
		j.keyed[key] = t
	}
	if !slices.Contains(t.bodies, a.Body) {
		t.bodies = append(t.bodies, a.Body)
	}
	if t.at != 0 && ms(a.At) > t.at+kept.Milliseconds()/2 || !slices.Contains(t.jobs, a.Job) { // by then it may be bound anew
		t.jobs = append(t.jobs, a.Job)
		one()
		t.calls = nil
	} else { // another request under the key, which may come to it first
		if a.Ignore {
			js.mayIgnore++
		}
		js.asksWith(a.Own)
	}
	if who := (asksFor{a.Job, a.Calls}); !slices.Contains(t.calls, who) { // another request under a key may have the run, where the first was refused
		t.calls = append(t.calls, who)
		js.askedCalls[a.Calls]++
	}
}

// named finds a run by its ID, nil where it never was.
func (j *Judge) named(tenant, text string) *runState {
	id, err := run.ParseID(text)
	if err != nil {
		return nil
	}
	return j.runs[id.Key(tenant)]
}

// requested: each run on demand was asked for.
func (j *Judge) requested(rs *runState) {
	if rs.run.Callback != (run.Callback{}) {
		j.told(rs)
		return
	}
	rs.job.requested++
	j.brings(rs)
	if rs.run.IgnorePause {
		if rs.job.ignoring++; rs.job.ignoring > rs.job.mayIgnore {
			j.violate("P8", "run %s of %s ignores the pause of its job, and is number %d of %d for which that was asked", rs.id(), rs.job.tenant, rs.job.ignoring, rs.job.mayIgnore)
		}
	}
	if rs.job.requested > rs.job.asked {
		j.violate("P9", "run %s of %s is number %d on demand, and %d were asked for", rs.id(), rs.job.tenant, rs.job.requested, rs.job.asked)
	}
	calls := rs.run.Callees
	if rs.job.askedCalls[calls]--; rs.job.askedCalls[calls] < 0 {
		j.violate("C2", "run %s of %s is to call %+v, and no such request was left", rs.id(), rs.job.tenant, calls)
	}
}

// mayCancel tells whether a run may be cancelled that has not started: on request, or because its job was deleted.
func (j *Judge) mayCancel(rs *runState) bool {
	if rs.cancels > 0 {
		return true
	}
	if !rs.run.ID.OnDemand() {
		return slices.ContainsFunc(rs.job.editions, func(e *edition) bool { return e.deleted && e.Generation > rs.run.Generation })
	}
	// One that says from the first which generation it is of was asked of that one, though it was put when the next job stood.
	born, said := rs.past[0].since, rs.past[0].generation
	if rs.run.Callback != (run.Callback{}) && rs.job.absent(born, j.event) { // also of one that was never made: that part of its batch had failed
		return true
	}
	return slices.ContainsFunc(rs.job.editions, func(e *edition) bool {
		return e.deleted && (e.end == 0 || e.end > born || said > 0 && said < e.Generation && rs.run.Created < e.until+j.cfg.Clocks.Milliseconds())
	})
}

// consent gives the number of a request that an ended run may be opened by, and that it was not opened by before; 0 for none.
func (j *Judge) consent(rs *runState, b *run.Run) int {
	needsForce := b.State == run.Succeeded || b.State == run.Unknown
	may := func(a *asking) bool {
		return !a.refused && (a.Force || !needsForce) && !slices.Contains(rs.used, a.n)
	}
	for _, a := range rs.consents {
		if may(a) {
			return a.n
		}
	}
	for _, a := range j.redrives[rs.job.tenant] {
		if may(a) && (a.Job == "" || a.Job == rs.run.ID.Job) && b.State.DeadLetter() && b.Discarded.IsZero() {
			return a.n
		}
	}
	return 0
}

// mayDiscard tells whether somebody asked for it.
func (j *Judge) mayDiscard(rs *runState) bool {
	return slices.ContainsFunc(j.discards[rs.job.tenant], func(a *asking) bool {
		return slices.Contains(a.Runs, rs.id()) || len(a.Runs) == 0 && (a.Job == "" || a.Job == rs.run.ID.Job)
	})
}

// withdraw takes back the consent of a request that was refused: what was opened again was so by another.
func (j *Judge) withdraw(rs *runState, a *asking) {
	a.refused = true
	i := slices.Index(rs.used, a.n)
	if i < 0 {
		return
	}
	b := run.Run{State: run.Failed} // whatever it was, another's consent held for it too
	if a.Force {
		b.State = run.Unknown
	}
	if n := j.consent(rs, &b); n != 0 {
		rs.used[i] = n
		return
	}
	j.violate("P7", "run %s of %s was opened again, and the request for it was refused", rs.id(), rs.job.tenant)
}

func (j *Judge) storedKey(at time.Time, key store.Key, rest string, before, after store.Item) {
	k := j.keys[key]
	if k == nil {
		k = &keyState{}
		j.keys[key] = k
	}
	j.follow(key, k.version, before)
	b := *k
	*k = keyState{version: after.Version}
	tenant, _, _ := strings.Cut(rest, "#")
	young := ms(at) < max(b.run.Nominal, 0)+kept.Milliseconds()-j.cfg.Clocks.Milliseconds()
	if !after.Exists() {
		if b.run.Job != "" && young {
			j.violate("P9", "key %s is gone, and its run %s is young", key, b.run)
		}
		return
	}
	var bound struct {
		Run string `cbor:"1,keyasint"`
	}
	err := record.Decode(after.Value, &bound)
	if err == nil {
		k.run, err = run.ParseID(bound.Run)
	}
	if err != nil {
		j.violate("P9", "key %s: %v", key, err)
		return
	}
	if js := j.jobs[name{tenant, k.run.Job}]; js == nil || len(js.editions) == 0 {
		j.violate("P12", "key %s is bound to run %s, of no job of that tenant", key, k.run)
	}
	if before.Exists() && k.run != b.run {
		if rs := j.runs[b.run.Key(tenant)]; young || rs != nil && rs.run.Version != 0 {
			j.violate("P9", "key %s was bound to run %s, and is to %s", key, b.run, k.run)
		}
	}
}

// storedLetter keeps what is listed as a dead letter.
func (j *Judge) storedLetter(rest string, before, after store.Item) {
	item := after
	if !after.Exists() {
		item = before
	}
	tenant, _, _ := strings.Cut(rest, "#")
	j.follow(item.Key, j.lasts[item.Key], before)
	if !after.Exists() {
		delete(j.lasts, item.Key)
		delete(j.dead, item.Key)
		delete(j.marked, item.Key)
		return
	}
	j.lasts[item.Key] = after.Version
	letter, err := run.DeadLetterFromItem(item)
	if err != nil {
		j.violate("P1", "%v", err)
		return
	}
	rs := j.runs[letter.Run.Key(tenant)]
	if rs == nil {
		j.violate("P12", "dead letter %s is of no run of that tenant", item.Key)
		return
	}
	if rs.head != nil {
		j.violate("W4", "step %s of %s is listed as a dead letter, beside its run", rs.id(), tenant)
	}
	j.dead[item.Key] = rs
	j.marked[item.Key] = letter.Discarded
}

// asWritten is a definition without what is made out where a job is put.
func asWritten(d job.Definition) job.Definition {
	d = d.WithoutCountedEnd()
	d.Overlap.Since = 0
	return d
}

func sameDefinition(a, b job.Definition) bool {
	left, err1 := record.Encode(a.WithDefaults()) // an answer may leave out what goes without saying, such as the limit of a policy
	right, err2 := record.Encode(b.WithDefaults())
	return err1 == nil && err2 == nil && slices.Equal(left, right)
}
