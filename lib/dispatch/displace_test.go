package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// begins has a run that was let in start, as its worker does.
func (g *gated) begins(r run.Run) run.Run {
	g.t.Helper()
	s := started(g.stands(r))
	s.Placed = true
	return g.write(s)
}

// stops ends an attempt that was asked to stop.
func (g *gated) stops(r run.Run) {
	g.t.Helper()
	ended := g.write(g.stands(r).Cancelled(then, "", run.Limits{Retention: 24 * time.Hour}))
	if err := g.Left(g.t.Context(), ended); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gated) in() (ids []string) {
	at := g.gate()
	for _, e := range at.Entries {
		ids = append(ids, at.Run(e).String())
	}
	return ids
}

// gaveWayTo tells whether a run names another as the one that it has given way to.
func gaveWayTo(r, to run.Run, policy job.OverlapPolicy) bool {
	return r.Why.Code == run.WhyOverlap && r.Why.Gate == "job:report" && r.Why.Policy == string(policy) && slices.Equal(r.Why.InTheWay, []string{to.ID.String()})
}

// Under cancel the one in progress is asked to stop, and the later one starts when it has ended; of those that come meanwhile the latest waits.
func TestG1_G4_Cancel(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapCancel, 1)
	g.define(def)
	runs := g.fires(4)
	var told []string
	g.Cancelled = func(_ string, id run.ID) { told = append(told, id.String()) }
	same(t, "the first comes to", g.enters(def, runs[0]), []dispatch.Entrance{dispatch.Passed})
	g.begins(runs[0])
	for i := 1; i < 4; i++ {
		same(t, fmt.Sprint(i, " comes to"), g.enters(def, runs[i]), []dispatch.Entrance{dispatch.Joined})
		g.sound(runs)
	}
	first := g.stands(runs[0])
	if first.State != run.Running || !first.Cancel || first.Reason != "a later run of the job takes its place" || !gaveWayTo(first, runs[1], job.OverlapCancel) {
		t.Errorf("the first is %s, asked: %v, %q, %+v", first.State, first.Cancel, first.Reason, first.Why)
	}
	same(t, "told", told, []string{runs[0].ID.String()})
	for i := 1; i < 3; i++ {
		if r := g.stands(runs[i]); r.State != run.Skipped || !gaveWayTo(r, runs[i+1], job.OverlapCancel) {
			t.Errorf("%d is %s, for %+v", i, r.State, r.Why)
		}
	}
	same(t, "in progress", g.in(), []string{runs[0].ID.String()})
	g.sent()
	g.stops(runs[0])
	same(t, "sent", g.sent(), []int{3})
	if r := g.stands(runs[0]); r.State != run.Cancelled || !gaveWayTo(r, runs[1], job.OverlapCancel) {
		t.Errorf("the first is %s, for %+v", r.State, r.Why)
	}
	g.sound(runs)
}

// No attempt follows one that was asked to stop, however it ends, and one that is done before that has succeeded.
func TestNoAttemptFollowsARunThatWasAskedToStop(t *testing.T) {
	limits := run.Limits{MaxFailures: 5, MaxCrashes: 3, Retention: time.Hour}
	for name, c := range map[string]struct {
		ends func(run.Run) run.Run
		want run.State
	}{
		"it fails":       {func(r run.Run) run.Run { return r.Fail(then, run.Failure{Error: "no"}, limits) }, run.Cancelled},
		"it crashes":     {func(r run.Run) run.Run { return r.Crash(then, "gone", limits) }, run.Cancelled},
		"it is returned": {func(r run.Run) run.Run { return r.HandBack(then, "", "", limits) }, run.Cancelled},
		"it is done":     {func(r run.Run) run.Run { return r.Succeed(then, run.Ref{}, "", limits) }, run.Succeeded},
	} {
		asked, ok := started(run.Run{ID: run.FireID("report", then), State: run.Queued}).GiveWay(run.Why{Code: run.WhyOverlap, Policy: "cancel"}, then, time.Hour)
		if r := c.ends(asked); !ok || r.State != c.want || (r.State == run.Succeeded) != r.Why.IsZero() || r.Expires == 0 {
			t.Errorf("%s: it is %s, %+v", name, r.State, r.Why)
		}
	}
}

// What has been let in and has not started ends at once when it is asked, and the later one is let in.
func TestG2_CancelOfWhatHasNotStarted(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapCancel, 1)
	g.define(def)
	runs := g.fires(2)
	g.enters(def, runs[0])
	g.sent()
	g.enters(def, runs[1])
	if r := g.stands(runs[0]); r.State != run.Cancelled || !gaveWayTo(r, runs[1], job.OverlapCancel) {
		t.Errorf("the first is %s, for %+v", r.State, r.Why)
	}
	same(t, "sent", g.sent(), []int{1})
	same(t, "in progress", g.in(), []string{runs[1].ID.String()})
	g.sound(runs)
}

