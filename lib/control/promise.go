package control

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// promise is what an idempotency key stands for.
type promise struct {
	Run  string `cbor:"1,keyasint"`
	Body []byte `cbor:"2,keyasint"` // SHA-256 over what was asked

	// Created is when it was given, Unix ms: whoever makes the run makes the same one, in a timer or where it stands. 0 in older records.
	Created int64 `cbor:"3,keyasint,omitempty"`
}

func keyOf(tenant, key string) store.Key {
	return store.Key{Partition: "idem#" + tenant + "#" + key, Sort: "-"}
}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any { return map[string]any{"idem": promise{}} }

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

// promised binds the key to a run's ID and its creation: to this one, or to the one that it was bound to before. A key whose run may have ended
// and been cleaned up since is bound anew.
func (s *Service) promised(ctx context.Context, tenant string, id run.ID, req Request, now int64) (run.ID, int64, bool, error) {
	mine := promise{Run: id.String(), Body: req.body(id.Job), Created: now}
	value, err := record.Encode(mine)
	if err != nil {
		return run.ID{}, 0, false, err
	}
	op := store.Op{Kind: store.Put, Key: keyOf(tenant, req.Key), If: store.Absent, Value: value,
		Expires: time.UnixMilli(max(now, id.Nominal)).Add(keepKey), Attempt: s.NewID()}
	for range maxRounds {
		_, err = s.Dispatch.Write(ctx, op)
		conflict := store.AsConflict(err)
		if conflict == nil {
			return id, now, false, err
		}
		var standing promise
		if !conflict.Standing.Exists() {
			op.If = store.Absent
			continue
		}
		if err := record.Decode(conflict.Standing.Value, &standing); err != nil {
			return run.ID{}, 0, false, fmt.Errorf("idempotency key: %w", err)
		}
		promised, err := run.ParseID(standing.Run)
		if err != nil {
			return run.ID{}, 0, false, fmt.Errorf("idempotency key: %w", err)
		}
		if over, err := s.over(ctx, tenant, promised, now); err != nil {
			return run.ID{}, 0, false, err
		} else if over {
			op.If = store.At(conflict.Standing)
			continue
		}
		if !bytes.Equal(standing.Body, mine.Body) {
			return run.ID{}, 0, false, refuse(CodeKeyReused, "the idempotency key %q was used for another request: use a new one", req.Key)
		}
		return promised, cmp.Or(standing.Created, now), true, nil
	}
	return run.ID{}, 0, false, &Refusal{Code: CodeBusy, Message: "the idempotency key is being used by many at once; try again", RetryAfter: time.Second}
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
