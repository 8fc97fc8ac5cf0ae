package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// owns puts a run, n seconds on, that brings a policy of its own.
func (g *gated) owns(n int, own job.OverlapPolicy) run.Run {
	g.t.Helper()
	number := own.Own()
	if own == "newest_first" { // of a newer version
		number = 200
	}
	return g.put(n, func(r run.Run) run.Run { r.Overlap = number; return r })
}

// What becomes of a run that brings a policy of its own, while one of its job is in progress and another waits: the policy is its own, limit and line are those of its job.
func TestG4_ARunGoesByItsOwnPolicy(t *testing.T) {
	three := 3
	for _, c := range []struct {
		name    string
		of      job.Overlap
		waiting int // behind the one in progress
		own     job.OverlapPolicy
		want    dispatch.Entrance
		waits   []int
		why     string // its code
	}{
		{"allow passes", queueing(1).Overlap, 1, job.OverlapAllow, dispatch.Passed, []int{1}, ""},
		{"allow passes one that bounds allow", job.Overlap{Policy: job.OverlapAllow, Limit: 1, MaxWaiting: &three}, 0, job.OverlapAllow, dispatch.Passed, nil, ""},
		{"skip", queueing(1).Overlap, 1, job.OverlapSkip, dispatch.Skipped, []int{1}, run.WhyOverlap},
		{"skip where one more has room", queueing(2).Overlap, 0, job.OverlapSkip, dispatch.Passed, nil, ""},
		{"queue", bounds(1).Overlap, 0, job.OverlapQueue, dispatch.Joined, []int{1}, ""},
		{"queue where as many wait as the job says", atMostWaiting(1, 1).Overlap, 1, job.OverlapQueue, dispatch.Skipped, []int{1}, run.WhyFull},
		{"queue_one where nobody waits", bounds(1).Overlap, 0, job.OverlapQueueOne, dispatch.Joined, []int{1}, ""},
		{"queue_one where one waits", queueing(1).Overlap, 1, job.OverlapQueueOne, dispatch.Skipped, []int{1}, run.WhyOverlap},
		{"queue_latest", queueing(1).Overlap, 1, job.OverlapQueueLatest, dispatch.Joined, []int{2}, ""},
		{"cancel", queueing(1).Overlap, 0, job.OverlapCancel, dispatch.Joined, []int{1}, ""},
		{"replace", queueing(1).Overlap, 0, job.OverlapReplace, dispatch.Passed, nil, ""},
		{"replace where one waits", queueing(1).Overlap, 1, job.OverlapReplace, dispatch.Passed, nil, ""},
		{"none, of a job that says skip", bounds(1).Overlap, 0, "", dispatch.Skipped, nil, run.WhyOverlap},
		{"one that a newer version knows", bounds(1).Overlap, 0, "newest_first", dispatch.Skipped, nil, run.WhyOverlap},
		{"any, of a job that bounds nothing any more", job.Overlap{}, 0, job.OverlapSkip, dispatch.Passed, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGated(t)
			def := job.Definition{Overlap: c.of}.WithDefaults()
			g.define(def)
			runs := g.fires(1 + c.waiting)
			g.enters(def, runs...)
			g.begins(runs[0])
			runs = append(runs, g.owns(5, c.own))
			last := runs[len(runs)-1]
			same(t, "it comes to", g.enters(def, last), []dispatch.Entrance{c.want})
			same(t, "who waits", g.waits(runs), c.waits)
			r := g.stands(last)
			if r.Why.Code != c.why || c.why != "" && r.Why.Policy != string(c.own) && c.own != "" && c.own != "newest_first" {
				t.Errorf("why: %+v, want %q", r.Why, c.why)
			}
			if first := g.stands(runs[0]); first.Cancel != (c.own == job.OverlapCancel) || first.State.Ended() != (c.own == job.OverlapReplace) {
				t.Errorf("the one in progress is %s, asked: %v, for %+v", first.State, first.Cancel, first.Why)
			}
			g.sound(runs)
		})
	}
}

// Under allow a run has no entry: it is in nobody's way, it ends without a word to anybody, and no key is asked for.
func TestG1_AllowHasNoEntry(t *testing.T) {
	g := newGated(t)
	def := bounds(1)
	def.Overlap.Key = "${ .payload.customer }"
	g.define(def)
	beside := g.owns(0, job.OverlapAllow)
	e := &job.Edition{Generation: 1, Def: def}
	g.forget()
	keyed, ok, err := g.Keyed(t.Context(), beside, e) // though the run has no payload
	if err != nil || !ok || keyed.GateKey != "" {
		t.Errorf("its key: %q, %v, %v", keyed.GateKey, ok, err)
	}
	same(t, "it comes to", g.enters(def, keyed), []dispatch.Entrance{dispatch.Passed})
	if held := g.MayHold(t.Context(), beside, e); held.Placed || beside.Gated(&def) {
		t.Error("it is taken for one that may hold a place")
	}
	if ops := g.forget(); len(ops) != 0 {
		t.Errorf("asked of the store: %v", ops)
	}
	failed, ok, err := g.Keyed(t.Context(), g.put(1, nil), e)
	if err != nil || ok || failed.State != run.Failed {
		t.Errorf("another of the job: %s, %v, %v; its key gives null", failed.State, ok, err)
	}
}

