package simulate_test

import (
	"testing"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// Nobody is there for hours: what is too late to start takes no place from what may start still, and is told of as missed.
func TestG4_WhatIsTooLateAfterADowntimeIsMissed(t *testing.T) {
	r := play(t, `
jobs:
  ticker:
    schedule: {every: 10s}
    target: {handler: {name: ticker}}
    expires_after: 58s
    catch_up: {mode: all}
    on: {missed: {job: tell}}
  tell:
    target: {handler: {name: tell}}
script:
  - {at: 2h, do: down, for: 3h}
until: 5h10m
`, simulate.Options{})
	if len(r.Skipped) != 1 || r.Skipped[0].Count < 1000 || r.Skipped[0].Reason != "missed: longer ago than expires_after" {
		t.Fatalf("skipped %+v", r.Skipped)
	}
	told, made := 0, 0
	for _, one := range r.Runs {
		if one.State != "succeeded" {
			t.Errorf("%s is %s, for %+v", one.ID, one.State, one.Why)
		}
		if one.Job == "tell" {
			told++
		} else if one.Attempts[0].StartedAt.After(one.NominalTime) {
			made++
		}
	}
	if told != 1 || made < 5 || made > 7 {
		t.Errorf("%d were told, and %d made up for", told, made)
	}
}

// Whoever takes a run from a queue that has a backlog finds it too late, before any check does.
func TestG4_WhatIsTooLateAfterABacklogIsNotStarted(t *testing.T) {
	r := play(t, `
workers: 1
jobs:
  j: {target: {handler: {name: j}}, timeout: 1h, expires_after: 30s}
outcomes:
  j: [{takes: 40s}]
script:
  - {at: 0s, do: trigger, job: j, as: a}
  - {at: 1s, do: trigger, job: j, as: b}
  - {at: 20s, do: trigger, job: j, as: c}
until: 2m
`, simulate.Options{})
	states := map[string]string{}
	for _, one := range r.Runs {
		states[*one.As] = one.State
	}
	if len(r.Runs) != 3 || states["a"] != "succeeded" || states["b"] != "skipped" || states["c"] != "succeeded" {
		t.Errorf("they are %v", states)
	}
}
