package oracle

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// What is promised of callbacks:
//
//	C1  each end that a definition, the run's own request or the operator names a callback for has its request in the same write, and its run in the end; and so has each record of missed fires
//	C2  each run that tells of an end tells of one that was, once, to the job that they name; and what it is told is what was
//
// A callback has no callbacks, which is part of both.

// call is a callback that is to be.
type call struct {
	of    *runState
	event string
	job   string // that is called
	state run.State
	ended int64
	fires *missedFires // of a record of missed ones
	armed bool
	run   *runState // that tells of it

	due      int64 // when it is called at the earliest, as its run says
	windowed       // with others of its window
}

// missedFires are those that a record says were missed.
type missedFires struct {
	Count int
	First time.Time
	Last  time.Time
}

// endOf names an end.
func endOf(tenant, event, id string, ended int64) name {
	return name{tenant, event + "#" + id + "#" + strconv.FormatInt(ended, 10)}
}

// calls notes what the end of a run calls, or what the record of missed fires does.
func (j *Judge) calls(rs *runState, e *edition) {
	a := &rs.run
	if e == nil || a.Callback != (run.Callback{}) {
		return
	}
	j.turned(rs.job)
	recovered := ""
	if to := j.callee(a, "", e.Def.On.Recovered, j.cfg.Callbacks.Recovered); to != nil {
		recovered = to.Job
	}
	rs.job.turns.ends(rs, recovered, j.event)
	var event string
	var to *job.Callback
	switch a.State {
	case run.Succeeded:
		event, to = "succeeded", j.callee(a, a.Callees.Succeeded, e.Def.On.Succeeded, nil)
	case run.Failed, run.Dead, run.Unknown, run.Cancelled:
		if a.State == run.Cancelled && !atDeadline(a) { // somebody cancelled it, or another took its place
			break
		}
		event, to = "failed", j.callee(a, a.Callees.Failed, e.Def.On.Failed, j.cfg.Callbacks.Failed)
	case run.Skipped:
		if a.Count > 0 {
			event, to = "missed", j.callee(a, "", e.Def.On.Missed, j.cfg.Callbacks.Missed)
		}
	}
	if to == nil {
		return
	}
	c := &call{of: rs, event: event, job: to.Job, state: a.State, ended: a.Ended, due: a.Ended}
	if w := to.Window.Std().Milliseconds(); w != 0 {
		c.due, c.windowed = a.Ended-a.Ended%w+w, windowed{window: w, count: 1, timers: map[store.Key]bool{}}
	}
	if event == "missed" {
		c.fires = &missedFires{a.Count, time.UnixMilli(a.ID.Nominal), time.UnixMilli(a.Through)}
	}
	j.called[endOf(a.Tenant, event, rs.id(), a.Ended)] = c
}

// callee is whom an event of a run calls, nil for nobody: whom its request names, else its definition, else the operator, whose word is not for the job that
// it names.
func (j *Judge) callee(r *run.Run, request string, own *job.Callback, all map[string]string) *job.Callback {
	switch {
	case request != "":
		return &job.Callback{Job: request}
	case own != nil:
		return own
	}
	to, named := all[r.Tenant]
	if !named {
		to = all[""]
	}
	if to == "" || to == r.ID.Job {
		return nil
	}
	return &job.Callback{Job: to}
}

// turns is how a job goes down and recovers, by the runs of it that call somebody when it recovers.
type turns struct {
	down  *down // nil: it is well
	last  *runState
	state run.State // it ended in
	to    string    // who is called when it recovers
	owes  int       // the event that its record is to follow; 0 for none
}

// down is the record of a job whose last run was given up.
type down struct {
	generation int64
	since      int
}

// ends notes an end at an event, who is called when its job recovers, and whether the record of that has to follow. A success must have seen a record that
// stood when it began.
func (t *turns) ends(rs *runState, to string, event int) {
	if to == "" || rs.run.State == run.Cancelled && !atDeadline(&rs.run) || rs.run.State == run.Skipped {
		return
	}
	t.last, t.state, t.to = rs, rs.run.State, to
	began := 0
	for _, s := range rs.past {
		if s.state == run.Running {
			began = s.since
		}
	}
	if rs.run.State != run.Succeeded || t.down != nil && t.down.since < began {
		t.owes = event
	}
}

// turned: the record of a job has followed its last end.
func (j *Judge) turned(js *jobState) {
	if js.turns.owes != 0 {
		j.violate("C1", "run %s of %s ended as %s, and its job calls somebody when it recovers: that it is down, or well, was not written with that", js.turns.last.id(), js.tenant, js.turns.state)
	}
	js.turns.owes = 0
}

// storedDown: a job is down since a run was given up, and recovers by one that has succeeded.
func (j *Judge) storedDown(key store.Key, rest string, before, after store.Item) {
	j.storedOther(key, before, after)
	tenant, named, _ := strings.Cut(rest, "#")
	js := j.job(tenant, named)
	t := &js.turns
	if after.Exists() {
		read, err := run.DownFromItem(after)
		if err != nil || t.last == nil || t.state == run.Succeeded || read.Run != t.last.id() {
			j.violate("C2", "%s says that job %s is down by run %q (%v), and another ended last", key, named, read.Run, err)
		}
		t.down, t.owes = &down{generation: read.Generation, since: j.event}, 0
		return
	}
	if t.last == nil || t.state != run.Succeeded || t.down == nil {
		j.violate("C2", "%s is gone, and no run of job %s has just succeeded", key, named)
		return
	}
	if t.down.generation >= js.job.Born {
		a := &t.last.run
		j.called[endOf(tenant, "recovered", t.last.id(), a.Ended)] = &call{of: t.last, event: "recovered", job: t.to, state: a.State, ended: a.Ended, due: a.Ended}
	}
	t.down, t.owes = nil, 0
}

