package dispatch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// queueing bounds a job whose runs wait their turn.
func queueing(limit int) job.Definition {
	return job.Definition{Overlap: job.Overlap{Policy: job.OverlapQueue, Limit: limit}}.WithDefaults()
}

func atMostWaiting(limit, most int) job.Definition {
	def := queueing(limit)
	def.Overlap.MaxWaiting = &most
	return def
}

// enters has runs enter one after the other, and gives what they came to.
func (g *gated) enters(def job.Definition, runs ...run.Run) []dispatch.Entrance {
	g.t.Helper()
	var came []dispatch.Entrance
	for _, r := range runs {
		one, err := g.Enter(g.t.Context(), r, r.ID.Nominal, def)
		if err != nil {
			g.t.Fatal(err)
		}
		came = append(came, one)
	}
	return came
}

// fires puts so many runs, a second apart.
func (g *gated) fires(n int) []run.Run {
	g.t.Helper()
	var runs []run.Run
	for i := range n {
		runs = append(runs, g.put(i, nil))
	}
	return runs
}

// ends ends a run as it stands, and tells its gate.
func (g *gated) ends(r run.Run) {
	g.t.Helper()
	s := started(g.stands(r))
	s.Placed = true
	ended := g.write(s.Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}))
	if err := g.Left(g.t.Context(), ended); err != nil {
		g.t.Fatal(err)
	}
}

// sent gives the runs that were sent since it was last asked, in the order of their nominal times.
func (g *gated) sent() []int64 {
	g.t.Helper()
	var sent []int64
	for {
		messages, err := g.Queues[job.DefaultQueue].Receive(g.t.Context(), 10, 0, time.Hour)
		if err != nil {
			g.t.Fatal(err)
		}
		if len(messages) == 0 {
			slices.Sort(sent)
			return sent
		}
		for _, m := range messages {
			message, err := run.DecodeMessage(m.Body)
			if err != nil {
				g.t.Fatal(err)
			}
			if message.Run.Waits() {
				g.t.Errorf("%s was sent though it waits", message.Run.ID)
			}
			sent = append(sent, (message.Run.ID.Nominal-g.now.UnixMilli())/1000)
		}
		if _, err := g.Queues[job.DefaultQueue].Delete(g.t.Context(), messages...); err != nil {
			g.t.Fatal(err)
		}
	}
}

// waits gives which of the runs wait.
func (g *gated) waits(runs []run.Run) (n []int) {
	g.t.Helper()
	for i, r := range runs {
		if g.stands(r).Waits() {
			n = append(n, i)
		}
	}
	return n
}

// places gives how many places stand.
func (g *gated) places() int {
	g.t.Helper()
	page, err := g.Store.Query(g.t.Context(), gate.Gate{Tenant: "default", Name: "job:report"}.Line(0))
	if err != nil {
		g.t.Fatal(err)
	}
	return len(page.Items)
}