// The order of the line counts for whoever brings a policy, too: it takes no later one's place. It is skipped for a later one that waits in its place, and joins before one that merely
// waits, in the place of those before it.
func TestG4_AnOwnPolicyGivesWayToLaterRuns(t *testing.T) {
	for _, own := range []job.OverlapPolicy{job.OverlapQueueLatest, job.OverlapCancel, job.OverlapReplace} {
		for _, takes := range []bool{false, true} {
			g := newGated(t)
			def := queueing(1)
			g.define(def)
			early := g.owns(2, own)
			later := g.put(5, func(r run.Run) run.Run {
				if takes {
					r.Overlap = job.OverlapQueueLatest.Own()
				}
				return r
			})
			runs := []run.Run{g.put(0, nil), g.put(1, nil), early, later}
			g.enters(def, runs[0])
			g.begins(runs[0])
			g.enters(def, later)
			g.enters(def, runs[1]) // which joins before it
			g.sent()
			came := g.enters(def, early)
			first := g.stands(runs[0])
			if takes {
				same(t, string(own)+" comes to", came, []dispatch.Entrance{dispatch.Skipped})
				if r := g.stands(early); !gaveWayTo(r, later, job.OverlapQueueLatest) && !gaveWayTo(r, later, own) {
					t.Errorf("%s: skipped for %+v", own, r.Why)
				}
				if first.State != run.Running || first.Cancel {
					t.Errorf("%s: the one in progress is %s, asked: %v", own, first.State, first.Cancel)
				}
				g.sound(runs)
				continue
			}
			same(t, string(own)+" comes to", came, []dispatch.Entrance{dispatch.Joined})
			if r := g.stands(runs[1]); r.State != run.Skipped || !gaveWayTo(r, early, own) {
				t.Errorf("%s: the one before it is %s, for %+v", own, r.State, r.Why)
			}
			if first.Cancel != (own == job.OverlapCancel) || first.State.Ended() != (own == job.OverlapReplace) {
				t.Errorf("%s: the one in progress is %s, asked: %v", own, first.State, first.Cancel)
			}
			if own == job.OverlapReplace {
				same(t, "who waits", g.waits(runs), []int{3})
			} else {
				same(t, "who waits", g.waits(runs), []int{2, 3})
			}
			g.sound(runs)
		}
	}
}

// A batch of three, of which the second brings replace: it is not skipped for the third, which merely waits.
func TestG4_AnOwnPolicyInABatch(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	holder := g.put(0, nil)
	g.enters(def, holder)
	g.begins(holder)
	runs := []run.Run{g.put(1, nil), g.owns(2, job.OverlapReplace), g.put(3, nil)}
	g.atOnce(holder, func(run.Run) job.Definition { return def }, runs...)
	if r := g.stands(runs[0]); r.State != run.Skipped || !gaveWayTo(r, runs[1], job.OverlapReplace) {
		t.Errorf("the first is %s, for %+v", r.State, r.Why)
	}
	same(t, "in progress", g.in(), []string{runs[1].ID.String()})
	same(t, "who waits", g.waits(runs), []int{2})
	g.sound(runs)
}

