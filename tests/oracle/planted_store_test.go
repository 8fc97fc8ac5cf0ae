package oracle_test

import (
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// shard is the index of the n-th put of the shard.
func (p *plot) shard(n int) (at int) {
	at = first
	for range n {
		at = p.put(at, "shard")
	}
	return at
}

// shardWhere is the index of the first put of the shard that is so, compared with the one before.
func (p *plot) shardWhere(is func(b, a timer.Shard) bool) int {
	p.Helper()
	var b timer.Shard
	return p.index(p.shard(2), func(e event) bool {
		if e.key != timer.ShardKey(0) {
			return false
		}
		a, err := timer.ShardFromItem(0, store.Item{Version: 1, Value: e.value})
		if err != nil {
			p.Fatal(err)
		}
		found := b.Epoch != 0 && is(b, a)
		b = a
		return found
	})
}

func movesOn(b, a timer.Shard) bool { return a.Watermark > b.Watermark }

func swept(k int) func(b, a timer.Shard) bool {
	return func(b, a timer.Shard) bool { return a.Swept[k] > b.Swept[k] }
}

// hide leaves out a run from where it is first put on, and all that follows from it.
func (p *plot) hide(id run.ID) {
	var left life
	for _, e := range p.life {
		r, ok := p.of(e)
		if ok && r.ID == id || e.call != nil && e.call.Run == id.String() || e.ret != nil && e.ret.Run == id.String() ||
			strings.HasPrefix(e.key.Partition, "due#") && strings.Contains(e.key.Sort, id.String()) {
			continue
		}
		left = append(left, e)
	}
	p.life = left
}

var ofTimers = map[string]row{
	"a timer is unreadable":          {func(p *plot) { p.life[p.put(first, "due")].value = broken }, "P4: timer .*unreadable"},
	"a timer lies in a wrong bucket": {func(p *plot) { p.life[p.put(first, "due")].key.Partition = "due#0000000001#01" }, "P12: timer .* is kept at"},
	"a timer stands for less": {func(p *plot) {
		i, t := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire && t.To > t.Nominal })
		t.To = t.Nominal
		p.insert(i+1, p.timerItem(t))
	}, "P2: timer .* stood for fires up to"},
	"what the generation before has dropped is passed": {func(p *plot) {
		before, _ := p.of(p.life[p.run(first, "plain", run.Queued)])
		i := p.index(first, func(e event) bool {
			r, ok := p.of(e)
			return ok && r.ID.Job == "plain" && r.Tenant == tenant && r.State == run.Queued && r.Generation > before.Generation
		})
		r, _ := p.of(p.life[i])
		p.hide(r.ID)
		p.insert(i, p.item(run.Run{ID: r.ID, Tenant: r.Tenant, State: run.Skipped, Generation: before.Generation, Trigger: run.BySchedule,
			Priority: r.Priority, Created: r.Created, Through: r.ID.Nominal + 3_600_000, Count: 900}))
	}, "P8: the first sweep has passed the fire .* and it is skipped under"},
	"a timer of no generation": {func(p *plot) {
		i, t := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire })
		t.Generation++
		p.insert(i+1, p.timerItem(t))
	}, "P12: timer .* is of no generation"},
	"a timer goes too soon": {func(p *plot) {
		i, _ := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire })
		p.insert(i+1, event{key: p.life[i].key, gone: true})
	}, "P4: timer .* is gone, and the sweeps have come to"},
	"a timer changes that never was": {func(p *plot) {
		i, t := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire })
		p.life[i].skipped = t.Version != 0
	}, "P6: due#.* went from version 0 to 2"},
	"nothing is removed":      {func(p *plot) { p.insert(p.shard(3), event{key: store.Key{Partition: "def#x", Sort: "y"}, gone: true}) }, "P6: def#x/y was changed and never was there"},
	"the shard is gone":       {func(p *plot) { p.insert(p.shard(3), event{key: timer.ShardKey(0), gone: true}) }, "P4: shard .* is gone"},
	"the shard is unreadable": {func(p *plot) { p.life[p.shard(3)].value = broken }, "P4: shard 0.*unreadable"},
	"the horizon falls": {func(p *plot) {
		p.spoilShard(p.shard(9), func(s *timer.Shard) { s.Horizon -= 20_000; s.Watermark = 0 })
	}, "P8: the horizon of shard 0 fell"},
	"the epoch falls": {func(p *plot) { p.spoilShard(p.shard(9), func(s *timer.Shard) { s.Epoch = 0 }) }, "P8: the epoch of shard 0 fell"},
	"the watermark passes the horizon": {func(p *plot) {
		p.spoilShard(p.shard(9), func(s *timer.Shard) { s.Watermark = s.Horizon + 1 })
	}, "P2: the watermark of shard 0, .*, is beyond the horizon"},
	"the watermark passes what was published": {func(p *plot) {
		p.spoilShard(p.shardWhere(func(b, a timer.Shard) bool { return a.Horizon > b.Horizon }), func(s *timer.Shard) { s.Watermark = s.Horizon })
	}, "P2: the watermark of shard 0 moved to .*, and published before was"},
	"the watermark falls": {func(p *plot) { p.spoilShard(p.shardWhere(movesOn), func(s *timer.Shard) { s.Watermark -= 60_000 }) }, "P2: the watermark of shard 0 fell"},
	"a sweep passes the watermark": {func(p *plot) {
		p.spoilShard(p.shardWhere(movesOn), func(s *timer.Shard) { s.Swept[1] = s.Watermark + 60_000 })
	}, "P2: sweep 2 of shard 0 moved to .*, beyond the watermark"},
	"a sweep comes too near": {func(p *plot) {
		p.spoilShard(p.shardWhere(swept(2)), func(s *timer.Shard) { s.Swept[2] = s.Swept[0] })
	}, "P2: sweep 3 of shard 0 came to .*, nearer than its lag"},
	"a sweep falls": {func(p *plot) { p.spoilShard(p.shardWhere(swept(0)), func(s *timer.Shard) { s.Swept[0] -= 600_000 }) }, "P2: sweep 1 of shard 0 fell"},
	"the watermark passes a fire without its run": {func(p *plot) {
		r, _ := p.of(p.life[p.run(first, "plain", run.Queued)])
		p.hide(r.ID)
	}, "P2: the watermark has passed the fire of plain of default at .*, and there is neither a run nor another timer of it"},
	"a fire timer without a successor": {func(p *plot) {
		_, t := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire && t.Tenant == tenant })
		var left life
		for _, e := range p.life {
			if !strings.HasPrefix(e.key.Partition, "due#") || !strings.Contains(e.key.Sort, "#f#default#plain#") || e.key == t.Key() {
				left = append(left, e)
			}
		}
		p.life = left
	}, "P4: the watermark has passed the fire of plain of default at .*, and the next at .* has no timer"},
	"the watermark passes a request without its run": {func(p *plot) {
		at := p.shardWhere(movesOn)
		s, _ := timer.ShardFromItem(0, store.Item{Version: 1, Value: p.life[at].value})
		r := run.Run{ID: run.RequestID("asked", s.Horizon+1, 7), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest}
		p.insert(at+1, p.timerItem(timer.NewRequest(r, s.Horizon+1, false)))
	}, "P4: the watermark has passed the request for run asked.*, and there is no run"},
	"the watermark passes a request of a batch without its run": {func(p *plot) {
		at := p.shardWhere(movesOn)
		s, _ := timer.ShardFromItem(0, store.Item{Version: 1, Value: p.life[at].value})
		r := run.Run{ID: run.RequestID("asked", s.Horizon+1, 7), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest}
		other := r
		other.ID = run.RequestID("asked", s.Horizon+1, 8)
		p.insert(at+1, p.timerItem(timer.NewBatch([]*run.Run{&r, &other}, s.Horizon+1, false, 1)), p.item(other))
	}, "P4: the watermark has passed the request for run asked.*0007 of default, and there is no run"},
	"a batch is written over": {func(p *plot) {
		at := p.shardWhere(movesOn)
		s, _ := timer.ShardFromItem(0, store.Item{Version: 1, Value: p.life[at].value})
		r := run.Run{ID: run.RequestID("asked", s.Horizon+1, 7), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest}
		batch := p.timerItem(timer.NewBatch([]*run.Run{&r, &r}, s.Horizon+1, true, 1))
		p.insert(at+1, batch, batch)
	}, "P4: timer .* was written over"},
	"the first sweep passes a request without its run": {func(p *plot) {
		at := p.shardWhere(movesOn)
		s, _ := timer.ShardFromItem(0, store.Item{Version: 1, Value: p.life[at].value})
		r := run.Run{ID: run.RequestID("asked", s.Horizon+1, 7), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest}
		p.insert(at+1, p.timerItem(timer.NewRequest(r, s.Horizon+1, true)))
	}, "P4: the first sweep has passed the request for run asked.*, and there is no run"},
	"the watermark passes the last check of a run": {func(p *plot) {
		at := p.shardWhere(movesOn)
		s, _ := timer.ShardFromItem(0, store.Item{Version: 1, Value: p.life[at].value})
		r := run.Run{ID: run.RequestID("asked", s.Horizon+1, 7), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest, Created: s.Horizon}
		p.insert(at+1, p.item(r), p.timerItem(timer.NewCheck(tenant, r.ID, s.Horizon+1)))
	}, "P4: the watermark has passed the check of run asked.*, which is scheduled and has no other"},
	"the first sweep passes the last timer of a run": {func(p *plot) {
		at := p.shardWhere(movesOn)
		s, _ := timer.ShardFromItem(0, store.Item{Version: 1, Value: p.life[at].value})
		r := run.Run{ID: run.RequestID("asked", s.Horizon+1, 7), Tenant: tenant, State: run.Scheduled, Trigger: run.ByRequest, Created: s.Horizon}
		p.insert(at+1, p.item(r), p.timerItem(timer.NewRequest(r, s.Horizon+1, true)))
	}, "P4: the first sweep has passed run asked.*, which is scheduled, and nothing will wake it"},
	"the first sweep passes a fire without its run": {func(p *plot) {
		// The timer that it is the second fire of was read, and its run never made.
		_, t := p.timer(first, func(t timer.Timer) bool { return t.Kind == timer.Fire && t.Tenant == tenant && t.To > t.Nominal })
		p.hide(run.FireID("plain", t.To))
	}, "P2: the first sweep has passed the fire of plain of default at .*, and there is no run"},
	"the first sweep passes a fire under another's mark": {func(p *plot) {
		r, _ := p.of(p.life[p.run(first, "plain", run.Queued)])
		i := p.run(first, "plain", run.Queued)
		p.hide(r.ID)
		p.insert(i, p.item(run.Run{ID: r.ID, Tenant: tenant, State: run.Fenced, Generation: r.Generation, Expires: r.Created}))
	}, "P8: the first sweep has passed the fire of plain of default at .*, and it is fenced under"},
}

