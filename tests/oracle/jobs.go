package oracle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

const forever = int64(1<<63 - 1)

// jobState is what is known of a job, over deletes.
type jobState struct {
	tenant, name string
	born         int    // when it was first heard of
	version      uint64 // of its item; 0 where it does not stand
	job          job.Job
	editions     []*edition // by generation, the oldest first
	byGeneration map[int64]*edition
	answered     []answered
	runs         []*runState
	places       []int64        // of its missed fires, in order, Unix ms
	requested    int            // runs on demand that were made
	asked        int            // for how many it was asked
	ousted       []ousting      // whose gate is about to be written
	gateWritten  map[string]int // by key: the event by which its gate was last
	ignoring     int            // runs on demand that were made and ignore a pause
	mayIgnore    int            // for how many of these it was asked
	mayBring     map[string]int // for how many it was asked with a policy of their own, and which were not made yet
	turns        turns
	streak       streak

	askedCalls map[run.Callees]int // those that asked for callbacks of their own, and were not made yet; none among them
}

// edition is a generation of a job.
type edition struct {
	job.Edition // its Generation and Def; the Schedule only where it makes fires

	from, until int64           // its fires in (from, until] are in force, Unix ms
	deleted     bool            // it is a tombstone
	parked      bool            // its schedule has failed
	since, end  int             // events: from which one it stood, and from which one it did not; 0 while it does
	wake        int64           // of its furthest timer
	wakes       map[int64]int64 // of its timers that no sweep has passed: by nominal time, when they wake
	late        bool            // that one was armed behind the sweeps that should have come upon it
	owed        []owed
}

// owed are missed fires that are to run, as was decided by an instant.
type owed struct{ from, upTo, by, wake int64 }

// answered is an edit whose answer was given.
type answered struct {
	generation, at int64
}

// active tells whether it makes runs by its schedule.
func (e *edition) active() bool { return e.Schedule != nil && !e.parked }

func (j *Judge) job(tenant, named string) *jobState {
	key := name{tenant, named}
	js := j.jobs[key]
	if js == nil {
		js = &jobState{tenant: tenant, name: named, born: len(j.jobs), byGeneration: map[int64]*edition{}, askedCalls: map[run.Callees]int{}}
		j.jobs[key] = js
	}
	return js
}

func (js *jobState) newest() *edition {
	if len(js.editions) == 0 {
		return nil
	}
	return js.editions[len(js.editions)-1]
}

func (e *edition) etag() string { return job.Job{Generation: e.Generation}.ETag() }

func (j *Judge) storedJob(at time.Time, rest string, before, after store.Item) {
	key := before.Key
	if after.Exists() {
		key = after.Key
	}
	tenant, _, _ := strings.Cut(rest, "#")
	js := j.job(tenant, key.Sort)
	j.follow(key, js.version, before)
	js.version = after.Version
	newest := js.newest()
	if !after.Exists() {
		if newest == nil || !newest.deleted || ms(at) < js.job.Updated+job.KeepPast.Milliseconds()-j.cfg.Clocks.Milliseconds() {
			j.violate("P1", "job %s of %s is gone", js.name, tenant)
		}
		return
	}
	a, err := job.FromItem(tenant, js.name, after)
	if err != nil {
		j.violate("P1", "%s: %v", key, err)
		return
	}
	if key != job.Key(tenant, js.name) {
		j.violate("P12", "job %s of %s is kept at %s", js.name, tenant, key)
	}
	b := js.job
	js.job = a
	switch {
	case newest == nil:
	case a.Generation < newest.Generation:
		j.violate("P6", "job %s of %s fell from generation %d to %d", js.name, tenant, newest.Generation, a.Generation)
		return
	case a.Generation == newest.Generation:
		if !sameDefinition(a.Def, newest.Def) || a.Deleted != newest.deleted || a.Updated != b.Updated {
			j.violate("P8", "generation %d of job %s of %s was changed", a.Generation, js.name, tenant)
		}
		newest.parked = a.Fault != ""
		return
	default:
		if before.Exists() {
			if until, ok := a.Until(newest.Generation); !ok || until != a.Updated {
				j.violate("P8", "generation %d of job %s of %s follows %d, and does not say until when that one held", a.Generation, js.name, tenant, newest.Generation)
			}
		}
		j.pausedFor(js, a, newest)
		newest.end = j.event
		for _, e := range js.editions { // one that a clock ahead of its time has made to hold for longer ends with it, too
			e.until = min(e.until, a.Updated)
		}
	}
	j.ends(js, a, newest)
	j.edition(js, a)
}

func (j *Judge) edition(js *jobState, a job.Job) {
	e := &edition{Edition: job.Edition{Generation: a.Generation, Def: a.Def}, from: a.Updated, until: forever, deleted: a.Deleted,
		parked: a.Fault != "", since: j.event}
	if !a.Deleted && !a.Def.Paused && a.Def.Schedule != nil {
		var err error
		if e.Schedule, err = j.cfg.Compile(*a.Def.Schedule); err != nil {
			e.Schedule, e.parked = nil, true // its owner is told, as the job's fault
		}
	}
	js.editions = append(js.editions, e)
	js.byGeneration[e.Generation] = e
	if since := js.strictSince(e); a.Def.Overlap.Since != since {
		j.violate("G3", "generation %d of job %s of %s says that it is strict since %d, and it is since %d", a.Generation, js.name, js.tenant, a.Def.Overlap.Since, since)
	}
}

// inForce tells whether a generation has a say at a fire, as the job stands now.
func (js *jobState) inForce(e *edition, fire int64) bool {
	return e != nil && e.active() && fire > e.from && fire <= e.until
}

// answer notes that an edit was answered.
func (js *jobState) answer(e *edition) {
	at, found := slices.BinarySearchFunc(js.answered, e.Generation, func(a answered, g int64) int { return cmp.Compare(a.generation, g) })
	if !found {
		js.answered = slices.Insert(js.answered, at, answered{e.Generation, e.from})
	}
}

// deletedSince tells whether a delete of a generation was answered.
func (js *jobState) deletedSince(generation int64) bool {
	return slices.ContainsFunc(js.answered, func(a answered) bool {
		return a.generation > generation && js.byGeneration[a.generation].deleted
	})
}

// deletedBehind tells whether a delete was answered that was written behind an event.
func (js *jobState) deletedBehind(event int) bool {
	return slices.ContainsFunc(js.answered, func(a answered) bool {
		e := js.byGeneration[a.generation]
		return e.deleted && e.since > event
	})
}

// standing are the editions that stood at some time between two events.
func (js *jobState) standing(from, to int) []*edition {
	first := slices.IndexFunc(js.editions, func(e *edition) bool { return e.end == 0 || e.end > from })
	if first < 0 {
		return nil
	}
	end := len(js.editions)
	for end > first && js.editions[end-1].since > to {
		end--
	}
	return js.editions[first:end]
}