// Under replace the one in progress ends by the write by which the later one enters.
func TestG1_G4_Replace(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapReplace, 1)
	g.define(def)
	runs := g.fires(3)
	g.enters(def, runs[0])
	late := g.begins(runs[0])
	for i := 1; i < 3; i++ {
		same(t, fmt.Sprint(i, " comes to"), g.enters(def, runs[i]), []dispatch.Entrance{dispatch.Passed})
		r := g.stands(runs[i-1])
		if r.State != run.Cancelled || !gaveWayTo(r, runs[i], job.OverlapReplace) || r.Reason != "a later run of the job takes its place" {
			t.Errorf("%d is %s, %q, for %+v", i-1, r.State, r.Reason, r.Why)
		}
		same(t, "in progress", g.in(), []string{runs[i].ID.String()})
		g.sound(runs)
	}
	if r := g.stands(runs[0]); len(r.Attempts) != 1 || r.Attempts[0].Outcome != run.OutcomeCancelled || r.Attempts[0].Ended == 0 {
		t.Errorf("its attempt ended as %+v", r.Attempts)
	}
	if _, err := g.PutRun(t.Context(), late.Succeed(then, run.Ref{}, "", run.Limits{}), job.Callbacks{}, then); store.AsConflict(err) == nil {
		t.Errorf("what its worker writes late is refused with %v", err)
	}
}

// What may start at most once and had is unknown when it is replaced; what had not is cancelled.
func TestP5_ReplaceOfARunAtMostOnce(t *testing.T) {
	for _, started := range []bool{false, true} {
		g := newGated(t)
		def := policy(job.OverlapReplace, 1)
		def.Guarantee = job.AtMostOnce
		g.edit(func(j *job.Job) { j.Def.Overlap, j.Def.Guarantee = def.Overlap, def.Guarantee })
		runs := g.fires(2)
		g.enters(def, runs[0])
		want := run.Cancelled
		if started {
			g.begins(runs[0])
			want = run.Unknown
		}
		g.enters(def, runs[1])
		if r := g.stands(runs[0]); r.State != want || !gaveWayTo(r, runs[1], job.OverlapReplace) {
			t.Errorf("started %v: it is %s, for %+v", started, r.State, r.Why)
		}
	}
}

// Messages come in any order: nobody gives way to an earlier one. Of several in progress the earliest gives way.
func TestG4_WhoGivesWayGoesByTheLine(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		g := newGated(t)
		def := policy(p, 2)
		g.define(def)
		runs := g.fires(6)
		for _, i := range []int{4, 1} { // in progress
			g.enters(def, runs[i])
			g.begins(runs[i])
		}
		same(t, "one before both", g.enters(def, runs[0]), []dispatch.Entrance{dispatch.Skipped})
		if r := g.stands(runs[0]); !slices.Equal(r.Why.InTheWay, []string{runs[4].ID.String(), runs[1].ID.String()}) {
			t.Errorf("%s: skipped for %+v", p, r.Why)
		}
		came := g.enters(def, runs[3])[0]
		if first := g.stands(runs[1]); (came == dispatch.Passed) != (p == job.OverlapReplace) || !gaveWayTo(first, runs[3], p) || !first.Cancel && !first.State.Ended() {
			t.Errorf("%s: it comes to %v, and the earliest is %s, for %+v", p, came, first.State, first.Why)
		}
		if later := g.stands(runs[4]); later.State != run.Running || later.Cancel {
			t.Errorf("%s: the later one is %s, asked: %v", p, later.State, later.Cancel)
		}
		same(t, "one before who came", g.enters(def, runs[2]), []dispatch.Entrance{dispatch.Skipped})
		g.sound(runs)
	}
}

// Of several that are in progress and earlier, the earliest gives way, whichever was let in first.
func TestG4_TheEarliestGivesWay(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		g := newGated(t)
		def := policy(p, 3)
		g.define(def)
		runs := g.fires(5)
		for _, i := range []int{2, 1, 3} {
			g.enters(def, runs[i])
			g.begins(runs[i])
		}
		g.enters(def, runs[4])
		for i := 1; i < 4; i++ {
			if r := g.stands(runs[i]); gaveWayTo(r, runs[4], p) != (i == 1) {
				t.Errorf("%s: %d is %s, for %+v", p, i, r.State, r.Why)
			}
		}
		g.sound(runs)
	}
}

// What somebody has opened by hand gives way to nobody, and nobody to it.
func TestG4_WhatWasOpenedByHandWaitsForTheOthers(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		g := newGated(t)
		def := policy(p, 1)
		g.define(def)
		runs := g.fires(4)
		g.enters(def, runs[1])
		g.begins(runs[1])
		by := g.write(g.write(succeeded(runs[0])).Reopen(1, 0, "retried on request").Reopened(g.now.UnixMilli() + 10_000))
		same(t, "opened by hand", g.enters(def, by), []dispatch.Entrance{dispatch.Joined})
		if r := g.stands(runs[1]); r.State != run.Running || r.Cancel {
			t.Errorf("%s: the one in progress is %s, asked: %v", p, r.State, r.Cancel)
		}
		g.sent()
		g.finishes(runs[1])
		same(t, "sent", g.sent(), []int{0})
		g.begins(by)
		later := g.put(30, nil)
		same(t, "one that comes later", g.enters(def, later), []dispatch.Entrance{dispatch.Joined})
		if r := g.stands(by); r.State != run.Running || r.Cancel {
			t.Errorf("%s: it is %s, asked: %v", p, r.State, r.Cancel)
		}
		g.sound(append(runs, later))
	}
}

