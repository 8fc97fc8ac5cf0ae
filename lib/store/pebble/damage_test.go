package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// TestFault49_flipped_bit_in_the_log flips one bit in what was acknowledged, before the last writes: opening must not take
// that for the end of the log and drop what follows.
func TestFault49_flipped_bit_in_the_log(t *testing.T) {
	for name, writes := range map[string]int{"in a small log": 20, "in a log of several blocks": 400} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			s := openOn(t, mem)
			safe := 0
			for n := range writes {
				op := store.Op{Kind: store.Put, Key: at(fmt.Sprint(n)), Value: bytes.Repeat([]byte{7}, 300)}
				if _, err := s.Write(t.Context(), op); err != nil {
					t.Fatal(err)
				}
				if n == writes-5 {
					safe = len(largest(t, mem.CrashClone(vfs.CrashCloneCfg{}), ".log"))
				}
			}
			random := rand.New(rand.NewPCG(49, 1))
			for range 60 {
				clone := mem.CrashClone(vfs.CrashCloneCfg{})
				place := random.IntN(safe)
				largest(t, clone, ".log")[place] ^= 1 << random.IntN(8)
				s, err := Open(Config{Dir: "store", FS: clone, Logger: slog.New(slog.DiscardHandler)})
				if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "in store") {
					t.Errorf("a bit flipped at %d of %d: %v, want store.ErrDamaged and the folder", place, safe, err)
				}
				if err == nil {
					page, err := s.Query(t.Context(), store.Range{Partition: "p"})
					t.Logf("%d items of %d, %v", len(page.Items), writes, err)
					mustNot(t, s.Close())
				}
			}
			mustNot(t, s.Close())
		})
	}
}

// TestFault49_torn_tail leaves a part of a write behind the log's last sync, as a power cut does: it opens, with all that
// was acknowledged and nothing else.
func TestFault49_torn_tail(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	for n := range 20 {
		if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(fmt.Sprint(n)), Value: bytes.Repeat([]byte{7}, 300)}); err != nil {
			t.Fatal(err)
		}
	}
	before := len(largest(t, mem.CrashClone(vfs.CrashCloneCfg{}), ".log"))
	if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at("torn"), Value: bytes.Repeat([]byte{7}, 3000)}); err != nil {
		t.Fatal(err)
	}
	after := len(largest(t, mem.CrashClone(vfs.CrashCloneCfg{}), ".log"))
	if after <= before {
		t.Fatalf("the log grew from %d to %d bytes", before, after)
	}
	for torn := before; torn < after; torn += 97 {
		clone := mem.CrashClone(vfs.CrashCloneCfg{})
		log := largest(t, clone, ".log")
		clear(log[torn:])
		s := openOn(t, clone)
		page, err := s.Query(t.Context(), store.Range{Partition: "p"})
		mustNot(t, err)
		if len(page.Items) != 20 {
			t.Errorf("torn at %d of %d: %d items, want 20", torn, after, len(page.Items))
		}
		mustNot(t, s.Close())
	}
	mustNot(t, s.Close())
}