// sound is what holds of a gate at rest: its count is that of its places, each place is named, and whoever waits has one.
func (g *gated) sound(runs []run.Run) {
	g.t.Helper()
	at := g.gate()
	if n := g.places(); n != at.Waiting || len(g.waits(runs)) != n {
		g.t.Errorf("%d places stand, the gate counts %d, and %v wait", n, at.Waiting, g.waits(runs))
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Who finds no room waits, and is let in by the end of whoever is in its way: those that were due first before the others.
func TestG2_G3_RunsWaitTheirTurn(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(5)
	same(t, "they come to", g.enters(queueing(1), runs[0], runs[3], runs[1], runs[4], runs[2]),
		[]dispatch.Entrance{dispatch.Passed, dispatch.Joined, dispatch.Joined, dispatch.Joined, dispatch.Joined})
	same(t, "wait", g.waits(runs), []int{1, 2, 3, 4})
	if w := g.stands(runs[2]).Wait; w.Gate != "job:report" || w.Since != g.now.UnixMilli() || w.Rank != runs[2].ID.Nominal {
		t.Errorf("it waits as %+v", w)
	}
	g.sound(runs)
	g.sent()
	for n := range 4 {
		g.ends(runs[n])
		same(t, "sent", g.sent(), []int{n + 1})
		next := g.stands(runs[n+1])
		if next.State != run.Queued || next.Waits() || next.Wait.LetIn != g.now.UnixMilli() || !next.Placed {
			t.Errorf("%d was let in as %+v", n+1, next)
		}
		same(t, "its delivery comes to", g.enters(queueing(1), next), []dispatch.Entrance{dispatch.Passed})
		g.sound(runs)
	}
	g.ends(runs[4])
	if at := g.gate(); at.Waiting != 0 || g.places() != 0 {
		t.Errorf("the gate is left as %+v", at)
	}
}

// What comes of those that want in while others wait: nobody overtakes them, and a late delivery of one that waits changes nothing.
func TestG3_NobodyOvertakesTheLine(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(4)
	g.enters(queueing(1), runs[0], runs[1])
	g.write(succeeded(runs[0])) // and whoever wrote it has died
	same(t, "with room, behind a line", g.enters(queueing(1), runs[2]), []dispatch.Entrance{dispatch.Joined})
	same(t, "a late delivery", g.enters(queueing(1), runs[1]), []dispatch.Entrance{dispatch.Overtaken})
	same(t, "under skip", g.enters(bounds(1), runs[3]), []dispatch.Entrance{dispatch.Skipped})
	same(t, "let in by then, in order", g.sent(), []int{1})
	if w := g.stands(runs[3]).Why; w.Code != "overlap" || w.Policy != "skip" || !slices.Equal(w.InTheWay, []string{runs[1].ID.String(), runs[2].ID.String()}) {
		t.Errorf("skipped for %+v", w)
	}
	g.sound(runs)
}

// The last holder ends between the look at it and the join, and finds no line: whoever joined first looks again.
func TestG2_WhoJoinsFirstLooksAgain(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(2)
	g.enters(queueing(1), runs[0])
	ended := false
	g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
		if describe(c) == "write gate" && !ended {
			ended = true
			op, err := succeeded(runs[0]).Item(99)
			if err != nil {
				panic(err)
			}
			g.mu.Unlock()
			if _, err := g.Store.Write(context.Background(), op); err != nil {
				panic(err)
			}
			g.mu.Lock()
		}
		return faulty.Fault{}
	})
	same(t, "it comes to", g.enters(queueing(1), runs[1]), []dispatch.Entrance{dispatch.Joined})
	g.fail(nil)
	same(t, "sent", g.sent(), []int{1})
	g.sound(runs)
}

// Up to how many wait, and what is told of who is skipped for that. A count that is too high skips nobody.
func TestG4_ALineIsFull(t *testing.T) {
	g := newGated(t)
	g.define(atMostWaiting(1, 2))
	runs := g.fires(7)
	def := atMostWaiting(1, 2)
	same(t, "they come to", g.enters(def, runs[:4]...), []dispatch.Entrance{dispatch.Passed, dispatch.Joined, dispatch.Joined, dispatch.Skipped})
	if w := g.stands(runs[3]).Why; w.Code != "full" || w.Policy != "queue" || w.Gate != "job:report" || w.InTheWay[0] != runs[0].ID.String() {
		t.Errorf("skipped for %+v", w)
	}
	cancelled, _ := g.stands(runs[1]).AskCancel(then, "no longer needed", 24*time.Hour) // by somebody who died before it told the gate
	g.write(cancelled)
	same(t, "with a place that is nobody's", g.enters(def, runs[4]), []dispatch.Entrance{dispatch.Joined})
	g.sound(runs)
	again := g.write(g.write(succeeded(runs[5])).Reopen(1, 0, "retried on request").Reopened(then))
	same(t, "opened by hand", g.enters(def, again), []dispatch.Entrance{dispatch.Joined})
	none := atMostWaiting(1, 0)
	same(t, "nobody may wait", g.enters(none, runs[6]), []dispatch.Entrance{dispatch.Skipped})
	free := job.Definition{Overlap: job.Overlap{Policy: job.OverlapAllow, Limit: 1}}.WithDefaults()
	same(t, "under allow", g.enters(free, g.put(50, nil)), []dispatch.Entrance{dispatch.Joined})
}

