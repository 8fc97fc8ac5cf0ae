package api

import (
	"context"
	"errors"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
)

const codePayloadExpired control.Code = "payload_expired"

func (a *api) getRunPayload(ctx context.Context, p *keptPath, in input[noBody]) (answer *keptBytes, err error) {
	r, err := a.findRun(ctx, in.tenant, p.runPath)
	if err != nil {
		return nil, err
	}
	var of run.Ref
	var from control.From
	if p.Step == "" {
		of, from, err = a.Control.Payload(ctx, r)
	} else {
		of, from, err = a.Control.StepPayload(ctx, r, p.Step)
	}
	if err == nil {
		of.Type = mediaJSON
		r.ID = r.ID.At(p.Step)
		answer, err = a.kept(ctx, p, r, "payload.json", of)
	}
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, newProblem(codePayloadExpired, "The payload of this run was cleaned up.")
	case err != nil:
		return nil, err
	case len(answer.Body) > 0:
		answer.From = string(from)
	}
	return answer, nil
}
