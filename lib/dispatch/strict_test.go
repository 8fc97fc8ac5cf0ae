package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// strictly is a job that is strict since a generation.
func strictly(since int64) job.Definition {
	return job.Definition{Overlap: job.Overlap{Policy: job.OverlapStrict, Limit: 1, Since: since}}.WithDefaults()
}

// fails ends a run badly, as it stands, and tells its gate.
func (g *gated) fails(r run.Run, tell bool) run.Run {
	g.t.Helper()
	s := started(g.stands(r))
	s.Placed = true
	ended := g.write(s.Fail(then, run.Failure{Error: "no", Permanent: true}, run.Limits{Retention: 24 * time.Hour}))
	if tell {
		if err := g.Left(g.t.Context(), ended); err != nil {
			g.t.Fatal(err)
		}
	}
	return ended
}

// reopens opens a run again, with what keeps its place in the same write.
func (g *gated) reopens(r run.Run, j job.Job) (run.Run, error) {
	g.t.Helper()
	was := g.stands(r)
	next := was.Reopen(j.Generation, 0, "retried on request").Reopened(then)
	next, keep, err := g.KeepPlace(g.t.Context(), was, next, j)
	if err != nil {
		return run.Run{}, err
	}
	op, err := next.Item(g.NewID())
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := g.Write(g.t.Context(), append([]store.Op{op}, keep...)...); err != nil {
		return run.Run{}, err
	}
	return g.stands(r), nil
}

func (g *gated) job() job.Job {
	g.t.Helper()
	j, err := g.Book.Job(g.t.Context(), "default", "report")
	if err != nil {
		g.t.Fatal(err)
	}
	return j
}

var own = gate.Own("default", "report")

// After a run that ended badly nobody is let in: not when it ends, not by a check, and not who comes later. Its retry holds its place, and lets the line go on when it succeeds.
func TestG3_StrictStandsStill(t *testing.T) {
	for name, told := range map[string]bool{"its gate is told of the end": true, "nobody is": false} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			def := strictly(1)
			g.define(def)
			runs := g.fires(4)
			same(t, "they come to", g.enters(def, runs[:3]...), []dispatch.Entrance{dispatch.Passed, dispatch.Joined, dispatch.Joined})
			g.begins(runs[0])
			g.sent()
			g.fails(runs[0], told)
			g.mend(runs[1], runs[2])
			same(t, "a later one comes to", g.enters(def, runs[3]), []dispatch.Entrance{dispatch.Joined})
			same(t, "who waits", g.waits(runs), []int{1, 2, 3})
			same(t, "sent", g.sent(), []int64(nil))
			if at := g.gate(); len(at.Entries) != 1 || at.Entries[0].Strict != 1 {
				t.Errorf("the gate has %+v", at.Entries)
			}
			again, err := g.reopens(runs[0], g.job())
			if err != nil {
				t.Fatal(err)
			}
			g.mend(runs[1], runs[2])
			same(t, "who waits for the retry", g.waits(runs), []int{1, 2, 3})
			same(t, "the retry comes to", g.enters(def, again), []dispatch.Entrance{dispatch.Passed})
			g.sent()
			g.ends(again)
			same(t, "sent behind it", g.sent(), []int64{1})
			same(t, "who waits then", g.waits(runs), []int{2, 3})
			g.sound(runs)
		})
	}
}

// A run that was cancelled, skipped or has succeeded is in nobody's way, however it is said.
func TestG2_StrictGoesOnBehindAnEndThatIsNotBad(t *testing.T) {
	for name, end := range map[string]func(run.Run) run.Run{
		"it succeeded":     func(r run.Run) run.Run { return r.Succeed(then, run.Ref{}, "", run.Limits{Retention: time.Hour}) },
		"it was cancelled": func(r run.Run) run.Run { return r.Cancelled(then, "", run.Limits{Retention: time.Hour}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			def := strictly(1)
			g.define(def)
			runs := g.fires(2)
			g.enters(def, runs...)
			s := g.begins(runs[0])
			g.sent()
			if err := g.Left(t.Context(), g.write(end(s))); err != nil {
				t.Fatal(err)
			}
			same(t, "sent", g.sent(), []int64{1})
			g.sound(runs)
		})
	}
}

