package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
)

const codePayloadExpired control.Code = "payload_expired"

type payloadBytes struct {
	Status      int
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	From        string `header:"Belfry-Payload" doc:"run where the run was asked for with it, job where it is that of the job's definition"`
	Body        []byte
}

// getRunPayload gives bytes that somebody else wrote: a browser that is sent to them keeps them as a file.
func (a *api) getRunPayload(ctx context.Context, p *runPath, in input[noBody]) (*payloadBytes, error) {
	r, err := a.findRun(ctx, in.tenant, *p)
	if err != nil {
		return nil, err
	}
	data, own, err := a.Control.Payload(ctx, r)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, newProblem(codePayloadExpired, "The payload of this run was cleaned up.")
	case err != nil:
		return nil, err
	case len(data) == 0:
		return &payloadBytes{Status: http.StatusNoContent}, nil
	}
	shown := &payloadBytes{Status: http.StatusOK, ContentType: mediaJSON, From: "job", Body: data,
		Disposition: `attachment; filename="` + r.ID.String() + `.payload.json"`} // an ID has no character that a quoted name may not have
	if own {
		shown.From = "run"
	}
	return shown, nil
}
