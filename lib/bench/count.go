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

	durable func(store.Op) // told of each op that is done; nil: nobody. Set before anything works
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
	versions, err := c.Engine.Write(ctx, ops...)
	if err == nil && c.durable != nil {
		for i := range ops {
			c.durable(ops[i])
		}
	}
	return versions, err
}

func (c *counted) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	c.wrote(ops)
	verdicts, err := c.Engine.WriteEach(ctx, ops...)
	if c.durable != nil {
		for i := range verdicts {
			if verdicts[i].Err == nil {
				c.durable(ops[i])
			}
		}
	}
	return verdicts, err
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