// A run whose claim is taken away while it waits, as by a pause, and given again comes back to its own place: it is counted once, and nobody is
// skipped for it.
func TestG2_G4_WhoComesBackToItsPlaceIsCountedOnce(t *testing.T) {
	g := newGated(t)
	def := atMostWaiting(1, 2)
	g.define(def)
	runs := g.fires(4)
	same(t, "they come to", g.enters(def, runs[0], runs[1]), []dispatch.Entrance{dispatch.Passed, dispatch.Joined})
	for range 2 {
		back := g.write(g.stands(runs[1]).Unjoin())
		same(t, "back it comes to", g.enters(def, back), []dispatch.Entrance{dispatch.Joined})
		g.sound(runs)
	}
	same(t, "the others come to", g.enters(def, runs[2], runs[3]), []dispatch.Entrance{dispatch.Joined, dispatch.Skipped})
	g.sound(runs)
	g.ends(runs[0])
	same(t, "those that wait", g.waits(runs), []int{2})
	g.sound(runs)
}

// A pause keeps the line, and takes the claim of one that waits: whoever is on its way is not skipped for a place that is nobody's.
func TestG4_ALineInAPauseIsFullOfThoseThatWait(t *testing.T) {
	g := newGated(t)
	def := atMostWaiting(1, 2)
	g.define(def)
	runs := g.fires(5)
	g.enters(def, runs[:3]...)
	g.edit(func(j *job.Job) { j.Def.Paused = true })
	g.write(g.stands(runs[1]).Unjoin())
	same(t, "they come to", g.enters(def, runs[3:]...), []dispatch.Entrance{dispatch.Joined, dispatch.Skipped})
	same(t, "those that wait", g.waits(runs), []int{2, 3})
}

// Who comes back to its place when there is room is let in: nobody else is there to do it.
func TestG2_WhoComesBackToItsPlaceLooksAgain(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	runs := g.fires(2)
	g.enters(def, runs...)
	back := g.write(g.stands(runs[1]).Unjoin())
	g.ends(runs[0]) // and finds nobody who waits
	g.sent()
	g.enters(def, g.stands(back))
	same(t, "those that wait", g.waits(runs), []int(nil))
	g.sound(runs)
}

// A run that is let in has a check in the next minutes, whatever its regular ones are: its message may be lost.
func TestG2_WhoIsLetInHasACheckSoon(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(2)
	g.enters(queueing(1), runs...)
	g.pass(7*time.Hour, 7*time.Hour)
	g.ends(runs[0])
	soon := timer.NewCheck("default", runs[1].ID, g.now.Add(g.Directly()).UnixMilli())
	items, err := g.Store.Get(t.Context(), soon.Key())
	if err != nil || !items[0].Exists() {
		t.Errorf("it has no check at %s: %v", time.UnixMilli(soon.Wake).UTC(), err)
	}
}

// Who leaves the line gives up its place, and the others keep theirs.
func TestG2_WhoIsCancelledLeavesTheLine(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(4)
	g.enters(queueing(1), runs...)
	was := g.stands(runs[1])
	cancelled, _ := was.AskCancel(then, "no longer needed", 24*time.Hour)
	if cancelled.Waits() || !cancelled.Wait.IsZero() {
		t.Errorf("cancelled as %+v", cancelled)
	}
	g.write(cancelled)
	if err := g.Left(t.Context(), was); err != nil {
		t.Fatal(err)
	}
	g.sound(runs)
	g.sent()
	g.ends(runs[0])
	same(t, "sent", g.sent(), []int{2})
	g.sound(runs)
}

