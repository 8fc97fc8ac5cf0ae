package control_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

func strict(d *job.Definition) {
	d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapStrict}
}

// comes has a run enter the gate of its job, as its worker does before it starts.
func (g *rig) comes(r run.Run) dispatch.Entrance {
	g.t.Helper()
	standing, err := g.Run(g.t.Context(), r.Tenant, r.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	e, err := g.Dispatch.Book.Edition(g.t.Context(), r.Tenant, r.ID.Job, standing.Generation)
	if err != nil {
		g.t.Fatal(err)
	}
	keyed, ok, err := g.Dispatch.Keyed(g.t.Context(), standing, e)
	if err != nil || !ok {
		g.t.Fatal(ok, err)
	}
	came, err := g.Dispatch.Enter(g.t.Context(), keyed, keyed.ID.Nominal, e.Def)
	if err != nil {
		g.t.Fatal(err)
	}
	if came == dispatch.Passed {
		g.write(r, func(r run.Run, now int64) run.Run {
			r = r.Start("w", now, time.Minute)
			r.Placed, r.GateKey = true, keyed.GateKey
			return r
		})
	}
	return came
}

// ends ends a run that has started, and tells its gate.
func (g *rig) ends(r run.Run, well bool) run.Run {
	g.t.Helper()
	ended := g.write(r, func(r run.Run, now int64) run.Run {
		if well {
			return r.Succeed(now, run.Ref{}, "", limits)
		}
		return r.Fail(now, run.Failure{Error: "no"}, limits)
	})
	if err := g.Dispatch.Left(g.t.Context(), ended); err != nil {
		g.t.Fatal(err)
	}
	return ended
}

func (g *rig) state(r run.Run) run.State {
	g.t.Helper()
	standing, err := g.Run(g.t.Context(), r.Tenant, r.ID)
	if err != nil {
		g.t.Fatal(err)
	}
	return standing.Stage()
}

// stuck makes a strict job whose first run died, and behind which another waits.
func (g *rig) stuck(change ...func(*job.Definition)) (first, second run.Run) {
	g.t.Helper()
	g.put("acme", "a", append([]func(*job.Definition){strict}, change...)...)
	first, second = g.trigger("acme", "a", control.Request{}), g.trigger("acme", "a", control.Request{})
	if came := g.comes(first); came != dispatch.Passed {
		g.t.Fatal(came)
	}
	if came := g.comes(second); came != dispatch.Joined {
		g.t.Fatal(came)
	}
	return g.ends(first, false), second
}

// A line stands still, and everything that shows it says behind which run and what to do.
func TestG9_ALineThatStandsStillSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		first, second := g.stuck()
		shown, err := g.Gate(t.Context(), "acme", "job:a")
		want := control.Blocker{Run: first.ID.String(), State: run.Dead, Since: first.Ended}
		if err != nil || shown.InProgress != 0 || shown.Units != 0 || shown.Waiting != 1 || !slices.Equal(shown.Blocked, []control.Blocker{want}) {
			t.Errorf("the gate is %+v, %v", shown, err)
		}
		waits, err := g.Run(t.Context(), "acme", second.ID)
		if err != nil {
			t.Fatal(err)
		}
		st, err := g.Standing(t.Context(), waits)
		if err != nil {
			t.Fatal(err)
		}
		why := st.Why()
		if len(why) != 1 || why[0].Code != control.WaitBlocked || !strings.Contains(why[0].Text, "stands still") || !strings.Contains(why[0].Text, first.ID.String()+" ended as dead") ||
			!strings.Contains(why[0].Who, "belfry gate open job:a --run "+first.ID.String()) || !slices.Equal(why[0].Line.Blocked, []control.Blocker{want}) {
			t.Errorf("it waits since %+v", why)
		}
	})
}

