package simulate_test

import (
	"encoding/json"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

func play(t testing.TB, text string, o simulate.Options) simulate.Report {
	t.Helper()
	s, err := simulate.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := simulate.Play(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPageExample(t *testing.T) {
	r := play(t, `
start: 2026-01-05T00:00:00Z
until: 2026-01-05T03:00:00Z
workers: 100
jobs:
  report: {schedule: {cron: "*/10 * * * *"}, overlap: skip, timeout: 1h, target: {handler: {name: report}}}
outcomes:
  report: [{takes: 25m}, {takes: 1m, fails: "boom"}, {takes: 1s}]
  "*": [{takes: 0s}]
script:
  - {at: 35m, do: pause, job: report, reason: "db move"}
  - {at: 65m, do: resume, job: report}
  - {at: 70m, do: trigger, job: report, as: a, payload: {customer: acme}}
  - {at: 71m, do: cancel, run: a}
  - {at: 80m, do: down, for: 20m}
`, simulate.Options{})
	text, _ := json.MarshalIndent(r, "", " ")
	t.Log(string(text))
}
