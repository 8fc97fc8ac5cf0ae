package lease

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/worker"
)

// kept is what an end has beside the run's record, put away once however often the end is tried to be written.
type kept struct {
	result run.Ref
	note   string // why there is no result
	log    string // key of its blob
	draw   uint64 // decides the wait before the next attempt
}

// keep puts away what the attempt gives, and says how it has ended by that: of a step others read the result, so where that is not there as a whole, it has failed.
func (h *Held) keep(ctx context.Context, e worker.End) (worker.End, kept) {
	h.keeping.take()
	defer h.keeping.give()
	step := h.started.ID.IsStep()
	switch {
	case !step:
	case e.Outcome == run.OutcomeFailed && e.Failure.Kind == target.KindResult:
		e = resultless(e, e.Failure.Message, true)
	case e.Outcome == run.OutcomeSucceeded && e.Result.Truncated:
		e = resultless(e, fmt.Sprintf("the result is larger than the %d KiB that are kept of one; %s", (len(e.Result.Body)+1023)>>10, isDone), true)
	}
	if !h.isKept {
		h.isKept, h.kept = true, kept{log: h.keepLog(ctx, e), draw: h.desk.Dispatch.NewID()}
		if e.Outcome == run.OutcomeSucceeded {
			h.kept.result, h.kept.note = h.keepResult(ctx, e.Result)
		}
		h.showing.conceal(ctx, h.kept.log != "")
	}
	if step && e.Outcome == run.OutcomeSucceeded && h.kept.note != "" {
		e = resultless(e, h.kept.note+"; "+isDone, false)
	}
	return e, h.kept
}

const isDone = "what the step was to do is done"

// resultless is the end of a step whose result others cannot read.
func resultless(e worker.End, why string, permanent bool) worker.End {
	e.Outcome, e.Result.Body, e.Failure = run.OutcomeFailed, nil, &target.Failure{Kind: target.KindTooLarge, Permanent: permanent, Message: why}
	return e
}

// longestType is how long a media type may be that is kept with a result. Of a longer one the parameters are left out: without the type itself, JSON would
// be read as a text.
const longestType = 80

// keptType is what is kept of a media type, "" where even the type itself is too long.
func keptType(mediaType string) string {
	if len(mediaType) > longestType {
		mediaType, _, _ = strings.Cut(mediaType, ";")
		mediaType = strings.TrimSpace(mediaType)
	}
	if len(mediaType) > longestType {
		return ""
	}
	return mediaType
}

// keepResult puts a result into the run while it is small, else into a blob, and notes where neither worked: the run has
// succeeded all the same.
func (h *Held) keepResult(ctx context.Context, result target.Result) (run.Ref, string) {
	ref := run.Ref{Type: keptType(result.ContentType), Cut: result.Truncated}
	if len(result.Body) <= run.MaxResult {
		ref.Inline = result.Body
		return ref, ""
	}
	key, err := h.put(ctx, blob.Result, result.Body)
	if err != nil {
		h.desk.Log.ErrorContext(ctx, "a result was lost", "run", h.name, "error", err)
		return run.Ref{}, "the result could not be kept"
	}
	ref.Blob = key
	return ref, ""
}

// keepLog puts a log away, and gives its key, "" where there is nothing to keep. It names the attempt, how that failed, and the log
// of the attempt before, which the run's record forgets for it.
func (h *Held) keepLog(ctx context.Context, e worker.End) string {
	if e.Log.IsEmpty() {
		return ""
	}
	standing := h.standing()
	if _, ended := standing.Closed(h.started.Fence); ended {
		return standing.Log // an earlier try has put it away
	}
	log := e.Log
	log.Attempt, log.Error, log.Earlier = h.started.Attempt, run.OlderError(e.Cause), h.started.Log
	if e.Outcome == run.OutcomeFailed {
		log.Error = run.OlderError(e.Failure.Error())
	}
	data, err := log.Encode()
	if err != nil {
		h.desk.Log.ErrorContext(ctx, "a log was lost", "run", h.name, "error", err)
		return ""
	}
	key, err := h.put(ctx, blob.Log, data)
	if err != nil {
		h.desk.Log.ErrorContext(ctx, "a log was lost", "run", h.name, "error", err)
	}
	return key
}

// keepTries is how often a result or log is offered before it is given up: the run's end must not wait for it long.
const keepTries = 3

// blobID names the blobs of a run's newest attempt: by its ID, or of a step by the ID of its run and a hash of its path, which may be long, and by
// its fence: a stale attempt's never stands in the way of a newer one's.
func blobID(r run.Run) string {
	if !r.ID.IsStep() {
		return fmt.Sprintf("%s~%d", r.ID, r.Fence)
	}
	return fmt.Sprintf("%s~~%016x~%d", r.ID.Whole(), xxhash.Sum64String(r.ID.Step), r.Fence)
}

// put puts a blob of this attempt.
func (h *Held) put(ctx context.Context, kind blob.Kind, data []byte) (key string, err error) {
	d := h.desk.Dispatch
	expires := d.Now().Add(h.edition.Def.Retention.Std() + 24*time.Hour)
	if of := time.UnixMilli(h.started.Expires); h.started.ID.IsStep() && of.After(expires) { // its run may end later, and is kept from then on
		expires = of
	}
	ref := blob.Ref{Tenant: h.started.Tenant, Kind: kind, ID: blobID(*h.started), Expires: expires}
	for try := range keepTries {
		if try > 0 {
			pause(ctx, time.Second)
		}
		putting, cancel := context.WithTimeout(ctx, d.Lease/3)
		key, err = h.desk.Blobs.Put(putting, ref, data)
		cancel()
		if err == nil {
			return key, nil
		}
	}
	return "", err
}