// finishes ends a run that has started.
func (g *gated) finishes(r run.Run) {
	g.t.Helper()
	ended := g.write(g.stands(r).Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}))
	if err := g.Left(g.t.Context(), ended); err != nil {
		g.t.Fatal(err)
	}
}

// Whoever takes a place fails at any of its operations, or is not told of one that is done, and its message comes again, or its check: the later one holds the place, the earlier
// one has given way to it, and nobody else has.
func TestG1_G2_G4_GivingWaySurvivesWhatFails(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		for _, done := range []bool{false, true} {
			for n := 0; ; n++ {
				g := newGated(t)
				def := policy(p, 1)
				g.define(def)
				runs := g.fires(3)
				g.enters(def, runs[0])
				g.begins(runs[0])
				if p == job.OverlapCancel {
					g.enters(def, runs[1]) // and waits
				}
				at, met := 0, false
				g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
					if at++; at < n+1 {
						return faulty.Fault{}
					}
					met = true
					if at == n+1 && done && strings.HasPrefix(describe(c), "write") {
						return faulty.Fault{Lose: store.ErrUnknown}
					}
					return faulty.Fault{Refuse: errors.New("it has died")}
				})
				_, _ = g.Enter(t.Context(), runs[2], runs[2].ID.Nominal, def)
				g.fail(nil)
				if !met {
					break
				}
				for came := dispatch.Contended; came == dispatch.Contended; {
					came = dispatch.Overtaken
					if r := g.stands(runs[2]); r.State == run.Queued && !r.Waits() {
						came = g.enters(def, r)[0]
					}
				}
				if g.stands(runs[2]).Waits() {
					g.mend(runs[2])
				}
				what := fmt.Sprintf("%s, operation %d, done %v", p, n, done)
				first := g.stands(runs[0])
				if p == job.OverlapReplace {
					if first.State != run.Cancelled || !gaveWayTo(first, runs[2], p) {
						t.Errorf("%s: the first is %s, for %+v", what, first.State, first.Why)
					}
				} else {
					if !first.Cancel || !gaveWayTo(first, runs[1], p) {
						t.Errorf("%s: the first is %s, asked: %v, for %+v", what, first.State, first.Cancel, first.Why)
					}
					if r := g.stands(runs[1]); r.State != run.Skipped || !gaveWayTo(r, runs[2], p) {
						t.Errorf("%s: the one that waited is %s, for %+v", what, r.State, r.Why)
					}
					g.sent()
					g.stops(runs[0])
					same(t, what+": sent", g.sent(), []int{2})
				}
				same(t, what+": in progress", g.in(), []string{runs[2].ID.String()})
				g.sound(runs)
			}
		}
	}
}

// Whoever joined and died before it asked the one in progress is seen to by its check, and that one is asked once.
func TestG2_TheCheckAsksAgain(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapCancel, 1)
	g.define(def)
	runs := g.fires(2)
	g.enters(def, runs[0])
	g.begins(runs[0])
	joined := false
	g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
		if joined {
			return faulty.Fault{Refuse: errors.New("it has died")}
		}
		joined = describe(c) == "write gate"
		return faulty.Fault{}
	})
	_, _ = g.Enter(t.Context(), runs[1], runs[1].ID.Nominal, def)
	g.fail(nil)
	if r := g.stands(runs[0]); r.Cancel || !g.stands(runs[1]).Waits() {
		t.Fatalf("asked: %v", r.Cancel)
	}
	g.mend(runs[1])
	asked := g.stands(runs[0])
	if !asked.Cancel || !gaveWayTo(asked, runs[1], job.OverlapCancel) {
		t.Errorf("asked: %v, for %+v", asked.Cancel, asked.Why)
	}
	g.mend(runs[1])
	if again := g.stands(runs[0]); again.Version != asked.Version {
		t.Errorf("it is asked again, in version %d", again.Version)
	}
}

// A line that another policy has made is no reason to be asked: whoever waits by that goes on waiting, and an edit to cancel asks nobody.
func TestWhoWaitsByAnotherPolicyAsksNobody(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(3)
	g.enters(queueing(1), runs[0])
	g.begins(runs[0])
	g.enters(queueing(1), runs[1])
	def := policy(job.OverlapCancel, 1)
	g.define(def)
	g.mend(runs[1])
	if r := g.stands(runs[0]); r.Cancel {
		t.Error("it was asked to stop for one that waits by queue")
	}
	same(t, "one that comes by cancel", g.enters(def, runs[2]), []dispatch.Entrance{dispatch.Joined})
	if r := g.stands(runs[0]); !r.Cancel || !gaveWayTo(r, runs[2], job.OverlapCancel) {
		t.Errorf("asked: %v, for %+v", r.Cancel, r.Why)
	}
	if r := g.stands(runs[1]); r.State != run.Skipped || !gaveWayTo(r, runs[2], job.OverlapCancel) {
		t.Errorf("who waited is %s, for %+v", r.State, r.Why)
	}
	g.sound(runs)
}

