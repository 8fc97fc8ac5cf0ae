package pebble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Every block of a table knows the range of the expiries in it, so a pass over what has expired reads only blocks that hold
// such items, and a put costs nothing more. Items that are only in the log and in memory are not looked at: that part is
// bounded, and moves into tables as it fills.
const expiryProperty = "belfry.expiry"

func newExpiryCollector() pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(expiryProperty, expiryMapper{}, nil)
}

type expiryMapper struct{}

// MapPointKey gives no interval for what it cannot read: a table must be written all the same, and the read of that item
// will say what is wrong.
func (expiryMapper) MapPointKey(key pebble.InternalKey, value []byte) (sstable.BlockInterval, error) {
	if key.Kind() != pebble.InternalKeyKindSet && key.Kind() != pebble.InternalKeyKindSetWithDelete {
		return sstable.BlockInterval{}, nil
	}
	h, _, err := decode(value)
	if err != nil || h.expires == 0 {
		return sstable.BlockInterval{}, nil
	}
	return sstable.BlockInterval{Lower: uint64(h.expires), Upper: uint64(h.expires) + 1}, nil
}

func (expiryMapper) MapRangeKeys(sstable.Span) (sstable.BlockInterval, error) {
	return sstable.BlockInterval{}, nil
}

const (
	sweepLooks   = 20_000 // items looked at in one round
	sweepDeletes = 500    // items deleted in one round
	sweepPause   = 10 * time.Millisecond
)

// sweepLoop makes a pass, in bounded rounds with pauses between, then waits for the next.
func (s *Store) sweepLoop(ctx context.Context, every time.Duration) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	var from []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.failed:
			return
		case <-timer.C:
		}
		next, _, err := s.sweep(ctx, s.now(), from)
		if err != nil && ctx.Err() == nil && s.broken() == nil {
			s.log.Error("delete expired items", "error", err)
		}
		from = next
		if next == nil {
			timer.Reset(every)
		} else {
			timer.Reset(sweepPause)
		}
	}
}

// sweep makes one round from a key on, nil for the first. It gives the key to go on from, nil when the pass is over, and how
// many items it deleted.
//
// Skipping blocks may skip the deletion or the newer version of an item that it shows: what it finds is only a suspicion.
// The goroutine that decides writes looks again at what stands, so nothing else can come between.
func (s *Store) sweep(ctx context.Context, now time.Time, from []byte) (next []byte, deleted int, err error) {
	keys, next, err := s.suspects(now.Unix(), from)
	if err != nil || len(keys) == 0 {
		return next, 0, err
	}
	r := &request{
		keys: keys, ops: make([]store.Op, len(keys)), stripes: make([]uint32, len(keys)), versions: make([]uint64, len(keys)),
		each: true, expired: now.Unix(), batch: s.db.NewBatch(), commit: newCommit(),
	}
	for i, key := range keys {
		k, err := decodeKey(key)
		if err != nil {
			return next, 0, err
		}
		r.ops[i] = store.Op{Kind: store.Delete, Key: k}
		r.stripes[i] = s.stripe(k.Partition)
		must(r.batch.Delete(key, nil))
	}
	if err := s.submit(ctx, r); err != nil {
		return next, 0, err
	}
	if err := s.await(ctx, r); err != nil {
		return next, 0, err
	}
	return next, r.happened, errors.Join(r.errs...)
}

// suspects finds items that were written into a table with an expiry that has come.
func (s *Store) suspects(now int64, from []byte) (keys [][]byte, next []byte, err error) {
	if now < 1 {
		return nil, nil, nil
	}
	iter, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound:                from,
		PointKeyFilters:           []pebble.BlockPropertyFilter{sstable.NewBlockIntervalFilter(expiryProperty, 1, uint64(now)+1, nil)},
		OnlyReadGuaranteedDurable: true,
	})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	looked := 0
	for ok := iter.First(); ok; ok = iter.Next() {
		if looked++; looked > sweepLooks || len(keys) == sweepDeletes {
			return keys, slices.Clone(iter.Key()), nil
		}
		raw, err := iter.ValueAndErr()
		if err != nil {
			return nil, nil, err
		}
		h, _, err := decode(raw)
		if err != nil {
			return nil, nil, fmt.Errorf("key %q: %w", iter.Key(), err)
		}
		if h.expires > 0 && h.expires <= now {
			keys = append(keys, slices.Clone(iter.Key()))
		}
	}
	return keys, nil, iter.Error()
}
