package oracle

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// shardState is what is known of a shard: how far it was seen to, and the timers that it still has to be seen to.
type shardState struct {
	shard     timer.Shard
	stood     bool
	ahead     pending            // timers that the watermark has not passed
	minute    map[int64][]*armed // those that it has passed, and the first sweep has not, by minute of their wake
	belated   []*armed           // those that later sweeps come upon
	first     int64              // no minute before it holds any
	published []published        // by horizon
	reach     int64              // how far a horizon has been ahead of the true time at the most, ms
}

// published is a horizon that was beyond all before it, and when that was by the clock of its pass, Unix ms.
type published struct{ horizon, at int64 }

// stood is the item of a timer.
type stood struct {
	version uint64
	armed   []*armed // one, or those of a batch
}

// armed is a timer as it was last put, those of a batch as if each had its own.
type armed struct {
	timer.Timer
	shard    int
	overrun  bool // when it was armed, a horizon beyond it stood already: ticks under way may have passed its place
	belated  bool // it was armed long after its wake, by a write that came late: later sweeps come upon it
	gone     bool // another one stands for it since
	position int  // in pending; -1: it is not there
}

// belatedly is from when on a timer's place may have been swept when it is armed. Those that are armed in time are armed by hosts
// that have looked at their clocks some seconds before.
const belatedly = time.Minute

// belated: where the one host's clock is the time, the watermark shows it.
func (j *Judge) belated(at time.Time, s *shardState, wake int64) bool {
	if j.cfg.Clocks >= AnyClock {
		return wake < s.shard.Watermark-belatedly.Milliseconds()
	}
	return wake < ms(at.Add(-belatedly))
}

func (j *Judge) shardOf(js *jobState) int {
	return j.layout.ShardOf(timer.BucketOf(js.tenant, js.name))
}

func (j *Judge) shard(n int) *shardState {
	s := j.shards[n]
	if s == nil {
		s = &shardState{shard: timer.Shard{Number: n}, minute: map[int64][]*armed{}}
		j.shards[n] = s
	}
	return s
}

func (j *Judge) storedTimer(at time.Time, before, after store.Item) {
	if !after.Exists() {
		j.goneTimer(at, before)
		return
	}
	t, err := timer.FromItem(after)
	if err != nil {
		j.violate("P4", "%v", err)
		return
	}
	if t.Key() != after.Key {
		j.violate("P12", "timer %s is kept at %s", t.Key(), after.Key)
	}
	key := after.Key
	s := j.shard(j.layout.ShardOf(t.Bucket()))
	stands := j.timers[key]
	if stands == nil {
		j.follow(key, 0, before)
		stands = &stood{}
		j.timers[key] = stands
		singles := []timer.Timer{t}
		if t.Kind == timer.Batch {
			singles = t.AppendSingles(nil)
		}
		for _, one := range singles {
			j.armedCall(&one)
			one.Create = nil // it need not be remembered
			a := &armed{Timer: one, shard: s.shard.Number, overrun: s.stood && t.Wake <= s.shard.Horizon, belated: j.belated(at, s, t.Wake), position: -1}
			stands.armed = append(stands.armed, a)
			if t.Wake > s.shard.Watermark || !s.stood {
				heap.Push(&s.ahead, a)
			} else {
				s.behind(a)
			}
		}
	} else {
		j.follow(key, stands.version, before)
		switch a := stands.armed[0]; t.Kind {
		case timer.Batch:
			j.violate("P4", "timer %s was written over", key)
		case timer.Fire:
			if t.To < a.To {
				j.violate("P2", "timer %s stood for fires up to %s, and stands for those up to %s", key, instant(a.To), instant(t.To))
			}
			a.Timer = t
		default:
			j.joined(&t, a.Joined)
			a.Timer, a.Create = t, nil
		}
	}
	stands.version = after.Version
	for _, a := range stands.armed {
		j.wakes(at, a)
	}
}

// wakes notes that who has a timer is woken by it.
func (j *Judge) wakes(at time.Time, a *armed) {
	switch a.Kind {
	case timer.Fire:
		js := j.job(a.Tenant, a.Job)
		e := js.byGeneration[a.Generation]
		if e == nil { // the first one of a generation is written with it, and after it
			j.violate("P12", "timer %s is of no generation of a job of that tenant", a.Key())
			return
		}
		if e.wakes == nil {
			e.wakes = map[int64]int64{}
		}
		if a.Owed != 0 {
			e.owed = append(e.owed, owed{a.Nominal, a.Owed, ms(at), a.Wake})
		}
		e.wakes[a.Nominal] = max(e.wakes[a.Nominal], a.Wake)
		e.wake, e.late = max(e.wake, a.Wake), e.late || a.belated
	default:
		key := a.Run.Key(a.Tenant)
		rs := j.runs[key]
		if rs == nil {
			rs = j.newRun(key, a.Tenant, a.Run)
		}
		rs.late = rs.late || a.belated
		if a.shard == rs.shard {
			rs.wake = max(rs.wake, a.Wake)
		} else {
			rs.batch = a
		}
	}
}

