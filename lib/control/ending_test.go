package control_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

func thrice(d *job.Definition) {
	d.Schedule, d.MaxRuns = &schedule.Spec{Every: schedule.Duration(time.Hour)}, 3
}

// The end of a schedule is counted from the edit that says how many fires it has, and stays where it is until one says otherwise.
func TestScheduledFiresAreCountedFromTheirDefinition(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		last := func(j job.Job) string {
			t.Helper()
			at, ok := j.Def.FinalRun()
			next := g.NextRuns(j, 10)
			if ok && j.Active() && at.After(time.Now()) && !next[len(next)-1].Equal(at) {
				t.Errorf("next runs are %v, want them up to %v", next, at)
			}
			if !ok {
				return "none"
			}
			return at.Format("15:04")
		}
		want := func(when string, j job.Job, at string) {
			t.Helper()
			if got := last(j); got != at {
				t.Errorf("%s: the last is at %s, want %s", when, got, at)
			}
		}
		_, preview, _, err := g.Preview(ctx, "acme", "j", definition(thrice), control.Match{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want("shown before it is put", preview, "03:00")
		first := g.put("acme", "j", thrice) // at 00:00, which is not among them
		want("put", first, "03:00")
		time.Sleep(90 * time.Minute)
		again := g.put("acme", "j", thrice)
		if again.Generation != first.Generation {
			t.Error("the same again was an edit")
		}
		want("put again", again, "03:00")
		edited := g.put("acme", "j", thrice, func(d *job.Definition) { d.Description = "other" })
		if edited.Generation == first.Generation {
			t.Error("another description was no edit")
		}
		want("with another description", edited, "03:00")
		paused, err := g.Pause(ctx, "acme", "j", "", control.Match{})
		if err != nil {
			t.Fatal(err)
		}
		want("paused", paused, "03:00")
		resumed, err := g.Resume(ctx, "acme", "j", control.Match{})
		if err != nil {
			t.Fatal(err)
		}
		want("resumed", resumed, "03:00")
		patched, _, err := g.Patch(ctx, "acme", "j", func(d job.Definition) (job.Definition, error) {
			d.Labels = map[string]string{"a": "b"}
			return d, nil
		}, control.Match{})
		if err != nil {
			t.Fatal(err)
		}
		want("with a label", patched, "03:00")
		want("with another number", g.put("acme", "j", thrice, func(d *job.Definition) { d.MaxRuns = 4 }), "05:00")
		time.Sleep(6 * time.Hour)
		want("over", g.put("acme", "j", thrice, func(d *job.Definition) { d.MaxRuns, d.Description = 4, "over" }), "05:00")
		want("without", g.put("acme", "j", thrice, func(d *job.Definition) { d.MaxRuns = 0 }), "none")
		want("with it again", g.put("acme", "j", thrice), "10:00")
		if err := g.Delete(ctx, "acme", "j", control.Match{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		want("made anew", g.put("acme", "j", thrice), "11:00")
	})
}

// A clock that was hours ahead gives a schedule no fires that it did not have, and keeps none of those it counted itself.
func TestAClockThatWasAheadChangesNoCount(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		astray := func(name string, change func(*job.Job), defined ...func(*job.Definition)) {
			t.Helper()
			j := g.put("acme", name, append(defined, func(d *job.Definition) { d.Description = "by a clock that is ahead" })...)
			j.Updated += (8 * time.Hour).Milliseconds()
			change(&j)
			op, err := j.Put(1)
			if err == nil {
				_, err = g.Store.Write(ctx, op)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		counts := func(at time.Duration) func(*job.Job) {
			return func(j *job.Job) { j.Def.Schedule.CountedEnd = time.Now().Truncate(time.Hour).Add(at).UnixMilli() + 1 }
		}
		till := time.Now().Add(150 * time.Minute)
		ends := func(d *job.Definition) { thrice(d); d.MaxRuns, d.Schedule.End = 2, &till }
		for _, name := range []string{"before", "other"} {
			g.put("acme", name, thrice)
		}
		g.put("acme", "ends", ends)
		time.Sleep(90 * time.Minute)
		astray("before", func(*job.Job) {}, thrice)
		astray("by-it", counts(11*time.Hour), thrice)
		astray("other", counts(13*time.Hour), thrice, func(d *job.Definition) { d.MaxRuns = 5 })
		astray("ends", func(*job.Job) {}, ends)
		for name, want := range map[string]string{"before": "03:00", "by-it": "04:00", "other": "06:00", "ends": "02:00"} {
			j, err := g.Pause(ctx, "acme", name, "", control.Match{})
			if err != nil {
				t.Fatal(err)
			}
			if at, _ := j.Def.FinalRun(); at.Format("15:04") != want {
				t.Errorf("%s: the last is at %v, want %s", name, at, want)
			}
		}
	})
}

func TestJobsOfABatchAreCountedToo(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		for _, p := range g.PutMany(t.Context(), "acme", []control.Wanted{{Name: "a", Def: definition(thrice)}, {Name: "b", Def: definition(thrice)}}) {
			if at, ok := p.Job.Def.FinalRun(); p.Err != nil || !ok || at.Hour() != 3 {
				t.Errorf("%s ends at %v (%v): %v", p.Job.Name, at, ok, p.Err)
			}
		}
	})
}

func TestMaxRunsThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*job.Definition){
		"1 to 10000, or nothing":                      func(d *job.Definition) { thrice(d); d.MaxRuns = 10_001 },
		"a schedule beside it, whose fires it counts": func(d *job.Definition) { d.MaxRuns = 3 },
	} {
		_, err := definition(change).WithDefaults().Validate(func(string) bool { return true })
		if wrong := invalid.All(err); len(wrong) != 1 || wrong[0].Field != "max_runs" || wrong[0].Want != want {
			t.Errorf("got %v, want max_runs refused: %s", err, want)
		}
	}
}
