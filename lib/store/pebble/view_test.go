package pebble

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// TestReadChangesNothing reads what lies in a table and in a log that a crash left, and refuses what Open refuses; the folder stays as it is.
func TestReadChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   error
		items  []string
	}{
		"as a crash leaves it": {func(string) error { return nil }, nil, []string{"in a log", "in a table"}},
		"without a lock file":  {func(dir string) error { return os.Remove(filepath.Join(dir, "LOCK")) }, nil, []string{"in a log", "in a table"}},
		"new": {func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700))
		}, nil, nil},
		"of a newer Belfry": {func(dir string) error { return os.WriteFile(filepath.Join(dir, marker), []byte("9\n"), 0o600) }, ErrFormat, nil},
		"no store of ours":  {func(dir string) error { return os.Remove(filepath.Join(dir, marker)) }, ErrFormat, nil},
		"a lost table": {func(dir string) error {
			tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
			return errors.Join(err, os.Remove(tables[0]))
		}, store.ErrDamaged, nil},
		"an empty table": {func(dir string) error {
			tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
			return errors.Join(err, os.Truncate(tables[0], 0))
		}, store.ErrDamaged, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := used(t)
			mustNot(t, c.change(dir))
			stays := contents(t, dir)
			var got []string
			err := Read(t.Context(), dir, nil, func(item store.Item) error {
				got = append(got, item.Sort)
				return nil
			})
			if !errors.Is(err, c.want) || c.want == nil && !slices.Equal(got, c.items) {
				t.Errorf("%q, %v: want %q, %v", got, err, c.items, c.want)
			}
			if now := contents(t, dir); !maps.Equal(now, stays) {
				t.Errorf("%q are there, of %q, or they have changed", slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(stays)))
			}
		})
	}
}

func TestReadRefusesAFolderThatIsOpen(t *testing.T) {
	dir := used(t)
	s, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	mustNot(t, err)
	if err := Read(t.Context(), dir, nil, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("%v, want ErrLocked", err)
	}
	mustNot(t, s.Close())
	want := errors.New("enough")
	if err := Read(t.Context(), dir, nil, func(store.Item) error {
		if _, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, ErrLocked) {
			t.Errorf("opened while it is read: %v", err)
		}
		return want
	}); !errors.Is(err, want) {
		t.Errorf("%v, want the callee's error", err)
	}
	s, err = Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	mustNot(t, err)
	mustNot(t, s.Close())
}
