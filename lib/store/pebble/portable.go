package pebble

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Export gives all items as the port says: those of a snapshot, which holds back no writer. What it gives lies in the log, if
// it is not in a table yet, so nothing has to be flushed before. While it runs, space that others free is not given back.
func (s *Store) Export(ctx context.Context, each func(store.Item) error) (err error) {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	s.exporting.Add(1)
	defer s.exporting.Done()
	snapshot := s.db.NewSnapshot()
	s.leave()
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	// The snapshot may hold writes that are not synced. A check is answered in the order of the log, so behind its answer they are.
	if _, err := s.Write(ctx, store.Op{Kind: store.Check, Key: store.Key{Partition: "export", Sort: "-"}}); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return s.giveAll(ctx, snapshot, each)
}

// giveAll gives all items that from has.
func (s *Store) giveAll(ctx context.Context, from pebble.Reader, each func(store.Item) error) (err error) {
	iter, err := from.NewIter(&pebble.IterOptions{LowerBound: []byte{itemSpace}, UpperBound: []byte{itemSpace + 1}})
	if err != nil {
		return fmt.Errorf("export: %w", s.met(err))
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	for ok := iter.First(); ok; ok = iter.Next() {
		item, err := s.exported(ctx, iter)
		if err != nil {
			return fmt.Errorf("export: %w", s.met(err))
		}
		if err := each(item); err != nil {
			return err
		}
	}
	if err := s.met(iter.Error()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

func (s *Store) exported(ctx context.Context, iter *pebble.Iterator) (store.Item, error) {
	switch {
	case ctx.Err() != nil:
		return store.Item{}, ctx.Err()
	case s.closed.Load():
		return store.Item{}, store.ErrClosed
	}
	if err := s.broken(); err != nil {
		return store.Item{}, err
	}
	key, err := decodeKey(iter.Key())
	if err != nil {
		return store.Item{}, err
	}
	raw, err := iter.ValueAndErr()
	if err != nil {
		return store.Item{}, damaged(key, err)
	}
	h, value, err := decode(raw)
	if err != nil {
		return store.Item{}, damaged(key, err)
	}
	return h.item(key, slices.Clone(value)), nil
}

// Import puts items as they are, as the port says.
func (s *Store) Import(ctx context.Context, items ...store.Item) error {
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer s.leave()
	ops := make([]store.Op, len(items))
	for i, item := range items {
		ops[i] = store.Op{Kind: store.Put, Key: item.Key, Value: item.Value, Expires: item.Expires, Attempt: item.Attempt}
	}
	r := s.prepare(ops)
	r.imported = true
	for i := range items {
		r.versions[i] = items[i].Version
	}
	if err := s.decided(ctx, r); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}
