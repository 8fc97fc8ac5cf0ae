package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// policy bounds a job to so many at once.
func policy(p job.OverlapPolicy, limit int) job.Definition {
	return job.Definition{Overlap: job.Overlap{Policy: p, Limit: limit}}.WithDefaults()
}

// One waits, and the next ones are skipped.
func TestG3_G4_QueueOne(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapQueueOne, 1)
	g.define(def)
	runs := g.fires(6)
	same(t, "they come to", g.enters(def, runs[:4]...), []dispatch.Entrance{dispatch.Passed, dispatch.Joined, dispatch.Skipped, dispatch.Skipped})
	if r := g.stands(runs[3]); r.Why.Code != "overlap" || r.Why.Policy != "queue_one" || r.Why.Gate != "job:report" || r.Reason != "another run of the job waited already" ||
		!slices.Equal(r.Why.InTheWay, []string{runs[0].ID.String(), runs[1].ID.String()}) {
		t.Errorf("skipped for %q, %+v", r.Reason, r.Why)
	}
	g.sound(runs)
	g.sent()
	g.ends(runs[0])
	same(t, "sent", g.sent(), []int{1})
	same(t, "behind it", g.enters(def, runs[4], runs[5]), []dispatch.Entrance{dispatch.Joined, dispatch.Skipped})
	g.sound(runs)
}

// The latest waits, and whoever waited is skipped.
func TestG3_G4_QueueLatest(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapQueueLatest, 1)
	g.define(def)
	runs := g.fires(5)
	for i, r := range runs {
		want := dispatch.Joined
		if i == 0 {
			want = dispatch.Passed
		}
		same(t, fmt.Sprint(i, " comes to"), g.enters(def, r), []dispatch.Entrance{want})
		g.sound(runs[:i+1])
	}
	for i := 1; i < 4; i++ {
		r := g.stands(runs[i])
		if r.State != run.Skipped || r.Waits() || r.Reason != "a later run of the job waits in its place" || r.Why.Code != "overlap" || r.Why.Policy != "queue_latest" ||
			r.Why.Gate != "job:report" || !slices.Equal(r.Why.InTheWay, []string{runs[i+1].ID.String()}) || r.Ended != g.now.UnixMilli() {
			t.Errorf("%d: %s for %q, %+v", i, r.State, r.Reason, r.Why)
		}
	}
	g.sent()
	g.ends(runs[0])
	same(t, "sent", g.sent(), []int{4})
	g.sound(runs)
}

// Messages come in any order: nobody is skipped for an earlier one.
func TestG4_QueueLatestGoesByTheLineAndNotByMessages(t *testing.T) {
	for _, order := range [][]int{{0, 3, 1, 2}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 3, 2, 1}} {
		g := newGated(t)
		def := policy(job.OverlapQueueLatest, 1)
		g.define(def)
		runs := g.fires(4)
		for _, i := range order {
			g.enters(def, runs[i])
		}
		same(t, fmt.Sprint(order, ": waits"), g.waits(runs), []int{3})
		for _, i := range []int{1, 2} {
			r := g.stands(runs[i])
			if r.State != run.Skipped || len(r.Why.InTheWay) != 1 || r.Why.InTheWay[0] <= r.ID.String() {
				t.Errorf("%v: %d is %s, for %+v", order, i, r.State, r.Why)
			}
		}
		g.sound(runs)
	}
}

