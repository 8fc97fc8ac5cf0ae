package flow

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/manifest"
)

// drawn is a random definition of a few steps, in which many can never run.
func drawn(r *rand.Rand) Definition {
	steps := map[string]Step{}
	kinds := []string{"task", "task", "task", "pass", "fail", "switch", "scope"}
	led := map[string]bool{}
	n := 2 + r.IntN(4)
	for i := range n {
		name := fmt.Sprint("s", i)
		var s Step
		text := map[string]string{"task": `{"handler":{"name":"x"}}`, "pass": `{"pass":{}}`, "fail": `{"fail":{}}`,
			"scope":  []string{`{"steps":{"in":{"handler":{"name":"x"}}}}`, `{"steps":{"in":{"fail":{}}}}`, `{"steps":{"in":{"handler":{"name":"x"}},"out":{"needs":["in"],"rule":"one_failed","pass":{}}}}`}[r.IntN(3)],
			"switch": "{}"}[kinds[r.IntN(len(kinds))]]
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			panic(err)
		}
		for j := range i {
			if r.IntN(3) == 0 {
				s.Needs = append(s.Needs, fmt.Sprint("s", j))
			}
		}
		if r.IntN(2) == 0 {
			s.Rule = Rules[r.IntN(len(Rules))]
		}
		if text == "{}" {
			for j := i + 1; j < n; j++ {
				if to := fmt.Sprint("s", j); !led[to] && r.IntN(2) == 0 {
					led[to] = true
					s.Switch = append(s.Switch, Choice{When: ".input.x", To: to})
				}
			}
			if s.Switch == nil {
				s.Pass = &Pass{}
			}
		}
		steps[name] = s
	}
	return Definition{Steps: steps}
}

// Of a definition that is refused because a step can never run, that step does not run, whatever the outcomes: all of them are tried.
func TestWhatIsRefusedAsUnreachableNeverRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 1))
	rounds := 1500
	if testing.Short() {
		rounds = 400
	}
	refused := 0
	for range rounds {
		def := drawn(r)
		text, err := json.Marshal(def)
		if err != nil {
			t.Fatal(err)
		}
		v, err := manifest.ReadJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		c := checkerOf(&report{}, def, AnyQueue)
		c.build()
		if c.count() > 0 {
			t.Fatalf("%s: %v", text, c.err())
		}
		_, err = Check(v, AnyQueue)
		if err == nil {
			continue
		}
		refused++
		never := map[string]bool{}
		c.reach()
		for _, e := range c.wrong {
			path := strings.TrimSuffix(strings.TrimPrefix(e.Field, "steps."), ".rule")
			never[strings.ReplaceAll(path, ".steps.", "/")] = true
		}
		if len(never) == 0 {
			t.Fatalf("%s is refused for %v", text, err)
		}
		everyOutcomeOf(c.w, func(o Outcomes) {
			played, failed := c.w.Simulate(t.Context(), o, nil)
			if failed != nil {
				t.Fatal(failed)
			}
			for _, s := range played.Steps {
				if never[s.Path] && s.StartedAfter != nil {
					t.Fatalf("%s of %s runs with %v, and is refused as unreachable: %v", s.Path, text, o, err)
				}
			}
		})
	}
	if refused < rounds/10 {
		t.Errorf("only %d of %d were refused", refused, rounds)
	}
}

// everyOutcomeOf visits every way in which tasks and switches may come out.
func everyOutcomeOf(w *Workflow, visit func(Outcomes)) {
	var walk func(i int, so Outcomes)
	walk = func(i int, so Outcomes) {
		if i == len(w.Nodes) {
			visit(so)
			return
		}
		n := w.Nodes[i]
		var all []Outcome
		switch n.Kind {
		case KindTask:
			all = []Outcome{{State: Succeeded}, {State: Failed}, {State: Skipped}}
		case KindSwitch:
			all = []Outcome{{State: Failed}, {To: json.RawMessage("null")}}
			for _, way := range n.Ways {
				name, _ := json.Marshal(w.Nodes[way.To].Name)
				all = append(all, Outcome{To: name})
			}
		default:
			walk(i+1, so)
			return
		}
		for _, o := range all {
			so[n.Path] = o
			walk(i+1, so)
		}
		delete(so, n.Path)
	}
	walk(0, Outcomes{})
}