// More than one write takes end in several, and only then does the later one enter.
func TestG1_ReplaceOfManyAfterALowerLimit(t *testing.T) {
	g := newGated(t)
	wide := policy(job.OverlapReplace, 60)
	g.define(wide)
	runs := g.fires(61)
	for _, r := range runs[:60] {
		g.enters(wide, r)
		g.begins(r)
	}
	def := policy(job.OverlapReplace, 1)
	g.define(def)
	came := dispatch.Contended
	for n := 0; came == dispatch.Contended && n < 10; n++ {
		came = g.enters(def, g.stands(runs[60]))[0]
	}
	same(t, "it comes to", came, dispatch.Passed)
	same(t, "in progress", g.in(), []string{runs[60].ID.String()})
	for i, r := range runs[:60] {
		if s := g.stands(r); s.State != run.Cancelled {
			t.Errorf("%d is %s", i, s.State)
		}
	}
}

// Nobody is ended for a run that was cancelled meanwhile: its worker believes it to be queued still.
func TestG4_NobodyIsEndedForARunThatWasCancelledMeanwhile(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapReplace, 1)
	g.define(def)
	runs := g.fires(2)
	g.enters(def, runs[0])
	g.begins(runs[0])
	cancelled, _ := runs[1].AskCancel(then, "no longer needed", time.Hour)
	g.write(cancelled)
	same(t, "it comes to", g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Overtaken})
	if r := g.stands(runs[0]); r.State != run.Running {
		t.Errorf("the one in progress is %s, for %+v", r.State, r.Why)
	}
}

// atOnce has runs enter in one group, behind one that holds a place already, and gives what they came to.
func (g *gated) atOnce(holder run.Run, by func(run.Run) job.Definition, runs ...run.Run) []dispatch.Entrance {
	g.t.Helper()
	read, going := make(chan struct{}), make(chan struct{})
	first := true
	g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
		if first && describe(c) == "get gate" { // that of the holder: the others come together behind it
			first = false
			close(read)
			<-going
		}
		return faulty.Fault{}
	})
	defer g.fail(nil)
	var group sync.WaitGroup
	enters := func(r run.Run, came *dispatch.Entrance) {
		group.Go(func() {
			var err error
			if *came, err = g.Enter(context.Background(), r, r.ID.Nominal, by(r)); err != nil {
				g.t.Error(err)
			}
		})
	}
	came := make([]dispatch.Entrance, len(runs)+1)
	enters(g.stands(holder), &came[len(runs)])
	<-read
	for i, r := range runs {
		enters(r, &came[i])
	}
	for dispatch.Wanting(g.Dispatcher, gate.Own("default", "report")) < len(runs) {
		runtime.Gosched()
	}
	close(going)
	group.Wait()
	same(g.t, "who holds a place comes to", came[len(runs)], dispatch.Passed)
	return came[:len(runs)]
}

// Runs of two definitions want in at once beside one in progress: the earlier goes by skip, and the later by replace. So does an edit between their claims.
func TestG1_G4_RunsOfTwoDefinitionsAtOnce(t *testing.T) {
	g := newGated(t)
	before, def := policy(job.OverlapSkip, 1), policy(job.OverlapReplace, 1)
	g.define(def)
	runs := g.fires(3)
	g.enters(before, runs[0])
	g.begins(runs[0])
	came := g.atOnce(runs[0], func(r run.Run) job.Definition {
		if r.ID == runs[1].ID {
			return before
		}
		return def
	}, runs[1], runs[2])
	same(t, "they come to", came, []dispatch.Entrance{dispatch.Skipped, dispatch.Passed})
	if r := g.stands(runs[0]); r.State != run.Cancelled || !gaveWayTo(r, runs[2], job.OverlapReplace) {
		t.Errorf("who was in progress is %s, for %+v", r.State, r.Why)
	}
	same(t, "in progress", g.in(), []string{runs[2].ID.String()})
}

// What a write of the store holds bounds how many are skipped and ended by one, whatever their job asks for with an end: those that an earlier policy left waiting, those that a lower
// limit left in progress, and both.
func TestG1_G4_ReplaceOfWhatAnEarlierPolicyLeft(t *testing.T) {
	call := &job.Callback{Job: "report"}
	for name, c := range map[string]struct {
		limit, waiting int // of before
		guarantee      job.Guarantee
		on             job.Callbacks
		ends           run.State
	}{
		"a line that just fits, and a lower limit":  {5, 47, job.AtLeastOnce, job.Callbacks{}, run.Cancelled},
		"a long line and a lower limit":             {5, 48, job.AtLeastOnce, job.Callbacks{}, run.Cancelled},
		"a long line, and an end with a callback":   {1, 48, job.AtMostOnce, job.Callbacks{Failed: call, Recovered: call}, run.Unknown},
		"ends that say the same of their job":       {3, 0, job.AtMostOnce, job.Callbacks{Recovered: call}, run.Unknown},
		"a long line, and many ends with callbacks": {25, 60, job.AtMostOnce, job.Callbacks{Failed: call, Recovered: call}, run.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			before, def := queueing(c.limit), policy(job.OverlapReplace, 1)
			g.edit(func(j *job.Job) { j.Def.Overlap, j.Def.Guarantee, j.Def.On = before.Overlap, c.guarantee, c.on })
			runs := g.fires(c.limit + c.waiting + 1)
			last := runs[len(runs)-1]
			for i, r := range runs[:len(runs)-1] {
				g.enters(before, r)
				if i < c.limit {
					g.begins(r)
				}
			}
			g.define(def)
			came := dispatch.Contended
			for n := 0; came == dispatch.Contended && n < 10; n++ {
				var err error
				if came, err = g.Enter(t.Context(), g.stands(last), last.ID.Nominal, def); err != nil {
					t.Fatal(err)
				}
			}
			comes := dispatch.Passed
			if strings.HasPrefix(name, "a long line") { // it joins first, so that it waits in the place of those that it skips
				comes = dispatch.Joined
			}
			same(t, "it comes to", came, comes)
			same(t, "in progress", g.in(), []string{last.ID.String()})
			for i, r := range runs[:len(runs)-1] {
				want := c.ends
				if i >= c.limit {
					want = run.Skipped
				}
				if s := g.stands(r); s.State != want || !gaveWayTo(s, last, job.OverlapReplace) {
					t.Errorf("%d is %s, for %+v", i, s.State, s.Why)
				}
			}
			g.sound(runs)
		})
	}
}

