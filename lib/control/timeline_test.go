package control_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/tick"
)

// ticking gives what makes passes over the rig's store, until time has moved on by d.
func (g *rig) ticking() func(d time.Duration) {
	g.t.Helper()
	ticker, err := tick.New(tick.Config{Dispatch: g.Dispatch, Metrics: metrics.New(), Owner: "ticks"})
	if err != nil {
		g.t.Fatal(err)
	}
	return func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(time.Until(end), max(10*time.Second, d/500))) {
			for behind := true; behind; {
				report, err := ticker.Tick(g.t.Context())
				if err != nil {
					g.t.Fatal(err)
				}
				behind = report.Behind
			}
		}
	}
}

// listed gives the IDs of all pages of a listing.
func (g *rig) listed(tenant string, f control.RunFilter) []string {
	g.t.Helper()
	return idsOf(g.all(tenant, f))
}

// TestARunIsListedOnceWhereverItIsFound: in the buckets, by the sweep, alone, and again after a retry.
func TestARunIsListedOnceWhereverItIsFound(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		pass := g.ticking()
		labels := func(team string) func(*job.Definition) {
			return func(d *job.Definition) { d.Labels = map[string]string{"team": team, "tier": "1"} }
		}
		g.put("acme", "hourly", labels("billing"), func(d *job.Definition) { d.Schedule = everyHour() })
		g.put("acme", "asked", labels("search"))
		g.put("rival", "asked")
		later := g.trigger("acme", "asked", control.Request{Delay: new(48 * time.Hour)})
		rival := g.trigger("rival", "asked", control.Request{})
		now := g.trigger("acme", "asked", control.Request{})
		want := []string{later.ID.String(), now.ID.String()}
		check := func(when string, f control.RunFilter, want ...string) {
			t.Helper()
			if got := g.listed("acme", f); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", when, got, want)
			}
		}
		check("right after the answer", control.RunFilter{}, want...)
		pass(time.Hour + 10*time.Second)
		fire := run.FireID("hourly", time.Now().Truncate(time.Hour).UnixMilli())
		want = slices.Insert(want, 1, fire.String())
		check("right after the fire", control.RunFilter{}, want...)
		now = g.fail(now, "no route to host")
		pass(10 * time.Minute)
		check("swept", control.RunFilter{}, want...)
		check("by label", control.RunFilter{Labels: map[string]string{"team": "search", "tier": "1"}}, want[0], want[2])
		check("by another value", control.RunFilter{Labels: map[string]string{"team": "search", "tier": "2"}})
		check("unended", control.RunFilter{States: []run.State{run.Scheduled, run.Queued, run.Running, run.Retrying}}, want[:2]...)
		check("given up", control.RunFilter{States: []run.State{run.Dead}}, want[2])
		check("by error", control.RunFilter{Error: "no route"}, want[2])
		check("before the fire", control.RunFilter{To: fire.Time()}, want[2])
		check("from the fire on", control.RunFilter{From: fire.Time()}, want[:2]...)
		if _, err := g.Retry(t.Context(), "acme", now.ID, false, time.Time{}); err != nil {
			t.Fatal(err)
		}
		check("after a retry", control.RunFilter{}, want...)
		check("queued again", control.RunFilter{States: []run.State{run.Queued}}, want[1:]...)
		if got := g.listed("rival", control.RunFilter{}); !slices.Equal(got, []string{rival.ID.String()}) {
			t.Errorf("the other tenant sees %v", got)
		}
		pass(48 * time.Hour)
		if got := g.listed("acme", control.RunFilter{Job: "asked"}); !slices.Equal(got, []string{want[0], want[2]}) {
			t.Errorf("of the job: %v", got)
		}
		if got := g.listed("acme", control.RunFilter{}); len(got) != 2+49 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			t.Errorf("%d runs after two days, want 51, each once: %v", len(got), got)
		}
	})
}