// Edits: what ended badly before its job was strict is in nobody's way, nor what did once it is not, though it is strict anew.
func TestG2_EditsOfStrict(t *testing.T) {
	since := func(n int64) job.Overlap { return strictly(n).Overlap }
	for name, row := range map[string]struct {
		entered, edited job.Overlap
		stands          bool
	}{
		"still strict":      {since(1), since(1), true},
		"queue from now on": {since(1), queueing(1).Overlap, false},
		"strict since then": {queueing(1).Overlap, since(2), false},
		"strict anew":       {since(1), since(3), false},
		"no limit any more": {since(1), job.Overlap{}, false},
		"replace since":     {since(1), job.Overlap{Policy: job.OverlapReplace, Limit: 1}, false},
	} {
		for _, waits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, one waits: %v", name, waits), func(t *testing.T) {
				g := newGated(t)
				def := job.Definition{Overlap: row.entered}.WithDefaults()
				g.define(def)
				runs := g.fires(3)
				g.enters(def, runs[0])
				g.begins(runs[0])
				g.fails(runs[0], true)
				if waits && row.entered.StrictSince() != 0 {
					same(t, "it comes to", g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Joined})
				}
				g.sent()
				edited := job.Definition{Overlap: row.edited}.WithDefaults()
				g.edit(func(j *job.Job) { j.Generation, j.Def = j.Generation+1, edited })
				if err := g.LetIn(t.Context(), own); err != nil {
					t.Fatal(err)
				}
				if waits && row.entered.StrictSince() != 0 {
					same(t, "it waits", len(g.waits(runs)) == 1, row.stands)
					return
				}
				if row.edited.IsZero() {
					return // it enters nothing
				}
				want := dispatch.Passed
				if row.stands {
					want = dispatch.Joined
				}
				same(t, "a later one comes to", g.enters(edited, runs[2]), []dispatch.Entrance{want})
			})
		}
	}
}

// A claim of an older definition does not pass by a run that holds up the line, whatever its policy was.
func TestG3_StrictHoldsForClaimsOfBefore(t *testing.T) {
	for _, before := range []job.OverlapPolicy{job.OverlapQueue, job.OverlapCancel, job.OverlapReplace, job.OverlapQueueLatest} {
		t.Run(string(before), func(t *testing.T) {
			g := newGated(t)
			def := strictly(1)
			g.define(def)
			runs := g.fires(2)
			g.enters(def, runs[0])
			g.begins(runs[0])
			g.fails(runs[0], true)
			same(t, "it comes to", g.enters(policy(before, 1), runs[1]), []dispatch.Entrance{dispatch.Joined})
			g.mend(runs[1])
			same(t, "who waits", g.waits(runs), []int{1})
			if r := g.stands(runs[0]); r.State != run.Failed {
				t.Errorf("the run that failed is %s", r.State)
			}
		})
	}
}

