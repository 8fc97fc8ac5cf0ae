package control_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Each step of a workflow's run that has not ended tells why it does not go on: by the steps before it, by its own run, and by the run that it is of.
func TestWhyAStepDoesNotGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		many := make([]string, 12)
		steps := make([]string, len(many))
		for i := range many {
			many[i] = fmt.Sprintf("m%02d", i)
			steps[i] = fmt.Sprintf(`%q: {"handler": {"name": "f"}}`, many[i])
		}
		text := `{"steps": {` + strings.Join(steps, ",") + `,
			"a": {"handler": {"name": "f"}, "retry": {"max_attempts": 5}, "guarantee": "at_least_once"},
			"all": {"needs": ["` + strings.Join(many, `","`) + `"], "handler": {"name": "f"}},
			"any": {"needs": ["m00", "a"], "rule": "one_success", "handler": {"name": "f"}},
			"now": {"needs": ["a"], "rule": "always", "handler": {"name": "f"}},
			"s": {"needs": ["a"], "steps": {"x": {"handler": {"name": "f"}}, "y": {"needs": ["x"], "handler": {"name": "f"}}}},
			"open": {"steps": {"x2": {"handler": {"name": "f"}}, "y2": {"needs": ["x2"], "pass": {}}}},
			"end": {"needs": ["s"], "rule": "all_done", "pass": {}}}}`
		g.put("default", "etl", func(def *job.Definition) { def.Target = target.Spec{Workflow: []byte(text)} })
		r := g.trigger("default", "etl", control.Request{})
		read := func() control.Graph {
			t.Helper()
			graph, err := g.Graph(t.Context(), "default", r.ID)
			if err != nil {
				t.Fatal(err)
			}
			return graph
		}
		why := func(graph control.Graph, path string, change ...func(*control.Standing)) []control.Waiting {
			t.Helper()
			n, ok := graph.Workflow.Node(path)
			if !ok {
				t.Fatalf("no step %s", path)
			}
			standing, err := g.StepStanding(t.Context(), graph, graph.Steps[n.Index])
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range change {
				c(&standing)
			}
			return standing.Why()
		}
		expect := func(graph control.Graph, path, codes, says string, steps ...string) {
			t.Helper()
			got := why(graph, path)
			var all []string
			for _, w := range got {
				all = append(all, string(w.Code))
				if w.Text == "" {
					t.Errorf("%s: %+v has no text", path, w)
				}
			}
			if strings.Join(all, " ") != codes {
				t.Errorf("%s waits for %+v, want %s", path, got, codes)
				return
			}
			if len(got) == 0 {
				return
			}
			if last := got[len(got)-1]; !strings.Contains(got[0].Text, says) || !slices.Equal(last.Steps, steps) {
				t.Errorf("%s waits for %+v, want it to say %q and name %v", path, got, says, steps)
			}
		}
		// Nothing of it has begun.
		before := read()
		expect(before, "a", "queued", "Its run has not begun. It waits in the queue default for a worker.")
		expect(before, "any", "queued steps", "Its run has not begun.", "a", "m00")

		edition, err := g.Dispatch.EditionOf(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Dispatch.Open(t.Context(), r, edition, g.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
		// Whoever opened it has died.
		expect(read(), "a", "not_released", "put in its queue next")
		expect(read(), "now", "not_released", "")
		expect(read(), "s/x", "steps", "The scope s around it waits for the step a to end", "a")

		if err := g.Dispatch.Follow(t.Context(), "default", r.ID, false); err != nil {
			t.Fatal(err)
		}
		graph := read()
		expect(graph, "a", "queued", "It waits in the queue default")
		expect(graph, "now", "queued", "")
		expect(graph, "all", "steps", "It waits for the steps m00, m01, m02, m03, m04, m05, m06, m07, m08, m09 and 2 more to end, by its rule all_success.", many...)
		expect(graph, "any", "steps", "It waits for the steps a and m00 to end, by its rule one_success.", "a", "m00")
		expect(graph, "s", "steps", "It waits for the step a to end", "a")
		expect(graph, "s/x", "steps", "The scope s around it waits for the step a to end", "a")
		expect(graph, "s/y", "steps", "It waits for the step s/x to end", "s/x")
		expect(graph, "open", "steps", "It ends with what is in it, and waits for the steps open/x2 and open/y2 to end.", "open/x2", "open/y2")
		expect(graph, "end", "steps", "It waits for the step s to end, by its rule all_done.", "s")
		if got := why(graph, "end", func(s *control.Standing) { s.Skewed = dispatch.ErrSkewed }); len(got) != 2 || got[0].Code != control.WaitClockOff {
			t.Errorf("by a clock that is off, it waits for %+v", got)
		}

		// A step's own run tells what that of a job tells.
		n, _ := graph.Workflow.Node("a")
		a := &graph.Steps[n.Index]
		set := func(change func(*run.Run)) {
			a.Run = run.Run{ID: r.ID.At("a"), Tenant: "default", Generation: graph.Run.Generation, Attempt: 1}
			change(&a.Run)
			a.State = flow.State(a.Run.State.String())
		}
		lease, later := g.Now().Add(20*time.Second).UnixMilli(), g.Now().Add(time.Hour).UnixMilli()
		set(func(s *run.Run) { s.State, s.Failures, s.NextAt = run.Retrying, 1, later })
		expect(graph, "a", "backing_off", "Attempt 1 failed. Try 2 of 5")
		set(func(s *run.Run) { s.State, s.Worker, s.Lease = run.Running, "vm/1", lease })
		expect(graph, "a", "running", "Attempt 1 is under way")
		set(func(s *run.Run) { s.State, s.Worker, s.Lease, s.Cancel = run.Running, "vm/1", lease, true })
		expect(graph, "a", "cancelling running", "its worker hears of it")
		set(func(s *run.Run) { s.State, s.Worker, s.Lease = run.Running, "vm/1", 1 })
		expect(graph, "a", "lease_over", "the step is tried again soon")
		set(func(s *run.Run) { s.State = run.Succeeded })
		expect(graph, "a", "", "")
		set(func(s *run.Run) { s.State = run.Queued })
		graph.Run.Cancel = true
		expect(graph, "a", "cancelling", "the step starts no more")
		expect(graph, "end", "cancelling", "the step starts no more")
		graph.Run.Overdue = true
		expect(graph, "end", "cancelling", "The time of its run is over")
		graph.Run.Reason = "step a is failed: exit: exit code 3"
		expect(graph, "end", "cancelling", "A failure stops its run, and the step starts no more: step a is failed")

		// A pause and a delete hold no step of a run that has begun.
		if _, err := g.Pause(t.Context(), "default", "etl", "db move", control.Match{}); err != nil {
			t.Fatal(err)
		}
		expect(read(), "a", "queued", "")
		if _, err := g.Cancel(t.Context(), "default", r.ID, "no longer needed"); err != nil {
			t.Fatal(err)
		}
		for _, step := range read().Steps {
			expect(read(), step.Node.Path, "", "")
		}
	})
}

