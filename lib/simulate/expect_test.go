package simulate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/simulate"
)

func TestAnExpectationIsAPartOfAReport(t *testing.T) {
	at := time.Date(2026, 1, 5, 0, 10, 0, 0, time.UTC)
	as := "a"
	report := simulate.Report{
		Runs: []simulate.Run{
			{ID: "r~1", As: &as, Job: "r", State: "dead", NominalTime: at, StartedAt: &at, Attempts: []simulate.Attempt{{Attempt: 1, Outcome: "failed", Error: "boom"}}, Result: json.RawMessage(`{"rows": 3, "more": [1, 2]}`)},
			{ID: "r~2", Job: "r", State: "skipped", NominalTime: at.Add(time.Hour), Attempts: []simulate.Attempt{}},
		},
		Skipped: []simulate.Stretch{}, Refused: []simulate.Refusal{}, Looks: map[string]*simulate.Report{}, Most: simulate.Most{Jobs: map[string]int{"r": 1}, Workers: 1},
	}
	for expect, want := range map[string]string{
		`{}`:                                     ``,
		`{open: 0}`:                              ``,
		`{open: 0.0}`:                            ``,
		`{open: 1}`:                              `open: want 1, got 0`,
		`{runs: [{state: dead}]}`:                ``,
		`{runs: [{state: dead}, {as: null}]}`:    ``,
		`{runs: [{state: dead}, {}, null]}`:      ``,
		`{runs: [{job: r}, {job: r}, null]}`:     ``,
		`{runs: [{job: r}, null]}`:               `runs[1]: want nothing, got {"id":"r~2"`,
		`{runs: [{job: r}, {job: r}, {job: r}]}`: `runs[2]: want {"job":"r"}, got nothing`,
		`{runs: []}`:                             `runs: want an empty list, got [{"id":"r~1"`,
		`{skipped: []}`:                          ``,
		`{skipped: [{count: 3}]}`:                `skipped[0]: want {"count":3}, got nothing`,
		`{stopped: null, looks: {}}`:             ``,
		`{stopped: {bound: runs}}`:               `stopped: want {"bound":"runs"}, got nothing`,
		`{runs: [{as: null}]}`:                   `runs[0].as: want nothing, got "a"`,
		`{runs: [{started_at: "2026-01-05T01:10:00+01:00"}]}`: ``,
		`{runs: [{started_at: 2026-01-05T00:10:01Z}]}`:        `runs[0].started_at: want "2026-01-05T00:10:01Z", got "2026-01-05T00:10:00Z"`,
		`{runs: [{result: {rows: 3}}]}`:                       ``,
		`{runs: [{result: {rows: "3"}}]}`:                     `runs[0].result.rows: want "3", got 3`,
		`{runs: [{result: {more: [1, 2, null]}}]}`:            ``,
		`{runs: [{result: null}]}`:                            `runs[0].result: want nothing, got {"rows":3,"more":[1,2]}`,
		`{runs: [{attempts: [{error: bang}]}]}`:               `runs[0].attempts[0].error: want "bang", got "boom"`,
		`{most: {jobs: {r: 1, s: null}}}`:                     ``,
		`{most: {jobs: {s: 1}}}`:                              `most.jobs.s: want 1, got nothing`,
		`null`:                                                ``,
	} {
		s, err := simulate.Parse("a.yaml", []byte("start: 2026-01-05T00:00:00Z\nexpect: "+expect+"\n"))
		if err != nil {
			t.Errorf("%s: %v", expect, err)
			continue
		}
		differences, _, err := s.Expect.Compare(report)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(differences) > 0 {
			got = strings.TrimPrefix(fmt.Sprintf("%s: want %s, got %s", differences[0].Field, differences[0].Want, differences[0].Got), ": ")
		}
		if len(differences) > 1 || want == "" && got != "" || !strings.HasPrefix(got, want) || differences != nil && differences[0].Line != 2 {
			t.Errorf("%s: got %q, want %q", expect, differences, want)
		}
	}
}

// What nobody reads is not listed, and counted all the same.
func TestDifferencesAreCounted(t *testing.T) {
	const wrong = 250
	report := simulate.Report{Runs: make([]simulate.Run, wrong)}
	s, err := simulate.Parse("a.yaml", []byte("start: 2026-01-05T00:00:00Z\nexpect: {open: 0, runs: ["+strings.Repeat("{state: dead}, ", wrong)+"null]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	found, more, err := s.Expect.Compare(report)
	if err != nil || len(found) != invalid.Most || more != wrong-invalid.Most {
		t.Errorf("%d differences and %d more, %v; want %d and %d", len(found), more, err, invalid.Most, wrong-invalid.Most)
	}
}