// wakesFrom tells whether a timer of the run's lies at what its shard has come to, or ahead of it.
func (j *Judge) wakesFrom(rs *runState, come func(timer.Shard) int64) bool {
	return rs.wake >= come(j.shard(rs.shard).shard) || rs.batch != nil && rs.batch.Wake >= come(j.shard(rs.batch.shard).shard)
}

func swept(s timer.Shard) int64   { return s.Swept[0] }
func handled(s timer.Shard) int64 { return s.Watermark + 1 }

// goneTimer: a timer may be cleaned up when every sweep has passed it.
func (j *Judge) goneTimer(at time.Time, before store.Item) {
	stands := j.timers[before.Key]
	if stands == nil {
		j.follow(before.Key, 0, before)
		return
	}
	s := j.shard(stands.armed[0].shard)
	if j.taken(before) {
		stands.armed[0].gone = true
	} else if s.stood && stands.armed[0].Wake >= s.shard.Oldest() {
		j.violate("P4", "timer %s is gone, and the sweeps have come to %s", before.Key, instant(s.shard.Oldest()))
	}
	for _, a := range stands.armed {
		if a.position >= 0 {
			heap.Remove(&s.ahead, a.position)
		}
	}
	delete(j.timers, before.Key)
}

func (j *Judge) storedShard(at time.Time, before, after store.Item) {
	var n int
	if _, err := fmt.Sscanf(after.Partition, "shard#%d", &n); err != nil || !after.Exists() {
		j.violate("P4", "shard %s is gone", before.Key)
		return
	}
	s := j.shard(n)
	b := s.shard
	j.follow(after.Key, b.Version, before)
	a, err := timer.ShardFromItem(n, after)
	if err != nil {
		s.shard.Version = after.Version
		j.violate("P4", "%v", err)
		return
	}
	s.shard = a
	if n := len(s.published); n == 0 || a.Horizon > s.published[n-1].horizon {
		s.published = append(s.published, published{a.Horizon, a.Passed})
	}
	s.reach = max(s.reach, a.Horizon-ms(at))
	if !s.stood {
		s.stood = true
		s.first = timer.Minute(a.Watermark)
		j.pass(s)
		return
	}
	switch {
	case a.Horizon < b.Horizon:
		j.violate("P8", "the horizon of shard %d fell from %s to %s", n, instant(b.Horizon), instant(a.Horizon))
	case a.Epoch < b.Epoch:
		j.violate("P8", "the epoch of shard %d fell from %d to %d", n, b.Epoch, a.Epoch)
	case a.Watermark > a.Horizon:
		j.violate("P2", "the watermark of shard %d, %s, is beyond the horizon of %s", n, instant(a.Watermark), instant(a.Horizon))
	case a.Watermark > b.Watermark && a.Watermark > b.Horizon:
		j.violate("P2", "the watermark of shard %d moved to %s, and published before was %s", n, instant(a.Watermark), instant(b.Horizon))
	}
	for k, swept := range a.Swept {
		if swept > a.Watermark && swept != b.Swept[k] {
			j.violate("P2", "sweep %d of shard %d moved to %s, beyond the watermark of %s", k+1, n, instant(swept), instant(a.Watermark))
		}
		if newest := ms(at) + j.cfg.Clocks.Milliseconds() - timer.Lags[k].Milliseconds(); swept > newest && swept != b.Swept[k] {
			j.violate("P2", "sweep %d of shard %d came to %s, nearer than its lag", k+1, n, instant(swept))
		}
		if swept < b.Swept[k] && a.Watermark >= b.Watermark {
			j.violate("P2", "sweep %d of shard %d fell from %s to %s", k+1, n, instant(b.Swept[k]), instant(swept))
		}
	}
	if a.Watermark < b.Watermark {
		// Only a host whose clock is far behind may set it back, so that what is asked for by that clock is come upon.
		if far := 2 * j.cfg.Clocks; far < setBack {
			j.violate("P2", "the watermark of shard %d fell from %s to %s", n, instant(b.Watermark), instant(a.Watermark))
		}
		j.unsweep(s)
		return
	}
	j.pass(s)
	j.sweep(s, b.Swept[0])
}

