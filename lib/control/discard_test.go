package control_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

// A dead letter that is discarded is listed as none any more, and is still found as the run that it is. No filter opens it again; its ID does.
func TestP12_DeadLettersAreDiscarded(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		g.put("acme", "gone")
		var dead []run.Run
		for i := range 6 {
			time.Sleep(time.Second)
			dead = append(dead, g.fail(g.trigger("acme", []string{"a", "gone"}[i%2], control.Request{}), "exit: code 1"))
		}
		if err := g.Delete(ctx, "acme", "gone", control.Match{}); err != nil {
			t.Fatal(err)
		}
		left := func(want ...int) {
			t.Helper()
			var ids, wanted []run.ID
			for _, letter := range g.letters("acme", control.DeadFilter{}) {
				ids = append(ids, letter.Run)
			}
			for _, i := range slices.Backward(want) {
				wanted = append(wanted, dead[i].ID)
			}
			if !slices.Equal(ids, wanted) {
				t.Errorf("left are %v, want %v", ids, wanted)
			}
		}
		dry, err := g.Discard(ctx, "acme", control.DeadFilter{Job: "gone"}, control.Bulk{DryRun: true}, "ann", "")
		if err != nil || dry.Count != 3 || len(dry.Verdicts) != 3 || dry.Verdicts[0].Err != nil {
			t.Errorf("counted %+v, %v", dry, err)
		}
		left(0, 1, 2, 3, 4, 5)
		ended := g.Dispatch.Metrics.Runs.Value("dead")
		out, err := g.Discard(ctx, "acme", control.DeadFilter{}, control.Bulk{Runs: []run.ID{dead[0].ID, dead[1].ID, run.FireID("a", 60_000)}}, "ann", "of no use")
		if err != nil || out.Count != 2 {
			t.Fatalf("%+v, %v", out, err)
		}
		refused(t, out.Verdicts[2].Err, control.CodeRunNotFound)
		left(2, 3, 4, 5)
		shown, err := g.Run(ctx, "acme", dead[0].ID)
		want := dead[0]
		want.Version, want.Discarded = shown.Version, run.Discarded{At: time.Now().UnixMilli(), By: "ann", Note: "of no use"}
		if err != nil || shown.Discarded != want.Discarded || shown.State != want.State || shown.Ended != want.Ended || shown.Expires != want.Expires || shown.LastError() != want.LastError() {
			t.Errorf("discarded as %+v, %v, want %+v", shown, err, want)
		}
		// Again, by another: nothing is written, and the first word stands.
		time.Sleep(time.Minute)
		if out, err = g.Discard(ctx, "acme", control.DeadFilter{}, control.Bulk{Runs: []run.ID{dead[0].ID}}, "bob", "mine"); err != nil || out.Count != 1 || out.Verdicts[0].Run.Discarded.By != "ann" || out.Verdicts[0].Run.Version != shown.Version {
			t.Errorf("again: %+v, %v", out, err)
		}
		if n := g.Dispatch.Metrics.Runs.Value("dead"); n != ended || g.Dispatch.Metrics.DeadLetters.Value("dead") != ended {
			t.Errorf("%v ends are counted, and %v dead letters; want the %v that there were", n, g.Dispatch.Metrics.DeadLetters.Value("dead"), ended)
		}
		// By state it is found as before, by its job and among all.
		for _, f := range []control.RunFilter{{Job: "a", States: []run.State{run.Dead}}, {States: []run.State{run.Dead}}, {States: []run.State{run.Dead}, Error: "EXIT"}} {
			if !slices.ContainsFunc(g.all("acme", f), func(r run.Run) bool { return r.ID == dead[0].ID }) {
				t.Errorf("%+v does not find a dead run that was discarded", f)
			}
		}
		if causes, err := g.Causes(ctx, "acme", control.DeadFilter{}); err != nil || causes.Count != 4 {
			t.Errorf("%d letters have a cause, %v; want 4", causes.Count, err)
		}
		// No filter opens it again.
		if out, err := g.Redrive(ctx, "acme", control.DeadFilter{Job: "a"}, control.Bulk{DryRun: true}); err != nil || out.Count != 2 {
			t.Errorf("to be redriven are %d, %v; want 2", out.Count, err)
		}
		if out, err := g.RetryMany(ctx, "acme", control.RunFilter{Job: "a"}, control.Bulk{Max: 1000}, true); err != nil || out.Count != 2 || len(out.Verdicts) != 2 {
			t.Errorf("retried are %+v, %v; want 2", out, err)
		}
		left(3, 5)
		// Its ID does, and then it is as if nobody had discarded it.
		again, err := g.Retry(ctx, "acme", dead[0].ID, false, time.Time{})
		if err != nil || again.State != run.Queued || !again.Discarded.IsZero() {
			t.Fatalf("retried as %+v, %v", again, err)
		}
		dead = append(dead, g.fail(again, "exit: code 2"))
		left(3, 5, 6)
		// The others by a filter, in two requests.
		out, err = g.Discard(ctx, "acme", control.DeadFilter{Error: "CODE 1"}, control.Bulk{Max: 1}, "", "")
		if err != nil || out.Count != 1 || out.Next == "" {
			t.Fatalf("%+v, %v", out, err)
		}
		if out, err = g.Discard(ctx, "acme", control.DeadFilter{Error: "CODE 1"}, control.Bulk{Cursor: out.Next}, "", ""); err != nil || out.Count != 1 || out.Next != "" {
			t.Fatalf("%+v, %v", out, err)
		}
		left(6)

		live := g.trigger("acme", "a", control.Request{})
		done := g.succeed(g.trigger("acme", "a", control.Request{}))
		foreign := g.fail(func() run.Run { g.put("rival", "a"); return g.trigger("rival", "a", control.Request{}) }(), "no")
		out, err = g.Discard(ctx, "acme", control.DeadFilter{}, control.Bulk{Runs: []run.ID{live.ID, done.ID, foreign.ID}}, "", "")
		if err != nil || out.Count != 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		refused(t, out.Verdicts[0].Err, control.CodeNotDeadLetter)
		refused(t, out.Verdicts[1].Err, control.CodeNotDeadLetter)
		refused(t, out.Verdicts[2].Err, control.CodeRunNotFound)
		for _, note := range []string{strings.Repeat("é", run.MaxNote+1), "\xff"} {
			_, err := g.Discard(ctx, "acme", control.DeadFilter{}, control.Bulk{}, "", note)
			wantField(t, err, "note")
		}
		left(6)
	})
}

