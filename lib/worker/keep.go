package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
)

// payload reads what a run brings, or what its job has for all. Data that is gone for good is a *target.Failure: no attempt will
// find it. With any other error there is nothing to be told of the run yet.
func (w *Worker) payload(ctx context.Context, r run.Run, def job.Definition) ([]byte, error) {
	switch {
	case r.Payload.Blob != "":
		ctx, cancel := context.WithTimeout(ctx, w.Dispatch.Lease/3)
		defer cancel()
		data, err := w.Blobs.Get(ctx, r.Tenant, r.Payload.Blob)
		if errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrCorrupt) {
			return nil, &target.Failure{Kind: "payload", Permanent: true, Message: "read the payload: " + err.Error()}
		}
		return data, err
	case len(r.Payload.Inline) > 0:
		return r.Payload.Inline, nil
	}
	return def.Payload, nil
}

// longestType is how long a media type may be that is kept with a result.
const longestType = 80

// keepResult puts a result into the run while there is room, else into a blob, and notes where neither worked: the run has
// succeeded all the same.
func (a *attempt) keepResult(ctx context.Context, result target.Result) (run.Ref, string) {
	ref := run.Ref{Type: result.ContentType, Cut: result.Truncated}
	if len(ref.Type) > longestType {
		ref.Type = "application/octet-stream"
	}
	if len(result.Body)+len(a.started.Payload.Inline) <= run.MaxInline {
		ref.Inline = result.Body
		return ref, ""
	}
	key, err := a.keep(ctx, blob.Result, result.Body)
	if err != nil {
		a.Log.Error("a result was lost", "run", a.started.ID.String(), "error", err)
		return run.Ref{}, "the result could not be kept"
	}
	ref.Blob = key
	return ref, ""
}

func (a *attempt) keepLog(ctx context.Context) string {
	text := a.log.bytes()
	if len(text) == 0 {
		return ""
	}
	key, err := a.keep(ctx, blob.Log, text)
	if err != nil {
		a.Log.Error("a log was lost", "run", a.started.ID.String(), "error", err)
	}
	return key
}

// keepTries is how often a result or log is offered before it is given up: the run's end must not wait for it long.
const keepTries = 3

// keep puts a blob of this attempt, named by its fence: a stale attempt's never stands in the way of a newer one's.
func (a *attempt) keep(ctx context.Context, kind blob.Kind, data []byte) (key string, err error) {
	ref := blob.Ref{Tenant: a.started.Tenant, Kind: kind, ID: fmt.Sprintf("%s~%d", a.started.ID, a.started.Fence),
		Expires: a.Dispatch.Now().Add(a.edition.Def.Retention.Std() + 24*time.Hour)}
	for try := range keepTries {
		if try > 0 {
			a.sleep(ctx, time.Second)
		}
		putting, cancel := context.WithTimeout(ctx, a.Dispatch.Lease/3)
		key, err = a.Blobs.Put(putting, ref, data)
		cancel()
		if err == nil {
			return key, nil
		}
	}
	return "", err
}

// cappedLog keeps the beginning of what is written, and says where it was cut.
type cappedLog struct {
	mu    sync.Mutex
	text  bytes.Buffer
	limit int
	lost  int
}

func newCappedLog(limit int) *cappedLog { return &cappedLog{limit: limit} }

func (l *cappedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := min(len(p), l.limit-l.text.Len())
	l.text.Write(p[:kept])
	l.lost += len(p) - kept
	return len(p), nil
}

// bytes is what was kept; nothing may be written any more.
func (l *cappedLog) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		fmt.Fprintf(&l.text, "\n[cut here: %d more bytes were logged]\n", l.lost)
		l.lost = 0
	}
	return l.text.Bytes()
}
