package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
)

// TestMain lets the test binary be the second process in TestLock.
func TestMain(m *testing.M) {
	if dir := os.Getenv("BELFRY_TEST_OPEN"); dir != "" {
		_, err := Open(Config{Dir: dir})
		fmt.Println(errors.Is(err, ErrLocked), err)
		return
	}
	os.Exit(m.Run())
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openOn(t, vfs.NewMem()) })
	storetest.RunPortable(t, func(t *testing.T) store.Engine { return openOn(t, vfs.NewMem()) })
}

// TestStoreOfTables holds the port when nearly all is read from tables, with flushes and compactions all the time.
func TestStoreOfTables(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		s, err := Open(Config{Dir: "store", FS: vfs.NewMem(), SweepEvery: time.Millisecond, memTable: 16 << 10})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second store in this process: %v", err)
	}
	second := exec.Command(os.Args[0])
	second.Env = append(os.Environ(), "BELFRY_TEST_OPEN="+dir)
	out, err := second.Output()
	if err != nil || !bytes.HasPrefix(out, []byte("true")) || !bytes.Contains(out, []byte(dir)) {
		t.Errorf("a second process: %s, %v", out, err)
	}
	mustNot(t, s.Close())
	s, err = Open(Config{Dir: dir})
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	mustNot(t, s.Close())
}

func TestFormat(t *testing.T) {
	for name, c := range map[string]struct {
		file, holds string
		word        string
	}{
		"newer":     {marker, "2\n", "newer"},
		"nonsense":  {marker, "one", `"one"`},
		"empty":     {marker, "", marker},
		"no marker": {"MANIFEST-000001", "x", "no marker"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			mustNot(t, fsys.MkdirAll("store", 0o700))
			f, err := fsys.Create("store/"+c.file, vfs.WriteCategoryUnspecified)
			mustNot(t, err)
			_, err = f.Write([]byte(c.holds))
			mustNot(t, errors.Join(err, f.Close()))
			_, err = Open(Config{Dir: "store", FS: fsys})
			if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.word) {
				t.Fatalf("got %v, want ErrFormat with %q in it", err, c.word)
			}
			names, err := fsys.List("store")
			mustNot(t, err)
			if len(names) != 1 { // no lock either
				t.Errorf("the refused folder was changed: %q", names)
			}
		})
	}
	if _, err := Open(Config{}); err == nil {
		t.Error("a store without a folder was opened")
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	file := t.TempDir() + "/file"
	mustNot(t, os.WriteFile(file, nil, 0o600))
	for _, dir := range []string{file, file + "/below"} {
		if _, err := Open(Config{Dir: dir}); err == nil || errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestReopen holds that versions, attempts and expiries outlive the process.
func TestReopen(t *testing.T) {
	ctx, fsys := t.Context(), vfs.NewMem()
	expires := time.Unix(4_000_000_000, 0).UTC()
	second := store.Op{Kind: store.Put, Key: at("a"), If: store.Version(1), Value: []byte("2"), Expires: expires, Attempt: 5}
	s := openOn(t, fsys)
	for _, op := range []store.Op{{Kind: store.Put, Key: at("a"), Value: []byte("1")}, second} {
		if _, err := s.Write(ctx, op); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		mustNot(t, s.Close())
		s = openOn(t, fsys)
		items, err := s.Get(ctx, at("a"))
		mustNot(t, err)
		if i := items[0]; i.Version != 2 || string(i.Value) != "2" || !i.Expires.Equal(expires) || i.Attempt != 5 {
			t.Fatalf("after a restart: %+v", i)
		}
		if v, err := s.Write(ctx, second); err != nil || v[0] != 2 {
			t.Fatalf("the own attempt after a restart: %v, %v", v, err)
		}
	}
	mustNot(t, s.Close())
}

func TestEncoding(t *testing.T) {
	for _, h := range []header{
		{version: 1}, {version: 1<<64 - 1, expires: 1<<62 - 1, attempt: 1<<64 - 1}, {version: 300, expires: 1}, {version: 2, attempt: 1},
	} {
		raw := append(appendHeader(nil, h), "value"...)
		if len(raw) > maxHeader+5 {
			t.Errorf("%+v takes %d bytes", h, len(raw)-5)
		}
		got, value, err := decode(raw)
		if err != nil || got != h || string(value) != "value" {
			t.Errorf("%+v came back as %+v with %q, %v", h, got, value, err)
		}
		for n := range len(raw) - 5 {
			if _, _, err := decode(raw[:n]); err == nil {
				t.Errorf("%+v, cut to %d bytes, was read", h, n)
			}
		}
		raw[0] |= 1 << 6
		if _, _, err := decode(raw); err == nil {
			t.Error("an unknown flag was read over")
		}
	}
	for _, k := range []store.Key{at("a"), {Partition: "\xff\xff", Sort: "\xff"}, {Partition: strings.Repeat("p", 2048), Sort: "s"}} {
		got, err := decodeKey(appendKey(nil, k.Partition, k.Sort))
		if err != nil || got != k {
			t.Errorf("%q came back as %q, %v", k, got, err)
		}
	}
	for _, raw := range [][]byte{nil, {itemSpace}, {2, 0, 1, 'a'}, {itemSpace, 0, 9, 'a'}} {
		if k, err := decodeKey(raw); err == nil {
			t.Errorf("%q was read as %q", raw, k)
		}
	}
}

func at(sort string) store.Key { return store.Key{Partition: "p", Sort: sort} }

func mustNot(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openOn(t *testing.T, fsys vfs.FS) *Store {
	t.Helper()
	s, err := Open(Config{Dir: "store", FS: fsys, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// disk is a file system in memory whose power can be cut, and whose writes can be made to fail or to hang.
type disk struct {
	*errorfs.FS
	mem  *vfs.MemFS
	rule atomic.Pointer[func(errorfs.Op) error]
}

func newDisk(mem *vfs.MemFS) *disk {
	d := &disk{mem: mem}
	d.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if rule := d.rule.Load(); rule != nil {
			return (*rule)(op)
		}
		return nil
	}))
	return d
}

// ReuseForWrite gives a file that fails as well, which that of the wrapped file system does not.
func (d *disk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.Rename(from, to); err != nil {
		return nil, err
	}
	return d.OpenReadWrite(to, c)
}

func (d *disk) set(rule func(errorfs.Op) error) { d.rule.Store(&rule) }

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

func ofLog(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }

// visible waits until Pebble shows the item, synced or not.
func visible(t *testing.T, s *Store, k store.Key) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		_, closer, err := s.db.Get(appendKey(nil, k.Partition, k.Sort))
		if err == nil {
			mustNot(t, closer.Close())
			return
		}
		if !errors.Is(err, pebble.ErrNotFound) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the write was never applied")
}
