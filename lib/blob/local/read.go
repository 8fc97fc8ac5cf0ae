package local

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gocloud.dev/blob/driver"
)

const (
	contentType = "application/octet-stream"
	pageSize    = 1000
)

type reader struct {
	io.Reader
	file  File
	attrs driver.ReaderAttributes
}

func (r *reader) Close() error                         { return r.file.Close() }
func (r *reader) Attributes() *driver.ReaderAttributes { return &r.attrs }
func (r *reader) As(any) bool                          { return false }

// NewRangeReader reads an object from an offset on.
func (f *folder) NewRangeReader(_ context.Context, key string, offset, length int64, opts *driver.ReaderOptions) (driver.Reader, error) {
	path, err := f.path(key)
	if err != nil {
		return nil, err
	}
	file, err := f.disk.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := readFrom(file, offset, length, opts)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

func readFrom(file File, offset, length int64, opts *driver.ReaderOptions) (*reader, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fs.ErrNotExist
	}
	if opts.BeforeRead != nil {
		if err := opts.BeforeRead(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	if length < 0 {
		length = math.MaxInt64 - offset
	}
	r := &reader{Reader: io.NewSectionReader(file, offset, length), file: file,
		attrs: driver.ReaderAttributes{ContentType: contentType, ModTime: info.ModTime(), Size: info.Size()}}
	return r, nil
}

// ListPaged lists objects in the order of their keys. It reads no directory that can't hold one of the page.
func (f *folder) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	l := &listing{ctx: ctx, disk: f.disk, opts: opts, after: string(opts.PageToken), size: opts.PageSize}
	if l.size == 0 {
		l.size = pageSize
	}
	if err := l.directory(f.dir, ""); err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return &l.page, nil
}

var errPageFull = errors.New("the page is full")

type listing struct {
	ctx   context.Context //nolint:containedctx // lives as long as the call that it was given to
	disk  Disk
	opts  *driver.ListOptions
	after string
	size  int
	page  driver.ListPage
}

type entry struct {
	key string // of a directory with its "/"
	fs.DirEntry
}

// directory lists what lies in a directory whose keys begin with a prefix.
func (l *listing) directory(dir, prefix string) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	found, err := l.disk.ReadDir(dir, 0)
	if err != nil {
		return ignoring(fs.ErrNotExist, err) // removed since
	}
	entries := make([]entry, 0, len(found))
	for _, e := range found {
		part, err := partOf(e.Name())
		if err != nil {
			continue // .tmp, and what others have put here
		}
		key := prefix + part
		if e.IsDir() {
			key += "/"
		}
		entries = append(entries, entry{key, e})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	for _, e := range entries {
		switch {
		case !strings.HasPrefix(e.key, l.opts.Prefix) && !(e.IsDir() && strings.HasPrefix(l.opts.Prefix, e.key)):
			continue
		case e.key <= l.after && !(e.IsDir() && strings.HasPrefix(l.after, e.key)):
			continue
		case e.IsDir():
			err = l.directory(filepath.Join(dir, e.Name()), e.key)
		default:
			err = l.object(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) object(e entry) error {
	found := &driver.ListObject{Key: e.key}
	rest := strings.TrimPrefix(e.key, l.opts.Prefix)
	if d := l.opts.Delimiter; d != "" && strings.Contains(rest, d) {
		head, _, _ := strings.Cut(rest, d)
		found.Key, found.IsDir = l.opts.Prefix+head+d, true
		if found.Key <= l.after {
			return nil
		}
	} else {
		info, err := e.Info()
		if err != nil {
			return ignoring(fs.ErrNotExist, err) // removed since
		}
		found.ModTime, found.Size = info.ModTime(), info.Size()
	}
	if len(l.page.Objects) == l.size {
		l.page.NextPageToken = []byte(l.after)
		return errPageFull
	}
	l.page.Objects = append(l.page.Objects, found)
	l.after = found.Key
	return nil
}
