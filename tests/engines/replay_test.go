package engines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/tests/sim"
)

// replay does to a new store what a recording tells, one operation after the other, and gives the first answer that differs, or how many
// operations there were. Pages may be cut elsewhere: what they hold together may not differ.
func replay(ctx context.Context, s store.Store, recording sim.Recording) (operations int, err error) {
	for n, r := range recording {
		switch r.Method {
		case "get":
			err = get(ctx, s, r)
		case "peek":
			// A cheap read may be behind, and what the simulated one gave may be, too: it need but answer.
			_, err = s.Peek(ctx, r.Keys...)
		case "query":
			err = query(ctx, s, r)
		case "write":
			err = write(ctx, s, r, n%2 == 1)
		default:
			err = errors.New("an operation that nobody here knows")
		}
		if err != nil {
			return n, fmt.Errorf("operation %d, %s: %w", n, r.Method, err)
		}
	}
	return len(recording), nil
}

func get(ctx context.Context, s store.Store, r sim.Recorded) error {
	items, err := s.Get(ctx, r.Keys...)
	if err != nil {
		return err
	}
	return same(items, r.Items)
}

func query(ctx context.Context, s store.Store, r sim.Recorded) error {
	at := r.Range
	var items []store.Item
	for {
		page, err := s.Query(ctx, at)
		if err != nil || r.Err != nil {
			if !errors.Is(r.Err, store.ErrBadCursor) || !errors.Is(err, store.ErrBadCursor) {
				return fmt.Errorf("%+v: %s, and it was %s", r.Range, fmt.Sprint(err), fmt.Sprint(r.Err))
			}
			return nil
		}
		items = append(items, page.Items...)
		at.Cursor = page.Cursor
		if at.Limit > 0 {
			at.Limit = r.Range.Limit - len(items)
		}
		if page.Cursor == "" || r.Cursor != "" && len(items) >= len(r.Items) {
			break
		}
		if at.Limit <= 0 && r.Range.Limit > 0 {
			at.Limit = 1 // the page is full, and nothing may follow
		}
	}
	if err := same(items, r.Items); err != nil {
		return fmt.Errorf("%+v: %w", r.Range, err)
	}
	if at.Cursor == "" && r.Cursor != "" {
		return fmt.Errorf("%+v: it ends, and more followed", r.Range)
	}
	return nil
}

// write does a recorded write; each sends a single operation by WriteEach, which engines do in another way.
func write(ctx context.Context, s store.Store, r sim.Recorded, each bool) error {
	var versions []uint64
	var err error
	if each && len(r.Ops) == 1 && r.Ops[0].Kind != store.Check {
		var verdicts []store.Verdict
		if verdicts, err = s.WriteEach(ctx, r.Ops...); err == nil {
			versions, err = []uint64{verdicts[0].Version}, verdicts[0].Err
		}
	} else {
		versions, err = s.Write(ctx, r.Ops...)
	}
	got, want := store.AsConflict(err), store.AsConflict(r.Err)
	switch {
	case want == nil && r.Err != nil:
		return fmt.Errorf("the recording has an error that no engine must give: %w", r.Err)
	case got == nil && err != nil:
		return err
	case (got == nil) != (want == nil):
		return fmt.Errorf("%s, and it was %s", fmt.Sprint(err), fmt.Sprint(r.Err))
	case got != nil:
		if got.Op != want.Op || got.Cond != want.Cond {
			return fmt.Errorf("op %d fails, which wants %s; it was op %d, which wants %s", got.Op, got.Cond, want.Op, want.Cond)
		}
		return same([]store.Item{got.Standing}, []store.Item{want.Standing})
	case !slices.Equal(versions, r.Versions):
		return fmt.Errorf("versions %v, and they were %v", versions, r.Versions)
	}
	return nil
}

func same(got, want []store.Item) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d items, and there were %d", len(got), len(want))
	}
	for i := range got {
		a, b := got[i], want[i]
		if a.Key != b.Key || a.Version != b.Version || a.Attempt != b.Attempt || !a.Expires.Equal(b.Expires) || !bytes.Equal(a.Value, b.Value) {
			return fmt.Errorf("item %d is %s, and it was %s", i, shown(a), shown(b))
		}
	}
	return nil
}

func shown(i store.Item) string {
	return fmt.Sprintf("%s version=%d attempt=%d expires=%s %x", i.Key, i.Version, i.Attempt, i.Expires, i.Value)
}

// everything is all items of the partitions that a recording writes to.
func everything(ctx context.Context, s store.Store, recording sim.Recording) ([]store.Item, error) {
	partitions := map[string]bool{}
	for _, r := range recording {
		for _, op := range r.Ops {
			partitions[op.Key.Partition] = true
		}
	}
	var all []store.Item
	for _, partition := range slices.Sorted(maps.Keys(partitions)) {
		for r := (store.Range{Partition: partition}); ; {
			page, err := s.Query(ctx, r)
			if err != nil {
				return nil, err
			}
			all = append(all, page.Items...)
			if r.Cursor = page.Cursor; r.Cursor == "" {
				break
			}
		}
	}
	return all, nil
}