// What is advised is what is not refused: an unknown run is retried with force, and that of a workflow which has begun is not.
func TestG9_AdviceOnALineThatStandsStill(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(r run.Run, now int64) run.Run
		want func(a run.ID) string
	}{
		"failed": {func(r run.Run, now int64) run.Run {
			return r.Fail(now, run.Failure{Error: "no", Permanent: true}, limits)
		},
			func(a run.ID) string { return "belfry run retry " + a.String() + ", or " }},
		"unknown": {func(r run.Run, now int64) run.Run { r, _ = r.Restored(now, "restored", 0); return r },
			func(a run.ID) string { return "belfry run retry " + a.String() + " --force, or " }},
		"a workflow that has begun": {func(r run.Run, now int64) run.Run {
			r.Attempts, r.Lease = nil, 0
			r, _ = r.Restored(now, "restored", 0)
			return r
		}, func(run.ID) string { return "" }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.put("acme", "a", strict)
				first, second := g.trigger("acme", "a", control.Request{}), g.trigger("acme", "a", control.Request{})
				if came := g.comes(first); came != dispatch.Passed {
					t.Fatal(came)
				}
				g.write(first, row.end)
				if came := g.comes(second); came != dispatch.Joined {
					t.Fatal(came)
				}
				waits, err := g.Run(t.Context(), "acme", second.ID)
				if err != nil {
					t.Fatal(err)
				}
				st, err := g.Standing(t.Context(), waits)
				if err != nil {
					t.Fatal(err)
				}
				want := row.want(first.ID) + "belfry gate open job:a --run " + first.ID.String()
				if why := st.Why(); len(why) != 1 || why[0].Code != control.WaitBlocked || why[0].Who != want || strings.Contains(why[0].Text, "is retried") != strings.Contains(want, "retry") {
					t.Errorf("advised %+v, want %s", why, want)
				}
			})
		})
	}
}

// A retry, or a redrive, holds its place in front of those that wait, through pause and resume and an edit that leaves the job strict. Its success lets the line go on.
func TestG3_TheRetryOfARunThatHoldsUpALine(t *testing.T) {
	for name, again := range map[string]func(*rig, run.Run) error{
		"retry": func(g *rig, r run.Run) error {
			_, err := g.Retry(g.t.Context(), "acme", r.ID, false, time.Time{})
			return err
		},
		"redrive": func(g *rig, r run.Run) error {
			out, err := g.Redrive(g.t.Context(), "acme", control.DeadFilter{Job: "a"}, control.Bulk{Max: 10})
			if err == nil && out.Count != 1 {
				err = errors.New("nothing was redriven")
			}
			return err
		},
	} {
		for change, edit := range map[string]func(*rig){
			"as it was": func(*rig) {},
			"a longer line": func(g *rig) {
				g.put("acme", "a", strict, func(d *job.Definition) { most := 5; d.Overlap.MaxWaiting = &most })
			},
			"paused and resumed": func(g *rig) { g.pauseAndResume() },
		} {
			t.Run(name+", "+change, func(t *testing.T) {
				inBubble(t, func(t *testing.T, g *rig) {
					first, second := g.stuck()
					edit(g)
					g.standsBehind(second)
					if err := again(g, first); err != nil {
						t.Fatal(err)
					}
					edit(g)
					third := g.trigger("acme", "a", control.Request{})
					if came := g.comes(third); came != dispatch.Joined {
						t.Errorf("a later one comes to %d", came)
					}
					g.standsBehind(second)
					if came := g.comes(first); came != dispatch.Passed {
						t.Errorf("the retry comes to %d", came)
					}
					g.ends(first, true)
					if is := g.state(second); is != run.Queued {
						t.Errorf("behind its success the second is %s", is)
					}
				})
			})
		}
	}
}

// standsBehind holds that a run waits, also where an edit has taken its claim, so that it enters anew.
func (g *rig) standsBehind(r run.Run) {
	g.t.Helper()
	if g.state(r) == run.Queued {
		g.comes(r)
	}
	if is := g.state(r); is != run.Waiting {
		g.t.Errorf("it is %s, and is to wait", is)
	}
}

func (g *rig) pauseAndResume() {
	g.t.Helper()
	if _, err := g.Pause(g.t.Context(), "acme", "a", "", control.Match{}); err != nil {
		g.t.Fatal(err)
	}
	if _, err := g.Resume(g.t.Context(), "acme", "a", control.Match{}); err != nil {
		g.t.Fatal(err)
	}
}

