package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// This file has what a report says of the steps of workflows' runs. Their rows are kept, and where the others stand follows from them, as in the API.

// edition names a definition of a job.
type edition struct {
	job        string
	generation int64
}

// heed does what writes before have left to do: attempts that are to stop hear of it at once, and of workflows' runs that have begun the definition is kept,
// which the store does not keep for ever.
func (p *player) heed(ctx context.Context) error {
	for _, id := range p.ledger.stopped {
		p.busy.hasten(id)
	}
	for _, a := range p.ledger.begun {
		of := edition{a.id.Job, a.generation}
		if p.workflows[of] == nil {
			edition, err := p.dispatch.Book.Edition(ctx, tenant, of.job, of.generation)
			if err == nil {
				p.workflows[of], err = flow.Of(edition)
			}
			if err != nil {
				return fmt.Errorf("read the workflow of run %s: %w", a.id, err)
			}
		}
		a.workflow = p.workflows[of]
		p.ledger.nodes += len(a.workflow.Nodes)
	}
	for _, key := range p.ledger.kept {
		_, size, err := p.blobs.GetWithin(ctx, tenant, key, 0)
		if err != nil {
			return fmt.Errorf("look at a result: %w", err)
		}
		p.ledger.data += size
	}
	p.ledger.stopped, p.ledger.begun, p.ledger.kept = p.ledger.stopped[:0], p.ledger.begun[:0], p.ledger.kept[:0]
	return nil
}

// stepsOf are the steps of a run, none where it is not that of a workflow or has not begun.
func (p *player) stepsOf(ctx context.Context, a *account) ([]Step, error) {
	if a.workflow == nil {
		return nil, nil
	}
	rows := make(map[string]run.Run, len(a.steps))
	for path, s := range a.steps {
		rows[path] = s.row
	}
	stand, _ := control.StandOf(a.head, a.workflow, rows)
	steps := make([]Step, len(stand))
	for i := range slices.Backward(stand) { // what is in a scope stands behind it
		var err error
		if steps[i], err = p.step(ctx, a, stand[i], steps); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(steps, func(a, b Step) int {
		switch {
		case a.StartedAt != nil && b.StartedAt != nil:
			return cmp.Or(a.StartedAt.Compare(*b.StartedAt), cmp.Compare(a.Path, b.Path))
		case a.StartedAt != nil:
			return -1
		case b.StartedAt != nil:
			return 1
		}
		return cmp.Compare(a.Path, b.Path)
	})
	return steps, nil
}

// step is one of them. Of those in a scope it has been made already, in the order of the workflow.
func (p *player) step(ctx context.Context, a *account, at control.Step, made []Step) (Step, error) {
	row := at.Run
	s := Step{Path: at.Node.Path, Kind: at.Node.Kind.String(), State: string(at.State), Reason: row.Reason,
		ReleasedAt: instant(row.Created), EndedAt: instant(row.Ended), Attempts: []Attempt{},
		Events: slices.Clone(p.ledger.events[row.ID])}
	var err error
	if s.Result, err = p.result(ctx, row.Result); err != nil {
		return Step{}, err
	}
	if at.Caught != nil {
		s.CaughtBy = a.workflow.Nodes[at.Caught.To].Path
	}
	known := a.steps[at.Node.Path]
	switch {
	case row.State == 0 && at.Node.Body != nil:
		enclose(&s, at.Node, made, at.State.Ended())
	case known == nil:
	case at.Node.Task == nil:
		s.StartedAt = s.ReleasedAt
	default:
		s.Input, s.Attempts = known.input, reportedTries(known.attempts)
		if len(s.Attempts) > 0 {
			s.StartedAt = &s.Attempts[0].StartedAt
		}
	}
	switch {
	case !at.State.Failure() || at.State == flow.Cancelled:
	case at.Stopped != "":
		s.Error = &StepError{Code: at.Code, Message: strings.TrimPrefix(at.Stopped, at.Code+": ")}
	case at.Node.Fail != nil:
		s.Error = &StepError{Code: at.Node.Fail.Code, Message: at.Node.Fail.Message}
	case len(s.Attempts) > 0:
		last := s.Attempts[len(s.Attempts)-1]
		s.Error = &StepError{Code: last.Code, Message: strings.TrimPrefix(cmp.Or(last.Error, row.Reason), last.Code+": ")}
	case row.Reason != "": // an expression fails
		kind := target.KindOf(row.Reason)
		s.Error, s.Reason = &StepError{Code: kind, Message: strings.TrimPrefix(row.Reason, kind+": ")}, ""
	}
	return s, nil
}

// enclose gives a scope, of which nothing is written down, the times of what is in it.
func enclose(s *Step, scope *flow.Node, made []Step, ended bool) {
	for _, i := range scope.Body.Steps {
		s.ReleasedAt = first(s.ReleasedAt, made[i].ReleasedAt)
		s.StartedAt = first(s.StartedAt, made[i].StartedAt)
		if in := made[i].EndedAt; ended && in != nil && (s.EndedAt == nil || in.After(*s.EndedAt)) {
			s.EndedAt = in
		}
	}
}

// first is the earlier of two instants, either of which may be missing.
func first(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// reportedTries are attempts as a report has them.
func reportedTries(tries []try) []Attempt {
	attempts := make([]Attempt, len(tries))
	for i, t := range tries {
		attempts[i] = Attempt{Attempt: t.Number, StartedAt: time.UnixMilli(t.Started).UTC(), EndedAt: instant(t.Ended), Outcome: t.Outcome.String(),
			Error: t.Error, Code: t.code}
	}
	return attempts
}

// result is a result as a report has it: JSON, or else text.
func (p *player) result(ctx context.Context, ref run.Ref) (json.RawMessage, error) {
	data, err := p.text(ctx, ref)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	shown, _ := run.ShownResult(data, ref.Type, ref.Cut)
	return shown, nil
}

// text is data of a run, wherever it stands.
func (p *player) text(ctx context.Context, ref run.Ref) ([]byte, error) {
	if ref.Blob == "" {
		return ref.Inline, nil
	}
	return p.blobs.Get(ctx, tenant, ref.Blob)
}
