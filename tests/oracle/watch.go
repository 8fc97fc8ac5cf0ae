package oracle

import (
	"context"
	"sync"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Watch gives a store that tells of each change, in the order in which they are done: what Judge.Stored wants to know. It does one
// write at a time.
func Watch(s store.Store, told func(before, after store.Item)) store.Store {
	return &watched{Store: s, told: told}
}

type watched struct {
	store.Store
	told func(before, after store.Item)
	mu   sync.Mutex // held over a write: its changes are told before the next one's
}

func (w *watched) Write(ctx context.Context, ops ...store.Op) ([]uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(ctx, ops)
}

func (w *watched) WriteEach(ctx context.Context, ops ...store.Op) ([]store.Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	verdicts := make([]store.Verdict, len(ops))
	for i, op := range ops {
		versions, err := w.write(ctx, []store.Op{op})
		if err != nil {
			verdicts[i].Err = err
			continue
		}
		verdicts[i].Version = versions[0]
	}
	return verdicts, nil
}

func (w *watched) write(ctx context.Context, ops []store.Op) ([]uint64, error) {
	keys := make([]store.Key, len(ops))
	for i, op := range ops {
		keys[i] = op.Key
	}
	before, err := w.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	versions, err := w.Store.Write(ctx, ops...)
	if err != nil {
		return nil, err
	}
	after, err := w.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i := range ops {
		if before[i].Version != after[i].Version {
			w.told(before[i], after[i])
		}
	}
	return versions, nil
}
