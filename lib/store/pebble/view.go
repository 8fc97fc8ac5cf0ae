package pebble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Read gives all items of a store's folder as Export does, also those that have expired, and changes nothing there. No process may have
// the folder open, and none can open it meanwhile. Errors are those of Open.
func Read(ctx context.Context, dir string, fsys vfs.FS, each func(store.Item) error) error {
	if fsys == nil {
		fsys = vfs.Default
	}
	lock, err := hold(fsys, dir)
	if err != nil {
		return fmt.Errorf("read the store in %s: %w", dir, lockedBy(err))
	}
	defer lock.Close()
	s := onlyRead()
	if s.db, err = s.view(dir, fsys); err != nil {
		return fmt.Errorf("read the store in %s: %w", dir, err)
	}
	if s.db == nil {
		return nil
	}
	return errors.Join(s.giveAll(ctx, s.db, each), s.db.Close())
}

// view opens a folder to be read; it gives nil for a new one.
func (s *Store) view(dir string, fsys vfs.FS) (*pebble.DB, error) {
	about, err := check(fsys, dir)
	if err != nil || !about.Exists {
		return nil, err
	}
	db, err := pebble.Open(dir, &pebble.Options{FS: view{fsys}, ReadOnly: true, MemTableSize: memTable, Logger: pebbleLog{s}})
	return db, refusedBy(err)
}

// check tells why a folder must not be opened, before anything in it is changed.
func check(fsys vfs.FS, dir string) (*pebble.DBDesc, error) {
	if _, err := checkFormat(fsys, dir); err != nil {
		return nil, err
	}
	if err := checkLogs(fsys, dir); err != nil {
		return nil, err
	}
	return checkList(fsys, dir)
}

// refusedUnlocked is check for a folder without a lock file: one that is refused is left as it was found, and gets none.
func refusedUnlocked(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(fsys.PathJoin(dir, "LOCK")); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	_, err := check(fsys, dir)
	return err
}

// onlyRead is a store that decides and writes nothing.
func onlyRead() *Store {
	return &Store{log: slog.New(slog.DiscardHandler), failed: make(chan struct{})}
}

// hold takes a folder's lock where it has one: none is made, since nobody holds what is not there.
func hold(fsys vfs.FS, dir string) (io.Closer, error) {
	if _, err := fsys.Stat(fsys.PathJoin(dir, "LOCK")); errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	return pebble.LockDirectory(dir, fsys)
}

// view is a folder in which nothing can be changed. Its lock is whoever opens it to take, or to do without.
type view struct{ vfs.FS }

var errView = errors.New("the folder is only looked at")

func (v view) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := v.FS.Open(name, opts...)
	if err != nil || !isTable(name) {
		return f, err
	}
	return &tableFile{File: f, name: v.FS.PathBase(name)}, nil
}

func (view) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (view) Create(string, vfs.DiskWriteCategory) (vfs.File, error) { return nil, errView }

func (view) OpenReadWrite(string, vfs.DiskWriteCategory, ...vfs.OpenOption) (vfs.File, error) {
	return nil, errView
}

func (view) ReuseForWrite(string, string, vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, errView
}

func (view) Link(string, string) error { return errView }

func (view) Rename(string, string) error { return errView }

func (view) MkdirAll(string, os.FileMode) error { return errView }

func (view) Remove(string) error { return errView }

func (view) RemoveAll(string) error { return errView }

func (v view) Unwrap() vfs.FS { return v.FS }
