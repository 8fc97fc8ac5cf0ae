package oracle

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Look goes over all that is stored, in any order.
func (j *Judge) Look(at time.Time, items iter.Seq[store.Item]) {
	j.event++
	j.stands(at, items)
	j.woken()
	j.waitsOn(at)
	j.letters(at)
}

// stands: the store holds what it was told to, no more and no less, and the index names the runs that the sweeps have passed.
func (j *Judge) stands(at time.Time, items iter.Seq[store.Item]) {
	listed := map[*runState]bool{}
	count := 0
	for item := range items {
		count++
		known := j.version(item.Key)
		if known != item.Version {
			j.violate("P1", "%s stands in version %d, and was last written in %d", item.Key, item.Version, known)
		}
		kind, rest, _ := strings.Cut(item.Partition, "#")
		if kind != "ran" {
			continue
		}
		ids, err := run.IndexFromItem(item)
		if err != nil {
			j.violate("P1", "%v", err)
		}
		tenant, _, _ := strings.Cut(rest, "#")
		for _, id := range ids {
			if rs := j.runs[id.Key(tenant)]; rs != nil {
				listed[rs] = true
			} else if j.another(tenant, id.String()) {
				j.violate("P12", "%s lists run %s, of another tenant", item.Key, id)
			}
		}
	}
	if want := j.count(); count != want {
		j.violate("P1", "%d items stand, and %d were written and not removed", count, want)
	}
	if !j.upToDate(at) {
		return
	}
	for _, js := range j.ordered() {
		s := j.shard(j.shardOf(js))
		for _, rs := range js.runs {
			// A request that is repeated after hours, since its first try had stopped, makes its run then: the timer tells when that was.
			if done := max(rs.run.ID.Nominal, rs.run.Created, rs.lastWake()) + (20 * time.Minute).Milliseconds(); rs.stands() && !listed[rs] && !rs.lateListed() &&
				done < s.shard.Oldest() && done < j.shard(rs.shard).shard.Oldest() {
				j.violate("P1", "run %s of %s is in no index, and all sweeps have passed it", rs.id(), js.tenant)
			}
		}
	}
}

// version is that in which an item was last written; 0 for one that does not stand.
func (j *Judge) version(key store.Key) uint64 {
	kind, rest, _ := strings.Cut(key.Partition, "#")
	switch kind {
	case "run", "step":
		if rs := j.runs[key]; rs != nil {
			return rs.run.Version
		}
	case "due":
		if a := j.timers[key]; a != nil {
			return a.version
		}
	case "job":
		tenant, _, _ := strings.Cut(rest, "#")
		if js := j.jobs[name{tenant, key.Sort}]; js != nil {
			return js.version
		}
	case "idem":
		if k := j.keys[key]; k != nil {
			return k.version
		}
	case "shard":
		for n, s := range j.shards {
			if timer.ShardKey(n) == key {
				return s.shard.Version
			}
		}
	default:
		return j.lasts[key]
	}
	return 0
}

// count is how many items stand.
func (j *Judge) count() int {
	n := len(j.timers) + len(j.lasts)
	for _, s := range j.shards {
		n += standing(s.shard.Version)
	}
	for _, js := range j.jobs {
		n += standing(js.version)
	}
	for _, rs := range j.runs {
		n += standing(rs.run.Version)
	}
	for _, k := range j.keys {
		n += standing(k.version)
	}
	return n
}

func standing(version uint64) int {
	if version != 0 {
		return 1
	}
	return 0
}

// woken: every active job has a timer that a tick or the first sweep will come upon, and so has every run that has not ended (P4).
func (j *Judge) woken() {
	awake := map[*runState]bool{}
	for _, s := range j.shards {
		for _, a := range s.ahead { // a tick that comes upon it sees to all up to the horizon, also what another timer's sweep has claimed there
			j.wakesFires(a, max(a.To, s.shard.Horizon), awake)
		}
		s.belated = slices.DeleteFunc(s.belated, func(a *armed) bool { return a.Wake < s.shard.Oldest() })
		for _, a := range s.belated {
			j.wakesFires(a, a.To, awake)
		}
		for m, timers := range s.minute {
			if (m+1)*60_000 > s.shard.Swept[0] {
				for _, a := range timers {
					j.wakesFires(a, a.To, awake)
				}
			}
		}
	}
	for _, js := range j.ordered() {
		j.hasTimer(js)
		for _, rs := range js.runs {
			if rs.stands() && !rs.run.State.Ended() && !awake[rs] && !rs.late && !j.wakesFrom(rs, swept) {
				j.violate("P4", "run %s of %s is %s, and nothing will wake it", rs.id(), js.tenant, rs.run.State)
			}
		}
	}
}

// wakesFires notes the runs of the fires that whoever comes upon a timer sees to: those that it stands for, and its generation's up to upTo.
func (j *Judge) wakesFires(a *armed, upTo int64, awake map[*runState]bool) {
	if a.Kind != timer.Fire {
		return
	}
	js := j.job(a.Tenant, a.Job)
	e := js.byGeneration[a.Generation]
	for fire, ok := a.Nominal, e != nil; ok && fire <= upTo; fire, ok = next(e.Schedule, fire) {
		rs := j.runs[run.FireID(a.Job, fire).Key(a.Tenant)]
		if rs == nil || fire > a.To && rs.run.Generation != a.Generation {
			continue
		}
		awake[rs] = true
		if rs.run.State == run.Skipped && rs.run.Generation == a.Generation {
			fire = max(fire, rs.run.Through)
		}
	}
}

