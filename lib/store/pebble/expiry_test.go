package pebble

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// idle gives a store that sweeps only when the test does.
func idle(t *testing.T, memTable uint64) *Store {
	t.Helper()
	s, err := Open(Config{
		Dir: "store", FS: vfs.NewMem(), Logger: slog.New(slog.DiscardHandler), SweepEvery: time.Hour, memTable: memTable,
	})
	mustNot(t, err)
	t.Cleanup(func() { mustNot(t, s.Close()) })
	return s
}

func sweepAll(t *testing.T, s *Store, now time.Time) (deleted, rounds int) {
	t.Helper()
	var pass expiryPass
	for more := true; more; rounds++ {
		before := pass.deleted
		var err error
		more, err = s.sweep(t.Context(), now, &pass)
		mustNot(t, err)
		if n := pass.deleted - before; n > sweepRound {
			t.Fatalf("a round deleted %d items", n)
		}
	}
	return pass.deleted, rounds
}

// entries counts the entries of all times.
func entries(t *testing.T, s *Store) int {
	t.Helper()
	all, err := s.due(nil, 1<<60)
	mustNot(t, err)
	return len(all)
}

func expiring(k store.Key, expires time.Time) store.Op {
	return store.Op{Kind: store.Put, Key: k, Value: make([]byte, 100), Expires: expires}
}

func TestSweepDeletesWhatHasExpiredAndOnlyThat(t *testing.T) {
	s := idle(t, 0)
	ctx, now := t.Context(), time.Unix(2_000_000_000, 0)
	expires := map[string]time.Time{
		"long ago": now.Add(-time.Hour), "just now": now, "a moment ago": now.Add(-time.Nanosecond),
		"in a moment": now.Add(time.Nanosecond), "tomorrow": now.Add(24 * time.Hour), "never": {},
	}
	gone := map[string]bool{"long ago": true, "just now": true, "a moment ago": true}
	for name, at := range expires {
		for n := range 300 {
			_, err := s.WriteEach(ctx, expiring(store.Key{Partition: name, Sort: fmt.Sprint(n)}, at))
			mustNot(t, err)
		}
	}
	deleted, rounds := sweepAll(t, s, now)
	if deleted != 900 || rounds < 2 {
		t.Errorf("%d items deleted in %d rounds, want 900 in more than one", deleted, rounds)
	}
	for name := range expires {
		page, err := s.Query(ctx, store.Range{Partition: name})
		mustNot(t, err)
		if want := 300; gone[name] && len(page.Items) != 0 || !gone[name] && len(page.Items) != want {
			t.Errorf("%s: %d items are left", name, len(page.Items))
		}
	}
	if deleted, _ := sweepAll(t, s, now); deleted != 0 {
		t.Errorf("a second pass deleted %d items again", deleted)
	}
}

// TestSweepLooksAgain lets an item move on after its entry was made.
func TestSweepLooksAgain(t *testing.T) {
	ctx, now := t.Context(), time.Unix(2_000_000_000, 0)
	old := expiring(at("a"), now.Add(-time.Hour))
	for name, c := range map[string]struct {
		then            []store.Op
		deleted, remain int // entries that remain
	}{
		"left alone":              {nil, 1, 0},
		"deleted":                 {[]store.Op{{Kind: store.Delete, Key: at("a")}}, 0, 0},
		"written again":           {[]store.Op{expiring(at("a"), time.Time{})}, 0, 0},
		"written again, to live":  {[]store.Op{expiring(at("a"), now.Add(time.Second))}, 0, 1},
		"deleted, and made again": {[]store.Op{{Kind: store.Delete, Key: at("a")}, expiring(at("a"), time.Time{})}, 0, 0},
		"made again, to live": {
			[]store.Op{{Kind: store.Delete, Key: at("a")}, expiring(at("a"), now.Add(time.Second))}, 0, 1,
		},
		"for ever, then to live": {
			[]store.Op{expiring(at("a"), time.Time{}), expiring(at("a"), now.Add(time.Second))}, 0, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := idle(t, 0)
			for _, op := range append([]store.Op{old}, c.then...) {
				_, err := s.Write(ctx, op)
				mustNot(t, err)
			}
			before, err := s.Get(ctx, at("a"))
			mustNot(t, err)
			if deleted, _ := sweepAll(t, s, now); deleted != c.deleted {
				t.Errorf("%d items deleted, want %d", deleted, c.deleted)
			}
			after, err := s.Get(ctx, at("a"))
			mustNot(t, err)
			if c.deleted == 0 && after[0].Version != before[0].Version || c.deleted == 1 && after[0].Exists() {
				t.Errorf("before %+v, after %+v", before[0], after[0])
			}
			if n := entries(t, s); n != c.remain {
				t.Errorf("%d entries remain, want %d", n, c.remain)
			}
			// Whatever it was, it goes when its time comes, and its entry with it.
			sweepAll(t, s, now.Add(time.Hour))
			last, err := s.Get(ctx, at("a"))
			mustNot(t, err)
			if n := entries(t, s); n != 0 || last[0].Exists() && !last[0].Expires.IsZero() {
				t.Errorf("an hour later %d entries and %+v", n, last[0])
			}
		})
	}
}

