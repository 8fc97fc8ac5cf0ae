package dispatch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// forAtMost has the gate "stripe" let so many in at once, and others wait for so long.
func forAtMost(limit int, most time.Duration) func(*gate.Named) {
	return func(n *gate.Named) { n.Def = gate.Definition{Limit: limit, MaxWait: schedule.Duration(most)} }
}

// checks has a check come to runs.
func (s *several) checks(runs ...run.Run) {
	s.t.Helper()
	now := s.now.UnixMilli()
	if _, err := s.Check(s.t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now, Reach: now + 60_000, Resume: now + 2000}, runs, nil); err != nil {
		s.t.Fatal(err)
	}
}

// are tells how runs stand: by name and number, with the stage of each.
func (s *several) are(want string, runs ...string) {
	s.t.Helper()
	var got []string
	for _, name := range runs {
		r := s.stands(s.made[name])
		got = append(got, name+" "+r.Stage().String())
	}
	same(s.t, "they are", strings.Join(got, ", "), want)
}

// stripeLine gives the gate, and how many places stand in its line.
func (s *several) stripeLine() (gate.Gate, int) {
	s.t.Helper()
	g, err := s.ReadGate(s.t.Context(), gate.ID{Tenant: "default", Name: "stripe"})
	if err != nil {
		s.t.Fatal(err)
	}
	page, err := s.Store.Query(s.t.Context(), g.Line(0))
	if err != nil {
		s.t.Fatal(err)
	}
	return g, len(page.Items)
}

// Whoever waits for longer than the gate says is skipped by a check that was armed before it joined, with the gate, since when it waited and who was in the way. Others go on waiting.
func TestG4_ACheckEndsWhoHasWaitedTooLong(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	s.says(forAtMost(1, 40*time.Second))
	s.comes("a", 0)
	s.comes("b", 1)
	s.says(forAtMost(1, 0)) // which holds for those that join from now on
	s.comes("a", 2)
	joined := s.run("b", 1, nil)
	if joined.Wait.Until != joined.Wait.Since+40_000 || s.run("a", 2, nil).Wait.Until != 0 {
		t.Fatalf("they may wait until %d and %d", joined.Wait.Until, s.run("a", 2, nil).Wait.Until)
	}
	at := joined.Wait.Until + s.Ahead().Milliseconds() + 1
	check := timer.NewCheck("default", joined.ID, at)
	items, err := s.Store.Get(t.Context(), check.Key())
	if err != nil || !items[0].Exists() {
		t.Errorf("no check of it lies %d ms behind its time: %v", at-joined.Wait.Until, err)
	}
	if next := s.Wakeup(t.Context(), joined, at-1000); next.Key() != check.Key() {
		t.Errorf("its next check lies %d ms from there", next.Wake-at)
	}
	if long := joined.Wait.Until + timer.MaxCheckGap.Milliseconds(); s.Wakeup(t.Context(), joined, long).Wake != timer.NextCheck("default", joined.ID, long).Wake {
		t.Error("where nobody can end it, each tick looks at it for ever")
	}
	s.checks(joined)
	s.are("b1 waiting, a2 waiting", "b1", "a2")
	s.pass(40*time.Second, 40*time.Second)
	s.checks(joined)
	s.are("b1 waiting", "b1") // its time is not over before that instant is
	s.pass(time.Second, time.Second)
	s.checks(joined)
	s.are("a0 queued, b1 skipped, a2 waiting", "a0", "b1", "a2")
	ended := s.stands(s.made["b1"])
	if w := ended.Why; w.Code != run.WhyMaxWait || w.Gate != "stripe" || w.Since != joined.Wait.Since || fmt.Sprint(w.InTheWay) != fmt.Sprint([]string{s.made["a0"].ID.String()}) {
		t.Errorf("for %+v: %s", w, ended.Reason)
	}
	if n, all := s.Metrics.GateSkipped.Value("stripe"), s.Metrics.Skipped.Value(run.WhyMaxWait); n != 1 || all != 1 {
		t.Errorf("%d and %d are counted", n, all)
	}
	if g, places := s.stripeLine(); g.Waiting != 1 || places != 1 {
		t.Errorf("%d wait, %d places stand", g.Waiting, places)
	}
}

