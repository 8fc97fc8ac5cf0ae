package simulate_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// ends counts runs by job and state, steps also by how many attempts they took, and what was skipped and refused.
func ends(r simulate.Report) string {
	counts := map[string]int{}
	for _, one := range r.Runs {
		counts[one.Job+" "+one.State]++
		for _, s := range one.Steps {
			counts[fmt.Sprintf("%s/%s %s with %d attempts", one.Job, s.Path, s.State, len(s.Attempts))]++
		}
	}
	for _, s := range r.Skipped {
		counts[s.Job+" missed"] += s.Count
	}
	for _, f := range r.Refused {
		counts[fmt.Sprint("line ", f.Line, " ", f.Code)]++
	}
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprint(what, ": ", counts[what]))
	}
	return strings.Join(lines, "\n")
}

// cutting has work in which it does not matter who comes a moment later.
const cutting = `until: 4h
jobs:
  a: {schedule: {cron: "*/7 * * * *"}, overlap: skip, timeout: 1h, target: {handler: {name: a}}}
  b: {schedule: {every: 5m}, retry: {initial: 20s, factor: 1, max_attempts: 3}, timeout: 5m, target: {exec: {argv: [b]}}}
  c: {schedule: {cron: "*/5 * * * *"}, priority: high, timeout: 10m, target: {http: {url: "https://example.org"}}, catch_up: {mode: all}}
  d: {target: {handler: {name: d}}, guarantee: at_most_once, timeout: 1h}
  e: {schedule: {cron: "30 * * * *"}, retry: {initial: 1h, max_attempts: 2}, target: {handler: {name: e}}}
outcomes:
  a: [{takes: 12m}]
  b: {by: .attempt, is: {"3": [{takes: 10s}]}, else: [{takes: 10s, fails: "no"}]}
  c: [{takes: 4m}]
  e: [{fails: "no"}]
  "*": [{takes: 1m, result: [1]}]
script:
  - {at: 10m10s, do: trigger, runs: [{job: d, as: first}, {job: d}, {job: nowhere}, {job: d, as: last}]}
  - {at: 10m30s, do: cancel, run: first}
  - {at: 11m, do: cancel, run: first}
  - {at: 12m, do: trigger, job: d, as: later, delay: 2h}
  - {at: 31m, do: pause, job: b, reason: "db move"}
  - {at: 62m, do: down, for: 41m}
  - {at: 111m, do: resume, job: b}
  - {at: 121m, do: trigger, job: d, as: cut}
  - {at: 121m5s, do: retry, run: cut}
  - {at: 151m, do: redrive, job: e}
  - {at: 181m, do: cancel, job: c}
  - {at: 190m, do: put, job: e, definition: {target: {handler: {name: e}}}}
  - {at: 211m, do: delete, job: a}
  - {at: 212m, do: delete, job: a}
`

// renewing has attempts that last over the fires of others: each time their leases are renewed, just before these are found.
const renewing = `until: 3h
jobs:
  a: {schedule: {cron: "*/2 * * * *"}, timeout: 1h, target: {handler: {name: a}}}
  b: {schedule: {cron: "*/5 * * * *"}, timeout: 1h, target: {handler: {name: b}}}
outcomes:
  a: [{takes: 90s}]
  b: [{takes: 2m}]
`

// A server that dies as a lease is renewed loses none of the fires that were due at that instant.
func TestACutBeforeAPassLosesNoFire(t *testing.T) {
	want := ends(play(t, renewing, simulate.Options{}))
	for _, cut := range []int{simulate.LeastCut, 11, 12} {
		if got := ends(play(t, renewing, simulate.Options{Cut: cut})); got != want {
			t.Errorf("cut at each %d writes it says\n%s\nand without cuts\n%s", cut, got, want)
		}
	}
}

// A server that is killed behind any write, and recovers, loses and doubles nothing.
func TestCutsChangeNothing(t *testing.T) {
	want := ends(play(t, cutting, simulate.Options{}))
	for _, cut := range []int{simulate.LeastCut, 23} {
		t.Run(fmt.Sprint("each ", cut), func(t *testing.T) {
			t.Parallel()
			if got := ends(play(t, cutting, simulate.Options{Cut: cut})); got != want {
				t.Errorf("it says\n%s\nand without cuts\n%s", got, want)
			}
		})
	}
	for _, few := range []int{-1, 1, simulate.LeastCut - 1} {
		_, err := simulate.Play(t.Context(), parse(t, cutting), simulate.Options{Cut: few})
		var wrong *invalid.Error
		if !errors.As(err, &wrong) || wrong.Field != "cut" {
			t.Errorf("a cut at each %d writes: %v", few, err)
		}
	}
}

