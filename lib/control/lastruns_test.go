package control_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// The last runs of jobs are the newest whose time has come, in a number of queries that the number of runs has no part in.
func TestLastRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		for _, name := range []string{"busy", "quiet", "later", "edited"} {
			g.put("acme", name)
		}
		g.put("other", "busy")
		g.trigger("other", "busy", control.Request{})
		var want []string
		for range 30 {
			r := g.trigger("acme", "busy", control.Request{})
			want = append(want, r.ID.String())
			time.Sleep(time.Second)
		}
		slices.Reverse(want)
		g.fail(g.trigger("acme", "quiet", control.Request{}), "no such account")
		// What waits for its time is no last run, however much of it there is.
		in := time.Hour
		for range 30 {
			g.trigger("acme", "later", control.Request{Delay: &in})
		}
		now := g.trigger("acme", "later", control.Request{})
		// Marks of edits are none either. More of them than are looked at hide what is older, and that is said.
		old := run.FireID("edited", time.Now().UnixMilli()-1000_000)
		g.place(run.Run{ID: old, Tenant: "acme", State: run.Queued, Generation: 1})
		for i := range 150 {
			g.place(run.Run{ID: run.FireID("edited", time.Now().UnixMilli()-int64(1000*i)), Tenant: "acme", State: run.Fenced, Generation: 9})
		}

		var queries atomic.Int64
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method == faulty.Query {
				queries.Add(1)
			}
			return faulty.Fault{}
		}
		names := []string{"quiet", "busy", "nobody", "later", "edited"}
		last, err := g.LastRuns(t.Context(), "acme", names, 10)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][]string{}
		for i, one := range last {
			if one.Job != names[i] {
				t.Errorf("answer %d is of %s, want %s", i, one.Job, names[i])
			}
			if one.More != (one.Job == "edited") {
				t.Errorf("%s: more is %t", one.Job, one.More)
			}
			for _, r := range one.Runs {
				got[one.Job] = append(got[one.Job], r.ID.String())
			}
		}
		if !slices.Equal(got["busy"], want[:10]) {
			t.Errorf("busy: %v, want %v", got["busy"], want[:10])
		}
		if len(got["quiet"]) != 1 || got["nobody"] != nil || !slices.Equal(got["later"], []string{now.ID.String()}) || got["edited"] != nil {
			t.Errorf("got %v", got)
		}
		if n := queries.Load(); n > int64(len(names)*(2*run.Partitions+1)+120/8) {
			t.Errorf("%d queries", n)
		}
		before := queries.Load()
		if _, err := g.LastRuns(t.Context(), "acme", []string{"busy"}, 10); err != nil {
			t.Fatal(err)
		}
		// The last ones, and those before them for one that has succeeded, one page of each partition. Of the last ten a page has eight: one partition at the
		// most has more of them than are on its first.
		if n := queries.Load() - before; n > 2*run.Partitions+1 {
			t.Errorf("%d queries for one job", n)
		}
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			return faulty.Fault{Refuse: store.ErrThrottled}
		}
		if _, err := g.LastRuns(t.Context(), "acme", names, 10); err == nil {
			t.Error("a store that is away has no answer")
		}
	})
}

// place puts a run as it is.
func (g *rig) place(r run.Run) {
	g.t.Helper()
	op, err := r.Item(1)
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := g.Store.Write(g.t.Context(), op); err != nil {
		g.t.Fatal(err)
	}
}

// When a job last succeeded is found among its last runs and a bounded number before them, by the end of the run, whichever was due last.
func TestWhenAJobLastSucceeded(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		at := map[string]time.Time{}
		end := func(name string, failures int) {
			g.put("acme", name)
			slow := g.trigger("acme", name, control.Request{})
			time.Sleep(time.Second)
			g.succeed(g.trigger("acme", name, control.Request{}))
			time.Sleep(time.Second)
			g.succeed(slow)
			at[name] = time.Now()
			for range failures {
				time.Sleep(time.Second)
				g.fail(g.trigger("acme", name, control.Request{}), "no")
			}
		}
		end("fine", 0)
		end("failing", 20)
		end("broken", 200)
		g.put("acme", "new")
		names := []string{"fine", "failing", "broken", "new"}
		var queries atomic.Int64
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if c.Method == faulty.Query {
				queries.Add(1)
			}
			return faulty.Fault{}
		}
		for _, limit := range []int{1, 10, control.MaxLastRuns} {
			queries.Store(0)
			last, err := g.LastRuns(t.Context(), "acme", names, limit)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []time.Time{at["fine"], at["failing"], {}, {}} {
				if limit == 1 && i == 0 {
					want = last[i].Succeeded // of one run it is the end of that one
				}
				if !last[i].Succeeded.Equal(want) {
					t.Errorf("of the last %d: %s succeeded at %s, want %s", limit, names[i], last[i].Succeeded, want)
				}
			}
			if n := queries.Load(); n > int64(4*8*run.Partitions) {
				t.Errorf("of the last %d: %d queries for four jobs", limit, n)
			}
		}
	})
}
