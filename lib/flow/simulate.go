package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/expression"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// Played is how a workflow comes out in virtual time. All times are told from its start.
type Played struct {
	State  State             `json:"state" doc:"how the workflow ends"`
	Reason string            `json:"reason,omitempty" doc:"why it failed: the first step that did, in the order of the definition, or its timeout"`
	Takes  schedule.Duration `json:"takes" doc:"from its start to its end"`
	// Steps has each node once, in the order of their ends; those that end at once stand in the order in which one follows from another.
	Steps []PlayedStep `json:"steps"`
	// Output is the result of the run.
	Output json.RawMessage `json:"output,omitempty" doc:"the result of the run, where the workflow has an output and all that its expressions read was given"`
}

// PlayedStep is how one node comes out.
type PlayedStep struct {
	Path     string `json:"path"`
	State    State  `json:"state"`
	Attempts int    `json:"attempts,omitempty" doc:"attempts made; none of what is no task, or never ran"`
	// StartedAfter is when its rule let it run; nil if it never did.
	StartedAfter *schedule.Duration `json:"started_after,omitempty" doc:"from the start of the workflow until the step was released; missing if it never was"`
	EndedAfter   schedule.Duration  `json:"ended_after" doc:"from the start of the workflow until the step had ended, or could no longer run"`
	Input        json.RawMessage    `json:"input,omitempty" doc:"what its target is handed, where the step has an input with expressions and all that they read was given"`
	Result       json.RawMessage    `json:"result,omitempty" doc:"what a scope gives, where it succeeded and all that its result is made of was given; missing where that is null"`
	Error        string             `json:"error,omitempty" doc:"of an expression that fails, or of a scope that was not over within its timeout"`
	CaughtBy     string             `json:"caught_by,omitempty" doc:"path of the step that handles its failure"`
	Code         string             `json:"code,omitempty" doc:"of a failure that is handled: what of, as catch names it"`
}

// Simulate plays the workflow with made-up outcomes, which ReadOutcomes has checked against it. Tasks start as soon as they are released: no
// queue and no worker holds them up. Waits between attempts are the longest that the step's retry policy allows. What the outcomes do not
// mention succeeds at its first attempt in one second. Expressions are evaluated where all that they read is known: input is the payload of the run, nil where it is
// not given, and results of tasks are among the outcomes. A condition of which that is not known holds, but of a switch: it takes the way that has no
// condition, or none. The error is that of ctx, once that has ended.
func (w *Workflow) Simulate(ctx context.Context, outcomes Outcomes, input json.RawMessage) (Played, error) {
	played := w.play(ctx, outcomes, input)
	if err := ctx.Err(); err != nil { // of which expressions have failed
		return Played{}, fmt.Errorf("simulate the workflow: %w", err)
	}
	return played, nil
}

func (w *Workflow) play(ctx context.Context, outcomes Outcomes, input json.RawMessage) Played {
	p := play{ctx: ctx, w: w, outcomes: outcomes, input: input, budget: expression.NewBudget(ctx), facts: make([]Fact, len(w.Nodes)), until: make([]time.Duration, len(w.Nodes)), steps: make([]PlayedStep, len(w.Nodes)), ended: make([]bool, len(w.Nodes))}
	for i := range w.Nodes {
		p.steps[i].Path = w.Nodes[i].Path
	}
	for {
		decided := p.look()
		if decided.End != "" {
			p.gives(decided)
			played := p.over(decided.End)
			if reason := p.output(&played, decided); reason != "" {
				played.State, played.Reason = Failed, reason
				return played
			}
			if cause := w.Cause(None, &decided); cause != None {
				played.Reason = p.why(decided, cause)
			}
			return played
		}
		if decided.Stop != None {
			return p.cutOff(decided, p.now, p.why(decided, decided.Stop))
		}
		if len(decided.Halt) > 0 {
			for scope, by := range decided.Halt {
				p.stop(scope, by)
			}
			continue
		}
		// A checked graph has no cycle: what is open waits for a task that runs.
		next := p.running[0]
		scope, over := p.overrun(decided)
		late := scope != None && over < next.at
		if limit := w.Timeout.Std(); limit > 0 && next.at > limit && (!late || over >= limit) {
			return p.cutOff(decided, limit, "not over within its timeout of "+schedule.Duration(limit).String())
		}
		if late {
			p.now = over
			p.stop(scope, None)
			continue
		}
		p.running, p.now = p.running[1:], next.at
		p.facts[next.node] = Fact{State: next.course.state, To: None, Code: next.course.code}
		p.steps[next.node].Attempts = len(next.course.starts)
	}
}

// play is a workflow under way in virtual time.
type play struct {
	ctx      context.Context //nolint:containedctx // of the whole simulation
	w        *Workflow
	outcomes Outcomes
	input    json.RawMessage
	budget   *expression.Budget
	facts    []Fact
	until    []time.Duration // of a scope that was released: when its time is over
	now      time.Duration
	running  []ending // by time, then by node
	steps    []PlayedStep
	order    []int // nodes that have ended
	ended    []bool
	cut      bool // before its end: nothing is released any more
}

// ending is how a running task is going to end.
type ending struct {
	at       time.Duration
	node     int
	released time.Duration
	course   course
}

