package control_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

func TestCancel(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		var heard []run.ID
		g.Dispatch.Cancelled = func(tenant string, id run.ID) { heard = append(heard, id) }
		soon := time.Now().Add(time.Hour)
		for name, req := range map[string]control.Request{"Queued": {}, "Scheduled": {At: &soon}} {
			r := g.trigger("acme", "a", req)
			got, err := g.Cancel(ctx, "acme", r.ID, "wrong month")
			if err != nil || got.State != run.Cancelled || got.Reason != "wrong month" || len(heard) != 0 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			_, err = g.Cancel(ctx, "acme", r.ID, "")
			refused(t, err, control.CodeRunEnded)
		}
		r := g.trigger("acme", "a", control.Request{})
		g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
		if got, err := g.Cancel(ctx, "acme", r.ID, ""); err != nil || got.State != run.Running || !got.Cancel || got.Reason == "" || len(heard) != 1 {
			t.Errorf("a running one: %+v, %v, %d hints", got, err, len(heard))
		}
		_, err := g.Cancel(ctx, "acme", run.FireID("a", 60_000), "")
		refused(t, err, control.CodeRunNotFound)
	})
}

// A step that runs is told once that its run is to stop, by whoever asks it to: a cancel, or whoever finds the time of its run over.
func TestAStepIsToldWhereItIsAskedToStop(t *testing.T) {
	for name, stop := range map[string]func(g *rig, head run.Run) error{
		"cancelled": func(g *rig, head run.Run) error {
			_, err := g.Cancel(g.t.Context(), "acme", head.ID, "")
			return err
		},
		"over its time": func(g *rig, head run.Run) error {
			time.Sleep(time.Hour)
			return g.Dispatch.Follow(g.t.Context(), "acme", head.ID, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.put("acme", "etl", func(def *job.Definition) {
					def.Target = target.Spec{Workflow: []byte(`{"timeout": "1h", "steps": {"a": {"handler": {"name": "f"}}, "b": {"handler": {"name": "f"}}}}`)}
				})
				head := g.trigger("acme", "etl", control.Request{})
				edition, err := g.Dispatch.EditionOf(t.Context(), head)
				if err == nil {
					_, err = g.Dispatch.Open(t.Context(), head, edition, time.Now().UnixMilli())
				}
				if err == nil {
					err = g.Dispatch.Follow(t.Context(), "acme", head.ID, false)
				}
				if err != nil {
					t.Fatal(err)
				}
				g.write(run.Run{ID: head.ID.At("a"), Tenant: "acme"}, func(r run.Run, now int64) run.Run { return r.Start("w", now, 2*time.Hour) })
				told := map[string]int{}
				g.Dispatch.Cancelled = func(_ string, id run.ID) { told[id.Step]++ }
				for range 2 { // whoever looks again has nothing more to tell
					if err := stop(g, head); err != nil {
						t.Fatal(err)
					}
				}
				if told["a"] != 1 || told["b"] != 0 {
					t.Errorf("told are %v", told)
				}
			})
		})
	}
}

// TestFencesAreNoRuns: the marks of edits stand where runs do, and nobody sees them.
func TestFencesAreNoRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		fence, _ := run.Run{ID: run.FireID("a", time.Now().UnixMilli()), Tenant: "acme"}.FenceOff(5, time.Now().Add(time.Hour).UnixMilli())
		if _, err := g.Dispatch.PutRun(ctx, fence, job.Callbacks{}, time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		_, err := g.Run(ctx, "acme", fence.ID)
		refused(t, err, control.CodeRunNotFound)
		_, err = g.Cancel(ctx, "acme", fence.ID, "")
		refused(t, err, control.CodeRunNotFound)
		_, err = g.Retry(ctx, "acme", fence.ID, true, time.Time{})
		refused(t, err, control.CodeRunNotFound)
		if runs := g.all("acme", control.RunFilter{}); len(runs) != 0 {
			t.Errorf("listed: %+v", runs)
		}
	})
}