// An edit away from strict lets the line go on, and a later one back to it holds for who is let in behind that. A delete ends those that wait.
func TestG2_EditsOfAStrictJob(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		_, second := g.stuck()
		since := g.put("acme", "a", strict).Def.Overlap.Since
		if since == 0 {
			t.Error("nothing says since when the job is strict")
		}
		g.put("acme", "a", func(d *job.Definition) { d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapQueue} })
		if is := g.state(second); is != run.Queued {
			t.Errorf("the second is %s", is)
		}
		if j := g.put("acme", "a", strict); j.Def.Overlap.Since <= since || j.Def.Overlap.Since != j.Generation {
			t.Errorf("strict anew since %d, generation %d", j.Def.Overlap.Since, j.Generation)
		}
	})
	inBubble(t, func(t *testing.T, g *rig) {
		_, second := g.stuck()
		if err := g.Delete(t.Context(), "acme", "a", control.Match{}); err != nil {
			t.Fatal(err)
		}
		if is := g.state(second); is != run.Cancelled {
			t.Errorf("the second is %s", is)
		}
		g.put("acme", "a", strict)
		if came := g.comes(g.trigger("acme", "a", control.Request{})); came != dispatch.Passed {
			t.Errorf("a run of the job that was made anew comes to %d", came)
		}
	})
}

// An edit to strict holds for who waits in line as it comes, and not for one that was queued before and finds room: that enters by the definition of then, and holds up nobody.
func TestG2_AnEditToStrictAndRunsOfBefore(t *testing.T) {
	for name, row := range map[string]struct {
		before func(*job.Definition)
		waits  bool
		blocks bool
		beside dispatch.Entrance // another run of before, which comes while the line stands still
	}{
		"it was queued":                      {func(d *job.Definition) { d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapQueue} }, false, false, 0},
		"it waited in line":                  {func(d *job.Definition) { d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapQueue} }, true, true, dispatch.Joined},
		"another of before has a limit of 3": {func(d *job.Definition) { d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapAllow, Limit: 3} }, false, true, dispatch.Passed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.put("acme", "a", row.before)
				first, second, beside := g.trigger("acme", "a", control.Request{}), g.trigger("acme", "a", control.Request{}), g.trigger("acme", "a", control.Request{})
				if row.waits {
					g.comes(first)
					if came := g.comes(second); came != dispatch.Joined {
						t.Fatal(came)
					}
				}
				g.put("acme", "a", strict)
				switch {
				case row.waits:
					g.ends(first, true)
					if came := g.comes(second); came != dispatch.Passed {
						t.Fatalf("let in, it comes to %d", came)
					}
				case row.blocks: // one that was claimed after the edit holds up the line
					second = g.trigger("acme", "a", control.Request{})
					g.comes(second)
				default:
					g.comes(second)
				}
				g.ends(second, false)
				if row.beside != 0 {
					if came := g.comes(beside); came != row.beside {
						t.Errorf("another of before comes to %d, want %d", came, row.beside)
					}
				}
				want := map[bool]dispatch.Entrance{true: dispatch.Joined, false: dispatch.Passed}[row.blocks]
				if came := g.comes(g.trigger("acme", "a", control.Request{})); came != want {
					t.Errorf("the next one comes to %d, want %d", came, want)
				}
			})
		})
	}
}