// unsweep puts timers that the first sweep had passed before it again: it was set back with the watermark, and will come upon them.
func (j *Judge) unsweep(s *shardState) {
	var again []*armed
	for _, stands := range j.timers {
		for _, a := range stands.armed {
			if a.shard != s.shard.Number || a.position >= 0 || a.belated {
				continue
			}
			if m := timer.Minute(a.Wake); m < s.first && (m+1)*60_000 > s.shard.Swept[0] {
				again = append(again, a)
			}
		}
	}
	slices.SortFunc(again, func(a, b *armed) int { return strings.Compare(a.Key().String(), b.Key().String()) })
	for _, a := range again {
		s.behind(a)
	}
}

// setBack is how far a clock must be behind the watermark to set it back.
const setBack = time.Minute

// pass looks at the timers that the watermark has passed: each was handled.
func (j *Judge) pass(s *shardState) {
	for len(s.ahead) > 0 && s.ahead[0].Wake <= s.shard.Watermark {
		a := heap.Pop(&s.ahead).(*armed)
		s.behind(a)
		if !a.overrun {
			j.passed(s, a)
		}
	}
}

func (s *shardState) behind(a *armed) {
	m := timer.Minute(a.Wake)
	s.minute[m] = append(s.minute[m], a)
	s.first = min(s.first, m)
}

// owes tells whether a timer that wakes later owes a fire, with others before it.
func (e *edition) owes(fire, watermark int64) bool {
	return slices.ContainsFunc(e.owed, func(o owed) bool { return o.from <= fire && fire <= o.upTo && o.wake > watermark })
}

func (j *Judge) passed(s *shardState, a *armed) {
	if a.gone {
		return
	}
	if a.Kind != timer.Fire {
		rs := j.runs[a.Run.Key(a.Tenant)]
		switch {
		case rs.head != nil: // whose run is come upon by a check of its own, or by the sweep of what it was made by
		case rs.run.Version == 0 && len(rs.past) == 0 && a.Kind == timer.Request && !a.Direct && !j.forgotten(a.Nominal, s):
			j.violate("P4", "the watermark has passed the request for run %s of %s, and there is no run", a.Run, a.Tenant)
		case rs.stands() && !rs.run.State.Ended() && a.Kind == timer.Check && !j.wakesFrom(rs, handled) && !j.fired(rs):
			j.violate("P4", "the watermark has passed the check of run %s of %s, which is %s and has no other", a.Run, a.Tenant, rs.run.State)
		}
		return
	}
	js := j.job(a.Tenant, a.Job)
	e := js.byGeneration[a.Generation]
	if !js.inForce(e, a.Nominal) {
		return
	}
	if rs := j.runs[run.FireID(a.Job, a.Nominal).Key(a.Tenant)]; (rs == nil || len(rs.past) == 0) && e.wakes[a.Nominal] <= s.shard.Watermark && !e.owes(a.Nominal, s.shard.Watermark) && !j.forgotten(a.Nominal, s) {
		j.violate("P2", "the watermark has passed the fire of %s of %s at %s, and there is neither a run nor another timer of it", a.Job, a.Tenant, instant(a.Nominal))
	}
	if e.end != 0 || e.wake > s.shard.Watermark {
		return
	}
	if next, ok := e.Schedule.Next(time.UnixMilli(max(s.shard.Watermark, a.To))); ok {
		j.violate("P4", "the watermark has passed the fire of %s of %s at %s, and the next at %s has no timer", a.Job, a.Tenant, instant(a.Nominal), instant(next.UnixMilli()))
	}
}

// forgotten tells of a time whether nothing can be told any more of whether a run stood there.
func (j *Judge) forgotten(nominal int64, s *shardState) bool {
	return nominal < s.shard.Watermark-dispatch.Forgotten.Milliseconds()
}

// sweep looks at the minutes that the first sweep has passed: each fire and request in them has its run, and those that have not ended
// have a wake-up ahead.
func (j *Judge) sweep(s *shardState, from int64) {
	if s.shard.Swept[0] <= from {
		return
	}
	for ; (s.first+1)*60_000 <= s.shard.Swept[0]; s.first++ {
		for _, a := range s.minute[s.first] {
			if a.belated {
				s.belated = append(s.belated, a)
			} else {
				j.swept(s, a)
			}
		}
		delete(s.minute, s.first)
	}
}