// look decides until nothing more follows at this instant: what a switch chooses may decide more.
func (p *play) look() Decisions {
	for {
		decided := p.w.Plan(p.facts)
		released, again := decided.Release, false
		for _, i := range decided.Ask {
			if fact := p.ask(&p.w.Nodes[i], decided); fact.State != "" {
				p.facts[i], again = fact, true
				p.until[i] = later(p.now, p.w.Nodes[i].Timeout.Std())
			} else {
				released = append(released, i)
			}
		}
		for _, i := range released {
			c := p.outcomes[p.w.Nodes[i].Path].course(&p.w.Nodes[i])
			if failed := p.handed(&p.w.Nodes[i], decided); failed {
				c = course{state: Failed, code: target.KindExpression, starts: []time.Duration{0}}
			}
			if c.state == Skipped {
				p.facts[i], again = Fact{State: Skipped, To: None}, true
				continue
			}
			p.facts[i] = Fact{State: Running, To: None}
			p.running = append(p.running, ending{later(p.now, c.takes), i, p.now, c})
		}
		for _, i := range decided.Cancel {
			p.facts[i], again = cancelled, true
		}
		if !again {
			slices.SortFunc(p.running, func(a, b ending) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node)) })
			p.note(decided)
			return decided
		}
	}
}

// note writes down when nodes were released, and when they ended.
func (p *play) note(decided Decisions) {
	states := p.w.Shown(p.facts, decided)
	var walk func(siblings []int)
	walk = func(siblings []int) {
		for _, i := range siblings {
			s := states[i]
			if !p.cut && s != Pending && s != Skipped && s != UpstreamFailed && s != Cancelled && !p.w.within(i, decided.Halt) && p.steps[i].StartedAfter == nil {
				at := schedule.Duration(p.now)
				p.steps[i].StartedAfter = &at
			}
			if n := &p.w.Nodes[i]; n.Kind == KindScope {
				walk(n.Body.Steps) // a scope ends by its steps, so they come first
			}
			if s.Ended() && !p.ended[i] {
				p.ended[i] = true
				p.steps[i].State, p.steps[i].EndedAfter = s, schedule.Duration(p.now)
				p.order = append(p.order, i)
				switch by, stopped := decided.Stopped[i]; {
				case stopped && by == None:
					p.steps[i].Error = p.w.Nodes[i].Overrun()
				case stopped:
					p.steps[i].Error = p.w.Nodes[by].Path + " has failed, which stopped it"
				}
				if c, caught := decided.Caught[i]; caught {
					p.steps[i].CaughtBy, p.steps[i].Code = p.w.Nodes[c.To].Path, c.Code
				}
			}
		}
	}
	walk(p.w.Top)
}

// why says which node the workflow has failed of.
func (p *play) why(decided Decisions, cause int) string {
	text := p.w.Nodes[cause].Path + " is " + string(decided.States[cause])
	if decided.States[cause] == Failed {
		text = p.w.Nodes[cause].Path + " failed"
	}
	if wrong := p.steps[cause].Error; wrong != "" {
		text += ": " + wrong
	}
	return text
}

// cutOff ends the workflow before all has ended: at its time limit, or since a failure stops it. What has not ended is cancelled, and the workflow has failed.
func (p *play) cutOff(decided Decisions, limit time.Duration, reason string) Played {
	p.now, p.cut = limit, true
	for _, r := range p.running {
		p.leave(r)
	}
	for i, s := range decided.States {
		if !s.Ended() {
			decided.States[i] = Cancelled
		}
	}
	p.note(decided)
	p.gives(decided)
	played := p.over(Failed)
	played.Reason = reason
	return played
}

// leave counts the attempts of a task that is cancelled now.
func (p *play) leave(r ending) {
	for _, start := range r.course.starts {
		if later(r.released, start) < p.now {
			p.steps[r.node].Attempts++
		}
	}
}

// overrun finds the scope whose time is over first, and when that is; None where none has any.
func (p *play) overrun(decided Decisions) (scope int, over time.Duration) {
	scope = None
	for i := range p.w.Nodes {
		if p.w.Nodes[i].Kind == KindScope && p.w.Nodes[i].Timeout != 0 && p.facts[i].State == Running && !p.facts[i].Stopped && !decided.States[i].Ended() && p.w.StoppedBy(p.facts, i) == None && (scope == None || p.until[i] < over) {
			scope, over = i, p.until[i]
		}
	}
	return scope, over
}

// cancelled is what a step is that a stop has ended.
var cancelled = Fact{State: Cancelled, To: None, Code: string(Cancelled)}

// stop stops a scope: what runs in it ends at once.
func (p *play) stop(scope, by int) {
	p.facts[scope].Stopped, p.facts[scope].By = true, by
	p.running = slices.DeleteFunc(p.running, func(r ending) bool {
		in := p.w.Within(r.node, scope)
		if in {
			p.leave(r)
			p.facts[r.node] = cancelled
		}
		return in
	})
}

func (p *play) over(state State) Played {
	played := Played{State: state, Takes: schedule.Duration(p.now), Steps: make([]PlayedStep, len(p.order))}
	for k, i := range p.order {
		played.Steps[k] = p.steps[i]
	}
	return played
}

// later adds two lengths of time, and stops at the longest that there is.
func later(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
