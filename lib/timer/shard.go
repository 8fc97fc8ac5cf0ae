package timer

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Sweeps is how many times each minute is looked at again, each later than the one before.
const Sweeps = 3

// Lags is how long after a minute's end each sweep looks at it again. The longest is beyond the time in which a write may
// still land (ten minutes) and any clock skew, so nothing can come into a minute after it was swept last.
var Lags = [Sweeps]time.Duration{2 * time.Minute, 10 * time.Minute, time.Hour}

// Shard is the progress of the ticks over a range of buckets. All times are Unix ms.
//
// Horizon is published before anything is read and never falls: whatever any tick does, a stopped one that wakes hours
// later included, it does to fires at or below a horizon that stood here first. So an edit that reads it knows how far it
// must look. Watermark says up to which wake-up every timer has been claimed and sent; it moves only after the sends.
type Shard struct {
	Number  int    `cbor:"-"`
	Version uint64 `cbor:"-"` // of its item

	Epoch     uint64        `cbor:"1,keyasint"` // grows with every pass
	Owner     string        `cbor:"2,keyasint,omitempty"`
	Lease     int64         `cbor:"3,keyasint,omitempty"` // until when the owner's pass keeps others away; courtesy, not safety
	Horizon   int64         `cbor:"4,keyasint"`
	Watermark int64         `cbor:"5,keyasint"`
	Swept     [Sweeps]int64 `cbor:"6,keyasint"` // up to where each sweep has come

	// Reached are the buckets that are ahead of the watermark: the lowest sort key that was not handled. A bucket that cannot be read
	// holds the watermark, and a minute may be too much for one pass; what was done beside it is not to be done over.
	Reached map[int]string `cbor:"7,keyasint,omitempty"`

	// Passed is when the last pass began. Where that is long ago the store may have been away, and living workers may not have renewed
	// their leases: until Settled no pass judges any.
	Passed  int64 `cbor:"8,keyasint,omitempty"`
	Settled int64 `cbor:"9,keyasint,omitempty"`

	// Doubt is where the horizon stood at Since: whatever was claimed before that lies at or below it. Since is less than a day ago, so
	// runs that were made after it are there yet. Of an older fire up to Doubt that has no run nobody can tell whether it had one.
	Since int64 `cbor:"10,keyasint,omitempty"`
	Doubt int64 `cbor:"11,keyasint,omitempty"`

	// Gaps are the times that no horizon had reached until they were over: what fires in one was found late, by whoever published that
	// horizon. All other fires up to Horizon were found in time. A gap is kept while it tells anything, which is for minutes, or until the watermark has come to it.
	Gaps []Gap `cbor:"12,keyasint,omitempty"`

	// Paced are the places in time that missed fires were given beyond Horizon: by phase, the last one. See dispatch.Pace.
	Paced map[int64]int64 `cbor:"13,keyasint,omitempty"`

	// AddFrom is the first hour since 1970 that the last sweep has passed, and of which it is not noted yet which counts are to be added up (package
	// stats); 0 where there is none.
	AddFrom int64 `cbor:"14,keyasint,omitempty"`
}

// Gap is the time between two instants (Unix ms), both excluded.
type Gap struct {
	After  int64 `cbor:"1,keyasint"`
	Before int64 `cbor:"2,keyasint"`
}

// ShardKey is where a shard's progress stands.
func ShardKey(n int) store.Key {
	return store.Key{Partition: fmt.Sprintf("shard#%02d", n), Sort: "progress"}
}

// ShardFromItem reads a shard; an item that is not there gives a shard that has not begun.
func ShardFromItem(n int, item store.Item) (Shard, error) {
	s := Shard{Number: n}
	if !item.Exists() {
		return s, nil
	}
	if err := record.Decode(item.Value, &s); err != nil {
		return Shard{}, fmt.Errorf("shard %d: %w", n, err)
	}
	s.Number, s.Version = n, item.Version
	return s, nil
}

// Put gives the write of the shard under the version that was read.
func (s Shard) Put(attempt uint64) (store.Op, error) {
	value, err := record.Encode(s)
	if err != nil {
		return store.Op{}, err
	}
	return store.Op{Kind: store.Put, Key: ShardKey(s.Number), If: store.At(store.Item{Version: s.Version}), Value: value, Attempt: attempt}, nil
}

// Positions are up to where each bucket in [first, end) was handled: the lowest sort key that was not.
func (s Shard) Positions(first, end int) []string {
	positions := slices.Repeat([]string{SortFrom(s.Watermark + 1)}, end-first)
	for i := range positions {
		positions[i] = max(positions[i], s.Reached[first+i])
	}
	return positions
}

// Reach moves the watermark to where all buckets from first on have come, and notes which of them are further. It gives false where
// nothing has moved.
func (s *Shard) Reach(first int, positions []string) (moved bool) {
	lowest := slices.Min(positions)
	watermark := max(s.Watermark, FromSortTime(lowest)-1)
	var further map[int]string
	reached := SortFrom(watermark + 1)
	for i, position := range positions {
		if position > reached {
			if further == nil {
				further = map[int]string{}
			}
			further[first+i] = position
		}
	}
	moved = watermark != s.Watermark || !maps.Equal(further, s.Reached)
	s.Watermark, s.Reached = watermark, further
	return moved
}

// Oldest is the cursor that is furthest behind: every run that has not ended has a timer after it.
func (s Shard) Oldest() int64 { return min(s.Watermark, slices.Min(s.Swept[:])) }

// Layout is how a store is cut into shards; it is written when the store is made and holds for its life.
type Layout struct {
	Shards int `cbor:"1,keyasint"` // 1 to Buckets, a power of two
}

// LayoutKey is where the layout stands.
var LayoutKey = store.Key{Partition: "meta", Sort: "layout"}

// Records are the structs that this package stores, by what their partitions begin with.
func Records() map[string]any {
	return map[string]any{"due": body{}, "shard": Shard{}, "meta": Layout{}}
}

// Valid tells whether the layout can be worked with.
func (l Layout) Valid() bool { return l.Shards >= 1 && l.Shards <= Buckets && Buckets%l.Shards == 0 }

// ShardOf is the shard that a bucket belongs to.
func (l Layout) ShardOf(bucket int) int { return bucket / (Buckets / l.Shards) }

// BucketsOf are the first bucket of a shard, and the first one behind it.
func (l Layout) BucketsOf(shard int) (first, end int) {
	size := Buckets / l.Shards
	return shard * size, (shard + 1) * size
}
