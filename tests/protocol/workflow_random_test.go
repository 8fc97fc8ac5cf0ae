package protocol_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/flow/reference"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// drawSteps draws the steps of one graph: tasks, and scopes in scopes.
func drawSteps(chance *rand.Rand, prefix string, depth int) []reference.Step {
	steps := make([]reference.Step, 1+chance.IntN(5))
	for i := range steps {
		s := task(fmt.Sprintf("%s%d", prefix, i), good, "")
		if chance.IntN(4) == 0 {
			s.End = bad
		}
		for p := range i {
			if len(s.Parents) < 3 && chance.IntN(2) == 0 {
				s.Parents = append(s.Parents, steps[p].Name)
			}
		}
		if chance.IntN(2) == 0 {
			s.Rule = string(flow.Rules[chance.IntN(len(flow.Rules))])
		}
		if depth < 2 && chance.IntN(5) == 0 {
			s.Inside = drawSteps(chance, s.Name+"-", depth+1)
		}
		s.Allowed = chance.IntN(6) == 0
		steps[i] = s
	}
	return steps
}

// Random graphs under random faults come out as the evaluator says, whatever was lost, doubled or gone; those that are cancelled end cancelled, with
// nothing started after the answer.
func TestW1_W2_W3_W4_W5_RandomGraphsUnderRandomFaults(t *testing.T) {
	randomGraphs(t, 35, func(*rand.Rand, []reference.Step) {})
}

// The same holds where steps ask whether they run, switches choose, and inputs name the steps before them.
func TestW1_W2_W3_W4_W5_W9_RandomGraphsThatAsk(t *testing.T) {
	randomGraphs(t, 38, asking)
}

// asking has some tasks of a graph be skipped by what they ask, makes switches of others, and has inputs name the steps before.
func asking(chance *rand.Rand, steps []reference.Step) {
	led := map[string]bool{}
	for i := range steps {
		s := &steps[i]
		if len(s.Inside) > 0 {
			asking(chance, s.Inside)
			continue
		}
		switch chance.IntN(4) {
		case 0:
			s.End = reference.Skip
		case 1:
			for k := i + 1; k < len(steps); k++ {
				to := &steps[k]
				if led[to.Name] || chance.IntN(2) == 0 {
					continue
				}
				led[to.Name] = true
				if s.Choices == nil {
					s.Choices = map[string]bool{}
				}
				s.Choices[to.Name] = true
				if !slices.Contains(to.Parents, s.Name) {
					to.Parents = append(to.Parents, s.Name)
				}
				if chance.IntN(2) == 0 {
					s.Chosen = to.Name
				}
			}
			if s.Choices != nil {
				s.End, s.Allowed = good, false
			}
		}
		s.Reads = len(s.Parents) > 0 && len(s.Choices) == 0 && chance.IntN(2) == 0
	}
}

func randomGraphs(t *testing.T, salt uint64, change func(*rand.Rand, []reference.Step)) {
	t.Helper()
	seeds := uint64(400)
	if testing.Short() {
		seeds = 80
	}
	ran := 0
	for seed := range seeds {
		chance := rand.New(rand.NewPCG(seed, salt))
		steps := drawSteps(chance, "s", 0)
		change(chance, steps)
		w := newWorld(t)
		probe := job.Definition{Target: target.Spec{Workflow: fmt.Appendf(nil, `{"steps": %s}`, stepsJSON(steps))}}
		if w.host("api").control.Check(tenant, probe) != nil {
			continue // a step that can never run
		}
		ran++
		w.fate = func(queueMessage) (lost, doubled bool) { return chance.IntN(12) == 0, chance.IntN(8) == 0 }
		f := newFlowWorld(w, steps)
		cancelIn := 0
		if chance.IntN(4) == 0 {
			cancelIn = 1 + chance.IntN(6)
		}
		calls := 0
		f.during = func(string) {
			if calls++; calls != cancelIn {
				return
			}
			if _, err := f.host("api").control.Cancel(context.Background(), tenant, f.id, "no longer needed"); err != nil {
				t.Error(err)
			}
			f.mu.Lock()
			f.stopped = true
			f.mu.Unlock()
		}
		for range chance.IntN(4) {
			f.crashing(1 + chance.IntN(40))
			f.elapsed += time.Duration(chance.IntN(60)) * time.Second
		}
		for range 6 {
			f.calm()
		}
		wrong := f.breaches
		switch head := f.head(); {
		case !f.stopped:
			wrong = f.wrong()
		case head.State != run.Cancelled:
			wrong = append(wrong, fmt.Sprintf("W5: the run is %s (%s), want cancelled", head.State, head.Reason))
		}
		if len(wrong) > 0 {
			t.Fatalf("seed %d: %s\n%s", seed, stepsJSON(steps), strings.Join(wrong, "\n"))
		}
	}
	if ran < int(seeds)/3 {
		t.Errorf("only %d of %d graphs were taken", ran, seeds)
	}
}