// A run that is gone, or was deleted with its job, holds up nobody.
func TestG2_StrictBehindWhatIsGone(t *testing.T) {
	for name, gone := range map[string]func(*gated, run.Run){
		"its record": func(g *gated, r run.Run) {
			if _, err := g.Write(g.t.Context(), store.Op{Kind: store.Delete, Key: r.ID.Key("default"), If: store.Any}); err != nil {
				g.t.Fatal(err)
			}
		},
		"its job, which was made anew": func(g *gated, r run.Run) {
			g.edit(func(j *job.Job) { j.Generation += 2; j.Born, j.Def = j.Generation, strictly(j.Generation) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			def := strictly(1)
			g.define(def)
			runs := g.fires(2)
			g.enters(def, runs[0])
			g.begins(runs[0])
			g.fails(runs[0], true)
			gone(g, runs[0])
			same(t, "a later one comes to", g.enters(strictly(g.job().Def.Overlap.Since), runs[1]), []dispatch.Entrance{dispatch.Passed})
		})
	}
}

// What was given up before it had entered holds up nobody.
func TestG2_StrictBehindWhatNeverEntered(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	g.define(def)
	runs := g.fires(2)
	dead := g.write(g.stands(runs[0]).GiveUp(then, "no worker survives it", run.Limits{Retention: time.Hour}))
	if err := g.Left(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	same(t, "a later one comes to", g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Passed})
}

// Somebody lets the line go on: behind the run that is meant alone, and once.
func TestG2_ALineGoesOn(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	g.define(def)
	runs := g.fires(3)
	g.enters(def, runs...)
	if _, err := g.GoOn(t.Context(), own, run.ID{}, 0, "on-call", ""); !errors.Is(err, dispatch.ErrNotStanding) {
		t.Errorf("while it goes on: %v", err)
	}
	g.begins(runs[0])
	g.fails(runs[0], true)
	g.sent()
	if let, err := g.GoOn(t.Context(), own, runs[1].ID, 0, "on-call", ""); !errors.Is(err, dispatch.ErrNotBlocking) || len(let) != 1 || let[0].ID != runs[0].ID {
		t.Errorf("for another run: %v, %v", let, err)
	}
	same(t, "sent before", g.sent(), []int64(nil))
	for range 2 { // the answer to the first is lost
		if _, err := g.GoOn(t.Context(), own, runs[0].ID, 0, "on-call", "made up by hand"); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "sent", g.sent(), []int64{1})
	let := g.gate().LetGo
	if let.Change.By != "on-call" || let.Change.Reason != "made up by hand" || let.Change.At == 0 || len(let.Runs) != 1 || let.Runs[0] != runs[0].ID.String() {
		t.Errorf("the gate says %+v", let)
	}
	again, err := g.reopens(runs[0], g.job())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "its retry comes to", g.enters(def, again), []dispatch.Entrance{dispatch.Joined})
	g.sound(runs)
}