// plainJob is the index of the first put after another of the job that is edited.
func (p *plot) plainJob(after int) int {
	return p.put(after, "job", func(e event) bool { return e.key == job.Key(tenant, "plain") })
}

var ofJobs = map[string]row{
	"a job vanishes": {func(p *plot) {
		i := p.plainJob(first)
		p.insert(i+1, event{key: p.life[i].key, gone: true})
	}, "P1: job plain of default is gone"},
	"a job is unreadable":         {func(p *plot) { p.life[p.plainJob(first)].value = broken }, "P1: job#default.*unreadable"},
	"a job lies in a wrong place": {func(p *plot) { p.life[p.plainJob(first)].key.Partition = "job#default#77" }, "P12: job plain of default is kept at"},
	"a generation falls":          {func(p *plot) { p.spoilJob(p.plainJob(p.plainJob(first)), func(j *job.Job) { j.Generation = 7 }) }, "P6: job plain of default fell from generation .* to 7"},
	"a generation is changed": {func(p *plot) {
		i := p.plainJob(first)
		p.insert(i+1, p.life[i])
		p.spoilJob(i+1, func(j *job.Job) { j.Def.Description = "another" })
	}, "P8: generation .* of job plain of default was changed"},
	"a generation that does not end": {func(p *plot) {
		p.spoilJob(p.plainJob(p.plainJob(first)), func(j *job.Job) { j.Past = nil })
	}, "P8: generation .* of job plain of default follows .*, and does not say until when"},
	"a version is passed over": {func(p *plot) { p.life[p.plainJob(p.plainJob(first))].skipped = true }, "P6: job#default.* went from version 1 to 3"},
}

