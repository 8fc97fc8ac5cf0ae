package pebble

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// used is a folder on the disk with a table and a log that both hold items.
func used(t *testing.T) (dir string) {
	t.Helper()
	mem := vfs.NewCrashableMem()
	s := openOn(t, mem)
	put := func(sort string) {
		if _, err := s.Write(t.Context(), store.Op{Kind: store.Put, Key: at(sort), Value: []byte(strings.Repeat(sort, 300))}); err != nil {
			t.Fatal(err)
		}
	}
	put("in a table")
	mustNot(t, s.db.Flush())
	put("in a log")
	dir = t.TempDir()
	if ok, err := vfs.Clone(mem.CrashClone(vfs.CrashCloneCfg{}), vfs.Default, "store", dir); !ok || err != nil {
		t.Fatal(ok, err)
	}
	mustNot(t, s.Close())
	return dir
}

// contents are all files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	mustNot(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var raw []byte
			raw, err = os.ReadFile(filepath.Join(dir, path))
			all[path] = string(raw)
		}
		return err
	}))
	return all
}

// TestFault49_a_store_without_its_marker loses the empty file that says which list of tables counts, alone or with others: the folder is
// no new one, neither for who opens it nor for who examines it, and stays as it is.
func TestFault49_a_store_without_its_marker(t *testing.T) {
	const markers = "marker.manifest.*"
	for name, c := range map[string]struct {
		lost []string
		want error
	}{
		"alone":                         {[]string{markers}, store.ErrDamaged},
		"with all tables":               {[]string{markers, "*.sst"}, store.ErrDamaged},
		"with all logs":                 {[]string{markers, "*.log"}, store.ErrDamaged},
		"with all lists":                {[]string{markers, "MANIFEST-*", "synced.*"}, store.ErrDamaged},
		"with all but its lists":        {[]string{markers, "*.sst", "*.log", "OPTIONS-*", "marker.*"}, store.ErrDamaged},
		"with all but its tables":       {[]string{markers, "MANIFEST-*", "synced.*", "*.log", "OPTIONS-*", "marker.*"}, store.ErrDamaged},
		"with all but its logs":         {[]string{markers, "MANIFEST-*", "synced.*", "*.sst", "OPTIONS-*", "marker.*"}, store.ErrDamaged},
		"with the format":               {[]string{markers, marker}, ErrFormat},
		"with the format and the lists": {[]string{markers, marker, "MANIFEST-*", "synced.*"}, ErrFormat},
		"with all but its options":      {[]string{markers, "MANIFEST-*", "synced.*", "*.sst", "*.log", "marker.*"}, store.ErrDamaged},
		"with all but the other marker": {[]string{markers, "MANIFEST-*", "synced.*", "*.sst", "*.log", "OPTIONS-*"}, store.ErrDamaged},
		"with all that Pebble made":     {[]string{markers, "MANIFEST-*", "synced.*", "*.sst", "*.log", "OPTIONS-*", "marker.*"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := used(t)
			for _, pattern := range c.lost {
				paths, err := filepath.Glob(filepath.Join(dir, pattern))
				mustNot(t, err)
				for _, path := range paths {
					mustNot(t, os.Remove(path))
				}
			}
			stays := contents(t, dir)
			e, err := Examine(t.Context(), dir, nil, func(int64, int64) {})
			mustNot(t, err)
			if errors.Is(c.want, store.ErrDamaged) && (len(e.Damaged) == 0 || e.Damaged[0].File != currentList) {
				t.Errorf("examined: %+v", e)
			}
			if now := contents(t, dir); !maps.Equal(now, stays) {
				t.Errorf("the examination left %d files of %d, or changed them", len(now), len(stays))
			}
			s, err := Open(Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
			if c.want == nil {
				mustNot(t, err)
				mustNot(t, s.Close())
				return
			}
			if !errors.Is(err, c.want) {
				t.Errorf("opened: %v, want %v", err, c.want)
			}
			if errors.Is(err, store.ErrDamaged) && !strings.Contains(err.Error(), currentList) {
				t.Errorf("%v does not name the file", err)
			}
			if now := contents(t, dir); !maps.Equal(now, stays) {
				t.Errorf("opening left %d files of %d, or changed them", len(now), len(stays))
			}
		})
	}
}