// What the job says by now decides who is let in: a higher limit lets in more, none at all everybody, and a pause nobody.
func TestG2_EditsOfTheLimit(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(8)
	g.enters(queueing(1), runs...)
	g.sent()
	letIn := func() {
		t.Helper()
		if err := g.LetIn(t.Context(), gate.ID{Tenant: "default", Name: "job:report"}); err != nil {
			t.Fatal(err)
		}
		g.sound(runs)
	}
	letIn()
	same(t, "sent by an edit that changes nothing", g.sent(), []int{})
	g.define(queueing(3))
	letIn()
	same(t, "sent by a raised limit", g.sent(), []int{1, 2})
	g.define(queueing(2))
	g.ends(runs[0])
	same(t, "sent under a lowered limit", g.sent(), []int{})
	g.edit(func(j *job.Job) { j.Def.Paused = true })
	g.ends(runs[1])
	same(t, "sent in a pause", g.sent(), []int{})
	g.edit(func(j *job.Job) { j.Def.Paused = false })
	letIn()
	same(t, "sent by a resume", g.sent(), []int{3})
	g.define(job.Definition{}.WithDefaults())
	letIn()
	same(t, "sent where nothing is bounded any more", g.sent(), []int{4, 5, 6, 7})
}

// A delete cancels those that wait, however many, and lets nobody in.
func TestP8_ADeleteCancelsTheLine(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(70)
	g.enters(queueing(1), runs...)
	g.sent()
	g.edit(func(j *job.Job) { j.Deleted, j.Def, j.Generation = true, job.Definition{}, 2 })
	g.ends(runs[0])
	if sent := g.sent(); len(sent) != 0 {
		t.Errorf("%v were let in", sent)
	}
	for _, r := range runs[1:] {
		if s := g.stands(r); s.State != run.Cancelled || s.Reason != dispatch.Deleted {
			t.Fatalf("%s stands as %s: %s", r.ID, s.State, s.Reason)
		}
	}
	g.sound(runs)
}

// Room for many is given by few writes.
func TestG2_ManyAreLetInTogether(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(101)
	came := make([]dispatch.Entrance, len(runs))
	came[0] = g.enters(queueing(1), runs[0])[0]
	var all sync.WaitGroup
	for i, r := range runs[1:] {
		all.Go(func() { came[i+1], _ = g.Enter(t.Context(), r, r.ID.Nominal, queueing(1)) })
	}
	all.Wait()
	if n := g.gate().Version; n > 60 {
		t.Errorf("100 joined by %d writes of the gate", n)
	}
	g.sound(runs)
	g.sent()
	g.define(queueing(100))
	before := g.gate().Version
	if err := g.LetIn(t.Context(), gate.ID{Tenant: "default", Name: "job:report"}); err != nil {
		t.Fatal(err)
	}
	if sent := g.sent(); len(sent) != 99 || sent[0] != 1 || sent[98] != 99 {
		t.Errorf("let in: %v", sent)
	}
	if n := g.gate().Version - before; n > 4 {
		t.Errorf("99 were let in by %d writes", n)
	}
	g.sound(runs)
}

// check looks after runs as a pass does.
func (g *gated) mend(runs ...run.Run) {
	g.t.Helper()
	now := g.now.UnixMilli()
	var owed []run.Run
	for _, r := range runs {
		owed = append(owed, run.Run{ID: r.ID, Tenant: r.Tenant})
	}
	if _, err := g.Check(g.t.Context(), 1, dispatch.Bounds{Now: now, Horizon: now + 2000, Reach: now + 2000, Resume: now + 4000}, owed, nil); err != nil {
		g.t.Fatal(err)
	}
}

