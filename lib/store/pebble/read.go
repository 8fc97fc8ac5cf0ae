package pebble

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// stripes is how many groups of partitions are told apart when a read asks whether what it saw is synced. Two partitions
// in one stripe cost a needless wait, nothing more.
const stripes = 1 << 12

// slots is the same for keys. Many more of these are on their way to the disk at once, often of few partitions: those of the runs of one job, say.
const slots = 1 << 15

// commit is what a group of writes on its way to the disk is waited for by.
type commit struct {
	done chan struct{} // closed when it is synced, or lost
	err  error         // set before done is closed
	n    uint64        // groups are synced in the order of their numbers, which begin with 1
}

func (s *Store) stripe(partition string) uint32 {
	return uint32(maphash.String(s.seed, partition)) % stripes
}

func stripeOf(seed maphash.Seed, partition []byte) uint32 {
	return uint32(maphash.Bytes(seed, partition)) % stripes
}

// slotOf is that of a key of this hash.
func slotOf(hash uint64) uint32 { return uint32(hash) % slots }

// settle holds a read's answer until all that it can have seen is synced: Pebble shows a write before it is on the disk, and
// what a reader was told must not be gone after a power cut. Writers name themselves in the stripe before their write can
// be seen, so it is enough to look there after reading; a commit is synced after all that came before it.
func (s *Store) settle(ctx context.Context, stripe uint32) error {
	c := s.stripes[stripe].Load()
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return c.err
	default:
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.failed:
		return s.failure
	}
}

// Get reads items as the port says.
func (s *Store) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := s.get(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	return items, nil
}

// Peek is Get: nothing is cheaper here.
func (s *Store) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	return s.Get(ctx, keys...)
}

func (s *Store) get(ctx context.Context, keys []store.Key) ([]store.Item, error) {
	if err := store.CheckKeys(keys); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	items := make([]store.Item, len(keys))
	var scratch [128]byte
	for i, k := range keys {
		h, value, err := s.load(appendKey(scratch[:0], k.Partition, k.Sort), true)
		if err != nil {
			return nil, damaged(k, err)
		}
		items[i] = h.item(k, value)
	}
	for _, k := range keys {
		// Mostly the key was not written by what is on its way, and only others of its partition were.
		if key := appendKey(scratch[:0], k.Partition, k.Sort); s.slots[slotOf(maphash.Bytes(s.seed, key))].Load() <= s.synced.Load() {
			continue
		}
		if err := s.settle(ctx, s.stripe(k.Partition)); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// load reads one item; version 0 when it is not there. The value is a copy, or nil when it is not wanted.
func (s *Store) load(key []byte, wanted bool) (h header, value []byte, err error) {
	raw, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return header{}, nil, nil
	}
	if err != nil {
		return header{}, nil, s.met(err)
	}
	h, value, err = decode(raw)
	if wanted {
		value = slices.Clone(value)
	} else {
		value = nil
	}
	return h, value, s.met(errors.Join(err, closer.Close()))
}

// Query reads a page as the port says.
func (s *Store) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := s.query(ctx, r)
	if err != nil {
		return store.Page{}, fmt.Errorf("query %q: %w", r.Partition, err)
	}
	return page, nil
}

func (s *Store) query(ctx context.Context, r store.Range) (_ store.Page, err error) {
	from, to, err := r.Bounds()
	if err != nil {
		return store.Page{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.leave()
	if to != "" && from >= to {
		return store.Page{}, nil
	}
	pages := store.Pages{Range: r}
	if err := s.scan(r, from, to, &pages); err != nil {
		return store.Page{}, err
	}
	if err := s.settle(ctx, s.stripe(r.Partition)); err != nil {
		return store.Page{}, err
	}
	return pages.Page(), nil
}

func (s *Store) scan(r store.Range, from, to string, pages *store.Pages) (err error) {
	var a, b [128]byte
	o := pebble.IterOptions{LowerBound: appendKey(a[:0], r.Partition, from)}
	if to == "" {
		o.UpperBound = appendPartitionEnd(b[:0], r.Partition)
	} else {
		o.UpperBound = appendKey(b[:0], r.Partition, to)
	}
	iter, err := s.db.NewIter(&o)
	if err != nil {
		return s.met(err)
	}
	defer func() { err = s.met(errors.Join(err, iter.Close())) }()
	first, next := iter.First, iter.Next
	if r.Backward {
		first, next = iter.Last, iter.Prev
	}
	prefix := 3 + len(r.Partition)
	var keep arena
	for ok := first(); ok; ok = next() {
		raw, err := iter.ValueAndErr()
		if err != nil {
			return err
		}
		sort := iter.Key()[prefix:]
		h, value, err := decode(raw)
		if err != nil {
			return damaged(store.Key{Partition: r.Partition, Sort: string(sort)}, err)
		}
		if !pages.Room(len(r.Partition) + len(sort) + len(value)) {
			return nil
		}
		pages.Add(h.item(store.Key{Partition: r.Partition, Sort: string(sort)}, keep.copy(value)))
	}
	return iter.Error()
}

// arena copies the small values of a page into few allocations.
type arena struct {
	free []byte
	next int
}

func (a *arena) copy(value []byte) []byte {
	if len(value) > len(a.free) {
		if len(value) > 4<<10 {
			return slices.Clone(value)
		}
		a.next = min(max(2*a.next, 512, len(value)), 32<<10)
		a.free = make([]byte, a.next)
	}
	n := copy(a.free, value)
	kept := a.free[:n:n]
	a.free = a.free[n:]
	return kept
}