// A line that does not fit one write: whoever takes the place of those that wait has joined before the others are skipped, so each names one that waits in its place. Others come in between.
func TestG4_AnOwnPolicyBehindALongLine(t *testing.T) {
	const line = 150
	for _, own := range []job.OverlapPolicy{job.OverlapQueueLatest, job.OverlapCancel, job.OverlapReplace} {
		for _, comes := range []job.OverlapPolicy{"", job.OverlapReplace} {
			g := newGated(t)
			def := queueing(1)
			g.define(def)
			runs := g.fires(line + 1)
			g.enters(def, runs[0])
			g.begins(runs[0])
			g.enters(def, runs[1:]...)
			mine, next := g.owns(line+1, own), g.owns(line+2, comes)
			other, err := dispatch.New(g.Config) // another process
			if err != nil {
				t.Fatal(err)
			}
			inBetween := 0
			g.before(runs[100], func() {
				if !g.stands(mine).Waits() {
					t.Error(own, "has not joined before the second write")
				}
				inBetween = len(g.waits(runs))
				came, err := other.Enter(t.Context(), next, next.ID.Nominal, def)
				if err != nil || came != dispatch.Joined {
					t.Errorf("%s: who comes in between: %v, %v", own, came, err)
				}
			})
			same(t, string(own)+" comes to", g.enters(def, mine), []dispatch.Entrance{dispatch.Joined})
			if inBetween == 0 || inBetween >= line {
				t.Errorf("%s: %d waited in between", own, inBetween)
			}
			for i, r := range runs[1:] {
				if s := g.stands(r); s.State != run.Skipped || !gaveWayTo(s, mine, own) && (comes == "" || !gaveWayTo(s, next, comes)) {
					t.Fatalf("%s: %d is %s, for %+v", own, i+1, s.State, s.Why)
				}
			}
			all := append(runs, mine, next)
			switch s := g.stands(mine); {
			case comes != "":
				if s.State != run.Skipped || !gaveWayTo(s, next, comes) {
					t.Errorf("%s is %s, for %+v", own, s.State, s.Why)
				}
				same(t, "in progress", g.in(), []string{next.ID.String()})
			case own == job.OverlapReplace:
				same(t, "in progress", g.in(), []string{mine.ID.String()})
				same(t, "who waits", g.waits(all), []int{line + 2})
			default:
				same(t, "who waits", g.waits(all), []int{line + 1, line + 2})
			}
			g.sound(all)
		}
	}
}

// Runs that bring different policies want in at once, beside one in progress.
func TestG1_G4_OwnPoliciesAtOnce(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	g.define(def)
	first := g.put(0, nil)
	g.enters(def, first)
	g.begins(first)
	runs := []run.Run{g.owns(1, job.OverlapSkip), g.owns(2, job.OverlapAllow), g.put(3, nil), g.owns(4, job.OverlapQueueOne)}
	came := g.atOnce(first, func(run.Run) job.Definition { return def }, runs[0], runs[2], runs[3])
	same(t, "they come to", came, []dispatch.Entrance{dispatch.Skipped, dispatch.Joined, dispatch.Skipped}) // since one waits
	same(t, "under allow", g.enters(def, runs[1]), []dispatch.Entrance{dispatch.Passed})
	same(t, "in progress by the gate", g.in(), []string{first.ID.String()})
	g.sound(runs)
}

// Who was opened again by hand waits its turn by its own policy too, and is not skipped; under allow it passes as before.
func TestG4_ARetryKeepsItsOwnPolicy(t *testing.T) {
	for own, want := range map[job.OverlapPolicy]dispatch.Entrance{job.OverlapSkip: dispatch.Joined, job.OverlapQueueOne: dispatch.Joined, job.OverlapReplace: dispatch.Joined, job.OverlapAllow: dispatch.Passed} {
		g := newGated(t)
		def := queueing(1)
		g.define(def)
		mine := g.owns(9, own)
		runs := append(g.fires(2), mine)
		g.fails(mine, true)
		g.enters(def, runs[:2]...)
		g.begins(runs[0])
		again, err := g.reopens(mine, g.job())
		if err != nil || again.Overlap.Policy() != own {
			t.Fatalf("opened again with %q, %v", again.Overlap, err)
		}
		same(t, string(own)+" comes to", g.enters(def, again), []dispatch.Entrance{want})
		if r := g.stands(runs[0]); r.State != run.Running || r.Cancel {
			t.Errorf("%s: the one in progress is %s, asked: %v", own, r.State, r.Cancel)
		}
		g.sound(runs)
	}
}

// Under strict the line stands still behind any run that was let in and has ended badly, whatever policy it brought, but for one that was ended for a later run. Who brings allow
// passes it.
func TestG3_StrictAndOwnPolicies(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	g.define(def)
	runs := []run.Run{g.owns(0, job.OverlapQueue), g.put(1, nil), g.owns(2, job.OverlapSkip), g.owns(3, job.OverlapAllow), g.owns(4, job.OverlapReplace)}
	g.enters(def, runs[0])
	g.fails(runs[0], true)
	same(t, "behind it they come to", g.enters(def, runs[1:]...), []dispatch.Entrance{dispatch.Joined, dispatch.Skipped, dispatch.Passed, dispatch.Joined})
	same(t, "who waits", g.waits(runs), []int{4}) // in place of the one that waited
	g.sound(runs)
	if r := g.stands(runs[2]); r.Why.Policy != "skip" || r.Why.InTheWay[0] != runs[0].ID.String() {
		t.Errorf("skipped for %+v", r.Why)
	}
}

