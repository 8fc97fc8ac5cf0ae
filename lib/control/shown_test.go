package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
)

func ids(runs []run.Run) (all []string) {
	for _, r := range runs {
		all = append(all, r.ID.String())
	}
	return all
}

// A run that has not begun is scheduled until it is due, and queued from then on, also where its record says the other: it is sent ahead, it is
// asked for far ahead and no tick has come to it, its job is paused.
func TestWhatIsNotDueIsScheduled(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		soon, late := g.Dispatch.Directly()/2, time.Hour
		now := g.trigger("acme", "a", control.Request{})
		ahead := g.trigger("acme", "a", control.Request{Delay: &soon})
		far := g.trigger("acme", "a", control.Request{Delay: &late})
		if ahead.State != run.Queued || far.State != run.Scheduled {
			t.Fatalf("stored are %s and %s", ahead.State, far.State)
		}
		check := func(when string, scheduled, queued []run.Run) {
			t.Helper()
			for _, of := range []string{"", "a"} {
				for state, want := range map[run.State][]run.Run{run.Scheduled: scheduled, run.Queued: queued} {
					got := g.all("acme", control.RunFilter{Job: of, States: []run.State{state}})
					if !slices.Equal(ids(got), ids(want)) {
						t.Errorf("%s, of job %q: %s are %v, want %v", when, of, state, ids(got), ids(want))
					}
					for _, r := range got {
						if shown := g.Shown(ctx, r); shown != state {
							t.Errorf("%s: %s is listed as %s and shown as %s", when, r.ID, state, shown)
						}
					}
				}
				if got := g.all("acme", control.RunFilter{Job: of, Due: true}); !slices.Equal(ids(got), ids(queued)) {
					t.Errorf("%s, of job %q: due are %v, want %v", when, of, ids(got), ids(queued))
				}
				if got := g.all("acme", control.RunFilter{Job: of, Due: true, States: []run.State{run.Scheduled}}); len(got) != 0 {
					t.Errorf("%s, of job %q: due and scheduled are %v", when, of, ids(got))
				}
			}
		}
		check("at first", []run.Run{far, ahead}, []run.Run{now})
		time.Sleep(soon - time.Millisecond)
		check("a millisecond before", []run.Run{far, ahead}, []run.Run{now})
		time.Sleep(time.Millisecond)
		check("when one is due", []run.Run{far}, []run.Run{ahead, now})
		g.put("acme", "a", func(d *job.Definition) { d.Paused = true })
		time.Sleep(late - soon)
		if r, err := g.Run(ctx, "acme", far.ID); err != nil || g.Shown(ctx, r) != run.Queued {
			t.Errorf("held by a pause when it is due: %s, %v", g.Shown(ctx, r), err)
		}
	})
}

// A fire of a job with jitter is due at its share of it, and one that makes up for a missed fire at its place.
func TestJitterAndPlacesPutOffWhatIsDue(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		j := g.put("acme", "a", func(d *job.Definition) {
			d.Schedule = &schedule.Spec{Cron: "0 * * * *", Jitter: schedule.MaxJitter}
		})
		edition, err := g.Dispatch.Book.Edition(ctx, "acme", "a", j.Generation)
		if err != nil {
			t.Fatal(err)
		}
		nominal := time.Now().Truncate(time.Hour).Add(time.Hour)
		claimed, _ := run.Run{ID: run.FireID("a", nominal.UnixMilli()), Tenant: "acme"}.Claim(run.Claim{Generation: j.Generation, Now: nominal.UnixMilli()})
		due := time.UnixMilli(edition.Due("acme", "a", nominal.UnixMilli()))
		if !due.After(nominal) {
			t.Fatal("this fire has no share of the jitter")
		}
		placed := claimed
		placed.NextAt = due.Add(time.Hour).UnixMilli()
		gone := claimed
		gone.Generation++ // there is no such edition
		for _, c := range []struct {
			name string
			r    run.Run
			at   time.Time
			want run.State
		}{
			{"at its nominal time", claimed, nominal, run.Scheduled},
			{"a millisecond before its share", claimed, due.Add(-time.Millisecond), run.Scheduled},
			{"at its share", claimed, due, run.Queued},
			{"at its share, with a place", placed, due, run.Scheduled},
			{"at its place", placed, due.Add(time.Hour), run.Queued},
			{"without its definition", gone, nominal, run.Queued},
		} {
			time.Sleep(time.Until(c.at))
			if got := g.Shown(ctx, c.r); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		}
	})
}