// A check of a run that waits mends what a crash has left: room that nobody gave away, a place that is nobody's, and one that is lost.
func TestG2_ChecksMendALine(t *testing.T) {
	lost := func(g *gated, key store.Key) {
		if _, err := g.Store.Write(t.Context(), store.Op{Kind: store.Delete, Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		harm func(g *gated, runs []run.Run)
		sent []int
	}{
		"nothing is wrong": {func(*gated, []run.Run) {}, []int{}},
		"whoever ended has told nobody": {func(g *gated, runs []run.Run) {
			g.write(succeeded(runs[0]))
		}, []int{1}},
		"it was cancelled, too, and nobody told": {func(g *gated, runs []run.Run) {
			g.write(succeeded(runs[0]))
			cancelled, _ := g.stands(runs[1]).AskCancel(then, "", 24*time.Hour)
			g.write(cancelled)
		}, []int{2}},
		"its place is gone": {func(g *gated, runs []run.Run) {
			lost(g, gate.PlaceOf(g.stands(runs[1])).Key("default"))
		}, []int{1}},
		"all of the gate is gone": {func(g *gated, runs []run.Run) {
			lost(g, gate.Key("default", "report"))
		}, []int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			g.define(queueing(1))
			runs := g.fires(3)
			g.enters(queueing(1), runs...)
			g.sent()
			row.harm(g, runs)
			g.mend(runs[1:]...)
			same(t, "sent", g.sent(), row.sent)
			for _, n := range row.sent { // whoever is sent and has lost its place enters anew, by its rank
				if s := g.stands(runs[n]); s.Waits() || s.Wait.Rank != runs[n].ID.Nominal {
					t.Errorf("%d stands as %+v", n, s.Wait)
				}
			}
			g.mend(runs[1:]...)
		})
	}
}

// Each write of the line fails twice, once before it is done and once behind that. Whatever comes of it, checks bring everybody through, in turn, and
// never two at once.
func TestG1_G2_EachWriteOfALineFails(t *testing.T) {
	for _, kept := range []bool{false, true} {
		for at := range 14 {
			t.Run(fmt.Sprintf("%d, done: %t", at, kept), func(t *testing.T) {
				g := newGated(t)
				g.define(queueing(1))
				runs := g.fires(4)
				left := at
				g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
					if c.Method != faulty.Write && c.Method != faulty.WriteEach {
						return faulty.Fault{}
					}
					if left--; left != -1 {
						return faulty.Fault{}
					}
					if kept {
						return faulty.Fault{Lose: store.ErrUnknown}
					}
					return faulty.Fault{Refuse: store.ErrUnknown}
				})
				g.life(runs, queueing(1), 1)
			})
		}
	}
}

// life brings runs through a gate: messages are delivered until there is none, and then checks look after what is left. In no instant are more in progress
// than the limit.
func (g *gated) life(runs []run.Run, def job.Definition, limit int) {
	g.t.Helper()
	open := slices.Clone(runs)
	for round := 0; len(open) > 0; round++ {
		if round > 20*len(runs)+40 {
			g.t.Fatalf("%d have not ended: %+v, gate %+v", len(open), g.stands(open[0]), g.gate())
		}
		var busy []run.Run
		for _, r := range open {
			s := g.stands(r)
			if s.State != run.Queued || s.Waits() {
				continue
			}
			if came, err := g.Enter(context.Background(), s, s.ID.Nominal, def); err == nil && came == dispatch.Passed {
				if s, err = g.PutRun(context.Background(), func() run.Run { s := started(g.stands(s)); s.Placed = true; return s }(), job.Callbacks{}, then); err == nil {
					busy = append(busy, s)
				}
			}
		}
		if len(busy) > limit {
			g.t.Fatalf("%d are in progress at once", len(busy))
		}
		for _, r := range open {
			if s := g.stands(r); s.State == run.Running {
				ended, err := g.PutRun(context.Background(), s.Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}), job.Callbacks{}, then)
				if err == nil {
					_ = g.Left(context.Background(), ended)
				}
			}
		}
		open = slices.DeleteFunc(open, func(r run.Run) bool { return g.stands(r).State.Ended() })
		if len(busy) == 0 {
			now := g.now.UnixMilli()
			_, _ = g.Check(context.Background(), 1, dispatch.Bounds{Now: now, Horizon: now + 2000, Reach: now + 2000, Resume: now + 4000}, open, nil)
		}
	}
	g.sound(runs)
}

