package control_test

import (
	"errors"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
)

func TestAPreviewTellsWhatPutWouldDoAndStoresNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		slow := func(d *job.Definition) { d.Timeout, d.Schedule = 60e9, everyHour() }
		before, after, change, err := g.Preview(t.Context(), "acme", "j", definition(slow), control.Match{}, nil)
		if err != nil || change != control.Created || before.Generation != 0 || after.Generation != 0 || after.Def.Retry.MaxAttempts == 0 {
			t.Fatalf("a new job: %v, %v; before %+v, after %+v", change, err, before, after)
		}
		if next := g.NextRuns(after, 2); len(next) != 2 {
			t.Errorf("the preview of a new job fires at %v", next)
		}
		_, err = g.Job(t.Context(), "acme", "j")
		refused(t, err, control.CodeJobNotFound)

		stands := g.put("acme", "j")
		before, after, change, err = g.Preview(t.Context(), "acme", "j", definition(slow), control.Match{}, nil)
		if err != nil || change != control.Updated || before.Generation != stands.Generation || after.Def.Timeout.Std() != time.Minute {
			t.Fatalf("a change: %v, %v; before %+v, after %+v", change, err, before, after)
		}
		// What the preview computed is not taken for the generation that stands.
		if next := g.NextRuns(before, 1); len(next) != 0 {
			t.Errorf("a job on demand fires at %v", next)
		}
		now, err := g.Job(t.Context(), "acme", "j")
		if err != nil || now.Generation != stands.Generation || now.Def.Schedule != nil {
			t.Errorf("the preview left %+v, %v", now, err)
		}
		if _, after, change, err = g.Preview(t.Context(), "acme", "j", definition(), control.Match{}, nil); err != nil || change != control.Unchanged || after.Generation != stands.Generation {
			t.Errorf("no change: %v, %v, %+v", change, err, after)
		}
		_, _, _, err = g.Preview(t.Context(), "acme", "j", definition(slow), control.Match{Absent: true}, nil)
		refused(t, err, control.CodeJobExists)

		if err := g.Delete(t.Context(), "acme", "j", control.Match{}); err != nil {
			t.Fatal(err)
		}
		if before, _, change, err = g.Preview(t.Context(), "acme", "j", definition(), control.Match{}, nil); err != nil || change != control.Created || before.Generation != 0 {
			t.Errorf("over a deleted job: %v, %v, %+v", change, err, before)
		}
		g.Service.Can = func(string, target.Spec) error { return errors.New("nobody can") }
		if _, _, _, err = g.Preview(t.Context(), "acme", "j", definition(), control.Match{}, nil); len(invalid.All(err)) != 1 {
			t.Errorf("got %v, want what Put would refuse", err)
		}
	})
}
