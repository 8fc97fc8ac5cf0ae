package pebble

import (
	"bytes"
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
		if errors.Is(err, store.ErrDamaged) {
			continue // the item stays with its entry; one that cannot be read must not keep all others from their end
		}
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
	var pass expiryPass
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.failed:
			return
		case <-timer.C:
		}
		more, err := s.sweep(ctx, s.now(), &pass)
		if err != nil && ctx.Err() == nil && s.broken() == nil {
			s.log.Error("delete expired items", "error", err)
		}
		if more && err == nil {
			timer.Reset(sweepPause)
		} else {
			pass = expiryPass{}
			timer.Reset(every)
		}
	}
}

// Expire deletes all that has expired, without waiting for the next pass. Errors are those of other calls.
func (s *Store) Expire(ctx context.Context) (deleted int, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.leave()
	var pass expiryPass
	for more := true; more && err == nil; {
		more, err = s.sweep(ctx, s.now(), &pass)
	}
	return pass.deleted, err
}

// expiryPass is a pass over what has expired. It remembers where it has come to: before that lie only the marks that Pebble leaves of
// deleted entries until it compacts them, and a round that began with them again would read all those of the rounds before it. An entry
// that is put there meanwhile waits for the next pass.
type expiryPass struct {
	behind  []byte // the last entry that was looked at
	deleted int    // items
}

// sweep makes one round of a pass, and tells whether there may be more whose time has come.
func (s *Store) sweep(ctx context.Context, now time.Time, pass *expiryPass) (more bool, err error) {
	r := &request{now: now.Unix()}
	// Behind damage among the entries nothing is found; what was found before it goes all the same, and the next round meets it again.
	var met error
	if r.entries, met = s.due(pass.behind, r.now); len(r.entries) == 0 || met != nil && !errors.Is(met, store.ErrDamaged) {
		return false, met
	}
	for _, entry := range r.entries {
		key, err := decodeEntry(entry)
		if err != nil {
			return false, err
		}
		k, err := decodeKey(key)
		if err != nil {
			return false, err
		}
		r.ops = append(r.ops, store.Op{Kind: store.Delete, Key: k})
		r.parts = append(r.parts, s.part(key, k.Partition))
	}
	if err := s.decided(ctx, r); err != nil {
		return false, err
	}
	pass.behind = r.entries[len(r.entries)-1]
	pass.deleted += r.expired
	return len(r.entries) == sweepRound || errors.Is(met, store.ErrDamaged), nil
}

// due gives the oldest entries behind one whose time has come.
func (s *Store) due(behind []byte, now int64) (entries [][]byte, err error) {
	if now < 1 {
		return nil, nil
	}
	from, to := []byte{expirySpace}, appendEntry(nil, now+1, nil)
	if behind != nil {
		from = append(slices.Clone(behind), 0)
	}
	if bytes.Compare(from, to) >= 0 { // the clock was set back in the middle of the pass
		return nil, nil
	}
	iter, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return nil, s.met(err)
	}
	defer func() { err = s.met(errors.Join(err, iter.Close())) }()
	for ok := iter.First(); ok && len(entries) < sweepRound; ok = iter.Next() {
		entries = append(entries, slices.Clone(iter.Key()))
	}
	return entries, iter.Error()
}