// Whoever ends after that lets the next one in, and not the one whose time is over: its check ends it, and that frees the narrower gate that it had passed.
func TestG2_G4_NobodyIsLetInWhoseTimeInLineIsOver(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.passes("b", job.Overlap{Policy: job.OverlapQueue, Limit: 1, MaxWaiting: new(10)}, nil, use(1))
	s.says(forAtMost(1, time.Minute))
	s.comes("a", 0)
	s.comes("b", 1) // at its own gate it has a place
	s.comes("b", 2) // and this one waits for that
	s.says(forAtMost(1, time.Hour))
	s.comes("a", 3)
	s.are("b1 waiting, b2 waiting, a3 waiting", "b1", "b2", "a3")
	s.pass(2*time.Minute, 2*time.Minute)
	s.over("a", 0)
	s.are("b1 waiting, b2 waiting, a3 queued", "b1", "b2", "a3")
	s.checks(s.made["b1"])
	s.are("b1 skipped, b2 queued, a3 queued", "b1", "b2", "a3")
	if w := s.stands(s.made["b1"]).Why; w.Code != run.WhyMaxWait || fmt.Sprint(w.InTheWay) != fmt.Sprint([]string{s.made["a3"].ID.String()}) {
		t.Errorf("for %+v", w)
	}
	if n := s.Metrics.GateSkipped.Value("stripe"); n != 1 {
		t.Errorf("%d are counted", n)
	}
	if g, places := s.stripeLine(); g.Waiting != 0 || places != 0 || len(g.Entries) != 1 {
		t.Errorf("%+v, %d places stand", g, places)
	}
}

// Who is too late, and has not been ended yet, has nobody skipped whom there is room for.
func TestG4_WhoHasWaitedTooLongIsInNobodysWay(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.says(func(n *gate.Named) {
		n.Def = gate.Definition{Limit: 1, MaxWait: schedule.Duration(time.Minute), MaxWaiting: new(1)}
	})
	s.comes("a", 0)
	s.comes("a", 1)
	s.pass(2*time.Minute, 2*time.Minute)
	if came := s.comes("a", 2); came != dispatch.Skipped {
		t.Errorf("while there is no room one comes to %d", came)
	}
	s.over("a", 0)
	if came := s.comes("a", 3); came != dispatch.Joined {
		t.Errorf("beside room one comes to %d", came)
	}
	s.are("a1 waiting, a3 queued", "a1", "a3")
}

// However many there are whose time is over when somebody makes room, each names who was in its way.
func TestG4_EachOfManyWhoHaveWaitedTooLongNamesWhoWasInItsWay(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.says(forAtMost(1, time.Minute))
	s.comes("a", 0)
	var runs []run.Run
	for n := 1; n <= 70; n++ {
		s.comes("a", n)
		runs = append(runs, s.made[fmt.Sprint("a", n)])
	}
	s.says(forAtMost(1, time.Hour))
	s.comes("a", 71)
	s.pass(2*time.Minute, 2*time.Minute)
	s.over("a", 0)
	s.are("a71 queued", "a71")
	s.checks(runs...)
	for _, r := range runs {
		if r := s.stands(r); r.Why.Code != run.WhyMaxWait || len(r.Why.InTheWay) == 0 {
			t.Errorf("%s is %s for %+v", r.ID, r.State, r.Why)
		}
	}
}

// What stands in the gate of a run that has ended, and has told nobody yet, is in nobody's way.
func TestG4_WhoHasWaitedTooLongNamesThoseInProgress(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.says(forAtMost(2, time.Minute))
	for n := range 3 {
		s.comes("a", n)
	}
	s.write(started(s.run("a", 0, nil)).Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}))
	s.pass(2*time.Minute, 2*time.Minute)
	s.checks(s.made["a2"])
	if w := s.stands(s.made["a2"]).Why; w.Code != run.WhyMaxWait || fmt.Sprint(w.InTheWay) != fmt.Sprint([]string{s.made["a1"].ID.String()}) {
		t.Errorf("for %+v", w)
	}
}