// Whoever opens the gate lets the line go on: of the run that was meant alone, at the value that was meant.
func TestG2_OpeningALine(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		first, second := g.stuck()
		open := func(name string, o control.Opening) (control.Gate, error) {
			return g.OpenLine(t.Context(), "acme", name, "on-call", o, control.Match{})
		}
		_, err := open("job:a", control.Opening{Run: second.ID.String()})
		refused(t, err, control.CodeNotBlocking)
		if !strings.Contains(err.Error(), first.ID.String()) {
			t.Errorf("it does not name the run that blocks: %v", err)
		}
		_, err = open("job:a", control.Opening{Run: "b~0mwqktqeg"})
		if all := invalid.All(err); len(all) != 1 || all[0].Field != "run" {
			t.Errorf("for a run of another job: %v", err)
		}
		_, err = open("job:never-was", control.Opening{})
		refused(t, err, control.CodeGateNotFound)
		for range 2 { // the answer to the first may be lost
			shown, err := open("job:a", control.Opening{Run: first.ID.String(), Reason: "made up by hand"})
			if err != nil || len(shown.Blocked) != 0 || shown.Waiting != 0 || shown.LetGo.Change.By != "on-call" || shown.LetGo.Change.Reason != "made up by hand" || !slices.Equal(shown.LetGo.Runs, []string{first.ID.String()}) {
				t.Errorf("opened as %+v, %v", shown, err)
			}
		}
		if is := g.state(second); is != run.Queued {
			t.Errorf("the second is %s", is)
		}
		if _, err := open("job:a", control.Opening{}); err != nil {
			t.Errorf("where no line stands still: %v", err)
		}
		g.put("acme", "free", unbounded)
		_, err = open("job:free", control.Opening{})
		refused(t, err, control.CodeOwnGate)
		if strings.Contains(err.Error(), "pause") {
			t.Errorf("whoever opens a line is told how to keep runs out: %v", err)
		}
	})
	inBubble(t, func(t *testing.T, g *rig) {
		first, second := g.stuck(func(d *job.Definition) { d.Overlap.Key, d.Payload = "${ .payload }", []byte(`"acme"`) })
		_, err := g.OpenLine(t.Context(), "acme", "job:a", "", control.Opening{}, control.Match{})
		if all := invalid.All(err); len(all) != 1 || all[0].Field != "key" {
			t.Errorf("without a value: %v", err)
		}
		if shown, err := g.OpenLine(t.Context(), "acme", "job:a", "", control.Opening{Key: "other"}, control.Match{}); err != nil || len(shown.Blocked) != 1 || shown.Blocked[0].Key != "acme" {
			t.Errorf("for another value: %+v, %v", shown, err)
		}
		// An edit that takes the key away leaves the line of the value as it is. It is still to be named.
		g.put("acme", "a", strict)
		_, err = g.OpenLine(t.Context(), "acme", "job:a", "", control.Opening{}, control.Match{})
		if all := invalid.All(err); len(all) != 1 || all[0].Field != "key" {
			t.Errorf("without a value, of a job that had a key: %v", err)
		}
		if shown, err := g.OpenLine(t.Context(), "acme", "job:a", "", control.Opening{Run: first.ID.String()}, control.Match{}); err != nil || len(shown.Blocked) != 0 {
			t.Errorf("by the run: %+v, %v", shown, err)
		}
		if is := g.state(second); is != run.Queued {
			t.Errorf("the second is %s", is)
		}
	})
}

// An edit of the key leaves a retry where the line stands still behind it, at one gate alone, also where it takes the retry's claim: it holds up no other line, and whoever
// opens the gate finds it there.
func TestG2_G3_TheRetryOfARunThatHoldsUpALineAtAnotherKey(t *testing.T) {
	keyed := func(text string) func(*job.Definition) {
		return func(d *job.Definition) { d.Overlap.Key, d.Payload = text, []byte(`"acme"`) }
	}
	for name, row := range map[string]struct {
		before, after, key string
	}{
		"another key": {"${ .payload }", "${ .job }", "acme"},
		"a first key": {"", "${ .payload }", ""},
		"no key":      {"${ .payload }", "", "acme"},
	} {
		for when, early := range map[string]bool{"before the retry": true, "behind it": false} {
			t.Run(name+", "+when, func(t *testing.T) {
				inBubble(t, func(t *testing.T, g *rig) {
					g.put("acme", "a", strict, keyed(row.before))
					first := g.trigger("acme", "a", control.Request{})
					g.comes(first)
					first = g.ends(first, false)
					again := func() {
						t.Helper()
						if _, err := g.Retry(t.Context(), "acme", first.ID, false, time.Time{}); err != nil {
							t.Fatal(err)
						}
					}
					if !early {
						again()
					}
					g.put("acme", "a", strict, keyed(row.after))
					if early {
						again()
					}
					if came := g.comes(first); came != dispatch.Passed {
						t.Errorf("the retry comes to %d", came)
					}
					if shown, err := g.Gate(t.Context(), "acme", "job:a"); err != nil || shown.InProgress != 1 || len(shown.Blocked) != 0 {
						t.Errorf("while it is in progress: %+v, %v", shown, err)
					}
					g.ends(first, false)
					shown, err := g.Gate(t.Context(), "acme", "job:a")
					if err != nil || shown.InProgress != 0 || len(shown.Blocked) != 1 || shown.Blocked[0].Run != first.ID.String() || shown.Blocked[0].Key != row.key {
						t.Errorf("when it has failed: %+v, %v", shown, err)
					}
					again()
					g.comes(first)
					g.ends(first, false)
					if shown, err = g.OpenLine(t.Context(), "acme", "job:a", "", control.Opening{Run: first.ID.String()}, control.Match{}); err != nil || len(shown.Blocked) != 0 {
						t.Errorf("opened: %+v, %v", shown, err)
					}
				})
			})
		}
	}
}

