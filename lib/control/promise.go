package control

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
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
func (a *Asked) body() []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n%d\n", a.Job, a.delay().Milliseconds())
	if a.At != nil {
		fmt.Fprintf(&text, "%d", a.At.UnixMilli())
	}
	text.WriteByte('\n')
	text.Write(a.Payload)
	if c := a.Callees; !c.IsZero() { // behind JSON, so that no payload looks like it
		fmt.Fprintf(&text, "\non\n%s\n%s", c.Succeeded, c.Failed)
	}
	if a.IgnorePause {
		text.WriteString("\nignore_pause")
	}
	if !a.Overlap.IsZero() {
		text.WriteString("\noverlap\n" + string(a.Overlap.Policy))
	}
	sum := sha256.Sum256(text.Bytes())
	return sum[:]
}

// binding is an order on the way to its key.
type binding struct {
	*order
	mine     promise
	op       store.Op   // puts it, where the key is free
	standing store.Item // what has the key instead, as last seen
}

// bindKeys has the keys of requests name their runs, or finds which runs they name. Those of one call are one write of many, and the few that
// meet what is over, or has gone meanwhile, another.
func (s *Service) bindKeys(ctx context.Context, tenant string, orders []*order) {
	room, open := make([]binding, len(orders)), make([]*binding, 0, len(orders))
	for i, o := range orders {
		b := &room[i]
		b.order, b.mine = o, promise{Run: o.Run.ID.String(), Body: o.asked.body(), Created: o.now}
		var value []byte
		if value, o.Err = record.Encode(b.mine); o.Err != nil {
			continue
		}
		b.op = store.Op{Kind: store.Put, Key: keyOf(tenant, o.asked.Key), If: store.Absent, Value: value,
			Expires: time.UnixMilli(max(o.now, o.Run.ID.Nominal)).Add(keepKey), Attempt: s.NewID()}
		open = append(open, b)
	}
	open = s.recall(ctx, tenant, open)
	for range maxRounds {
		if open = s.reserve(ctx, open); len(open) == 0 {
			return
		}
		dispatch.Parallel(open, fanOut, func(_ int, b *binding) { b.Err = s.adopt(ctx, tenant, b) })
		open = slices.DeleteFunc(open, func(b *binding) bool { return b.begun || b.Err != nil })
	}
	for _, b := range open {
		b.Err = &Refusal{Code: CodeBusy, Message: "the idempotency key is being used by many at once; try again", RetryAfter: time.Second}
	}
}

// recall sees to the orders that their jobs do not take any more: such a one is the run that its key stands for already, or is refused. It gives the others.
func (s *Service) recall(ctx context.Context, tenant string, all []*binding) (open []*binding) {
	var unfit []*binding
	for _, b := range all {
		if b.unfit != nil {
			unfit = append(unfit, b)
		} else {
			open = append(open, b)
		}
	}
	dispatch.Parallel(unfit, fanOut, func(_ int, b *binding) {
		items, err := s.Store.Get(ctx, b.op.Key)
		if b.Err = err; err != nil {
			return
		}
		b.standing = items[0]
		if b.Err = s.adopt(ctx, tenant, b); b.Err == nil && !b.begun {
			b.Err = b.unfit
		}
	})
	return open
}

// reserve puts the promises, and gives the orders whose key has another one: of an earlier call, or of an order before it in this one.
func (s *Service) reserve(ctx context.Context, open []*binding) (met []*binding) {
	ops := make([]store.Op, len(open))
	for i, b := range open {
		ops[i] = b.op
	}
	ops, at := store.Once(ops)
	verdicts, err := s.Dispatch.WriteEach(ctx, ops)
	// Durable now: a promise under each key that was free. A crash here leaves them to the same requests, which keep them when they are repeated.
	for i, b := range open {
		if b.Err = err; err != nil {
			continue
		}
		done, v := &ops[at[i]], verdicts[at[i]]
		conflict := store.AsConflict(v.Err)
		switch {
		case conflict != nil:
			b.standing = conflict.Standing
			met = append(met, b)
		case v.Err != nil:
			b.Err = v.Err
		case done.Attempt == b.op.Attempt:
			b.begun = true
		default:
			b.standing = store.Item{Key: done.Key, Value: done.Value, Version: v.Version}
			met = append(met, b)
		}
	}
	return met
}

// adopt makes the run that a key names the order's. A key that has come free, or whose run may have ended and been cleaned up since, is to be
// bound anew.
func (s *Service) adopt(ctx context.Context, tenant string, b *binding) error {
	if !b.standing.Exists() {
		b.op.If = store.Absent
		return nil
	}
	var given promise
	if err := record.Decode(b.standing.Value, &given); err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	id, err := run.ParseID(given.Run)
	if err != nil {
		return fmt.Errorf("idempotency key: %w", err)
	}
	if over, err := s.over(ctx, tenant, id, b.now); err != nil {
		return err
	} else if over {
		b.op.If = store.At(b.standing)
		return nil
	}
	if !bytes.Equal(given.Body, b.mine.Body) {
		return refuse(CodeKeyReused, "the idempotency key %q was used for another request: use a new one", b.asked.Key)
	}
	b.Run.ID, b.Run.Created, b.Repeated, b.begun = id, cmp.Or(given.Created, b.now), true, true
	return s.join(ctx, tenant, b.order)
}

// join looks whether the run of a repeated request stands, and wakes it. Where it does not, the request goes on as a new one does.
func (s *Service) join(ctx context.Context, tenant string, o *order) error {
	standing, err := s.Dispatch.ReadRuns(ctx, []run.Run{{ID: o.Run.ID, Tenant: tenant}})
	if err != nil || standing[0].Version == 0 {
		return err
	}
	o.Run, o.stood = standing[0], true
	if o.Run.State.Ended() {
		return nil
	}
	return s.Dispatch.Arm(ctx, s.Dispatch.Wakeup(ctx, o.Run, o.now+s.Dispatch.Directly().Milliseconds()))
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
