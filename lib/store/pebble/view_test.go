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

// A folder that is refused for its damage gets no file, and no lock where it had none: whoever looks into it later, or copies it, finds what
// the damage has left.
func TestFault49_a_folder_that_is_refused_gets_no_lock_file(t *testing.T) {
	one := func(dir, pattern string) string {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, found, err)
		}
		return found[0]
	}
	for name, change := range map[string]func(dir string) error{
		"of a newer Belfry":   func(dir string) error { return os.WriteFile(filepath.Join(dir, marker), []byte("9\n"), 0o600) },
		"no store of ours":    func(dir string) error { return os.Remove(filepath.Join(dir, marker)) },
		"without its marker":  func(dir string) error { return os.Remove(one(dir, "marker.manifest.*")) },
		"without its list":    func(dir string) error { return os.Remove(one(dir, "MANIFEST-*")) },
		"with a damaged list": func(dir string) error { return os.Truncate(one(dir, "MANIFEST-*"), 10) },
		"without its marks":   func(dir string) error { return os.Truncate(filepath.Join(dir, marker), 0) },
		"with an empty list":  func(dir string) error { return os.Truncate(one(dir, "MANIFEST-*"), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := used(t)
			mustNot(t, change(dir))
			mustNot(t, os.Remove(filepath.Join(dir, "LOCK")))
			stays := contents(t, dir)
			s, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				mustNot(t, s.Close())
				t.Fatal("it was opened")
			}
			if now := contents(t, dir); !maps.Equal(now, stays) {
				t.Errorf("%v: %q are there, of %q, or they have changed", err, slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(stays)))
			}
		})
	}
}
