package dispatch_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// lasting puts a run of a fire, n seconds on, that may start up to so long after it.
func (g *gated) lasting(n int, d time.Duration) run.Run {
	return g.put(n, func(r run.Run) run.Run { r.StartBy = r.ID.Nominal + d.Milliseconds(); return r })
}

// Whoever waits in line and is too late when there is room is skipped, and the next one is let in.
func TestG2_G4_WhoIsTooLateIsNotLetIn(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	runs := []run.Run{g.put(0, nil), g.lasting(1, time.Minute), g.lasting(2, time.Hour), g.put(3, nil)}
	g.enters(def, runs...)
	g.sent()
	g.pass(5*time.Minute, 5*time.Minute)
	g.ends(runs[0])
	same(t, "wait", g.waits(runs), []int{3})
	late := g.stands(runs[1])
	if late.State != run.Skipped || late.Why.Code != run.WhyExpired || late.Missed() {
		t.Errorf("who is too late is %s, for %+v", late.State, late.Why)
	}
	if n, others := g.Metrics.Skipped.Value(run.WhyExpired), g.Metrics.Skipped.Value(run.WhyOverlap); n != 1 || others != 0 {
		t.Errorf("%d are counted as too late, and %d for overlap", n, others)
	}
	if next := g.stands(runs[2]); next.State != run.Queued || next.Waits() {
		t.Errorf("the next one is %+v", next)
	}
	g.sound(runs)
}

// However many are too late, the first that is in time is let in as soon as there is room: nobody else would come to it.
func TestG2_G4_WhoIsInTimeIsLetInBehindAnyNumberThatAreTooLate(t *testing.T) {
	for _, n := range []int{1, 2, 3, 99, 100, 101, 1300} {
		for _, limit := range []int{1, 3} {
			t.Run(fmt.Sprintf("%d_of_%d", n, limit), func(t *testing.T) {
				g := newGated(t)
				def := queueing(limit)
				def.Overlap.MaxWaiting = new(2000)
				g.define(def)
				runs := g.fires(limit)
				for i := range n {
					runs = append(runs, g.lasting(limit+i, time.Minute))
				}
				inTime := g.put(limit+n, nil)
				runs = append(runs, inTime, g.put(limit+n+1, nil))
				for _, r := range runs {
					g.enters(def, r)
				}
				g.sent()
				g.pass(time.Hour, time.Hour)
				g.forget()
				g.ends(runs[0])
				writes := 0
				for _, op := range g.forget() {
					if op == "write gate" {
						writes++
					}
				}
				if most := 2 + n/30; writes > most {
					t.Errorf("%d writes of the gate, want at most %d", writes, most)
				}
				if s := g.stands(inTime); s.State != run.Queued || s.Waits() {
					t.Errorf("who is in time is %s, %+v", s.State, s.Wait)
				}
				same(t, "wait", g.waits(runs), []int{len(runs) - 1})
				g.sound(runs)
			})
		}
	}
}

// Whoever joins a line beside room has those let in that there is room for: who made the room may have died.
func TestG2_WhoJoinsBesideRoomLetsIn(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(3)
	g.enters(queueing(1), runs[:2]...)
	g.define(queueing(2)) // and whoever did dies
	g.enters(queueing(2), runs[2])
	same(t, "wait", g.waits(runs), []int{2})
	g.sound(runs)
}

// A check ends a run that is too late, wherever it waits, and comes when that is so.
func TestG4_ACheckEndsWhoIsTooLate(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	runs := []run.Run{g.put(0, nil), g.lasting(1, 40*time.Minute), g.lasting(2, 40*time.Minute), g.put(3, nil)}
	g.enters(def, runs[0], runs[1], runs[3])
	check := func() {
		t.Helper()
		now := g.now.UnixMilli()
		if _, err := g.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now + 60_000, Resume: now + 2000}, runs, nil); err != nil {
			t.Fatal(err)
		}
	}
	check()
	same(t, "wait", g.waits(runs), []int{1, 3})
	at := runs[1].StartBy + g.Ahead().Milliseconds() + 1 // a tick comes upon it so much earlier
	if check := g.Wakeup(t.Context(), runs[1], at-1000); check.Key() != timer.NewCheck("default", runs[1].ID, at).Key() {
		t.Errorf("its check lies %d ms from there", check.Wake-at)
	}
	if far := g.Wakeup(t.Context(), runs[1], g.now.UnixMilli()); far.Wake >= at {
		t.Errorf("no check comes before it is too late")
	}
	g.pass(41*time.Minute, 41*time.Minute)
	check()
	same(t, "wait", g.waits(runs), []int{3})
	for _, i := range []int{1, 2} {
		if r := g.stands(runs[i]); r.State != run.Skipped || r.Why.Code != run.WhyExpired {
			t.Errorf("%d is %s, for %+v", i, r.State, r.Why)
		}
	}
	g.sound(runs)
	g.sent()
	g.ends(runs[0])
	same(t, "wait", g.waits(runs), []int(nil))
	if n := len(g.sent()); n != 1 {
		t.Errorf("%d were sent", n)
	}
}

