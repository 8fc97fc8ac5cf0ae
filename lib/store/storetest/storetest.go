// Package storetest is the conformance suite of the store port. An engine passes Run unmodified; the suite only knows how to create the
// engine.
package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Run holds the engine to the port. open gives an empty store; the suite closes it. No part of the suite has a time limit of its own:
// an engine may be slow, and a call that never returns ends with the limit of go test.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"a_put_reads_back_whole", putReadsBack},
		{"what_is_not_there_has_version_0", absentReads},
		{"conditions_of_every_kind", conditions},
		{"a_conflict_carries_what_stands", conflictCarries},
		{"Fault06_of_two_that_put_where_nothing_stood_one_wins", onePutWins},
		{"Fault02_a_stale_write_is_refused", staleWrite},
		{"a_deleted_item_begins_anew", deletedBeginsAnew},
		{"Fault01_own_attempt_is_success", ownAttempt},
		{"Fault01_own_attempt_of_a_whole_write_is_success", ownAttemptOfWrite},
		{"a_write_is_whole_or_not_at_all", writeWhole},
		{"readers_never_see_half_a_write", neverHalf},
		{"counters_lose_no_increment", counters},
		{"verdicts_are_independent", verdicts},
		{"keys_are_ordered_as_bytes", keyOrder},
		{"partitions_are_apart", partitionsApart},
		{"bounds_and_direction", bounds},
		{"Fault19_every_page_is_read", pages},
		{"pages_go_on_while_items_come_and_go", pagesMove},
		{"a_cursor_is_bound_to_its_range", cursors},
		{"sizes_at_and_over_each_limit", limits},
		{"malformed_calls_write_nothing", malformed},
		{"expiry_is_kept_and_never_needed", expiry},
		{"a_put_keeps_no_hold_on_its_value", valueIsCopied},
		{"a_context_that_is_over_writes_nothing", contextOver},
		{"a_closed_store_says_so", closed},
		{"linearizable_with_lost_answers", linearizable},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test.run(&fixture{T: t, Store: s})
		})
	}
}

// fixture is one fresh store, with calls that must succeed.
type fixture struct {
	*testing.T
	store.Store
}

func (f *fixture) get(k store.Key) store.Item {
	f.Helper()
	items, err := f.Get(f.Context(), k)
	if err != nil || len(items) != 1 {
		f.Fatalf("get %q: %d items, %v", k, len(items), err)
	}
	if items[0].Key != k {
		f.Fatalf("get %q gave the key %q", k, items[0].Key)
	}
	return items[0]
}

func (f *fixture) write(ops ...store.Op) []uint64 {
	f.Helper()
	versions, err := f.Write(f.Context(), ops...)
	if err != nil {
		f.Fatalf("write: %v", err)
	}
	if len(versions) != len(ops) {
		f.Fatalf("write gave %d versions for %d ops", len(versions), len(ops))
	}
	return versions
}

func (f *fixture) put(k store.Key, value string) uint64 {
	f.Helper()
	return f.write(put(k, store.Any, value))[0]
}

// refused wants a conflict at this op, and gives it.
func (f *fixture) refused(at int, ops ...store.Op) *store.Conflict {
	f.Helper()
	versions, err := f.Write(f.Context(), ops...)
	c := store.AsConflict(err)
	if c == nil {
		f.Fatalf("write gave %v, %v, want a conflict", versions, err)
	}
	if c.Op != at || c.Cond != ops[at].If || c.Standing.Key != ops[at].Key {
		f.Fatalf("conflict at op %d with %v on %q, want op %d with %v on %q",
			c.Op, c.Cond, c.Standing.Key, at, ops[at].If, ops[at].Key)
	}
	return c
}

// stands wants the item to hold this, at this version; version 0 wants it gone.
func (f *fixture) stands(k store.Key, version uint64, value string) {
	f.Helper()
	if got := f.get(k); got.Version != version || string(got.Value) != value {
		f.Fatalf("%q stands at version %d with %q, want %d with %q", k, got.Version, got.Value, version, value)
	}
}

// all reads a range to its end, and wants no page over its limits.
func (f *fixture) all(r store.Range) []store.Item {
	f.Helper()
	var items []store.Item
	seen := map[string]bool{}
	for {
		page, err := f.Query(f.Context(), r)
		if err != nil {
			f.Fatalf("query: %v", err)
		}
		bytes := 0
		for _, i := range page.Items {
			bytes += i.Size()
		}
		if r.Limit > 0 && len(page.Items) > r.Limit {
			f.Fatalf("a page of %d items, limit %d", len(page.Items), r.Limit)
		}
		if bytes > store.MaxPageBytes {
			f.Fatalf("a page of %d bytes", bytes)
		}
		items = append(items, page.Items...)
		if page.Cursor == "" {
			return items
		}
		if seen[page.Cursor] {
			f.Fatalf("the cursor %q came twice: the query does not advance", page.Cursor)
		}
		seen[page.Cursor] = true
		r.Cursor = page.Cursor
	}
}

func (f *fixture) sorts(r store.Range) []string {
	f.Helper()
	var sorts []string
	for _, i := range f.all(r) {
		sorts = append(sorts, i.Sort)
	}
	return sorts
}

func (f *fixture) is(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("got the error %v, want %v", err, want)
	}
}

func key(sort string) store.Key { return store.Key{Partition: "p", Sort: sort} }

func put(k store.Key, cond store.Cond, value string) store.Op {
	return store.Op{Kind: store.Put, Key: k, If: cond, Value: []byte(value)}
}

func remove(k store.Key, cond store.Cond) store.Op {
	return store.Op{Kind: store.Delete, Key: k, If: cond}
}

func check(k store.Key, cond store.Cond) store.Op {
	return store.Op{Kind: store.Check, Key: k, If: cond}
}

func tried(op store.Op, attempt uint64) store.Op {
	op.Attempt = attempt
	return op
}

func numbered(n int) []string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf("%06d", i))
	}
	return s
}

func reversed(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

func repeat(n int) string { return strings.Repeat("x", n) }
