package flow_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

const page = "../../docs/workflow-rules.md"

var answers = map[flow.Verdict]string{flow.Run: "runs", flow.Wait: "waits", flow.Skip: "skipped", flow.Block: "blocked"}

// outcomeTables are what each rule says of every set of ends that can occur among the parents.
func outcomeTables() string {
	var out strings.Builder
	table := func(sets ...string) {
		out.WriteString("| `rule` | " + strings.Join(sets, " | ") + " |\n|---" + strings.Repeat("|---", len(sets)) + "|\n")
		for _, rule := range flow.Rules {
			fmt.Fprintf(&out, "| `%s` |", rule)
			for _, set := range sets {
				fmt.Fprintf(&out, " %s |", answers[rule.Decide(states(strings.ReplaceAll(set, " ", ""), 0)...)])
			}
			out.WriteByte('\n')
		}
		out.WriteByte('\n')
	}
	table("S", "F", "U", "K")
	table("S F", "S U", "S K", "F U", "F K", "U K")
	table("S F U", "S F K", "S U K", "F U K", "S F U K")
	return "\n" + out.String()
}

// earlyTable says which end of one parent settles a rule while others are open.
func earlyTable() string {
	var out strings.Builder
	out.WriteString("\n| `rule` | settled by one parent that is |\n|---|---|\n")
	names := map[string]string{"S": "success", "F": "failure", "U": "blocked", "K": "skip"}
	for _, rule := range flow.Rules {
		var by []string
		for _, v := range []flow.Verdict{flow.Run, flow.Skip, flow.Block} {
			var ends []string
			for _, end := range []string{"S", "F", "U", "K"} {
				if rule.Decide(states(end+"----", 0)...) == v {
					ends = append(ends, names[end])
				}
			}
			if len(ends) > 0 {
				by = append(by, strings.Join(ends, " or ")+": "+answers[v])
			}
		}
		text := strings.Join(by, "; ")
		switch {
		case rule == flow.Always:
			text = "runs before any has ended"
		case text == "":
			text = "nothing: it waits for all"
		}
		fmt.Fprintf(&out, "| `%s` | %s |\n", rule, text)
	}
	return out.String() + "\n"
}

func TestThePageShowsWhatTheRulesSay(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	now := string(text)
	for name, table := range map[string]string{"outcomes": outcomeTables(), "early": earlyTable()} {
		open, end := fmt.Sprintf("<!-- %s: go test ./lib/flow -run Page -update -->\n", name), fmt.Sprintf("<!-- /%s -->", name)
		before, rest, found := strings.Cut(now, open)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no place for %s", page, name)
		}
		now = before + open + table + end + after
	}
	if *update {
		if err := os.WriteFile(page, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != string(text) {
		t.Errorf("%s does not show what the rules say: go test ./lib/flow -run Page -update", page)
	}
}

// What is settled early is settled by one parent alone. So whoever has seen that parent end needs to look at no other.
func TestW2_OneParentSettlesARuleEarly(t *testing.T) {
	settled := 0
	for _, rule := range flow.Rules {
		if rule == flow.Always {
			continue
		}
		for n := 2; n <= 4; n++ {
			arrangements("SFUK-", n, func(ends string) {
				v := rule.Decide(states(ends, 0)...)
				if !strings.Contains(ends, "-") || v == flow.Wait {
					return
				}
				settled++
				for i := range ends {
					alone := strings.Repeat("-", i) + ends[i:i+1] + strings.Repeat("-", n-i-1)
					if rule.Decide(states(alone, 0)...) == v {
						return
					}
				}
				t.Errorf("%s over %s: settled, and by no parent alone", rule, ends)
			})
		}
	}
	if settled == 0 {
		t.Error("no rule is settled early")
	}
}
