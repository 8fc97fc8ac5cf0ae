// Package store is the port to the one durable truth of Belfry: ordered items with versions and conditional writes.
//
// The port is what DynamoDB, a log-structured engine on a laptop and a map in memory can all keep, no more: there is no
// secondary index (what must be found is its own item), no scan over partitions, no capability to ask for. Engines prove
// themselves by storetest.Run, which holds no switch on the engine. Faults, metrics and capacity counts are decorators.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits are those of DynamoDB (Service, account, and table quotas in the Amazon DynamoDB Developer Guide), less the room
// that it counts for the names of attributes, the version, the expiry and the attempt; they bind every engine, so that what
// works on a laptop works in the cloud. Exceeding one gives an error that wraps ErrTooLarge, before anything is written.
const (
	MaxOps       = 100        // operations in one Write
	MaxEach      = 1000       // operations in one WriteEach; engines cut it to their own batches
	MaxKeys      = 100        // keys in one Get or Peek
	MaxItemBytes = 399 << 10  // partition, sort key and value of one item, together (Item.Size)
	MaxOpsBytes  = 4000 << 10 // all items of one Write, together; a delete or check counts its key
	MaxPageBytes = 1 << 20    // items of one page of a Query, together; a page may be cut earlier
	MaxPartition = 2048       // bytes of a partition key, at least 1
	MaxSort      = 1024       // bytes of a sort key, at least 1
)

// Key names an item. Both parts are bytes held in a string; within a partition items are ordered by Sort, as unsigned bytes.
type Key struct {
	Partition string
	Sort      string
}

func (k Key) String() string { return k.Partition + "/" + k.Sort }

// Item is one stored record. Version 0 says that the item is not there: no stored item has it.
type Item struct {
	Key
	Version uint64    // set by the engine: 1 for a put where nothing stood, else one more than what stood
	Value   []byte    // opaque; callers must not change it in place
	Expires time.Time // zero: never. Cleanup only: an item may be seen long after it, and correctness never needs it gone. Whole seconds, UTC
	Attempt uint64    // Op.Attempt of the put that wrote this version
}

// Exists tells whether the item was there.
func (i Item) Exists() bool { return i.Version != 0 }

// Kind is what an Op does.
type Kind uint8

const (
	Put    Kind = iota + 1 // write Value and Expires; the version grows by one
	Delete                 // remove the item
	Check                  // change nothing, only hold the condition; only in Write
)

// Cond is what must stand for an Op to happen. The zero value is Any.
type Cond struct {
	kind    condKind
	version uint64
}

type condKind uint8

const (
	condAny condKind = iota
	condAbsent
	condVersion
)

// Any holds always.
var Any = Cond{}

// Absent holds where there is no item.
var Absent = Cond{kind: condAbsent}

// Version holds where an item of exactly this version stands; n must be at least 1.
func Version(n uint64) Cond { return Cond{kind: condVersion, version: n} }

// At is the condition that what was read still stands: Version(n), or Absent for an item that was not there.
func At(read Item) Cond {
	if !read.Exists() {
		return Absent
	}
	return Version(read.Version)
}

// IsAny, IsAbsent and Wants take a condition apart; engines need it, and decorators that explain.
func (c Cond) IsAny() bool    { return c.kind == condAny }
func (c Cond) IsAbsent() bool { return c.kind == condAbsent }

// Wants is the version that must stand, false where the condition is none on a version.
func (c Cond) Wants() (uint64, bool) { return c.version, c.kind == condVersion }

// Holds tells whether the condition is met by an item of this version, 0 for none.
func (c Cond) Holds(standing uint64) bool {
	switch c.kind {
	case condAbsent:
		return standing == 0
	case condVersion:
		return standing == c.version
	default:
		return true
	}
}

func (c Cond) String() string {
	switch c.kind {
	case condAbsent:
		return "absent"
	case condVersion:
		return fmt.Sprintf("version=%d", c.version)
	default:
		return "any"
	}
}

// Op is one operation of a Write or WriteEach. In one call every key may occur only once.
type Op struct {
	Kind    Kind
	Key     Key
	If      Cond
	Value   []byte    // the caller's again when the call has returned
	Expires time.Time // kept to the second, rounded up; zero: never

	// Attempt is random per logical write and kept with the item. When a put's condition fails, but what stands carries the
	// op's own Attempt, at the very version that the op would have given it, then an earlier try of the same op has
	// succeeded and its answer was lost: the engine reports success (aws-sdk-go issue 3765 shows what happens otherwise).
	// So a Write whose outcome is unknown may be sent again as it is: it happens whole, so one put of it that finds itself
	// standing makes all of it a success. Where somebody has written over every put since, or where there is none (deletes
	// and checks alone), the second try gets a *Conflict with what stands. Zero means that no earlier try can exist.
	Attempt uint64
}

