package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// RunPortable holds the engine to the port of moves. open gives an empty store; the suite closes it.
func RunPortable(t *testing.T, open func(t *testing.T) store.Engine) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, from, to store.Engine)
	}{
		{"what_is_imported_is_what_was_exported", movesWhole},
		{"an_export_is_of_one_instant", oneInstant},
		{"versions_go_on_from_what_was_imported", versionsGoOn},
		{"a_failing_callee_ends_the_export", exportEnds},
		{"a_closed_store_exports_nothing", closedExport},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			from, to := open(t), open(t)
			t.Cleanup(func() {
				if err := errors.Join(from.Close(), to.Close()); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test.run(t, from, to)
		})
	}
}

// Items gives all that an engine holds, in the order of keys.
func Items(t *testing.T, s store.Portable) []store.Item {
	t.Helper()
	var items []store.Item
	if err := s.Export(t.Context(), func(item store.Item) error { items = append(items, item); return nil }); err != nil {
		t.Fatalf("export: %v", err)
	}
	slices.SortFunc(items, func(a, b store.Item) int {
		if c := strings.Compare(a.Partition, b.Partition); c != 0 {
			return c
		}
		return strings.Compare(a.Sort, b.Sort)
	})
	return items
}

func filled(t *testing.T, s store.Store) {
	t.Helper()
	for i := range 300 {
		key := store.Key{Partition: fmt.Sprint("p\x00\xff", i%7), Sort: fmt.Sprint("s\xfe", i)}
		op := store.Op{Kind: store.Put, Key: key, Value: []byte(strings.Repeat("x", i*3)), Attempt: uint64(i)}
		if i%3 == 0 {
			op.Expires = time.Unix(4_000_000_000+int64(i), 0)
		}
		for range 1 + i%4 {
			if _, err := s.Write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func movesWhole(t *testing.T, from, to store.Engine) {
	filled(t, from)
	want := Items(t, from)
	if len(want) != 300 {
		t.Fatalf("%d items were exported, want 300", len(want))
	}
	for batch := range slices.Chunk(want, 64) {
		if err := to.Import(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
	got := Items(t, to)
	same := func(a, b store.Item) bool {
		return a.Key == b.Key && a.Version == b.Version && string(a.Value) == string(b.Value) && a.Expires.Equal(b.Expires) && a.Attempt == b.Attempt
	}
	if !slices.EqualFunc(want, got, same) {
		t.Errorf("%d items were imported that are not as they were exported", len(got))
	}
}

// oneInstant writes two items together again and again: an export that mixes instants shows them apart. Its callee writes,
// too, which the export must not see.
func oneInstant(t *testing.T, from, _ store.Engine) {
	a, b := store.Key{Partition: "a", Sort: "1"}, store.Key{Partition: "zz", Sort: "1"}
	pair := func() error {
		_, err := from.Write(t.Context(), put(a, store.Any, "x"), put(b, store.Any, "x"))
		return err
	}
	filled(t, from)
	if err := pair(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			err = pair()
		}
		done <- err
	}()
	for range 20 {
		seen := map[store.Key]uint64{}
		if err := from.Export(t.Context(), func(item store.Item) error {
			seen[item.Key] = item.Version
			if len(seen)%100 == 0 {
				return pair()
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 302 || seen[a] != seen[b] {
			t.Fatalf("%d items, and the two that are written together have versions %d and %d", len(seen), seen[a], seen[b])
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func versionsGoOn(t *testing.T, _, to store.Engine) {
	key := store.Key{Partition: "p", Sort: "s"}
	if err := to.Import(t.Context(), store.Item{Key: key, Version: 41, Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write(t.Context(), put(key, store.Version(40), "y")); store.AsConflict(err) == nil {
		t.Errorf("a write under an older version gave %v, want a conflict", err)
	}
	if versions, err := to.Write(t.Context(), put(key, store.Version(41), "y")); err != nil || versions[0] != 42 {
		t.Errorf("a write under the version that was imported gave %v, %v, want 42", versions, err)
	}
}

func exportEnds(t *testing.T, from, _ store.Engine) {
	filled(t, from)
	cause, calls := errors.New("no more"), 0
	if err := from.Export(t.Context(), func(store.Item) error { calls++; return cause }); !errors.Is(err, cause) || calls != 1 {
		t.Errorf("the export gave %v after %d calls, want its callee's error after one", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := from.Export(ctx, func(store.Item) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("the export whose context ended gave %v", err)
	}
}

func closedExport(t *testing.T, from, to store.Engine) {
	filled(t, from)
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	if err := to.Export(t.Context(), func(store.Item) error { return nil }); !errors.Is(err, store.ErrClosed) {
		t.Errorf("export of a closed store: %v", err)
	}
	if err := to.Import(t.Context(), store.Item{Key: store.Key{Partition: "p", Sort: "s"}, Version: 1}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("import into a closed store: %v", err)
	}
}
