package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/flow"
)

// StepStanding is what the workflow adds to the reasons for the wait of a step.
type StepStanding struct {
	Of     Standing // of the run that it is a step of
	Node   *flow.Node
	Holder *flow.Node   // of a step that was not released: itself or a scope around it, whichever waits for Before; nil where neither waits
	Before []*flow.Node // what has not ended; of a scope that is under way, in it
	Until  int64        // of a scope that is under way and has a timeout: it is stopped then, Unix ms
}

// StepStanding looks up why a step of a run waits, as Standing does for a run. g is the run, as it was read with the step.
func (s *Service) StepStanding(ctx context.Context, g Graph, step Step) (Standing, error) {
	if step.State.Ended() {
		return Standing{}, nil
	}
	of, err := s.Standing(ctx, g.Run)
	if err != nil {
		return Standing{}, err
	}
	st := Standing{Run: step.Run, Now: of.Now, Skewed: of.Skewed}
	if step.Run.State != 0 {
		if st, err = s.Standing(ctx, step.Run); err != nil {
			return Standing{}, err
		}
	}
	st.Step = &StepStanding{Of: of, Node: step.Node, Until: step.Until}
	if step.Run.State != 0 {
		return st, nil
	}
	holder, open := g.Workflow.Awaits(step.Node.Index, g.plan.Counted())
	if holder != flow.None {
		st.Step.Holder = &g.Workflow.Nodes[holder]
	}
	for _, i := range open {
		st.Step.Before = append(st.Step.Before, &g.Workflow.Nodes[i])
	}
	return st, nil
}

// whyUnreleased tells what a step waits for that was not put in its queue, or a scope whose steps have not ended.
func (s Standing) whyUnreleased() []Waiting {
	of, id := s.Step.Of, s.Step.Of.Run.ID.String()
	var why []Waiting
	switch {
	case !of.Run.Heads():
		for _, w := range of.Why() {
			w.Text = "Its run has not begun. " + w.Text
			why = append(why, w)
		}
	case s.Skewed != nil:
		why = append(why, s.whyClockOff())
	}
	switch {
	case s.Step.Holder != nil:
		steps := Waiting{Code: WaitSteps, Who: "belfry run steps " + id + " shows them", Text: s.Step.text()}
		for _, n := range s.Step.Before {
			steps.Steps = append(steps.Steps, n.Path)
		}
		why = append(why, steps)
	case of.Run.Heads():
		why = append(why, Waiting{Code: WaitNotReleased, Who: "whoever ended the step before it, or else the next check of the run",
			Text: "What it waited for has come, and it is put in its queue next."})
	}
	return why
}

// text says which steps a step waits for.
func (s *StepStanding) text() string {
	const named = 10
	var names []string
	for _, n := range s.Before[:min(named, len(s.Before))] {
		names = append(names, n.Path)
	}
	which := "step " + names[0]
	if rest := len(s.Before) - len(names); rest > 0 {
		which = fmt.Sprintf("steps %s and %d more", strings.Join(names, ", "), rest)
	} else if last := len(names) - 1; last > 0 {
		which = "steps " + strings.Join(names[:last], ", ") + " and " + names[last]
	}
	switch {
	case s.Holder == s.Node && s.Node.Kind == flow.KindScope && s.Before[0].Scope == s.Node.Index:
		text := "It ends with what is in it, and waits for the " + which + " to end."
		if s.Until != 0 {
			text += " Its timeout stops it at " + time.UnixMilli(s.Until).UTC().Format(time.RFC3339) + "."
		}
		return text
	case slices.Contains(s.Holder.Catches, s.Before[0].Index) && s.Holder == s.Node:
		return "It handles failures of the " + which + ", and waits for the end of that."
	case slices.Contains(s.Holder.Catches, s.Before[0].Index):
		return fmt.Sprintf("The scope %s around it handles failures of the %s, and waits for the end of that.", s.Holder.Path, which)
	case s.Holder == s.Node:
		return fmt.Sprintf("It waits for the %s to end, by its rule %s.", which, s.Node.Rule)
	default:
		return fmt.Sprintf("The scope %s around it waits for the %s to end, by its rule %s.", s.Holder.Path, which, s.Holder.Rule)
	}
}
