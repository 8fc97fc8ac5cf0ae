package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
)

// Payload gives what a run hands to its target, as it was given, nil for nothing. own tells that the run was asked for with it, else it is that
// of its definition; of a run that is not bound to one yet, of its job's newest. What was cleaned up is blob.ErrNotFound.
func (s *Service) Payload(ctx context.Context, r run.Run) (data []byte, own bool, err error) {
	switch {
	case r.Payload.Blob != "":
		data, err = s.Blobs.Get(ctx, r.Tenant, r.Payload.Blob)
		return data, true, err
	case len(r.Payload.Inline) > 0:
		return r.Payload.Inline, true, nil
	case r.State == run.Scheduled || r.Generation == 0:
		j, err := s.Dispatch.Book.Job(ctx, r.Tenant, r.ID.Job)
		return j.Def.Payload, false, err
	}
	edition, err := s.Dispatch.Book.Edition(ctx, r.Tenant, r.ID.Job, r.Generation)
	if errors.Is(err, job.ErrNotFound) {
		return nil, false, fmt.Errorf("%w: %w", blob.ErrNotFound, err)
	}
	if err != nil {
		return nil, false, err
	}
	return edition.Def.Payload, false, nil
}