// A closed gate and a pause do not stop the time. At a closed gate it is those before it in line that were in the way.
func TestG4_TheTimeInLineGoesOnWhileAGateIsClosed(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.passes("b", job.Overlap{}, nil, use(1))
	s.says(forAtMost(2, time.Minute))
	s.comes("a", 0)
	s.says(func(n *gate.Named) { n.Closed = &gate.Change{At: 5} })
	s.comes("b", 1)
	s.comes("a", 2)
	s.passes("b", job.Overlap{}, func(j *job.Job) { j.Def.Paused = true }, use(1))
	s.pass(2*time.Minute, 2*time.Minute)
	s.checks(s.made["a2"])
	if r := s.stands(s.made["a2"]); r.Why.Code != run.WhyMaxWait || fmt.Sprint(r.Why.InTheWay) != fmt.Sprint([]string{s.made["b1"].ID.String()}) || !strings.HasSuffix(r.Reason, ", and the gate was closed") {
		t.Errorf("for %+v: %s", r.Why, r.Reason)
	}
	s.checks(s.made["b1"])
	s.are("b1 skipped, a2 skipped", "b1", "a2")
	if r := s.stands(s.made["b1"]); !strings.HasSuffix(r.Reason, ", the gate was closed, and its job paused") {
		t.Errorf("of a paused job: %s", r.Reason)
	}
}

// Whoever is held by the pause of its job says so. Where there was room, nobody was in its way.
func TestG4_WhoIsHeldByAPauseNamesThat(t *testing.T) {
	for _, room := range []bool{false, true} {
		s := newSeveral(t)
		s.passes("a", job.Overlap{}, nil, use(1))
		s.passes("b", job.Overlap{}, nil, use(1))
		s.says(forAtMost(1, time.Minute))
		s.comes("a", 0)
		s.comes("b", 1)
		want := []string{s.made["a0"].ID.String()}
		s.passes("b", job.Overlap{}, func(j *job.Job) { j.Def.Paused = true }, use(1))
		if room {
			s.says(func(n *gate.Named) { n.Def.Limit = 2 })
			want = nil
		}
		s.pass(2*time.Minute, 2*time.Minute)
		s.checks(s.made["b1"])
		if r := s.stands(s.made["b1"]); r.Why.Code != run.WhyMaxWait || fmt.Sprint(r.Why.InTheWay) != fmt.Sprint(want) || !strings.HasSuffix(r.Reason, ", and its job was paused") {
			t.Errorf("with room %v for %+v: %s", room, r.Why, r.Reason)
		}
	}
}

// Whoever was opened by hand waits for as long as it takes, and so does whoever somebody has released.
func TestG4_WhoWasOpenedByHandWaitsForAsLongAsItTakes(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.says(forAtMost(1, time.Minute))
	s.comes("a", 0)
	s.run("a", 1, func(r run.Run) run.Run { r.Opening, r.Reason = 2, "retried on request"; return r })
	s.comes("a", 1)
	s.comes("a", 2)
	if _, err := s.Release(t.Context(), s.run("a", 2, nil), "", ""); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Hour, time.Hour)
	s.checks(s.made["a1"], s.made["a2"])
	s.are("a1 waiting, a2 waiting", "a1", "a2")
}

// Whoever has waited for too long is not released any more: so no release lets it in.
func TestG4_WhoHasWaitedTooLongIsNotReleased(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.says(forAtMost(1, time.Minute))
	s.comes("a", 0)
	s.comes("a", 1)
	s.pass(2*time.Minute, 2*time.Minute)
	if r, err := s.Release(t.Context(), s.run("a", 1, nil), "", ""); !errors.Is(err, dispatch.ErrOutwaited) {
		t.Errorf("released as %+v, %v", r, err)
	}
	s.over("a", 0)
	s.are("a1 waiting", "a1")
	s.checks(s.made["a1"])
	s.are("a1 skipped", "a1")
}

