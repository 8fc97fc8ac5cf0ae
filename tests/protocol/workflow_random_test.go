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
	randomGraphs(t, 35, func(_ *rand.Rand, steps []reference.Step) []reference.Step { return steps })
}

// The same holds where steps ask whether they run, switches choose, and inputs name the steps before them, directly and through passes: whatever of that is
// still open, a step is handed the same at each attempt.
func TestW1_W2_W3_W4_W5_W9_RandomGraphsThatAsk(t *testing.T) {
	randomGraphs(t, 38, func(chance *rand.Rand, steps []reference.Step) []reference.Step {
		asking(chance, steps)
		readingOthers(chance, steps, nil)
		if chance.IntN(3) > 0 {
			return steps
		}
		early := []string{"one_success", "one_done", "always"}
		slow, quick, pass, reader := task("slow", good, ""), task("quick", good, ""), task("early", good, early[chance.IntN(3)], "slow", "quick"), task("reader", good, "", "early")
		slow.Fails, slow.Again = 1+chance.IntN(2), 20*time.Second
		pass.Pass, pass.Reads = true, []string{".steps.slow", ".steps.quick.result"}
		reader.Reads, reader.Fails, reader.Again = []string{".steps.early.result"}, 1+chance.IntN(2), 5*time.Minute
		return append(steps, slow, quick, pass, reader)
	})
}

// asking has some tasks of a graph be skipped by what they ask, makes switches and passes of others, and has attempts fail.
func asking(chance *rand.Rand, steps []reference.Step) {
	led := map[string]bool{}
	for i := range steps {
		s := &steps[i]
		if len(s.Inside) > 0 {
			asking(chance, s.Inside)
			continue
		}
		switch chance.IntN(6) {
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
		case 2, 3:
			s.Pass, s.End, s.Allowed = true, good, false
			if chance.IntN(4) == 0 {
				s.End = reference.Skip
			}
		}
		if chance.IntN(4) == 0 || s.Pass && chance.IntN(4) > 0 {
			s.Rule = []string{"one_success", "one_done", "always"}[chance.IntN(3)] // while others are open
		}
		if len(s.Choices) == 0 && !s.Pass && chance.IntN(3) > 0 {
			s.Fails, s.Again = 1+chance.IntN(2), 20*time.Second
		}
	}
}

// readingOthers has inputs read steps that are waited for, directly or not; outer are those that the scope around does.
func readingOthers(chance *rand.Rand, steps []reference.Step, outer []reference.Step) {
	before := make([][]reference.Step, len(steps)) // a step comes behind its parents
	for i := range steps {
		s := &steps[i]
		all := slices.Clone(outer)
		for k := range i {
			if slices.Contains(s.Parents, steps[k].Name) {
				all = append(append(all, steps[k]), before[k]...)
			}
		}
		before[i] = all
		if len(s.Inside) > 0 {
			readingOthers(chance, s.Inside, all)
			continue
		}
		if len(all) == 0 || len(s.Choices) > 0 || chance.IntN(4) == 0 {
			continue
		}
		for range 1 + chance.IntN(3) {
			of := all[chance.IntN(len(all))]
			if k := slices.IndexFunc(all, func(of reference.Step) bool { return of.Pass }); k >= 0 && chance.IntN(3) > 0 {
				of = all[k]
			}
			name := fmt.Sprintf(`.steps[\"%s\"]`, of.Name)
			switch {
			case len(of.Inside) > 0 || chance.IntN(3) == 0:
				name += ".state"
			case of.Pass || chance.IntN(2) == 0:
				name += ".result"
			}
			s.Reads = append(s.Reads, name)
		}
		if s.Fails > 0 && chance.IntN(2) == 0 {
			s.Again = 5 * time.Minute // others end meanwhile
		}
	}
}

// randomGraphs runs graphs that are drawn, and changed, under random faults. It gives how many of their scopes were stopped.
func randomGraphs(t *testing.T, salt uint64, change func(*rand.Rand, []reference.Step) []reference.Step) (stopped int) {
	t.Helper()
	seeds := uint64(400)
	if testing.Short() {
		seeds = 80
	}
	ran := 0
	for seed := range seeds {
		chance := rand.New(rand.NewPCG(seed, salt))
		steps := drawSteps(chance, "s", 0)
		steps = change(chance, steps)
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
		f.during = func(path string) {
			f.startedStopped(path)
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
		stopped += len(f.head().Stops())
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
	return stopped
}