func (j *Judge) swept(s *shardState, a *armed) {
	if a.gone {
		return
	}
	if a.Kind != timer.Fire {
		rs := j.runs[a.Run.Key(a.Tenant)].awake()
		switch {
		case rs.run.Version == 0 && len(rs.past) == 0 && a.Kind == timer.Request && !j.forgotten(a.Nominal, s):
			j.violate("P4", "the first sweep has passed the request for run %s of %s, and there is no run", a.Run, a.Tenant)
		default:
			j.watched(rs)
		}
		return
	}
	js := j.job(a.Tenant, a.Job)
	e := js.byGeneration[a.Generation]
	if e == nil {
		return
	}
	// What was throttled, and the rest of a long stretch, have timers of their own, which are swept in their turn. After a step of the
	// clock such a timer may wake at its nominal time, so it is known by what it stands for, not by when it wakes.
	rest := dispatch.Forever
	for nominal, wake := range e.wakes {
		switch {
		case wake < s.shard.Swept[0]:
			delete(e.wakes, nominal)
		case nominal >= a.Nominal:
			rest = min(rest, nominal)
		}
	}
	for fire, n := a.Nominal, 0; fire <= a.To && fire < rest && n < 2000 && js.inForce(e, fire); n++ {
		rs := j.runs[run.FireID(a.Job, fire).Key(a.Tenant)]
		switch {
		case rs == nil || len(rs.past) == 0:
			if !j.forgotten(fire, s) && !e.owes(fire, s.shard.Watermark) {
				j.violate("P2", "the first sweep has passed the fire of %s of %s at %s, and there is no run", a.Job, a.Tenant, instant(fire))
			}
		case rs.run.State == run.Fenced, (rs.run.State == run.Queued || rs.run.Missed()) && rs.run.Attempt == 0 && rs.run.Generation < e.Generation:
			j.violate("P8", "the first sweep has passed the fire of %s of %s at %s, of generation %d, and it is %s under %d", a.Job, a.Tenant,
				instant(fire), e.Generation, rs.run.State, rs.run.Generation)
		case rs.run.State == run.Skipped && rs.run.Generation == e.Generation:
			fire = max(fire, rs.run.Through)
		case rs.left != nil && rs.left.State == run.Skipped && rs.left.Generation == e.Generation: // it was kept for as long as it had to be
			fire = max(fire, rs.left.Through)
		default:
			j.watched(rs)
		}
		next, ok := e.Schedule.Next(time.UnixMilli(fire))
		if !ok {
			return
		}
		fire = next.UnixMilli()
	}
}

// watched: a run that has not ended is come upon again, by a check or by a timer that stands for its fire too.
func (j *Judge) watched(rs *runState) {
	if rs.stands() && !rs.run.State.Ended() && !rs.late && !j.wakesFrom(rs, swept) && !j.fired(rs) {
		j.violate("P4", "the first sweep has passed run %s of %s, which is %s, and nothing will wake it", rs.id(), rs.job.tenant, rs.run.State)
	}
}

// fired tells whether a timer that the first sweep has yet to pass stands for a run's fire.
func (j *Judge) fired(rs *runState) bool {
	s := j.shard(j.shardOf(rs.job))
	stands := func(a *armed) bool {
		if a.Kind != timer.Fire || a.Tenant != rs.job.tenant || a.Job != rs.job.name || rs.run.ID.OnDemand() || a.Wake < s.shard.Swept[0] {
			return false
		}
		e, nominal := rs.job.byGeneration[a.Generation], rs.run.ID.Nominal
		if e == nil || nominal < a.Nominal || nominal > a.To {
			return false
		}
		fire, ok := next(e.Schedule, nominal-1)
		return ok && fire == nominal
	}
	if slices.ContainsFunc(s.ahead, stands) {
		return true
	}
	for _, timers := range s.minute {
		if slices.ContainsFunc(timers, stands) {
			return true
		}
	}
	return false
}

// pending is a heap of timers by their wake.
type pending []*armed

func (p pending) Len() int           { return len(p) }
func (p pending) Less(i, k int) bool { return p[i].Wake < p[k].Wake }
func (p pending) Swap(i, k int) {
	p[i], p[k] = p[k], p[i]
	p[i].position, p[k].position = i, k
}
func (p *pending) Push(x any) {
	a := x.(*armed)
	a.position = len(*p)
	*p = append(*p, a)
}
func (p *pending) Pop() any {
	old := *p
	a := old[len(old)-1]
	a.position = -1
	*p = old[:len(old)-1]
	return a
}