// A retry keeps its place although its claim is taken away, as of a request that had not started, and given again.
func TestG3_ARetryKeepsItsPlaceThroughAnEdit(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	g.define(def)
	runs := g.fires(2)
	first := run.Run{ID: run.ID{Job: "report", Nominal: runs[0].ID.Nominal, Random: "0000000000zzz"}, Tenant: "default", State: run.Queued, Generation: 1, Trigger: run.ByRequest}
	op, err := first.Item(g.NewID())
	if err == nil {
		_, err = g.Write(t.Context(), op)
	}
	if err != nil {
		t.Fatal(err)
	}
	first = g.stands(first)
	g.enters(def, first, runs[1])
	dead := g.write(g.stands(first).GiveUp(then, "no worker survives it", run.Limits{Retention: time.Hour}))
	dead.Placed = true
	if err := g.Left(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	same(t, "who waits", g.waits(runs), []int{1})
	again, err := g.reopens(first, g.job()) // its place with it
	if err != nil {
		t.Fatal(err)
	}
	held, ok := again.Unbind(again.Generation + 1)
	if !ok {
		t.Fatal("its claim was not taken away")
	}
	held = g.write(held)
	g.mend(runs[1])
	same(t, "who waits while it is held", g.waits(runs), []int{1})
	claimed, verdict := held.Claim(run.Claim{Generation: held.Generation, Trigger: run.ByRequest, Run: held, Now: then})
	if verdict != run.Claimed {
		t.Fatal(verdict)
	}
	same(t, "it comes to", g.enters(def, g.write(claimed)), []dispatch.Entrance{dispatch.Passed})
	g.sent()
	g.ends(claimed)
	same(t, "sent", g.sent(), []int64{1})
}

// Each write of a line that stands still fails, before it is done or behind it: nobody passes, and nobody is forgotten.
func TestG2_G3_StrictSurvivesWhatFails(t *testing.T) {
	for _, kept := range []bool{false, true} {
		for n := range 12 {
			t.Run(fmt.Sprintf("%d, done: %v", n, kept), func(t *testing.T) {
				g := newGated(t)
				def := strictly(1)
				g.define(def)
				runs := g.fires(2)
				g.enters(def, runs...)
				g.begins(runs[0])
				writes := 0
				hook := func(_ context.Context, c faulty.Call) faulty.Fault {
					if c.Method != faulty.Write || c.Ops[0].Key.Partition[:4] != "gate" && len(c.Ops) == 1 {
						return faulty.Fault{}
					}
					if writes++; writes-1 == n {
						if kept {
							return faulty.Fault{Lose: store.ErrUnknown}
						}
						return faulty.Fault{Refuse: store.ErrUnknown}
					}
					return faulty.Fault{}
				}
				ended := g.fails(runs[0], false)
				g.fail(hook)
				_ = g.Left(t.Context(), ended)
				_ = g.LetIn(t.Context(), own)
				same(t, "who waits behind the end", g.waits(runs), []int{1})
				if _, err := g.reopens(runs[0], g.job()); err != nil && g.stands(runs[0]).State.Ended() {
					g.fail(nil)
					if _, err := g.reopens(runs[0], g.job()); err != nil {
						t.Fatal(err)
					}
					g.fail(hook)
				}
				_ = g.LetIn(t.Context(), own)
				same(t, "who waits for the retry", g.waits(runs), []int{1})
				same(t, "the retry comes to", g.enters(def, g.stands(runs[0])), []dispatch.Entrance{dispatch.Passed})
				ended = g.fails(runs[0], false)
				if _, err := g.GoOn(t.Context(), own, run.ID{}, 0, "", ""); err != nil {
					g.fail(nil)
					if _, err := g.GoOn(t.Context(), own, ended.ID, 0, "", ""); err != nil {
						t.Fatal(err)
					}
				}
				g.fail(nil)
				g.mend(runs[1])
				same(t, "who waits when the line goes on", g.waits(runs), []int(nil))
				g.sound(runs)
			})
		}
	}
}

// The line that somebody has let go on lets in whoever is next at once, also where the answer to the write was lost, or the one that wrote it has died behind it.
func TestG2_ALineGoesOnBehindALostAnswer(t *testing.T) {
	for name, lost := range map[string]bool{"the answer was lost": true, "it died behind the write": false} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			def := strictly(1)
			g.define(def)
			runs := g.fires(2)
			g.enters(def, runs...)
			g.begins(runs[0])
			g.fails(runs[0], true)
			g.sent()
			if lost {
				once := false
				g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
					if c.Method == faulty.Write && c.Ops[0].Key == own.Item() && !once {
						once = true
						return faulty.Fault{Lose: store.ErrUnknown}
					}
					return faulty.Fault{}
				})
			} else {
				at := g.gate()
				round := at.Begin()
				round.Learn([]run.Run{g.stands(runs[0])})
				round.GoOn(gate.Change{At: then, By: "on-call"})
				op, err := round.Gate().Put(g.Now(), g.NewID())
				if err == nil {
					_, err = g.Write(t.Context(), op)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := g.GoOn(t.Context(), own, run.ID{}, 0, "on-call", ""); err != nil && !errors.Is(err, dispatch.ErrNotStanding) {
				t.Fatal(err)
			}
			same(t, "sent right behind it", g.sent(), []int64{1})
			g.sound(runs)
		})
	}
}

// A run that finds the line full is told the run behind which it stands still, with those that wait.
func TestG2_WhoIsSkippedAtALineThatStandsStillIsToldWhy(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	most := 1
	def.Overlap.MaxWaiting = &most
	g.define(def)
	runs := g.fires(3)
	g.enters(def, runs[:2]...)
	g.begins(runs[0])
	g.fails(runs[0], true)
	same(t, "it comes to", g.enters(def, runs[2]), []dispatch.Entrance{dispatch.Skipped})
	same(t, "in its way", g.stands(runs[2]).Why.InTheWay, []string{runs[0].ID.String(), runs[1].ID.String()})
}