// Of many at once as many enter as may, and the latest of the others waits.
func TestG1_G4_QueueLatestOfManyAtOnce(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapQueueLatest, 3)
	g.define(def)
	runs := g.fires(60)
	came := make([]dispatch.Entrance, len(runs))
	var wg sync.WaitGroup
	for i, r := range runs {
		wg.Go(func() {
			for came[i] == 0 || came[i] == dispatch.Contended {
				var err error
				if came[i], err = g.Enter(t.Context(), g.stands(r), r.ID.Nominal, def); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	passed, skipped := 0, 0
	for i, r := range runs {
		switch {
		case came[i] == dispatch.Passed:
			passed++
		case g.stands(r).State == run.Skipped:
			skipped++
		}
	}
	latest := len(runs) - 1
	for came[latest] == dispatch.Passed {
		latest--
	}
	if passed != 3 || skipped != len(runs)-4 {
		t.Errorf("%d entered, %d are skipped", passed, skipped)
	}
	same(t, "waits", g.waits(runs), []int{latest})
	g.sound(runs)
}

// Whoever was opened by hand comes by the time of that: it takes the place of who waited before, and is skipped by nobody.
func TestG4_QueueLatestSparesWhatWasOpenedByHand(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapQueueLatest, 1)
	g.define(def)
	runs := g.fires(5)
	g.enters(def, runs[0], runs[1])
	by := g.write(g.write(succeeded(runs[2])).Reopen(1, 0, "retried on request").Reopened(g.now.UnixMilli()))
	same(t, "opened by hand", g.enters(def, by), []dispatch.Entrance{dispatch.Joined})
	same(t, "wait", g.waits(runs), []int{2})
	same(t, "those behind it", g.enters(def, runs[3], runs[4]), []dispatch.Entrance{dispatch.Joined, dispatch.Joined})
	same(t, "wait", g.waits(runs), []int{2, 4})
	g.sound(runs)
}

// A line that another policy has made long is skipped as far as one write goes, and again when the message comes back.
func TestG4_QueueLatestBehindALineOfBefore(t *testing.T) {
	g := newGated(t)
	g.define(queueing(1))
	runs := g.fires(131)
	g.enters(queueing(1), runs[:130]...)
	def := policy(job.OverlapQueueLatest, 1)
	g.define(def)
	visits := 0
	for came := dispatch.Contended; came == dispatch.Contended; visits++ {
		came = g.enters(def, runs[130])[0]
		g.sound(runs)
	}
	if visits > 3 {
		t.Errorf("its message came %d times", visits)
	}
	same(t, "wait", g.waits(runs), []int{130})
}

// Whoever waits where there is room by now, since whoever had made it has died, is let in, and skipped by nobody.
func TestG2_G4_QueueLatestLetsInBeforeItSkips(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapQueueLatest, 1)
	g.define(def)
	runs := g.fires(3)
	g.enters(def, runs[0], runs[1])
	g.sent()
	g.write(succeeded(runs[0])) // and whoever wrote it has died
	same(t, "the next", g.enters(def, runs[2]), []dispatch.Entrance{dispatch.Joined})
	same(t, "sent", g.sent(), []int{1})
	same(t, "wait", g.waits(runs), []int{2})
	g.sound(runs)
}

// A run that comes back to its own place, its claim having been taken away, is counted once.
func TestG4_QueueLatestComesBackToItsPlace(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapQueueLatest, 1)
	g.define(def)
	runs := g.fires(3)
	g.enters(def, runs[0], runs[1])
	back := g.write(g.stands(runs[1]).Unjoin())
	same(t, "back it comes to", g.enters(def, back), []dispatch.Entrance{dispatch.Joined})
	g.sound(runs)
	same(t, "a late delivery", g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Overtaken})
	same(t, "the next", g.enters(def, runs[2]), []dispatch.Entrance{dispatch.Joined})
	same(t, "wait", g.waits(runs), []int{2})
	g.sound(runs)
}

// A pause holds the latest alone. Who ignores the pause goes past it, and skips nobody.
func TestG4_QueueLatestInAPause(t *testing.T) {
	g := newGated(t)
	def := policy(job.OverlapQueueLatest, 1)
	g.define(def)
	runs := g.fires(4)
	g.enters(def, runs[0], runs[1])
	g.edit(func(j *job.Job) { j.Def.Paused = true })
	ignores := g.put(20, func(r run.Run) run.Run { r.IgnorePause = true; return r })
	g.enters(def, runs[2], ignores, runs[3])
	same(t, "wait", g.waits(append(slices.Clone(runs), ignores)), []int{3, 4})
	g.sent()
	g.ends(runs[0])
	same(t, "sent", g.sent(), []int{20})
}

