package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// folder is a gocloud driver that keeps each object in a file, durably. The driver that comes with gocloud syncs nothing
// before it answers, and its check for an absent object is no single step with its rename.
//
// An object is written to a file under .tmp, synced, and then linked to its name: a crash leaves at its name either nothing
// or the whole object. What lies in .tmp at the start belongs to nobody and is removed. Then the directory is synced, and
// with its first use each directory above it; only then is the write acknowledged.
type folder struct {
	dir  string
	disk Disk

	// Held for reading while a directory is made and a file linked into it, for writing while empty ones are removed.
	pruning sync.RWMutex
	mu      sync.Mutex
	durable map[string]bool // directories whose own entry has been synced; bounded by being forgotten now and then
}

const (
	temporary  = ".tmp"
	maxDurable = 10_000
)

var (
	errExists        = errors.New("an object stands there")
	errUnimplemented = errors.New("not offered by files")
)

var _ driver.Bucket = (*folder)(nil)

func openFolder(disk Disk, dir string) (*folder, error) {
	f := &folder{dir: dir, disk: disk, durable: map[string]bool{}}
	if err := f.makeDurable(dir); err != nil {
		return nil, fmt.Errorf("open blob folder: %w", err)
	}
	tmp := filepath.Join(dir, temporary)
	if err := disk.RemoveAll(tmp); err != nil {
		return nil, fmt.Errorf("clear what an earlier process left: %w", err)
	}
	if err := disk.Mkdir(tmp); err != nil {
		return nil, fmt.Errorf("open blob folder: %w", err)
	}
	return f, nil
}

// makeDurable makes a directory, and those above it, and syncs the entry of each that this process has not yet seen synced:
// that it is there says nothing, its maker may have crashed, or not yet come to its sync.
func (f *folder) makeDurable(dir string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.makeDurableLocked(dir)
}

func (f *folder) makeDurableLocked(dir string) error {
	if f.durable[dir] {
		return nil
	}
	parent := filepath.Dir(dir)
	// Above the bucket's own folder, only what is missing is ours to make.
	_, err := f.disk.Stat(parent)
	if parent != dir && (len(dir) > len(f.dir) || errors.Is(err, fs.ErrNotExist)) {
		if err := f.makeDurableLocked(parent); err != nil {
			return err
		}
	}
	if err := f.disk.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := f.syncDir(parent); err != nil {
		return err
	}
	if len(f.durable) >= maxDurable {
		clear(f.durable)
	}
	f.durable[dir] = true
	return nil
}

func (f *folder) syncDir(dir string) error {
	d, err := f.disk.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// NewTypedWriter starts an object. It is there, whole and durable, when Close has returned nil.
func (f *folder) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	path, err := f.path(key)
	if err != nil {
		return nil, err
	}
	tmp, err := f.disk.CreateTemp(filepath.Join(f.dir, temporary))
	if err != nil {
		return nil, err
	}
	if opts.BeforeWrite != nil {
		if err := opts.BeforeWrite(func(any) bool { return false }); err != nil {
			return nil, errors.Join(err, f.discard(tmp))
		}
	}
	return &writer{File: tmp, ctx: ctx, folder: f, path: path, absent: opts.IfNotExist}, nil
}

func (f *folder) discard(tmp File) error { return errors.Join(tmp.Close(), f.disk.Remove(tmp.Name())) }

type writer struct {
	File
	ctx    context.Context //nolint:containedctx // gocloud hands the context of the write to its start and asks for it at its end
	folder *folder
	path   string
	absent bool
	failed error // of a Write: an object that lacks bytes must not appear
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	if err != nil {
		w.failed = err
	}
	return n, err
}

func (w *writer) Close() error {
	if err := errors.Join(w.ctx.Err(), w.failed); err != nil {
		return errors.Join(err, w.folder.discard(w.File))
	}
	err := errors.Join(w.Sync(), w.File.Close())
	if err == nil {
		err = w.folder.place(w.Name(), w.path, w.absent)
	}
	return errors.Join(err, ignoring(fs.ErrNotExist, w.folder.disk.Remove(w.Name())))
}