// Range is what a Query reads: the items of one partition with From <= Sort < To.
type Range struct {
	Partition string
	From      string // inclusive; "" from the first
	To        string // exclusive; "" to the last
	Backward  bool   // from the highest sort key down
	Limit     int    // at most so many items in the page; 0: as many as the engine's page holds
	Cursor    string // Page.Cursor of the page before; "" for the first page
}

// Page is a part of a range. A page may hold fewer items than its limit, even none, and still have a cursor: only an empty
// Cursor says that the range has been read to its end.
type Page struct {
	Items  []Item
	Cursor string
}

// Verdict is the outcome of one op of a WriteEach: Err is nil, a *Conflict, or wraps ErrThrottled or ErrUnknown.
type Verdict struct {
	Version uint64 // the version that the put gave to the item; 0 after a delete or an error
	Err     error
}

// Store is the port. All methods may be called concurrently and obey their context.
//
// Durable on return: what a write that returned nil wrote, and what a read returned, survives kill -9 and power loss. An
// engine that shows a write to readers before it is synced must hold the reader's answer until it is.
//
// Serial: Get, Query, Write and each op of a WriteEach are strictly serializable, one item at a time for WriteEach,
// and item by item for a Query, which is no snapshot. Get of several keys is no snapshot either.
//
// A failed write: after *Conflict, ErrTooLarge or ErrThrottled nothing was written. After ErrUnknown, a context error or any
// other error the write may have happened, or may yet happen within ten minutes; Write happens whole or not at all. Send it
// again with the same Attempts, or read.
type Store interface {
	// Get reads items, strongly consistent, in the order of the keys, which may repeat. An item that is not there has
	// Version 0 and its key.
	Get(ctx context.Context, keys ...Key) ([]Item, error)

	// Peek is Get at half the price and without the promise to see the newest write. It serves the one place where
	// staleness errs to the safe side: "not finished yet".
	Peek(ctx context.Context, keys ...Key) ([]Item, error)

	// Query reads a page of a range, strongly consistent. A cursor is bound to its range, direction included.
	Query(ctx context.Context, r Range) (Page, error)

	// Write does all ops or none and gives the new versions in the order of ops (0 for deletes and checks). When a condition
	// does not hold, the error is a *Conflict. At most MaxOps ops.
	Write(ctx context.Context, ops ...Op) ([]uint64, error)

	// WriteEach does each op on its own, in any order, and gives one verdict each. The error is for what befell the whole
	// call, and the verdicts are then nil: limits or a closed store, and nothing was written; the context or a failed
	// engine, and each op may have happened. At most MaxEach ops, no Check.
	WriteEach(ctx context.Context, ops ...Op) ([]Verdict, error)

	// Skew tells how far the store's clock is ahead of this host's, as last learned; 0 where they are the same clock.
	Skew() time.Duration

	// Close waits for calls under way, and ends the engine's own work. Later calls give ErrClosed.
	Close() error
}

// Conflict is the error of a write whose condition did not hold. Nothing was written.
type Conflict struct {
	Op       int  // index among the ops of the call
	Cond     Cond // what the op wanted
	Standing Item // what stands there instead; Version 0 when nothing does
}

func (c *Conflict) Error() string {
	if !c.Standing.Exists() {
		return fmt.Sprintf("%s: wanted %s, found nothing", c.Standing.Key, c.Cond)
	}
	return fmt.Sprintf("%s: wanted %s, found version=%d", c.Standing.Key, c.Cond, c.Standing.Version)
}

// What a caller decides on.
var (
	// ErrTooLarge says that a limit of this package was exceeded, or the call was malformed. Nothing was written.
	ErrTooLarge = errors.New("over a limit of the store")
	// ErrThrottled says that the store refused for load. Nothing was written; try later.
	ErrThrottled = errors.New("the store is throttling")
	// ErrUnknown says that the write may have happened, may yet happen, or not.
	ErrUnknown = errors.New("outcome of the write unknown")
	// ErrBadCursor says that a cursor is not one of this range. Queries give it for anything that they did not hand out.
	ErrBadCursor = errors.New("not a cursor of this range")
	// ErrDamaged says that what is stored can no longer be read: it is not what was written, or it is gone. Trying again does not help; what
	// lies elsewhere can still be read. After a write it was met while reading what stands, and nothing was written by that op.
	ErrDamaged = errors.New("the store is damaged")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// AsConflict gives the *Conflict in err, nil where there is none.
func AsConflict(err error) *Conflict {
	if err == nil {
		return nil
	}
	var c *Conflict
	if errors.As(err, &c) {
		return c
	}
	return nil
}