var ofKeys = map[string]row{
	"a key goes too soon": {func(p *plot) {
		i := p.put(first, "idem")
		p.insert(i+1, event{key: p.life[i].key, gone: true})
	}, "P9: key idem#default#key.* is gone, and its run .* is young"},
	"a key is unreadable":       {func(p *plot) { p.life[p.put(first, "idem")].value = broken }, "P9: key idem#default#key.*unreadable"},
	"a key of another tenant's": {func(p *plot) { p.life[p.put(first, "idem")].key.Partition = "idem#nobody#key" }, "P12: key .* is bound to run .*, of no job of that tenant"},
	"a key is bound anew": {func(p *plot) {
		i := p.put(first, "idem")
		p.insert(i+1, event{key: p.life[i].key, value: encoded(p, map[int]any{1: run.RequestID("asked", p.life[i].at.UnixMilli(), 5).String(), 2: []byte{1}})})
	}, "P9: key .* was bound to run .*, and is to"},
	"a run on demand that nobody asked for": {func(p *plot) {
		i := p.run(first, "asked", run.Queued)
		r, _ := p.of(p.life[i])
		for n := range uint64(3) {
			more := r
			more.ID = run.RequestID("asked", r.ID.Nominal, n)
			p.insert(i, p.item(more))
		}
	}, "P9: run .* is number .* on demand, and .* were asked for"},
	"a dead letter is unreadable":       {func(p *plot) { p.life[p.put(first, "dead")].value = broken }, "P1: dead letter .*unreadable"},
	"a dead letter of another tenant's": {func(p *plot) { p.life[p.put(first, "dead")].key.Partition = "dead#nobody#1" }, "P12: dead letter .* is of no run of that tenant"},
	"opened again, and refused": {func(p *plot) {
		p.tells(first, oracle.Retry, func(a *oracle.Answer) { a.Status, a.Code = 409, "needs_force" })
	}, "P7: run .* was opened again, and the request for it was refused"},
}

