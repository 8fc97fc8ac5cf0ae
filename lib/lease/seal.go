package lease

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/internal/opaque"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// ErrTicket says that a ticket is none that this store's processes have sealed for the run, the attempt and the tenant.
var ErrTicket = errors.New("the ticket is not that of this run and attempt")

// ticket is what a worker elsewhere carries: which run and attempt it may speak of, and for the process that wrote it the message of the run.
type ticket struct {
	Queue    string `cbor:"1,keyasint"`
	Tenant   string `cbor:"2,keyasint"`
	Receipt  string `cbor:"3,keyasint"`
	Receives int    `cbor:"4,keyasint"`
	Body     []byte `cbor:"5,keyasint,omitempty"` // until the start

	Priority queue.Priority `cbor:"6,keyasint,omitempty"` // by which an engine finds the message

	Run   string `cbor:"7,keyasint"`
	Fence uint64 `cbor:"8,keyasint,omitempty"` // of the attempt; 0 until the start
	Epoch uint64 `cbor:"9,keyasint"`           // of the process that has the message: its queue may not outlive it
}

const (
	sealKeyBytes = 32
	sealBytes    = 16 // of the tag in front: nobody guesses one
)

// seal writes a ticket so that only a process of this store can have made it. What is in it is the tenant's own.
func (r *Remote) seal(t ticket) string {
	text, err := record.Encode(t)
	if err != nil {
		r.Log.Error("a ticket was not written", "error", err) // it opens as none: the message comes again by itself
		return ""
	}
	return opaque.Text(append(r.tag(text), text...))
}

func (r *Remote) tag(text []byte) []byte {
	mac := hmac.New(sha256.New, r.Key)
	mac.Write(text)
	return mac.Sum(nil)[:sealBytes]
}

// open reads the ticket of a tenant's run, and tells whether its message is known here: else the process that took it is gone. fence is that of
// the attempt, 0 for an offer. Anything but such a ticket is ErrTicket.
func (r *Remote) open(sealed, tenant string, id run.ID, fence uint64) (t ticket, known bool, err error) {
	text, ok := opaque.Bytes(sealed)
	if !ok || len(text) < sealBytes || !hmac.Equal(text[:sealBytes], r.tag(text[sealBytes:])) {
		return ticket{}, false, ErrTicket
	}
	if err := record.Decode(text[sealBytes:], &t); err != nil || t.Tenant != tenant || t.Run != id.String() || t.Fence != fence {
		return ticket{}, false, ErrTicket
	}
	return t, t.Epoch == r.Epoch && r.desks[t.Queue] != nil, nil
}

// keyPlace is where the key of a store's tickets stands.
var keyPlace = store.Key{Partition: "tickets", Sort: "key"}

// sealing is the key that a store's processes share.
type sealing struct {
	Key []byte `cbor:"1,keyasint"`
}

// Records gives the types of the records of this package, by the beginning of their partitions.
func Records() map[string]any { return map[string]any{"tickets": sealing{}} }

// TicketKey gives the key that tickets are sealed with by every process on a store, whenever it runs. fresh are 32 random bytes, which become
// the key where there is none yet.
func TicketKey(ctx context.Context, s store.Store, fresh []byte, attempt uint64) ([]byte, error) {
	items, err := s.Get(ctx, keyPlace)
	if err != nil {
		return nil, fmt.Errorf("read the key of tickets: %w", err)
	}
	standing := items[0]
	if !standing.Exists() {
		value, err := record.Encode(sealing{fresh})
		if err != nil {
			return nil, err
		}
		_, err = s.Write(ctx, store.Op{Kind: store.Put, Key: keyPlace, If: store.Absent, Value: value, Attempt: attempt})
		conflict := store.AsConflict(err)
		switch {
		case err == nil:
			return fresh, nil
		case conflict == nil:
			return nil, fmt.Errorf("write the key of tickets: %w", err)
		}
		standing = conflict.Standing // another process was first
	}
	var kept sealing
	if err := record.Decode(standing.Value, &kept); err != nil {
		return nil, fmt.Errorf("the key of tickets: %w", err)
	}
	return kept.Key, nil
}
