package flow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// peerRow is a row of testdata/airflow-trigger-rules.json: a fact about Airflow's rules.
type peerRow struct {
	ID, Kind, Case string
	Rule           string
	Total          *int `json:"upstream_total"`
	Counts         map[string]int
	Marks          bool `json:"mark_states"` // the rule settles what the step becomes; else it only tells whether it may run
	Inconsistent   bool `json:"fixture_inconsistent"`
	Expect         json.RawMessage
}

// elsewhere are the kinds of rows that speak of what no rule of ours is about, each with the reason.
var elsewhere = map[string]string{
	"skip_waits_for_past": "a workflow's steps do not look at an earlier run: overlap and order are the job's",
	"depends_on_past":     "the same",
	"map_input":           "there are no mapped steps yet",
	"map_chain":           "there are no mapped steps yet",
}

// differs are the rows in which a step of ours becomes something else, with what it becomes. docs/workflow-rules.md gives the reasons.
var differs = map[string]string{
	"rule-001": "run",     // its counts contradict each other
	"rule-036": "skipped", // without marking, Airflow asks only whether the rule holds, and a later look at the states stops the step
	"graph-1":  "failed",  // every failure that nobody handles fails the workflow, whatever its last steps do
	"setup-7":  "wait",    // all_success waits before it says skipped: a failure may still come
}

// setups are rows about Airflow's setup tasks, which are ordinary parents here: the step that needs them, and how they have ended. Others
// of the kind are about mapped ones.
var setups = map[string]struct{ step, parents string }{
	"setup-1": {"t2", "-"}, "setup-4": {"t2", "K"}, "setup-6": {"w1", "-F"}, "setup-7": {"w1", "-K"},
}

func verdictName(v flow.Verdict) string {
	return map[flow.Verdict]string{flow.Run: "run", flow.Wait: "wait", flow.Skip: "skipped", flow.Block: "upstream_failed"}[v]
}

