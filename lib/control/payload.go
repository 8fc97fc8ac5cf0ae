package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// From is whose payload a run or a step hands to its target.
type From string

// Whose it is.
const (
	FromRun  From = "run"  // the run was asked for with it
	FromJob  From = "job"  // that of the job's definition
	FromStep From = "step" // the input of the step's definition
)

// StepPayload says what a step of a workflow's run hands to its target: its own input, else what the run brings. The errors are those of Payload, and a
// refusal where there is no such task.
func (s *Service) StepPayload(ctx context.Context, r run.Run, path string) (run.Ref, From, error) {
	edition, err := s.editionOf(ctx, r)
	switch {
	case errors.Is(err, job.ErrNotFound):
		return run.Ref{}, "", fmt.Errorf("%w: %w", blob.ErrNotFound, err)
	case err != nil:
		return run.Ref{}, "", err
	case edition.Def.Target.Workflow == nil:
		return run.Ref{}, "", refuse(CodeStepNotFound, "run %s is not that of a workflow, so it has no steps", r.ID)
	}
	w, err := flow.Of(edition)
	if err != nil {
		return run.Ref{}, "", err
	}
	if n, ok := w.Node(path); !ok {
		return run.Ref{}, "", refuse(CodeStepNotFound, "run %s has no step %q", r.ID, path)
	} else if n.Kind != flow.KindTask {
		return run.Ref{}, "", refuse(CodeStepNotFound, "step %s of run %s is a %s, which has no payload; ask for that of a task", path, r.ID, n.Kind)
	}
	step, err := flow.StepOf(edition, path)
	switch {
	case err != nil:
		return run.Ref{}, "", err
	case step.Computed:
		return s.computed(ctx, r, path)
	case step.Own:
		return run.Ref{Inline: step.Def.Payload}, FromStep, nil
	}
	return s.Payload(ctx, r)
}

// Payload says what a run hands to its target, a zero Ref for nothing, and whose it is; of a run that is not bound to a definition yet, that of its job's
// newest. What was cleaned up is blob.ErrNotFound.
func (s *Service) Payload(ctx context.Context, r run.Run) (run.Ref, From, error) {
	switch {
	case !r.Payload.IsZero():
		return r.Payload, FromRun, nil
	case r.State == run.Scheduled || r.Generation == 0:
		j, err := s.Dispatch.Book.Job(ctx, r.Tenant, r.ID.Job)
		return run.Ref{Inline: j.Def.Payload}, FromJob, err
	}
	edition, err := s.Dispatch.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if errors.Is(err, job.ErrNotFound) {
		return run.Ref{}, "", fmt.Errorf("%w: %w", blob.ErrNotFound, err)
	}
	if err != nil {
		return run.Ref{}, "", err
	}
	return run.Ref{Inline: edition.Def.Payload}, FromJob, nil
}

// computed gives what a step was handed, or is, of which expressions say what that is.
func (s *Service) computed(ctx context.Context, r run.Run, path string) (run.Ref, From, error) {
	rows, err := s.Dispatch.ReadRuns(ctx, []run.Run{{ID: r.ID.At(path), Tenant: r.Tenant}})
	if err != nil {
		return run.Ref{}, "", err
	}
	if rows[0].Version == 0 {
		return run.Ref{}, "", refuse(CodeNotReleased, "step %s of run %s was not released, so nobody can tell what it is handed: expressions say that of what has ended before", path, r.ID)
	}
	data, err := s.Dispatch.StepInput(ctx, r, rows[0], false, nil)
	var failed *target.Failure
	if errors.As(err, &failed) {
		return run.Ref{}, "", refuse(CodeExpression, "step %s of run %s is handed nothing: %s", path, r.ID, failed.Message)
	}
	return run.Ref{Inline: data}, FromStep, err
}
