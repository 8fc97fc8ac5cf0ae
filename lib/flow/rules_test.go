package flow_test

import (
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
)

// letters are the states that rules tell apart, as the evaluator writes them; each state that stands for the same is tried.
var letters = map[byte][]flow.State{
	reference.Success:  {flow.Succeeded},
	reference.Failure:  {flow.Failed, flow.Dead, flow.Unknown, flow.Cancelled},
	reference.Upstream: {flow.UpstreamFailed},
	reference.Skip:     {flow.Skipped},
	reference.Open:     {flow.Pending, flow.Scheduled, flow.Queued, flow.Running, flow.Retrying, flow.Suspended, "", "of a newer version"},
}

var verdicts = map[rune]flow.Verdict{reference.Run: flow.Run, reference.Skip: flow.Skip, reference.Upstream: flow.Block, reference.Open: flow.Wait}

// arrangements calls f with every sequence of n letters out of a set.
func arrangements(set string, n int, f func(ends string)) {
	ends := make([]byte, n)
	var fill func(i int)
	fill = func(i int) {
		if i == n {
			f(string(ends))
			return
		}
		for _, c := range []byte(set) {
			ends[i] = c
			fill(i + 1)
		}
	}
	fill(0)
}

// states writes ends as states. Where a letter stands for several, the position and n choose one.
func states(ends string, n int) []flow.State {
	all := make([]flow.State, len(ends))
	for i := range ends {
		of := letters[ends[i]]
		all[i] = of[(n+i)%len(of)]
	}
	return all
}

// Each rule × every multiset of up to 4 ends × every order of them.
func TestW2_EveryRuleOverEveryEnd(t *testing.T) {
	looked := 0
	for _, rule := range flow.Rules {
		for n := 1; n <= 4; n++ {
			arrangements("SFUK", n, func(ends string) {
				looked++
				want := verdicts[reference.Final(string(rule), ends)]
				for of := range letters[reference.Failure] {
					if got := rule.Decide(states(ends, of)...); got != want {
						t.Errorf("%s over %s: got %v, want %v", rule, ends, got, want)
					}
				}
			})
		}
	}
	if want := 12 * (4 + 16 + 64 + 256); looked != want {
		t.Errorf("%d cases, want %d", looked, want)
	}
}

// While parents are open, a rule decides exactly where all of their possible ends agree, in whatever order the parents stand.
func TestW2_RulesDecideEarlyOnlyWhatIsSure(t *testing.T) {
	early := map[flow.Rule]int{}
	partial := 0
	for _, rule := range flow.Rules {
		for n := 1; n <= 4; n++ {
			arrangements("SFUK-", n, func(ends string) {
				want := verdicts[reference.Decide(string(rule), ends)]
				for of := range letters[reference.Open] {
					if got := rule.Decide(states(ends, of)...); got != want {
						t.Errorf("%s over %s: got %v, want %v", rule, ends, got, want)
					}
				}
				if slices.Contains([]byte(ends), reference.Open) {
					partial++
					if want == flow.Run {
						early[rule]++
					}
				}
			})
		}
	}
	// As many as the model of the protocol counts, which was written by somebody else.
	want := map[flow.Rule]int{flow.Always: 440, flow.OneSuccess: 220, flow.OneFailed: 350, flow.OneDone: 350}
	for _, rule := range flow.Rules {
		if early[rule] != want[rule] {
			t.Errorf("%s runs early in %d partial states, want %d", rule, early[rule], want[rule])
		}
	}
	if partial != 12*440 {
		t.Errorf("%d partial states, want %d", partial, 12*440)
	}
}

func TestAStepWithoutParentsRuns(t *testing.T) {
	for _, rule := range flow.Rules {
		if got := rule.Decide(); got != flow.Run {
			t.Errorf("%s: got %v, want it to run", rule, got)
		}
	}
}

// Among many parents, open ones are no more than the four ways in which they may end.
func TestRulesOverManyParents(t *testing.T) {
	for _, rule := range flow.Rules {
		for _, few := range []string{"S-", "F-", "U-", "K-", "--", "SK-", "FU-"} {
			many := states(few, 0)
			for range 1000 {
				many = append(many, flow.Running)
			}
			// With four open ones every way of ending is in the evaluator's reach.
			want := verdicts[reference.Decide(string(rule), few+"---")]
			if got := rule.Decide(many...); got != want {
				t.Errorf("%s over %s and 1,000 open ones: got %v, want %v", rule, few, got, want)
			}
		}
	}
}