var ofLooks = map[string]row{
	"a run has nothing to wake it": {func(p *plot) {
		i := p.run(first, "plain", run.Queued)
		r, _ := p.of(p.life[i])
		r.ID = run.RequestID("asked", r.ID.Nominal, 1)
		r.Trigger = run.ByRequest
		p.insert(i, p.item(r))
	}, "P4: run asked.* is queued, and nothing will wake it"},
	"an active job has no timer": {func(p *plot) {
		var left life
		for _, e := range p.life {
			if !strings.HasPrefix(e.key.Partition, "due#") || !strings.Contains(e.key.Sort, "#f#default#plain#") {
				left = append(left, e)
			}
		}
		p.life = left
	}, "P4: job plain of default is active, and its fire at .* has no timer"},
	"a past definition is gone": {func(p *plot) { p.drop(p.put(first, "def")) }, "P2: the definition of generation .* of plain of default is gone"},
	"a dead letter that is not listed": {func(p *plot) {
		p.life = slices.DeleteFunc(p.life, func(e event) bool { return strings.HasPrefix(e.key.Partition, "dead#") })
	}, "P7: run .* is (dead|failed), and not listed as a dead letter"},
	"a dead letter that is discarded, and listed as before": {func(p *plot) {
		p.drop(p.put(p.discarded(), "dead"))
	}, "P7: run fails.* is discarded: true, and listed as discarded: false"},
	"a dead letter that is none": {func(p *plot) {
		i := p.put(first, "dead")
		p.insert(p.end(), p.life[i])
		p.life[len(p.life)-2].at = p.life[p.end()].at
		p.life[i].key.Sort = strings.Replace(p.life[i].key.Sort, "0", "1", 1)
	}, "P7: run .* is .*, and listed at"},
	"a run that does not end": {func(p *plot) {
		i := p.run(first, "asked", run.Succeeded)
		p.drop(i)
	}, "P4: run asked.* of default is still running at"},
	"the index leaves out a run": {func(p *plot) {
		var left life
		for _, e := range p.life {
			if !strings.HasPrefix(e.key.Partition, "ran#") {
				left = append(left, e)
			}
		}
		p.life = left
	}, "P1: run .* is in no index, and all sweeps have passed it"},
	"the index is unreadable": {func(p *plot) { p.life[p.put(first, "ran")].value = broken }, "P1: index .*unreadable"},
	"the index lists another tenant's run": {func(p *plot) {
		i := p.put(first, "ran", func(e event) bool { return strings.HasPrefix(e.key.Partition, "ran#acme") })
		k := p.put(first, "ran", func(e event) bool { return strings.HasPrefix(e.key.Partition, "ran#default") })
		p.life[i].value = p.life[k].value
	}, "P12: ran#acme.* lists run .*, of another tenant"},
	"the store forgets": {func(p *plot) {
		p.insert(p.end(), event{forget: timer.ShardKey(0)})
	}, "P1: .* items stand, and .* were written and not removed"},
	"the store goes back": {func(p *plot) {
		p.insert(p.end(), event{back: timer.ShardKey(0)})
	}, "P1: shard#00/progress stands in version .*, and was last written in"},
	"a change from what does not stand": {func(p *plot) {
		p.insert(p.end(), event{back: timer.ShardKey(0)}, event{key: timer.ShardKey(0), value: p.life[p.shard(9)].value, at: p.life[p.end()].at})
	}, "P1: shard#00/progress was at version .*, and changed from version"},
}