// Under replace nobody waits for a run that hangs, also where a run that was opened by hand waits before: who is in progress ends for the later one, and the other starts first.
func TestG2_G4_ReplaceBehindARunThatWasOpenedByHand(t *testing.T) {
	for _, asked := range []bool{false, true} {
		g := newGated(t)
		def := policy(job.OverlapReplace, 1)
		g.define(def)
		runs := g.fires(2)
		g.enters(def, runs[1])
		g.begins(runs[1])
		if asked { // by somebody, and it goes on
			cancel, _ := g.stands(runs[1]).AskCancel(then, "no longer needed", time.Hour)
			g.write(cancel)
		}
		by := g.write(g.write(succeeded(runs[0])).Reopen(1, 0, "retried on request").Reopened(g.now.UnixMilli() + 10_000))
		g.enters(def, by)
		if r := g.stands(runs[1]); r.State != run.Running {
			t.Errorf("for the one opened by hand it is %s", r.State)
		}
		g.sent()
		later := g.put(30, nil)
		same(t, "one that comes later", g.enters(def, later), []dispatch.Entrance{dispatch.Joined})
		if r := g.stands(runs[1]); r.State != run.Cancelled || !gaveWayTo(r, later, job.OverlapReplace) {
			t.Errorf("the one in progress is %s, for %+v", r.State, r.Why)
		}
		same(t, "sent", g.sent(), []int{0})
		same(t, "in progress", g.in(), []string{by.ID.String()})
		g.begins(by)
		g.finishes(by)
		same(t, "sent", g.sent(), []int{30})
		g.sound([]run.Run{runs[0], runs[1], later})
	}
}

// before does something between the decision over a write of a run and the write, once.
func (g *gated) before(of run.Run, act func()) {
	g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
		if c.Method != faulty.Write && c.Method != faulty.WriteEach || !slices.ContainsFunc(c.Ops, func(op store.Op) bool { return op.Key == of.ID.Key(of.Tenant) && op.Kind == store.Put }) {
			return faulty.Fault{}
		}
		g.hook = nil
		g.mu.Unlock()
		defer g.mu.Lock()
		act()
		return faulty.Fault{}
	})
}

// Nobody is asked to stop for a run that has left the line meanwhile, or was let in.
func TestG4_NobodyIsAskedForARunThatWaitsNoLonger(t *testing.T) {
	for name, leaves := range map[string]func(g *gated, waits run.Run){
		"it was cancelled": func(g *gated, waits run.Run) {
			cancelled, _ := g.stands(waits).AskCancel(then, "no longer needed", time.Hour)
			g.write(cancelled)
		},
		"it was let in": func(g *gated, _ run.Run) {
			g.define(policy(job.OverlapCancel, 2))
			other, err := dispatch.New(g.Config) // another process
			if err == nil {
				err = other.LetIn(g.t.Context(), gate.Own("default", "report"))
			}
			if err != nil {
				g.t.Error(err)
			}
		},
	} {
		g := newGated(t)
		def := policy(job.OverlapCancel, 1)
		g.define(def)
		runs := g.fires(2)
		g.enters(def, runs[0])
		g.begins(runs[0])
		g.before(runs[0], func() { leaves(g, runs[1]) })
		g.enters(def, runs[1])
		if r := g.stands(runs[0]); r.Cancel {
			t.Errorf("%s: the one in progress was asked to stop, for %+v", name, r.Why)
		}
	}
}

