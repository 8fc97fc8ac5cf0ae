package model_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// The checkers of the models of a workflow's run, flow.pml, and of what rules decide while parents are open, early.pml.
var (
	flowPan  = sync.OnceValues(func() (string, error) { return build("flow.pml") })
	earlyPan = sync.OnceValues(func() (string, error) { return build("early.pml") })
)

// outcomes are what rules tell apart, in the order of the bits that the models have for them.
var outcomes = []flow.State{flow.Succeeded, flow.Failed, flow.UpstreamFailed, flow.Skipped}

// ruleTable is a file with what each rule of the code says of each set of outcomes and of none to four open parents: with as many open as there are
// outcomes a rule says what it says with more.
var ruleTable = sync.OnceValues(func() (string, error) {
	var text strings.Builder
	for _, rule := range flow.Rules {
		for seen := range 1 << len(outcomes) {
			for open := range len(outcomes) + 1 {
				parents := slices.Repeat([]flow.State{flow.Running}, open)
				for i, outcome := range outcomes {
					if seen>>i&1 == 1 {
						parents = append(parents, outcome)
					}
				}
				fmt.Fprintf(&text, "%d ", rule.Decide(parents...))
			}
		}
	}
	dir, err := os.MkdirTemp("", "belfry-model")
	if err != nil {
		return "", err
	}
	made = append(made, dir)
	file := filepath.Join(dir, "rules")
	return file, os.WriteFile(file, []byte(text.String()), 0o600)
})

// exploreFlow is exploreBy for a model that goes by the code's rules.
func exploreFlow(t *testing.T, made func() (string, error), bounds ...string) explored {
	t.Helper()
	rules, err := ruleTable()
	if err != nil {
		t.Fatal(err)
	}
	return exploreBy(t, made, append([]string{"RULES=" + rules}, bounds...)...)
}

// bound gives bounds out of a line of them.
func bound(line string) []string { return strings.Fields(line) }

// The bounds under which a workflow's run is explored, with two hands. NEEDS1 is the set of steps that step 1 needs, and so on; ONLY is the place of the rule that all
// steps with parents have, in flow.Rules; without it each has any of them.
var (
	flowJoin    = bound("STEPS=3 NEEDS2=3")                                                // two steps, and one behind both under every rule
	flowDiamond = bound("STEPS=4 NEEDS1=1 NEEDS2=1 NEEDS3=6 ONLY=0")                       // one, two at once, and one behind both
	flowCrash   = bound("STEPS=3 NEEDS2=3 ONLY=0 FAULTS=1")                                // a hand dies
	flowCancel  = bound("STEPS=3 NEEDS2=3 ONLY=0 CANCELS=1")                               // the run is cancelled
	flowAll     = bound("STEPS=2 NEEDS1=1 ONLY=0 FAULTS=1 CANCELS=1 AGAINS=1 TAKEOVERS=1") // and an attempt is tried again, or loses its lease to another
	flowOnce    = bound("STEPS=2 NEEDS1=1 ONLY=0 FAULTS=1 CANCELS=1 TAKEOVERS=1 ONCE=3")   // the same of steps that may start once
	flowLate    = bound("STEPS=2 NEEDS1=1 ONLY=0 FAULTS=1 CANCELS=1 TIMES=1")              // the time of the run is over
	flowCaught  = bound("STEPS=3 NEEDS1=1 CATCH0=2 ONLY=8")                                // a step whose failure another handles, and one that needs it
	flowUnder   = bound("STEPS=3 NEEDS1=1 CATCH0=2")                                       // the same under every rule
	flowBoth    = bound("STEPS=3 CATCH0=2 CATCH1=2 ONLY=0")                                // two whose failures one handles
	flowLeads   = bound("STEPS=3 CATCH0=2 CATCH1=2 ONLY=0 FAULTS=1")                       // and a hand dies
	flowHandler = bound("STEPS=3 NEEDS2=2 CATCH0=2")                                       // one that handles failures of a step, and needs another under every rule
	flowHalts   = bound("STEPS=3 NEEDS2=1 ONLY=2 STOPS=1")                                 // a failure stops the run
	flowFalls   = bound("STEPS=3 NEEDS2=1 ONLY=2 STOPS=1 FAULTS=1")                        // and a hand dies
	flowAsked   = bound("STEPS=3 NEEDS2=2 CATCH0=2 ONLY=2 STOPS=1 CANCELS=1")              // the same where one is handled, and the run is cancelled
	flowCut     = bound("STEPS=3 NEEDS1=1 NEEDS2=3 ONLY=5")                                // a chain with a short cut; under any two rules there are too many states to see all of them
	flowBroad   = bound("STEPS=4 NEEDS3=7 ONLY=5")                                         // three, and one behind all that runs at the first success
	flowStopped = bound("STEPS=3 NEEDS2=3 ONLY=0 FAULTS=1 CANCELS=1")                      // a hand dies, and the run is cancelled
	flowChecked = bound("STEPS=2 NEEDS1=1 ONLY=0 FAULTS=1 CANCELS=1 CHECKS=1")             // a check comes while all are at work
	flowShort   = bound("STEPS=4 NEEDS2=1 NEEDS3=6 ONLY=0")                                // a chain of two beside one, and one behind both
	flowHidden  = bound("STEPS=5 NEEDS3=7 NEEDS4=10 ONLY=0 RULE4=2")                       // a step that one end alone decides, and one behind it and another
	flowTwice   = bound("STEPS=2 NEEDS1=1 ONLY=0 FAULTS=2 CANCELS=1")                      // two hands die
)

