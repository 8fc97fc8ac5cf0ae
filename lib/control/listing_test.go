package control_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func asRefusal(err error, into **control.Refusal) bool { return errors.As(err, into) }

// wantField checks that an error is about one field of the input.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	if all := invalid.All(err); len(all) != 1 || all[0].Field != field || all[0].Want == "" {
		t.Errorf("got %v, want an error about %s alone", err, field)
	}
}

func (g *rig) names(tenant string, f control.JobFilter, limit int, between func(page int)) []string {
	g.t.Helper()
	var names []string
	for page, cursor := 0, ""; ; page++ {
		jobs, next, err := g.Jobs(g.t.Context(), tenant, f, cursor, limit)
		if err != nil {
			g.t.Fatal(err)
		}
		if len(jobs) > limit {
			g.t.Fatalf("a page of %d, want at most %d", len(jobs), limit)
		}
		for _, j := range jobs {
			names = append(names, j.Name)
		}
		if cursor = next; cursor == "" {
			return names
		}
		if between != nil {
			between(page)
		}
	}
}

func TestP12_JobsAreListedByNameAndTenant(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var want []string
		paused := true
		for i := range 120 {
			name := fmt.Sprintf("%s-%03d", []string{"a", "b", "a.b"}[i%3], i)
			want = append(want, name)
			g.put("acme", name, func(d *job.Definition) {
				d.Labels = map[string]string{"team": []string{"billing", "search"}[i%2]}
				d.Paused = i%5 == 0
			})
			if i%4 == 0 {
				g.put("rival", name)
			}
		}
		slices.Sort(want)
		for _, limit := range []int{1, 7, 1000} {
			if got := g.names("acme", control.JobFilter{}, limit, nil); !slices.Equal(got, want) {
				t.Errorf("pages of %d: %d jobs, want %d in order", limit, len(got), len(want))
			}
		}
		filtered := func(keep func(string, int) bool) []string {
			var some []string
			for _, name := range want {
				var i int
				if _, err := fmt.Sscanf(name[strings.LastIndex(name, "-")+1:], "%d", &i); err != nil {
					t.Fatal(err)
				}
				if keep(name, i) {
					some = append(some, name)
				}
			}
			return some
		}
		for name, row := range map[string]struct {
			f    control.JobFilter
			keep func(string, int) bool
		}{
			"Prefix": {control.JobFilter{Prefix: "a-"}, func(n string, _ int) bool { return strings.HasPrefix(n, "a-") }},
			"Label":  {control.JobFilter{Labels: map[string]string{"team": "billing"}}, func(_ string, i int) bool { return i%2 == 0 }},
			"Paused": {control.JobFilter{Paused: &paused}, func(_ string, i int) bool { return i%5 == 0 }},
			"Part":   {control.JobFilter{Contains: "-0"}, func(n string, _ int) bool { return strings.Contains(n, "-0") }},
			"All":    {control.JobFilter{Prefix: "b", Labels: map[string]string{"team": "search"}, Paused: &paused}, func(n string, i int) bool { return n[0] == 'b' && i%2 == 1 && i%5 == 0 }},
			"None":   {control.JobFilter{Labels: map[string]string{"nobody": ""}}, func(string, int) bool { return false }},
		} {
			if got, want := g.names("acme", row.f, 4, nil), filtered(row.keep); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if got, want := g.names("rival", control.JobFilter{}, 9, nil), filtered(func(_ string, i int) bool { return i%4 == 0 }); !slices.Equal(got, want) {
			t.Errorf("the other tenant sees %q, want %q", got, want)
		}
		if got := g.names("nobody", control.JobFilter{}, 9, nil); got != nil {
			t.Errorf("a tenant without jobs sees %q", got)
		}
	})
}