// TestItemsOfOneMinuteMayOverlap: each sweep lists what it comes upon, so an item may hold runs from before and behind those of another one.
func TestItemsOfOneMinuteMayOverlap(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		pass := g.ticking()
		g.put("acme", "a")
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		var runs []run.ID
		for range 6 {
			time.Sleep(5 * time.Second)
			runs = append(runs, g.trigger("acme", "a", control.Request{}).ID)
		}
		want := make([]string, len(runs))
		for i, id := range runs {
			want[len(want)-1-i] = id.String()
		}
		pass(10 * time.Minute)
		for _, pair := range [][2]int{{1, 2}, {3, 4}, {0, 5}} {
			expires := time.Now().Add(24 * time.Hour)
			g.list("acme", run.Listing{ID: runs[pair[0]], Expires: expires}, run.Listing{ID: runs[pair[1]], Expires: expires})
		}
		if got := g.listed("acme", control.RunFilter{}); !slices.Equal(got, want) {
			t.Errorf("listed are %v, want %v", got, want)
		}
	})
}

// TestWhatHasNotEndedIsListedHoweverOldItIs: held by a pause, or between two tries that are hours apart.
func TestWhatHasNotEndedIsListedHoweverOldItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		pass := g.ticking()
		g.put("acme", "held")
		g.put("acme", "slow")
		if _, err := g.Pause(t.Context(), "acme", "held", "", control.Match{}); err != nil {
			t.Fatal(err)
		}
		var want []string
		for range 12 {
			want = append(want, g.trigger("acme", "held", control.Request{}).ID.String())
			time.Sleep(time.Millisecond)
		}
		slow := g.trigger("acme", "slow", control.Request{})
		g.write(slow, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
		wait := limits
		wait.MaxFailures = 5
		g.write(slow, func(r run.Run, now int64) run.Run {
			return r.Fail(now, run.Failure{Error: "closed", NextAt: now + (30 * time.Hour).Milliseconds()}, wait)
		})
		want = append(want, slow.ID.String())
		slices.Reverse(want)
		pass(20 * time.Hour)
		unended := control.RunFilter{States: []run.State{run.Scheduled, run.Queued, run.Running, run.Retrying}}
		if got := g.listed("acme", unended); !slices.Equal(got, want) {
			t.Errorf("unended are %v, want %v", got, want)
		}
		if got := g.listed("acme", control.RunFilter{States: []run.State{run.Retrying}}); !slices.Equal(got, want[:1]) {
			t.Errorf("retrying are %v, want %v", got, want[:1])
		}
		out, err := g.CancelMany(t.Context(), "acme", control.RunFilter{}, control.Bulk{}, "enough")
		if err != nil || out.Count != len(want) || out.Next != "" {
			t.Errorf("%d cancelled, next %q, %v; want %d", out.Count, out.Next, err, len(want))
		}
		if got := g.listed("acme", unended); len(got) != 0 {
			t.Errorf("unended are still %v", got)
		}
	})
}

// TestP11_RunsAreListedWhileTheTicksAreAway, for a day: pages are short, and all of them together hold every run.
func TestP11_RunsAreListedWhileTheTicksAreAway(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		var want []string
		for range 24 {
			want = append(want, g.trigger("acme", "a", control.Request{}).ID.String())
			time.Sleep(time.Hour)
		}
		slices.Reverse(want)
		if got := g.listed("acme", control.RunFilter{}); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestARunStaysListedForAsLongAsItStands, however late it ends or is opened again.
func TestARunStaysListedForAsLongAsItStands(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		r := g.trigger("acme", "a", control.Request{})
		time.Sleep(40 * 24 * time.Hour)
		r = g.fail(r, "no")
		if _, err := g.Retry(t.Context(), "acme", r.ID, false, time.Time{}); err != nil {
			t.Fatal(err)
		}
		var latest time.Time
		for n := range run.IndexSpread {
			page, err := g.Store.Query(t.Context(), store.Range{Partition: run.IndexPartition("acme", n)})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range page.Items {
				if ids, err := run.IndexFromItem(item); err == nil && slices.Contains(ids, r.ID) && item.Expires.After(latest) {
					latest = item.Expires
				}
			}
		}
		if want := time.Now().Add(job.DefaultRetention + 7*24*time.Hour); latest.Before(want) {
			t.Errorf("listed until %s, want %s or later", latest, want)
		}
	})
}

