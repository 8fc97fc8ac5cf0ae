package control_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

func bounded(d *job.Definition) {
	d.Retention, d.Overlap = 0, job.Overlap{Policy: job.OverlapSkip}
}

func unbounded(d *job.Definition) { d.Retention = 0 }

// A run that was skipped for overlap may be retried, without force: it never ran.
func TestP7_ARunSkippedForOverlapMayBeRetried(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		j := g.put("acme", "a", bounded)
		r := g.trigger("acme", "a", control.Request{})
		why := run.Why{Code: run.WhyOverlap, Gate: gate.Name("a"), Policy: "skip", InTheWay: []string{r.ID.String()}}
		skipped := g.write(r, func(r run.Run, now int64) run.Run { return r.Overlapping(why, false, now, 24*time.Hour) })
		got, err := g.Retry(t.Context(), "acme", r.ID, false, time.Time{})
		if err != nil || got.State != run.Queued || !got.Why.IsZero() || got.Opening != skipped.Version+1 || got.Version != got.Opening ||
			got.Generation != j.Generation || got.Attempt != 0 || !got.Spared() {
			t.Errorf("opened again as %+v, %v", got, err)
		}
		_, err = g.Retry(t.Context(), "acme", r.ID, false, time.Time{})
		refused(t, err, control.CodeRunNotEnded)
	})
}

// A reopening has a number of its own where the run may have been at a gate, or may come to one. The records of others stay as they are.
func TestG1_OpeningsOfRunsAtAGate(t *testing.T) {
	for name, row := range map[string]struct {
		before, after func(*job.Definition)
		numbered      bool
	}{
		"bounded all the time": {bounded, bounded, true},
		"bounded since":        {unbounded, bounded, true},
		"bounded before":       {bounded, unbounded, true},
		"never bounded":        {unbounded, unbounded, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.put("acme", "a", row.before)
				r := g.trigger("acme", "a", control.Request{})
				g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
				ended := g.write(r, func(r run.Run, now int64) run.Run {
					return r.Fail(now, run.Failure{Error: "no", Permanent: true}, limits)
				})
				g.put("acme", "a", row.after)
				got, err := g.Retry(t.Context(), "acme", r.ID, false, time.Time{})
				want := uint64(0)
				if row.numbered {
					want = ended.Version + 1
				}
				if err != nil || got.Opening != want {
					t.Errorf("opening %d, %v; want %d", got.Opening, err, want)
				}
			})
		})
	}
}

// What is opened again ahead of its time binds when that comes, to a definition that may bound what this one does not.
func TestG1_AnOpeningAheadOfItsTimeHasANumber(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a", unbounded)
		soon := time.Now().Add(time.Hour)
		r := g.trigger("acme", "a", control.Request{At: &soon})
		if r.State == run.Scheduled {
			r = g.write(r, func(r run.Run, _ int64) run.Run { r.State = run.Queued; return r }) // by a clock that was ahead
		}
		g.write(r, func(r run.Run, now int64) run.Run { return r.Start("w", now, time.Minute) })
		ended := g.write(r, func(r run.Run, now int64) run.Run {
			return r.Fail(now, run.Failure{Error: "no", Permanent: true}, limits)
		})
		got, err := g.Retry(t.Context(), "acme", r.ID, false, time.Time{})
		if err != nil || got.State != run.Scheduled || got.Opening != ended.Version+1 {
			t.Errorf("it is %s with opening %d, %v; want it scheduled with %d", got.State, got.Opening, err, ended.Version+1)
		}
	})
}

func TestOverlapIsCheckedWithTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		def := job.Definition{Target: g.put("acme", "a", unbounded).Def.Target, Overlap: job.Overlap{Policy: "strictly"}}
		_, _, err := g.Put(t.Context(), "acme", "a", def, control.Match{})
		if all := invalid.All(err); len(all) != 1 || all[0].Field != "overlap.policy" {
			t.Errorf("refused with %v", err)
		}
		j := g.put("acme", "a", func(d *job.Definition) { d.Overlap.Policy = job.OverlapAllow; d.Retention = 0 })
		if !j.Def.Overlap.IsZero() {
			t.Errorf("stored as %+v", j.Def.Overlap)
		}
	})
}