// Many whose time is over at once end by few writes of the gate, each with somebody in its way.
func TestG4_ManyWhoHaveWaitedTooLongEndTogether(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.says(forAtMost(1, time.Minute))
	s.comes("a", 0)
	var runs []run.Run
	for n := 1; n <= 80; n++ {
		s.comes("a", n)
		runs = append(runs, s.made[fmt.Sprint("a", n)])
	}
	s.pass(time.Hour, time.Hour)
	s.forget()
	s.checks(runs...)
	gates, reads := 0, 0
	for _, op := range s.forget() {
		switch op {
		case "write gate":
			gates++
		case "query line":
			reads++
		}
	}
	if gates > 4 || reads > 8 {
		t.Errorf("%d writes of the gate and %d reads of the line for the ends of 80 runs", gates, reads)
	}
	for _, r := range runs {
		if r := s.stands(r); r.Why.Code != run.WhyMaxWait || len(r.Why.InTheWay) == 0 {
			t.Errorf("%s is %s for %+v", r.ID, r.State, r.Why)
		}
	}
	if g, places := s.stripeLine(); g.Waiting != 0 || places != 0 {
		t.Errorf("%d wait, and %d places stand", g.Waiting, places)
	}
}

// By deadlines whoever is to have ended first is let in first, and after a change of the order whoever waits keeps its place.
func TestG3_RunsAreLetInByTheirDeadlines(t *testing.T) {
	s := newSeveral(t)
	s.passes("a", job.Overlap{}, nil, use(1))
	s.says(func(n *gate.Named) { n.Def = gate.Definition{Limit: 1, Order: gate.OrderDeadline} })
	by := func(n int, minutes int64) {
		t.Helper()
		s.run("a", n, func(r run.Run) run.Run {
			if minutes > 0 {
				r.EndBy = s.now.UnixMilli() + minutes*60_000
			}
			return r
		})
		if came := s.comes("a", n); n > 0 && came != dispatch.Joined {
			t.Fatalf("%d came to %d", n, came)
		}
	}
	by(0, 0)
	by(1, 0)
	by(2, 60)
	by(3, 30)
	by(4, 0)
	s.wantsAt("[a0]", "[a3 a2 a1 a4]")
	s.says(func(n *gate.Named) { n.Def.Order = "" })
	by(5, 1)
	s.says(func(n *gate.Named) { n.Def.Order = gate.OrderDeadline })
	by(6, 1)
	s.wantsAt("[a0]", "[a3 a2 a1 a4 a5 a6]")
	s.over("a", 0)
	s.over("a", 3)
	s.wantsAt("[a2]", "[a1 a4 a5 a6]")
}

// A check goes by one reading of the clock: a clock that goes back meanwhile, as it may when the host's clock is set, has nobody end for another time, one that it does not have.
func TestG4_AClockThatGoesBackEndsNobodyForAnotherTime(t *testing.T) {
	skipped := 0
	for readings := range 12 {
		s := newSeveral(t)
		s.passes("a", job.Overlap{}, nil, use(1))
		s.says(forAtMost(1, time.Minute))
		s.comes("a", 0)
		s.comes("a", 1)
		until := s.run("a", 1, nil).Wait.Until
		back := s.Now
		read := 0
		s.Now = func() time.Time {
			if read++; read > readings {
				return time.UnixMilli(until)
			}
			return time.UnixMilli(until + 1)
		}
		s.checks(s.made["a1"])
		s.Now = back
		switch r := s.stands(s.made["a1"]); {
		case r.State == run.Skipped && r.Why.Code == run.WhyMaxWait:
			skipped++
		case !r.Waits():
			t.Errorf("where the clock goes back after %d readings it is %s for %+v: %s", readings, r.State, r.Why, r.Reason)
		}
	}
	if skipped == 0 {
		t.Error("it is skipped nowhere")
	}
}
