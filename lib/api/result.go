package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/invalid"
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

type resultPath struct {
	runPath
	byteRange
	Step string `query:"step" minLength:"1" maxLength:"649" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"of the step of this path, of a workflow's run"`
}

type resultBytes struct {
	Status      int
	ContentType string `header:"Content-Type" doc:"the media type that the target named"`
	Disposition string `header:"Content-Disposition"`
	Ranges      string `header:"Accept-Ranges"`
	Range       string `header:"Content-Range" doc:"of a part: which bytes, and of how many"`
	Body        []byte
}

// getRunResult gives bytes that somebody else wrote: a browser that is sent to them keeps them as a file.
func (a *api) getRunResult(ctx context.Context, p *resultPath, in input[noBody]) (*resultBytes, error) {
	r, err := a.taskRun(ctx, in.tenant, p.runPath, p.Step, "result")
	if err != nil {
		return nil, err
	}
	data, mediaType, err := a.Control.Result(ctx, r)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		reason := goneReason(r.Result.Blob, a.Now())
		return nil, newProblem(codeResultExpired, strings.ToUpper(reason[:1])+reason[1:]+".")
	case err != nil:
		return nil, err
	case len(data) == 0:
		return &resultBytes{Status: http.StatusNoContent}, nil
	}
	if _, _, err := mime.ParseMediaType(mediaType); err != nil {
		mediaType = mediaBytes
	}
	given, err := p.of(data)
	return &resultBytes{Status: given.status, ContentType: mediaType, Ranges: "bytes", Range: given.which, Body: given.data,
		Disposition: attachment(r.ID, "result")}, err
}

// attachment names a file of bytes that are kept. An ID, as a path, has no character that a quoted name may not have, but for a slash.
func attachment(id run.ID, name string) string {
	return `attachment; filename="` + strings.ReplaceAll(id.String(), "/", ".") + "." + name + `"`
}

// byteRange says which of the bytes are asked for. There is one form of it, so that who asks for another is told.
type byteRange struct {
	Range string `header:"Range" maxLength:"30" pattern:"^bytes=[0-9]{1,10}-[0-9]{0,10}$" example:"bytes=0-524287" doc:"a part alone, from the first byte to the last, counted from 0; up to the end without a last. The answer is 206 then"`
}

// given is what of the bytes is answered.
type given struct {
	status int
	which  string // Content-Range
	data   []byte
}

func (p byteRange) of(data []byte) (given, error) {
	if p.Range == "" {
		return given{status: http.StatusOK, data: data}, nil
	}
	first, last, _ := strings.Cut(strings.TrimPrefix(p.Range, "bytes="), "-")
	from, _ := strconv.ParseInt(first, 10, 64) // by the pattern it is a number
	to := int64(len(data)) - 1
	if last != "" {
		asked, _ := strconv.ParseInt(last, 10, 64)
		to = min(to, asked)
	}
	if from > to {
		return given{}, invalid.Field("Range", p.Range, fmt.Sprintf("a part of the %d bytes that there are", len(data)))
	}
	return given{http.StatusPartialContent, fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)), data[from : to+1]}, nil
}
