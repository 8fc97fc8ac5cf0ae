package control_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

func TestCausesOfDeadLetters(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		for _, name := range []string{"a", "b", "c"} {
			g.put("acme", name)
		}
		g.put("rival", "a")
		g.fail(g.trigger("rival", "a", control.Request{}), "exit: exit code 9")
		var codes, dials []run.Run
		for i := range 6 {
			time.Sleep(time.Minute)
			codes = append(codes, g.fail(g.trigger("acme", []string{"a", "b", "b"}[i%3], control.Request{}), fmt.Sprintf("exit: exit code %d", i)))
		}
		for i := range 2 {
			time.Sleep(time.Minute)
			dials = append(dials, g.fail(g.trigger("acme", "c", control.Request{}), fmt.Sprintf("dial tcp 10.0.0.%d:80: refused", i)))
		}
		at := func(r run.Run) time.Time { return time.UnixMilli(r.Ended).UTC() }
		check := func(f control.DeadFilter, want ...control.Cause) {
			t.Helper()
			got, err := g.Causes(t.Context(), "acme", f)
			if err != nil {
				t.Fatal(err)
			}
			total := 0
			for _, c := range want {
				total += c.Count
			}
			if got.Count != total || got.More || len(got.Causes) != len(want) {
				t.Fatalf("%+v: got %+v, want %+v", f, got, want)
			}
			for i, c := range got.Causes {
				if c.Pattern != want[i].Pattern || c.Count != want[i].Count || !slices.Equal(c.Jobs, want[i].Jobs) || !c.First.Equal(want[i].First) || !c.Last.Equal(want[i].Last) || c.Newest.Run != want[i].Newest.Run {
					t.Errorf("%+v: got %+v, want %+v", f, c, want[i])
				}
			}
			if len(got.Causes) > 0 && !slices.ContainsFunc(got.Causes, func(c control.Cause) bool { return c.First.Equal(got.Since) }) {
				t.Errorf("%+v: since %s, want when the oldest of the letters ended", f, got.Since)
			}
		}
		exits := control.Cause{Pattern: "exit: exit code #", Count: 6, Jobs: []string{"b", "a"}, First: at(codes[0]), Last: at(codes[5]), Newest: control.DeadLetter{Run: codes[5].ID}}
		refusals := control.Cause{Pattern: "dial tcp #: refused", Count: 2, Jobs: []string{"c"}, First: at(dials[0]), Last: at(dials[1]), Newest: control.DeadLetter{Run: dials[1].ID}}
		check(control.DeadFilter{}, exits, refusals)
		check(control.DeadFilter{Job: "c"}, refusals)
		check(control.DeadFilter{Pattern: refusals.Pattern}, refusals)
		check(control.DeadFilter{Error: "10.0.0.1"}, control.Cause{Pattern: refusals.Pattern, Count: 1, Jobs: []string{"c"}, First: at(dials[1]), Last: at(dials[1]), Newest: control.DeadLetter{Run: dials[1].ID}})
		check(control.DeadFilter{Pattern: "exit code"})

		// A pattern chooses for the list and for a redrive what its group counts.
		if letters := g.letters("acme", control.DeadFilter{Pattern: exits.Pattern}); len(letters) != 6 {
			t.Errorf("%d letters are listed by the pattern, want 6", len(letters))
		}
		if out, err := g.Redrive(t.Context(), "acme", control.DeadFilter{Pattern: exits.Pattern}, control.Bulk{}); err != nil || out.Count != 6 {
			t.Errorf("%d redriven by the pattern, %v; want 6", out.Count, err)
		}
		check(control.DeadFilter{}, refusals)
	})
}

// Of very many dead letters the newest are counted, and how far that went is told.
func TestCausesSayHowFarTheyLooked(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		const all = 5100
		began := time.Now().UnixMilli()
		var ops []store.Op
		for i := range all {
			r := run.Run{ID: run.FireID([]string{"often", "seldom"}[i%10/9], began+int64(i)), Tenant: "acme", State: run.Dead, Ended: began + int64(i), Expires: began + 1e10,
				Attempts: []run.Attempt{{Number: 1, Error: fmt.Sprintf("exit: exit code %d", i)}}}
			op, err := r.DeadLetterOp(1)
			if err != nil {
				t.Fatal(err)
			}
			if ops = append(ops, op); len(ops) == store.MaxOps || i == all-1 {
				if _, err := g.Store.Write(t.Context(), ops...); err != nil {
					t.Fatal(err)
				}
				ops = ops[:0]
			}
		}
		since := time.UnixMilli(began + all - 5000)
		got, err := g.Causes(t.Context(), "acme", control.DeadFilter{})
		if err != nil || got.Count != 5000 || !got.More || !got.Since.Equal(since) || len(got.Causes) != 1 || got.Causes[0].Count != 5000 {
			t.Errorf("got %d letters since %s, more %t, %v; want the newest 5000 since %s", got.Count, got.Since, got.More, err, since)
		}
		got, err = g.Causes(t.Context(), "acme", control.DeadFilter{Job: "seldom"})
		if err != nil || got.Count != 500 || !got.More || !got.Since.Equal(since) {
			t.Errorf("with a filter: %d letters since %s, more %t, %v; want 500 of the newest 5000", got.Count, got.Since, got.More, err)
		}
		older, err := g.Causes(t.Context(), "acme", control.DeadFilter{To: since})
		if err != nil || older.Count != 100 || older.More {
			t.Errorf("the older ones: %d, more %t, %v; want 100", older.Count, older.More, err)
		}
	})
}