// TestAListingThatFailsSaysSo, by either way.
func TestAListingThatFailsSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		g.trigger("acme", "a", control.Request{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, f := range []control.RunFilter{{}, {Job: "a"}, {States: []run.State{run.Dead}}} {
			if runs, _, err := g.Runs(ctx, "acme", f, "", 10); !errors.Is(err, context.Canceled) {
				t.Errorf("%+v: %d runs, %v; want the error", f, len(runs), err)
			}
		}
	})
}

func TestBulkCountsActsAndGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		g.put("rival", "a")
		foreign := g.trigger("rival", "a", control.Request{})
		var ids []run.ID
		for i := range 30 {
			r := g.trigger("acme", "a", control.Request{})
			if i%3 == 0 {
				g.fail(r, fmt.Sprintf("code %d", i%2))
			}
			ids = append(ids, r.ID)
			time.Sleep(time.Millisecond)
		}
		dry, err := g.CancelMany(ctx, "acme", control.RunFilter{}, control.Bulk{DryRun: true}, "")
		if err != nil || dry.Count != 20 || len(dry.Verdicts) != control.Sampled || dry.Verdicts[0].Run.State != run.Queued || dry.Next != "" {
			t.Errorf("a dry run: %+v, %v", dry, err)
		}
		if n := len(g.all("acme", control.RunFilter{States: []run.State{run.Queued}})); n != 20 {
			t.Errorf("%d are queued after a dry run, want 20", n)
		}
		dry, err = g.RetryMany(ctx, "acme", control.RunFilter{Error: "code 1"}, control.Bulk{DryRun: true}, false)
		if err != nil || dry.Count != 5 {
			t.Errorf("a dry run of a retry: %+v, %v", dry, err)
		}
		dry, err = g.RetryMany(ctx, "acme", control.RunFilter{}, control.Bulk{Runs: []run.ID{ids[0], ids[1], foreign.ID}, DryRun: true}, false)
		if err != nil || dry.Count != 1 || len(dry.Verdicts) != 3 {
			t.Fatalf("a dry run by name: %+v, %v", dry, err)
		}
		refused(t, dry.Verdicts[1].Err, control.CodeRunNotEnded)
		refused(t, dry.Verdicts[2].Err, control.CodeRunNotFound)

		// Page after page, each run once.
		done := map[run.ID]bool{}
		for cursor := ""; ; {
			out, err := g.CancelMany(ctx, "acme", control.RunFilter{}, control.Bulk{Max: 7, Cursor: cursor}, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range out.Verdicts {
				if v.Err != nil || v.Run.State != run.Cancelled || done[v.ID] {
					t.Errorf("%+v", v)
				}
				done[v.ID] = true
			}
			if cursor = out.Next; cursor == "" {
				break
			}
		}
		if len(done) != 20 {
			t.Errorf("%d were cancelled, want 20", len(done))
		}

		// What the time is too short for is told.
		out, err := g.RetryMany(ctx, "acme", control.RunFilter{}, control.Bulk{Runs: ids, PerSecond: 1}, false)
		if err != nil || len(out.Verdicts) != 15 || len(out.Remaining) != 15 || out.Remaining[0] != ids[15] {
			t.Errorf("%d verdicts and %d remaining, %v; want 15 each", len(out.Verdicts), len(out.Remaining), err)
		}
		out, err = g.RetryMany(ctx, "acme", control.RunFilter{States: []run.State{run.Cancelled, run.Dead}}, control.Bulk{PerSecond: 0.5}, false)
		if err != nil || out.Count != 8 || out.Next == "" {
			t.Errorf("%d retried, next %q, %v; want 8 and a cursor", out.Count, out.Next, err)
		}
	})
}

