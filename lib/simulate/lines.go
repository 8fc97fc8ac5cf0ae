package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// doneBefore are the codes by which Belfry refuses what was asked for twice, and was done the first time. By the same code it refuses other
// requests, which stay refused.
var doneBefore = map[Action]control.Code{
	Put:     control.CodeStale,
	Delete:  control.CodeJobNotFound,
	Cancel:  control.CodeRunEnded,
	Retry:   control.CodeRunNotEnded,
	Redrive: control.CodeRunNotEnded,
	Release: control.CodeNotWaiting,
	SetGate: control.CodeGateNotFound,
}

// codeDown is the code of a line that nobody could hear, as the API gives it while it is not ready.
const codeDown control.Code = "not_ready"

// line does a line of the script. What Belfry refuses stands in the report.
func (p *player) line(ctx context.Context, l Line) error {
	switch l.Do {
	case Down:
		if p.up() {
			if err := p.leave(ctx); err != nil {
				return err
			}
			p.passed, p.fresh = p.wall(), p.clock.Now()
		}
		p.down = max(p.down, p.now+wholeMilliseconds(l.For).Milliseconds())
	case Workers:
		p.workers = l.Workers
	case Clock:
		if p.up() {
			p.passed, p.fresh = p.wall(), p.clock.Now()
		}
		p.clock.Step(l.By)
		p.owed = true
	case Look:
		seen, err := p.report(ctx)
		if err != nil {
			return err
		}
		p.looks[l.As] = &seen
	default:
		if !p.up() {
			return p.refuse(l, &control.Refusal{Code: codeDown, Message: "Belfry was down"})
		}
		before := len(p.refused)
		p.again = false
		return p.survive(ctx, func() error {
			p.refused = p.refused[:before]
			err := p.do(ctx, l)
			p.again = true // should the server have died of it
			return err
		})
	}
	return nil
}

// do asks the API for what a line says.
func (p *player) do(ctx context.Context, l Line) error {
	var err error
	switch l.Do {
	case Put:
		_, _, err = p.control.Put(ctx, tenant, l.Job, l.Definition, control.Match{ETag: l.IfMatch})
	case Delete:
		err = p.control.Delete(ctx, tenant, l.Job, control.Match{})
	case Pause:
		_, err = p.control.Pause(ctx, tenant, l.Job, l.Reason, control.Match{})
	case Resume:
		_, err = p.control.Resume(ctx, tenant, l.Job, control.Match{})
	case Trigger:
		return p.trigger(ctx, l)
	case Cancel:
		if l.Run.IsZero() {
			return p.many(l, func(b control.Bulk) (control.Outcome, error) {
				return p.control.CancelMany(ctx, tenant, control.RunFilter{Job: l.Job}, b, l.Reason)
			})
		}
		var id run.ID
		if id, err = p.runOf(l.Run); err == nil {
			_, err = p.control.Cancel(ctx, tenant, id, l.Reason)
		}
	case Retry:
		var id run.ID
		if id, err = p.runOf(l.Run); err == nil {
			_, err = p.control.Retry(ctx, tenant, id, l.Force, time.Time{})
		}
	case Release:
		var id run.ID
		if id, err = p.runOf(l.Run); err == nil {
			_, err = p.control.Release(ctx, tenant, id, "", "")
		}
	case SetGate:
		if l.Limits == nil {
			err = p.control.DeleteGate(ctx, tenant, l.Gate, control.Match{})
		} else {
			_, _, err = p.control.PutGate(ctx, tenant, l.Gate, *l.Limits, control.GateMatch{})
		}
	case Close:
		_, err = p.control.CloseGate(ctx, tenant, l.Gate, "", l.Reason, control.Match{})
	case Open:
		if _, own := gate.OwnOf(l.Gate); own {
			which := control.Opening{Key: l.Key}
			if !l.Run.IsZero() {
				var id run.ID
				if id, err = p.runOf(l.Run); err != nil {
					return p.refuse(l, err)
				}
				which.Run = id.String()
			}
			_, err = p.control.OpenLine(ctx, tenant, l.Gate, "", which, control.Match{})
		} else {
			_, err = p.control.OpenGate(ctx, tenant, l.Gate, "", "", control.Match{})
		}
	case Redrive:
		return p.many(l, func(b control.Bulk) (control.Outcome, error) {
			return p.control.Redrive(ctx, tenant, control.DeadFilter{Job: l.Job}, b)
		})
	default:
		return fmt.Errorf("nothing is known of %q", l.Do)
	}
	return p.refuse(l, err)
}

// trigger asks for the runs of a line: for all by one request, or for one.
func (p *player) trigger(ctx context.Context, l Line) error {
	asked := make([]control.Asked, len(l.Triggers))
	for i, t := range l.Triggers {
		asked[i] = t.Asked
		if p.options.Cut > 0 && t.Key == "" { // who repeats a request needs one
			asked[i].Key = fmt.Sprintf("simulate-%d-%d", l.Number, i)
		}
	}
	for i, answer := range p.control.TriggerMany(ctx, tenant, asked) {
		if err := p.refuse(l, answer.Err); err != nil {
			return err
		}
		if as := l.Triggers[i].As; as != "" && answer.Err == nil {
			p.names[as] = answer.Run.ID
			if p.as[answer.Run.ID] == "" { // one that was asked for again by its key has its first name
				p.as[answer.Run.ID] = as
			}
		}
	}
	return nil
}

// many acts on all runs that a filter chooses, page by page.
func (p *player) many(l Line, act func(control.Bulk) (control.Outcome, error)) error {
	for cursor, first := "", true; first || cursor != ""; first = false {
		out, err := act(control.Bulk{Cursor: cursor})
		for _, v := range out.Verdicts {
			if err := p.refuse(l, v.Err); err != nil {
				return err
			}
		}
		if err != nil {
			return p.refuse(l, err)
		}
		cursor = out.Next
	}
	return nil
}

// runOf is the run that a line names.
func (p *player) runOf(r RunRef) (run.ID, error) {
	if r.As == "" {
		return run.FireID(r.Job, r.Nominal.UnixMilli()), nil
	}
	id, ok := p.names[r.As]
	if !ok {
		return id, &control.Refusal{Code: control.CodeRunNotFound, Message: fmt.Sprintf("there is no run %s: it was not asked for, or was refused", r.As)}
	}
	return id, nil
}

// refuse notes that a line was refused, nil for one that was not. An error of another kind is the simulation's own.
func (p *player) refuse(l Line, err error) error {
	if err == nil {
		return nil
	}
	refused := Refusal{At: p.clock.Passed(), Line: l.Number, Detail: err.Error()}
	var refusal *control.Refusal
	var wrong *invalid.Error
	switch {
	case errors.As(err, &refusal) && p.again && doneBefore[l.Do] == refusal.Code:
		return nil
	case errors.As(err, &refusal):
		refused.Code = string(refusal.Code)
	case errors.As(err, &wrong):
		refused.Code = "invalid"
	default:
		return err
	}
	p.refused = append(p.refused, refused)
	return nil
}