func (j *Judge) hasTimer(js *jobState) {
	e := js.newest()
	if e == nil || js.version == 0 || !e.active() || e.late {
		return
	}
	s := j.shard(j.shardOf(js))
	if fire, ok := next(e.Schedule, max(s.shard.Horizon, e.from)); ok && e.wake < s.shard.Swept[0] {
		j.violate("P4", "job %s of %s is active, and its fire at %s has no timer", js.name, js.tenant, instant(fire))
	}
	for _, old := range js.editions {
		if key := job.PastKey(js.tenant, js.name, old.Generation); old.end != 0 && j.lasts[key] == 0 && !old.deleted {
			j.violate("P2", "the definition of generation %d of %s of %s is gone", old.Generation, js.name, js.tenant)
		}
	}
}

// letters: a run is listed as a dead letter while it has failed or is dead, and not else.
func (j *Judge) letters(at time.Time) {
	listed := map[*runState]bool{}
	for key, rs := range j.dead {
		switch {
		case rs.run.State.DeadLetter() && rs.run.DeadKey() == key:
			listed[rs] = true
			if j.marked[key] == rs.run.Discarded.IsZero() {
				j.violate("P7", "run %s of %s is discarded: %t, and listed as discarded: %t", rs.id(), rs.job.tenant, !rs.run.Discarded.IsZero(), j.marked[key])
			}
		case rs.run.Version == 0 && rs.left != nil && ms(at) >= rs.left.Expires-j.cfg.Clocks.Milliseconds(): // both expire
		default:
			j.violate("P7", "run %s of %s is %s, and listed at %s", rs.id(), rs.job.tenant, stateName(rs.run.State), key)
		}
	}
	for _, js := range j.ordered() {
		for _, rs := range js.runs {
			if rs.run.State.DeadLetter() && !listed[rs] && ms(at) < rs.run.Expires-j.cfg.Clocks.Milliseconds() {
				j.violate("P7", "run %s of %s is %s, and not listed as a dead letter", rs.id(), js.tenant, rs.run.State)
			}
		}
	}
}

// End is the last look, after the calm: faults are over, and nothing was asked for since upTo. What was due up to then has ended.
func (j *Judge) End(at, upTo time.Time, items iter.Seq[store.Item]) {
	j.Look(at, items)
	for _, js := range j.ordered() {
		j.matched(js, ms(upTo))
		j.unpaused(js, ms(upTo))
		for _, rs := range js.runs {
			held := rs.run.ID.OnDemand() && js.newest() != nil && js.newest().Def.Paused && !rs.run.IgnorePause
			if rs.stands() && !rs.run.State.Ended() && max(rs.run.ID.Nominal, rs.place()) <= ms(upTo) && !held {
				j.violate("P4", "run %s of %s is still %s at %s%s", rs.id(), js.tenant, rs.run.State, instant(ms(at)), rs.open())
			}
		}
	}
	j.uncalled(ms(upTo))
	for key, t := range j.keyed {
		if rs := j.named(key.tenant, t.run); t.at != 0 && (rs == nil || !rs.stands() && rs.left == nil) {
			j.violate("P1", "run %s of %s was accepted, and is not there", t.run, key.tenant)
		}
	}
}

// Owed is what End would find by itself, without keeping it: for who can wait for longer.
func (j *Judge) Owed(at, upTo time.Time, items iter.Seq[store.Item]) []string {
	before := j.found
	j.found = nil
	j.End(at, upTo, items)
	owed := j.found
	j.found = before
	return owed
}

// matched: each fire in force has its run, or a record of why not, and nothing else ran.
func (j *Judge) matched(js *jobState, upTo int64) {
	var reigns []Reign
	for _, e := range js.editions {
		if e.active() {
			// What of it started beyond its end did so before the answer: that was judged when it started.
			reigns = append(reigns, Reign{Generation: e.Generation, Fires: e.Schedule, From: e.from, Until: e.until, Answered: forever})
		}
	}
	var fates []Fate
	for _, rs := range js.runs {
		r := &rs.run
		if rs.left != nil {
			r = rs.left
		}
		if len(rs.past) == 0 || r.ID.OnDemand() || r.State == run.Fenced {
			continue
		}
		fates = append(fates, Fate{Run: r.ID.String(), Nominal: r.ID.Nominal, Generation: rs.fired,
			Withdrawn: r.State == run.Cancelled && r.Attempt == 0 && r.Reason == dispatch.Deleted, Skipped: r.Missed(),
			Through: r.Through, Count: r.Count, Reason: r.Reason, Began: r.Ended - j.cfg.Clocks.Milliseconds(), Written: rs.written})
	}
	for _, wrong := range Match(js.name+" of "+js.tenant, reigns, fates, upTo) {
		if len(j.found) < j.cfg.Most {
			j.found = append(j.found, wrong)
		}
	}
}