func ignoring(what, err error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// place gives a synced file its name, durably.
func (f *folder) place(tmp, path string, absent bool) error {
	f.pruning.RLock()
	defer f.pruning.RUnlock()
	dir := filepath.Dir(path)
	if err := f.makeDurable(dir); err != nil {
		return err
	}
	if !absent {
		if err := f.disk.Rename(tmp, path); err != nil {
			return err
		}
		return f.syncDir(dir)
	}
	err := f.disk.Link(tmp, path)
	if errors.Is(err, fs.ErrExist) {
		// The object's writer may not have come to its sync yet, and this answer tells that it is there.
		if err := f.syncDir(dir); err != nil {
			return err
		}
		return errExists
	}
	if err != nil {
		return err
	}
	if err := f.syncDir(dir); err != nil {
		// A failed sync may leave nothing for the next one to write: whoever tries again must link anew.
		return errors.Join(err, f.disk.Remove(path))
	}
	return nil
}

// Copy copies an object.
func (f *folder) Copy(ctx context.Context, dst, src string, opts *driver.CopyOptions) error {
	r, err := f.NewRangeReader(ctx, src, 0, -1, &driver.ReaderOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := f.NewTypedWriter(ctx, dst, "", &driver.WriterOptions{BeforeWrite: opts.BeforeCopy})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// Delete removes an object, and the directories that this leaves empty.
func (f *folder) Delete(_ context.Context, key string, opts *driver.DeleteOptions) error {
	path, err := f.path(key)
	if err != nil {
		return err
	}
	if opts.BeforeDelete != nil {
		if err := opts.BeforeDelete(func(any) bool { return false }); err != nil {
			return err
		}
	}
	if err := f.disk.Remove(path); err != nil {
		return err
	}
	f.prune(filepath.Dir(path))
	return nil
}

func (f *folder) prune(dir string) {
	for dir != f.dir {
		if inside, err := f.disk.ReadDir(dir, 1); err != nil || len(inside) > 0 {
			return
		}
		f.pruning.Lock()
		err := f.disk.Remove(dir) // refuses what has been filled since
		if err == nil {
			f.mu.Lock()
			delete(f.durable, dir)
			f.mu.Unlock()
		}
		f.pruning.Unlock()
		if err != nil {
			return
		}
		dir = filepath.Dir(dir)
	}
}

// Attributes tells size and time of an object.
func (f *folder) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	path, err := f.path(key)
	if err != nil {
		return nil, err
	}
	info, err := f.disk.Stat(path)
	if err != nil {
		return nil, err
	}
	return &driver.Attributes{ContentType: contentType, ModTime: info.ModTime(), Size: info.Size()}, nil
}

// ErrorCode sorts errors for gocloud.
func (f *folder) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errExists):
		return gcerrors.FailedPrecondition
	case errors.Is(err, fs.ErrNotExist):
		return gcerrors.NotFound
	case errors.Is(err, errName):
		return gcerrors.InvalidArgument
	case errors.Is(err, errUnimplemented):
		return gcerrors.Unimplemented
	case errors.Is(err, context.Canceled):
		return gcerrors.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return gcerrors.DeadlineExceeded
	default:
		return gcerrors.Unknown
	}
}

// SignedURL is what files have not.
func (f *folder) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errUnimplemented
}

// As and ErrorAs give no access to what is beneath.
func (f *folder) As(any) bool             { return false }
func (f *folder) ErrorAs(error, any) bool { return false }

// Close has nothing to end: nothing is held open between calls.
func (f *folder) Close() error { return nil }

// path is the file of a key.
func (f *folder) path(key string) (string, error) {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		name, err := fileName(part)
		if err != nil {
			return "", fmt.Errorf("key %q: %w", key, err)
		}
		parts[i] = name
	}
	return filepath.Join(f.dir, filepath.Join(parts...)), nil
}