// Of a job whose record is unreadable nobody can tell whether its line stands still: it does, and who comes waits.
func TestG3_StrictUnderAnUnreadableJob(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	g.define(def)
	runs := g.fires(3)
	g.enters(def, runs[0])
	g.begins(runs[0])
	g.fails(runs[0], true)
	if _, err := g.Write(t.Context(), store.Op{Kind: store.Put, Key: job.Key("default", "report"), If: store.Any, Value: []byte("no record"), Attempt: g.NewID()}); err != nil {
		t.Fatal(err)
	}
	same(t, "they come to", g.enters(def, runs[1:]...), []dispatch.Entrance{dispatch.Joined, dispatch.Joined})
	at := g.gate()
	round := at.Begin()
	round.Learn([]run.Run{g.stands(runs[0])})
	if _, err := g.Settle(round); err != nil || len(round.Blockers()) != 1 {
		t.Errorf("who shows the gate sees %v, %v", round.Blockers(), err)
	}
}

// The time of a retry runs out, before it has started or by its deadline: nobody has let the line go on, and it stands still until the next retry succeeds, or somebody does.
// Who cancels the retry has decided that.
func TestG3_ARetryWhoseTimeRunsOut(t *testing.T) {
	const late = then + 3_600_000
	for name, row := range map[string]struct {
		end    func(run.Run) run.Run
		stands bool
	}{
		"it has not started":         {func(r run.Run) run.Run { r.StartBy = late - 1; return r.Expire(late, 24*time.Hour) }, true},
		"its deadline, at the queue": {func(r run.Run) run.Run { r.EndBy = late - 1; return r.Expire(late, 24*time.Hour) }, true},
		"its deadline, at work": {func(r run.Run) run.Run {
			r = started(r)
			r.Placed, r.EndBy = true, late-1
			return r.StopAtDeadline(late, 24*time.Hour).Cancelled(late, "", run.Limits{Retention: 24 * time.Hour})
		}, true},
		"somebody cancels it": {func(r run.Run) run.Run {
			r, _ = r.AskCancel(late, "cancelled on request", 24*time.Hour)
			return r
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			def := strictly(1)
			g.define(def)
			runs := g.fires(2)
			g.enters(def, runs...)
			g.begins(runs[0])
			g.fails(runs[0], true)
			again, err := g.reopens(runs[0], g.job())
			if err != nil {
				t.Fatal(err)
			}
			g.sent()
			ended := g.write(row.end(again))
			ended.Placed = true
			if err := g.Left(t.Context(), ended); err != nil {
				t.Fatal(err)
			}
			g.mend(runs[1])
			same(t, "it stands still", len(g.waits(runs)) == 1, row.stands)
			if !row.stands {
				return
			}
			if again, err = g.reopens(runs[0], g.job()); err != nil {
				t.Fatal(err)
			}
			same(t, "the next retry comes to", g.enters(def, again), []dispatch.Entrance{dispatch.Passed})
			g.sent()
			g.ends(again)
			same(t, "sent behind it", g.sent(), []int64{1})
			g.sound(runs)
		})
	}
}

// A run that is too late, or past its deadline, and was not opened again is in nobody's way.
func TestG2_StrictBehindARunWhoseTimeRanOut(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	g.define(def)
	runs := g.fires(2)
	g.enters(def, runs...)
	r := g.begins(runs[0])
	r.EndBy = then
	if err := g.Left(t.Context(), g.write(r.StopAtDeadline(then, time.Hour).Cancelled(then, "", run.Limits{Retention: time.Hour}))); err != nil {
		t.Fatal(err)
	}
	same(t, "who waits", g.waits(runs), []int(nil))
}