// Several processes at one gate with a line, whose messages are doubled, and whose runs are cancelled at any time: never more in progress than the limit, and everybody ends
// without a check, since nobody dies.
func TestG1_G2_SeveralProcessesAtOneLine(t *testing.T) {
	const limit, processes, each = 3, 4, 40
	g := newGated(t)
	g.define(queueing(limit))
	runs := g.fires(processes * each)
	messages := make(chan run.ID, 100*len(runs))
	for _, r := range runs {
		messages <- r.ID
	}
	var busy, most, open atomic.Int64
	open.Store(int64(len(runs)))
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := func() {
		if open.Add(-1) == 0 {
			cancel()
		}
	}
	// One reads what was sent, as workers would.
	all.Go(func() {
		for ctx.Err() == nil {
			got, err := g.Queues[job.DefaultQueue].Receive(ctx, 10, 10*time.Millisecond, time.Hour)
			if err != nil {
				return
			}
			for _, m := range got {
				if message, err := run.DecodeMessage(m.Body); err == nil {
					messages <- message.Run.ID
				}
			}
			_, _ = g.Queues[job.DefaultQueue].Delete(context.Background(), got...)
		}
	})
	for p := range processes {
		d, err := dispatch.New(g.Config)
		if err != nil {
			t.Fatal(err)
		}
		var ids atomic.Uint64
		d.NewID = func() uint64 { return uint64(p+1)<<32 | ids.Add(1) }
		for w := range 3 {
			random := rand.New(rand.NewPCG(uint64(p), uint64(w)))
			all.Go(func() {
				for {
					var id run.ID
					select {
					case <-ctx.Done():
						return
					case id = <-messages:
					}
					s := g.stands(run.Run{ID: id, Tenant: "default"})
					if s.State != run.Queued || s.Waits() {
						continue
					}
					if random.IntN(8) == 0 { // a cancel
						ended, _ := s.AskCancel(then, "", 24*time.Hour)
						if _, err := d.PutRun(context.Background(), ended, job.Callbacks{}, then); err == nil {
							s.Placed = true
							if err := d.Left(context.Background(), s); err != nil {
								t.Error(err)
							}
							done()
						}
						continue
					}
					came, err := d.Enter(context.Background(), s, s.ID.Nominal, queueing(limit))
					if err != nil {
						t.Error(err)
						return
					}
					if came == dispatch.Contended || came == dispatch.Overtaken {
						messages <- id
					}
					if came != dispatch.Passed {
						continue
					}
					if random.IntN(4) == 0 {
						messages <- id // a doubled one
					}
					begun := started(s)
					begun.Placed = true
					if s, err = d.PutRun(context.Background(), begun, job.Callbacks{}, then); err != nil {
						messages <- id
						continue
					}
					for n := busy.Add(1); n > most.Load() && !most.CompareAndSwap(most.Load(), n); {
					}
					<-time.After(time.Duration(random.IntN(500)) * time.Microsecond)
					busy.Add(-1)
					if s, err = d.PutRun(context.Background(), s.Succeed(then, run.Ref{}, "", run.Limits{Retention: 24 * time.Hour}), job.Callbacks{}, then); err != nil {
						t.Error(err)
					}
					if err := d.Left(context.Background(), s); err != nil {
						t.Error(err)
					}
					done()
				}
			})
		}
	}
	all.Wait()
	if most.Load() > limit {
		t.Errorf("%d were in progress at once, limit %d", most.Load(), limit)
	}
	g.sound(runs)
}

// A line at one instant is ordered by nominal time, then by ID; who was opened again comes when that was.
func TestG3_TheOrderOfALine(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	first := g.put(0, nil)
	due := g.now.UnixMilli() + 9000
	late := g.put(5, func(r run.Run) run.Run { r.Created = due; return r })
	asked := g.put(9, func(r run.Run) run.Run { r.ID = run.RequestID("report", due, 3); return r })
	fire := g.put(9, nil)
	again := g.write(g.write(succeeded(g.put(1, nil))).Reopen(1, 0, "retried on request").Reopened(due - 500))
	g.enters(queueing(1), first, asked, fire, late, again)
	want := []run.Run{again, late, fire, asked}
	before := first
	for _, r := range want {
		g.ends(before)
		if s := g.stands(r); s.Waits() {
			t.Fatalf("%s waits still: %+v", r.ID, s.Wait)
		}
		before = r
	}
}