// Large jobs end a page before it holds more bytes than a page may, and no partition is read far ahead of its turn.
func TestP11_AListingHoldsSoManyBytesOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		const size, mostBytes, held = 90 << 10, 8 << 20, 32 << 20 / job.Spread
		var names []string
		for i, together := 0, 0; len(names) < 150; i++ { // 20 of them in one partition, which is not to be held as a whole
			name := fmt.Sprintf("j%05d", i)
			if job.Hash("acme", name)%job.Spread == 7 && together < 20 {
				together++
			} else if i%10 != 0 {
				continue
			}
			names = append(names, name)
			j := job.Job{Tenant: "acme", Name: name, Generation: 1, Def: definition(func(d *job.Definition) {
				d.Description = strings.Repeat("x", size)
				d.Paused = i%3 == 0
			})}
			op, err := j.Put(1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Store.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		paused := true
		for what, f := range map[string]control.JobFilter{"all": {}, "those paused": {Paused: &paused}} {
			var got, want []string
			for cursor := ""; ; {
				jobs, next, err := g.Jobs(t.Context(), "acme", f, cursor, control.MaxLimit)
				if err != nil {
					t.Fatal(err)
				}
				if len(jobs)*size > mostBytes || len(jobs) == 0 || next != "" && f.Paused == nil && (len(jobs)+1)*(size+1<<10) < mostBytes {
					t.Errorf("%s: a page of %d jobs of %d bytes, with a next one: %t", what, len(jobs), size, next != "")
				}
				for _, j := range jobs {
					got = append(got, j.Name)
				}
				if cursor = next; cursor == "" {
					break
				}
			}
			for _, name := range names {
				if n, err := strconv.Atoi(name[1:]); err == nil && (f.Paused == nil || n%3 == 0) {
					want = append(want, name)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %d jobs %v, want %d", what, len(got), got, len(want))
			}
		}
		// What was read beyond the bound of a partition is forgotten, and read again in pieces of that size.
		var limits []int
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Range.Partition == job.Partition("acme", 7) {
				limits = append(limits, c.Range.Limit)
			}
			return faulty.Fault{}
		}
		if _, _, err := g.Jobs(t.Context(), "acme", control.JobFilter{}, "", control.MaxLimit); err != nil {
			t.Fatal(err)
		}
		if want := held / size; len(limits) < 2 || limits[1] != want {
			t.Errorf("the partition was read in pieces of %v, want the later ones to be of %d", limits, want)
		}
	})
}

// Large jobs in front do not have the rest of their partition read in pieces as small.
func TestP11_AListingReadsMoreAgainAfterLargeJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		const small, held = 200, 32 << 20 / job.Spread
		want := 0
		for i := 0; want < small+1; i++ {
			name, size := fmt.Sprintf("j%05d", i), 0
			if job.Hash("acme", name)%job.Spread != 7 {
				continue
			}
			if want == 0 {
				size = min(held, 350<<10)
			} else if want == 1 {
				size = held - min(held, 350<<10) + 1
			}
			want++
			j := job.Job{Tenant: "acme", Name: name, Generation: 1, Def: definition(func(d *job.Definition) { d.Description = strings.Repeat("x", size) })}
			op, err := j.Put(1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Store.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		var limits []int
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Range.Partition == job.Partition("acme", 7) {
				limits = append(limits, c.Range.Limit)
			}
			return faulty.Fault{}
		}
		jobs, next, err := g.Jobs(t.Context(), "acme", control.JobFilter{}, "", control.MaxLimit)
		if err != nil || len(jobs) != want || next != "" {
			t.Fatalf("%d jobs, cursor %q, %v; want all %d", len(jobs), next, err, want)
		}
		if len(limits) < 2 || limits[1] != 1 {
			t.Errorf("the partition was read in pieces of %v, want a second one of 1", limits)
		}
		if len(limits) > 12 || slices.Max(limits) > limits[0] {
			t.Errorf("the partition was read in pieces of %v, want them to grow again, to the first one's size", limits)
		}
	})
}

// TestP11_AListingLooksAtSoManyOnly, however few the filter lets through: the page comes back short, with a cursor.
func TestP11_AListingLooksAtSoManyOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		for i := range 1200 {
			j := job.Job{Tenant: "acme", Name: fmt.Sprintf("j%04d", i), Generation: 1, Def: definition(func(d *job.Definition) {
				d.Paused = i == 1100
			})}
			op, err := j.Put(1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Store.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
		paused := true
		jobs, next, err := g.Jobs(t.Context(), "acme", control.JobFilter{Paused: &paused}, "", 10)
		if err != nil || len(jobs) != 0 || next == "" {
			t.Fatalf("%d jobs, cursor %q, %v; want an empty page that is not the last", len(jobs), next, err)
		}
		jobs, next, err = g.Jobs(t.Context(), "acme", control.JobFilter{Paused: &paused}, next, 10)
		if err != nil || len(jobs) != 1 || jobs[0].Name != "j1100" || next != "" {
			t.Fatalf("%d jobs, cursor %q, %v; want the one, and the end", len(jobs), next, err)
		}
		if jobs, _, err = g.Jobs(t.Context(), "acme", control.JobFilter{}, "", 1_000_000); err != nil || len(jobs) != control.MaxLimit {
			t.Errorf("a page of %d, %v; want at most %d", len(jobs), err, control.MaxLimit)
		}
		if jobs, _, err = g.Jobs(t.Context(), "acme", control.JobFilter{}, "", 0); err != nil || len(jobs) != control.DefaultLimit {
			t.Errorf("a page of %d, %v; want %d where nothing is said", len(jobs), err, control.DefaultLimit)
		}
	})
}

