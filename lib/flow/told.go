package flow

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// This file has the expressions of a simulation: they are evaluated over what the outcomes tell.

// ask is what a node is that asks: what the outcomes tell of it, else what its expressions say, where all that they read is known. No state says that a
// task is to run.
func (p *play) ask(n *Node, decided Decisions) Fact {
	o, told := p.outcomes[n.Path]
	switch {
	case n.Kind == KindSwitch && o.State == Failed:
		return Fact{State: Failed, To: None, Code: target.KindExpression}
	case n.Kind == KindSwitch && (told || !p.knows(n.asked(), decided)):
		to, _ := p.w.chosen(n, o) // checked when it was read
		return Fact{State: Succeeded, To: to}
	case n.Kind == KindSwitch:
		to, err := p.evaluation(decided).Choose(p.ctx, n)
		if err != nil {
			p.steps[n.Index].Error = err.Error()
			return Fact{State: Failed, To: None, Code: target.KindExpression}
		}
		return Fact{State: Succeeded, To: to}
	}
	if n.Condition != nil && p.knows(n.asked(), decided) {
		holds, err := p.evaluation(decided).Holds(p.ctx, n.Condition)
		switch {
		case err != nil:
			p.steps[n.Index].Error = err.Error()
			return Fact{State: Failed, To: None, Code: target.KindExpression}
		case !holds:
			return Fact{State: Skipped, To: None}
		}
	}
	switch n.Kind {
	case KindPass:
		return Fact{State: Succeeded, To: None}
	case KindScope:
		return Fact{State: Running, To: None}
	}
	return Fact{} // it begins
}

// handed notes what a task is handed, and tells whether that failed.
func (p *play) handed(n *Node, decided Decisions) (failed bool) {
	if n.Data == nil || !p.knows(n.Data.Reading(), decided) {
		return false
	}
	input, _, err := p.evaluation(decided).Give(p.ctx, n.Data)
	if err != nil {
		p.steps[n.Index].Error = err.Error()
		return true
	}
	if len(input) <= job.MaxPayload { // an answer has many of them
		p.steps[n.Index].Input = input
	}
	return false
}

// gives notes what scopes give that have succeeded.
func (p *play) gives(decided Decisions) {
	for i := range p.w.Nodes {
		n := &p.w.Nodes[i]
		if n.Kind != KindScope || !n.Gives() || decided.States[i] != Succeeded || !p.knows(n.Data.Reading(), decided) {
			continue
		}
		given, _, err := p.evaluation(decided).Give(p.ctx, n.Data)
		switch {
		case err != nil:
			p.steps[i].Error = err.Error()
		case len(given) <= job.MaxPayload && string(given) != "null":
			p.steps[i].Result = given
		}
	}
}

// output notes what comes of the whole, and says why it fails of that.
func (p *play) output(played *Played, decided Decisions) (reason string) {
	out := p.w.Output
	if played.State != Succeeded || out == nil || !p.knows(out.Reading(), decided) {
		return ""
	}
	given, _, err := p.evaluation(decided).Give(p.ctx, out)
	if err != nil {
		return err.Error()
	}
	played.Output = given
	return ""
}

// knows tells whether the outcomes tell all that is read: the payload of the run, and results of tasks that succeeded.
func (p *play) knows(r Reading, decided Decisions) bool {
	if r.Input && p.input == nil {
		return false
	}
	return !slices.ContainsFunc(r.Results, func(i int) bool {
		n := &p.w.Nodes[i]
		switch {
		case decided.States[i] != Succeeded:
			return false
		case n.Kind == KindTask:
			return p.outcomes[n.Path].Result == nil
		case n.Data != nil:
			return !p.knows(n.Data.Reading(), decided)
		}
		return false
	})
}

// evaluation is one of those of the simulation, which share a budget: whoever asks for one can have a few hundred made.
func (p *play) evaluation(decided Decisions) *Evaluation {
	e := p.w.Evaluate(told{p, decided}, nil)
	e.common = p.budget
	return e
}

// told is what expressions of a simulation read.
type told struct {
	*play
	decided Decisions
}

func (t told) Payload(context.Context) ([]byte, error) { return t.input, nil }

func (t told) Run() map[string]any {
	return RunFacts("simulated~0", "simulated", "2000-01-01T00:00:00.000Z", "request")
}

func (t told) Seen(index int) Seen {
	s := t.decided.States[index]
	if !s.Ended() {
		return Seen{State: Open}
	}
	seen := Seen{State: s, Attempt: t.steps[index].Attempts}
	if s.Failure() {
		seen.Error = t.steps[index].Error
		if t.w.Nodes[index].Kind == KindScope && seen.Error == "" {
			if cause := t.w.Cause(index, &t.decided); cause != None {
				seen.Error = t.steps[cause].Error
			}
		}
	}
	return seen
}

func (t told) Caught(index int) []Handled { return t.w.Handled(index, &t.decided, t.Seen) }

func (t told) Result(_ context.Context, index int) (data []byte, mediaType string, err error) {
	result := t.outcomes[t.w.Nodes[index].Path].Result
	if result != nil && !json.Valid(result) {
		return nil, "", &expression.Failure{Message: "a made-up result is no JSON"}
	}
	return result, "application/json", nil
}