// Of a run that has not begun nothing stands otherwise: neither a scope, nor a step that calls nothing. Where it never begins, none of them has run.
func TestTheStepsOfARunThatHasNotBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("default", "etl", func(def *job.Definition) {
			def.Target = target.Spec{Workflow: []byte(`{"steps": {"a": {"handler": {"name": "f"}}, "p": {"pass": {}}, "f": {"fail": {"code": "no", "message": "no"}}, "s": {"steps": {"x": {"handler": {"name": "f"}}}}}}`)}
		})
		r := g.trigger("default", "etl", control.Request{Delay: new(24 * time.Hour)})
		for _, want := range []flow.State{flow.Pending, flow.Cancelled} {
			graph, err := g.Graph(t.Context(), "default", r.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range graph.Steps {
				if step.State != want {
					t.Errorf("of a run that is %s, step %s is %s, want %s", graph.Run.State, step.Node.Path, step.State, want)
				}
			}
			if want == flow.Pending {
				if _, err := g.Cancel(t.Context(), "default", r.ID, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A step of a run that was cancelled, or whose time is over, is shown as cancelled where nothing but that has kept it from its end. What a failure or a skip had
// decided before stays so, whatever came after.
func TestTheStepsOfARunThatWasToStop(t *testing.T) {
	const text = `{"timeout": "1h", "steps": {
		"done": {"handler": {"name": "f"}},
		"bad": {"handler": {"name": "f"}},
		"open": {"handler": {"name": "f"}},
		"behind": {"needs": ["open"], "handler": {"name": "f"}},
		"whatever": {"needs": ["open"], "rule": "all_done", "handler": {"name": "f"}},
		"mended": {"needs": ["open"], "rule": "one_failed", "handler": {"name": "f"}},
		"far": {"needs": ["behind"], "pass": {}},
		"blocked": {"needs": ["bad", "open"], "handler": {"name": "f"}},
		"spared": {"needs": ["done"], "rule": "all_failed", "handler": {"name": "f"}},
		"s": {"steps": {"x": {"handler": {"name": "f"}}, "y": {"needs": ["x"], "handler": {"name": "f"}}}},
		"after": {"needs": ["s"], "handler": {"name": "f"}},
		"n": {"needs": ["bad"], "steps": {"z": {"handler": {"name": "f"}}}}}}`
	ended := map[string]flow.State{"done": "succeeded", "bad": "dead", "open": "cancelled", "behind": "cancelled", "whatever": "cancelled", "mended": "cancelled", "far": "cancelled",
		"blocked": "upstream_failed", "spared": "skipped", "s": "cancelled", "s/x": "cancelled", "s/y": "cancelled", "after": "cancelled", "n": "upstream_failed", "n/z": "upstream_failed"}
	for name, stop := range map[string]func(t *testing.T, g *rig, head run.Run){
		"cancelled": func(t *testing.T, g *rig, head run.Run) {
			if _, err := g.Cancel(t.Context(), "default", head.ID, ""); err != nil {
				t.Fatal(err)
			}
		},
		"over its time": func(t *testing.T, g *rig, head run.Run) {
			time.Sleep(time.Hour)
			if err := g.Dispatch.Follow(t.Context(), "default", head.ID, false); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, g *rig) {
				g.put("default", "etl", func(def *job.Definition) { def.Target = target.Spec{Workflow: []byte(text)} })
				r := g.trigger("default", "etl", control.Request{})
				edition, err := g.Dispatch.EditionOf(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				head, err := g.Dispatch.Open(t.Context(), r, edition, g.Now().UnixMilli())
				if err != nil {
					t.Fatal(err)
				}
				follow := func() {
					t.Helper()
					if err := g.Dispatch.Follow(t.Context(), "default", r.ID, false); err != nil {
						t.Fatal(err)
					}
				}
				shown := func() map[string]flow.State {
					t.Helper()
					graph, err := g.Graph(t.Context(), "default", r.ID)
					if err != nil {
						t.Fatal(err)
					}
					states := map[string]flow.State{}
					for _, step := range graph.Steps {
						states[step.Node.Path] = step.State
					}
					return states
				}
				follow()
				steps, err := g.Dispatch.Steps(t.Context(), head)
				if err != nil {
					t.Fatal(err)
				}
				var held run.Run // by a worker that has still to hear that it is to stop
				now := g.Now().UnixMilli()
				for _, s := range steps {
					next := s.Start("vm/1", now, time.Minute)
					switch s.ID.Step {
					case "done":
						next = next.Succeed(now, run.Ref{}, "", run.Limits{})
					case "bad":
						next = next.Fail(now, run.Failure{Error: "no", Permanent: true}, run.Limits{})
						next.State = run.Dead
					case "open":
					default:
						continue
					}
					if next, err = g.Dispatch.PutRun(t.Context(), next, job.Callbacks{}, now); err != nil {
						t.Fatal(err)
					}
					if s.ID.Step == "open" {
						held = next
					}
				}
				stop(t, g, head)
				want := maps.Clone(ended)
				for path, state := range want {
					if state == flow.Cancelled && path != "s/x" { // which had not started
						want[path] = flow.Pending
					}
				}
				want["open"], want["s"] = flow.Running, flow.Running
				if got := shown(); !maps.Equal(got, want) {
					t.Errorf("while a step has still to stop, they are shown as %v, want %v", got, want)
				}
				standing, err := g.Dispatch.ReadRuns(t.Context(), []run.Run{held})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := g.Dispatch.PutRun(t.Context(), standing[0].Cancelled(g.Now().UnixMilli(), "", run.Limits{}), job.Callbacks{}, g.Now().UnixMilli()); err != nil {
					t.Fatal(err)
				}
				follow()
				if got := shown(); !maps.Equal(got, ended) {
					t.Errorf("they are shown as %v, want %v", got, ended)
				}
			})
		})
	}
}

// The steps of a run that has not begun tell what that waits for.
func TestWhyAStepOfARunToComeDoesNotGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, g *rig) {
		g.put("default", "etl", func(def *job.Definition) {
			def.Target = target.Spec{Workflow: []byte(`{"steps": {"a": {"handler": {"name": "f"}}}}`)}
		})
		r := g.trigger("default", "etl", control.Request{Delay: new(24 * time.Hour)})
		if _, err := g.Pause(t.Context(), "default", "etl", "db move", control.Match{}); err != nil {
			t.Fatal(err)
		}
		graph, err := g.Graph(t.Context(), "default", r.ID)
		if err != nil {
			t.Fatal(err)
		}
		standing, err := g.StepStanding(t.Context(), graph, graph.Steps[0])
		if err != nil {
			t.Fatal(err)
		}
		why := standing.Why()
		if len(why) != 2 || why[0].Code != control.WaitPaused || !strings.Contains(why[0].Text, "has not begun. Its job is paused (db move)") ||
			why[1].Code != control.WaitNotDue || why[1].Until.Before(g.Now().Add(23*time.Hour)) {
			t.Errorf("it waits for %+v, want the pause of its job, and its time", why)
		}
	})
}
