package api

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/run"
)

const codeNoSuchRange control.Code = "no_such_range"

// ofStep chooses a step of a workflow's run, where one is given.
type ofStep struct {
	Step string `query:"step" minLength:"1" maxLength:"649" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}(/[A-Za-z0-9][A-Za-z0-9_-]{0,63})*$" doc:"of the step of this path, of a workflow's run"`
}

// keptPath asks for bytes that are kept of a run, or for a part of them. There is one form of a part, so that who asks for another is told.
type keptPath struct {
	runPath
	ofStep
	Range string `header:"Range" maxLength:"30" pattern:"^bytes=[0-9]{1,10}-[0-9]{0,10}$" example:"bytes=0-524287" doc:"a part alone, from the first byte to the last, counted from 0; up to the end without a last. The answer is 206 then"`
}

type keptBytes struct {
	Status      int
	ContentType string `header:"Content-Type" doc:"of a result the media type that its target named"`
	Disposition string `header:"Content-Disposition"`
	Ranges      string `header:"Accept-Ranges"`
	Range       string `header:"Content-Range" doc:"of a part: which bytes, and of how many"`
	ETag        string `header:"ETag" doc:"of the whole, also with a part: in quotes the first 16 bytes of its SHA-256, as base64 for URLs. A part is not checked against it; whoever has all of them can do so"`
	From        string `header:"Belfry-Payload" doc:"of a payload: run where the run was asked for with it, job where it is that of the job's definition, step where it is the step's own input"`
	Body        []byte
}

// kept gives what a record holds or names, or the part that is asked for. Somebody else wrote it: a browser that is sent to it keeps it as a file of the run or
// step, under a name that ends so.
func (a *api) kept(ctx context.Context, p *keptPath, r run.Run, ending string, of run.Ref) (*keptBytes, error) {
	from, most := p.bounds()
	part, err := a.Control.Part(ctx, r.Tenant, of, from, most)
	if err != nil {
		return nil, err
	}
	if part.Size == 0 {
		return &keptBytes{Status: http.StatusNoContent}, nil
	}
	answer := &keptBytes{Status: http.StatusOK, ContentType: of.Type, Ranges: "bytes", ETag: `"` + part.Sum + `"`, Body: part.Data,
		// An ID, as a path, has no character that a quoted name may not have, but for a slash.
		Disposition: `attachment; filename="` + strings.ReplaceAll(r.ID.String(), "/", ".") + "." + ending + `"`}
	if _, _, err := mime.ParseMediaType(of.Type); err != nil {
		answer.ContentType = mediaBytes
	}
	switch {
	case p.Range == "":
	case len(part.Data) == 0:
		refused := newProblem(codeNoSuchRange, fmt.Sprintf("There are %d bytes, counted from 0, and none of them is in %s.", part.Size, p.Range))
		refused.contentRange = fmt.Sprintf("bytes */%d", part.Size)
		return nil, refused
	default:
		answer.Status = http.StatusPartialContent
		answer.Range = fmt.Sprintf("bytes %d-%d/%d", from, from+int64(len(part.Data))-1, part.Size)
	}
	return answer, nil
}

// bounds are where the bytes that are asked for begin, and how many they are at most.
func (p *keptPath) bounds() (from, most int64) {
	first, last, _ := strings.Cut(strings.TrimPrefix(p.Range, "bytes="), "-")
	from, _ = strconv.ParseInt(first, 10, 64) // by the pattern it is a number, or there is none
	to, err := strconv.ParseInt(last, 10, 64)
	if err != nil {
		return from, blob.MaxBytes
	}
	return from, min(max(0, to-from+1), blob.MaxBytes)
}