// TestOneEntryForManyWrites holds what a put with an expiry costs: nothing more, when it does not expire sooner.
func TestOneEntryForManyWrites(t *testing.T) {
	s := idle(t, 0)
	ctx, now := t.Context(), time.Unix(2_000_000_000, 0)
	for n := range 5 {
		_, err := s.Write(ctx, expiring(at("a"), now.Add(time.Duration(n+1)*time.Hour)))
		mustNot(t, err)
	}
	if n := entries(t, s); n != 1 {
		t.Errorf("five puts that expire later and later left %d entries, want 1", n)
	}
	_, err := s.WriteEach(ctx, expiring(at("a"), now.Add(-time.Hour)))
	mustNot(t, err)
	if deleted, _ := sweepAll(t, s, now); deleted != 1 {
		t.Error("an item that was made to expire sooner was not found")
	}
}

// TestAClosedStoreExpiresNothing asks for a pass when Pebble is gone.
func TestAClosedStoreExpiresNothing(t *testing.T) {
	s := idle(t, 0)
	_, err := s.Write(t.Context(), expiring(store.Key{Partition: "p", Sort: "-"}, time.Unix(1000, 0)))
	mustNot(t, err)
	mustNot(t, s.Close())
	if deleted, err := s.Expire(t.Context()); deleted != 0 || !errors.Is(err, store.ErrClosed) {
		t.Errorf("%d deleted, %v", deleted, err)
	}
}

// TestWhatExpiresBehindAPassWaitsForTheNext has an item come to expire before what a pass has already looked at.
func TestWhatExpiresBehindAPassWaitsForTheNext(t *testing.T) {
	s := idle(t, 0)
	ctx, now := t.Context(), time.Unix(2_000_000_000, 0)
	put := func(n int, before time.Duration) {
		t.Helper()
		_, err := s.WriteEach(ctx, expiring(store.Key{Partition: "p", Sort: fmt.Sprintf("%05d", n)}, now.Add(-before)))
		mustNot(t, err)
	}
	for n := range sweepRound + 10 {
		put(n, time.Minute)
	}
	var pass expiryPass
	if more, err := s.sweep(ctx, now, &pass); err != nil || !more || pass.deleted != sweepRound {
		t.Fatalf("the first round deleted %d items, more %t (%v)", pass.deleted, more, err)
	}
	put(sweepRound+10, time.Hour)
	if more, err := s.sweep(ctx, now.Add(-2*time.Hour), &pass); err != nil || more || pass.deleted != sweepRound {
		t.Errorf("by a clock that was set back, %d items were deleted, more %t (%v)", pass.deleted, more, err)
	}
	if more, err := s.sweep(ctx, now, &pass); err != nil || more || pass.deleted != sweepRound+10 {
		t.Errorf("the pass ended with %d items, more %t (%v)", pass.deleted, more, err)
	}
	if deleted, _ := sweepAll(t, s, now); deleted != 1 || entries(t, s) != 0 {
		t.Errorf("the next pass deleted %d items, and left %d entries", deleted, entries(t, s))
	}
}

// TestFolderIsBoundedByExpiry writes many times what lives at any moment: background sweeps and compactions must give the
// room back.
func TestFolderIsBoundedByExpiry(t *testing.T) {
	mem := vfs.NewMem()
	ctx, cancelled := t.Context(), time.After(10*time.Minute)
	s, err := Open(Config{Dir: "store", FS: mem, SweepEvery: time.Millisecond, memTable: 256 << 10})
	mustNot(t, err)
	defer func() { mustNot(t, s.Close()) }()
	value := make([]byte, 1000)
	for i := range value {
		value[i] = byte(i * i >> 3) // not to be compressed away
	}
	const total = 20_000
	for n := 0; n < total; n += 100 {
		var ops []store.Op
		for i := range 100 {
			op := expiring(store.Key{Partition: fmt.Sprint(n % 700), Sort: fmt.Sprint(n + i)}, time.Now().Add(-time.Hour))
			op.Value = append([]byte(fmt.Sprint(n+i)), value...)
			ops = append(ops, op)
		}
		_, err := s.WriteEach(ctx, ops...)
		mustNot(t, err)
	}
	mustNot(t, s.db.Flush())
	for left := uint64(1); left > 0; {
		m := s.db.Metrics()
		left = 0
		for n := 0; n < 700; n += 100 {
			page, err := s.Query(ctx, store.Range{Partition: fmt.Sprint(n), Limit: 1})
			mustNot(t, err)
			left += uint64(len(page.Items))
		}
		if used := m.DiskSpaceUsage(); used > 4<<20 {
			left += used
		}
		select {
		case <-cancelled:
			t.Fatalf("after %d bytes of expired items, the folder holds %d", total*len(value), m.DiskSpaceUsage())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
