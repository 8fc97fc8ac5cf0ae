package simulate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// What Airflow's trigger rules say of each mix of one to three parents becomes of a step that is played: with rows, workers and messages, at an instant at which
// some parents are still under way. Package flow judges the same rows, and others, without any of these.
func TestAirflowsTriggerRulesPlayed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "flow", "testdata", "airflow-trigger-rules.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rows []struct {
			ID, Kind, Rule string
			Expect         json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	parents := map[rune]map[string]any{'S': {}, 'F': {}, 'K': {"when": "false"}, 'U': {"needs": []string{"broken"}}, '-': {"timeout": "1h"}}
	answered := 0
	for _, row := range file.Rows {
		if row.Kind != "derived_table" {
			continue
		}
		expect := readAs[map[string]string](t, row.Expect)
		jobs, outcomes, script := map[string]any{}, map[string]any{}, []any{}
		names := map[string]string{}
		for mix := range expect {
			name := fmt.Sprint("mix", len(names))
			names[name] = mix
			outcomes[name+"/broken"] = []any{map[string]any{"fails": "no", "permanent": true}}
			steps := map[string]any{"broken": anyHandler}
			var needs []string
			for i, is := range mix {
				path := fmt.Sprint("p", i)
				step := map[string]any{"handler": anyHandler["handler"]}
				for field, value := range parents[is] {
					step[field] = value
				}
				switch is {
				case 'F':
					outcomes[name+"/"+path] = outcomes[name+"/broken"]
				case '-':
					outcomes[name+"/"+path] = []any{map[string]any{"takes": "10m"}}
				}
				steps[path], needs = step, append(needs, path)
			}
			steps["child"] = map[string]any{"needs": needs, "rule": row.Rule, "handler": anyHandler["handler"]}
			jobs[name] = map[string]any{"target": map[string]any{"workflow": map[string]any{"steps": steps}}}
			script = append(script, map[string]any{"at": "0s", "do": "trigger", "job": name})
		}
		script = append(script, map[string]any{"at": "1m", "do": "look", "as": "then"})
		report, err := played(t, document{"start": "2026-01-05T00:00:00Z", "workers": 1000, "jobs": jobs, "outcomes": outcomes, "script": script})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range report.Looks["then"].Runs {
			got := map[string]string{"succeeded": "run", "pending": "wait"}
			mix := names[one.Job]
			child := stepOf(t, one, "child").State
			if got[child] != "" {
				child = got[child]
			}
			answered++
			if child != expect[mix] {
				t.Errorf("%s: of the parents %s the step is %s, want %s", row.ID, mix, child, expect[mix])
			}
		}
	}
	if answered < 5*55 {
		t.Errorf("%d answers, want all mixes of five rules", answered)
	}
}

func stepOf(t *testing.T, r simulate.Run, path string) simulate.Step {
	t.Helper()
	for _, s := range r.Steps {
		if s.Path == path {
			return s
		}
	}
	t.Fatalf("run %s has no step %s", r.ID, path)
	return simulate.Step{}
}