// graphs are workflows of several forms, with what fails, waits, is cancelled and runs out of time. Nothing depends on who comes a moment later.
const graphs = `until: 3h
jobs:
  chain: {schedule: {every: 20m}, target: {workflow: {steps: {a: {handler: {name: h}}, b: {needs: [a], handler: {name: h}}, c: {needs: [b], handler: {name: h}}, d: {needs: [c], handler: {name: h}}}, output: "${ .steps.b.result }"}}}
  wide:
    schedule: {every: 15m}
    overlap: skip
    target:
      workflow:
        defaults: {timeout: 10m, retry: {max_attempts: 2, initial: 5s, factor: 1}}
        steps:
          first: {handler: {name: h}}
          a: {needs: [first], handler: {name: h}}
          b: {needs: [first], handler: {name: h}}
          c: {needs: [first], handler: {name: h}, allow_failure: true}
          d: {needs: [first], handler: {name: h}, when: .input != null}
          inner: {needs: [first], steps: {x: {handler: {name: h}}, y: {needs: [x], handler: {name: h}}, z: {needs: [x], handler: {name: h}, rule: one_failed}}}
          early: {needs: [a, b], rule: one_success, handler: {name: h}}
          done: {needs: [a, b, c, d, inner], rule: all_done, handler: {name: h}}
          alarm: {needs: [a, b, c], rule: one_failed, handler: {name: h}}
  choice: {schedule: {every: 30m}, payload: {n: 1}, target: {workflow: {steps: {s: {switch: [{when: .input.n == 2, to: a}, {to: b}]}, a: {handler: {name: h}}, b: {handler: {name: h}}, j: {needs: [a, b], rule: none_failed_min_one_success, pass: {}}, k: {needs: [j], handler: {name: h}}}}}}
  late: {schedule: {every: 1h}, target: {workflow: {timeout: 5m, steps: {a: {handler: {name: h}, timeout: 1h}, b: {needs: [a], handler: {name: h}}, c: {rule: always, handler: {name: h}}}}}}
  asked: {target: {workflow: {steps: {a: {handler: {name: h}, timeout: 30m}, b: {needs: [a], handler: {name: h}}, c: {handler: {name: h}, guarantee: at_most_once}, d: {needs: [c], rule: all_failed, handler: {name: h}}}}}}
  none: {schedule: {every: 10m}, target: {workflow: {steps: {a: {pass: {}}, b: {needs: [a], fail: {code: no}}, c: {needs: [b], rule: all_failed, handler: {name: h}}}}}}
outcomes:
  chain: [{takes: 10s, result: 1}]
  wide/b: [{takes: 3m, fails: "no"}]
  wide/c: [{takes: 1m, fails: "no", permanent: true}]
  wide/inner/x: [{takes: 2m, crashes: true}, {takes: 2m}, {takes: 2m}, {takes: 2m}]
  late/a: [{never: true}]
  asked/a: [{takes: 20m, stops_after: 10s}]
  asked/c: [{takes: 1s, fails: "no", code: lost}]
  "*": [{takes: 20s}]
script:
  - {at: 7m30s, do: trigger, runs: [{job: asked, as: first}, {job: asked, as: second}, {job: asked}]}
  - {at: 10m30s, do: cancel, run: first}
  - {at: 62m, do: down, for: 17m}
  - {at: 92m10s, do: put, job: choice, definition: {payload: {n: 2}, schedule: {every: 30m}, target: {workflow: {steps: {s: {switch: [{when: .input.n == 2, to: a}, {to: b}]}, a: {handler: {name: h}}, b: {handler: {name: h}}}}}}}
  - {at: 110m30s, do: pause, job: none}
  - {at: 125m, do: retry, run: second}
  - {at: 140m5s, do: delete, job: chain}
`

// Nor does one lose, double or strand a step: whoever ended one, and died before what follows stood.
func TestCutsChangeNothingOfWorkflows(t *testing.T) {
	want := ends(play(t, graphs, simulate.Options{}))
	for _, some := range []string{"wide/done succeeded with 1 attempts", "wide/inner/x succeeded with 2 attempts: 1", "late/a cancelled with 1 attempts", "asked/c unknown with 1 attempts", "asked cancelled: 1", "line 6 workflow_begun: 1"} {
		if !strings.Contains(want, some) {
			t.Errorf("%s is missing in\n%s", some, want)
		}
	}
	for _, cut := range []int{simulate.LeastCut, 13, 17, 29} {
		t.Run(fmt.Sprint("each ", cut), func(t *testing.T) {
			t.Parallel()
			if got := ends(play(t, graphs, simulate.Options{Cut: cut})); got != want {
				t.Errorf("it says\n%s\nand without cuts\n%s", got, want)
			}
		})
	}
}