// As many are asked to stop as it takes, and no more, also where somebody leaves between the decision and the write: another is let in then, before the one that asks.
func TestG4_NoMoreAreAskedThanItTakes(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapCancel, 3)
	g.define(def)
	runs := g.fires(6)
	byHand := func(r run.Run) run.Run {
		return g.write(g.write(succeeded(r)).Reopen(1, 0, "retried on request").Reopened(g.now.UnixMilli() + 10_000))
	}
	first := byHand(runs[0])
	for _, r := range []run.Run{first, runs[2], runs[3]} {
		same(t, "in progress", g.enters(def, r), []dispatch.Entrance{dispatch.Passed})
		g.begins(r)
	}
	waits := byHand(runs[1])
	g.enters(def, waits)
	other, err := dispatch.New(g.Config) // another process
	if err != nil {
		t.Fatal(err)
	}
	g.before(runs[2], func() {
		ended := g.write(g.stands(first).Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}))
		if err := other.Left(t.Context(), ended); err != nil {
			t.Error(err)
		}
	})
	later := g.put(30, nil)
	same(t, "a later one", g.enters(def, later), []dispatch.Entrance{dispatch.Joined})
	if r := g.stands(waits); r.Waits() {
		t.Error("the one that was opened by hand waits still")
	}
	if a, b := g.stands(runs[2]), g.stands(runs[3]); !gaveWayTo(a, later, job.OverlapCancel) || b.Cancel {
		t.Errorf("the earlier one gives way to %+v, and the other was asked: %v", a.Why, b.Cancel)
	}
	g.sound(append(runs, later))
}

// Who was let in from the front of a line in a pause comes when it was made: nobody takes it for the earliest of all.
func TestG4_WhoIgnoredAPauseIsRankedByItsTime(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		g := newGated(t)
		def := policy(p, 2)
		g.define(def)
		runs := g.fires(2)
		for _, r := range runs {
			g.enters(def, r)
			g.begins(r)
		}
		g.edit(func(j *job.Job) { j.Def.Paused = true })
		ignores := g.put(20, func(r run.Run) run.Run { r.IgnorePause = true; return r })
		same(t, "one that ignores the pause", g.enters(def, ignores), []dispatch.Entrance{dispatch.Joined})
		g.finishes(runs[0])
		g.begins(ignores)
		g.edit(func(j *job.Job) { j.Def.Paused = false })
		later := g.put(30, nil)
		g.enters(def, later)
		if r := g.stands(runs[1]); !gaveWayTo(r, later, p) {
			t.Errorf("%s: the earliest is %s, for %+v", p, r.State, r.Why)
		}
		if r := g.stands(ignores); r.State != run.Running || r.Cancel {
			t.Errorf("%s: who ignored the pause is %s, asked: %v", p, r.State, r.Cancel)
		}
		g.sound(append(runs, ignores, later))
	}
}

// A lower limit has left an earlier and a later run in progress: one that comes between them is skipped for the later one, and nobody gives way to it.
func TestG4_BetweenThoseThatALowerLimitHasLeft(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		g := newGated(t)
		wide := policy(p, 2)
		g.define(wide)
		runs := g.fires(3)
		for _, i := range []int{0, 2} {
			g.enters(wide, runs[i])
			g.begins(runs[i])
		}
		def := policy(p, 1)
		g.define(def)
		same(t, string(p), g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Skipped})
		if r := g.stands(runs[1]); !slices.Equal(r.Why.InTheWay, []string{runs[2].ID.String()}) {
			t.Errorf("%s: skipped for %+v", p, r.Why)
		}
		if r := g.stands(runs[0]); r.State != run.Running || r.Cancel {
			t.Errorf("%s: the earlier one is %s, asked: %v", p, r.State, r.Cancel)
		}
	}
}

// A pause that comes upon a run which is on its way holds it: nobody gives way to it before the job is resumed.
func TestG4_NobodyGivesWayInAPause(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		g := newGated(t)
		def := policy(p, 1)
		g.define(def)
		runs := g.fires(2)
		g.enters(def, runs[0])
		g.begins(runs[0])
		g.edit(func(j *job.Job) { j.Def.Paused = true })
		same(t, string(p), g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Joined})
		g.mend(runs[1])
		if r := g.stands(runs[0]); r.State != run.Running || r.Cancel {
			t.Errorf("%s: in the pause it is %s, asked: %v", p, r.State, r.Cancel)
		}
		g.sent()
		g.edit(func(j *job.Job) { j.Def.Paused = false })
		if err := g.LetIn(t.Context(), gate.Own("default", "report")); err != nil {
			t.Fatal(err)
		}
		if p == job.OverlapCancel {
			g.stops(runs[0])
		}
		if r := g.stands(runs[0]); r.State != run.Cancelled || !gaveWayTo(r, runs[1], p) {
			t.Errorf("%s: after the pause it is %s, for %+v", p, r.State, r.Why)
		}
		same(t, string(p)+": sent", g.sent(), []int{1})
		g.sound(runs)
	}
}

