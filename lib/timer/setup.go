package timer

import (
	"context"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Setup gives the layout of a store, and makes a new one with so many shards where there is none. A store that was set up
// keeps the layout it has. now is Unix ms: a new store owes no fire before it.
func Setup(ctx context.Context, s store.Store, shards int, now int64, newID func() uint64) (Layout, error) {
	layout, err := ReadLayout(ctx, s)
	if err != nil || layout.Shards != 0 {
		return layout, err
	}
	layout = Layout{Shards: shards}
	if !layout.Valid() {
		return Layout{}, fmt.Errorf("a layout of %d shards: want a power of two from 1 to %d", shards, Buckets)
	}
	value, err := record.Encode(layout)
	if err != nil {
		return Layout{}, err
	}
	id := newID()
	ops := []store.Op{{Kind: store.Put, Key: LayoutKey, If: store.Absent, Value: value, Attempt: id}}
	for n := range shards {
		begin := now - now%60_000 - 60_000 // a host whose clock is behind may arm the first timers in the minute before
		op, err := Shard{Number: n, Horizon: now, Watermark: now, Swept: [Sweeps]int64{begin, begin, begin}}.Put(id)
		if err != nil {
			return Layout{}, err
		}
		ops = append(ops, op)
	}
	_, err = s.Write(ctx, ops...)
	if conflict := store.AsConflict(err); conflict != nil && conflict.Standing.Key == LayoutKey {
		return layoutFrom(conflict.Standing) // another process was first
	}
	if err != nil {
		return Layout{}, fmt.Errorf("set up the store: %w", err)
	}
	return layout, nil
}

// ReadLayout gives the layout of a store as it stands, one of no shards where it was never set up.
func ReadLayout(ctx context.Context, s store.Store) (Layout, error) {
	items, err := s.Get(ctx, LayoutKey)
	if err != nil {
		return Layout{}, fmt.Errorf("read the layout: %w", err)
	}
	if !items[0].Exists() {
		return Layout{}, nil
	}
	return layoutFrom(items[0])
}

func layoutFrom(item store.Item) (Layout, error) {
	var layout Layout
	if err := record.Decode(item.Value, &layout); err != nil {
		return Layout{}, fmt.Errorf("the layout: %w", err)
	}
	if !layout.Valid() {
		return Layout{}, fmt.Errorf("the layout names %d shards: %w", layout.Shards, record.ErrBroken)
	}
	return layout, nil
}
