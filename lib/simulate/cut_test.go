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

// ends counts runs by job and state, and what was skipped and refused.
func ends(r simulate.Report) string {
	counts := map[string]int{}
	for _, one := range r.Runs {
		counts[one.Job+" "+one.State]++
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