func TestP5_P7_OnlyARetryReopens(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a", func(d *job.Definition) { d.Retention = 0 })
		ended := func(end func(run.Run, int64) run.Run) run.Run {
			r := g.trigger("acme", "a", control.Request{})
			g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
			return g.write(r, end)
		}
		failed := ended(func(r run.Run, now int64) run.Run {
			return r.Fail(now, run.Failure{Error: "no", Permanent: true}, limits)
		})
		dead := ended(func(r run.Run, now int64) run.Run { return r.Fail(now, run.Failure{Error: "no"}, limits) })
		unknown := ended(func(r run.Run, now int64) run.Run { return r.Crash(now, "gone", run.Limits{AtMostOnce: true}) })
		succeeded := ended(func(r run.Run, now int64) run.Run { return r.Succeed(now, run.Ref{}, "", limits) })
		// P8: they are opened under the definition that mends them.
		j := g.put("acme", "a", func(d *job.Definition) { d.Retention, d.Description = 0, "mended" })
		for name, row := range map[string]struct {
			r     run.Run
			force bool
		}{"Failed": {failed, false}, "Dead": {dead, false}, "Unknown": {unknown, true}, "Succeeded": {succeeded, true}} {
			if row.force {
				_, err := g.Retry(ctx, "acme", row.r.ID, false, time.Time{})
				refused(t, err, control.CodeNeedsForce)
				if now, err := g.Run(ctx, "acme", row.r.ID); err != nil || now.Version != row.r.Version {
					t.Errorf("%s: the refused retry changed it to %+v, %v", name, now, err)
				}
			}
			got, err := g.Retry(ctx, "acme", row.r.ID, row.force, time.Time{})
			if err != nil || got.State != run.Queued || got.Version <= row.r.Version || got.Failures+got.Crashes != 0 || len(got.Attempts) != 1 ||
				got.Expires != 0 || got.Ended != 0 || got.Generation != j.Generation {
				t.Errorf("%s: reopened as %+v, %v", name, got, err)
			}
			_, err = g.Retry(ctx, "acme", row.r.ID, true, time.Time{})
			refused(t, err, control.CodeRunNotEnded)
			// P4: a wake-up stands, in case the message is lost.
			check := timer.NextCheck("acme", got.ID, time.Now().Add(g.Dispatch.LookAhead+time.Minute).UnixMilli())
			if items, err := g.Store.Get(ctx, check.Key()); err != nil || !items[0].Exists() {
				t.Errorf("%s: no check timer at %d, %v", name, check.Wake, err)
			}
		}
		skipped := g.trigger("acme", "a", control.Request{})
		skipped = g.write(skipped, func(r run.Run, now int64) run.Run {
			r.State, r.Ended = run.Skipped, now
			return r
		})
		_, err := g.Retry(ctx, "acme", skipped.ID, true, time.Time{})
		refused(t, err, control.CodeRunSkipped)
		_, err = g.Retry(ctx, "acme", run.FireID("a", 60_000), true, time.Time{})
		refused(t, err, control.CodeRunNotFound)
		again := ended(func(r run.Run, now int64) run.Run { return r.Fail(now, run.Failure{Error: "no"}, limits) })
		if err := g.Delete(ctx, "acme", "a", control.Match{}); err != nil {
			t.Fatal(err)
		}
		_, err = g.Retry(ctx, "acme", again.ID, false, time.Time{})
		refused(t, err, control.CodeJobDeleted)
	})
}

func TestP7_ConcurrentRetriesReopenOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		dead := g.fail(g.trigger("acme", "a", control.Request{}), "no")
		before := depth(g)
		var reopened, refusals atomic.Int64
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, err := g.Retry(t.Context(), "acme", dead.ID, false, time.Time{})
				var refusal *control.Refusal
				switch {
				case err == nil:
					reopened.Add(1)
				case asRefusal(err, &refusal) && refusal.Code == control.CodeRunNotEnded:
					refusals.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if reopened.Load() != 1 || refusals.Load() != 19 || depth(g) != before+1 {
			t.Errorf("%d reopened it, %d were refused, %d messages were sent", reopened.Load(), refusals.Load(), depth(g)-before)
		}
	})
}

func depth(g *rig) int64 {
	d, err := g.queue.Depth(context.Background())
	if err != nil {
		g.t.Fatal(err)
	}
	return d[queue.Normal].Ready
}