// calling tells whether an end calls that run: who is called may never have been made, where that part of a batch has failed.
func (j *Judge) calling(tenant string, id run.ID) bool {
	for _, c := range j.called {
		if c.of.job.tenant == tenant && c.job == id.Job && c.dueAt(id.Nominal) {
			return true
		}
	}
	return false
}

// calledBy is the call that the run of a callback is of; nil for none.
func (j *Judge) calledBy(r *run.Run) *call {
	c := j.called[endOf(r.Tenant, r.Callback.Event, r.Callback.Run, r.Created)]
	if c == nil || c.job != r.ID.Job || !c.dueAt(r.ID.Nominal) {
		return nil
	}
	return c
}

// dueAt tells whether the call may be due at an instant: at once, or a little later than the end of its window.
func (c *call) dueAt(nominal int64) bool {
	return c.due == nominal || c.window != 0 && c.due < nominal && nominal < c.due+5*time.Minute.Milliseconds()
}

// armedCall is told of each timer that holds a callback, when it comes to stand.
func (j *Judge) armedCall(t *timer.Timer) {
	if t.Create == nil || t.Create.Callback == (run.Callback{}) {
		return
	}
	c := j.calledBy(t.Create)
	if c == nil || c.window != t.Window {
		j.violate("C2", "a callback of %s is asked for on %q of run %s of %s, and no such end calls it", t.Run.Job, t.Create.Callback.Event, t.Create.Callback.Run, t.Tenant)
		return
	}
	c.armed = true
	if c.window != 0 {
		c.timers[t.Key()] = true
		if t.Joined || t.Create.Callback.Count != 0 {
			j.violate("C2", "the callback of %s of run %s of %s stands from the first for %d", c.job, c.of.id(), t.Tenant, t.Create.Callback.Count)
		}
	}
}

// told is told of each run on demand that is made.
func (j *Judge) told(rs *runState) {
	a := &rs.run
	c := j.calledBy(a)
	switch {
	case c == nil:
		j.violate("C2", "run %s of %s tells of %q of run %s, and no such end calls it", a.ID, a.Tenant, a.Callback.Event, a.Callback.Run)
		return
	case c.run != nil && c.run != rs:
		j.violate("C2", "runs %s and %s of %s tell of the same end of run %s", c.run.id(), a.ID, a.Tenant, a.Callback.Run)
	case !c.armed:
		j.violate("C1", "run %s of %s tells of an end, and nothing was asked for with that", a.ID, a.Tenant)
	}
	c.run = rs
	var told struct {
		Event  string
		Run    struct{ ID, State string }
		Missed *missedFires
	}
	if err := json.Unmarshal(a.Payload.Inline, &told); err != nil || told.Event != c.event || told.Run.ID != c.of.id() || told.Run.State != c.state.String() {
		j.violate("C2", "run %s of %s is told %.200q of the end of run %s as %s (%v)", a.ID, a.Tenant, a.Payload.Inline, c.of.id(), c.state, err)
	}
	if t, f := told.Missed, c.fires; (t == nil) != (f == nil) || t != nil && (t.Count != f.Count || !t.First.Equal(f.First) || !t.Last.Equal(f.Last)) {
		j.violate("C2", "run %s of %s is told %.200q of the fires that %s says were missed", a.ID, a.Tenant, a.Payload.Inline, c.of.id())
	}
	j.toldTogether(c, a)
}

// uncalled: what has ended has its request, and what has ended up to then was told.
func (j *Judge) uncalled(upTo int64) {
	all := slices.SortedFunc(maps.Values(j.called), func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.ended, b.ended), cmp.Compare(a.of.id(), b.of.id()), cmp.Compare(a.event, b.event))
	})
	for _, js := range j.ordered() {
		j.turned(js)
	}
	j.tookAll()
	for _, c := range all {
		switch {
		case !c.armed:
			j.violate("C1", "run %s of %s ended as %s at %s, and no callback of %s was asked for with that", c.of.id(), c.of.job.tenant, c.state, instant(c.ended), c.job)
		case c.toldBy().run == nil && c.due <= upTo && !j.leftAlone(c, upTo):
			j.violate("C1", "run %s of %s ended as %s at %s, and %s was not called", c.of.id(), c.of.job.tenant, c.state, instant(c.ended), c.job)
		}
	}
}

// leftAlone tells of a callback of long ago that it may be left alone: nothing shows any more whether it ran, and its job runs at most once.
func (j *Judge) leftAlone(c *call, upTo int64) bool {
	if c.due >= upTo-dispatch.Forgotten.Milliseconds() {
		return false
	}
	for _, e := range j.job(c.of.job.tenant, c.job).byGeneration {
		if e.Def.Guarantee == job.AtMostOnce {
			return true
		}
	}
	return false
}
