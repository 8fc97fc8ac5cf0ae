package control_test

import (
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

func own(p job.OverlapPolicy) control.Request {
	return control.Request{Overlap: job.OwnOverlap{Policy: p}}
}

// A request's own policy is stored with its run, now and later, and in each of many; a job that bounds nothing takes allow alone.
func TestG4_ARequestBringsItsPolicy(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "bounded", bounded)
		g.put("acme", "free", unbounded)
		g.put("acme", "ledger", func(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapStrict} })
		for _, c := range []struct {
			job     string
			own     job.OverlapPolicy
			stored  job.OverlapPolicy
			refused bool
		}{
			{"bounded", "", "", false}, {"bounded", "allow", "allow", false}, {"bounded", "queue", "queue", false}, {"bounded", "replace", "replace", false},
			{"bounded", "strict", "", true}, {"bounded", "forbid", "", true}, {"free", "allow", "allow", false}, {"free", "skip", "", true}, {"free", "strict", "", true},
			{"ledger", "strict", "", false}, {"ledger", "skip", "skip", false},
		} {
			later := own(c.own)
			later.Delay = new(time.Hour)
			answers := g.TriggerMany(t.Context(), "acme", []control.Asked{{Job: c.job, Request: own(c.own)}, {Job: "free"}, {Job: c.job, Request: later}})
			if beside := answers[1]; beside.Err != nil || beside.Run.Overlap != 0 {
				t.Errorf("beside %s of %s: %q, %v", c.own, c.job, beside.Run.Overlap, beside.Err)
			}
			for _, answer := range []control.Answer{answers[0], answers[2]} {
				if c.refused {
					if wrong := invalid.All(answer.Err); len(wrong) != 1 || wrong[0].Field != "overlap" {
						t.Errorf("%s of %s: %v", c.own, c.job, answer.Err)
					}
					continue
				}
				standing, err := g.Run(t.Context(), "acme", answer.Run.ID)
				if answer.Err != nil || err != nil || standing.Overlap.Policy() != c.stored {
					t.Errorf("%s of %s: stored as %q, %v, %v", c.own, c.job, standing.Overlap, answer.Err, err)
				}
			}
		}
	})
}

// An edit that was made by another process a moment ago counts: what this one remembers of the job does not.
func TestG4_WhatMayBeBroughtGoesByTheNewestDefinition(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a", unbounded)
		g.trigger("acme", "a", control.Request{}) // and it is remembered
		j, err := g.Dispatch.Book.Job(t.Context(), "acme", "a")
		if err != nil {
			t.Fatal(err)
		}
		j.Def.Overlap, j.Generation = job.Overlap{Policy: job.OverlapQueue, Limit: 1}, j.Generation+1
		op, err := j.Put(g.NewID())
		if err == nil {
			_, err = g.Store.Write(t.Context(), op)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r, _, err := g.Trigger(t.Context(), "acme", "a", own("skip")); err != nil || r.Overlap.Policy() != job.OverlapSkip {
			t.Errorf("behind the edit: %q, %v", r.Overlap, err)
		}
	})
}

// One key, one policy: the same request gives the same run, and another is refused.
func TestP9_AKeyIsOfOnePolicy(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("acme", "a", bounded)
		ask := func(p job.OverlapPolicy) (run.Run, bool, error) {
			req := own(p)
			req.Key = "k"
			return g.Trigger(t.Context(), "acme", "a", req)
		}
		first, _, err := ask("queue")
		if err != nil {
			t.Fatal(err)
		}
		if again, repeated, err := ask("queue"); err != nil || !repeated || again.ID != first.ID || again.Overlap.Policy() != job.OverlapQueue {
			t.Errorf("again: %+v, repeated %v, %v", again, repeated, err)
		}
		for _, p := range []job.OverlapPolicy{"", "skip", "allow"} {
			_, _, err := ask(p)
			t.Logf("with %q", p)
			refused(t, err, control.CodeKeyReused)
		}
	})
}

// A request that is repeated once its job takes no such policy any more gives the run that was accepted; another one is refused, and leaves its key free.
func TestP9_AKeyStandsForItsRunThoughTheJobWasEdited(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		ask := func(key string, p job.OverlapPolicy, delay time.Duration) (run.Run, bool, error) {
			req := own(p)
			req.Key, req.Delay = key, &delay
			return g.Trigger(t.Context(), "acme", "a", req)
		}
		strictly := func(d *job.Definition) { d.Overlap = job.Overlap{Policy: job.OverlapStrict} }
		for _, c := range []struct {
			own   job.OverlapPolicy
			delay time.Duration
		}{{"skip", 0}, {"queue", time.Hour}, {"strict", 0}} {
			g.put("acme", "a", strictly)
			key := "for " + string(c.own)
			first, _, err := ask(key, c.own, c.delay)
			if err != nil {
				t.Fatal(err)
			}
			g.put("acme", "a", unbounded)
			if again, repeated, err := ask(key, c.own, c.delay); err != nil || !repeated || again.ID != first.ID {
				t.Errorf("%s again: %s, repeated %v, %v; want %s", c.own, again.ID, repeated, err, first.ID)
			}
			_, _, err = ask(key, "replace", c.delay)
			refused(t, err, control.CodeKeyReused)
			if _, _, err := ask("new "+key, c.own, c.delay); len(invalid.All(err)) != 1 {
				t.Errorf("%s under a new key: %v", c.own, err)
			}
			if _, repeated, err := ask("new "+key, "allow", c.delay); err != nil || repeated {
				t.Errorf("under the key that was refused: repeated %v, %v", repeated, err)
			}
		}
	})
}