func (g *rig) letters(tenant string, f control.DeadFilter) []control.DeadLetter {
	g.t.Helper()
	var all []control.DeadLetter
	for cursor := ""; ; {
		letters, next, err := g.DeadLetters(g.t.Context(), tenant, f, cursor, 4)
		if err != nil {
			g.t.Fatal(err)
		}
		all = append(all, letters...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

func TestP12_DeadLettersAreListedAndRedriven(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		for _, tenant := range []string{"acme", "rival"} {
			g.put(tenant, "a")
			g.put(tenant, "b")
		}
		var dead []run.Run
		for i := range 30 {
			time.Sleep(time.Minute)
			dead = append(dead, g.fail(g.trigger("acme", []string{"a", "b"}[i%2], control.Request{}), []string{"exit: code 1", "timeout: too slow", "exit: code 2"}[i%3]))
		}
		foreign := g.fail(g.trigger("rival", "a", control.Request{}), "exit: code 1")
		check := func(name string, f control.DeadFilter, keep func(i int) bool) {
			t.Helper()
			var want, got []run.ID
			for i := range slices.Backward(dead) {
				if keep(i) {
					want = append(want, dead[i].ID)
				}
			}
			for _, letter := range g.letters("acme", f) {
				got = append(got, letter.Run)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %d letters, want %d, the newest first", name, len(got), len(want))
			}
		}
		from, to := time.UnixMilli(dead[5].Ended), time.UnixMilli(dead[20].Ended)
		check("All", control.DeadFilter{}, func(int) bool { return true })
		check("OfAJob", control.DeadFilter{Job: "b"}, func(i int) bool { return i%2 == 1 })
		check("Error", control.DeadFilter{Error: "exit: code"}, func(i int) bool { return i%3 != 1 })
		check("Time", control.DeadFilter{From: from, To: to}, func(i int) bool { return i >= 5 && i < 20 })
		if letters := g.letters("rival", control.DeadFilter{}); len(letters) != 1 || letters[0].Run != foreign.ID || letters[0].State != run.Dead || letters[0].Error != "exit: code 1" {
			t.Errorf("the other tenant's: %+v", letters)
		}

		// By ID: each has its own outcome; of another tenant's nothing is known.
		time.Sleep(time.Minute)
		gone := run.FireID("a", 60_000)
		out, err := g.Redrive(ctx, "acme", control.DeadFilter{}, control.Bulk{Runs: []run.ID{dead[0].ID, foreign.ID, gone, dead[0].ID}})
		done := out.Verdicts
		if err != nil || len(done) != 4 || done[0].Err != nil || done[0].Run.State != run.Queued || out.Count != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		refused(t, done[1].Err, control.CodeRunNotFound)
		refused(t, done[2].Err, control.CodeRunNotFound)
		refused(t, done[3].Err, control.CodeRunNotEnded)
		if now, err := g.Run(ctx, "rival", foreign.ID); err != nil || now.Version != foreign.Version {
			t.Errorf("the other tenant's run is now %+v, %v", now, err)
		}
		check("AfterOneIsRedriven", control.DeadFilter{}, func(i int) bool { return i != 0 })
		// It fails again: listed once, at its new time, and the run has its history.
		dead[0] = g.fail(dead[0], "exit: code 3")
		if letters := g.letters("acme", control.DeadFilter{}); len(letters) != 30 || letters[0].Run != dead[0].ID || letters[0].Error != "exit: code 3" {
			t.Errorf("%d letters, the newest %+v", len(letters), letters[0])
		}
		if now, err := g.Run(ctx, "acme", dead[0].ID); err != nil || now.Attempt != 2 || len(now.Attempts) != 2 {
			t.Errorf("history %+v, %v", now.Attempts, err)
		}

		// By filter, at a rate.
		began := time.Now()
		out, err = g.Redrive(ctx, "acme", control.DeadFilter{Job: "b"}, control.Bulk{Max: 10, PerSecond: 2})
		if took := time.Since(began); err != nil || out.Count != 10 || took < 4*time.Second || took > 5*time.Second || out.Next == "" {
			t.Errorf("%d redriven in %s, %v; want 10 at 2 a second, and a cursor for the others", out.Count, took, err)
		}
		if left := len(g.letters("acme", control.DeadFilter{Job: "b"})); left != 5 {
			t.Errorf("%d letters of the job are left, want 5", left)
		}
		stopped, cancel := context.WithCancel(ctx)
		time.AfterFunc(2500*time.Millisecond, cancel)
		if out, err = g.Redrive(stopped, "acme", control.DeadFilter{}, control.Bulk{Max: 100, PerSecond: 1}); !errors.Is(err, context.Canceled) || out.Count != 3 {
			t.Errorf("stopped after %d, %v; want 3 told of", out.Count, err)
		}
		for _, rate := range []float64{-1, 1e-12, math.NaN()} {
			_, err := g.Redrive(ctx, "acme", control.DeadFilter{}, control.Bulk{PerSecond: rate})
			wantField(t, err, "per_second")
		}
		g.unreadable(dead[3].DeadKey())
		if letters := g.letters("acme", control.DeadFilter{}); len(letters) == 0 {
			t.Error("an unreadable letter hides the others")
		}
	})
}

// TestAReopenedRunKeepsItsPayload: the blob's time would have been over before the attempts of a late redrive.
func TestAReopenedRunKeepsItsPayload(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		payload := []byte(`"` + strings.Repeat("x", 2000) + `"`)
		r := g.trigger("acme", "a", control.Request{Payload: payload})
		for range 4 {
			r = g.fail(r, "no")
			time.Sleep(29 * 24 * time.Hour)
			var err error
			if r, err = g.Retry(ctx, "acme", r.ID, false, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Blobs.DeleteExpired(ctx, time.Now(), 1000); err != nil {
				t.Fatal(err)
			}
			if got, err := g.Blobs.Get(ctx, "acme", r.Payload.Blob); err != nil || string(got) != string(payload) {
				t.Fatalf("%d bytes after %s, %v", len(got), time.Since(r.ID.Time()), err)
			}
		}
		// Where it is gone all the same, the attempt will say so.
		r = g.fail(r, "no")
		if err := g.Blobs.Delete(ctx, "acme", r.Payload.Blob); err != nil {
			t.Fatal(err)
		}
		if r, err := g.Retry(ctx, "acme", r.ID, false, time.Time{}); err != nil || r.State != run.Queued {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestP12_NothingOfAnotherTenant tries every method on what another tenant has: it is as if there were nothing, down to the words.
func TestP12_NothingOfAnotherTenant(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "secret")
		r := g.fail(g.trigger("acme", "secret", control.Request{Payload: []byte(`"` + strings.Repeat("x", 2000) + `"`)}), "no")
		key, err := g.Blobs.Put(ctx, blob.Ref{Tenant: "acme", Kind: blob.Log, ID: r.ID.String()}, []byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		before, err := g.Job(ctx, "acme", "secret")
		if err != nil {
			t.Fatal(err)
		}
		absent := r.ID
		absent.Job = "absent"
		for name, call := range map[string]func(name string, id run.ID) error{
			"Job":     func(n string, _ run.ID) error { _, err := g.Job(ctx, "rival", n); return err },
			"Delete":  func(n string, _ run.ID) error { return g.Delete(ctx, "rival", n, control.Match{}) },
			"Pause":   func(n string, _ run.ID) error { _, err := g.Pause(ctx, "rival", n, "", control.Match{}); return err },
			"Resume":  func(n string, _ run.ID) error { _, err := g.Resume(ctx, "rival", n, control.Match{}); return err },
			"Trigger": func(n string, _ run.ID) error { _, _, err := g.Trigger(ctx, "rival", n, control.Request{}); return err },
			"Put": func(n string, _ run.ID) error {
				_, _, err := g.Put(ctx, "rival", n, definition(), control.Match{ETag: before.ETag()})
				return err
			},
			"Run":    func(_ string, id run.ID) error { _, err := g.Run(ctx, "rival", id); return err },
			"Cancel": func(_ string, id run.ID) error { _, err := g.Cancel(ctx, "rival", id, ""); return err },
			"Retry":  func(_ string, id run.ID) error { _, err := g.Retry(ctx, "rival", id, true, time.Time{}); return err },
		} {
			foreign, nothing := call("secret", r.ID), call("absent", absent)
			if foreign == nil || nothing == nil || strings.ReplaceAll(foreign.Error(), "secret", "absent") != nothing.Error() {
				t.Errorf("%s: %v for another tenant's, %v for nothing", name, foreign, nothing)
			}
		}
		stolen := run.Run{ID: r.ID, Tenant: "rival", Log: key, Result: run.Ref{Blob: key}}
		if log, err := g.LogOf(ctx, stolen, 0); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("the log %q, %v", log.Text(), err)
		}
		if result, _, err := g.Result(ctx, stolen); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("the result %q, %v", result, err)
		}
		if n := len(g.all("rival", control.RunFilter{})) + len(g.all("rival", control.RunFilter{Job: "secret"})) + len(g.letters("rival", control.DeadFilter{})); n != 0 {
			t.Errorf("%d runs and letters are listed", n)
		}
		after, err := g.Job(ctx, "acme", "secret")
		if now, err2 := g.Run(ctx, "acme", r.ID); err != nil || err2 != nil || after.ETag() != before.ETag() || now.Version != r.Version {
			t.Errorf("changed: %s to %s, %d to %d, %v, %v", before.ETag(), after.ETag(), r.Version, now.Version, err, err2)
		}
	})
}

func TestClocksThatAreApartChangeNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		r := g.trigger("acme", "a", control.Request{})
		g.Store.(interface{ SetSkew(time.Duration) }).SetSkew(time.Minute)
		_, _, err := g.Put(t.Context(), "acme", "b", definition(), control.Match{})
		refused(t, err, control.CodeClockSkewed)
		_, _, err = g.Trigger(t.Context(), "acme", "a", control.Request{})
		refused(t, err, control.CodeClockSkewed)
		_, err = g.Cancel(t.Context(), "acme", r.ID, "")
		refused(t, err, control.CodeClockSkewed)
	})
}

func TestNextRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		hourly := func(d *job.Definition) { d.Schedule = everyHour() }
		j := g.put("acme", "a", hourly)
		fires := g.NextRuns(j, 3)
		if len(fires) != 3 || fires[0].Before(time.Now()) || fires[1].Sub(fires[0]) != time.Hour || fires[2].Sub(fires[1]) != time.Hour {
			t.Errorf("got %v", fires)
		}
		if j, err := g.Pause(t.Context(), "acme", "a", "holidays", control.Match{}); err != nil || g.NextRuns(j, 3) != nil || j.Reason != "holidays" {
			t.Errorf("paused: %v, %+v, %v", g.NextRuns(j, 3), j, err)
		}
		if fires := g.NextRuns(g.put("acme", "b"), 3); fires != nil {
			t.Errorf("on demand: %v", fires)
		}
	})
}