// A check ends all that are too late together: one look at the line for all of a gate, and what cannot be ended holds nobody up.
func TestG4_ACheckEndsManyThatAreTooLateTogether(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	runs := []run.Run{g.put(0, nil)}
	for n := range 80 {
		runs = append(runs, g.lasting(1+n, time.Minute))
	}
	runs = append(runs, g.put(90, nil))
	for _, r := range runs {
		g.enters(def, r)
	}
	g.pass(time.Hour, time.Hour)
	g.forget()
	now := g.now.UnixMilli()
	if _, err := g.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now + 60_000, Resume: now + 2000}, runs, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "wait", g.waits(runs), []int{81})
	gates := 0
	for _, op := range g.forget() {
		if op == "write gate" {
			gates++
		}
	}
	if gates > 4 {
		t.Errorf("%d writes of the gate for the ends of 80 runs", gates)
	}
	g.sound(runs)
}

// A run that waits for its place and is too late before that has its check at the time that it is to start by.
func TestG4_ACheckComesBeforeAPlaceThatIsTooLate(t *testing.T) {
	g := newGated(t)
	r := g.lasting(0, time.Hour)
	r.NextAt, r.Reason = r.StartBy+time.Hour.Milliseconds(), run.CaughtUp
	at := r.StartBy + g.Ahead().Milliseconds() + 1
	if check := g.Wakeup(t.Context(), r, at-1000); check.Wake != at {
		t.Errorf("its check lies %d ms from there", check.Wake-at)
	}
	r.StartBy = r.NextAt + time.Hour.Milliseconds()
	if check := g.Wakeup(t.Context(), r, at-1000); check.Wake != r.NextAt {
		t.Errorf("its check lies %d ms from its place", check.Wake-r.NextAt)
	}
}

// Whoever was let in and is too late gives its place up.
func TestG2_WhoWasLetInAndIsTooLateMakesRoom(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	runs := []run.Run{g.lasting(0, time.Minute), g.put(1, nil)}
	g.enters(def, runs...)
	g.sent()
	g.pass(5*time.Minute, 5*time.Minute)
	if _, err := g.Expire(t.Context(), g.stands(runs[0]), g.now.UnixMilli()); err != nil {
		t.Fatal(err)
	}
	same(t, "wait", g.waits(runs), []int(nil))
	if n := len(g.sent()); n != 1 {
		t.Errorf("%d were sent", n)
	}
	g.sound(runs)
	if _, err := g.Expire(t.Context(), runs[0], g.now.UnixMilli()); store.AsConflict(err) == nil {
		t.Errorf("a second end: %v", err)
	}
}

// A check stops what has not ended by its deadline, wherever it stands, and comes when that is so. A worker is told, once.
func TestACheckStopsWhatIsPastItsDeadline(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	due := func(n int) run.Run {
		return g.put(n, func(r run.Run) run.Run { r.EndBy = r.ID.Nominal + 40*time.Minute.Milliseconds(); return r })
	}
	runs := []run.Run{due(0), due(1), g.put(2, nil)}
	for _, r := range runs {
		g.enters(def, r)
	}
	g.begins(runs[0])
	var told []run.ID
	g.Cancelled = func(_ string, id run.ID) { told = append(told, id) }
	check := func() {
		t.Helper()
		now := g.now.UnixMilli()
		if _, err := g.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now + 60_000, Resume: now + 2000}, runs, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range runs[:2] {
		r = g.stands(r)
		at := r.EndBy + g.Ahead().Milliseconds() + 1
		if far := g.Wakeup(t.Context(), r, at-5*time.Minute.Milliseconds()); far.Wake != at {
			t.Errorf("%d: its check lies %d ms from its deadline", i, far.Wake-at)
		}
	}
	renew := func() { g.write(g.stands(runs[0]).Extend(g.now.UnixMilli(), 5*time.Second)) }
	renew()
	check()
	if r := g.stands(runs[0]); r.Cancel || len(told) != 0 {
		t.Errorf("it is asked to stop ahead of its deadline: %+v", r)
	}
	g.pass(41*time.Minute, 41*time.Minute)
	renew()
	check()
	check()
	if r := g.stands(runs[0]); r.State != run.Running || !r.Cancel || r.Why.Code != run.WhyDeadline {
		t.Errorf("who is in progress is %s, asked %v, for %+v", r.State, r.Cancel, r.Why)
	}
	if len(told) != 1 || told[0] != runs[0].ID {
		t.Errorf("told are %v", told)
	}
	if r := g.stands(runs[1]); r.State != run.Cancelled || r.Why.Code != run.WhyDeadline {
		t.Errorf("who waits is %s, for %+v", r.State, r.Why)
	}
	same(t, "wait", g.waits(runs), []int{2})
	if n := g.Metrics.Overran.Value(); n != 1 {
		t.Errorf("%d are counted", n)
	}
	g.sound(runs)
}

