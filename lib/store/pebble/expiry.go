package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// What expires is found by entries of its own, in the order of time: one byte that says so, the second in eight bytes, the
// key of the item. The rule is: an item that expires has an entry at its expiry or before. So a put adds one only if it
// expires sooner than what stood there, or if that never expired; a run that is written five times with the same or a later
// expiry has one. An entry promises nothing about its item, which may be gone or may have moved on: when its time comes,
// the goroutine that decides writes looks at what stands, and deletes it, moves the entry, or only drops the entry.
const expirySpace = 0x02

const (
	sweepRound = 500 // entries in one round
	sweepPause = 10 * time.Millisecond
)

func appendEntry(dst []byte, second int64, key []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, expirySpace), uint64(second))
	return append(dst, key...)
}

func decodeEntry(entry []byte) (key []byte, err error) {
	if len(entry) <= 9 || entry[0] != expirySpace {
		return nil, fmt.Errorf("expiry entry %q: %w", entry, errMalformed)
	}
	return entry[9:], nil
}

// entry is one that the batch is to have.
type entry struct {
	second int64
	key    []byte
}

// addEntries adds the entries to the batch, behind all items: neighbours are put into Pebble's memory sooner.
func (d *decider) addEntries() {
	for _, e := range d.entries {
		o := d.batch.SetDeferred(9+len(e.key), 0)
		appendEntry(o.Key[:0], e.second, e.key)
		must(o.Finish())
	}
	clear(d.entries)
	d.entries = d.entries[:0]
}

// decideExpired looks at what stands under each entry whose time has come.
func (d *decider) decideExpired(r *request) {
	for i, gone := range r.entries {
		h, err := d.read(r, i)
		if err != nil {
			r.err = err
			return
		}
		p := &r.parts[i]
		must(d.writing(p).Delete(gone, nil))
		switch {
		case h.version == 0 || h.expires == 0:
		case h.expires <= r.now:
			d.remove(p)
			r.expired++
		default:
			d.entries = append(d.entries, entry{second: h.expires, key: p.key})
		}
		if d.full {
			d.apply()
		}
	}
}

// sweepLoop makes a pass, in bounded rounds with pauses between, then waits for the next.
func (s *Store) sweepLoop(ctx context.Context, every time.Duration) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.failed:
			return
		case <-timer.C:
		}
		_, more, err := s.sweep(ctx, s.now())
		if err != nil && ctx.Err() == nil && s.broken() == nil {
			s.log.Error("delete expired items", "error", err)
		}
		if more && err == nil {
			timer.Reset(sweepPause)
		} else {
			timer.Reset(every)
		}
	}
}

// Expire deletes all that has expired, without waiting for the next pass.
func (s *Store) Expire(ctx context.Context) (deleted int, err error) {
	for {
		n, more, err := s.sweep(ctx, s.now())
		deleted += n
		if err != nil || !more {
			return deleted, err
		}
	}
}

// sweep makes one round. It gives how many items it deleted, and whether there may be more whose time has come.
func (s *Store) sweep(ctx context.Context, now time.Time) (deleted int, more bool, err error) {
	r := &request{now: now.Unix()}
	if r.entries, err = s.due(r.now); err != nil || len(r.entries) == 0 {
		return 0, false, err
	}
	for _, entry := range r.entries {
		key, err := decodeEntry(entry)
		if err != nil {
			return 0, false, err
		}
		k, err := decodeKey(key)
		if err != nil {
			return 0, false, err
		}
		r.ops = append(r.ops, store.Op{Kind: store.Delete, Key: k})
		r.parts = append(r.parts, s.part(key, k.Partition))
	}
	if err := s.decided(ctx, r); err != nil {
		return 0, false, err
	}
	return r.expired, len(r.entries) == sweepRound, nil
}

// due gives the oldest entries whose time has come.
func (s *Store) due(now int64) (entries [][]byte, err error) {
	if now < 1 {
		return nil, nil
	}
	iter, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{expirySpace}, UpperBound: appendEntry(nil, now+1, nil),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	for ok := iter.First(); ok && len(entries) < sweepRound; ok = iter.Next() {
		entries = append(entries, slices.Clone(iter.Key()))
	}
	return entries, iter.Error()
}