func TestResultsAndLogsAreRead(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		key, err := g.Blobs.Put(ctx, blob.Ref{Tenant: "acme", Kind: blob.Result, ID: "a"}, []byte("large"))
		if err != nil {
			t.Fatal(err)
		}
		for name, row := range map[string]struct {
			ref        run.Ref
			data, kind string
		}{
			"None":   {run.Ref{}, "", ""},
			"Inline": {run.Ref{Inline: []byte("{}")}, "{}", ""},
			"Typed":  {run.Ref{Inline: []byte("x"), Type: "text/plain"}, "x", "text/plain"},
			"Blob":   {run.Ref{Blob: key}, "large", ""},
		} {
			data, kind, err := g.Result(ctx, run.Run{Tenant: "acme", Result: row.ref})
			if err != nil || string(data) != row.data || kind != row.kind {
				t.Errorf("%s: %q of %q, %v", name, data, kind, err)
			}
		}
		if log, err := g.LogOf(ctx, run.Run{Tenant: "acme"}, 0); err != nil || !log.IsEmpty() {
			t.Errorf("no log: %q, %v", log.Text(), err)
		}
	})
}

// A run that is opened again long after it was due has a check at the time that it is to start by, where nobody starts it.
func TestG4_AReopenedRunIsLookedAtWhenItIsTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a", func(d *job.Definition) { d.ExpiresAfter = schedule.Duration(3 * time.Minute) })
		r := g.trigger("acme", "a", control.Request{})
		g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
		g.write(r, func(r run.Run, now int64) run.Run { return r.Fail(now, run.Failure{Error: "no"}, limits) })
		time.Sleep(24*time.Hour + time.Minute) // the next regular check of it lies 14 minutes ahead
		again, err := g.Retry(ctx, "acme", r.ID, false, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		at := again.StartBy + g.Dispatch.Ahead().Milliseconds() + 1
		if items, err := g.Store.Get(ctx, timer.NewCheck("acme", again.ID, at).Key()); err != nil || !items[0].Exists() {
			t.Errorf("no check at %d, %v", at, err)
		}
	})
}