// Every row of Airflow's own tests that a rule of ours can answer gives the same, but for those in differs, which give what is said there.
func TestAirflowsRowsGiveTheSame(t *testing.T) {
	text, err := os.ReadFile("testdata/airflow-trigger-rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Source struct{ Repo, Licence, Attribution string }
		Rows   []peerRow
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if table.Source.Attribution == "" || table.Source.Licence == "" {
		t.Error("the table has lost its attribution")
	}
	answered, left := 0, map[string]int{}
	seen := map[string]string{}
	compare := func(id, got, want string) {
		answered++
		if got == want {
			return
		}
		seen[id] = got
		if differs[id] != got {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
	for _, row := range table.Rows {
		switch {
		case elsewhere[row.Kind] != "":
			left[row.Kind]++
		case row.Rule == "all_done_setup_success":
			left["setup rule"]++ // of teardown tasks alone: there is a scope with an all_done step for these
		case row.Kind == "trivial" || row.Kind == "trigger_rule":
			var expect struct {
				Passed   bool
				Decision string
			}
			mustUnmarshal(t, row.Expect, &expect)
			v := flow.Rule(row.Rule).Decide(row.parents()...)
			if row.Kind == "trivial" || row.Marks {
				compare(row.ID, verdictName(v), expect.Decision)
				break
			}
			// Only asked: it may run, or not.
			if (v == flow.Run) == expect.Passed {
				answered++
			} else {
				compare(row.ID, verdictName(v), expect.Decision)
			}
		case row.Kind == "derived_table":
			var expect map[string]string
			mustUnmarshal(t, row.Expect, &expect)
			if len(expect) != 55 {
				t.Errorf("%s has %d mixes, want 55", row.ID, len(expect))
			}
			for _, mix := range slices.Sorted(maps.Keys(expect)) {
				compare(row.ID+" "+mix, verdictName(flow.Rule(row.Rule).Decide(states(mix, 0)...)), expect[mix])
			}
		case setups[row.ID].parents != "":
			var expect map[string]struct {
				Set string `json:"state_set"`
			}
			mustUnmarshal(t, row.Expect, &expect)
			want := expect[setups[row.ID].step].Set
			if want == "" {
				want = "wait"
			}
			compare(row.ID, verdictName(flow.AllSuccess.Decide(states(setups[row.ID].parents, 0)...)), want)
		case row.ID == "graph-1":
			w := workflow(t, `{"steps": {"op1": {"handler": {"name": "x"}}, "op2": {"needs": ["op1"], "handler": {"name": "x"}}, "op3": {"needs": ["op1"], "handler": {"name": "x"}},
				"op4": {"needs": ["op2", "op3"], "rule": "all_done", "handler": {"name": "x"}}, "op5": {"needs": ["op2", "op3", "op4"], "rule": "one_failed", "handler": {"name": "x"}}}}`)
			var expect struct {
				RunState string `json:"run_state"`
			}
			mustUnmarshal(t, row.Expect, &expect)
			compare(row.ID, string(playedAs(t, w, flow.Outcomes{"op2": {State: flow.Failed}}, nil).State), strings.Replace(expect.RunState, "success", "succeeded", 1))
		case row.Kind == "branch":
			branch(t, row, compare)
		default:
			left[row.Kind]++
		}
	}
	for id, got := range differs {
		if seen[id] != got {
			t.Errorf("%s does not differ any more, or its row is gone: it is listed with %s", id, got)
		}
	}
	t.Logf("%d answers compared, %d differ; left out, by kind: %v", answered, len(seen), left)
	if answered < 300 {
		t.Errorf("%d answers, want 300 at least", answered)
	}
}

// branch plays a switch that chooses a step, and one that chooses another.
func branch(t *testing.T, row peerRow, compare func(id, got, want string)) {
	t.Helper()
	w := workflow(t, `{"steps": {"s": {"switch": [{"when": ".input.a", "to": "x"}, {"to": "y"}]}, "x": {"handler": {"name": "x"}}, "y": {"handler": {"name": "x"}}, "alone": {"handler": {"name": "x"}}}}`)
	step, to := "x", `"x"`
	switch row.Case {
	case "no parent":
		step = "alone"
	case "branch chose this task":
	case "branch chose another task":
		to = `"y"`
	default:
		t.Fatalf("%s: %s is a new case", row.ID, row.Case)
	}
	var expect struct {
		Passed bool
		Set    string `json:"state_set"`
	}
	mustUnmarshal(t, row.Expect, &expect)
	want := "succeeded"
	if !expect.Passed {
		want = expect.Set
	}
	for _, s := range playedAs(t, w, flow.Outcomes{"s": {To: json.RawMessage(to)}}, nil).Steps {
		if s.Path == step {
			compare(row.ID, string(s.State), want)
		}
	}
}

func mustUnmarshal(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// parents writes the counts of a row as states. Instances that were removed are no parents.
func (row peerRow) parents() []flow.State {
	ends := ""
	for name, letter := range map[string]string{"success": "S", "failed": "F", "skipped": "K", "upstream_failed": "U"} {
		ends += strings.Repeat(letter, row.Counts[name])
	}
	total := row.Counts["done"]
	if row.Total != nil && *row.Total > 0 {
		total = *row.Total
	}
	open := max(total-row.Counts["removed"]-len(ends), 0)
	return states(ends+strings.Repeat("-", open), 0)
}

// The order of ends makes no difference to us. It does in Airflow, where all_success settles as soon as it can: a skip that is seen first
// makes the step skipped, a failure that is seen first upstream_failed.
func TestW2_AirflowsAllSuccessGoesByOrderAndOursDoesNot(t *testing.T) {
	settles := func(order string) string {
		for _, end := range order {
			switch end {
			case 'F', 'U':
				return "upstream_failed"
			case 'K':
				return "skipped"
			}
		}
		return "run"
	}
	depends := map[string]bool{}
	for n := 1; n <= 4; n++ {
		arrangements("SFUK", n, func(ends string) {
			set := []byte(ends)
			slices.Sort(set)
			final := verdictName(flow.AllSuccess.Decide(states(ends, 0)...))
			if settles(ends) != final {
				depends[string(set)] = true
			}
			// Ours says the same at every moment, once it says anything.
			for known := range n {
				partial := ends[:known] + strings.Repeat("-", n-known)
				if v := flow.AllSuccess.Decide(states(partial, 0)...); v != flow.Wait && verdictName(v) != final {
					t.Errorf("%s: %s early, %s in the end", partial, verdictName(v), final)
				}
			}
		})
	}
	if len(depends) != 25 {
		t.Errorf("Airflow's all_success depends on the order for %d multisets, want 25: %v", len(depends), fmt.Sprint(slices.Sorted(maps.Keys(depends))))
	}
}
