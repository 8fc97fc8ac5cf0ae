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
	Ranges      string `header:"Accept-Ranges"`
	Range       string `header:"Content-Range" doc:"of a part: which bytes, and of how many"`
	From        string `header:"Belfry-Payload" doc:"run where the run was asked for with it, job where it is that of the job's definition, step where it is the step's own input"`
	Body        []byte
}

type payloadPath struct {
	runPath
	byteRange
	Step string `query:"step" minLength:"1" maxLength:"649" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"of the step of this path, of a workflow's run"`
}

// getRunPayload gives bytes that somebody else wrote: a browser that is sent to them keeps them as a file.
func (a *api) getRunPayload(ctx context.Context, p *payloadPath, in input[noBody]) (*payloadBytes, error) {
	r, err := a.findRun(ctx, in.tenant, p.runPath)
	if err != nil {
		return nil, err
	}
	var data []byte
	var from control.From
	if p.Step == "" {
		data, from, err = a.Control.Payload(ctx, r)
	} else {
		data, from, err = a.Control.StepPayload(ctx, r, p.Step)
	}
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, newProblem(codePayloadExpired, "The payload of this run was cleaned up.")
	case err != nil:
		return nil, err
	case len(data) == 0:
		return &payloadBytes{Status: http.StatusNoContent}, nil
	}
	given, err := p.of(data)
	return &payloadBytes{Status: given.status, ContentType: mediaJSON, Ranges: "bytes", Range: given.which, From: string(from), Body: given.data,
		Disposition: attachment(r.ID.At(p.Step), "payload.json")}, err
}
