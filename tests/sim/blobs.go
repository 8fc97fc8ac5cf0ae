package sim

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

var (
	errNoBlob     = errors.New("no such blob")
	errBlobStands = errors.New("a blob stands there")
)

// chest holds the blobs of a world.
type chest struct {
	blobs map[string]piece
}

type piece struct {
	data []byte
	kind string
	at   time.Time
}

// bucket is the chest as one host sees it, for gocloud.dev/blob: each request is a step.
type bucket struct {
	host *host
}

var _ driver.Bucket = bucket{}

// do has the scheduler carry a request out. A request that fails may have been carried out all the same, where it writes.
func (b bucket) do(ctx context.Context, what, key string, do func(*chest) error) error {
	w := b.host.World
	c := &pending{landed: true}
	return w.sched.ask(ctx, c, b.host.op(what, key, "", byStore, func() string {
		if c.gone && w.luck.streams[BlobFailed].IntN(2) == 0 {
			return "given up"
		}
		if w.luck.strikes(BlobFailed, w.Faults.Blobs) {
			c.err = errReset
			if w.luck.streams[BlobFailed].IntN(2) == 0 {
				return "refused"
			}
			_ = do(w.chest)
			return "lost"
		}
		if c.err = do(w.chest); c.err != nil {
			return c.err.Error()
		}
		return ""
	}))
}

func (b bucket) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errNoBlob):
		return gcerrors.NotFound
	case errors.Is(err, errBlobStands):
		return gcerrors.FailedPrecondition
	}
	return gcerrors.Unknown
}

func (b bucket) As(any) bool             { return false }
func (b bucket) ErrorAs(error, any) bool { return false }
func (b bucket) Close() error            { return nil }

func (b bucket) Attributes(context.Context, string) (*driver.Attributes, error) {
	return nil, errors.ErrUnsupported
}

func (b bucket) Copy(context.Context, string, string, *driver.CopyOptions) error {
	return errors.ErrUnsupported
}

func (b bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errors.ErrUnsupported
}

func (b bucket) ListPaged(ctx context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	page := new(driver.ListPage)
	return page, b.do(ctx, "blob list", o.Prefix, func(c *chest) error {
		for _, key := range slices.Sorted(maps.Keys(c.blobs)) {
			if strings.HasPrefix(key, o.Prefix) && key > string(o.PageToken) {
				page.Objects = append(page.Objects, &driver.ListObject{Key: key, Size: int64(len(c.blobs[key].data)), ModTime: c.blobs[key].at})
			}
		}
		if n := max(o.PageSize, 1); len(page.Objects) > n {
			page.Objects = page.Objects[:n]
			page.NextPageToken = []byte(page.Objects[n-1].Key)
		}
		return nil
	})
}

func (b bucket) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	r := new(reading)
	return r, b.do(ctx, "blob get", key, func(c *chest) error {
		found, ok := c.blobs[key]
		if !ok {
			return errNoBlob
		}
		r.about = driver.ReaderAttributes{ContentType: found.kind, ModTime: found.at, Size: int64(len(found.data))}
		data := found.data[min(offset, int64(len(found.data))):]
		if length >= 0 {
			data = data[:min(length, int64(len(data)))]
		}
		r.Reader = bytes.NewReader(data)
		return nil
	})
}

type reading struct {
	*bytes.Reader
	about driver.ReaderAttributes
}

func (r *reading) Attributes() *driver.ReaderAttributes { return &r.about }
func (r *reading) As(any) bool                          { return false }
func (r *reading) Close() error                         { return nil }

func (b bucket) NewTypedWriter(ctx context.Context, key, kind string, o *driver.WriterOptions) (driver.Writer, error) {
	return &writing{ctx: ctx, bucket: b, key: key, kind: kind, absent: o.IfNotExist}, nil
}

// writing is a blob on its way. gocloud.dev/blob gives no context to its end, so it holds that of its begin.
type writing struct {
	bytes.Buffer
	ctx       context.Context
	bucket    bucket
	key, kind string
	absent    bool
}

func (p *writing) Close() error {
	data := slices.Clone(p.Bytes())
	return p.bucket.do(p.ctx, "blob put", p.key, func(c *chest) error {
		if _, stands := c.blobs[p.key]; stands && p.absent {
			return errBlobStands
		}
		c.blobs[p.key] = piece{data, p.kind, p.bucket.host.World.Now()}
		return nil
	})
}

func (b bucket) Delete(ctx context.Context, key string, _ *driver.DeleteOptions) error {
	return b.do(ctx, "blob delete", key, func(c *chest) error {
		if _, stands := c.blobs[key]; !stands {
			return errNoBlob
		}
		delete(c.blobs, key)
		return nil
	})
}
