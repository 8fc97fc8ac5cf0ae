package control

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/lib/trace"
)

// What a request may ask for.
const (
	MaxRunPayload = 1 << 20 // bytes
	MaxAhead      = 5 * 365 * 24 * time.Hour
	MaxKey        = 255                 // bytes of an idempotency key
	keepKey       = 7 * 24 * time.Hour  // counted from when the run is due
	keepPayload   = 60 * 24 * time.Hour // beyond the retention: the run may be retried for long before it ends
)

// promise is what an idempotency key stands for.
type promise struct {
	Run  string `cbor:"1,keyasint"`
	Body []byte `cbor:"2,keyasint"` // SHA-256 over what was asked
}

func keyOf(tenant, key string) store.Key {
	return store.Key{Partition: "idem#" + tenant + "#" + key, Sort: "-"}
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"idem": promise{}} }

// Trigger asks for a run of a job. repeated says that the idempotency key was used before, with the same request: the run is
// that one, as it stands.
//
// Order of writes: key, index (of what is due later), timer, run, then the answer. A crash after the key leaves a promise that
// the same request keeps when it is repeated; after the index, an item that names no run; after the timer, a run that a tick or sweep makes of it; after the run, one that they send.
func (s *Service) Trigger(ctx context.Context, tenant, name string, req Request) (r run.Run, repeated bool, err error) {
	now, err := s.Dispatch.Clock()
	if err != nil {
		return run.Run{}, false, skewed(err)
	}
	due, err := req.due(now)
	if err != nil {
		return run.Run{}, false, err
	}
	if err := job.ValidName(name); err != nil {
		return run.Run{}, false, err
	}
	// A remembered job will do to tell that it exists and whether its queue takes work; the run binds to it as it stands when
	// it is claimed.
	j, err := s.Dispatch.Book.Known(ctx, tenant, name, s.Now())
	if err != nil {
		return run.Run{}, false, err
	}
	if err := existing(&j); err != nil {
		return run.Run{}, false, err
	}
	if wait, full := s.Dispatch.Full(j.Def.Queue); full {
		return run.Run{}, false, &Refusal{Code: CodeBusy, Message: "queue " + j.Def.Queue + " is full; try again", RetryAfter: wait}
	}
	id := run.RequestID(name, due, s.NewID())
	if req.Key != "" {
		if id, repeated, err = s.promised(ctx, tenant, id, req, now); err != nil {
			return run.Run{}, false, err
		}
	}
	if repeated {
		standing, err := s.Dispatch.ReadRuns(ctx, []run.Run{{ID: id, Tenant: tenant}})
		if err != nil {
			return run.Run{}, false, err
		}
		if r = standing[0]; r.Version != 0 {
			if !r.State.Ended() {
				err = s.Dispatch.Arm(ctx, dispatch.Wakeup(r, now+s.directly().Milliseconds()))
			}
			return r, true, err
		}
	}
	r, err = s.request(ctx, j, id, req, now)
	return r, repeated, err
}

// due is when the run is to start, Unix ms.
func (req Request) due(now int64) (int64, error) {
	due := now + req.Delay.Milliseconds()
	switch {
	case len(req.Payload) > MaxRunPayload:
		return 0, invalid.Field("payload", fmt.Sprintf("%d bytes", len(req.Payload)), fmt.Sprintf("at most %d", MaxRunPayload))
	case len(req.Payload) > 0 && !json.Valid(req.Payload):
		return 0, invalid.Field("payload", string(req.Payload), "JSON")
	case len(req.Key) > MaxKey:
		return 0, invalid.Field("Idempotency-Key", req.Key, fmt.Sprintf("at most %d bytes", MaxKey))
	case req.At != nil && req.Delay != 0:
		return 0, invalid.Field("delay", req.Delay.String(), "either at or delay, not both")
	case req.Delay < 0:
		return 0, invalid.Field("delay", req.Delay.String(), "a duration that is not negative")
	case req.At != nil:
		due = max(now, req.At.UnixMilli())
	}
	if due > now+MaxAhead.Milliseconds() {
		return 0, invalid.Field("at", time.UnixMilli(due).UTC().Format(time.RFC3339), "a time within the next five years")
	}
	return due, nil
}

// body is what makes two requests the same.
func (req Request) body(name string) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n%d\n", name, req.Delay.Milliseconds())
	if req.At != nil {
		fmt.Fprintf(&text, "%d", req.At.UnixMilli())
	}
	text.WriteByte('\n')
	text.Write(req.Payload)
	sum := sha256.Sum256(text.Bytes())
	return sum[:]
}