// A long note costs the run nothing of what it says: its attempts and their errors stay.
func TestADiscardShedsNothingOfItsRun(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		name := strings.Repeat("long-name-", 12)
		g.put("acme", name)
		r := g.trigger("acme", name, control.Request{Payload: []byte(`"` + strings.Repeat("p", 390) + `"`)})
		for i := range 5 {
			if r = g.fail(r, strings.Repeat("e", 240)); i < 4 {
				var err error
				if r, err = g.Retry(t.Context(), "acme", r.ID, false, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		r, err := g.Run(t.Context(), "acme", r.ID)
		if err != nil {
			t.Fatal(err)
		}
		note := strings.Repeat("é", run.MaxNote)
		out, err := g.Discard(t.Context(), "acme", control.DeadFilter{Job: name}, control.Bulk{}, strings.Repeat("b", 3*run.MaxBy), note)
		if err != nil || out.Count != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		now, err := g.Run(t.Context(), "acme", r.ID)
		if err != nil || !slices.Equal(now.Attempts, r.Attempts) || now.Reason != r.Reason || now.Discarded.Note != note || len(now.Discarded.By) != run.MaxBy {
			t.Errorf("of %+v is left %+v, %v", r, now, err)
		}
	})
}

// A discard whose answer was lost is done once; many at once agree on one; and a redrive over a filter leaves what was discarded since it chose.
func TestP7_ADiscardStandsWhateverHappensMeanwhile(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		discard := func(id run.ID, by string) (control.Verdict, error) {
			out, err := g.Discard(ctx, "acme", control.DeadFilter{}, control.Bulk{Runs: []run.ID{id}}, by, "")
			return out.Verdicts[0], err
		}
		dead := g.fail(g.trigger("acme", "a", control.Request{}), "no")
		lost := false
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if len(c.Ops) == 2 && c.Ops[0].Key == dead.ID.Key("acme") && !lost {
				lost = true
				return faulty.Fault{Lose: store.ErrUnknown}
			}
			return faulty.Fault{}
		}
		v, err := discard(dead.ID, "ann")
		g.hook = nil
		if err != nil || v.Err != nil || v.Run.Version != dead.Version+1 || !lost || len(g.letters("acme", control.DeadFilter{})) != 0 {
			t.Errorf("its answer lost, it is %+v, %v", v, err)
		}

		dead = g.fail(g.trigger("acme", "a", control.Request{}), "no")
		var said sync.Map
		var all sync.WaitGroup
		for _, by := range []string{"ann", "bob", "cleo", "dan"} {
			all.Go(func() {
				v, err := discard(dead.ID, by)
				if err != nil || v.Err != nil {
					t.Errorf("%s: %+v, %v", by, v, err)
				}
				said.Store(v.Run.Discarded.By, true)
			})
		}
		all.Wait()
		n := 0
		said.Range(func(any, any) bool { n++; return true })
		if now, err := g.Run(ctx, "acme", dead.ID); err != nil || n != 1 || now.Version != dead.Version+1 {
			t.Errorf("%d of them are told to have done it, in version %d after %d, %v", n, now.Version, dead.Version, err)
		}

		dead = g.fail(g.trigger("acme", "a", control.Request{}), "no")
		between := false
		g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
			if len(c.Ops) == 0 && slices.Contains(c.Keys, dead.ID.Key("acme")) && !between { // it was chosen, and is about to be opened
				between = true
				g.hook = nil
				if _, err := discard(dead.ID, "ann"); err != nil {
					t.Error(err)
				}
			}
			return faulty.Fault{}
		}
		out, err := g.Redrive(ctx, "acme", control.DeadFilter{}, control.Bulk{})
		if err != nil || !between || len(out.Verdicts) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		refused(t, out.Verdicts[0].Err, control.CodeRunDiscarded)
	})
}