// After a restart the message of what is in progress is gone: it has another for the time at which its lease is over, also where it is asked to stop.
func TestAfterARestartWhatIsPastItsDeadlineHasAMessage(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	r := g.put(0, func(r run.Run) run.Run { r.EndBy = r.ID.Nominal + time.Minute.Milliseconds(); return r })
	g.enters(def, r)
	g.begins(r)
	g.sent()
	g.pass(5*time.Minute, 5*time.Minute)
	g.write(g.stands(r).Extend(g.now.UnixMilli(), 20*time.Second))
	now := g.now.UnixMilli()
	alive := func(string) bool { return false }
	if _, err := g.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now + 60_000, Resume: now + 2000}, []run.Run{r}, alive); err != nil {
		t.Fatal(err)
	}
	if r := g.stands(r); r.State != run.Running || !r.Cancel {
		t.Errorf("it is %s, asked %v", r.State, r.Cancel)
	}
	depth, err := g.Queues[job.DefaultQueue].Depth(t.Context())
	if n := depth[r.Priority].Delayed; err != nil || n != 1 {
		t.Errorf("%d wait in the queue for that time (%v)", n, err)
	}
}

// Who waits past its deadline is passed by those behind it, and ended by its own check, which tells whom its job calls: nobody is called from the gate.
func TestG2_WhoWaitsPastItsDeadlineIsPassed(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	late := g.put(1, func(r run.Run) run.Run { r.EndBy = r.ID.Nominal + time.Minute.Milliseconds(); return r })
	runs := []run.Run{g.put(0, nil), late, g.put(2, nil)}
	for _, r := range runs {
		g.enters(def, r)
	}
	g.sent()
	g.pass(5*time.Minute, 5*time.Minute)
	g.ends(runs[0])
	same(t, "wait", g.waits(runs), []int{1})
	if n := len(g.sent()); n != 1 {
		t.Errorf("%d were sent", n)
	}
	now := g.now.UnixMilli()
	if _, err := g.Check(t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now + 60_000, Resume: now + 2000}, runs, nil); err != nil {
		t.Fatal(err)
	}
	if r := g.stands(late); r.State != run.Cancelled || r.Why.Code != run.WhyDeadline {
		t.Errorf("it is %s, for %+v", r.State, r.Why)
	}
	same(t, "wait", g.waits(runs), []int(nil))
	g.sound(runs)
}

// The deadline of a workflow's run has its check, and so has its timeout, whichever comes first; what could not be stopped for long is looked at like any other.
func TestAWorkflowsRunIsFoundAtItsDeadline(t *testing.T) {
	for name, lasts := range map[string]struct{ deadline, timeout time.Duration }{
		"deadline": {63 * time.Minute, 75 * time.Minute}, "timeout": {90 * time.Minute, 75 * time.Minute}, "timeout alone": {0, 75 * time.Minute},
	} {
		g := newGated(t)
		def := job.Definition{Target: target.Spec{Workflow: json.RawMessage(`{"timeout": "` + lasts.timeout.String() + `", "steps": {"a": {"handler": {"name": "x"}}}}`)}}.WithDefaults()
		g.edit(func(j *job.Job) { j.Def = def })
		head := run.Run{ID: run.RequestID("report", g.now.UnixMilli(), 1), Tenant: "default", State: run.Running, Generation: 1, Started: g.now.UnixMilli()}
		end := head.Started + lasts.timeout.Milliseconds()
		if lasts.deadline != 0 {
			head.EndBy = head.Started + lasts.deadline.Milliseconds()
			end = min(end, head.EndBy)
		}
		if e, err := g.Book.Edition(t.Context(), head.Tenant, head.ID.Job, head.Generation); err != nil || e.Def.Target.Workflow == nil {
			t.Fatalf("%s: it goes by %+v (%v)", name, e, err)
		}
		at := end + g.Ahead().Milliseconds()
		if check := g.Wakeup(t.Context(), head, end-90_000); check.Wake < at || check.Wake > at+1 {
			t.Errorf("%s: its check lies %d ms from there", name, check.Wake-at)
		}
		soon := at + time.Minute.Milliseconds()
		if check := g.Wakeup(t.Context(), head, soon); check.Wake != soon+1 {
			t.Errorf("%s: a minute behind it the next check comes after %d ms", name, check.Wake-soon)
		}
		long := at + 30*time.Minute.Milliseconds()
		if check, regular := g.Wakeup(t.Context(), head, long), timer.NextCheck(head.Tenant, head.ID, long); check.Wake != regular.Wake {
			t.Errorf("%s: half an hour behind it the next check comes after %d ms, want the regular one, after %d", name, check.Wake-long, regular.Wake-long)
		}
	}
}