// promised binds the key to a run's ID: to this one, or to the one that it was bound to before. A key whose run may have ended
// and been cleaned up since is bound anew.
func (s *Service) promised(ctx context.Context, tenant string, id run.ID, req Request, now int64) (run.ID, bool, error) {
	mine := promise{Run: id.String(), Body: req.body(id.Job)}
	value, err := record.Encode(mine)
	if err != nil {
		return run.ID{}, false, err
	}
	op := store.Op{Kind: store.Put, Key: keyOf(tenant, req.Key), If: store.Absent, Value: value,
		Expires: time.UnixMilli(max(now, id.Nominal)).Add(keepKey), Attempt: s.NewID()}
	for range maxRounds {
		_, err = s.Dispatch.Write(ctx, op)
		conflict := store.AsConflict(err)
		if conflict == nil {
			return id, false, err
		}
		var standing promise
		if !conflict.Standing.Exists() {
			op.If = store.Absent
			continue
		}
		if err := record.Decode(conflict.Standing.Value, &standing); err != nil {
			return run.ID{}, false, fmt.Errorf("idempotency key: %w", err)
		}
		promised, err := run.ParseID(standing.Run)
		if err != nil {
			return run.ID{}, false, fmt.Errorf("idempotency key: %w", err)
		}
		if over, err := s.over(ctx, tenant, promised, now); err != nil {
			return run.ID{}, false, err
		} else if over {
			op.If = store.At(conflict.Standing)
			continue
		}
		if !bytes.Equal(standing.Body, mine.Body) {
			return run.ID{}, false, refuse(CodeKeyReused, "the idempotency key %q was used for another request: use a new one", req.Key)
		}
		return promised, true, nil
	}
	return run.ID{}, false, &Refusal{Code: CodeBusy, Message: "the idempotency key is being used by many at once; try again", RetryAfter: time.Second}
}

// over tells whether a promised run has ended and been cleaned up: it was due longer ago than the shortest retention, and is not
// there. A younger one that is not there was promised by a request that stopped in between.
func (s *Service) over(ctx context.Context, tenant string, id run.ID, now int64) (bool, error) {
	if now-id.Nominal < job.MinRetention.Milliseconds() {
		return false, nil
	}
	standing, err := s.Dispatch.ReadRuns(ctx, []run.Run{{ID: id, Tenant: tenant}})
	return err == nil && standing[0].Version == 0, err
}

// request arms the timer and puts the run, and sends it when it is due soon.
func (s *Service) request(ctx context.Context, j job.Job, id run.ID, req Request, now int64) (run.Run, error) {
	r := run.Run{ID: id, Tenant: j.Tenant, State: run.Scheduled, Trigger: run.ByRequest, Priority: j.Def.Priority, Created: now, Trace: trace.From(ctx)}
	var err error
	if r.Payload, err = s.keepPayload(ctx, j, r, req.Payload); err != nil {
		return run.Run{}, err
	}
	direct := id.Nominal < now+s.directly().Milliseconds()
	if !direct {
		if err := s.listLater(ctx, r); err != nil {
			return run.Run{}, err
		}
	}
	// The timer before the run: whatever happens from here on, a tick or sweep comes upon it.
	if err := s.Dispatch.Arm(ctx, timer.NewRequest(r, max(id.Nominal, now), direct)); err != nil {
		return run.Run{}, err
	}
	if direct && !j.Def.Paused {
		r.State, r.Generation = run.Queued, j.Generation
	}
	if r, err = s.putNew(ctx, r); err != nil {
		return run.Run{}, err
	}
	if direct && !r.State.Ended() {
		// The job is read after the run is there: an edit that is not seen here sees the run, and raises its generation.
		b, err := s.bounds(now + s.directly().Milliseconds())
		if err != nil {
			return run.Run{}, err
		}
		if _, err := s.Dispatch.Requests(ctx, r.Tenant, 0, b, []run.Run{r}); err != nil {
			return run.Run{}, err
		}
	}
	if late := s.age(now); late > stale {
		// The bucket was chosen so long ago that the last sweep of it may be near: another timer, in one that is to come.
		if err := s.Dispatch.Arm(ctx, timer.NewRequest(r, max(id.Nominal, now+late.Milliseconds()), direct)); err != nil {
			return run.Run{}, err
		}
	}
	return r, nil
}

// listLater lists a run that is due later. What is due soon is found in the buckets until the first sweep lists it.
func (s *Service) listLater(ctx context.Context, r run.Run) error {
	listing, err := s.Dispatch.Listing(ctx, r, r.ID.Nominal)
	if err != nil {
		return err
	}
	op, err := run.IndexAlone(r.Tenant, listing, s.NewID())
	if err != nil {
		return err
	}
	if _, err = s.Dispatch.Write(ctx, op); err != nil {
		return fmt.Errorf("list run %s: %w", r.ID, err)
	}
	return nil
}

// putNew puts the run where nothing stands, and gives what stands.
func (s *Service) putNew(ctx context.Context, r run.Run) (run.Run, error) {
	op, err := r.Item(s.NewID())
	if err != nil {
		return run.Run{}, err
	}
	versions, err := s.Dispatch.Write(ctx, op)
	if conflict := store.AsConflict(err); conflict != nil {
		standing, _, err := run.FromItem(r.Tenant, r.ID, conflict.Standing)
		return standing, err
	}
	if err != nil {
		return run.Run{}, err
	}
	r.Version = versions[0]
	return r, nil
}

// keepPayload puts the payload where the run finds it: in the run while it is small, else in a blob that lasts as long.
func (s *Service) keepPayload(ctx context.Context, j job.Job, r run.Run, payload []byte) (run.Ref, error) {
	if len(payload) <= run.MaxInline {
		return run.Ref{Inline: payload}, nil
	}
	expires := r.ID.Time().Add(j.Def.Retention.Std() + keepPayload)
	key, err := s.Blobs.Put(ctx, blob.Ref{Tenant: r.Tenant, Kind: blob.Payload, ID: r.ID.String(), Expires: expires}, payload)
	if err != nil {
		return run.Ref{}, fmt.Errorf("keep the payload: %w", err)
	}
	return run.Ref{Blob: key}, nil
}