func TestW1_W2_W3_W4_W5_W13_TheModelOfAWorkflowKeepsThePromises(t *testing.T) {
	needsSpin(t)
	all := map[string][]string{"Diamond": flowDiamond, "Cancel": flowCancel, "All": flowAll, "Once": flowOnce, "Late": flowLate, "Short": flowShort,
		"Caught": flowCaught, "Both": flowBoth, "Handler": flowHandler, "Halts": flowHalts, "Asked": flowAsked}
	if !testing.Short() {
		all["Join"], all["Cut"], all["Broad"], all["Stopped"], all["Checked"], all["Twice"], all["Hidden"] = flowJoin, flowCut, flowBroad, flowStopped, flowChecked, flowTwice, flowHidden
		all["Crash"], all["Under"], all["Leads"], all["Falls"] = flowCrash, flowUnder, flowLeads, flowFalls
	}
	for name, bounds := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := exploreFlow(t, flowPan, bounds...)
			if e.broken != "" {
				t.Fatalf("%v breaks %s:\n%s", bounds, e.broken, e.out)
			}
			t.Logf("%d states, all of them", e.states)
		})
	}
}

func TestW2_TheModelOfRulesKeepsThePromises(t *testing.T) {
	needsSpin(t)
	e := exploreFlow(t, earlyPan)
	if e.broken != "" {
		t.Fatalf("breaks %s:\n%s", e.broken, e.out)
	}
	t.Logf("%d states, all of them", e.states)
}

func TestEachRuleOfAWorkflowTakenOutIsMissed(t *testing.T) {
	needsSpin(t)
	for model, c := range map[string]struct {
		made   func() (string, error)
		bounds []string // of those that are not listed
		others map[string][]string
	}{
		"flow.pml": {flowPan, flowCrash, map[string][]string{"nohead": flowCancel, "wordlast": flowCancel, "answers": flowCancel, "weakhead": flowCancel, "nofence": flowAll, "twice": flowOnce, "trusts": flowJoin, "unsure": flowHidden,
			"eager": flowBoth, "tells": flowCaught, "counts": flowCaught, "alike": flowBoth, "nostop": flowHalts, "leaves": flowHalts, "forgets": flowHalts, "stopsall": flowAsked}},
		"early.pml": {made: earlyPan},
	} {
		rules := plantedErrors(t, model)
		if len(rules) == 0 {
			t.Errorf("%s has no rules to take out", model)
		}
		for rule, number := range rules {
			t.Run(strings.TrimSuffix(model, ".pml")+"/"+rule, func(t *testing.T) {
				t.Parallel()
				within := c.others[rule]
				if within == nil {
					within = c.bounds
				}
				e := exploreFlow(t, c.made, append([]string{"PLANTED=" + number}, within...)...)
				if e.broken == "" {
					t.Fatalf("without the rule that %s takes out, nothing is broken in %d states", rule, e.states)
				}
				t.Logf("breaks %s, found after %d states", e.broken, e.states)
			})
		}
	}
}

// The page says which code each part of the model is: each part is named that has a label there, and the code that is named stands where it is said to.
func TestThePageNamesTheCodeOfAWorkflow(t *testing.T) {
	page, err := os.ReadFile("../../docs/model.md")
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile("flow.pml")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "Each part of the model is a part of the code:")
	table, _, _ = strings.Cut(table, "| name | what is looked at |")
	named := map[string]bool{}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
			named[m[1]] = true
		}
		for _, m := range regexp.MustCompile("`(\\w+)\\.(\\w+)`\\]\\(\\.\\./([^)]+)\\)").FindAllStringSubmatch(cells[3], -1) {
			code, err := os.ReadFile("../../" + m[3])
			if err != nil {
				t.Error(err)
			} else if !regexp.MustCompile(`(?m)^func \(\w+ \*?` + m[1] + `\) ` + m[2] + `\(`).Match(code) {
				t.Errorf("%s has no %s.%s", m[3], m[1], m[2])
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+):$`).FindAllStringSubmatch(string(model), -1) {
		if label := m[1]; !named[label] && !slices.Contains([]string{"take", "end", "after", "dead"}, label) {
			t.Errorf("the page does not say which code %s is", label)
		}
	}
	for label := range named {
		if !regexp.MustCompile(`(?m)^(` + label + `:|proctype ` + label + `\()`).Match(model) {
			t.Errorf("the model has no %s", label)
		}
	}
}
