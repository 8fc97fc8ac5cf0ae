package trace

import (
	"context"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Store gives a store whose calls are spans, where they are part of something that is recorded.
func Store(s store.Store) store.Store { return &traced{s} }

type traced struct{ store.Store }

func (t *traced) Get(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	ctx, span := Child(ctx, Client, "store get")
	items, err := t.Store.Get(ctx, keys...)
	ended(span, len(keys), err)
	return items, err
}

func (t *traced) Peek(ctx context.Context, keys ...store.Key) ([]store.Item, error) {
	ctx, span := Child(ctx, Client, "store peek")
	items, err := t.Store.Peek(ctx, keys...)
	ended(span, len(keys), err)
	return items, err
}

func (t *traced) Query(ctx context.Context, r store.Range) (store.Page, error) {
	ctx, span := Child(ctx, Client, "store query")
	page, err := t.Store.Query(ctx, r)
	ended(span, len(page.Items), err)
	return page, err
}

func (t *traced) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	ctx, span := Child(ctx, Client, "store write")
	versions, err := t.Store.Write(ctx, ops...)
	ended(span, len(ops), err)
	return versions, err
}

func (t *traced) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	ctx, span := Child(ctx, Client, "store write_each")
	verdicts, err := t.Store.WriteEach(ctx, ops...)
	ended(span, len(ops), err)
	return verdicts, err
}

// ended ends the span of a call over so many items. A conflict is an answer like others.
func ended(span *Span, items int, err error) {
	if span == nil {
		return
	}
	span.SetInt("belfry.items", int64(items))
	switch {
	case store.AsConflict(err) != nil:
		span.Set("belfry.result", "conflict")
	case err != nil:
		span.Fail(err.Error())
	}
	span.End()
}