func TestPagesOfJobsAreStable(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		var stay []string
		for i := range 60 {
			name := fmt.Sprintf("j%02d", i)
			g.put("acme", name)
			if i%3 != 1 {
				stay = append(stay, name)
			}
		}
		got := g.names("acme", control.JobFilter{}, 5, func(page int) {
			g.put("acme", fmt.Sprintf("j%02d-new", page*7%60))
			if name := fmt.Sprintf("j%02d", page*3+1); page < 20 {
				if err := g.Delete(t.Context(), "acme", name, control.Match{}); err != nil {
					t.Error(err)
				}
			}
		})
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("not in order, or twice: %q", got)
		}
		for _, name := range stay {
			if !slices.Contains(got, name) {
				t.Errorf("%s was there all the time and was not listed", name)
			}
		}
		// One that cannot be read hides no other.
		g.unreadable(job.Key("acme", "j03"))
		if names := g.names("acme", control.JobFilter{}, 5, nil); slices.Contains(names, "j03") || !slices.Contains(names, "j02") || !slices.Contains(names, "j05") {
			t.Errorf("beside an unreadable one: %q", names)
		}
	})
}

func TestP12_RunsAreListedNewestFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		begin := time.Now()
		var all []run.Run
		for _, name := range []string{"a", "b", "c"} {
			g.put("acme", name)
			g.put("rival", name)
		}
		for i := range 60 {
			at := begin.Add(time.Duration(i/4) * time.Second) // some at the same instant
			all = append(all, g.trigger("acme", []string{"a", "b", "c"}[i%3], control.Request{At: &at}))
			if i%10 == 0 {
				g.trigger("rival", "a", control.Request{At: &at})
			}
		}
		var listed []run.Listing
		for i := range 10 { // fires of three jobs at the same instants, as a sweep has listed them
			for _, name := range []string{"a", "b", "c"} {
				fire := run.Run{ID: run.FireID(name, begin.Add(time.Duration(i)*time.Second).UnixMilli()), Tenant: "acme", State: run.Queued, Generation: 1}
				fire, err := g.Dispatch.PutRun(t.Context(), fire, job.Callbacks{}, begin.UnixMilli())
				if err != nil {
					t.Fatal(err)
				}
				all, listed = append(all, fire), append(listed, run.Listing{ID: fire.ID, Expires: begin.Add(24 * time.Hour)})
			}
		}
		g.list("acme", listed...)
		for i, r := range all[:60] {
			switch i % 3 {
			case 1:
				all[i] = g.succeed(r)
			case 2:
				all[i] = g.fail(r, "Refused by übersee")
			}
		}
		check := func(name string, f control.RunFilter, keep func(run.Run) bool) {
			t.Helper()
			want := 0
			for _, r := range all {
				if keep(r) {
					want++
				}
			}
			got := g.all("acme", f)
			seen := map[run.ID]bool{}
			for i, r := range got {
				if seen[r.ID] || r.Tenant != "acme" || !keep(r) {
					t.Errorf("%s: %s is listed twice, or should not be", name, r.ID)
				}
				seen[r.ID] = true
				if i > 0 && r.ID.Nominal > got[i-1].ID.Nominal {
					t.Errorf("%s: %s comes after an older one", name, r.ID)
				}
			}
			if len(got) != want || want == 0 {
				t.Errorf("%s: %d runs, want %d", name, len(got), want)
			}
		}
		from, to := begin.Add(3*time.Second), begin.Add(9*time.Second)
		check("All", control.RunFilter{}, func(run.Run) bool { return true })
		check("OfAJob", control.RunFilter{Job: "b"}, func(r run.Run) bool { return r.ID.Job == "b" })
		check("States", control.RunFilter{States: []run.State{run.Dead, run.Succeeded}}, func(r run.Run) bool { return r.State == run.Dead || r.State == run.Succeeded })
		check("Times", control.RunFilter{From: from, To: to}, func(r run.Run) bool {
			return r.ID.Nominal >= from.UnixMilli() && r.ID.Nominal < to.UnixMilli()
		})
		check("Both", control.RunFilter{Job: "c", From: from, States: []run.State{run.Dead}}, func(r run.Run) bool {
			return r.ID.Job == "c" && r.State == run.Dead && r.ID.Nominal >= from.UnixMilli()
		})
		failed := func(r run.Run) bool { return r.State == run.Dead }
		check("Error", control.RunFilter{Error: "REFUSED by Übersee"}, failed)
		check("ErrorOfAJob", control.RunFilter{Job: "c", Error: "Refused"}, failed)
		check("ErrorAndState", control.RunFilter{States: []run.State{run.Dead}, Error: "refused"}, failed)
		given := g.write(g.trigger("acme", "a", control.Request{At: &begin}), func(r run.Run, now int64) run.Run {
			return r.GiveUp(now, "no worker survives it", run.Limits{Retention: time.Hour})
		})
		all = append(all, given)
		check("GivenUp", control.RunFilter{Error: "Survives"}, func(r run.Run) bool { return r.ID == given.ID })
		if n := len(g.all("acme", control.RunFilter{Error: "refusals"})); n != 0 {
			t.Errorf("%d runs have an error that none had", n)
		}
		if n := len(g.all("rival", control.RunFilter{})); n != 6 {
			t.Errorf("the other tenant has %d runs, want 6", n)
		}
		// Runs that come while somebody turns pages neither repeat nor hide what was there.
		seen := map[run.ID]int{}
		for cursor := ""; ; {
			runs, next, err := g.Runs(t.Context(), "acme", control.RunFilter{}, cursor, 7)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range runs {
				seen[r.ID]++
			}
			if cursor = next; cursor == "" {
				break
			}
			at := begin.Add(time.Minute)
			g.trigger("acme", "a", control.Request{At: &at})
			g.trigger("acme", "a", control.Request{At: &begin})
		}
		for _, r := range all {
			if seen[r.ID] != 1 {
				t.Errorf("%s was listed %d times", r.ID, seen[r.ID])
			}
		}
		// One that cannot be read hides no other.
		before := len(g.all("acme", control.RunFilter{}))
		g.unreadable(all[30].ID.Key("acme"))
		if after := len(g.all("acme", control.RunFilter{})); after != before-1 {
			t.Errorf("%d runs beside an unreadable one, want %d", after, before-1)
		}
	})
}

func TestBadCursorsAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		g.put("acme", "b")
		g.fail(g.trigger("acme", "a", control.Request{}), "no")
		g.fail(g.trigger("acme", "a", control.Request{}), "no")
		ctx := t.Context()
		_, jobs, err1 := g.Jobs(ctx, "acme", control.JobFilter{}, "", 1)
		_, runs, err2 := g.Runs(ctx, "acme", control.RunFilter{}, "", 1)
		_, dead, err3 := g.DeadLetters(ctx, "acme", control.DeadFilter{}, "", 1)
		_, oldest, err4 := g.Runs(ctx, "acme", control.RunFilter{Oldest: true}, "", 1)
		if err := errors.Join(err1, err2, err3, err4); err != nil || jobs == "" || runs == "" || dead == "" || oldest == "" {
			t.Fatalf("cursors %q, %q, %q, %q, %v", jobs, runs, dead, oldest, err)
		}
		made := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
		bad := []string{"x", "!", made("1"), made("2a"), made("1\xff"), made("1" + strings.Repeat("a", 2000)), made("1a#b"), jobs + "A"}
		for _, cursor := range append(bad, runs, dead) {
			if _, _, err := g.Jobs(ctx, "acme", control.JobFilter{}, cursor, 1); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("jobs from %q: %v", cursor, err)
			}
		}
		for _, cursor := range append(bad, jobs, dead, oldest) {
			if _, _, err := g.Runs(ctx, "acme", control.RunFilter{}, cursor, 1); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("runs from %q: %v", cursor, err)
			}
		}
		for _, job := range []string{"", "a"} {
			for _, cursor := range append(bad, jobs, dead, runs) {
				if _, _, err := g.Runs(ctx, "acme", control.RunFilter{Job: job, Oldest: true}, cursor, 1); !errors.Is(err, store.ErrBadCursor) {
					t.Errorf("runs of %q, the oldest first, from %q: %v", job, cursor, err)
				}
			}
		}
		for _, cursor := range append(bad, jobs, runs) {
			if _, _, err := g.DeadLetters(ctx, "acme", control.DeadFilter{}, cursor, 1); !errors.Is(err, store.ErrBadCursor) {
				t.Errorf("dead letters from %q: %v", cursor, err)
			}
		}
		// A cursor does not reach over the bounds of another filter.
		if letters, _, err := g.DeadLetters(ctx, "acme", control.DeadFilter{To: time.Now().Add(-time.Hour)}, dead, 10); err != nil || len(letters) != 0 {
			t.Errorf("%d dead letters beyond the filter, %v", len(letters), err)
		}
		if found, _, err := g.Runs(ctx, "acme", control.RunFilter{To: time.Now().Add(-time.Hour)}, runs, 10); err != nil || len(found) != 0 {
			t.Errorf("%d runs beyond the filter, %v", len(found), err)
		}
	})
}
