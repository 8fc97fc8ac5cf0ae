package backup

import (
	"context"
	"io"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Target is where a backup goes: a store and a bucket that are empty and that nobody uses until all is done.
type Target struct {
	Store store.Engine
	Blobs *blob.Bucket
}

// Load makes the store of a backup again as it was, in whatever engine: for a store that moves while it is stopped. What it
// owes it owes still. After an error the target is good for nothing.
func Load(ctx context.Context, in io.Reader, into Target, told func(Count)) (About, Count, error) {
	r, err := Open(in)
	if err != nil {
		return About{}, Count{}, err
	}
	defer r.Close()
	to := sink{Target: into}
	if err := r.each(ctx, told, func(e Entry) error { return to.put(ctx, e) }); err != nil {
		return r.About, r.count, err
	}
	return r.About, r.count, to.flush(ctx)
}

// sink gathers items, so that one sync serves many.
type sink struct {
	Target
	items []store.Item
	bytes int
}

// sinkBytes and sinkItems are what it gathers at the most.
const (
	sinkBytes = 2 << 20
	sinkItems = 5000
)

func (s *sink) put(ctx context.Context, e Entry) error {
	if !e.Item.Exists() {
		return s.Blobs.Restore(ctx, e.Name, e.Data)
	}
	s.items = append(s.items, e.Item)
	if s.bytes += e.Item.Size(); s.bytes >= sinkBytes || len(s.items) >= sinkItems {
		return s.flush(ctx)
	}
	return nil
}

func (s *sink) flush(ctx context.Context) error {
	if len(s.items) == 0 {
		return nil
	}
	err := s.Store.Import(ctx, s.items...)
	clear(s.items)
	s.items, s.bytes = s.items[:0], 0
	return err
}