// With a key, runs of the same value give way to one another, and say which it is: also those that have entered and not started.
func TestG4_GivingWayByAKey(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		for _, begun := range []bool{false, true} {
			g := newGated(t)
			e := g.keyedBy("${ .payload.customer }")
			def := e.Def
			def.Overlap.Policy = p
			g.define(def)
			var runs []run.Run
			for n, v := range []string{"acme", "other", "acme"} {
				r, ok, err := g.Keyed(t.Context(), g.put(n, bringing(fmt.Sprintf(`{"customer": %q}`, v))), e)
				if !ok || err != nil {
					t.Fatal(err)
				}
				runs = append(runs, r)
				if g.enters(def, r); begun && n == 0 {
					s := started(g.stands(r))
					s.Placed, s.GateKey = true, r.GateKey
					g.write(s)
				}
			}
			if p == job.OverlapCancel && begun {
				g.stops(runs[0])
			}
			what := fmt.Sprintf("%s, begun %v", p, begun)
			if r := g.stands(runs[0]); r.State != run.Cancelled || !gaveWayTo(r, runs[2], p) || r.GateKey != gate.KeyOf("acme") {
				t.Errorf("%s: it is %s at %q, for %+v", what, r.State, r.GateKey, r.Why)
			}
			if r := g.stands(runs[1]); r.State != run.Queued || r.Cancel || r.Waits() {
				t.Errorf("%s: that of another value is %s", what, r.Stage())
			}
			if r := g.stands(runs[2]); r.Waits() || r.State != run.Queued {
				t.Errorf("%s: the later one is %s", what, r.Stage())
			}
		}
	}
}

// What follows from an end is seen to though the worker is stopped in the moment in which it is written, and though it cannot be read any more: it is counted, and whoever it calls is called.
func TestWhatFollowsFromARunThatIsReplaced(t *testing.T) {
	for _, unread := range []bool{false, true} {
		g := newGated(t)
		def := policy(job.OverlapReplace, 1)
		g.edit(func(j *job.Job) {
			j.Def.Overlap, j.Def.Guarantee, j.Def.On = def.Overlap, job.AtMostOnce, job.Callbacks{Failed: &job.Callback{Job: "report"}}
		})
		var told []string
		g.Cancelled = func(_ string, id run.ID) { told = append(told, id.String()) }
		runs := g.fires(2)
		g.enters(def, runs[0])
		g.begins(runs[0])
		ctx, stop := context.WithCancel(t.Context())
		g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
			switch {
			case ctx.Err() == nil && slices.ContainsFunc(c.Ops, func(op store.Op) bool { return op.Key == runs[0].ID.Key("default") && op.Kind == store.Put }):
				stop()
			case ctx.Err() != nil && unread && slices.Contains(c.Keys, runs[0].ID.Key("default")):
				return faulty.Fault{Refuse: errors.New("it cannot be read")}
			}
			return faulty.Fault{}
		})
		_, err := g.Enter(ctx, runs[1], runs[1].ID.Nominal, def)
		g.fail(nil)
		if r := g.stands(runs[0]); err != nil || r.State != run.Unknown {
			t.Fatalf("it is %s, %v", r.State, err)
		}
		called := g.sent()
		same(t, fmt.Sprintf("unread %v: callbacks sent", unread), len(called), 1)
		if !unread {
			same(t, "told", told, []string{runs[0].ID.String()})
		}
	}
}

// A run between two attempts gives way at once: its next attempt never comes.
func TestG4_WhoWaitsForItsNextAttemptGivesWay(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		g := newGated(t)
		def := policy(p, 1)
		g.define(def)
		runs := g.fires(2)
		g.enters(def, runs[0])
		g.write(g.begins(runs[0]).Fail(then, run.Failure{Error: "no", NextAt: then + 5000}, run.Limits{MaxFailures: 3}))
		if r := g.stands(runs[0]); r.State != run.Retrying {
			t.Fatalf("it is %s", r.State)
		}
		g.sent()
		g.enters(def, runs[1])
		if r := g.stands(runs[0]); r.State != run.Cancelled || !gaveWayTo(r, runs[1], p) || len(r.Attempts) != 1 || r.Attempts[0].Outcome != run.OutcomeFailed {
			t.Errorf("%s: it is %s, for %+v, after %+v", p, r.State, r.Why, r.Attempts)
		}
		same(t, string(p)+": in progress", g.in(), []string{runs[1].ID.String()})
		g.sound(runs)
	}
}

// Runs that come at once take a place each, as they would one after the other: by replace the newest three of six are in progress then.
func TestG4_SeveralAtOnceReplaceOneEach(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapReplace, 3)
	g.define(def)
	runs := g.fires(7)
	for _, r := range runs[:3] {
		g.enters(def, r)
		g.begins(r)
	}
	came := g.atOnce(runs[2], func(run.Run) job.Definition { return def }, runs[3:]...)
	same(t, "they come to", came, []dispatch.Entrance{dispatch.Skipped, dispatch.Passed, dispatch.Passed, dispatch.Passed})
	for i, by := range []int{6, 5, 4} {
		if r := g.stands(runs[i]); r.State != run.Cancelled || !gaveWayTo(r, runs[by], job.OverlapReplace) {
			t.Errorf("%d is %s, for %+v", i, r.State, r.Why)
		}
	}
	if r := g.stands(runs[3]); len(r.Why.InTheWay) != 3 {
		t.Errorf("the earliest of those that came is skipped for %+v", r.Why)
	}
	same(t, "in progress", len(g.in()), 3)
	g.sound(runs)
}

