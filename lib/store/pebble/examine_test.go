package pebble

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// TestFault49_a_listed_table_is_never_young harms a table in all ways that take its end, while the store is open and when it is not: it is
// damage, and what the store writes just now is none.
func TestFault49_a_listed_table_is_never_young(t *testing.T) {
	size := func(path string) int64 {
		info, err := os.Stat(path)
		mustNot(t, err)
		return info.Size()
	}
	flip := func(path string, fromEnd int) error {
		raw, err := os.ReadFile(path)
		mustNot(t, err)
		raw[len(raw)-fromEnd] ^= 0x10
		return os.WriteFile(path, raw, 0o600)
	}
	for name, harm := range map[string]func(path string) error{
		"emptied":             func(path string) error { return os.Truncate(path, 0) },
		"cut at the end":      func(path string) error { return os.Truncate(path, size(path)-100) },
		"cut by a byte":       func(path string) error { return os.Truncate(path, size(path)-1) },
		"longer":              func(path string) error { return os.Truncate(path, size(path)+1) },
		"a bit of its end":    func(path string) error { return flip(path, 3) },
		"a bit of its footer": func(path string) error { return flip(path, 20) },
		"gone":                os.Remove,
		"renamed":             func(path string) error { return os.Rename(path, path+".bak") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := used(t)
			s, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
			mustNot(t, err)
			unended := filepath.Join(dir, "999999.sst")
			mustNot(t, os.WriteFile(unended, []byte("begun"), 0o600))
			look := func(held bool, young int) Examination {
				t.Helper()
				e, err := Examine(t.Context(), dir, nil, func(int64, int64) {})
				mustNot(t, err)
				if e.Held != held || e.Young != young {
					t.Errorf("%+v: want that it is held: %v, and %d young", e, held, young)
				}
				return e
			}
			if e := look(true, 1); len(e.Damaged) != 0 || e.Tables == 0 {
				t.Fatalf("before: %+v", e)
			}
			tables, err := filepath.Glob(filepath.Join(dir, "0*.sst"))
			if err != nil || len(tables) == 0 {
				t.Fatal(tables, err)
			}
			harmed := tables[0]
			mustNot(t, harm(harmed))
			damaged := func(e Examination) {
				t.Helper()
				if len(e.Damaged) != 1 || e.Damaged[0].File != filepath.Base(harmed) || e.Damaged[0].Cost == "" || strings.Contains(e.Damaged[0].What, "000000") {
					t.Errorf("%+v, want %s alone", e.Damaged, filepath.Base(harmed))
				}
			}
			damaged(look(true, 1))
			s.stopSweep()
			s.sweeping.Wait()
			_ = s.db.Close() // without a merge, which would meet the damage
			mustNot(t, s.lock.Close())
			damaged(look(false, 0))
		})
	}
}

// TestFault49_a_list_damaged_while_the_store_is_open is told at once: the next start would be refused.
func TestFault49_a_list_damaged_while_the_store_is_open(t *testing.T) {
	for pattern, harm := range map[string]func(path string) error{
		"marker.manifest.*": os.Remove,
		"MANIFEST-*":        func(path string) error { return os.Truncate(path, 10) },
	} {
		dir := used(t)
		s, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
		mustNot(t, err)
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, path := range paths {
			mustNot(t, harm(path))
		}
		e, err := Examine(t.Context(), dir, nil, func(int64, int64) {})
		mustNot(t, err)
		if len(e.Damaged) != 1 || !strings.HasPrefix(e.Damaged[0].File, strings.Trim(pattern, ".-*")) {
			t.Errorf("%s: %+v", pattern, e.Damaged)
		}
		mustNot(t, s.Close())
	}
}

// TestFault49_a_store_at_work_is_well examines a store that flushes and merges all the while: what it writes and deletes is no damage.
func TestFault49_a_store_at_work_is_well(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler), memTable: 64 << 10})
	mustNot(t, err)
	wrote := make(chan error, 1)
	go func() {
		for n := range 1500 {
			if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(fmt.Sprint(n % 300)), Value: bytes.Repeat([]byte{byte(n)}, 5000)}); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	tables := 0
	for working, rounds := true, 0; working; rounds++ {
		select {
		case err := <-wrote:
			mustNot(t, err)
			working = false
		default:
		}
		e, err := Examine(t.Context(), dir, nil, func(int64, int64) {})
		mustNot(t, err)
		tables += e.Tables
		if len(e.Damaged) != 0 {
			t.Fatalf("round %d: %+v", rounds, e)
		}
	}
	if tables == 0 {
		t.Error("no table was read")
	}
	mustNot(t, s.Close())
}