// Each operation of a run that takes the place of another fails, without effect or with it: one of them waits in the end, and one at most is skipped.
func TestG2_G4_Fault01_Fault02_QueueLatestOverBrokenOperations(t *testing.T) {
	def := policy(job.OverlapQueueLatest, 1)
	for _, done := range []bool{false, true} {
		for n := 0; ; n++ {
			g := newGated(t)
			g.define(def)
			runs := g.fires(3)
			g.enters(def, runs[0], runs[1])
			at, met := 0, false
			g.fail(func(_ context.Context, c faulty.Call) faulty.Fault {
				if at++; at != n+1 {
					return faulty.Fault{}
				}
				met = true
				if done && strings.HasPrefix(describe(c), "write") {
					return faulty.Fault{Lose: store.ErrUnknown}
				}
				return faulty.Fault{Refuse: store.ErrThrottled}
			})
			_, _ = g.Enter(t.Context(), runs[2], runs[2].ID.Nominal, def)
			g.fail(nil)
			if !met {
				break
			}
			for came := dispatch.Contended; came == dispatch.Contended; { // its message comes back
				came = dispatch.Overtaken
				if r := g.stands(runs[2]); r.State == run.Queued && !r.Waits() {
					came = g.enters(def, r)[0]
				}
			}
			same(t, fmt.Sprintf("operation %d, done %v: wait", n, done), g.waits(runs), []int{2})
			if r := g.stands(runs[1]); r.State != run.Skipped || r.Why.InTheWay[0] != runs[2].ID.String() {
				t.Errorf("operation %d: the one before is %s", n, r.State)
			}
			g.sound(runs)
			g.sent()
			g.ends(runs[0])
			same(t, "sent", g.sent(), []int{2})
		}
	}
}

// Who is later goes by the order of the line: by when a run was due, made or opened again, whichever is last, then by its nominal time and its ID.
func TestG4_WhoIsLaterUnderQueueLatest(t *testing.T) {
	made := func(by int) func(*gated, run.Run) run.Run {
		return func(g *gated, r run.Run) run.Run { r.Created = g.now.UnixMilli() + int64(by)*1000; return r }
	}
	asked := func(random uint64) func(*gated, run.Run) run.Run {
		return func(_ *gated, r run.Run) run.Run { r.ID = run.RequestID("report", r.ID.Nominal, random); return r }
	}
	for name, c := range map[string]struct {
		nominal [2]int // seconds on, of the one that is earlier and of the one that is later
		change  [2]func(*gated, run.Run) run.Run
	}{
		"by their times":             {[2]int{1, 2}, [2]func(*gated, run.Run) run.Run{}},
		"made later":                 {[2]int{2, 1}, [2]func(*gated, run.Run) run.Run{nil, made(5)}},
		"both made at once":          {[2]int{1, 2}, [2]func(*gated, run.Run) run.Run{made(5), made(5)}},
		"due when the other is made": {[2]int{1, 5}, [2]func(*gated, run.Run) run.Run{made(5), nil}},
		"a fire and a request":       {[2]int{3, 3}, [2]func(*gated, run.Run) run.Run{nil, asked(3)}},
		"two requests":               {[2]int{3, 3}, [2]func(*gated, run.Run) run.Run{asked(3), asked(9)}},
	} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			t.Run(fmt.Sprint(name, order), func(t *testing.T) {
				g := newGated(t)
				def := policy(job.OverlapQueueLatest, 1)
				g.define(def)
				g.enters(def, g.put(0, nil))
				var pair [2]run.Run
				for i := range pair {
					pair[i] = g.put(c.nominal[i], func(r run.Run) run.Run {
						if c.change[i] != nil {
							r = c.change[i](g, r)
						}
						return r
					})
				}
				g.enters(def, pair[order[0]])
				g.enters(def, pair[order[1]])
				if s := g.stands(pair[0]); s.State != run.Skipped || len(s.Why.InTheWay) != 1 || s.Why.InTheWay[0] != pair[1].ID.String() {
					t.Errorf("the earlier one is %s, for %+v", s.State, s.Why)
				}
				if s := g.stands(pair[1]); !s.Waits() {
					t.Errorf("the later one is %s", s.State)
				}
				g.sound(pair[:])
			})
		}
	}
}