// What is due is found however much waits for its time, and without a look at it.
func TestWhatIsDueIsFoundBehindWhatIsNot(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a")
		due := g.trigger("acme", "a", control.Request{})
		asked := make([]control.Asked, 1000)
		for i := range asked {
			delay := time.Hour + time.Duration(i)*time.Second
			asked[i] = control.Asked{Job: "a", Request: control.Request{Delay: &delay}}
		}
		for range 6 { // more than a call looks at
			for _, one := range g.TriggerMany(t.Context(), "acme", asked) {
				if one.Err != nil {
					t.Fatal(one.Err)
				}
			}
		}
		for _, of := range []string{"", "a"} {
			read := 0
			g.hook = func(_ context.Context, c faulty.Call) faulty.Fault {
				if c.Method == faulty.Get || c.Method == faulty.Peek {
					read += len(c.Keys)
				}
				return faulty.Fault{}
			}
			runs, next, err := g.Runs(t.Context(), "acme", control.RunFilter{Job: of, Due: true}, "", 50)
			if err != nil || !slices.Equal(ids(runs), []string{due.ID.String()}) || next != "" {
				t.Errorf("of job %q: %v, next %q, %v", of, ids(runs), next, err)
			}
			if read > 10 {
				t.Errorf("of job %q: %d items were read one by one", of, read)
			}
		}
	})
}

// What changed last stands first, whatever was due last.
func TestRunsByChange(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		for _, name := range []string{"a", "b"} {
			g.put("acme", name)
		}
		var made []run.Run
		for range 4 {
			made = append(made, g.trigger("acme", "a", control.Request{}))
			time.Sleep(time.Second)
		}
		delay := 10 * time.Second
		ahead := g.trigger("acme", "b", control.Request{Delay: &delay})
		time.Sleep(time.Second)
		g.succeed(made[1])
		time.Sleep(time.Second)
		g.write(made[0], func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
		check := func(when string, f control.RunFilter, limit int, want ...run.Run) {
			t.Helper()
			got, err := g.RunsByChange(ctx, "acme", f, limit)
			if err != nil || !slices.Equal(ids(got.Runs), ids(want)) || !got.LookedBackTo.IsZero() {
				t.Errorf("%s: %v back to %s, want %v; %v", when, ids(got.Runs), got.LookedBackTo, ids(want), err)
			}
		}
		check("all", control.RunFilter{}, 50, made[0], made[1], ahead, made[3], made[2])
		check("those that are due", control.RunFilter{Due: true}, 50, made[0], made[1], made[3], made[2])
		check("of a job", control.RunFilter{Job: "a"}, 2, made[0], made[1])
		check("of a state", control.RunFilter{States: []run.State{run.Queued}}, 50, made[3], made[2])
		time.Sleep(delay)
		check("when one has become due", control.RunFilter{}, 1, ahead)
		if _, err := g.Cancel(ctx, "acme", made[2].ID, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		check("when one was cancelled", control.RunFilter{}, 1, made[2])
		_, err := g.RunsByChange(ctx, "acme", control.RunFilter{Job: "?"}, 1)
		if all := invalid.All(err); len(all) != 1 || all[0].Field != "job" {
			t.Errorf("of no job: %v", err)
		}
	})
}

// Only so many are put in order, and the answer says how far back it looked.
func TestRunsByChangeSayHowFarTheyLooked(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ctx := t.Context()
		g.put("acme", "a")
		oldest := g.trigger("acme", "a", control.Request{})
		var newer run.Run
		for i := range control.MaxLimit {
			time.Sleep(time.Millisecond)
			if r := g.trigger("acme", "a", control.Request{}); i == 0 {
				newer = r
			}
		}
		time.Sleep(time.Second)
		g.succeed(oldest)
		for _, of := range []string{"", "a"} {
			got, err := g.RunsByChange(ctx, "acme", control.RunFilter{Job: of}, control.MaxLimit)
			if err != nil || len(got.Runs) != control.MaxLimit || slices.Contains(ids(got.Runs), oldest.ID.String()) || !got.LookedBackTo.Equal(newer.ID.Time()) {
				t.Errorf("of job %q: %d runs, back to %s, want to %s; %v", of, len(got.Runs), got.LookedBackTo, newer.ID.Time(), err)
			}
			got, err = g.RunsByChange(ctx, "acme", control.RunFilter{Job: of, To: newer.ID.Time()}, 1)
			if err != nil || !slices.Equal(ids(got.Runs), []string{oldest.ID.String()}) || !got.LookedBackTo.IsZero() {
				t.Errorf("of job %q, before the others: %v, %v", of, got, err)
			}
		}
	})
}