// Who got no answer sends a retry a second time: what it has retried may have ended again by then.
func TestARetryThatIsSentAgainLeavesWhatHasEndedSince(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		var failed []run.Run
		for range 3 {
			failed = append(failed, g.fail(g.trigger("acme", "a", control.Request{}), "code 1"))
			time.Sleep(time.Millisecond)
		}
		for _, f := range []control.RunFilter{{}, {Job: "a"}} {
			asked := control.Bulk{EndedBefore: time.Now(), PerSecond: 1000, Max: 2}
			first, err := g.RetryMany(ctx, "acme", f, asked, false)
			if err != nil || first.Count != 2 {
				t.Fatalf("the first time: %+v, %v", first, err)
			}
			for _, v := range first.Verdicts {
				g.fail(v.Run, "code 1")
			}
			asked.Max, asked.DryRun = 0, true
			if out, err := g.RetryMany(ctx, "acme", f, asked, false); err != nil || out.Count != 1 {
				t.Errorf("%+v counts %+v, %v; want the one that was not retried", f, out, err)
			}
			asked.DryRun = false
			if out, err := g.RetryMany(ctx, "acme", f, asked, false); err != nil || out.Count != 1 || len(out.Verdicts) != 1 {
				t.Errorf("%+v, the second time: %+v, %v", f, out, err)
			} else {
				g.fail(out.Verdicts[0].Run, "code 1")
			}
			time.Sleep(time.Millisecond)
		}

		// By name they are refused, by a dry run too.
		asked := control.Bulk{EndedBefore: time.Now(), PerSecond: 1000, Runs: []run.ID{failed[0].ID}}
		if out, err := g.RetryMany(ctx, "acme", control.RunFilter{}, asked, false); err != nil || out.Count != 1 {
			t.Fatalf("by name: %+v, %v", out, err)
		}
		g.fail(failed[0], "code 1")
		asked.Runs = append(asked.Runs, failed[1].ID)
		for _, asked.DryRun = range []bool{true, false} {
			out, err := g.RetryMany(ctx, "acme", control.RunFilter{}, asked, false)
			if err != nil || out.Count != 1 || len(out.Verdicts) != 2 || out.Verdicts[1].Err != nil {
				t.Fatalf("by name again: %+v, %v", out, err)
			}
			refused(t, out.Verdicts[0].Err, control.CodeStale)
		}
	})
}

// So it is with dead letters that are redriven, by name, by pattern and all of them, and with one run that is retried, by force too.
func TestARedriveOrARetryOfOneThatIsSentAgainLeavesWhatHasEndedSince(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		dead := g.fail(g.trigger("acme", "a", control.Request{}), "code 1")
		old := g.fail(g.trigger("acme", "a", control.Request{}), "code 1")
		for _, asked := range []control.Bulk{{Runs: []run.ID{dead.ID}}, {}} {
			for _, f := range []control.DeadFilter{{}, {Pattern: run.Pattern(dead.LastError())}, {To: time.Now().Add(time.Hour)}} {
				time.Sleep(time.Millisecond)
				asked.EndedBefore, asked.PerSecond = time.Now(), 1000
				first, err := g.Redrive(ctx, "acme", f, asked)
				if err != nil || first.Count == 0 {
					t.Fatalf("%+v of %+v, the first time: %+v, %v", asked, f, first, err)
				}
				for _, v := range first.Verdicts {
					g.fail(v.Run, "code 1")
				}
				for _, asked.DryRun = range []bool{true, false} {
					again, err := g.Redrive(ctx, "acme", f, asked)
					if err != nil || again.Count != 0 {
						t.Fatalf("%+v of %+v, the second time: %+v, %v", asked, f, again, err)
					}
					for _, v := range again.Verdicts {
						refused(t, v.Err, control.CodeStale)
					}
				}
			}
		}
		// A filter's own bound holds where it is the earlier one.
		if out, err := g.Redrive(ctx, "acme", control.DeadFilter{To: time.UnixMilli(1)}, control.Bulk{EndedBefore: time.Now().Add(time.Hour), DryRun: true}); err != nil || out.Count != 0 {
			t.Errorf("before all: %+v, %v", out, err)
		}

		time.Sleep(time.Millisecond)
		for _, force := range []bool{false, true} {
			before := time.Now()
			again, err := g.Retry(ctx, "acme", old.ID, force, before)
			if err != nil {
				t.Fatal(err)
			}
			g.fail(again, "code 1")
			_, err = g.Retry(ctx, "acme", old.ID, force, before)
			refused(t, err, control.CodeStale)
			time.Sleep(time.Millisecond)
		}
	})
}
