package oracle

import (
	"encoding/json"
	"time"

	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Of callbacks with a window it is part of C1 that each end is told of by a run of its own, or by that of another end of its window, which counts it; and of C2 that none is
// counted twice, and none that another job, event or window has.

// windowed is what is known of a callback with a window.
type windowed struct {
	window int64              // ms; 0 for none
	count  int                // how many ends it tells of
	timers map[store.Key]bool // that stand for it
	into   *call              // tells of it, since its own timer is gone
	joined bool               // no other joins it any more
}

// toldBy is the call whose run tells of this one's end.
func (c *call) toldBy() *call {
	for c.into != nil {
		c = c.into
	}
	return c
}

// taking is a callback that counts more ends than before: so many timers are to go with that.
type taking struct {
	call *call
	more int
}

// joined is told of each request whose timer is written over: it stands for others of its window now.
func (j *Judge) joined(t *timer.Timer, before bool) {
	if t.Create == nil || t.Window == 0 {
		return
	}
	j.tookAll()
	c := j.calledBy(t.Create)
	n := t.Create.Callback.Count
	if c == nil || c.window != t.Window || before || n < c.count {
		j.violate("C2", "the callback %s of %s stands for %d, and no such end calls it, or it stood for all of its window before", t.Run, t.Tenant, n)
		return
	}
	j.taking = taking{c, n - c.count}
	c.count, c.joined = n, t.Joined
}

// taken is told of each timer that is gone, and tells whether another one stands for its callback.
func (j *Judge) taken(before store.Item) bool {
	t, err := timer.FromItem(before)
	if err != nil || !t.Waits() {
		return false
	}
	c := j.calledBy(t.Create)
	if c == nil || !c.timers[before.Key] {
		return false
	}
	if delete(c.timers, before.Key); len(c.timers) > 0 {
		return true // it wakes later
	}
	by := j.taking.call
	if by == nil || j.taking.more < c.count || by.job != c.job || by.of.job.tenant != c.of.job.tenant || by.event != c.event || by.due != c.due || by.window != c.window {
		return false
	}
	j.taking.more -= c.count
	c.into = by
	return true
}

// tookAll: whoever counts more ends has taken their timers.
func (j *Judge) tookAll() {
	if c := j.taking.call; c != nil && j.taking.more != 0 {
		j.violate("C2", "the callback of %s of the end of run %s of %s counts %d, and %d of them have timers of their own", c.job, c.of.id(), c.of.job.tenant, c.count, j.taking.more)
	}
	j.taking = taking{}
}

// toldTogether is told of each run that tells of an end, as it is made.
func (j *Judge) toldTogether(c *call, a *run.Run) {
	var told struct {
		Window *struct{ From, Until time.Time }
		Count  int
		Jobs   map[string]int
		Runs   []struct {
			ID, State string
			EndedAt   time.Time `json:"ended_at"`
			Missed    *missedFires
		}
	}
	_ = json.Unmarshal(a.Payload.Inline, &told) // it was read before
	if c.window == 0 {
		if told.Window != nil || told.Count != 0 || a.Callback.Count != 0 {
			j.violate("C2", "run %s of %s tells of %d, and who calls it names no window", a.ID, a.Tenant, told.Count)
		}
		return
	}
	if !c.joined || c.into != nil || told.Count != c.count || a.Callback.Count != c.count || len(told.Runs) != min(c.count, run.MaxTogether) || told.Runs[0].ID != c.of.id() ||
		told.Window == nil || ms(told.Window.Until) != c.due || ms(told.Window.From) != c.due-c.window {
		j.violate("C2", "run %s of %s is told %.200q, and stands for %d ends of its window", a.ID, a.Tenant, a.Payload.Inline, c.count)
		return
	}
	jobs, of := map[string]int{}, 0
	for _, other := range j.called {
		if other.toldBy() == c {
			of++
			jobs[other.of.run.ID.Job]++
		}
	}
	if of != c.count {
		j.violate("C2", "run %s of %s tells of %d ends, and stands for %d", a.ID, a.Tenant, c.count, of)
	}
	for name, n := range told.Jobs {
		if jobs[name] < n || jobs[name] != n && len(jobs) <= run.MaxTogether {
			j.violate("C2", "run %s of %s is told of %d runs of job %s, and there were %d", a.ID, a.Tenant, n, name, jobs[name])
		}
	}
	if len(told.Jobs) != min(len(jobs), run.MaxTogether) {
		j.violate("C2", "run %s of %s is told of %d jobs, and there were %d", a.ID, a.Tenant, len(told.Jobs), len(jobs))
	}
	named := map[name]bool{}
	for _, r := range told.Runs {
		end := endOf(a.Tenant, c.event, r.ID, ms(r.EndedAt))
		if other := j.called[end]; other == nil || other.toldBy() != c || named[end] || other.state.String() != r.State || (other.fires == nil) != (r.Missed == nil) {
			j.violate("C2", "run %s of %s is told that run %s ended as %s, and that is not among what it tells of, or twice", a.ID, a.Tenant, r.ID, r.State)
		}
		named[end] = true
	}
}