// A run that may start at most once is unknown when it is replaced. Nobody waits behind it for that, though its job is strict.
func TestG2_StrictGoesOnBehindARunThatWasReplaced(t *testing.T) {
	g := newGated(t)
	def := strictly(1)
	def.Guarantee = job.AtMostOnce
	g.edit(func(j *job.Job) { j.Def.Overlap, j.Def.Guarantee = def.Overlap, def.Guarantee })
	first := g.put(0, nil)
	g.enters(def, first)
	g.begins(first)
	byHand := g.put(1, func(r run.Run) run.Run { return r.Reopen(1, 0, "retried on request").Reopened(r.ID.Nominal) }) // which the later one waits behind
	later := g.owns(9, job.OverlapReplace)
	g.enters(def, byHand, later)
	g.mend(byHand, later)
	if r := g.stands(first); r.State != run.Unknown || !r.GaveWay() {
		t.Fatalf("the first is %s, for %+v", r.State, r.Why)
	}
	same(t, "who waits", g.waits([]run.Run{first, byHand, later}), []int{2})
	g.finishes(g.begins(g.stands(byHand)))
	same(t, "who waits behind that", g.waits([]run.Run{first, byHand, later}), []int(nil))
}

// An edit leaves the policy with the run: it goes by the limit of its job as that is, and by nothing where the job bounds nothing any more.
func TestG2_EditsAndOwnPolicies(t *testing.T) {
	g := newGated(t)
	def := bounds(1)
	g.define(def)
	runs := []run.Run{g.put(0, nil), g.owns(1, job.OverlapQueue), g.owns(2, job.OverlapQueue)}
	g.enters(def, runs...)
	same(t, "who waits", g.waits(runs), []int{1, 2})
	g.define(bounds(2))
	if err := g.LetIn(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	same(t, "who waits under a higher limit", g.waits(runs), []int{2})
	g.define(job.Definition{})
	if err := g.LetIn(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	same(t, "who waits without a limit", g.waits(runs), []int(nil))
	g.sound(runs)
}

// Whoever lets a run in that brings its policy, or skips it, dies at any operation, or is not told of one that is done: its message comes again, and it comes to the same.
func TestG1_G2_G4_OwnPoliciesSurviveWhatFails(t *testing.T) {
	for own, want := range map[job.OverlapPolicy]string{job.OverlapAllow: "queued", job.OverlapSkip: "skipped", job.OverlapQueueOne: "skipped", job.OverlapQueue: "waiting",
		job.OverlapQueueLatest: "waiting", job.OverlapCancel: "waiting", job.OverlapReplace: "queued"} {
		for _, done := range []bool{false, true} {
			for n := 0; ; n++ {
				g := newGated(t)
				def := queueing(1)
				g.define(def)
				runs := append(g.fires(2), g.owns(2, own))
				g.enters(def, runs[0])
				g.begins(runs[0])
				g.enters(def, runs[1]) // and waits
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
				what := fmt.Sprintf("%s, operation %d, done %v", own, n, done)
				if r := g.stands(runs[2]); r.Stage().String() != want || r.Overlap.Policy() != own {
					t.Errorf("%s: it is %s, and goes by %q; want %s", what, r.Stage(), r.Overlap, want)
				}
				first, second := g.stands(runs[0]), g.stands(runs[1])
				if displaces := own.LatestWaits(); displaces != (second.State == run.Skipped) || displaces && !gaveWayTo(second, runs[2], own) {
					t.Errorf("%s: the one that waited is %s, for %+v", what, second.State, second.Why)
				}
				if first.Cancel != (own == job.OverlapCancel) || (first.State == run.Cancelled) != (own == job.OverlapReplace) {
					t.Errorf("%s: the first is %s, asked: %v, for %+v", what, first.State, first.Cancel, first.Why)
				}
				if holds := len(g.in()); holds != 1 {
					t.Errorf("%s: %d are in progress by the gate", what, holds)
				}
				g.sound(runs)
			}
		}
	}
}

// What a run passes by a gate with a name of its own, it passes whatever it brings: its policy is of its job's own gate.
func TestG1_AnOwnPolicyIsOfTheJobsOwnGate(t *testing.T) {
	g := newGated(t)
	def := queueing(1)
	def.Gates = []job.GateUse{{Gate: "pool", Units: 1}}
	beside := g.owns(0, job.OverlapAllow)
	if !beside.Gated(&def) {
		t.Fatal("it passes no gate")
	}
	held := g.MayHold(t.Context(), beside, &job.Edition{Generation: 1, Def: def})
	if !held.Placed || !held.NamedGates || held.Expires != 0 {
		t.Errorf("it may hold a place: %v, at named gates: %v", held.Placed, held.NamedGates)
	}
	g.enters(def, beside)
	if at := g.gate(); at.Version != 0 {
		t.Errorf("its job's own gate was written: %+v", at)
	}
}
