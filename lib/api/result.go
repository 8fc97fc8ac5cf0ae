package api

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
)

const codeResultExpired control.Code = "result_expired"

// mostShown is how large a result is that is shown with its run, in bytes. A larger one is asked for by itself: a function on AWS answers with 6 MB at most, and
// what else there is to say of the run must come through.
const mostShown = 256 << 10

// resultForm is what is shown of a result beside its run or step.
type resultForm struct {
	shown json.RawMessage
	as    string // its media type, where that is to be told
	size  int64  // of one that is left out, in bytes
	gone  string // why there is none
}

func (a *api) resultForm(ctx context.Context, r run.Run) (form resultForm, err error) {
	if r.Result.IsZero() {
		return form, nil
	}
	data, size, err := a.Control.ResultWithin(ctx, r, mostShown)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		form.gone = goneReason(r.Result.Blob, a.Now())
	case err != nil:
		return form, err
	case size > mostShown:
		form.size, form.as = size, r.Result.Type
	case size > 0:
		form.shown, form.as = run.ShownResult(data, r.Result.Type, r.Result.Cut)
	}
	return form, nil
}

func (a *api) getRunResult(ctx context.Context, p *keptPath, in input[noBody]) (*keptBytes, error) {
	r, err := a.taskRun(ctx, in.tenant, p.runPath, p.Step, "result")
	if err != nil {
		return nil, err
	}
	answer, err := a.kept(ctx, p, r, "result", r.Result)
	if errors.Is(err, blob.ErrNotFound) {
		reason := goneReason(r.Result.Blob, a.Now())
		return nil, newProblem(codeResultExpired, strings.ToUpper(reason[:1])+reason[1:]+".")
	}
	return answer, err
}