// TestFault49_flipped_bit_in_a_table flips one bit anywhere in a table: whoever opens or reads is told, or gets exactly what
// was written.
func TestFault49_flipped_bit_in_a_table(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	const items = 200
	for n := range items {
		op := store.Op{Kind: store.Put, Key: at(fmt.Sprintf("%06d", n)), Value: []byte(fmt.Sprintf("%d %0300d", n, n*n*n))}
		if _, err := s.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	mustNot(t, s.Close())
	random := rand.New(rand.NewPCG(49, 2))
	refusals := 0
	for range 60 {
		clone := mem.CrashClone(vfs.CrashCloneCfg{})
		table := largest(t, clone, ".sst")
		table[random.IntN(len(table))] ^= 1 << random.IntN(8)
		s, err := Open(Config{Dir: "store", FS: clone, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			refusals++
			continue
		}
		page, err := s.Query(t.Context(), store.Range{Partition: "p"})
		if err == nil && len(page.Items) != items {
			t.Errorf("%d items of %d, and no error", len(page.Items), items)
		}
		for n := range items {
			k := at(fmt.Sprintf("%06d", n))
			got, failed := s.Get(t.Context(), k)
			if failed != nil {
				err = failed
			} else if string(got[0].Value) != fmt.Sprintf("%d %0300d", n, n*n*n) {
				t.Errorf("%q reads as %q, and no error", k, got[0].Value)
			}
		}
		if err != nil {
			refusals++
		}
		mustNot(t, s.Close())
	}
	if refusals < 40 {
		t.Errorf("of 60 flipped bits, %d were noticed", refusals)
	}
}

// largest gives the bytes of the largest file of a kind, to be changed in place.
func largest(t *testing.T, mem *vfs.MemFS, suffix string) []byte {
	t.Helper()
	names, err := mem.List("store")
	mustNot(t, err)
	var data []byte
	for _, name := range names {
		if strings.HasSuffix(name, suffix) {
			b, err := mem.UnsafeGetFileDataBuffer("store/" + name)
			mustNot(t, err)
			if len(b) > len(data) {
				data = b
			}
		}
	}
	if len(data) == 0 {
		t.Fatalf("no %s among %q", suffix, names)
	}
	return data
}

// TestFault49_a_damaged_table_is_named damages each part of a table in turn, and lets it go missing or end too early: whoever reads is
// told that the store is damaged and in which file, it stays known, and Examine names the file and what it costs.
func TestFault49_a_damaged_table_is_named(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	const items = 400
	key := func(n int) store.Key { return at(fmt.Sprintf("%06d", n)) }
	for n := range items {
		if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: key(n), Value: []byte(fmt.Sprintf("%d %0300d", n, n*n*n))}); err != nil {
			t.Fatal(err)
		}
	}
	mustNot(t, s.Close())
	whole := len(largest(t, mem.CrashClone(vfs.CrashCloneCfg{}), ".sst"))
	if e := examined(t, mem.CrashClone(vfs.CrashCloneCfg{})); len(e.Damaged) != 0 || e.Tables == 0 || e.Held {
		t.Fatalf("a store that is well: %+v", e)
	}
	costs := map[string]bool{}
	places := []int{whole - 5, whole - 40} // in its end, by which all else is found
	for place := 20; place < whole; place += whole / 17 {
		places = append(places, place)
	}
	for _, place := range places {
		clone := mem.CrashClone(vfs.CrashCloneCfg{})
		largest(t, clone, ".sst")[place] ^= 4
		e := examined(t, clone)
		if len(e.Damaged) != 1 || !strings.HasSuffix(e.Damaged[0].File, ".sst") || e.Damaged[0].Cost == "" || e.Damaged[0].What == "" {
			t.Errorf("a bit flipped at %d of %d: %+v", place, whole, e.Damaged)
			continue
		}
		costs[strings.Join(strings.Fields(e.Damaged[0].Cost)[:2], " ")] = true
		file := e.Damaged[0].File
		s, err := Open(Config{Dir: "store", FS: clone, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Errorf("a bit flipped at %d of %d: %v", place, whole, err)
			continue
		}
		met := 0
		for n := range items {
			if _, err := s.Get(t.Context(), key(n)); err != nil {
				if met++; !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), file) {
					t.Fatalf("a read gave %v, want store.ErrDamaged and %s", err, file)
				}
				if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: key(n), Value: []byte("new"), If: store.Absent}); !errors.Is(err, store.ErrDamaged) {
					t.Fatalf("a write under a condition that cannot be looked at gave %v", err)
				}
				verdicts, err := s.WriteEach(t.Context(), store.Op{Kind: store.Put, Key: key(n), Value: []byte("new"), If: store.Absent})
				if err != nil || !errors.Is(verdicts[0].Err, store.ErrDamaged) {
					t.Fatalf("each of several gave %v, %v", verdicts, err)
				}
			}
		}
		if _, err := s.Query(t.Context(), store.Range{Partition: "p"}); err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("a query gave %v", err)
		}
		if err := s.Export(t.Context(), func(store.Item) error { return nil }); err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("an export gave %v", err)
		}
		if _, err := s.Get(t.Context(), at("nothing")); err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("what is not there: %v", err)
		}
		if met > 0 && !slices.Equal(s.Damaged(), []string{file}) {
			t.Errorf("after %d refused reads it remembers %q, want %s", met, s.Damaged(), file)
		}
		mustNot(t, s.Close())
	}
	for _, cost := range []string{"up to", "none of"} {
		if !costs[cost] {
			t.Errorf("no damage cost %q: %v", cost, costs)
		}
	}
}

func examined(t *testing.T, mem *vfs.MemFS) Examination {
	t.Helper()
	last := int64(0)
	e, err := Examine(t.Context(), "store", mem, func(read, of int64) {
		if last = read; read > of {
			t.Errorf("%d of %d bytes read", read, of)
		}
	})
	mustNot(t, err)
	if last != e.Bytes {
		t.Errorf("told of %d bytes, of %d", last, e.Bytes)
	}
	return e
}

// TestFault49_a_table_cut_short_or_gone is refused at the start, and named.
func TestFault49_a_table_cut_short_or_gone(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"gone":  os.Remove,
		"empty": func(path string) error { return os.Truncate(path, 0) },
		"half":  func(path string) error { return os.Truncate(path, 700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
			mustNot(t, err)
			for n := range 50 {
				if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(fmt.Sprint(n)), Value: bytes.Repeat([]byte{7}, 300)}); err != nil {
					t.Fatal(err)
				}
			}
			mustNot(t, s.Close())
			tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
			if err != nil || len(tables) != 1 {
				t.Fatal(tables, err)
			}
			mustNot(t, harm(tables[0]))
			number := strings.TrimSuffix(filepath.Base(tables[0]), ".sst")
			if _, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), number) {
				t.Errorf("%v, want store.ErrDamaged and %s", err, number)
			}
		})
	}
}

// TestFault49_expiry_goes_on_past_damage has items that have expired on both sides of a damaged block.
func TestFault49_expiry_goes_on_past_damage(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	const items = 400
	for n := range items {
		op := store.Op{Kind: store.Put, Key: at(fmt.Sprintf("%06d", n)), Value: []byte(fmt.Sprintf("%d %0300d", n, n*n*n)), Expires: time.Unix(int64(1000+n), 0)}
		if _, err := s.Write(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	mustNot(t, s.Close())
	clone := mem.CrashClone(vfs.CrashCloneCfg{})
	table := largest(t, clone, ".sst")
	table[len(table)/3] ^= 1
	s, err := Open(Config{Dir: "store", FS: clone, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(5000, 0) }, SweepEvery: time.Hour, headSets: 1})
	mustNot(t, err)
	deleted, err := s.Expire(t.Context())
	if err != nil || deleted == 0 || deleted == items {
		t.Errorf("%d of %d deleted, %v: want those that can be read", deleted, items, err)
	}
	if items, err := s.Get(t.Context(), at(fmt.Sprintf("%06d", items-1))); err != nil || items[0].Exists() {
		t.Errorf("the last one: %v, %v, want that it is gone", items, err)
	}
	mustNot(t, s.Close())
}
