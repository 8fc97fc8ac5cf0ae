package bench

import (
	"context"
	"sync/atomic"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Calls is what was asked of the store.
type Calls struct {
	Reads  int64 `json:"reads"`  // calls of Get, Peek and Query
	Items  int64 `json:"items"`  // that they gave
	Writes int64 `json:"writes"` // calls of Write and WriteEach
	Ops    int64 `json:"ops"`    // puts, deletes and checks in them
	Bytes  int64 `json:"bytes"`  // of the keys and values that were put
}

// Since is what was asked since an earlier look.
func (c Calls) Since(before Calls) Calls {
	return Calls{c.Reads - before.Reads, c.Items - before.Items, c.Writes - before.Writes, c.Ops - before.Ops, c.Bytes - before.Bytes}
}

// counted counts what passes to a store.
type counted struct {
	store.Engine
	reads, items, writes, ops, bytes atomic.Int64
}

func (c *counted) calls() Calls {
	return Calls{c.reads.Load(), c.items.Load(), c.writes.Load(), c.ops.Load(), c.bytes.Load()}
}

func (c *counted) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := c.Engine.Get(ctx, keys...)
	c.read(items)
	return items, err
}

func (c *counted) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	items, err := c.Engine.Peek(ctx, keys...)
	c.read(items)
	return items, err
}

func (c *counted) Query(ctx context.Context, r store.Range) (store.Page, error) {
	page, err := c.Engine.Query(ctx, r)
	c.read(page.Items)
	return page, err
}

func (c *counted) read(items []store.Item) {
	c.reads.Add(1)
	n := 0
	for i := range items {
		if items[i].Exists() {
			n++
		}
	}
	c.items.Add(int64(n))
}

func (c *counted) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	c.wrote(ops)
	return c.Engine.Write(ctx, ops...)
}

func (c *counted) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	c.wrote(ops)
	return c.Engine.WriteEach(ctx, ops...)
}

func (c *counted) wrote(ops []store.Op) {
	c.writes.Add(1)
	c.ops.Add(int64(len(ops)))
	size := 0
	for i := range ops {
		if ops[i].Kind == store.Put {
			size += len(ops[i].Key.Partition) + len(ops[i].Key.Sort) + len(ops[i].Value)
		}
	}
	c.bytes.Add(int64(size))
}