// Nobody gives way to a run that does not start any more: one that is too late by the time that a pause is over, or whose job was deleted and made anew since.
func TestG4_NobodyGivesWayToARunThatIsNotLetInAnyMore(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		for name, passes := range map[string]func(g *gated){
			"it is too late":      func(g *gated) { g.pass(5*time.Minute, 5*time.Minute) },
			"its job was deleted": func(g *gated) { g.edit(func(j *job.Job) { j.Generation, j.Born = 5, 3 }) },
		} {
			g := newGated(t)
			def := policy(p, 1)
			g.define(def)
			runs := []run.Run{g.put(0, nil), g.lasting(1, time.Minute)}
			g.enters(def, runs[0])
			g.begins(runs[0])
			g.edit(func(j *job.Job) { j.Def.Paused = true })
			same(t, string(p), g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Joined})
			passes(g)
			g.edit(func(j *job.Job) { j.Def.Paused = false })
			if err := g.LetIn(t.Context(), gate.Own("default", "report")); err != nil {
				t.Fatal(err)
			}
			if r := g.stands(runs[0]); r.State != run.Running || r.Cancel {
				t.Errorf("%s, %s: the one in progress is %s, asked: %v, for %+v", p, name, r.State, r.Cancel, r.Why)
			}
		}
	}
}

// A run that is on its way while its job is deleted, and made anew, ends nobody: it does not start.
func TestG4_NobodyEndsForARunOfADeletedJob(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapReplace, 1)
	g.define(def)
	runs := g.fires(2)
	g.enters(def, runs[0])
	g.begins(runs[0])
	g.edit(func(j *job.Job) { j.Deleted = true })
	g.enters(def, runs[1])
	if r := g.stands(runs[0]); r.State != run.Running {
		t.Errorf("the one in progress is %s, for %+v", r.State, r.Why)
	}
	if r := g.stands(runs[1]); r.State != run.Cancelled {
		t.Errorf("the later one is %s", r.State)
	}
}

// A gate forgets that one that waits asks others to stop once nobody does: who looks at it after that reads its line no more than at any other.
func TestWhoAskedHasLeftTheLine(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapCancel, 1)
	g.define(def)
	runs := g.fires(2)
	g.enters(def, runs[0])
	g.begins(runs[0])
	g.enters(def, runs[1])
	by := g.write(g.write(succeeded(g.put(5, nil))).Reopen(1, 0, "retried on request").Reopened(g.now.UnixMilli() + 10_000))
	g.enters(def, by)
	cancelled, _ := g.stands(runs[1]).AskCancel(then, "no longer needed", time.Hour)
	was := g.stands(runs[1])
	g.write(cancelled)
	if err := g.Left(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	same(t, "wait", g.places(), 1)
	for range 2 {
		g.forget()
		if err := g.LetIn(t.Context(), gate.Own("default", "report")); err != nil {
			t.Fatal(err)
		}
	}
	if at := g.gate(); at.Asks {
		t.Errorf("the gate says that somebody asks")
	}
	if ops := g.forget(); slices.ContainsFunc(ops, func(op string) bool { return strings.HasPrefix(op, "query") }) {
		t.Errorf("asked of the store: %v", ops)
	}
}

// Beside a named gate: what a run has there is free when it gives way, before the later one asks for it. Who waits there holds its place at the own gate, gives way like any other, and leaves the line.
func TestG1_G2_G4_GivingWayBesideANamedGate(t *testing.T) {
	for _, p := range []job.OverlapPolicy{job.OverlapCancel, job.OverlapReplace} {
		s := newSeveral(t)
		s.passes("a", job.Overlap{Policy: p, Limit: 1}, nil, use(1))
		s.passes("b", job.Overlap{}, nil, use(1))
		s.says(limited(1))
		own := func(want string) {
			t.Helper()
			in, _ := s.whoAt(gate.Own("default", "a"))
			same(t, string(p)+": in progress at its own gate", in, want)
		}
		gave := func(n, to int) {
			t.Helper()
			r := s.run("a", n, nil)
			if r.State != run.Cancelled || r.Why.Policy != string(p) || !slices.Equal(r.Why.InTheWay, []string{s.run("a", to, nil).ID.String()}) {
				t.Errorf("%s: %d is %s, for %+v", p, n, r.State, r.Why)
			}
		}
		same(t, "the first", s.comes("a", 0), dispatch.Passed)
		begun := started(s.keyed(s.run("a", 0, nil)))
		begun.Placed, begun.NamedGates = true, true
		s.write(begun)
		same(t, "one of another job", s.comes("b", 1), dispatch.Joined)
		same(t, "a later one", s.comes("a", 2), dispatch.Joined) // under cancel at its own gate, under replace at the other
		if p == job.OverlapCancel {
			s.gated.stops(s.run("a", 0, nil))
			s.wantsAt("[b1]", "[]")
			same(t, "the later one, let in", s.comes("a", 2), dispatch.Joined)
		}
		gave(0, 2)
		own("[a2]")
		s.wantsAt("[b1]", "[a2]")
		s.comes("a", 3) // for which the one that waits at the other gate ends
		gave(2, 3)
		own("[a3]")
		if p == job.OverlapCancel { // it was let in
			s.wantsAt("[b1]", "[]")
			same(t, "the last, let in", s.comes("a", 3), dispatch.Joined)
		}
		s.wantsAt("[b1]", "[a3]")
		s.over("b", 1)
		s.wantsAt("[a3]", "[]")
		same(t, "the last, let in at both", s.comes("a", 3), dispatch.Passed)
	}
}