// A run behind which somebody has let the line go on was retried, let in, and failed: while its next retry is in progress, nobody is told that its gate was opened.
func TestG2_OpeningALineBehindARetryThatIsInProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		first, second := g.stuck()
		open := func() (control.Gate, error) {
			return g.OpenLine(t.Context(), "acme", "job:a", "on-call", control.Opening{Run: first.ID.String()}, control.Match{})
		}
		again := func() {
			t.Helper()
			if _, err := g.Retry(t.Context(), "acme", first.ID, false, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := open(); err != nil {
			t.Fatal(err)
		}
		g.comes(second)
		again()
		if came := g.comes(first); came != dispatch.Joined {
			t.Fatal(came)
		}
		g.ends(second, true)
		if came := g.comes(first); came != dispatch.Passed {
			t.Fatal(came)
		}
		g.ends(first, false)
		again()
		_, err := open()
		refused(t, err, control.CodeNotBlocking)
		if err == nil || !strings.Contains(err.Error(), "retry, is in progress") {
			t.Errorf("it says %v", err)
		}
		g.comes(first)
		g.ends(first, false)
		if shown, err := open(); err != nil || len(shown.Blocked) != 0 {
			t.Errorf("opened when that has failed: %+v, %v", shown, err)
		}
	})
}

// The answer to an opening is lost. Before it is sent again, the run is retried, and ends badly again: nobody has seen that end, so the line goes on standing still behind it.
func TestG3_ARepeatedOpeningLetsNoLaterEndGo(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		first, second := g.stuck()
		open := func(since int64) (control.Gate, error) {
			return g.OpenLine(t.Context(), "acme", "job:a", "on-call", control.Opening{Run: first.ID.String(), Since: since}, control.Match{})
		}
		for range 2 {
			if shown, err := open(first.Ended); err != nil || len(shown.Blocked) != 0 {
				t.Fatalf("opened as %+v, %v", shown, err)
			}
		}
		g.comes(second)
		if _, err := g.Retry(t.Context(), "acme", first.ID, false, time.Time{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		g.comes(first)
		g.ends(second, true)
		g.comes(first)
		again := g.ends(first, false)
		_, err := open(first.Ended)
		refused(t, err, control.CodeNotBlocking)
		if at := time.UnixMilli(again.Ended).UTC().Format(time.RFC3339Nano); err == nil || !strings.Contains(err.Error(), at) {
			t.Errorf("it does not say that the run ended at %s: %v", at, err)
		}
		if shown, err := g.Gate(t.Context(), "acme", "job:a"); err != nil || len(shown.Blocked) != 1 || shown.Blocked[0].Since != again.Ended {
			t.Errorf("the gate is %+v, %v", shown, err)
		}
		if shown, err := open(again.Ended); err != nil || len(shown.Blocked) != 0 {
			t.Errorf("by the newer end it is %+v, %v", shown, err)
		}
		_, err = g.OpenLine(t.Context(), "acme", "job:a", "on-call", control.Opening{Since: first.Ended}, control.Match{})
		if all := invalid.All(err); len(all) != 1 || all[0].Field != "run" {
			t.Errorf("an end of no run: %v", err)
		}
	})
}

// Who has opened the gate is shown for as long as the job is strict since then: not of a job that was made anew, nor once it was edited away.
func TestG9_WhoHasOpenedALineBefore(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"made anew": func(g *rig) {
			if err := g.Delete(g.t.Context(), "acme", "a", control.Match{}); err != nil {
				g.t.Fatal(err)
			}
			g.put("acme", "a", strict)
		},
		"edited away": func(g *rig) {
			g.put("acme", "a", func(d *job.Definition) { d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapQueue} })
		},
		"and back": func(g *rig) {
			g.put("acme", "a", func(d *job.Definition) { d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapQueue} })
			g.put("acme", "a", strict)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.stuck()
				if shown, err := g.OpenLine(t.Context(), "acme", "job:a", "on-call", control.Opening{}, control.Match{}); err != nil || shown.LetGo.Change.By != "on-call" {
					t.Fatalf("%+v, %v", shown, err)
				}
				change(g)
				if shown, err := g.Gate(t.Context(), "acme", "job:a"); err != nil || !shown.LetGo.IsZero() {
					t.Errorf("it shows %+v, %v", shown.LetGo, err)
				}
			})
		})
	}
}
